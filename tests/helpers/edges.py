"""Which fields, members and edge values of the schema a set of trees has, and which it lacks."""

from __future__ import annotations

import math
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from pt2wire.codegen.model import (
    Kind,
    ListType,
    MapType,
    NamedType,
    Primitive,
    PrimitiveType,
    TypeDef,
    TypeRef,
)
from pt2wire.generated import types

from .cpp import schema

#: What every place of a type must have held.
_NUMBERS = {str(value) for value in (0, 1, -1, 2**63 - 1, -(2**63))}
_DOUBLES = {
    struct.pack(">d", value).hex() for value in (0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1.5)
}
_TEXTS = {"empty", "of 128 bytes or more", "beyond 16 bits", "with quotes and controls"}
_BINARIES = {"empty", "of 128 bytes or more", "that are no text"}
_LISTS = {"of 0", "of 1", "of 14", "of 15 or more"}  # TCompact writes a size apart from 15 on
_MAPS = {"of 0", "of 1", "of 15 or more"}

#: What must be somewhere, as every place would take much room: text, list and map in sizes of two bytes.
_SOMEWHERE = {"text of 20000 bytes", "list of 300", "map of 300"}


def lacking(trees: Iterable[Any]) -> list[str]:
    """What no tree has: a line for each type, field, member, enum value or edge value."""
    seen: defaultdict[str, set[str]] = defaultdict(set)
    for tree in trees:
        _note_tree(seen, tree)
    needed = {"anywhere": _SOMEWHERE}
    for definition in schema().ordered:
        if definition.kind is not Kind.ENUM:
            needed |= dict(_needed(definition))
    return sorted(
        f"{place}: {what}" for place, wanted in needed.items() for what in wanted - seen.get(place, set())
    )


def _needed(definition: TypeDef) -> Iterator[tuple[str, set[str]]]:
    for field in definition.fields:
        place = f"{definition.name}.{field.name}"
        optional = field.optional and definition.kind is Kind.STRUCT
        yield place, {"present"} | ({"absent"} if optional else set())
        yield from _needed_values(f"{place}: value", field.type)


def _needed_values(place: str, type_: TypeRef) -> Iterator[tuple[str, set[str]]]:
    match type_:
        case PrimitiveType(Primitive.BOOL):
            yield place, {"False", "True"}
        case PrimitiveType(Primitive.I64):
            yield place, _NUMBERS
        case PrimitiveType(Primitive.DOUBLE):
            yield place, _DOUBLES
        case PrimitiveType(Primitive.BINARY):
            yield place, _BINARIES
        case PrimitiveType():
            yield place, _TEXTS
        case ListType(item):
            yield place, _LISTS
            yield from _needed_values(f"{place}, item", item)
        case MapType(item):
            yield place, _MAPS
            yield from _needed_values(f"{place}, item", item)
        case NamedType(name, Kind.ENUM):
            yield place, {value.name for value in schema().types[name].values}


def _note_tree(seen: dict[str, set[str]], tree: Any) -> None:
    definition = schema().types[type(tree).__name__]
    for field in definition.fields:
        place = f"{definition.name}.{field.name}"
        if isinstance(tree, types.Union):
            value = tree.value if tree.type == field.name else None
        else:
            value = getattr(tree, field.name)
        seen[place].add("absent" if value is None else "present")
        if value is not None:
            _note(seen, f"{place}: value", field.type, value)


def _note(seen: dict[str, set[str]], place: str, type_: TypeRef, value: Any) -> None:
    match type_:
        case PrimitiveType(Primitive.DOUBLE):
            seen[place].add(struct.pack(">d", value).hex())
        case PrimitiveType(Primitive.STRING):
            seen[place] |= _kinds_of_text(value)
            seen["anywhere"].add(f"text of {len(value)} bytes")
        case PrimitiveType(Primitive.BINARY):
            seen[place] |= _kinds_of_bytes(value)
        case PrimitiveType():
            seen[place].add(str(value))
        case ListType(item):
            seen[place].add(f"of {len(value)}" if len(value) < 15 else "of 15 or more")
            seen["anywhere"].add(f"list of {len(value)}")
            for element in value:
                _note(seen, f"{place}, item", item, element)
        case MapType(item):
            seen[place].add(f"of {len(value)}" if len(value) < 15 else "of 15 or more")
            seen["anywhere"].add(f"map of {len(value)}")
            for element in value.values():
                _note(seen, f"{place}, item", item, element)
        case NamedType(_, Kind.ENUM):
            seen[place].add(value.name)
        case _:
            _note_tree(seen, value)


def _kinds_of_bytes(data: bytes) -> set[str]:
    kinds = {
        "empty": not data,
        "of 128 bytes or more": len(data) >= 128,
        "that are no text": b"\xff" in data,
    }
    return {kind for kind, holds in kinds.items() if holds}


def _kinds_of_text(text: str) -> set[str]:
    kinds = {
        "empty": not text,
        "of 128 bytes or more": len(text.encode()) >= 128,
        "beyond 16 bits": any(ord(c) > 0xFFFF for c in text),
        "with quotes and controls": {'"', "\\", "\n", "\0"} <= set(text),
    }
    return {kind for kind, holds in kinds.items() if holds}
