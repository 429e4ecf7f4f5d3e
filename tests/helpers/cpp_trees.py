"""Trees that together hold every struct, union member, enum value and edge value of the schema."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from pt2wire.codegen.model import (
    Field,
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

_EDGES: dict[Primitive, list[Any]] = {
    Primitive.BOOL: [False, True],
    Primitive.I64: [0, 1, -1, 63, 64, -64, -65, 2**31, -(2**31), 2**63 - 1, -(2**63)],
    Primitive.DOUBLE: [0.0, -0.0, 1.5, math.inf, -math.inf, math.nan, 5e-324, 1.7976931348623157e308],
    Primitive.STRING: [
        "",
        "x",
        'a "b" \\ \n\0',
        "größe \u211d \U0001d538 " * 9,
        "x" * 127,
        "x" * 128,
        "x" * 20000,
    ],
    Primitive.BINARY: [b"", b"x", bytes(range(256)), b"\xff" * 127, b"\0" * 128],
}
_LENGTHS = (0, 1, 14, 15, 300)  # TCompact writes a list's length apart from 15 on


def trees() -> Iterator[Any]:
    """All of them; several hundred, each small."""
    for definition in schema().types.values():
        if definition.kind is Kind.STRUCT:
            yield _struct(definition, full=False)
            yield _struct(definition, full=True)
            for field in definition.fields:
                for value in _values(field.type):
                    yield _struct(definition, full=False, **{field.name: value})
        elif definition.kind is Kind.UNION:
            for field in definition.fields:
                for value in _values(field.type):
                    yield _class(definition.name).create(**{field.name: value})


def with_sorted_maps(value: Any) -> Any:
    """The tree with the entries of each map in order of key, as Apache's C++ keeps them. Changes the tree."""
    if isinstance(value, list):
        for item in value:
            with_sorted_maps(item)
    elif isinstance(value, dict):
        for item in value.values():
            with_sorted_maps(item)
        entries = sorted(value.items())
        value.clear()
        value.update(entries)
    elif isinstance(value, types.Union):
        with_sorted_maps(value.value)
    elif isinstance(value, types.Struct):
        for field in schema().types[type(value).__name__].fields:
            with_sorted_maps(getattr(value, field.name))
    return value


def _values(type_: TypeRef) -> Iterator[Any]:
    """Values of a type: every enum value, every edge value, lists of telling lengths."""
    match type_:
        case PrimitiveType(primitive):
            yield from _EDGES[primitive]
        case NamedType(name, Kind.ENUM):
            yield from _class(name)
        case NamedType(name, Kind.UNION):
            for field in schema().types[name].fields:
                yield _class(name).create(**{field.name: _value(field.type, full=False)})
        case NamedType():
            yield _value(type_, full=True)
        case ListType(PrimitiveType(primitive)):
            yield _EDGES[primitive]
            yield _short_edges(primitive)
            yield from ([_EDGES[primitive][1]] * length for length in _LENGTHS)
        case ListType(item):
            if isinstance(item, ListType):
                yield from ([value] for value in _values(item))
            yield from ([_value(item, full=length < 14)] * length for length in _LENGTHS)
        case MapType(item):
            if isinstance(item, PrimitiveType):
                yield {f"edge {i}": value for i, value in enumerate(_short_edges(item.primitive))}
            for length in _LENGTHS:
                yield {f"key {i}": _value(item, full=length < 14) for i in range(length)}
            yield {"z": _value(item, full=False), "": _value(item, full=False), "ß": _value(item, full=True)}


def _short_edges(primitive: Primitive) -> list[Any]:
    return [value for value in _EDGES[primitive] if not isinstance(value, str) or len(value) < 1000]


def _value(type_: TypeRef, full: bool) -> Any:
    match type_:
        case PrimitiveType(primitive):
            return _EDGES[primitive][1 if full else 0]
        case NamedType(name, Kind.ENUM):
            return list(_class(name))[-1 if full else 0]
        case NamedType(name, Kind.UNION):
            field = schema().types[name].fields[0]
            return _class(name).create(**{field.name: _value(field.type, full)})
        case NamedType(name):
            return _struct(schema().types[name], full)
        case ListType(item):
            return [_value(item, full=False)] * 2 if full else []
        case MapType(item):
            return {"a": _value(item, full=False), "b": _value(item, full=False)} if full else {}


def _struct(definition: TypeDef, full: bool, **given: Any) -> Any:
    def chosen(field: Field) -> Any:
        return None if field.optional and not full else _value(field.type, full)

    fields = {field.name: chosen(field) for field in definition.fields}
    return _class(definition.name)(**{**fields, **given})


def _class(name: str) -> Any:
    return getattr(types, name)
