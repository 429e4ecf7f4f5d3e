"""The C++ target on a schema of its own: defaults of every kind, names taken by C++, recursion, sizes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pt2wire.codegen import cpp as target
from pt2wire.codegen.resolve import load_schema

from .helpers import cpp
from .helpers.schemas import indented

_TYPES = """\
Color:
  kind: enum
  since: "8.2"
  doc: An enum with a negative value.
  values:
    RED: {value: -1, doc: Red., torch: red}
    GREEN: {value: 2, doc: Green.}
Tree:
  kind: union
  since: "8.2"
  doc: Recursive, with members that have names which every union uses itself.
  fields:
    tag: {id: 1, type: i64, doc: A number.}
    visit: {id: 2, type: "map<string, list<Tree>>", doc: Trees in trees.}
    unknown: {id: 3, type: Wide, doc: Larger than a union can hold inside.}
Leaf:
  kind: struct
  since: "8.2"
  doc: Small.
  fields:
    x: {id: 1, type: i64, doc: A number.}
Wide:
  kind: struct
  since: "8.2"
  doc: Five texts and defaults of every kind.
  fields:
    a: {id: 1, type: string, doc: Required.}
    b: {id: 2, type: string, default: 'quote " and \\\\ and ß', doc: Text with default.}
    c: {id: 3, type: i64, default: -9223372036854775808, doc: The least number.}
    d: {id: 4, type: double, default: 0.1, doc: A double.}
    e: {id: 5, type: bool, default: true, doc: A flag.}
    f: {id: 6, type: Color, default: RED, doc: An enum.}
    g: {id: 7, type: list<i64>, default: [], doc: A list.}
    h: {id: 8, type: "map<string, Tree>", default: {}, doc: A map.}
    i: {id: 9, type: optional Leaf, default: null, doc: An optional struct.}
    j: {id: 40, type: optional double, default: null, doc: An optional double.}
Blob:
  kind: struct
  since: "8.2"
  doc: Bytes that are no text.
  fields:
    one: {id: 1, type: binary, doc: Required.}
    many: {id: 2, type: list<binary>, doc: In a list.}
    named: {id: 3, type: "map<string, binary>", doc: In a map.}
    either: {id: 4, type: Either, doc: In a union.}
    maybe: {id: 5, type: optional binary, default: null, doc: Optional.}
    none: {id: 6, type: binary, default: "", doc: With its only default.}
Either:
  kind: union
  since: "8.2"
  doc: Bytes or text.
  fields:
    bytes: {id: 1, type: binary, doc: Bytes.}
    text: {id: 2, type: string, doc: Text.}
"""

_PROGRAM = r"""
#include <cstdio>
#include "dump.h"
#include "pt2wire/json.h"
using namespace pt2wire;
int main() {
  const std::string bytes("\x18\x01x\x00", 4);
  const auto wide = decode_compact<Wide>(Bytes::own(bytes));
  std::string out;
  dumping::dump(out, *wide);
  std::printf("%s\n%zu %d\n", out.c_str(), sizeof(Tree), static_cast<int>(wide->f));
  const auto tree = decode_compact<Tree>(Bytes::own(std::string("\x16\x0a\x00", 3)));
  std::printf("%d %d\n", tree->tag() == Tree::Tag::tag_, static_cast<int>(tree->tag_()));
  std::string data;
  for (int c; (c = std::getchar()) != EOF;) data += static_cast<char>(c);
  const auto blob = decode_compact<Blob>(Bytes::borrow(data.data(), data.size()));
  out.clear();
  dumping::dump(out, *blob);
  auto copy = to_owned(*blob);
  const bool same = encode_compact(*blob) == data && encode_compact(copy) == data;
  std::printf("%s\n%d", out.c_str(), copy == *blob && same);
  std::printf("%d\n", encode_compact(decode_owned<owned::Blob>(blob.bytes())) == data);
  const std::string json =
      R"({"one":"/w==","many":["","AA=="],"named":{"k":"ww=="},"either":{"bytes":"gA=="},"maybe":null})";
  std::printf("%d", encode_compact(*decode_json<Blob>(Bytes::own(json))) == data);
  std::printf("%d\n", encode_compact(decode_json_owned<owned::Blob>(Bytes::own(json))) == data);
  for (const char* text : {"A", "AA", "AAA", "=", "====", "A===", "AA=A", "AA==AA==", "AA-_", "AAA=\\n"}) {
    try {
      decode_json<Either>(Bytes::own("{\"bytes\":\"" + std::string(text) + "\"}"));
      std::printf("not refused: %s\n", text);
    } catch (const Error& error) {
      const bool as_expected = error.reason().find("expected bytes in Base64") == 0;
      if (!as_expected) std::printf("%s\n", error.what());
    }
  }
  copy.none.push_back(1);
  std::printf("%d\n", copy == *blob);
}
"""


@pytest.fixture
def header(tmp_path: Path) -> Path:
    """The header of the schema above, in a folder of its own."""
    source = tmp_path / "schema.yaml"
    source.write_text(indented(_TYPES), encoding="utf-8")
    path = tmp_path / "pt2wire" / "schema.h"
    path.parent.mkdir()
    (text,) = target.outputs(load_schema(source)).values()
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("compiler", cpp.COMPILERS)
def test_defaults_and_names_of_a_schema_of_its_own(header: Path, compiler: str, tmp_path: Path) -> None:
    source = tmp_path / "sample.cpp"
    source.write_text(_PROGRAM)
    program = tmp_path / "sample"
    runtime = cpp.ROOT / "runtime" / "include"
    includes = [f"-I{path}" for path in (tmp_path, runtime, cpp.SOURCES)]
    cpp.run([compiler, "-std=c++17", *cpp.WARNINGS, *includes, source, "-o", program])
    text = "quote \\x22 and \\x5c\\x5c and \\xc3\\x9f"
    dump = (
        f'Wide{{a="x",b="{text}",c=-9223372036854775808,d=3fb999999999999a,e=true,'
        "f=-1:RED,g=[],h={},i=-,j=-,}"
    )
    blob = (
        'Blob{one="\\xff",many=["","\\x00",],named={"k":"\\xc3",},'
        'either=Either.bytes("\\x80"),maybe=-,none="",}'
    )
    parts = (
        *(b"\x18\1\xff", b"\x19\x28\0\1\0", b"\x1b\1\x88\1k\1\xc3"),
        *(b"\x1c\x18\1\x80\0", b"\x28\0", b"\0"),
    )
    data = b"".join(parts)
    assert cpp.run([program], data).decode() == f"{dump}\n24 -1\n1 5\n{blob}\n11\n11\n0\n"


def test_members_that_are_too_large_lie_beside_the_union(header: Path) -> None:
    union = re.search(r"class Tree : public Union<(.*)> \{", header.read_text())
    assert union
    assert union[1] == "Tree<S>, std::int64_t, Map<S, List<S, Tree<S>>>, Indirect<S, Wide<S>>"


def test_shortest_encodings_are_counted() -> None:
    """A wrong number would refuse honest lists, or allocate for lists that cannot be."""
    header = (cpp.ROOT / "generated" / "include" / "pt2wire" / "schema.h").read_text()
    sizes = dict(re.findall(r"Traits<basic::(\w+)<S>> \{.*?min_size = (\d+);", header, re.DOTALL))
    assert sizes["TensorArgument"] == "3"  # header, length, stop
    assert sizes["Argument"] == "2"  # header with a bool in it, stop
    assert sizes["RangeConstraint"] == "1"  # all optional
    assert sizes["ComplexValue"] == "19"  # two headers and doubles, stop
    assert sizes["NamedArgument"] == "6"
