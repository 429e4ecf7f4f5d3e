"""The Python target on shapes of types that the format does not have today: it may get them."""

from __future__ import annotations

import ast
import importlib
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pt2wire.codegen import python
from pt2wire.codegen.model import Schema
from pt2wire.codegen.python_code import literal, nesting
from pt2wire.codegen.resolve import load_schema

from .helpers.schemas import SCHEMA, indented

TYPES = r"""
Color:
  kind: enum
  since: "8.2"
  doc: A color with "quotes", a back\slash and three more ""quotes"".
  values:
    RED: {value: 0, doc: Red.}
    GREEN: {value: -5, doc: Green.}
    BLUE: {value: 2147483647, doc: Blue.}
Leaf:
  kind: struct
  since: "8.2"
  doc: Every shape of field.
  fields:
    data: {id: 1, type: binary, doc: d}
    colors: {id: 2, type: list<Color>, doc: d}
    palette: {id: 3, type: "map<string, list<Color>>", doc: d}
    required_optional: {id: 30000, type: optional binary, doc: d}
    shade: {id: 4, type: optional Color, default: null, doc: d}
    tint: {id: 5, type: Color, default: BLUE, doc: d}
    numbers: {id: 6, type: optional list<double>, default: null, doc: d}
    table: {id: 7, type: "map<string, map<string, list<i64>>>", default: {}, doc: d}
    text: {id: 8, type: string, default: 'a "quoted" \ text', doc: d}
    count: {id: 9, type: i64, default: -3, doc: d}
    ratio: {id: 10, type: double, default: 0.5, doc: d}
    flag: {id: 11, type: bool, default: true, doc: d}
    a_long_name_of_a_field_that_fills: {id: 40, type: "map<string, list<Choice>>", default: {}, doc: d}
Choice:
  kind: union
  since: "8.2"
  doc: Every shape of member.
  fields:
    as_color: {id: 1, type: Color, doc: d}
    as_colors: {id: 2, type: list<Color>, doc: d}
    as_palette: {id: 3, type: "map<string, Color>", doc: d}
    as_data: {id: 4, type: binary, doc: d}
    as_datas: {id: 5, type: list<binary>, doc: d}
    as_leaf: {id: 6, type: Leaf, doc: d}
    as_choices: {id: 7, type: list<Choice>, doc: d}
    as_tables: {id: 8, type: "list<map<string, list<Color>>>", doc: d}
    as_flag: {id: 9, type: bool, doc: d}
    as_number: {id: 10, type: double, doc: d}
    a_long_name_of_a_member_that_fills: {id: 11, type: "map<string, list<Leaf>>", doc: d}
Root:
  kind: struct
  since: "8.2"
  doc: Optional fields only, one of them our own.
  fields:
    leaf: {id: 1, type: optional Leaf, default: null, doc: d}
    extra: {id: 1000, type: optional Choice, default: null, since_revision: 1, doc: d}
"""


def schema_of(folder: Path, types: str) -> Schema:
    path = folder / "schema.yaml"
    path.write_text(indented(types.strip("\n")))
    return load_schema(path)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("target")
    name = "pt2wire_target_test"
    (folder / name).mkdir()
    for path, text in python.outputs(schema_of(folder, TYPES)).items():
        (folder / name / path).write_text(text)
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


def trees(package: ModuleType) -> list[Any]:
    color, choice, leaf, root = package.Color, package.Choice, package.Leaf, package.Root
    small = leaf(b"", [], {}, None)
    full = leaf(
        b"\xff\0",
        [color.RED, color.BLUE],
        {"k": [color.GREEN], "": []},
        b"x",
        shade=color.GREEN,
        tint=color.RED,
        numbers=[math.inf, -0.0],
        table={"a": {"b": [1, -(2**63)]}},
        text="é",
        count=2**63 - 1,
        ratio=-math.inf,
        flag=False,
        a_long_name_of_a_field_that_fills={"c": [choice.of_color(color.RED)]},
    )
    choices = [
        choice.of_color(color.BLUE),
        choice.of_colors([color.RED, color.GREEN]),
        choice.of_palette({"k": color.BLUE}),
        choice.of_data(b"\xff"),
        choice.of_datas([b"", b"\0"]),
        choice.of_leaf(full),
        choice.of_choices([choice.of_flag(False), choice.of_choices([])]),
        choice.of_tables([{"k": [color.RED]}, {}]),
        choice.of_number(1.5),
        choice.of_a_long_name_of_a_member_that_fills({"k": [small, full]}),
    ]
    return [small, full, *choices, root(), root(full, extra=choices[-1])]


def test_every_shape_survives_both_codecs_on_fast_and_slow_paths(package: ModuleType) -> None:
    name = package.__name__
    thrift_codec, json_codec, thrift_reader, json_reader = (
        importlib.import_module(f"{name}.{module}")
        for module in ("thrift_codec", "json_codec", "_thrift_reader", "_json_reader")
    )
    for tree in trees(package):
        cls, data, plain = type(tree), thrift_codec.encode(tree), json_codec.to_plain(tree)
        for found in (
            thrift_codec._decode_fast(cls, data),
            thrift_reader.read(cls, data, None),
            json_codec._read_fast(cls, plain),
            json_reader.read(cls, plain, None),
            json_codec.decode(cls, json_codec.encode(tree)),
        ):
            assert found == tree
            assert thrift_codec.encode(found) == data
            assert json_codec.to_plain(found) == plain
            assert repr(found) == repr(tree)  # enums are enums again


def test_bytes_are_base64_in_json_and_anything_else_is_an_error(package: ModuleType) -> None:
    json_codec = importlib.import_module(f"{package.__name__}.json_codec")
    assert json_codec.encode(package.Choice.of_data(b"\xff\0")) == b'{"as_data":"/wA="}'
    for wrong in (1, "/wA", "\xff", "/w A=", None):
        with pytest.raises(package.CodecError, match="as_data: expected bytes in Base64, found"):
            json_codec.from_plain(package.Choice, {"as_data": wrong})


def test_own_fields_of_any_type_are_left_out_of_json_while_unset(package: ModuleType) -> None:
    json_codec = importlib.import_module(f"{package.__name__}.json_codec")
    assert json_codec.encode(package.Root()) == b'{"leaf":null}'
    extra = package.Choice.of_color(package.Color.GREEN)
    assert json_codec.encode(package.Root(extra=extra)) == b'{"leaf":null,"extra":{"as_color":-5}}'


@pytest.mark.parametrize("command", [["format", "--check"], ["check"]])
def test_generated_modules_are_clean_as_rendered(package: ModuleType, command: list[str]) -> None:
    config = ["--config", str(SCHEMA.parent / "pyproject.toml")]
    folder = str(Path(package.__file__ or "").parent)
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *command, *config, "--no-cache", folder],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_recurses_and_how_high_the_rest_is(tmp_path: Path) -> None:
    schema = schema_of(tmp_path, TYPES)
    found = nesting(schema)
    assert found.deep == {"Choice", "Leaf", "Root"}
    assert found.height == {"Color": 0}
    real = nesting(load_schema(SCHEMA))
    assert {"Graph", "Argument", "ExportedProgram"} <= real.deep
    assert (real.height["TensorArgument"], real.height["SymInt"]) == (1, 3)


@given(st.text())
def test_literals_are_the_value(text: str) -> None:
    assert ast.literal_eval(literal(text)) == text
