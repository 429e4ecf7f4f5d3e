"""Schemas of extreme shapes: whatever the compiler takes works in Python, Thrift and C++."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from pt2wire.codegen.cli import main
from pt2wire.codegen.lint import MAX_FIELDS

from .helpers.cpp import ROOT, WARNINGS, run
from .helpers.schema_edits import import_generated
from .helpers.schemas import indented

ENUM = """\
Color:
  kind: enum
  since: "8.2"
  doc: A color.
  values:
    RED: {value: 0, doc: Red.}
"""
OTHER = ENUM.replace("Color", "Shade").replace("RED", "DARK")


def type_(kind: str, name: str, *fields: str) -> str:
    lines = "".join(f"    {field}\n" for field in fields)
    return f'{name}:\n  kind: {kind}\n  since: "8.2"\n  doc: Sample.\n  fields:\n{lines}'


def struct(name: str, *fields: str) -> str:
    return type_("struct", name, *fields)


def union(name: str, *fields: str) -> str:
    return type_("union", name, *fields)


def nested(spelling: str, levels: int, *, maps: bool) -> str:
    for level in range(levels):
        spelling = f"map<string, {spelling}>" if maps and level % 2 else f"list<{spelling}>"
    return f'"{spelling}"'


#: Signs that some language has to escape, as YAML does it.
TEXT = r'"\t\n\r\"\\é\u2028\U0001F600$??/%"'
LONG, LONG_TYPE = "a_name_".ljust(100, "x"), "AName".ljust(100, "X")


def long_names(letters: int) -> str:
    """Types whose names, and those of their fields, have so many letters or one more."""
    name, type_ = LONG[:letters], LONG_TYPE[:letters]
    return (
        ENUM.replace("Color", type_).replace("RED", name)
        + struct(
            f"S{type_}",
            f"{name}: {{id: 1, type: {type_}, doc: d}}",
            f"b{name}: {{id: 2, type: optional list<S{type_}>, doc: d}}",
            f"c{name}: {{id: 3, type: 'map<string, list<{type_}>>', default: {{}}, doc: d}}",
            f"d{name}: {{id: 4, type: optional U{type_}, default: null, doc: d}}",
            f"e{name}: {{id: 5, type: {type_}, default: {name}, doc: d}}",
            f"f{name}: {{id: 6, type: 'map<string, map<string, U{type_}>>', default: {{}}, doc: d}}",
            f"g{name}: {{id: 7, type: optional list<list<string>>, default: null, doc: d}}",
        )
        + union(
            f"U{type_}",
            f"{name}: {{id: 1, type: {type_}, doc: d}}",
            f"b{name}: {{id: 2, type: list<list<S{type_}>>, doc: d}}",
            f"c{name}: {{id: 3, type: list<{type_}>, doc: d}}",
        )
    )


def deep(levels: int) -> str:
    """A struct and a union of fields with containers in containers, half of them maps."""
    spellings = [
        nested(kind, levels, maps=maps) for kind in ("Color", "Leaf", "Node") for maps in (False, True)
    ]
    fields = [f"field_{i}: {{id: {i + 1}, type: {spelling}, doc: d}}" for i, spelling in enumerate(spellings)]
    node = struct("Node", "nodes: {id: 1, type: list<Node>, doc: d}")
    leaf = struct("Leaf", "x: {id: 1, type: i64, doc: d}")
    return ENUM + leaf + node + struct("A", *fields) + union("U", *fields)


class Shape(NamedTuple):
    """Types, and values to write and read, as expressions over the generated package `p`."""

    types: str
    values: tuple[str, ...] = ()


SHAPES = {
    "one enum": Shape(ENUM),
    "enums only": Shape(ENUM + OTHER),
    "one struct": Shape(struct("A", "x: {id: 1, type: i64, doc: d}"), ("p.A(1)",)),
    "a struct of an enum": Shape(
        ENUM + struct("A", "x: {id: 1, type: Color, doc: d}"), ("p.A(p.Color.RED)",)
    ),
    "a struct of its own": Shape(
        struct("A", "x: {id: 1, type: list<A>, doc: d}"), ("p.A([])", "p.A([p.A([])])")
    ),
    "an optional field alone": Shape(
        struct("A", "x: {id: 1, type: optional string, default: null, doc: d}"), ("p.A()", 'p.A("a")')
    ),
    "defaults only": Shape(
        struct("A", "x: {id: 1, type: list<i64>, default: [], doc: d}"), ("p.A()", "p.A([1])")
    ),
    "one union": Shape(union("U", "as_x: {id: 1, type: i64, doc: d}"), ("p.U.of_x(1)",)),
    "a union of its own": Shape(
        union("U", "as_x: {id: 1, type: list<U>, doc: d}"), ("p.U.of_x([p.U.of_x([])])",)
    ),
    "bools in every container": Shape(
        struct(
            "A",
            'of_map: {id: 1, type: "map<string, bool>", doc: d}',
            'of_list: {id: 2, type: "list<map<string, bool>>", doc: d}',
            'of_lists: {id: 3, type: "map<string, list<bool>>", doc: d}',
            'perhaps: {id: 4, type: "optional map<string, map<string, bool>>", default: null, doc: d}',
            "either: {id: 5, type: optional U, default: null, doc: d}",
        )
        + union("U", 'x: {id: 1, type: "map<string, bool>", doc: d}', "y: {id: 2, type: list<bool>, doc: d}"),
        (
            "p.A({}, [], {})",
            'p.A({"a": True, "b": False}, [{"c": False}], {"d": [True]}, {"e": {"f": True}})',
            'p.A({}, [], {}, None, p.U.of_x({"g": True, "h": False}))',
            "p.A({}, [], {}, {}, p.U.of_y([False, True]))",
        ),
    ),
    "as many fields as a struct may have": Shape(
        struct("A", *(f"x{n}: {{id: {n + 1}, type: i64, doc: d}}" for n in range(MAX_FIELDS))),
        (f"p.A(*range({MAX_FIELDS}))",),
    ),
    "names of parameters": Shape(
        struct("A", "cls: {id: 1, type: i64, doc: d}", "type: {id: 2, type: i64, doc: d}")
        + union("U", "cls: {id: 1, type: i64, doc: d}", "member: {id: 2, type: i64, doc: d}")
        + union("V", "name: {id: 1, type: i64, doc: d}", "mro: {id: 2, type: i64, doc: d}"),
        (
            "p.A(cls=1, type=2)",
            *("p.U.create(cls=1)", "p.U.create(member=1)", "p.V.create(name=1)", "p.V.create(mro=1)"),
        ),
    ),
    "names of every form": Shape(
        "".join(
            ENUM.replace("Color", name) for name in ("U", "URL", "Url2", "Url10", "zoo", "Zoo2", "aB", "X9")
        ),
    ),
    "names that meet where they are joined": Shape(
        ENUM.replace("Color", "bare")
        + ENUM.replace("Color", "make_A")
        + union("A", "y_z: {id: 1, type: bare, doc: d}", "x: {id: 2, type: make_A, doc: d}")
        + union("A_y", "z: {id: 1, type: list<bare>, doc: d}", "blanks: {id: 2, type: A, doc: d}")
        + struct("A_x", "y: {id: 1, type: A_y, doc: d}", "z: {id: 2, type: A, doc: d}"),
        ("p.A.of_y_z(p.bare.RED)", "p.A_x(p.A_y.of_z([p.bare.RED]), p.A.of_x(p.make_A.RED))"),
    ),
    "names of what fields hold": Shape(
        "".join(
            ENUM.replace("Color", name)
            for name in ("boolean", "binary_", "f64", "list_f64", "of_A", "map_of_f64")
        )
        + struct(
            "A",
            "flag: {id: 1, type: bool, doc: d}",
            "either: {id: 2, type: boolean, doc: d}",
            "numbers: {id: 3, type: list<double>, doc: d}",
            "more: {id: 4, type: list<list_f64>, doc: d}",
            'table: {id: 5, type: "map<string, f64>", doc: d}',
            "data: {id: 6, type: binary, doc: d}",
        )
        + union(
            "U",
            "x: {id: 1, type: A, doc: d}",
            "y: {id: 2, type: of_A, doc: d}",
            "z: {id: 3, type: map_of_f64, doc: d}",
            "last: {id: 4, type: binary_, doc: d}",
        ),
        ('p.A(True, p.boolean.RED, [0.5], [p.list_f64.RED], {"a": p.f64.RED}, b"x")', "p.U.of_y(p.of_A.RED)"),
    ),
    "a union of enums": Shape(
        ENUM + union("U", "as_x: {id: 1, type: list<Color>, doc: d}"), ("p.U.of_x([p.Color.RED])",)
    ),
    "the smallest and largest numbers": Shape(
        'E:\n  kind: enum\n  since: "8.2"\n  doc: E.\n  values:\n'
        "    LEAST: {value: -2147483648, doc: d}\n    MOST: {value: 2147483647, doc: d}\n"
        + struct("A", "e: {id: 1, type: E, doc: d}", "x: {id: 999, type: E, doc: d}"),
        ("p.A(p.E.LEAST, p.E.MOST)",),
    ),
    "defaults that need escapes": Shape(
        struct(
            "A",
            'data: {id: 1, type: binary, default: "", doc: d}',
            f"text: {{id: 2, type: string, default: {TEXT}, doc: d}}",
            "least: {id: 3, type: i64, default: -9223372036854775808, doc: d}",
            "small: {id: 4, type: double, default: 5e-324, doc: d}",
            "large: {id: 5, type: double, default: 1.7976931348623157e308, doc: d}",
            "minus: {id: 6, type: double, default: -0.0, doc: d}",
            "whole: {id: 7, type: double, default: 100000000000000000000000, doc: d}",
        ),
        ("p.A()", 'p.A(b"\\xff", "")'),
    ),
    "five containers in each other": Shape(
        deep(5),
        ("p.A(*[[]] * 6)", "p.U.of_field_0([[[[[p.Color.RED]]]]])", 'p.U.of_field_3([{"": [{"": []}]}])'),
    ),
    "eight containers in each other": Shape(
        deep(8), ("p.A(*[[], {}] * 3)", "p.U.of_field_0([[[[[[[[p.Color.RED]]]]]]]])")
    ),
    "names of a hundred letters": Shape(
        long_names(100),
        (
            f"p.S{LONG_TYPE}(p.{LONG_TYPE}.{LONG}, None)",
            f"p.U{LONG_TYPE}.of_b{LONG}([[p.S{LONG_TYPE}(p.{LONG_TYPE}.{LONG}, [])]])",
        ),
    ),
}
#: What a C++ compiler may stumble over first; it takes seconds for each.
CPP = [
    "one enum",
    "bools in every container",
    "names of what fields hold",
    "defaults that need escapes",
    "eight containers in each other",
    "names of a hundred letters",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders generated from each shape."""
    folders = {}
    for number, (name, shape) in enumerate(SHAPES.items()):
        folder = tmp_path_factory.mktemp("shape") / f"shape_{number}"
        folder.mkdir()
        (folder / "schema.yaml").write_text(indented(shape.types), encoding="utf-8")
        out = folder / "made"
        assert main(["generate", "--schema", str(folder / "schema.yaml"), "--out", str(out)]) == 0, name
        folders[name] = out
    return folders


