"""The canonical order of the nodes of a graph.

Nodes come in an order in which each value is made before it is used; among those that could be next, the one
whose target and arguments come first does, as in PyTorch's canonical form. Where that leaves several,
PyTorch takes the one that came first before, so that its form depends on the order it was given. Here the
next is the one met first on a walk from the outputs backwards: outputs and arguments have an order, so such a
walk meets every node that matters in one order only.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ..errors import DeserializeError
from ..generated import types
from .effects import effects_of
from .encoding import encoded
from .naming import TABLES, Call, Named, content, used_names


def canonical_order(
    graph: types.Graph,
    calls: Sequence[Call],
    inputs: Sequence[Named],
    outputs: Sequence[Named],
    path: str,
    together: Collection[str] = (),
) -> list[int]:
    """The canonical order of a graph's nodes.

    Args:
        graph: The graph. The names of subgraphs and of nodes, and all notes, are gone.
        calls: Its nodes.
        inputs: The values among its inputs, in canonical order.
        outputs: The values among its outputs, in canonical order.
        path: The graph in messages.
        together: Inputs that may lie in one memory.

    Returns:
        The positions in `calls`, in canonical order.

    Raises:
        DeserializeError: A value is used before it is defined, or defined twice.
    """
    flow = _Flow(graph, calls, inputs, outputs, path, together)
    numbers = _Numbers(flow).numbers
    ranks = {value.name: rank for rank, value in enumerate(inputs)}

    def candidate(index: int) -> _Candidate:
        node = calls[index].node
        arguments = [
            (named.name, [-1 if name is None else ranks.get(name, -1) for name in used_names(named.arg)])
            for named in node.inputs
        ]
        return node.target, arguments, _Tie(node, numbers[index]), index

    users: list[list[int]] = [[] for _ in calls]
    waiting = [0] * len(calls)
    for earlier, later in flow.dependencies():
        users[earlier].append(later)
        waiting[later] += 1
    ready = [candidate(index) for index, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        index = heapq.heappop(ready)[3]
        order.append(index)
        for value in calls[index].definitions:
            ranks[value.name] = len(ranks)
        for user in users[index]:
            waiting[user] -= 1
            if waiting[user] == 0:
                heapq.heappush(ready, candidate(user))
    return order


class _Tie:
    """Orders nodes that PyTorch takes for equal: by their constants, then by their numbers.

    The constants matter little, but usually they grow from one node to the next, and then the order is that
    in which PyTorch leaves them.
    """

    __slots__ = ("_key", "_node", "_number")

    def __init__(self, node: types.Node, number: int) -> None:
        self._node = node
        self._number = number
        self._key: tuple[list[tuple[str, list[int], str]], int] | None = None

    def __eq__(self, other: object) -> bool:
        return self is other

    def __lt__(self, other: _Tie) -> bool:
        return self._made_key() < other._made_key()

    def _made_key(self) -> tuple[list[tuple[str, list[int], str]], int]:
        if self._key is None:  # most nodes never need one
            self._key = [_constants(named.arg) for named in self._node.inputs], self._number
        return self._key


_Candidate = tuple[str, list[tuple[str, list[int]]], _Tie, int]


def _constants(argument: types.Argument) -> tuple[str, list[int], str]:
    """The constants in an argument, as far as they have an order."""
    match argument.value:
        case bool() | int() as number:
            return argument.type, [number], ""
        case str() as text:
            return argument.type, [], text
        case [*items]:
            return argument.type, [item for item in items if isinstance(item, int)], ""
    return argument.type, [], ""


class _Flow:
    """Which node makes which value, and which nodes use it.

    Attributes:
        inputs: Input -> its position.
        sources: Per node, for each value that it uses, the node that makes it and which of its values that
            is; None for an input, and for a constant of the program.
        results: Likewise for the outputs.
    """

    def __init__(
        self,
        graph: types.Graph,
        calls: Sequence[Call],
        inputs: Sequence[Named],
        outputs: Sequence[Named],
        path: str,
        together: Collection[str],
    ) -> None:
        self.graph = graph
        self.calls = calls
        self.inputs: dict[str, int] = {}
        self.makers: dict[str, tuple[int, int]] = {}
        self._path = path
        self._together = together
        for position, value in enumerate(inputs):
            self._check_new(value, "inputs")
            self.inputs[value.name] = position
        self.sources: list[list[tuple[int, int] | None]] = []
        for index, call in enumerate(calls):
            self.sources.append([self._source(value, f"nodes[{index}]") for value in call.uses])
            for position, value in enumerate(call.definitions):
                self._check_new(value, f"nodes[{index}]")
                self.makers[value.name] = (index, position)
        self.results = [self._source(value, "outputs") for value in outputs]

    def _check_new(self, value: Named, where: str) -> None:
        if value.name in self.inputs or value.name in self.makers:
            raise DeserializeError(
                f"expected a name that is defined once, found {value.name[:80]!r} again",
                path=f"{self._path}.{where}",
            )

    def _source(self, value: Named, where: str) -> tuple[int, int] | None:
        source = self.makers.get(value.name)
        known = source is not None or value.name in self.inputs
        if not known and not isinstance(value.holder, types.CustomObjArgument):
            raise DeserializeError(
                f"expected a value that is defined before, found {value.name[:80]!r}",
                path=f"{self._path}.{where}",
                hint="`pt2wire.validate` lists everything that is wrong with a tree",
            )
        return source

    def dependencies(self) -> Iterator[tuple[int, int]]:
        """Which node must come before which other one; the same pair more than once."""
        for index, sources in enumerate(self.sources):
            yield from ((source[0], index) for source in sources if source is not None)
        yield from effects_of(self.graph, self.calls, self._together)


class _Numbers:
    """Numbers nodes so that equal graphs have equal numbers, however their nodes are named and ordered.

    First come the nodes that an output needs, in the order in which a walk from the outputs meets them. Those
    that none needs (checks, changes in place) follow, by walks from the last nodes of their kind. These have
    no order of their own, so they are sorted by a hash of everything that they need and that needs what they
    need. Nodes left equal by that are interchangeable, or part of an unneeded subgraph with symmetries that
    no operator of PyTorch makes; they keep their order.
    """

    def __init__(self, flow: _Flow) -> None:
        self._flow = flow
        self.numbers = [-1] * len(flow.calls)
        self._next = 0
        self._walk(source[0] for source in flow.results if source is not None)
        unneeded = [index for index, number in enumerate(self.numbers) if number < 0]
        if unneeded:
            self._walk(self._sorted_last(unneeded))

    def _walk(self, roots: Iterable[int]) -> None:
        for root in roots:
            pending = [root]
            while pending:
                index = pending.pop()
                if self.numbers[index] < 0:
                    self.numbers[index] = self._next
                    self._next += 1
                    sources = reversed(self._flow.sources[index])
                    pending.extend(source[0] for source in sources if source is not None)

    def _sorted_last(self, unneeded: Sequence[int]) -> list[int]:
        """The unneeded nodes that no other node needs, sorted."""
        flow = self._flow
        hashes: dict[int, bytes] = {}
        for index in unneeded:
            hashes[index] = self._content(index, hashes)
        users: dict[int, list[bytes]] = {index: [] for index in unneeded}
        for index in reversed(unneeded):
            hashes[index] = _hash(hashes[index], *sorted(users[index]))
            for position, source in enumerate(flow.sources[index]):
                if source is not None and source[0] in users:
                    users[source[0]].append(_hash(hashes[index], b"%d %d" % (position, source[1])))
        for index in unneeded:
            needed = (hashes[source[0]] for source in flow.sources[index] if source and source[0] in hashes)
            hashes[index] = _hash(hashes[index], *needed)
        return sorted((index for index in unneeded if not users[index]), key=hashes.__getitem__)

    def _content(self, index: int, hashes: Mapping[int, bytes]) -> bytes:
        """A hash of a node and of all that it needs, without their names."""
        flow, call = self._flow, self._flow.calls[index]
        tables = [getattr(flow.graph, table) for table in TABLES]
        described = [
            encoded(table[value.name])
            for value in call.definitions
            for table in tables
            if value.name in table
        ]

        def name_of(name: str) -> str:
            source = flow.makers.get(name)
            if source is None:
                position = flow.inputs.get(name)
                return f"constant {name}" if position is None else f"input {position}"
            known = hashes[source[0]].hex() if source[0] in hashes else self.numbers[source[0]]
            return f"node {known} {source[1]}"

        return _hash(content(call, name_of), *described)


def _hash(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "little") + part for part in parts)).digest()
