"""What a program does with sparse tensors, and with the indices and values that lie in them.

Most operators of PyTorch believe the indices of a sparse tensor: whoever moves them lets the process read or
write anywhere. They are sound in weights and inputs, and stay so as long as a program hands sparse tensors,
and tensors that may lie in their memory, to nothing but what tables know. Which values are such is followed
through the graph; what is said in the file of those that nodes make is not believed. Most programs have none.

Needs torch, which knows the schemas of operators; runs none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..exact_values import call_arguments, sequence_items
from ..findings import Finding
from ..generated import types
from ..items import by_owner
from ..layouts import PARTS
from ..memory_groups import MemoryGroups
from ..operators import Target, TargetKind, allowing_packet, parse_target
from ..permissions import NO_PERMISSIONS, Permissions
from ..sparse_operators import (
    CHANGING_SPARSE,
    GIVING_INDICES,
    GIVING_VALUES,
    MAKING_FROM_PARTS,
    MAKING_SPARSE,
    ON_SPARSE,
    READING_PARTS,
    out_of_place,
    results_are_sparse,
)
from .operators import find_schema, find_tags, nested, operators_in
from .rules import Findings
from .signatures import TARGETS
from .subgraphs import CALLS

_RULE = "sparse-flow"
_PROGRAM = "graph_module.graph"

_Given = types.Argument | types.Value
_Traits = frozenset[str]
_NONE: _Traits = frozenset()
#: What a value may be: sparse itself, or in the memory of a sparse tensor's indices or values.
_SPARSE, _INDICES, _VALUES = frozenset({"sparse"}), frozenset({"indices"}), frozenset({"values"})

_GIVEN = {**dict.fromkeys(GIVING_INDICES, _INDICES), **dict.fromkeys(GIVING_VALUES, _VALUES)}
#: What they are given shares memory with what they give, but is no part of it, or the other way round.
_APART = _GIVEN.keys() | MAKING_FROM_PARTS.keys()
_SAFE = "to be safe for sparse tensors and what lies in their memory"
#: They call their subgraphs once, with their last arguments.
_CALLING_ONCE = frozenset(
    "cond invoke_subgraph strict_mode tag_activation_checkpoint wrap wrap_activation_checkpoint"
    " wrap_with_autocast wrap_with_set_grad_enabled".split()
)


def validate_sparse_flow(
    tree: types.ExportedProgram, permissions: Permissions = NO_PERMISSIONS
) -> list[Finding]:
    """Checks that a program moves no indices of a sparse tensor, and uses one only where that is safe.

    Args:
        tree: The program, in which `validate_tree` found nothing.
        permissions: What the caller permits it: operators that may do what they like.

    Returns:
        What is wrong. What follows from it is looked at as if it were permitted.

    Example:
        >>> import pt2wire, torch
        >>> class Model(torch.nn.Module):
        ...     def forward(self, x):
        ...         x.indices().add_(1)
        ...         return x.to_dense()
        >>> example = torch.eye(2).to_sparse()
        >>> tree = pt2wire.to_tree(torch.export.export(Model(), (example,)))
        >>> for finding in validate_sparse_flow(tree):
        ...     print(finding)
        graph_module.graph.nodes[1]: expected indices of sparse tensors to stay as they are, found 'indices' \
