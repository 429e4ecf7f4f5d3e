"""Documents that together hold every type, union member and enum value of a schema; always the same."""

from __future__ import annotations

import itertools
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
    Schema,
    TypeRef,
)
from pt2wire.codegen.order import named_types

_SAMPLES: dict[Primitive, tuple[Any, ...]] = {
    Primitive.BOOL: (True, False),
    Primitive.I64: (1, 0, -1, 2**63 - 1, -(2**63), 300),
    Primitive.DOUBLE: (0.5, -0.0, math.inf, -math.inf, 5e-324, 1e300),
    Primitive.STRING: ("text", "", 'größe "\U0001d538" \\ \n', "x" * 130),
    Primitive.BINARY: (b"bytes", b"", b"\x00\xff\x80"),
}


def documents(schema: Schema, types: Any) -> dict[str, Any]:
    """One tree for each struct that is no part of another: its name -> the tree.

    Args:
        schema: The schema.
        types: The module that was generated from it.
    """
    held = {name for t in schema.types.values() for field in t.fields for name in named_types(field.type)}
    maker = _Maker(schema, types)
    roots = [t.name for t in schema.types.values() if t.kind is Kind.STRUCT and t.name not in held]
    trees = {name: maker.variants(NamedType(name, Kind.STRUCT))[0] for name in roots}
    if "ExportedProgram" in trees:
        version = types.SchemaVersion(schema.version.major, schema.version.minor)
        trees["ExportedProgram"].schema_version = version
    return trees


def least(schema: Schema, types: Any, name: str) -> Any:
    """A struct or union with as little in it as there can be."""
    return _Maker(schema, types).least(NamedType(name, schema.types[name].kind))


def variants(schema: Schema, types: Any, name: str) -> list[Any]:
    """Values of a struct or union that together hold everything below it."""
    return _Maker(schema, types).variants(NamedType(name, schema.types[name].kind))


class _Maker:
    """Makes values; a type is gone through completely where it is met first, and only named afterwards."""

    def __init__(self, schema: Schema, types: Any) -> None:
        self._schema = schema
        self._types = types
        self._met: set[str] = set()
        self._samples = {primitive: itertools.cycle(values) for primitive, values in _SAMPLES.items()}

    def variants(self, ref: TypeRef) -> list[Any]:
        """Values of a type: all that are needed to meet everything below it once, at least one."""
        match ref:
            case PrimitiveType(primitive):
                return [next(self._samples[primitive])]
            case ListType(item):
                return [self.variants(item)]
            case MapType(item):
                return [{f"key {number}": value for number, value in enumerate(self.variants(item))}]
            case NamedType(name, kind):
                if name in self._met:
                    return [self.least(ref)]
                self._met.add(name)
                if kind is Kind.ENUM:
                    return list(self._class(name))
                return self._union(name) if kind is Kind.UNION else self._struct(name)

    def _union(self, name: str) -> list[Any]:
        cls = self._class(name)
        return [
            cls.create(**{field.name: value})
            for field in self._schema.types[name].fields
            for value in self.variants(field.type)
        ]

    def _struct(self, name: str) -> list[Any]:
        """As many structs as the field with the most values needs; the others end with their least."""
        fields = self._schema.types[name].fields
        choices = {field.name: self._field(field) for field in fields}
        count = max((len(values) for values in choices.values()), default=1)
        least = {field.name: self._least_of(field) for field in fields}
        return [
            self._class(name)(
                **{
                    field: values[number] if number < len(values) else least[field]
                    for field, values in choices.items()
                }
            )
            for number in range(count)
        ]

    def _field(self, field: Field) -> list[Any]:
        values = self.variants(field.type)
        return [*values, None] if field.optional else values

    def _least_of(self, field: Field) -> Any:
        return None if field.optional else self.least(field.type)

    def least(self, ref: TypeRef) -> Any:
        """The smallest value of a type."""
        match ref:
            case PrimitiveType(primitive):
                return _SAMPLES[primitive][0]
            case ListType():
                return []
            case MapType():
                return {}
            case NamedType(name, Kind.ENUM):
                return next(iter(self._class(name)))
            case NamedType(name, Kind.UNION):
                # A member that leads back to its union would have no end.
                field = next(f for f in self._schema.types[name].fields if name not in named_types(f.type))
                return self._class(name).create(**{field.name: self.least(field.type)})
            case NamedType(name):
                fields = self._schema.types[name].fields
                return self._class(name)(**{field.name: self._least_of(field) for field in fields})

    def _class(self, name: str) -> Any:
        return getattr(self._types, name)


def met(schema: Schema, tree: Any) -> Iterator[str]:
    """Everything of a schema that a tree holds: `Node`, `Node.name` where it is set, `Layout.Strided`."""
    name = type(tree).__name__
    definition = schema.types.get(name)
    if isinstance(tree, list):
        for item in tree:
            yield from met(schema, item)
    elif isinstance(tree, dict):
        for item in tree.values():
            yield from met(schema, item)
    elif definition is not None:
        yield name
        if definition.kind is Kind.ENUM:
            yield f"{name}.{tree.name}"
        elif definition.kind is Kind.UNION:
            yield f"{name}.{tree.type}"
            yield from met(schema, tree.value)
        else:
            for field in definition.fields:
                value = getattr(tree, field.name)
                if value is not None:
                    yield f"{name}.{field.name}"
                yield from met(schema, value)


def all_of(schema: Schema) -> set[str]:
    """Everything that a schema defines, in the notation of `met`."""
    members = {f"{t.name}.{member.name}" for t in schema.types.values() for member in (*t.fields, *t.values)}
    return {*schema.types, *members}
