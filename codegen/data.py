"""The data target: the resolved model as JSON, and its digest."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from .model import EnumValue, Field, Kind, ListType, MapType, NamedType, Schema, TypeDef, TypeRef


def outputs(schema: Schema) -> dict[str, str]:
    """schema.json, the resolved model."""
    return {"schema.json": json.dumps({"digest": schema.digest, **to_plain(schema)}, indent=1) + "\n"}


def digest(schema: Schema) -> str:
    """SHA-256 of the resolved model: the same for files that differ only in layout and YAML comments."""
    return hashlib.sha256(json.dumps(to_plain(schema)).encode()).hexdigest()


def to_plain(schema: Schema) -> dict[str, Any]:
    """A schema as JSON values, without positions and digest."""
    return {
        "name": schema.name,
        "version": str(schema.version),
        "oldest_version": str(schema.oldest_version),
        "revision": schema.revision,
        "treespec_version": schema.treespec_version,
        "log": [
            {"version": str(line.version), "torch": line.torch, "note": line.note} for line in schema.log
        ],
        "types": {name: _type(definition) for name, definition in schema.types.items()},
        "by_value_order": [definition.name for definition in schema.ordered],
    }


def _type(definition: TypeDef) -> dict[str, Any]:
    plain: dict[str, Any] = {"kind": definition.kind.value, "doc": definition.doc, **_origin(definition)}
    if definition.kind is Kind.ENUM:
        plain["values"] = {value.name: _value(value) for value in definition.values}
    else:
        plain["fields"] = {field.name: _field(field) for field in definition.fields}
    if definition.reserved_ids or definition.reserved_names:
        plain["reserved"] = {"ids": definition.reserved_ids, "names": definition.reserved_names}
    if definition.returned:
        plain["returned"] = definition.returned
    return plain


def _field(field: Field) -> dict[str, Any]:
    plain = {"id": field.id, "type": type_to_plain(field.type), "optional": field.optional}
    if field.default is not None:
        plain["default"] = _default(field)
    return {**plain, "doc": field.doc, **_origin(field)}


def _default(field: Field) -> Any:
    assert field.default is not None
    if isinstance(field.default.value, tuple):
        return {} if isinstance(field.type, MapType) else []
    return field.default.value


def _value(value: EnumValue) -> dict[str, Any]:
    mappings = (("torch", value.torch), ("c10", value.c10), ("bits", value.bits))
    known = {key: mapped for key, mapped in mappings if mapped is not None}
    return {"value": value.value, **known, "doc": value.doc, **_origin(value)}


def _origin(item: TypeDef | Field | EnumValue) -> dict[str, Any]:
    return {"since": str(item.since)} if item.since else {"since_revision": item.since_revision}


def type_to_plain(ref: TypeRef) -> dict[str, Any]:
    """A type as JSON values: `{"kind": "list", "item": {"kind": "struct", "name": "Node"}}`."""
    if isinstance(ref, NamedType):
        return {"kind": ref.kind.value, "name": ref.name}
    if isinstance(ref, ListType):
        return {"kind": "list", "item": type_to_plain(ref.item)}
    if isinstance(ref, MapType):
        return {"kind": "map", "value": type_to_plain(ref.value)}
    return {"kind": ref.primitive.value, **({"wide": True} if ref.wide else {})}