changed by aten.add_ [sparse-flow]
        >>> from pt2wire.permissions import permit
        >>> validate_sparse_flow(tree, permit(allow_operators=["aten.add_"]))
        []
    """
    module = tree.graph_module
    program = _Program(permissions)
    if _has_sparse(module.graph):
        flow = _Flow(program, module.graph, _PROGRAM)
        flow.run([_input_traits(argument, module.graph) for argument in module.graph.inputs])
        _check_updates(program, flow, module.signature)
    return program.findings.found


@dataclass(frozen=True, slots=True)
class _Parameter:
    """What an operator takes: whether tensors, in memory that results share, to change it, or as results."""

    name: str
    is_tensor: bool
    is_shared: bool
    is_written: bool
    is_out: bool


@dataclass(frozen=True, slots=True)
class _Operator:
    """What matters here of an operator's schema.

    Attributes:
        packet: Its name without overload.
        parameters: In the order of the schema.
        only_numbers: Whether its results are no tensors.
        has_layout: Whether it is told the layout of what it makes.
        resizes: Whether it changes the sizes of what it is given.
    """

    packet: str
    parameters: Sequence[_Parameter]
    only_numbers: bool
    has_layout: bool
    resizes: bool


class _Program:
    """What the graphs of a program share.

    Attributes:
        findings: What is wrong so far.
        allowed: Operators that the caller permits.
        known: What was found of subgraphs: what their inputs and outputs may be in the end, by the identity
            of the graph and by what its inputs may be at first.
    """

    def __init__(self, permissions: Permissions) -> None:
        self.findings = Findings()
        self.allowed = permissions.allow_operators
        self.known: dict[tuple[int, tuple[_Traits | None, ...]], tuple[list[_Traits], _Traits]] = {}
        self._operators: dict[str, _Operator | None] = {}
        self._said: set[tuple[str, str]] = set()

    def add(self, path: str, message: str, packet: str | None = None) -> None:
        """Adds a finding, once; `packet` is the operator that may be permitted."""
        if (path, message) not in self._said:
            self._said.add((path, message))
            self.findings.add(_RULE, path, message, None if packet is None else allowing_packet(packet))

    def operator(self, text: str, target: Target) -> _Operator | None:
        """What is known of an operator; None of one that is not registered, which is another finding."""
        if text not in self._operators:
            self._operators[text] = _described(target)
        return self._operators[text]


#: Types of results that are no memory.
_NUMBERS = frozenset({"int", "float", "bool", "number", "str", "ScalarType", "List[int]"})


def _described(target: Target) -> _Operator | None:
    schema = find_schema(target)
    if schema is None:
        return None
    parameters = [_parameter(argument) for argument in schema.arguments]
    return _Operator(
        packet=target.packet,
        parameters=parameters,
        only_numbers=all(str(result.real_type) in _NUMBERS for result in schema.returns),
        has_layout=any("Layout" in str(argument.real_type) for argument in schema.arguments),
        resizes=torch.Tag.inplace_view in find_tags(target),
    )


def _parameter(argument: Any) -> _Parameter:
    alias = argument.alias_info
    return _Parameter(
        name=argument.name,
        is_tensor="Tensor" in str(argument.real_type),
        is_shared=alias is not None,
        is_written=alias is not None and alias.is_write,
        is_out=argument.is_out,
    )


class _Flow:
    """What the values of a graph may be, so far.

    What is a number, be it symbolic, is not followed: of results an operator's schema says so, of inputs what
    they are given.
    """

    def __init__(self, program: _Program, graph: types.Graph, path: str) -> None:
        self._program = program
        self._graph = graph
        self._path = path
        self._items = by_owner(graph.getitems)
        self._values: dict[str, str | int] = {}  # what stands for each: all results of a call are one
        self._sparse: set[str | int] = set()
        self._memory = MemoryGroups[str | int]()
        self._parts: dict[str | int, _Traits] = {}  # by what stands for the memory

    def run(self, inputs: Sequence[_Traits | None]) -> tuple[list[_Traits], _Traits]:
        """Follows what inputs may be, None for numbers; tells what they and the outputs may be at the end."""
        graph = self._graph
        given = [_input_name(argument) for argument in graph.inputs]
        for name, traits in zip(given, inputs, strict=True):
            if name is not None and traits is not None:
                self._values[name] = name
                self._mark(name, traits)
        self._hold(graph.constants or ())
        for index, node in enumerate(graph.nodes):
            self._call(index, node)
        outputs: Iterable[_Given] = graph.outputs if graph.exact_output is None else (graph.exact_output,)
        ends = [_NONE if name is None else self.traits(name) for name in given]
        return ends, self._union(name for output in outputs for name in _names(output))

    def traits(self, name: str) -> _Traits:
        """What a value may be."""
        return self._traits(self._values[name]) if name in self._values else _NONE

    def _hold(self, constants: Iterable[types.GraphConstant]) -> None:
        """Several names may stand for one tensor that the graph holds."""
        held: dict[str, str] = {}
        for constant in constants:
            key = self._values[constant.name] = held.setdefault(constant.target, constant.name)
            self._mark(key, _described_traits(self._graph.tensor_values[constant.name]))

    def _call(self, index: int, node: types.Node) -> None:
        target = parse_target(node.target)
        if target is None:
            return  # a finding of validate_tree
        if target.kind is TargetKind.HIGHER_ORDER:
            is_followed = self._call_higher_order(index, node, target)
        elif target.kind is TargetKind.OPERATOR and (operator := self._program.operator(node.target, target)):
            is_followed = self._call_operator(index, node, operator)
        else:
            is_followed = self._call_function(index, node, target)
        if is_followed:
            self._define(index, node)

    def _define(self, index: int, node: types.Node) -> None:
        """Names the results of a call, and the nodes that take it apart."""
        names = [name for output in node.outputs for name in _names(output)]
        self._values.update(dict.fromkeys(names, index))
        owners = [node.name] if node.name is not None and self._items else []
        while owners:
            taken = [item.name for _, item in self._items.pop(owners.pop(), ())]
            self._values.update(dict.fromkeys(taken, index))
            owners += taken

    def _call_function(self, index: int, node: types.Node, target: Target) -> bool:
        """A function over symbolic numbers, of functorch, or of an extension: nothing is known of any."""
        names = self._followed(value for _, value in call_arguments(node))
        for name in names:
            self._share(index, self._values[name])
            self._mark(index, self.traits(name))
        # What is not registered is another finding.
        if self._traits(index) - _VALUES and target.kind is not TargetKind.OPERATOR:
            self._add_unknown(index, node, node.target)
        return bool(names) or target.kind in (TargetKind.OPERATOR, TargetKind.EXTENSION)

    def _call_operator(self, index: int, node: types.Node, operator: _Operator) -> bool:
        arguments = dict(call_arguments(node))
        given = [
            (parameter, self._followed([arguments[parameter.name]]))
            for parameter in operator.parameters
            if parameter.name in arguments
        ]
        packet = operator.packet
        is_given_sparse = any(self._is_sparse(names) for _, names in given)
        if is_given_sparse and packet not in self._program.allowed:
            self._check_sparse(index, node, packet, given)
        for parameter, names in given:
            for name in names:
                self._take_part(index, node, operator, parameter, name)
                if parameter.name in MAKING_FROM_PARTS.get(packet, ()):
                    self._mark(self._values[name], _INDICES)
        # Numbers do not count: a symbolic factor makes no sum of sparse tensors dense.
        tensors = [name for parameter, names in given if parameter.is_tensor for name in names]
        sparse = [self._is_sparse([name]) for name in tensors]
        is_allowed = packet in self._program.allowed and is_given_sparse
        if _makes_sparse(node, operator) or is_allowed or results_are_sparse(packet, sparse):
            self._mark(index, _SPARSE)
        self._mark(index, _GIVEN.get(packet, _NONE))
        return not operator.only_numbers

    def _check_sparse(
        self, index: int, node: types.Node, packet: str, given: Iterable[tuple[_Parameter, list[str]]]
    ) -> None:
        """An operator is given sparse tensors: that is fine only if it is known to be safe for them."""
        is_out = any(parameter.is_out for parameter, names in given if names)
        changes = any(parameter.is_written and self._is_sparse(names) for parameter, names in given)
        if is_out or out_of_place(packet) not in ON_SPARSE or (changes and packet not in CHANGING_SPARSE):
            self._add_unknown(index, node, packet, packet)

    def _take_part(
        self, index: int, node: types.Node, operator: _Operator, parameter: _Parameter, name: str
    ) -> None:
        """An operator is given what may lie in the memory of a sparse tensor."""
        packet, value = operator.packet, self._values[name]
        traits = self._parts_of(value)
        if packet in _APART or (not parameter.is_shared and out_of_place(packet) in READING_PARTS):
            return
        if packet not in self._program.allowed:
            place = f"{self._path}.nodes[{index}]"
            if parameter.is_written and traits >= _INDICES:
                self._program.add(place, _moved(name, packet), packet)
            elif not parameter.is_shared and traits >= _INDICES:
                self._add_unknown(index, node, packet, packet)
            elif parameter.is_written and traits >= _VALUES and (parameter.is_out or operator.resizes):
                self._program.add(place, _resized(name, packet), packet)
        if parameter.is_written and value in self._sparse:
            self._mark(index, _SPARSE)
        self._share(index, value)

    def _call_higher_order(self, index: int, node: types.Node, target: Target) -> bool:
        given = call_arguments(node)
        names = self._followed(value for _, value in given)
        union = self._union(names)
        operators, graphs = _called(node)
        once = target.name in _CALLING_ONCE and not any(name for name, _ in given)
        for name in names:
            self._share(index, self._values[name])
        for text in operators:
            called = parse_target(text)
            operator = self._program.operator(text, called) if called is not None else None
            if operator is None:
                continue  # not registered, which is another finding
            if _makes_sparse(node, operator):
                self._mark(index, _SPARSE)
            if (union or _makes_sparse(node, operator)) and operator.packet not in self._program.allowed:
                self._add_unknown(index, node, operator.packet, operator.packet)
        if operators:
            self._mark(index, union)
        elif union - _VALUES and not once:
            self._add_unknown(index, node, target.name)
        operands = _operands(target.name, given) if once else []
        for graph, step in graphs:
            path = f"{self._path}.nodes[{index}]{step}"
            if once and len(operands) == len(graph.inputs):
                passed = [list(filter(self._values.__contains__, operand)) for operand in operands]
                ends, results = self._run(
                    graph, path, [self._union(operand) if operand else None for operand in passed]
                )
                for operand, traits in zip(passed, ends, strict=True):
                    for name in operand:
                        self._mark(self._values[name], traits - _SPARSE)
            else:
                ends, results = self._run(graph, path, [union] * len(graph.inputs))
                results = results.union(*ends)
            if results - _VALUES and not once:
                self._add_unknown(index, node, target.name)
            self._mark(index, results)
        return True

    def _run(
        self, graph: types.Graph, path: str, inputs: list[_Traits | None]
    ) -> tuple[list[_Traits], _Traits]:
        """`run` of a subgraph, once for each kind of inputs."""
        key = id(graph), tuple(inputs)
        if key not in self._program.known:
            self._program.known[key] = _Flow(self._program, graph, path).run(inputs)
        return self._program.known[key]

    def _followed(self, values: Iterable[_Given]) -> list[str]:
        return [name for value in values for name in _names(value) if name in self._values]

    def _is_sparse(self, names: Iterable[str]) -> bool:
        return any(self._values[name] in self._sparse for name in names)

    def _union(self, names: Iterable[str]) -> _Traits:
        return _NONE.union(*map(self.traits, names))

    def _traits(self, value: str | int) -> _Traits:
        return self._parts_of(value) | (_SPARSE if value in self._sparse else _NONE)

    def _parts_of(self, value: str | int) -> _Traits:
        return self._parts.get(self._memory.of(value), _NONE)

    def _mark(self, value: str | int, traits: _Traits) -> None:
        if traits >= _SPARSE:
            self._sparse.add(value)
        if parts := traits - _SPARSE:
            self._parts[self._memory.of(value)] = self._parts_of(value) | parts

    def _share(self, value: str | int, other: str | int) -> None:
        parts = self._parts_of(value) | self._parts_of(other)
        both = self._memory.join(value, other)
        if parts:
            self._parts[both] = parts

    def _add_unknown(self, index: int, node: types.Node, found: str, packet: str | None = None) -> None:
        message = f"expected an operator that is known {_SAFE}, found {found[:80]}, in node {_shown(node)}"
        self._program.add(f"{self._path}.nodes[{index}]", message, packet)


def _shown(node: types.Node) -> str:
    names = [name for output in node.outputs for name in _names(output)]
    return repr((node.name or (names[0] if names else "(unnamed)"))[:80])


def _moved(name: str, writer: str) -> str:
    return f"expected indices of sparse tensors to stay as they are, found {name[:80]!r} changed by {writer}"


def _resized(name: str, packet: str) -> str:
    return f"expected values of sparse tensors to keep their sizes, found {name[:80]!r} given to {packet}"


def _check_updates(program: _Program, flow: _Flow, signature: types.GraphSignature) -> None:
    """After each call, inputs are updated by outputs."""
    names = {
        (spec.type, getattr(spec.value, field)): spec.value.arg.name
        for spec in signature.input_specs
        for field, kind in _UPDATED.values()
        if spec.type == kind != "user_input"
    }
    for index, spec in enumerate(signature.output_specs):
        if spec.type in _UPDATED:
            field, kind = _UPDATED[spec.type]
            target = getattr(spec.value, field)
            name = names.get((kind, target), target)
            if flow.traits(name) >= _INDICES:
                path = f"graph_module.signature.output_specs[{index}]"
                program.add(path, _moved(name, "an output, which updates it"))


_UPDATED = {kind: TARGETS[kind] for kind in ("buffer_mutation", "parameter_mutation", "user_input_mutation")}


# -- what a program has -----------------------------------------------------------------------------------


#: Members that may hold something sparse, or make it.
_TELLING = frozenset({"as_layout", "as_graph", "as_operator", "as_string_to_argument"})


def _has_sparse(graph: types.Graph) -> bool:
    """Whether a program is given sparse tensors, holds or makes some. Fast, since most do not."""
    if any(_input_traits(argument, graph) for argument in graph.inputs):
        return True
    pending = [graph]
    while pending:
        graph = pending.pop()
        if any(_described_traits(graph.tensor_values[held.name]) for held in graph.constants or ()):
            return True
        for node in graph.nodes:
            if _is_maker(node.target):
                return True
            if (
                node.exact_inputs is None
                and node.subgraphs is None
                and _TELLING.isdisjoint([named.arg.type for named in node.inputs])
            ):
                continue
            operators, graphs = _called(node)
            if _names_layout(node) or any(map(_is_maker, operators)):
                return True
            pending += [inner for inner, _ in graphs]
    return False


def _input_traits(argument: types.Argument, graph: types.Graph) -> _Traits | None:
    """What an input may be as it is described, which is compared with what it gets; None for a number."""
    name = _input_name(argument)
    if name is not None and (meta := graph.tensor_values.get(name)) is not None:
        return _described_traits(meta)
    return _NONE if argument.type == "as_custom_obj" else None


def _input_name(argument: types.Argument) -> str | None:
    """The name of an input; constants have none."""
    name_of = _SINGLES.get(argument.type)
    return None if name_of is None else name_of(argument.value)


def _described_traits(meta: types.TensorMeta) -> _Traits:
    if meta.layout is types.Layout.Strided and meta.inner is None:
        return _NONE
    is_sparse = meta.layout in PARTS or any(map(_described_traits, (meta.inner or {}).values()))
    return _SPARSE if is_sparse else _NONE


@functools.lru_cache(maxsize=4_096)
def _is_maker(text: str) -> bool:
    """Whether an operator makes sparse tensors, whatever it is told."""
    target = parse_target(text)
    return target is not None and target.kind is TargetKind.OPERATOR and _makes_by_name(target.packet)


def _makes_by_name(packet: str) -> bool:
    # What is in no table is refused, unless the caller allows it; of that, nothing is known but the name.
    is_unknown = "sparse" in packet and out_of_place(packet) not in ON_SPARSE
    return packet in MAKING_SPARSE or packet in MAKING_FROM_PARTS or is_unknown


def _makes_sparse(node: types.Node, operator: _Operator) -> bool:
    """Whether an operator, called by a node, may make sparse tensors of others."""
    return _makes_by_name(operator.packet) or (operator.has_layout and _names_layout(node))


def _names_layout(node: types.Node) -> bool:
    return any(
        part.type == "as_layout" and part.as_layout in PARTS
        for _, value in call_arguments(node)
        for part in _flat(value)
    )


def _called(node: types.Node) -> tuple[list[str], list[tuple[types.Graph, str]]]:
    """The operators among a node's arguments, and the subgraphs with the steps from the node to them."""
    operators: list[str] = []
    graphs: list[tuple[types.Graph, str]] = []
    for position, named in enumerate(node.inputs):
        for inner, step in nested(named.arg, f".inputs[{position}].arg"):
            if isinstance(inner, str):
                operators.append(inner)
            else:
                graphs.append((inner, step))
    for exact in node.exact_inputs or ():
        operators += operators_in(exact.value) if exact.value is not None else ()
    for position, subgraph in enumerate(node.subgraphs or ()):
        graphs.append((subgraph.graph, f".subgraphs[{position}].graph"))
    targets = map(parse_target, operators)
    kinds = [None if target is None else target.kind for target in targets]
    called = [text for text, kind in zip(operators, kinds, strict=True) if kind is TargetKind.OPERATOR]
    return called, graphs


