"""Which node of one graph is which of another, where the two differ."""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from ..generated import types
from .canonical import Names
from .naming import Call, calls_of, content, given_values


class Side:
    """One of the two graphs, in canonical form.

    Attributes:
        graph: The graph.
        names: What its names were before.
        inputs: The values among its inputs, and the tensors that it holds.
        calls: Its nodes.
        makers: Value -> the node that makes it, and which of that node's values it is.
        users: Per node, the nodes that use its values, and as which of their own.
        inner: By identity of the argument, the old name and names of each subgraph. In the tree, the names
            of subgraphs are gone.
        matches: Per node, the node of the other side, once there is one.
    """

    def __init__(self, graph: types.Graph, names: Names) -> None:
        self.graph = graph
        self.names = names
        self.inputs = {value.name for value in given_values(graph)}
        self.calls: Sequence[Call] = calls_of(graph)
        self.makers: dict[str, tuple[int, int]] = {}
        self.users: list[list[tuple[int, int]]] = [[] for _ in self.calls]
        self.matches: list[int | None] = [None] * len(self.calls)
        self.inner: dict[int, tuple[str, Names]] = {}
        for index, call in enumerate(self.calls):
            for position, value in enumerate(call.uses):
                if value.name in self.makers:
                    self.users[self.makers[value.name][0]].append((index, position))
            for position, value in enumerate(call.definitions):
                self.makers[value.name] = (index, position)
            for argument in call.subgraphs:
                self.inner[id(argument)] = names.subgraphs[argument.name]
                argument.name = ""

    def source(self, index: int, position: int) -> tuple[int, int] | None:
        """The node that makes a value used by another, and which of its values that is."""
        return self.makers.get(self.calls[index].uses[position].name)


def align(a: Side, b: Side, inputs: Mapping[str, str], outputs: Iterable[tuple[str, str]]) -> None:
    """Matches the nodes of two graphs: fills `matches` of both sides.

    Nodes that compute the same of the same inputs are the same. What depends on a difference is followed from
    there: from the outputs backwards and from known nodes to their users, first among nodes that call the
    same, then, for nodes whose target has changed, among any. Only then names count.

    Args:
        a: One graph.
        b: The other.
        inputs: Input of `a` -> input of `b`.
        outputs: Pairs of values that are the same output.
    """
    _Alignment(a, b, inputs).run(outputs)


