"""The generated IDL compiles as it is with Apache's compiler, and says what schema.yaml says."""

from __future__ import annotations

import importlib
import json
import random
import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pt2wire.codegen import thrift, words
from pt2wire.codegen.lint import lint
from pt2wire.codegen.model import (
    Field,
    Kind,
    ListType,
    MapType,
    NamedType,
    Position,
    Schema,
    TypeDef,
    TypeRef,
    Version,
)
from pt2wire.codegen.order import by_value_cycles, by_value_order, map_cycles, mapped_type
from pt2wire.codegen.resolve import load_schema, parse_schema

from .helpers.idl import generated, python_module
from .helpers.schemas import SCHEMA, indented, spelled


@pytest.fixture(scope="module")
def schema() -> Schema:
    return load_schema(SCHEMA)


@pytest.fixture(scope="module")
def idl(schema: Schema, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("idl") / "schema.thrift"
    path.write_text(thrift.outputs(schema)["schema.thrift"])
    return path


@pytest.mark.parametrize("language", ["cpp", "py", "java", "go", "rs", "js", "netstd", "json"])
def test_the_idl_compiles_for(idl: Path, language: str) -> None:
    files = [path for path in generated(language, idl, idl.parent).rglob("*") if path.is_file()]
    assert any("ExportedProgram" in path.read_text() for path in files)


def test_the_generated_cpp_compiles(idl: Path) -> None:
    source = generated("cpp", idl, idl.parent) / "schema_types.cpp"
    command = ["g++", "-std=c++17", "-O0", "-c", "-o", str(idl.parent / "schema_types.o"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def ttypes() -> ModuleType:
    """The module that Apache's compiler generates for Python."""
    return python_module()


def test_the_generated_python_has_every_id_name_and_default(ttypes: ModuleType, schema: Schema) -> None:
    for definition in schema.types.values():
        cls = getattr(ttypes, definition.name)
        if definition.kind is Kind.ENUM:
            assert {v.name: v.value for v in definition.values} == cls._NAMES_TO_VALUES
            continue
        specs = {spec[0]: spec for spec in cls.thrift_spec if spec is not None}
        assert {field.id: field.name for field in definition.fields} == {
            key: spec[2] for key, spec in specs.items()
        }
        for field in definition.fields:
            default = specs[field.id][4]
            value = None if field.default is None else field.default.value
            if isinstance(value, tuple):
                value = [] if isinstance(field.type, ListType) else {}
            assert default == value, f"{definition.name}.{field.name}"


def test_the_generated_python_has_the_constants(ttypes: ModuleType, schema: Schema) -> None:
    constants = importlib.import_module("pt2wire_idl.constants")
    assert (schema.version.major, schema.version.minor) == (constants.VERSION_MAJOR, constants.VERSION_MINOR)
    assert (constants.OLDEST_VERSION_MAJOR, constants.OLDEST_VERSION_MINOR) == (8, 2)
    assert (schema.revision, schema.treespec_version) == (constants.REVISION, constants.TREESPEC_VERSION)


def test_docs_arrive_as_doc_comments(idl: Path, schema: Schema) -> None:
    plain = json.loads((generated("json", idl, idl.parent) / "schema.json").read_text())
    docs = {}
    for item in (*plain["structs"], *plain["enums"]):
        docs[item["name"]] = item["doc"]
        for member in item.get("fields", item.get("members", [])):
            docs[f"{item['name']}.{member['name']}"] = member["doc"]
    for definition in schema.types.values():
        for item in (definition, *definition.fields, *definition.values):
            name = definition.name if item is definition else f"{definition.name}.{item.name}"
            assert " ".join(docs[name].split()) == item.doc, name


def test_the_audit_finds_no_change_against_itself_and_one_against_a_changed_id(
    idl: Path, tmp_path: Path
) -> None:
    def audit(new: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["thrift", "--audit", str(idl), str(new)], capture_output=True, text=True)

    assert audit(idl).returncode == 0
    changed = tmp_path / "schema.thrift"
    changed.write_text(idl.read_text().replace("10: string expr_str;", "11: string expr_str;"))
    assert audit(changed).returncode != 0


def test_every_kind_of_default_compiles(tmp_path: Path) -> None:
    types = """\
E:
  kind: enum
  since: "8.2"
  doc: E.
  values:
    ZERO: {value: 0, doc: Z.}
    ONE: {value: 1, doc: O.}
A:
  kind: struct
  since: "8.2"
  doc: A.
  fields:
    b: {id: 1, type: bool, default: true, doc: D.}
    i: {id: 2, type: i64, default: -5, doc: D.}
    d: {id: 3, type: double, default: 1e300, doc: D.}
    s: {id: 4, type: string, default: 'say "a" \\ b', doc: D.}
    y: {id: 5, type: binary, default: "", doc: D.}
    l: {id: 6, type: list<list<E>>, default: [], doc: D.}
    m: {id: 7, type: "map<string, list<E>>", default: {}, doc: D.}
    e: {id: 8, type: E, default: ONE, doc: D.}
    o: {id: 9, type: optional E, default: null, doc: D.}
"""
    (tmp_path / "sample.yaml").write_text(indented(types))
    sample = load_schema(tmp_path / "sample.yaml")
    (tmp_path / "sample.thrift").write_text(thrift.outputs(sample)["schema.thrift"])
    generated("cpp", tmp_path / "sample.thrift", tmp_path)
    plain = json.loads((generated("json", tmp_path / "sample.thrift", tmp_path) / "sample.json").read_text())
    (struct,) = plain["structs"]
    defaults = {field["name"]: field.get("default") for field in struct["fields"]}
    assert defaults == {
        "b": 1,
        "i": -5,
        "d": 1e300,
        "s": 'say "a" \\ b',
        "y": "",
        "l": [],
        "m": {},
        "e": 1,
        "o": None,
    }


def test_the_table_of_words_is_what_the_compiler_refuses(tmp_path: Path) -> None:
    def refused(word: str) -> bool:
        path = tmp_path / "word.thrift"
        path.write_text(f"struct S {{\n  1: i64 {word};\n}}\n")
        command = ["thrift", "-nowarn", "--gen", "json", "-o", str(tmp_path), str(path)]
        return subprocess.run(command, capture_output=True).returncode != 0

    newer = {"uuid"}  # a word since 0.17's successors
    candidates = words.THRIFT | words.cpp.KEYWORDS | words.PYTHON_TYPES
    assert {word for word in candidates if refused(word)} | newer == words.THRIFT


def test_fields_and_types_are_spelled_as_in_the_schema(idl: Path, schema: Schema) -> None:
    text = idl.read_text()
    for definition in schema.types.values():
        for field in definition.fields:
            assert f"  {field.id}: {spelled(field)} {field.name}" in text


# --- the order of types --------------------------------------------------------------------------------

PLACE = Position("schema.yaml", 1, 1)
ORIGIN = Version(8, 2)


def struct(name: str, direct: list[str], contained: list[str], mapped: list[str]) -> TypeDef:
    refs: list[TypeRef] = [NamedType(other, Kind.STRUCT) for other in direct]
    refs += [ListType(NamedType(other, Kind.STRUCT)) for other in contained]
    refs += [ListType(MapType(NamedType(other, Kind.STRUCT))) for other in mapped]
    fields = tuple(
        Field(f"f{number}", number, ref, False, None, "F.", ORIGIN, None, PLACE)
        for number, ref in enumerate(refs, 1)
    )
    return TypeDef(name, Kind.STRUCT, "S.", ORIGIN, None, fields, (), (), (), (), PLACE)


NAMES = [f"T{number}" for number in range(7)]


@st.composite
def types_of(draw: st.DrawFn, with_cycles: bool) -> dict[str, TypeDef]:
    """Random types; without cycles a type holds by value only types of lower number."""
    types = {}
    for number in draw(st.permutations(range(len(NAMES)))):
        allowed = NAMES if with_cycles else NAMES[:number]
        direct = draw(st.lists(st.sampled_from(allowed), max_size=2)) if allowed else []
        contained, mapped = (draw(st.lists(st.sampled_from(NAMES), max_size=2)) for _ in range(2))
        types[NAMES[number]] = struct(NAMES[number], direct, contained, mapped)
    return types


def named(field: Field) -> str:
    return re.search(r"\w+(?=>*$)", str(field.type))[0]


def uses(definition: TypeDef) -> set[str]:
    return {named(field) for field in definition.fields}


def reached(types: dict[str, TypeDef], start: str) -> set[str]:
    seen: set[str] = set()
    queue = [start]
    while queue:
        for name in uses(types[queue.pop()]) - seen:
            seen.add(name)
            queue.append(name)
    return seen


@given(types_of(with_cycles=False))
def test_what_a_type_holds_stands_before_it(types: dict[str, TypeDef]) -> None:
    order = [definition.name for definition in by_value_order(types)]
    assert sorted(order) == sorted(types)
    assert by_value_cycles(types) == []
    for definition in types.values():
        for field in definition.fields:
            held = named(field)
            by_value = isinstance(field.type, NamedType)
            if by_value or definition.name not in reached(types, held):
                assert order.index(held) < order.index(definition.name)


@given(types_of(with_cycles=False))
def test_what_a_map_holds_stands_before_it_unless_a_cycle_is_found(types: dict[str, TypeDef]) -> None:
    order = [definition.name for definition in by_value_order(types)]
    pairs = [(d.name, mapped_type(field.type)) for d in types.values() for field in d.fields]
    late = [(name, held) for name, held in pairs if held and order.index(held) > order.index(name)]
    assert bool(late) is bool(map_cycles(types))


MAPS = """\
U:
  kind: union
  since: "8.2"
  doc: U.
  fields:
    as_maps: {id: 1, type: "list<map<string, S>>", doc: M.}
    as_own: {id: 2, type: "list<map<string, U>>", doc: O.}
S:
  kind: struct
  since: "8.2"
  doc: S.
  fields:
    unions: {id: 1, type: "map<string, list<U>>", doc: U.}
    own: {id: 2, type: "map<string, map<string, S>>", doc: O.}
"""


@pytest.mark.parametrize(
    ("types", "compiles"), [(MAPS, True), (MAPS.replace("map<string, list<U>>", "map<string, U>"), False)]
)
def test_a_cycle_over_maps_is_found_exactly_where_cpp_does_not_compile(
    tmp_path: Path, types: str, compiles: bool
) -> None:
    schema = parse_schema(indented(types).encode(), "sample.yaml")
    assert bool(map_cycles(schema.types)) is not compiles
    (tmp_path / "sample.thrift").write_text(thrift.outputs(schema)["schema.thrift"])
    source = generated("cpp", tmp_path / "sample.thrift", tmp_path) / "sample_types.cpp"
    done = subprocess.run(["g++", "-std=c++17", "-fsyntax-only", str(source)], capture_output=True, text=True)
    assert (done.returncode == 0) is compiles, done.stderr
    assert compiles or "incomplete type" in done.stderr


TAKEN = """\
Kind:
  kind: enum
  since: "8.2"
  doc: K.
  values:
    ONE: {value: 1, doc: O.}
Leaf:
  kind: struct
  since: "8.2"
  doc: L.
  fields:
    note: {id: 1, type: i64, doc: N.}
    kind: {id: 2, type: Kind, doc: K.}
Whole:
  kind: struct
  since: "8.2"
  doc: W.
  fields:
    leaf: {id: 1, type: Leaf, doc: L.}
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ONE:", "type:"),
        ("ONE:", "Kind:"),
        ("ONE:", "SIGINT:"),
        ("ONE:", "schema_TYPES_H:"),
        ("note:", "rhs:"),
        ("note:", "int16_t:"),
        ("Leaf", "TBase"),
        ("note:", "type:"),
        ("Leaf", "rhs"),
    ],
)
def test_lint_finds_names_exactly_where_cpp_does_not_compile(tmp_path: Path, before: str, after: str) -> None:
    schema = parse_schema(indented(TAKEN.replace(before, after)).encode(), "sample.yaml")
    found = [finding for finding in lint(schema) if finding.rule == "apache-name"]
    (tmp_path / "schema.thrift").write_text(thrift.outputs(schema)["schema.thrift"])
    source = generated("cpp", tmp_path / "schema.thrift", tmp_path) / "schema_types.cpp"
    done = subprocess.run(["g++", "-std=c++17", "-fsyntax-only", str(source)], capture_output=True, text=True)
    assert bool(found) is (done.returncode != 0), done.stderr


def doubles() -> list[float]:
    """Some at the edges, and some of few digits, of any size."""
    r = random.Random(0)
    found = [0.0, -0.0, 0.5, 5e-324, 1e-16, 1e-17, 1.5e-16, 1e15, 1e16, 1e23, 1e300, 123456.0, 1234567.0]
    found += [0.1 + 0.2, 3.14159, 3.141592, 3.14159265358979, -2.5, 1.7976931348623157e308]
    return found + [float(f"{r.randint(1, 10 ** r.randint(1, 8))}e{r.randint(-20, 20)}") for _ in range(80)]


def test_lint_finds_defaults_exactly_where_they_are_rounded(tmp_path: Path) -> None:
    """In Go, which shows one of the two ways of Apache's compiler, or in Python, which shows the other."""
    fields = [f"x{i}: {{id: {i + 1}, type: double, default: {x!r}, doc: d}}" for i, x in enumerate(doubles())]
    # A struct has fewer fields than that; the rule does not mind.
    lines = "\n".join(f"    {field}" for field in fields)
    types = f'Defaults:\n  kind: struct\n  since: "8.2"\n  doc: D.\n  fields:\n{lines}\n'
    schema = parse_schema(indented(types).encode(), "sample.yaml")
    (tmp_path / "sample.thrift").write_text(thrift.outputs(schema)["schema.thrift"])
    in_go = (generated("go", tmp_path / "sample.thrift", tmp_path) / "sample/idl/sample.go").read_text()
    in_python = (generated("py", tmp_path / "sample.thrift", tmp_path) / "sample_idl/ttypes.py").read_text()
    rounded = set()
    for number, value in enumerate(doubles()):
        # Go makes a field 0 where nothing else is said.
        told = re.search(rf"^X{number}: (.*),$", in_go, re.M)
        for text in (told[1] if told else "0.0", re.search(rf"\bx{number}=([^,]+),", in_python)[1]):
            literal = re.fullmatch(r"(?:float\()?([-+.e\d]+)\)?", text)[1]
            if repr(float(literal)) != repr(value):
                rounded.add(f"x{number}")
    found = {finding.position.line for finding in lint(schema) if finding.rule == "rounded-default"}
    named = {field.name for field in schema.types["Defaults"].fields if field.position.line in found}
    assert named == rounded
    assert 10 < len(rounded) < len(doubles()) - 10


@given(types_of(with_cycles=True))
def test_a_by_value_cycle_is_found_exactly_where_there_is_one(types: dict[str, TypeDef]) -> None:
    cycles = by_value_cycles(types)
    direct = {
        name: {str(field.type) for field in definition.fields if isinstance(field.type, NamedType)}
        for name, definition in types.items()
    }
    remaining = dict(direct)
    while True:  # Kahn's algorithm: what never becomes free is on a cycle or holds one
        free = [name for name, held in remaining.items() if not held & remaining.keys()]
        if not free:
            break
        for name in free:
            del remaining[name]
    assert bool(cycles) == bool(remaining)
    for cycle in cycles:
        for name, following in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
            assert following in direct[name]
    assert {definition.name for definition in by_value_order(types)} == set(types)