@pytest.mark.parametrize("name", SHAPES)
def test_python_imports_and_its_codecs_keep_values(made: dict[str, Path], name: str) -> None:
    package = import_generated(made[name])
    for expression in SHAPES[name].values:
        tree = eval(expression, {"p": package})
        for codec in _codecs(package):
            data = codec.encode(tree)
            assert codec.decode(type(tree), data) == tree
            assert codec.encode(codec.decode(type(tree), data)) == data


def test_nothing_but_an_object_is_read_as_a_struct_or_union(made: dict[str, Path]) -> None:
    """Where no field is demanded, an empty list looks much like an object."""
    for name, shape in SHAPES.items():
        package = import_generated(made[name])
        for cls in {type(eval(expression, {"p": package})) for expression in shape.values}:
            for text in (b"[]", b'""', b"null", b"false", b"0", b'["x"]', b'"x"'):
                with pytest.raises(package.CodecError, match="expected an object"):
                    _codecs(package)[0].decode(cls, text)


def _codecs(package: ModuleType) -> list[Any]:
    names = [f"{package.__name__}.{codec}" for codec in ("json_codec", "thrift_codec")]
    return [__import__(name, fromlist=["encode"]) for name in names]


def test_python_is_clean_as_rendered(made: dict[str, Path], tmp_path: Path) -> None:
    folders = list(map(str, made.values()))
    for letters in range(20, 105, 5):
        (tmp_path / "schema.yaml").write_text(indented(long_names(letters)))
        folders.append(str(tmp_path / f"made_{letters}"))
        assert main(["generate", "--schema", str(tmp_path / "schema.yaml"), "--out", folders[-1]]) == 0
    for command in (["format", "--check"], ["check"]):
        options = ["--config", str(ROOT / "pyproject.toml"), "--no-cache"]
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, *options, *folders], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_layout_gives_way_only_where_names_are_too_long() -> None:
    """Where a line cannot be split, formatter and linter are told; our own schema has no such line."""
    for path in (ROOT / "generated").rglob("*.py"):
        assert "# fmt: off" not in path.read_text(), path


