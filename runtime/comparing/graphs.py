"""Differences between two graphs in canonical form, their nodes aligned first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..generated import types
from .alignment import Side, align
from .canonical import Names
from .naming import TABLES, Call, given_values, named_values, rename
from .parts import Difference, added, changed, compare, compare_tables, describe, removed, same

_Held = tuple[types.GraphConstant, types.GraphConstant]


def pair_graphs(
    a: types.Graph,
    names_a: Names,
    b: types.Graph,
    names_b: Names,
    inputs: Mapping[str, str],
    outputs: Sequence[tuple[str, str]],
) -> GraphPair:
    """Aligns two graphs and renames the values of both, so that equal values have equal names.

    Values are called what the first graph called them; those that only the second has, what that called them.

    Args:
        a: One graph, in canonical form.
        names_a: What its names were.
        b: The other.
        names_b: What its names were.
        inputs: Input of `a` -> input of `b`, in canonical names.
        outputs: Pairs of values that are the same output, in canonical names.
    """
    side_a, side_b = Side(a, names_a), Side(b, names_b)
    align(side_a, side_b, inputs, outputs)
    shown_a = {canonical: old for old, canonical in names_a.values.items()}
    shown_b = _shown_names_of_b(side_a, side_b, inputs, shown_a)
    metas_a, metas_b = _metas(a, shown_a), _metas(b, shown_b)
    _rename_values(side_a, shown_a)
    _rename_values(side_b, shown_b)
    return GraphPair(side_a, shown_a, metas_a, side_b, shown_b, metas_b)


def _shown_names_of_b(
    a: Side, b: Side, inputs: Mapping[str, str], shown_a: Mapping[str, str]
) -> dict[str, str]:
    shown = {other: shown_a[one] for one, other in inputs.items()}
    for call, match in zip(a.calls, a.matches, strict=True):
        if match is not None:
            for one, other in zip(call.definitions, b.calls[match].definitions, strict=False):
                shown[other.name] = shown_a[one.name]
    taken = set(shown_a.values())
    for name, canonical in b.names.values.items():
        if canonical not in shown:
            while name in taken:
                name += "'"
            taken.add(name)
            shown[canonical] = name
    return shown


def _rename_values(side: Side, names: Mapping[str, str]) -> None:
    rename(given_values(side.graph), names)
    rename(named_values(side.graph.outputs), names)
    for call in side.calls:
        rename([*call.uses, *call.definitions], names)


class GraphPair:
    """Two aligned graphs whose values have the same names where they are the same values.

    Args:
        a: One graph.
        names_a: Canonical name of a value of it -> its name now.
        metas_a: What its tables say of its values, by their names now.
        b: The other.
        names_b: Likewise.
        metas_b: Likewise.
    """

    def __init__(
        self,
        a: Side,
        names_a: Mapping[str, str],
        metas_a: Mapping[str, object],
        b: Side,
        names_b: Mapping[str, str],
        metas_b: Mapping[str, object],
    ) -> None:
        self._a, self._b = a, b
        self.names_a, self.names_b = names_a, names_b
        self._metas_a, self._metas_b = metas_a, metas_b

    def differences(self, path: str) -> Iterator[Difference]:
        """What differs in nodes and values."""
        for index, call in enumerate(self._a.calls):
            match = self._a.matches[index]
            place = f"{path}.nodes[{self._node_name(self._a, index)!r}]"
            if match is None:
                yield removed(place, _describe_call(call))
            else:
                yield from self._compare_calls(place, call, self._b.calls[match])
        for index, call in enumerate(self._b.calls):
            if self._b.matches[index] is None:
                yield added(f"{path}.nodes[{self._node_name(self._b, index)!r}]", _describe_call(call))

    def input_differences(self, path: str, name: str) -> Iterator[Difference]:
        """What differs in the properties of a value that both graphs have."""
        a, b = self._metas_a.get(name), self._metas_b.get(name)
        if not same(a, b):
            yield from compare(path, a, b)

    def order_difference(self, path: str) -> Iterator[Difference]:
        """Where the order differs, for graphs that do not differ in anything else."""
        for index, (one, other) in enumerate(zip(self._a.calls, self._b.calls, strict=False)):
            if self._a.matches[index] != index:
                yield changed(f"{path}.nodes, in their order", _describe_call(one), _describe_call(other))
                return

    def _node_name(self, side: Side, index: int) -> str:
        definitions = side.calls[index].definitions
        name = side.names.nodes[index]
        if name is not None:
            return name
        return definitions[0].name if definitions else f"{side.calls[index].node.target} without a name"

    def _compare_calls(self, path: str, a: Call, b: Call) -> Iterator[Difference]:
        if a.node.target != b.node.target:
            yield changed(f"{path}.target", a.node.target, b.node.target)
        yield from self._compare_inputs(path, a.node.inputs, b.node.inputs)
        for field in a.node.FIELD_IDS:
            if field not in ("target", "inputs", "outputs"):
                yield from compare(f"{path}.{field}", getattr(a.node, field), getattr(b.node, field))
        if not same(a.node.outputs, b.node.outputs):
            yield changed(f"{path}.outputs", _kinds(a.node.outputs), _kinds(b.node.outputs))
        for position, (one, other) in enumerate(zip(a.definitions, b.definitions, strict=False)):
            suffix = f".outputs[{position}]" if len(a.definitions) > 1 else ".output"
            yield from compare(path + suffix, self._metas_a.get(one.name), self._metas_b.get(other.name))

    def _compare_inputs(
        self, path: str, a: Sequence[types.NamedArgument], b: Sequence[types.NamedArgument]
    ) -> Iterator[Difference]:
        table_a, table_b = _by_name(a), _by_name(b)
        if list(table_a) != list(table_b) and table_a.keys() == table_b.keys():
            yield changed(f"{path}.inputs, in their order", list(table_a), list(table_b))
        for key in [*table_a, *(key for key in table_b if key not in table_a)]:
            place = f"{path}.inputs[{key!r}]"
            if key not in table_b:
                yield removed(place, table_a[key].arg)
            elif key not in table_a:
                yield added(place, table_b[key].arg)
            else:
                yield from self._compare_arguments(place, table_a[key].arg, table_b[key].arg)
                yield from compare(f"{place}.kind", table_a[key].kind, table_b[key].kind)

    def _compare_arguments(self, path: str, a: types.Argument, b: types.Argument) -> Iterator[Difference]:
        if a.type == b.type == "as_graph":
            yield from self._compare_subgraphs(path, a.as_graph, b.as_graph)
        elif a.type == b.type == "as_string_to_argument":
            yield from compare_tables(
                path, a.as_string_to_argument, b.as_string_to_argument, self._compare_arguments
            )
        elif not same(a, b):
            one, other = describe(a), describe(b)
            if one == other:  # such as 1 and 1 that are an int and a bool
                kinds = (argument.type.removeprefix("as_") for argument in (a, b))
                one, other = (f"{one} ({kind})" for kind in kinds)
            yield changed(path, one, other)

    def _compare_subgraphs(
        self, path: str, a: types.GraphArgument, b: types.GraphArgument
    ) -> Iterator[Difference]:
        names_a, names_b = self._a.inner[id(a)][1], self._b.inner[id(b)][1]
        values = [[value.name for value in named_values(graph.inputs)] for graph in (a.graph, b.graph)]
        held = _held_pairs(a.graph, b.graph)
        pair = pair_graphs(
            a.graph,
            names_a,
            b.graph,
            names_b,
            {**dict(zip(*values, strict=False)), **{one.name: other.name for one, other in held}},
            output_pairs(a.graph, b.graph),
        )
        found = [
            *pair.differences(path),
            *_compare_held(f"{path}.constants", pair, held, a.graph, b.graph),
            *_compare_ends(f"{path}.inputs", pair, a.graph.inputs, b.graph.inputs),
            *_compare_ends(f"{path}.outputs", pair, a.graph.outputs, b.graph.outputs),
            *compare(
                f"{path}.is_single_tensor_return",
                a.graph.is_single_tensor_return,
                b.graph.is_single_tensor_return,
            ),
        ]
        yield from found or pair.order_difference(path)


def output_pairs(a: types.Graph, b: types.Graph) -> list[tuple[str, str]]:
    """The values of two graphs that stand at the same place of their outputs."""
    pairs: list[tuple[str, str]] = []
    for one, other in zip(a.outputs, b.outputs, strict=False):
        names = [[value.name for value in named_values(argument)] for argument in (one, other)]
        pairs.extend(zip(*names, strict=False))
    return pairs


def _held_pairs(a: types.Graph, b: types.Graph) -> list[_Held]:
    """The tensors that two graphs hold: those of equal bytes, then the others in their order."""
    left, right = list(a.constants or ()), list(b.constants or ())
    pairs: list[_Held] = []
    for equal in (True, False):
        for one in list(left):
            match = next((other for other in right if one.data == other.data or not equal), None)
            if match is not None:
                left.remove(one)
                right.remove(match)
                pairs.append((one, match))
    return pairs


def _compare_held(
    path: str, pair: GraphPair, held: Sequence[_Held], a: types.Graph, b: types.Graph
) -> Iterator[Difference]:
    """Differences of the tensors that two subgraphs hold."""
    for one, other in held:
        place = f"{path}[{one.name!r}]"
        yield from pair.input_differences(place, one.name)
        for field in ("data", "requires_grad"):
            yield from compare(f"{place}.{field}", getattr(one, field), getattr(other, field))
    paired = {id(constant) for both in held for constant in both}
    for graph, say in ((a, removed), (b, added)):
        for constant in graph.constants or ():
            if id(constant) not in paired:
                yield say(f"{path}[{constant.name!r}]", constant.data)


def _compare_ends(
    path: str, pair: GraphPair, a: Sequence[types.Argument], b: Sequence[types.Argument]
) -> Iterator[Difference]:
    """Differences of the inputs, or of the outputs, of two subgraphs."""
    if len(a) != len(b):
        yield changed(path, list(a), list(b))
        return
    for index, (one, other) in enumerate(zip(a, b, strict=True)):
        yield from compare(f"{path}[{index}]", one, other)
        if path.endswith(".inputs"):
            for value in named_values(one):
                yield from pair.input_differences(f"{path}[{index}]", value.name)


def _metas(graph: types.Graph, names: Mapping[str, str]) -> dict[str, object]:
    metas: dict[str, object] = {}
    for table in TABLES:
        for name, meta in getattr(graph, table).items():
            if isinstance(meta, types.CustomObjArgument):
                rename(named_values(meta), names)
            metas[names.get(name, name)] = meta
    return metas


def _by_name(inputs: Sequence[types.NamedArgument]) -> dict[str | int, types.NamedArgument]:
    """Arguments by name, or by position where they have none of their own."""
    table: dict[str | int, types.NamedArgument] = {}
    for position, named in enumerate(inputs):
        key = position if not named.name or named.name in table else named.name
        table[key] = named
    return table


def _kinds(outputs: Sequence[types.Argument]) -> str:
    return f"[{', '.join(output.type.removeprefix('as_') for output in outputs)}]"


def _describe_call(call: Call) -> str:
    arguments = (
        f"{named.name}={describe(named.arg)}" if named.name else describe(named.arg)
        for named in call.node.inputs
    )
    return f"{call.node.target}({', '.join(arguments)})"
