"""The order in which languages with value semantics want the types: what a type holds stands before it."""

from __future__ import annotations

from collections.abc import Iterator

from .model import ListType, MapType, NamedType, TypeDef, TypeRef


def by_value_order(types: dict[str, TypeDef]) -> tuple[TypeDef, ...]:
    """Sorts types so that a field's struct or union always stands before its holder.

    Types inside lists and maps stand before their users too, except where types contain each other through
    containers: there a map's values stand before the map if they can, as Apache's C++ cannot compile it
    otherwise; then the type with the fewest forward references goes first. Ties keep the file's order.
    Types on a by-value cycle, which no language with value semantics can express, come last.
    """
    direct = {name: set(_direct(definition)) for name, definition in types.items()}
    contained = {name: set(_contained(definition)) - {name} for name, definition in types.items()}
    whole = _whole(types)
    # A type may go before one that it contains only if that one also leads back to it, in the same way.
    before = {name: set(held) for name, held in direct.items()}
    for reached in (_reached(whole), reached_types(types)):
        for name, found in reached.items():
            before[name] |= {other for other in found if name not in reached[other]}
    awaited, forward = _Counts(before), _Counts(contained)
    waiting = dict.fromkeys(types)
    ordered = []
    while waiting:
        ready = [name for name in waiting if not awaited.left[name]]
        chosen = min(ready or waiting, key=forward.left.__getitem__)
        for counts in (awaited, forward):
            counts.remove(chosen)
        del waiting[chosen]
        ordered.append(types[chosen])
    return tuple(ordered)


class _Counts:
    """How many of the types that each type needs are not there yet: `left`."""

    def __init__(self, needs: dict[str, set[str]]) -> None:
        self.left = {name: len(needed) for name, needed in needs.items()}
        self._users: dict[str, list[str]] = {name: [] for name in needs}
        for name, needed in needs.items():
            for other in needed:
                self._users[other].append(name)

    def remove(self, name: str) -> None:
        """Notes that a type is there now."""
        for user in self._users[name]:
            self.left[user] -= 1


def reached_types(types: dict[str, TypeDef]) -> dict[str, set[str]]:
    """For each type, all types that its values can hold at any depth: itself too, if it is recursive."""
    return _reached(
        {name: {*_direct(definition), *_contained(definition)} for name, definition in types.items()}
    )


def _reached(uses: dict[str, set[str]]) -> dict[str, set[str]]:
    reached = {}
    for start in uses:
        seen: set[str] = set()
        queue = [start]
        while queue:
            new = uses[queue.pop()] - seen
            seen |= new
            queue += new
        reached[start] = seen
    return reached


def by_value_cycles(types: dict[str, TypeDef]) -> list[tuple[str, ...]]:
    """Chains of types that hold each other by value, so that none of them could ever end."""
    return _cycles({name: list(_direct(definition)) for name, definition in types.items()})


def map_cycles(types: dict[str, TypeDef]) -> list[tuple[str, ...]]:
    """Chains of types of which each holds the next by value or in a map; the first does in a map.

    In Apache's C++ each of them would have to stand before the other, as maps there want the whole type. One
    that is in a map of its own is whole by the time that this matters.
    """
    whole = {name: sorted(held - {name}) for name, held in _whole(types).items()}
    cycles = []
    for chain in _cycles(whole):
        turns = [(*chain[turn:], *chain[:turn]) for turn in range(len(chain))]
        cycles += [turn for turn in turns if turn[1] not in _direct(types[turn[0]])][:1]
    return cycles


def _cycles(uses: dict[str, list[str]]) -> list[tuple[str, ...]]:
    cycles: dict[frozenset[str], tuple[str, ...]] = {}
    for start in uses:
        chain = _path_back(start, uses)
        if chain:
            cycles.setdefault(frozenset(chain), chain)
    return list(cycles.values())


def _path_back(start: str, direct: dict[str, list[str]]) -> tuple[str, ...]:
    """The shortest way from a type to itself along what each uses, or ()."""
    paths: dict[str, tuple[str, ...]] = {name: (start, name) for name in direct[start]}
    queue = list(paths)
    while queue:
        name = queue.pop(0)
        if name == start:
            return paths[name][:-1]
        for following in direct[name]:
            if following not in paths:
                paths[following] = (*paths[name], following)
                queue.append(following)
    return ()


def _direct(definition: TypeDef) -> Iterator[str]:
    """The structs and unions that a type holds by value; an optional field does too, in C++."""
    for field in definition.fields:
        if isinstance(field.type, NamedType):
            yield field.type.name


def _contained(definition: TypeDef) -> Iterator[str]:
    for field in definition.fields:
        if isinstance(field.type, (ListType, MapType)):
            yield from named_types(field.type)


def _whole(types: dict[str, TypeDef]) -> dict[str, set[str]]:
    """For each type, those that have to be whole where it is defined in Apache's C++."""
    return {
        name: {*_direct(definition), *filter(None, (mapped_type(field.type) for field in definition.fields))}
        for name, definition in types.items()
    }


def mapped_type(ref: TypeRef) -> str | None:
    """The type whose values are those of a map, as in `list<map<string, T>>`, or None.

    Example:
        >>> from pt2wire.codegen.model import Kind
        >>> part = NamedType("T", Kind.STRUCT)
        >>> mapped_type(ListType(MapType(part))), mapped_type(MapType(ListType(part)))
        ('T', None)
    """
    match ref:
        case MapType(NamedType(name)):
            return name
        case MapType(inner) | ListType(inner):
            return mapped_type(inner)
    return None


def named_types(ref: TypeRef) -> Iterator[str]:
    """The names of the enums, structs and unions that a type mentions."""
    if isinstance(ref, NamedType):
        yield ref.name
    elif isinstance(ref, ListType):
        yield from named_types(ref.item)
    elif isinstance(ref, MapType):
        yield from named_types(ref.value)
