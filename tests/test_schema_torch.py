"""schema.yaml says what the installed PyTorch says: its classes, its tables, the IDL that it ships."""

from __future__ import annotations

import dataclasses
import enum
import re
import typing
from pathlib import Path
from typing import Any

import pytest
from pt2wire.codegen.history import as_of
from pt2wire.codegen.model import Kind, Schema, Version
from pt2wire.codegen.resolve import load_schema

from .helpers.schemas import SCHEMA, default_of, spelled

torch = pytest.importorskip("torch")
torch_schema = pytest.importorskip("torch._export.serde.schema")

#: The schema as far as the installed torch can know it.
KNOWN = as_of(load_schema(SCHEMA), Version(*torch_schema.SCHEMA_VERSION))
TYPES = [definition.name for definition in KNOWN.types.values() if not definition.own]
_TORCH_PRIMITIVES = {bool: "bool", int: "i64", float: "double", str: "string"}


@pytest.fixture(scope="module")
def schema() -> Schema:
    return KNOWN


def torch_spelling(hint: Any) -> str:
    """A type hint of PyTorch's dataclasses in the notation of schema.yaml."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return torch_spelling(arguments[0])
    if origin is list:
        return f"list<{torch_spelling(arguments[0])}>"
    if origin is dict:
        assert arguments[0] is str
        return f"map<string, {torch_spelling(arguments[1])}>"
    if type(None) in arguments:
        (item,) = (argument for argument in arguments if argument is not type(None))
        return f"optional {torch_spelling(item)}"
    return _TORCH_PRIMITIVES.get(hint) or hint.__name__


def torch_types() -> dict[str, type]:
    return {
        name: value
        for name, value in vars(torch_schema).items()
        if isinstance(value, type) and value.__module__ == torch_schema.__name__
    }


def test_versions_fit_those_of_the_installed_torch(schema: Schema) -> None:
    """It may be older than schema.yaml, but not newer: then `compare-torch` shows what is missing."""
    assert load_schema(SCHEMA).version >= Version(*torch_schema.SCHEMA_VERSION)
    assert schema.treespec_version == torch_schema.TREESPEC_VERSION


def test_types_are_those_of_the_installed_torch(schema: Schema) -> None:
    assert [t.name for t in schema.types.values() if not t.own] == list(torch_types())


@pytest.mark.parametrize("name", TYPES)
def test_a_type_equals_the_class_of_the_installed_torch(schema: Schema, name: str) -> None:
    definition, cls = schema.types[name], torch_types()[name]
    if issubclass(cls, enum.IntEnum):
        assert definition.kind is Kind.ENUM
        assert [(v.name, v.value) for v in definition.values] == [(v.name, v.value) for v in cls]
        return
    hints = {
        name: hint
        for name, hint in typing.get_type_hints(cls, vars(torch_schema), include_extras=True).items()
        if typing.get_origin(hint)
        is typing.Annotated  # a union's class has a field of its own, without an id
    }
    ours = [field for field in definition.fields if not field.own]
    assert [f.name for f in ours] == list(hints)
    for field in ours:
        hint = hints[field.name]
        assert field.id == hint.__metadata__[0], field.name
        expected = torch_spelling(hint)
        if definition.kind is Kind.UNION:
            expected = expected.removeprefix("optional ")
        assert spelled(field) == expected, field.name
    if definition.kind is Kind.STRUCT:
        defaults = {}
        for field in dataclasses.fields(cls):
            if field.default is not dataclasses.MISSING:
                defaults[field.name] = {"default": field.default}
            elif field.default_factory is not dataclasses.MISSING:
                defaults[field.name] = {"default": field.default_factory()}
            else:
                defaults[field.name] = {}
        assert {field.name: default_of(field) for field in ours} == defaults


def test_enum_values_map_to_the_names_that_torch_maps_them_to(schema: Schema) -> None:
    from torch._export.serde import serialize

    tables = {
        "ScalarType": serialize._TORCH_TO_SERIALIZE_DTYPE,
        "Layout": serialize._TORCH_TO_SERIALIZE_LAYOUT,
        "MemoryFormat": serialize._TORCH_TO_SERIALIZE_MEMORY_FORMAT,
    }
    for name, table in tables.items():
        expected = {str(key).removeprefix("torch."): int(value) for key, value in table.items()}
        ours = {value.torch: value.value for value in schema.types[name].values if value.torch}
        assert ours == expected, name
        for attribute in ours:
            assert isinstance(getattr(torch, attribute), (torch.dtype, torch.layout, torch.memory_format))


def test_ids_are_those_of_the_idl_that_torch_ships(schema: Schema) -> None:
    idl = (Path(torch_schema.__file__).parent / "export_schema.thrift").read_text()
    blocks = re.findall(r"^(enum|struct|union) (\w+) \{\n(.*?)^\}", idl, re.M | re.S)
    theirs = {}
    for kind, name, body in blocks:
        if kind == "enum":
            theirs[name] = (kind, [(m[1], int(m[2])) for m in re.finditer(r"(\w+) = (\d+)", body)])
        else:
            fields = [(m[3], int(m[1]), m[2]) for m in re.finditer(r"(\d+): (.*) (\w+);", body)]
            theirs[name] = (kind, fields)
    ours = {}
    for definition in schema.types.values():
        if definition.own:
            continue
        if definition.kind is Kind.ENUM:
            ours[definition.name] = ("enum", [(v.name, v.value) for v in definition.values])
        else:
            fields = [(f.name, f.id, spelled(f)) for f in definition.fields if not f.own]
            ours[definition.name] = (definition.kind.value, fields)
    assert ours == theirs