class _Alignment:
    """What is known while two graphs are aligned."""

    def __init__(self, a: Side, b: Side, inputs: Mapping[str, str]) -> None:
        self._a = a
        self._b = b
        self._inputs = dict(inputs)
        self._fresh: deque[tuple[int, int]] = deque()

    def run(self, outputs: Iterable[tuple[str, str]]) -> None:
        equal = self._match_equal()
        makers_a, makers_b = self._a.makers, self._b.makers
        results = [(makers_a.get(one), makers_b.get(other)) for one, other in outputs]
        for same_target in (True, False):
            if not same_target:
                self._match_groups(*map(enumerate, equal), different_sizes=True)
            known = [(i, j) for i, j in enumerate(self._a.matches) if j is not None]
            self._fresh.extend(known)
            for one, other in results:
                self._offer(one, other, same_target)
            self._follow(same_target)
            self._match_by_sources(same_target)
            self._follow(same_target)
        self._match_named()
        self._follow(False)

    def _match(self, i: int, j: int) -> None:
        if self._a.matches[i] is None and self._b.matches[j] is None:
            self._a.matches[i], self._b.matches[j] = j, i
            self._fresh.append((i, j))

    def _match_equal(self) -> tuple[list[bytes], list[bytes]]:
        """Matches what is computed in the same way from the inputs on.

        Returns:
            For each node of each side what it was matched by. Where the sides have different numbers of nodes
            that compute the same, it is still open who is who.
        """
        taken = set(self._inputs.values())

        def input_of_a(name: str) -> str:
            return self._inputs.get(name) or (f"only a {name}" if name in self._a.inputs else name)

        def input_of_b(name: str) -> str:
            return f"only b {name}" if name in self._b.inputs and name not in taken else name

        hashes_a, hashes_b = _hashes(self._a, input_of_a), _hashes(self._b, input_of_b)
        self._match_groups(enumerate(hashes_a), enumerate(hashes_b))
        return hashes_a, hashes_b

    def _match_by_sources(self, same_target: bool) -> None:
        """Matches what uses the same values, whatever its constants: nodes that no output needs."""

        def keys(side: Side) -> list[tuple[int, Hashable]]:
            name_of = self._known(side)
            return [
                (
                    index,
                    (call.node.target if same_target else None, *(name_of(use.name) for use in call.uses)),
                )
                for index, call in enumerate(side.calls)
                if side.matches[index] is None and (call.uses or same_target)
            ]

        self._match_groups(keys(self._a), keys(self._b))

    def _match_named(self) -> None:
        """Matches what was called the same and calls the same."""

        def keys(side: Side) -> list[tuple[int, Hashable]]:
            return [
                (index, (name, side.calls[index].node.target))
                for index, name in enumerate(side.names.nodes)
                if name is not None and side.matches[index] is None
            ]

        self._match_groups(keys(self._a), keys(self._b))

    def _match_groups(
        self,
        a: Iterable[tuple[int, Hashable]],
        b: Iterable[tuple[int, Hashable]],
        *,
        different_sizes: bool = False,
    ) -> None:
        """Matches nodes with equal keys, in order. Groups of different sizes leave open who is who."""
        groups: dict[Hashable, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for index, key in a:
            groups[key][0].append(index)
        for index, key in b:
            groups[key][1].append(index)
        for one, other in groups.values():
            if len(one) == len(other) or different_sizes:
                for i, j in zip(one, other, strict=False):
                    self._match(i, j)

    def _follow(self, same_target: bool) -> None:
        """Matches the neighbours of nodes that were just matched."""
        while self._fresh:
            i, j = self._fresh.popleft()
            if len(self._a.calls[i].uses) == len(self._b.calls[j].uses):
                for position in range(len(self._a.calls[i].uses)):
                    self._offer(self._a.source(i, position), self._b.source(j, position), same_target)
            users_a = self._open_users(self._a, i)
            users_b = self._open_users(self._b, j)
            if users_a and users_b:
                for loose in (False, True):
                    self._match_groups(
                        self._keys(self._a, users_a, loose, same_target),
                        self._keys(self._b, users_b, loose, same_target),
                    )

    def _offer(self, one: tuple[int, int] | None, other: tuple[int, int] | None, same_target: bool) -> None:
        if one is None or other is None or one[1] != other[1]:
            return
        calls = self._a.calls[one[0]].node.target, self._b.calls[other[0]].node.target
        if calls[0] == calls[1] or not same_target:
            self._match(one[0], other[0])

    def _open_users(self, side: Side, index: int) -> list[tuple[int, int]]:
        return [(user, position) for user, position in side.users[index] if side.matches[user] is None]

    def _keys(
        self, side: Side, users: Sequence[tuple[int, int]], loose: bool, same_target: bool
    ) -> list[tuple[int, Hashable]]:
        """What must be equal of users of one value: their content as far as it is known, or little."""
        open_users = [(user, position) for user, position in users if side.matches[user] is None]
        if not loose:
            return [(user, content(side.calls[user], self._known(side))) for user, _ in open_users]
        return [
            (user, (position, side.calls[user].node.target if same_target else None))
            for user, position in open_users
        ]

    def _known(self, side: Side) -> Callable[[str], str]:
        """Names of values that are equal on both sides where it is known that the values are."""

        def name_of(name: str) -> str:
            source = side.makers.get(name)
            if source is None:
                return self._inputs.get(name, name) if side is self._a else name
            match = side.matches[source[0]]
            node = source[0] if side is self._b else match
            return "unknown" if match is None else f"node {node} {source[1]}"

        return name_of


def _hashes(side: Side, input_name: Callable[[str], str]) -> list[bytes]:
    """For each node a hash of how its results are computed from the inputs."""
    hashes: list[bytes] = []

    def name_of(name: str) -> str:
        source = side.makers.get(name)
        return input_name(name) if source is None else f"{hashes[source[0]].hex()} {source[1]}"

    for call in side.calls:
        hashes.append(hashlib.sha256(content(call, name_of)).digest())
    return hashes