@pytest.mark.parametrize("name", SHAPES)
def test_thrift_compiles(made: dict[str, Path], name: str) -> None:
    out = made[name].parent / "thrift"
    out.mkdir()
    for language in ("py", "cpp"):
        run(["thrift", "-strict", "--gen", language, "-out", out, made[name] / "schema.thrift"])
    run([sys.executable, "-m", "compileall", "-q", out])


@pytest.mark.parametrize(
    "names",
    [CPP, pytest.param([name for name in SHAPES if name not in CPP], marks=pytest.mark.wide)],
    ids=["a few", "all others"],
)
def test_cpp_compiles_without_a_warning(made: dict[str, Path], tmp_path: Path, names: list[str]) -> None:
    """Each header in a file of its own; one run of the compiler for all."""
    sources = []
    for number, name in enumerate(names):
        source = tmp_path / f"shape_{number}.cpp"
        source.write_text(f'#include "{made[name]}/include/pt2wire/schema.h"  // {name}\n')
        sources.append(source)
    run(["g++", "-std=c++17", "-fsyntax-only", *WARNINGS, f"-I{ROOT / 'runtime/include'}", *sources])


#: Each value as Thrift and as JSON, one after the other, in files of these names.
_READS = r"""
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include "pt2wire/json.h"
#include "pt2wire/schema.h"
using namespace pt2wire;
static std::string file(const char* path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
static void check(bool right, int line) {
  if (!right) std::exit(line);
}
int main(int count, char** paths) {
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string thrift = file(paths[i]), json = file(paths[i + 1]);
    const auto tree = decode_compact<A>(Bytes::own(thrift));
    check(encode_compact(*tree) == thrift, __LINE__);
    check(encode_compact(decode_owned<owned::A>(Bytes::own(thrift))) == thrift, __LINE__);
    check(encode_compact(*decode_json<A>(Bytes::own(json))) == thrift, __LINE__);
    check(encode_compact(decode_json_owned<owned::A>(Bytes::own(json))) == thrift, __LINE__);
    check(to_owned(*tree) == *tree, __LINE__);
  }
}
"""


@pytest.mark.parametrize("compiler", ["clang++", pytest.param("g++", marks=pytest.mark.wide)])
@pytest.mark.parametrize("name", ["bools in every container", "as many fields as a struct may have"])
def test_cpp_reads_and_writes(made: dict[str, Path], tmp_path: Path, name: str, compiler: str) -> None:
    """A header that compiles may have decoders that do not; these are made where they are called."""
    package, folder = import_generated(made[name]), made[name] / "include"
    (tmp_path / "reads.cpp").write_text(_READS)
    includes = (f"-I{folder}", f"-I{ROOT / 'runtime/include'}")
    program = tmp_path / "reads"
    run([compiler, "-std=c++17", *WARNINGS, *includes, tmp_path / "reads.cpp", "-o", program])
    paths = []
    for number, expression in enumerate(SHAPES[name].values):
        for codec in _codecs(package):
            paths.append(tmp_path / f"{number}.{codec.__name__.rpartition('.')[2]}")
            paths[-1].write_bytes(codec.encode(eval(expression, {"p": package})))
    thrift_first = [path for pair in zip(paths[1::2], paths[::2], strict=True) for path in pair]
    run([program, *thrift_first])
