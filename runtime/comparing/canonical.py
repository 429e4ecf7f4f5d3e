"""The canonical form of a tree: one tree for all spellings of one program. Needs no torch."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..arguments import check_tree
from ..collector import collector_off
from ..errors import DeserializeError
from ..format_versions import own_field
from ..generated import types
from ..guards import normal_guard
from .encoding import copied
from .merging import merge_items
from .naming import (
    TABLES,
    calls_of,
    given_values,
    merge_structures,
    named_values,
    refer_to,
    rename,
    rename_signature,
    sort_held_tensors,
)
from .order import canonical_order

# What is bound by name comes sorted by name; what is bound by position stays in order, behind it. The ranks
# are PyTorch's, but for constant inputs: it moves them behind the other inputs, which changes what a call
# of the program means.
_INPUT_RANKS: dict[str, tuple[int, str | None]] = {
    "token": (0, None),
    "parameter": (1, "parameter_name"),
    "buffer": (2, "buffer_name"),
    "tensor_constant": (3, "tensor_constant_name"),
    "custom_obj": (4, "custom_obj_name"),
    "user_input": (5, None),
    "constant_input": (5, None),
}
_OUTPUT_RANKS: dict[str, tuple[int, str | None]] = {
    "token": (0, None),
    "parameter_mutation": (1, "parameter_name"),
    "buffer_mutation": (2, "buffer_name"),
    "user_input_mutation": (3, None),
    "loss_output": (4, None),
    "user_output": (4, None),
    "gradient_to_parameter": (5, "parameter_name"),
    "gradient_to_user_input": (6, None),
}

#: The fields of a graph that hold notes on nodes or on itself.
_NOTES = ("placeholder_metadata", "output_metadata", "get_attr_metadata", "getitem_metadata", "custom")


def canonicalize(tree: types.ExportedProgram) -> types.ExportedProgram:
    """The canonical form of a program: equal for programs that differ only in what has no meaning.

    That is: names of values, nodes and subgraphs; the order of nodes that do not depend on one another, of
    weights among the inputs, and of dictionaries; stack traces and all other notes; who wrote the file. A
    node that changes a tensor in place depends on whatever could see that tensor, and stays before or behind
    it; draws of random numbers stay in their order. A tree does not say which weights share memory: each is
    taken to have its own. The form is PyTorch's own wherever that is well defined.

    Args:
        tree: A sound tree, of `to_tree` or `read` for example; `validate` says whether it is sound. It is
            left untouched.

    Returns:
        A new tree, which shares nothing with the old one. It is a program that computes the same.

    Raises:
        TypeError: `tree` is no tree of a program.
        SerializeError: A value does not fit its field.
        DeserializeError: The tree is not sound: it uses a value before it is defined, or defines one twice.

    Example:
        >>> import pt2wire, torch
        >>> tree = pt2wire.to_tree(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)))
        >>> tree.graph_module.graph.nodes[0].outputs
        [Argument(as_tensor=TensorArgument(name='relu'))]
        >>> canonicalize(tree).graph_module.graph.nodes[0].outputs
        [Argument(as_tensor=TensorArgument(name='_1'))]
    """
    return canonical_copy(tree)


def canonical_copy(tree: types.ExportedProgram, together: Collection[str] = ()) -> types.ExportedProgram:
    """`canonicalize`, with the names of weights that share memory with another one, which no tree knows."""
    check_tree(tree)
    with collector_off():
        copy = copied(tree)
        canonicalize_in_place(copy, together)
    return copy


def canonicalize_in_place(tree: types.ExportedProgram, together: Collection[str] = ()) -> Names:
    """Brings a tree into canonical form.

    Args:
        tree: The tree.
        together: As for `canonical_copy`.

    Returns:
        What became of the names of values, with which differences can be told in the old ones.
    """
    module = tree.graph_module
    _sort_signature(module)
    for argument in (*module.graph.inputs, *module.graph.outputs):
        _sort_dictionary(argument)
    weights = (spec for spec in module.signature.input_specs if bound_name(spec) in together)
    sharing = [weight.value.arg.name for weight in weights]
    names = _canonicalize_graph(module.graph, "graph_module.graph", sharing)
    rename_signature(module.signature, names.values)
    _number_constants(module.signature)
    for entry in module.module_call_graph:
        if entry.signature is not None:
            rename(named_values(entry.signature), names.values)
    module.module_call_graph.sort(key=lambda entry: entry.fqn)
    module.metadata, module.custom = {}, None
    module.treespec_namedtuple_fields = _sorted(module.treespec_namedtuple_fields)
    tree.opset_version = _sorted(tree.opset_version)
    tree.range_constraints = _sorted(tree.range_constraints)
    tree.guards_code = sorted(map(_spelled, tree.guards_code))
    tree.writer = None
    if own_field(tree) is not None:
        # Such fields demand a writer; who it was is no part of the meaning.
        tree.writer = types.Writer(name="", version="", revision=0)
    if tree.beyond:
        # That there is something has a meaning; the words for it name nodes, in the order that they had.
        tree.beyond = ["one that it cannot"]  # errors say this of a program that the format can express
    return names


class Names:
    """What became of the names of one graph.

    Attributes:
        values: Old name of a value -> canonical name.
        nodes: The old name of each node, in canonical order.
        subgraphs: By canonical name of the subgraph, its old name and its names.
    """

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.nodes: list[str | None] = []
        self.subgraphs: dict[str, tuple[str, Names]] = {}


def _sorted(table: dict[str, Any]) -> dict[str, Any]:
    return dict(sorted(table.items()))


def bound_name(spec: types.InputSpec | types.OutputSpec) -> str | None:
    """The weight or object that an input or output is bound to; None where it is bound by position."""
    ranks = _INPUT_RANKS if isinstance(spec, types.InputSpec) else _OUTPUT_RANKS
    field = ranks[spec.type][1]
    return None if field is None else getattr(spec.value, field)


def _sort_signature(module: types.GraphModule) -> None:
    graph, signature = module.graph, module.signature
    graph.inputs, signature.input_specs = _in_ranks(
        graph.inputs, signature.input_specs, _INPUT_RANKS, "inputs"
    )
    graph.outputs, signature.output_specs = _in_ranks(
        graph.outputs, signature.output_specs, _OUTPUT_RANKS, "outputs"
    )


def _in_ranks(
    arguments: list[types.Argument],
    specs: list[Any],
    ranks: dict[str, tuple[int, str | None]],
    field: str,
) -> tuple[list[types.Argument], list[Any]]:
    if len(arguments) != len(specs):
        raise DeserializeError(
            f"expected one argument for each of {len(specs)} specs of the signature, found {len(arguments)}",
            path=f"graph_module.graph.{field}",
        )

    def rank(pair: tuple[types.Argument, Any]) -> tuple[int, str]:
        return ranks[pair[1].type][0], bound_name(pair[1]) or ""

    pairs = sorted(zip(arguments, specs, strict=True), key=rank)  # stable: by position among equals
    return [argument for argument, _ in pairs], [spec for _, spec in pairs]


def _number_constants(signature: types.GraphSignature) -> None:
    constants = (spec.constant_input for spec in signature.input_specs if spec.type == "constant_input")
    for number, constant in enumerate(constants):
        constant.name = f"_c{number}"


def _canonicalize_graph(graph: types.Graph, path: str, together: Collection[str]) -> Names:
    names = Names()
    if graph.getitems:
        merge_items(graph)  # before the names are gone
    old_nodes = [_strip(node) for node in graph.nodes]
    calls = calls_of(graph)
    for number, call in enumerate(calls):
        # By position: names mean nothing.
        positions = {named.name: str(at) for at, named in enumerate(call.node.subgraphs or ())}
        refer_to(positions, call.references, f"{path}.nodes[{number}]")
    sort_held_tensors(graph)
    merge_structures(graph, calls, path)
    # Inner graphs first: equal nodes are told apart by what they hold.
    inner: dict[int, tuple[str, Names]] = {}
    for number, call in enumerate(calls):
        for argument in call.subgraphs:
            # Any of its operands may be one of them.
            given = [value.name for value in given_values(argument.graph)] if together else []
            found = _canonicalize_graph(argument.graph, f"{path}.nodes[{number}].{argument.name}", given)
            inner[id(argument)] = argument.name, found
            argument.name, argument.node = "", None
    inputs, outputs = given_values(graph), named_values(graph.outputs)
    order = canonical_order(graph, calls, inputs, outputs, path, together)
    calls = [calls[position] for position in order]
    names.nodes = [old_nodes[position] for position in order]

    for definitions in (inputs, *(call.definitions for call in calls)):
        for value in definitions:
            names.values[value.name] = canonical = f"_{len(names.values)}"
            value.name = canonical
    attributes: dict[str, str] = {}  # several names may stand for one, which the graph may change
    for constant in graph.constants or ():
        constant.target = attributes.setdefault(constant.target, constant.name)
    rename(outputs, names.values)
    rename(named_values(graph.exact_output), names.values)
    for call in calls:
        rename(call.uses, names.values)
        for argument in call.subgraphs:
            argument.name = f"_g{len(names.subgraphs)}"
            names.subgraphs[argument.name] = inner[id(argument)]
        for reference in call.references:
            reference.as_subgraph = (call.node.subgraphs or ())[int(reference.as_subgraph)].name

    for field in _NOTES:
        setattr(graph, field, None)
    graph.order, graph.getitems = None, None
    graph.nodes = [call.node for call in calls]
    for field in TABLES:
        setattr(graph, field, _renamed_table(getattr(graph, field), names.values))
    return names


def _spelled(guard: str) -> str:
    """A guard in the one spelling that stands for all; as it is where loading would refuse it."""
    try:
        return normal_guard(guard)
    except DeserializeError:
        return guard


def _strip(node: types.Node) -> str | None:
    """Takes from a node what has no meaning, and gives back its name."""
    old, node.name = node.name, None
    node.metadata, node.custom, node.module_stack = {}, None, None
    for argument in (*(named.arg for named in node.inputs), *node.outputs):
        _sort_dictionary(argument)
    return old


def _sort_dictionary(argument: types.Argument) -> None:
    if argument.type == "as_string_to_argument":
        argument.as_string_to_argument = _sorted(argument.as_string_to_argument)
        for inner in argument.as_string_to_argument.values():
            _sort_dictionary(inner)


def _renamed_table(table: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """A table of values by name. What describes no value of the graph is dropped."""
    renamed = {names[name]: described for name, described in table.items() if name in names}
    for described in renamed.values():
        if isinstance(described, types.CustomObjArgument):
            described.name = names.get(described.name, described.name)
    return _sorted(renamed)
