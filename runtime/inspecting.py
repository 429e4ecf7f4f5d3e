"""What is in a program: its signature, symbols, operators and weights as plain data. Needs no torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from .archive.payloads import Payload
from .archives import Archive
from .generated import types
from .layouts import ITEM_SIZES, element_type
from .limits import INT64_MAX
from .operators import TargetKind, parse_target
from .spelling import describe_tensor


@dataclass(slots=True)
class ValueSummary:
    """One input or output.

    Attributes:
        name: Its name in the graph, or the constant's.
        role: `parameter`, `buffer`, `user input`, `user output`, `buffer mutation` and so on.
        type: Dtype, shape and device of a tensor, `float32[s0, 4] cpu`; else the kind, or the constant.
        target: The weight or input that it stands for or updates, where there is one.
    """

    name: str
    role: str
    type: str
    target: str | None = None


@dataclass(slots=True)
class SymbolSummary:
    """A range of a symbol, or of an expression of symbols; None stands for no bound."""

    name: str
    minimum: int | None
    maximum: int | None


@dataclass(slots=True)
class WeightSummary:
    """A parameter, buffer or constant as it is stored.

    Attributes:
        name: Its qualified name.
        kind: `parameter`, `buffer`, `constant` or `pickled object`.
        type: Dtype and shape.
        elements: How many elements; numbers beyond 64 bits, which no tensor has, stand as the largest.
        bytes: How many bytes these take, likewise.
        record: The payload that it is a view of. Weights that share one have one storage.
    """

    name: str
    kind: str
    type: str
    elements: int
    bytes: int
    record: str


@dataclass(slots=True)
class ProgramSummary:
    """A program at a glance.

    Attributes:
        name: Its name in the archive.
        format: The version of the export format, such as `8.20`.
        torch_version: The PyTorch that exported it.
        dialects: The dialects it belongs to: `ATEN`, `TRAINING`.
        nodes: How many nodes its graph and subgraphs have.
        subgraphs: How many subgraphs.
        inputs: What the graph takes, weights included.
        outputs: What it gives.
        symbols: Ranges of symbols.
        guards: Further conditions on inputs.
        operators: How often each operator is called, most often first.
        weights: The stored weights; empty for a program without an archive.
        stored_bytes: Bytes of all payloads, shared ones once.
    """

    name: str
    format: str
    torch_version: str
    dialects: list[str]
    nodes: int
    subgraphs: int
    inputs: list[ValueSummary]
    outputs: list[ValueSummary]
    symbols: list[SymbolSummary]
    guards: list[str]
    operators: dict[str, int]
    weights: list[WeightSummary] = field(default_factory=list)
    stored_bytes: int = 0


def summarize_archive(archive: Archive) -> list[ProgramSummary]:
    """Summarizes every program of an archive.

    Example:
        >>> import io, pt2wire, torch
        >>> file = io.BytesIO()
        >>> pt2wire.save(torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),)), file)
        >>> summary = summarize_archive(pt2wire.read(file))[0]
        >>> summary.operators, [weight.name for weight in summary.weights]
        ({'aten.linear.default': 1}, ['weight', 'bias'])
    """
    summaries = []
    for name, tree in archive.programs.items():
        summary = summarize(tree, name)
        weights, constants = archive.weights.get(name, {}), archive.constants.get(name, {})
        summary.weights = [
            *_weights(weights, ("parameter", "buffer")),
            *_weights(constants, ("parameter", "constant")),
        ]
        payloads = [*weights.values(), *constants.values()]
        summary.stored_bytes = sum(
            len(data) for data in {id(payload.data): payload.data for payload in payloads}.values()
        )
        summaries.append(summary)
    return summaries


def summarize(tree: types.ExportedProgram, name: str = "model") -> ProgramSummary:
    """Summarizes one program.

    Example:
        >>> import pt2wire, torch
        >>> tree = pt2wire.to_tree(torch.export.export(torch.nn.ReLU(), (torch.ones(2, 3),)))
        >>> [value.type for value in summarize(tree).inputs]
        ['float32[2, 3] cpu']
    """
    module = tree.graph_module
    graphs = list(_graphs(module.graph))
    tensors = _TensorTypes(module.graph)
    counts = Counter(_short(node.target) for graph in graphs for node in graph.nodes)
    return ProgramSummary(
        name=name,
        format=f"{tree.schema_version.major}.{tree.schema_version.minor}",
        torch_version=tree.torch_version,
        dialects=list(tree.verifiers),
        nodes=sum(len(graph.nodes) for graph in graphs),
        subgraphs=len(graphs) - 1,
        inputs=list(_inputs(module, tensors)),
        outputs=list(_outputs(module, tensors)),
        symbols=[
            SymbolSummary(symbol, bounds.min_val, bounds.max_val)
            for symbol, bounds in tree.range_constraints.items()
        ],
        guards=list(tree.guards_code),
        operators=dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
    )


def _graphs(graph: types.Graph) -> Iterator[types.Graph]:
    pending = [graph]
    while pending:
        graph = pending.pop()
        yield graph
        for node in graph.nodes:
            for named in node.inputs:
                if named.arg.type == "as_graph":
                    pending.append(named.arg.as_graph.graph)


def _short(target: str) -> str:
    parsed = parse_target(target)
    if parsed is not None and parsed.kind in (TargetKind.OPERATOR, TargetKind.HIGHER_ORDER):
        return target.removeprefix("torch.ops.")
    return target


_TARGET_FIELDS = (
    "parameter_name",
    "buffer_name",
    "tensor_constant_name",
    "custom_obj_name",
    "user_input_name",
)


def _target(spec: object) -> str | None:
    names = (getattr(spec, name, None) for name in _TARGET_FIELDS)
    return next((name for name in names if name is not None), None)


#: Characters of the description of one value: no more, since any number of them may be one tensor.
_DESCRIPTION_LENGTH = 500


class _TensorTypes(dict[str, str]):
    """The description of each tensor of a graph, made once, however many values are that tensor."""

    def __init__(self, graph: types.Graph) -> None:
        super().__init__()
        self._metas = graph.tensor_values

    def __missing__(self, name: str) -> str:
        meta = self._metas.get(name)
        text = "tensor" if meta is None else describe_tensor(meta)
        self[name] = text if len(text) <= _DESCRIPTION_LENGTH else f"{text[:_DESCRIPTION_LENGTH]}..."
        return self[name]


def _inputs(module: types.GraphModule, tensors: Mapping[str, str]) -> Iterator[ValueSummary]:
    for spec in module.signature.input_specs:
        role, value = spec.type.replace("_", " "), spec.value
        if isinstance(value, types.InputToConstantInputSpec):
            constant = value.value
            yield ValueSummary(
                value.name, role, "None" if constant.type == "as_none" else repr(constant.value)
            )
        elif isinstance(value, types.UserInputSpec):
            yield _value(tensors, value.arg, role)
        elif isinstance(value, types.InputToCustomObjSpec):
            yield _value(tensors, types.Argument.of_custom_obj(value.arg), role, _target(value))
        else:
            tensor = types.Argument.create(as_tensor=types.TensorArgument(value.arg.name))
            yield _value(tensors, tensor, role, _target(value))


def _outputs(module: types.GraphModule, tensors: Mapping[str, str]) -> Iterator[ValueSummary]:
    for spec in module.signature.output_specs:
        role, value = spec.type.replace("_", " "), spec.value
        if isinstance(value, types.UserOutputSpec):
            yield _value(tensors, value.arg, role)
        else:
            tensor = types.Argument.create(as_tensor=types.TensorArgument(value.arg.name))
            yield _value(tensors, tensor, role, _target(value))


def _value(
    tensors: Mapping[str, str], argument: types.Argument, role: str, target: str | None = None
) -> ValueSummary:
    value = argument.value
    if argument.type == "as_tensor":
        return ValueSummary(value.name, role, tensors[value.name], target)
    if argument.type in ("as_sym_int", "as_sym_float", "as_sym_bool") and value.type == "as_name":
        return ValueSummary(value.as_name, role, argument.type.removeprefix("as_"), target)
    if argument.type == "as_custom_obj":
        return ValueSummary(value.name, role, value.class_fqn, target)
    if argument.type == "as_none":
        return ValueSummary("", role, "None", target)
    if isinstance(value, bool | int | float | str):
        return ValueSummary("", role, repr(value), target)
    return ValueSummary("", role, argument.type.removeprefix("as_"), target)


def _weights(payloads: Mapping[str, Payload], kinds: tuple[str, str]) -> Iterator[WeightSummary]:
    for name, payload in payloads.items():
        meta = payload.meta.tensor_meta
        record = payload.meta.path_name
        if meta is None or payload.meta.use_pickle:
            yield WeightSummary(name, "pickled object", _pickled(meta), 0, len(payload.data), record)
            continue
        elements = _product(size.as_int if size.type == "as_int" else 0 for size in meta.sizes)
        kind = kinds[0] if payload.meta.is_param else kinds[1]
        nbytes = _product([elements, ITEM_SIZES.get(element_type(meta), 0)])
        yield WeightSummary(name, kind, describe_tensor(meta, device=False), elements, nbytes, record)


def _product(factors: Iterable[int]) -> int:
    product = 1
    for factor in factors:
        # Nothing was checked yet: a file may have as many sizes as it likes.
        product = max(-INT64_MAX, min(product * factor, INT64_MAX))
    return product


def _pickled(meta: types.TensorMeta | None) -> str:
    """A tensor of a class of its own; nothing is known of other objects."""
    if meta is None:
        return ""
    described = describe_tensor(meta, device=False)
    return described if meta.subclass is None else f"{described} {meta.subclass.partition(':')[2]}"