def _operands(name: str, given: Sequence[tuple[str, _Given]]) -> list[list[str]]:
    """The names in each of the operands that a higher-order operator hands on to its subgraphs, in order.

    An operand may be a list, and is one input then.
    """
    call = CALLS[name]
    count = len(call.parameters)
    if call.rest:
        return [list(_names(value)) for _, value in given[count:]]
    return _names_of_items(given[count - 1][1]) if len(given) == count else []


def _names_of_items(value: _Given) -> list[list[str]]:
    if isinstance(value, types.Value):
        return [list(_names(item)) for item in sequence_items(value) or ()]
    if value.type in _LISTS:
        return [list(_names_of(_LISTS[value.type], item)) for item in value.value]
    return [[] for _ in value.value] if isinstance(value.value, list) else []


def _names(value: _Given) -> Iterator[str]:
    """The names of values in an argument or result, subgraphs left out."""
    for part in _flat(value):
        yield from _names_of(part.type, part.value)


def _flat(value: _Given) -> Iterator[_Given]:
    """What is in containers, or a value itself."""
    inner = _inner(value)
    if inner is None:
        yield value
        return
    for item in inner:
        yield from _flat(item)


def _inner(value: _Given) -> Iterable[_Given] | None:
    """What a container holds; None of what is none."""
    if isinstance(value, types.Argument):
        return value.as_string_to_argument.values() if value.type == "as_string_to_argument" else None
    return [entry.value for entry in value.as_dict] if value.type == "as_dict" else sequence_items(value)


def _names_of(member: str, value: Any) -> Iterator[str]:
    if (name_of := _SINGLES.get(member)) is not None:
        if (name := name_of(value)) is not None:
            yield name
    elif (single := _LISTS.get(member)) is not None:
        for item in value:
            yield from _names_of(single, item)


def _symbolic(value: Any) -> str | None:
    return value.as_name if value.type == "as_name" else None


_SINGLES: Mapping[str, Callable[[Any], str | None]] = {
    "as_tensor": lambda value: value.name,
    "as_custom_obj": lambda value: value.name,
    "as_optional_tensor": lambda value: value.as_tensor.name if value.type == "as_tensor" else None,
    **dict.fromkeys(("as_sym_int", "as_sym_float", "as_sym_bool"), _symbolic),
}
#: Lists of values, with what each item would be.
_LISTS = {
    **{f"{member}s": member for member in _SINGLES if member != "as_custom_obj"},
    "as_nested_tensors": "as_tensors",
}
