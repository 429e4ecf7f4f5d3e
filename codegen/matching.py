"""Which types of two schemas are one type under two names: no file knows the name of a type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .model import Field, ListType, MapType, NamedType, Schema, TypeDef, TypeRef, members, number

_Pairs = list[tuple[TypeDef, TypeDef]]


def spelled(ref: TypeRef, names: Mapping[str, str]) -> str:
    """A type as `schema.yaml` has it, with other names for some of the types in it."""
    match ref:
        case NamedType(name):
            return names.get(name, name)
        case ListType(item):
            return f"list<{spelled(item, names)}>"
        case MapType(value):
            return f"map<string, {spelled(value, names)}>"
        case _:
            return str(ref)


def same_types(before: Schema, after: Schema) -> tuple[_Pairs, _Pairs]:
    """The types that are there on both sides: those that kept their names, and those that have new ones.

    A type that has gone while one of the same shape has come is the same, as what its bytes mean has not
    changed; of several that are alike nobody can tell which one became which. A name of ours that PyTorch
    has adopted is another thing from then on; ours may go on under a new one, and may have grown there.
    """
    both = [name for name in after.types if name in before.types]
    handed = {name for name in both if before.types[name].own and not after.types[name].own}
    gone = [definition for name, definition in before.types.items() if name not in both or name in handed]
    come = [definition for name, definition in after.types.items() if name not in both or name in handed]
    renamed = _of_one_shape(gone, come)
    kept = [(before.types[name], after.types[name]) for name in both if name not in handed]
    renamed += _in_one_place([*kept, *renamed], [d for d in gone if d.name in handed], come)
    found = {old.name for old, _ in renamed} | {new.name for _, new in renamed}
    # What nothing goes on from has changed its owner.
    kept += [(before.types[name], after.types[name]) for name in both if name in handed - found]
    return kept, renamed


def _of_one_shape(gone: list[TypeDef], come: list[TypeDef]) -> _Pairs:
    """The pairs of types that have a shape for themselves on both sides."""
    old, new = _by_shape([gone, come])
    shared = [(old[shape], new[shape]) for shape in old if shape in new]
    return [(before[0], after[0]) for before, after in shared if len(before) == len(after) == 1]


def _by_shape(sides: Sequence[list[TypeDef]]) -> list[dict[str, list[TypeDef]]]:
    """The types of each side by a name for their shape, in which types that they hold count by shape, too.

    First all are taken for alike, then those apart whose members differ, then those that hold such, and so
    on.
    """
    names = [{definition.name: "" for definition in side} for side in sides]
    apart = 1
    while True:
        shapes: dict[tuple[object, ...], str] = {}
        names = [
            {d.name: shapes.setdefault(_shape(d, known), f"<{len(shapes)}>") for d in side}
            for side, known in zip(sides, names, strict=True)
        ]
        if len(shapes) <= apart:
            break
        apart = len(shapes)
    found: list[dict[str, list[TypeDef]]] = []
    for side, known in zip(sides, names, strict=True):
        found.append(defaultdict(list))
        for definition in side:
            found[-1][known[definition.name]].append(definition)
    return found


def _shape(definition: TypeDef, names: Mapping[str, str]) -> tuple[object, ...]:
    """What makes two types the same under different names; what a type says of itself does not count."""
    described = tuple(
        (member.name, number(member), spelled(member.type, names) if isinstance(member, Field) else "")
        for member in members(definition)
    )
    return (definition.kind, definition.own, described)


def _in_one_place(pairs: _Pairs, gone: list[TypeDef], come: list[TypeDef]) -> _Pairs:
    """The pairs of types of which the one holds what the other held, in fields of types that are the same."""
    old, new = ({d.name: d for d in side} for side in (gone, come))
    matched = {definition.name for _, definition in pairs}
    found: _Pairs = []
    while True:
        placed = {
            (one, other)
            for before, after in (*pairs, *found)
            for one, other in _held(before, after)
            if one in old and other in new and other not in matched and _goes_on(old[one], new[other])
        }
        single = [
            (old[one], new[other])
            for one, other in sorted(placed)
            if sum(one == a or other == b for a, b in placed) == 1
        ]
        if not single:
            return found
        found += single
        matched |= {definition.name for _, definition in single}
        old = {name: old[name] for name in old.keys() - {definition.name for definition, _ in single}}


def _held(before: TypeDef, after: TypeDef) -> Iterator[tuple[str, str]]:
    """The types that stand at the same place within fields of one id."""
    fields = {field.id: field for field in before.fields}
    for field in after.fields:
        if field.id in fields:
            yield from _named(fields[field.id].type, field.type)


def _named(old: TypeRef, new: TypeRef) -> Iterable[tuple[str, str]]:
    match old, new:
        case NamedType(before), NamedType(after):
            return [(before, after)]
        case (ListType(before_item), ListType(after_item)) | (MapType(before_item), MapType(after_item)):
            return _named(before_item, after_item)
    return []


def _goes_on(old: TypeDef, new: TypeDef) -> bool:
    """Whether a type has what the other had, and perhaps more."""
    if (old.kind, old.own) != (new.kind, new.own):
        return False
    return {(m.name, number(m)) for m in members(old)} <= {(m.name, number(m)) for m in members(new)}
