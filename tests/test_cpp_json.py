"""The C++ header reads JSON as Python does: the same trees, both storages, and nothing else."""

from __future__ import annotations

import json
import random
import resource
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pt2wire.generated import CodecError, json_codec, thrift_codec, types
from torch._export.serde.serialize import serialize

from .helpers import cpp
from .helpers.archives import record, torch_saved
from .helpers.families import FAMILIES
from .helpers.models import MODELS
from .helpers.vectors import newer, vectors
from .test_cpp_decode import PROGRAMS, program
from .test_json_codec import MUSEUM, argument

# They share a program that takes long to compile: another process would only wait for it.
pytestmark = pytest.mark.xdist_group("cpp_json")


def _answers(cases: list[tuple[str, bytes]]) -> list[cpp.Outcome]:
    return cpp.answers(cpp.json_worker(), cases)


def _answer(name: str, text: bytes) -> tuple[bool, str]:
    outcome = _answers([(name, text)])[0]
    return outcome.ok, outcome.text.decode(errors="replace")


@pytest.mark.parametrize("ascii_only", [True, False])
def test_the_vectors_are_read_in_both_storages(ascii_only: bool) -> None:
    rows = list(vectors())
    cases = [(row.type, json.dumps(row.json, ensure_ascii=ascii_only).encode()) for row in rows]
    assert _answers(cases) == [(True, row.compact) for row in rows]


def test_fields_of_newer_writers_are_skipped_and_counted() -> None:
    rows = [row for row in newer() if row.kept is not None]
    assert len(rows) >= 8
    outcomes = _answers([(row.type, json.dumps(row.json).encode()) for row in rows])
    assert outcomes == [(True, row.kept.compact + b" skipped 1") for row in rows if row.kept]


def test_members_of_newer_writers_are_refused_by_name() -> None:
    rows = [row for row in newer() if row.what == "member"]
    assert len(rows) >= 4
    for outcome in _answers([(row.type, json.dumps(row.json).encode()) for row in rows]):
        assert not outcome.ok
        assert b'has no member "as_future"; a newer writer may have one' in outcome.text


@pytest.mark.parametrize("indent", [None, 2])
def test_programs_that_pytorch_serialized_are_read(indent: int | None) -> None:
    texts = [serialize(MODELS[name].program()).exported_program for name in PROGRAMS]
    trees = [thrift_codec.encode(json_codec.decode(types.ExportedProgram, text)) for text in texts]
    if indent is not None:
        texts = [json.dumps(json.loads(text), indent=indent).encode() for text in texts]
    assert _answers([("ExportedProgram", text) for text in texts]) == [(True, tree) for tree in trees]


#: What PyTorch saves as pickles, which are left out.
_PICKLED = {
    "weights_of_subclasses": ["weight", "same", "pair", "marked", "hidden"],
    "weights_of_subclasses_that_share_memory": ["pair", "second", "nested", "marked", "hidden"],
}


#: C++ and Thrift have no such integers.
_WIDE = "integers_beyond_64_bits"


@pytest.mark.wide
@pytest.mark.parametrize("name", [name for name in [*MODELS, *FAMILIES] if name != _WIDE])
def test_what_pytorch_saves_is_read(name: str) -> None:
    """The whole of its archive: the tree is that of Python's reader."""
    case = MODELS.get(name) or FAMILIES[name]
    data = torch_saved(case.program())
    text = record(data, "models/model.json")
    tree = json_codec.decode(types.ExportedProgram, text)
    assert _answers([("ExportedProgram", text)]) == [(True, thrift_codec.encode(tree))]
    answer = f"model json {len(text)} {len(tree.graph_module.graph.nodes)}\n"
    cases = [(kind, data) for kind in ("program", "weights", "constants")]
    outcomes = cpp.answers(cpp.archive_reader(), cases)
    assert outcomes[0] == (True, answer.encode())
    assert [outcome.ok for outcome in outcomes] == [True] * 3
    lines = [line for outcome in outcomes[1:] for line in outcome.text.decode().splitlines()]
    left_out = [
        line.split(" ")[0] for line in lines if line.endswith(" is a pickle, which only Python can open")
    ]
    assert left_out == _PICKLED.get(name, [])


def test_integers_that_cpp_cannot_hold_are_refused_where_they_are() -> None:
    data = torch_saved(MODELS[_WIDE].program())
    text = record(data, "models/model.json")
    place = text.index(b"1180591620717411303424")
    expected = (
        "graph_module.graph.inputs[1].as_int: expected a 64-bit integer, found 1180591620717411303424 "
        f"(at byte {place})"
    )
    assert _answer("ExportedProgram", text) == (False, expected)
    [outcome] = cpp.answers(cpp.archive_reader(), [("program", data)])
    assert (outcome.ok, outcome.text.decode()) == (False, f"<memory>:models/model.json: {expected}")


def test_what_pytorchs_own_cpp_writes_is_read() -> None:
    """nlohmann-json with torch's types read our text, and we what they write: its keys are sorted."""
    cases, expected = [], []
    for name in PROGRAMS:
        text = json_codec.encode(program(name))
        theirs = torch._C._export.serialize_exported_program(
            torch._C._export.deserialize_exported_program(text.decode())
        )
        cases.append(("ExportedProgram", theirs.encode()))
        expected.append(
            (True, thrift_codec.encode(json_codec.decode(types.ExportedProgram, theirs.encode())))
        )
    assert _answers(cases) == expected


# Numbers


def _doubles() -> Iterator[str]:
    chance = random.Random(7)
    yield from ("0.0", "-0.0", "0", "-0", "1", "1E2", "1e+2", "1e-2", "4.9e-324", "2.2250738585072011e-308")
    yield from (
        "1e-400",
        "-1e-400",
        "0.0e999",
        "1.7976931348623157e308",
        "9007199254740992",
        "-9007199254740992",
    )
    yield from ("0.1000000000000000055511151231257827021181583404541015625", "1" + "0" * 400 + "e-400")
    yield "0." + "0" * 400 + "1e401"
    for bits in np.random.default_rng(7).integers(0, 2**63, 500, dtype=np.uint64):
        value = struct.unpack("<d", struct.pack("<Q", int(bits) | chance.getrandbits(1) << 63))[0]
        if np.isfinite(value):
            yield repr(value)
            yield f"{value:.17e}"
            yield f"{value:.30f}"


def test_doubles_are_rounded_as_in_python() -> None:
    texts = list(_doubles())
    outcomes = _answers([("Argument", b'{"as_float": %s}' % text.encode()) for text in texts])
    for text, outcome in zip(texts, outcomes, strict=True):
        tree = json_codec.decode(types.Argument, b'{"as_float": %s}' % text.encode())
        assert outcome == (True, thrift_codec.encode(tree)), text


_LOCALE = r"""
#include <clocale>
#include <iostream>
#include <locale>
#include "pt2wire/json.h"
struct Commas : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};
int main() {
  std::locale::global(std::locale(std::locale::classic(), new Commas));
  const std::pair<const char*, double> cases[] = {{"1.5", 1.5}, {"12345.25", 12345.25}, {"1e-320", 1e-320}};
  for (const auto& [text, value] : cases) {
    const auto json = "{\"as_float\":" + std::string(text) + "}";
    std::cout << (pt2wire::decode_json<pt2wire::Argument>(pt2wire::Bytes::own(json))->as_float() == value);
  }
}
"""


@pytest.mark.parametrize(
    "before", ["", "#include <charconv>\n#undef __cpp_lib_to_chars\n"], ids=["fast", "slow"]
)
def test_doubles_are_read_whatever_the_locale(before: str, tmp_path: Path) -> None:
    """Also by libraries without std::from_chars for them."""
    source = tmp_path / "locale.cpp"
    source.write_text(before + _LOCALE)
    assert cpp.run([cpp.build(source, "-Wall", "-Wextra", "-Werror")]) == b"111"


# What is refused

#: Beside those of Python's museum: what is JSON for some readers, and what only this reader tells apart.
EXHIBITS: dict[str, tuple[str, bytes, str]] = {
    "a comma behind the last field": ("Device", b'{"type": "cpu",}', "expected a string, found }"),
    "a comma behind the last item": (
        "Argument",
        b'{"as_ints": [1,]}',
        "as_ints[1]: expected a 64-bit integer, found ]",
    ),
    "no comma": ("Argument", b'{"as_ints": [1 2]}', 'as_ints: expected "," or "]", found 2'),
    "no colon": ("Device", b'{"type" "cpu"}', 'type: expected ":", found the string "cpu"'),
    "the wrong bracket": ("Argument", b'{"as_ints": [1}}', 'as_ints: expected "," or "]", found }'),
    "a comment": ("Device", b'{/* */"type": "cpu"}', "expected a string, found /*"),
    "single quotes": ("Device", b"{'type': 'cpu'}", "expected a string, found 'type'"),
    "a word cut short": ("Argument", b'{"as_bool": tru}', "as_bool: expected true or false, found tru"),
    "a word with a tail": ("Argument", b'{"as_bool": truer}', 'expected "," or "}", found r'),
    "a leading zero": ("SymInt", b'{"as_int": 012}', 'expected "," or "}", found 12'),
    "a plus": ("SymInt", b'{"as_int": +1}', "as_int: expected a 64-bit integer, found +1"),
    "a sign alone": ("SymInt", b'{"as_int": -}', "as_int: expected a 64-bit integer, found -"),
    "hexadecimal": ("SymInt", b'{"as_int": 0x1}', 'expected "," or "}", found x1'),
    "a point without digits": ("Argument", b'{"as_float": 1.}', "found 1."),
    "an exponent without digits": ("Argument", b'{"as_float": 1e}', "found 1e"),
    "a line break in a string": (
        "Device",
        b'{"type": "a\nb"}',
        "type: a string holds the control character 10 (at byte 11)",
    ),
    "NUL in a string": (
        "Device",
        b'{"type": "a\0b"}',
        "type: a string holds the control character 0 (at byte 11)",
    ),
    "NUL as a blank": ("Device", b'{"type":\0"cpu"}', "type: expected a string, found \\x00"),
    "NUL behind the end": (
        "Device",
        b'{"type": "cpu"}\0',
        "1 bytes follow the end of the value (at byte 15)",
    ),
    "a blank of Unicode": (
        "Device",
        '{"type":\u00a0"cpu"}'.encode(),
        "type: expected a string, found \\xc2\\xa0",
    ),
    "an unknown escape": (
        "Device",
        rb'{"type": "a\x41"}',
        "type: the escape \\x has no meaning in JSON (at byte 11)",
    ),
    "an escape cut short": ("Device", b'{"type": "\\', "type: the text ends inside a string (at byte 11)"),
    "few hexadecimal digits": (
        "Device",
        rb'{"type": "\u12"}',
        "type: expected four hexadecimal digits behind \\u",
    ),
    "a sign among the digits": (
        "Device",
        rb'{"type": "\u-123"}',
        "type: expected four hexadecimal digits behind \\u",
    ),
    "two high halves": ("Device", rb'{"type": "\ud800\ud800"}', "type: half of a surrogate pair"),
    "a low half alone": ("Device", rb'{"type": "\udc00"}', "type: half of a surrogate pair"),
    "halves apart": ("Device", rb'{"type": "\ud83d \ude00"}', "type: half of a surrogate pair"),
    "half in UTF-8": ("Device", b'{"type": "\xed\xa0\x80"}', "the text is not valid UTF-8 (at byte 10)"),
    "a string without end": ("Device", b'{"type": "cpu', "type: the text ends inside a string (at byte 13)"),
    "an object without end": ("Device", b'{"type": "cpu"', 'expected "," or "}", found the end of the text'),
    "a key twice, once escaped": (
        "Device",
        rb'{"type": "cpu", "typ\u0065": "cpu"}',
        "type: the field is there twice",
    ),
    "a key of a map twice, once escaped": (
        "Node",
        rb'{"target": "t", "inputs": [], "outputs": [], "metadata": {"k": "", "\u006b": ""}}',
        'metadata: the map has the key "k" twice (at byte 58)',
    ),
    "an unknown key twice": (
        "Device",
        b'{"a": 1, "type": "cpu", "a": 1}',
        'the object has the key "a" twice',
    ),
    "a key twice in what is skipped": (
        "Device",
        rb'{"type": "cpu", "core": [{"a": 1, "b": {"a": 0}, "\u0061": 2}]}',
        'the object has the key "a" twice',
    ),
    "no JSON in what is skipped": (
        "Device",
        b'{"type": "cpu", "core": [1, nul]}',
        "expected a value, found nul",
    ),
    "bits that no byte needs": (
        "GraphConstant",
        b'{"name": "a", "target": "b", "data": "AAB="}',
        "data: expected bytes in Base64, whose last digit holds no more than they need",
    ),
    "an infinity by another name": ("Argument", b'{"as_float": "inf"}', 'found the string "inf"'),
    "an enum beyond 32 bits": (
        "Argument",
        b'{"as_layout": 4294967303}',
        "as_layout: the enum has no value 4294967303",
    ),
    "a path through everything": (
        "Graph",
        b'{"nodes": [{"inputs": [{"arg": {"as_string_to_argument": {"k\\n": {"as_tensor": {}}}}}]}]}',
        'nodes[0].inputs[0].arg.as_string_to_argument["k\\x0a"].as_tensor: '
        "the struct TensorArgument lacks name (at byte 81)",
    ),
    "arrays in what is skipped": (
        "Device",
        b'{"type": "cpu", "core": %s}' % (b"[" * 600 + b"]" * 600),
        "more than 512 arrays and objects lie inside each other (at byte 535)",
    ),
}


def test_every_exhibit_is_refused_with_its_message() -> None:
    outcomes = _answers([(name, text) for name, text, _ in EXHIBITS.values()])
    wrong = {
        name: outcome.text.decode(errors="replace")
        for (name, (_, _, message)), outcome in zip(EXHIBITS.items(), outcomes, strict=True)
        if outcome.ok or message not in outcome.text.decode(errors="replace")
    }
    assert not wrong


def test_what_python_refuses_is_refused() -> None:
    """But for unknown fields, which the header skips and counts, as it does in Thrift."""
    outcomes = _answers([(cls.__name__, text) for cls, text, _ in MUSEUM.values()])
    accepted = [name for name, outcome in zip(MUSEUM, outcomes, strict=True) if outcome.ok]
    assert accepted == ["an unknown field"]


def test_nesting_is_bounded_as_in_python() -> None:
    texts = [b'{"as_string_to_argument":{"k":' * n + b'{"as_none":true}' + b"}}" * n for n in (63, 127, 128)]
    deep_enough, too_deep_for_thrift, too_deep = _answers([("Argument", text) for text in texts])
    assert deep_enough == (True, thrift_codec.encode(argument(64)))
    assert b"more than 64 structs and unions" in too_deep_for_thrift.text  # on writing
    assert too_deep.text.endswith(b"more than 128 structs and unions lie inside each other (at byte 3840)")


def test_every_truncation_is_refused() -> None:
    text = json.dumps(json.loads(json_codec.encode(program("nested_containers")))).encode()
    sizes = [*range(0, len(text), 37), len(text)]
    outcomes = _answers([("ExportedProgram", text[:size]) for size in sizes])
    assert [outcome.ok for outcome in outcomes] == [size == len(text) for size in sizes]


def _mutations(count: int) -> Iterator[tuple[str, bytes]]:
    chance = random.Random(5)
    rows = [row for row in vectors() if 30 < len(row.compact) < 500]
    tokens = [
        b'"',
        b"{}",
        b"[]",
        b"null",
        b"1",
        b"-",
        b"true",
        b"1e999",
        b",",
        b":",
        b" ",
        b"\\",
        b'"a":1,',
        b"\xc3\xa9",
    ]
    for _ in range(count):
        row = chance.choice(rows)
        text = bytearray(json.dumps(row.json).encode())
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            at = chance.randrange(len(text) + 1)
            text[at : at + chance.randrange(3)] = chance.choice([*tokens, bytes([chance.randrange(256)])])
        yield row.type, bytes(text)


def test_mutated_text_gives_an_error_or_the_tree_that_python_reads() -> None:
    cases = list(_mutations(4000))
    accepted = 0
    for (name, text), outcome in zip(cases, _answers(cases), strict=True):
        expected: bytes | None = None
        unknown: list[str] = []
        try:
            tree = json_codec.decode(getattr(types, name), text, unknown=unknown)
            expected = thrift_codec.encode(tree) + (b" skipped %d" % len(unknown) if unknown else b"")
        except CodecError:
            pass
        assert outcome.ok == (expected is not None), (name, text, outcome)
        assert expected is None or outcome.text == expected, (name, text)
        accepted += outcome.ok
    assert 200 < accepted < 3800


# What it costs


def _flood(item: bytes, count: int) -> bytes:
    return b'{"as_graph": {"graph": {"nodes": [' + b",".join([item] * count) + b"]}}}"


#: A megabyte each of what takes most memory for its bytes, and what is said of it.
FLOODS: dict[str, tuple[bytes, str]] = {
    "empty structs": (
        _flood(b"{}", 340_000),
        "as_graph.graph.nodes[0]: the struct Node lacks target, inputs, outputs, metadata (at byte 36)",
    ),
    "arrays": (_flood(b"[]", 340_000), "as_graph.graph.nodes[0]: expected an object, found an array"),
    "empty lists": (b'{"as_int_lists":[' + b"[]," * 330_000 + b"[]]}", ""),
    "commas": (b'{"as_ints":[' + b"," * 1_000_000 + b"]}", "as_ints[0]: expected a 64-bit integer, found ,"),
    "integers": (b'{"as_ints":[' + b"1," * 500_000 + b"1]}", ""),
    "unknown keys": (
        b'{"as_device": {"type": "cpu", ' + b",".join([b'"":0'] * 200_000) + b"}}",
        "as_device: the document needs more memory than its size allows",
    ),
    "unknown arrays": (b'{"as_device": {"type": "cpu", "a": [' + b"[]," * 330_000 + b"1]}}", ""),
    "brackets": (b"[" * 1_000_000, "more than 512 arrays and objects lie inside each other"),
    "escapes": (b'{"as_string": "' + b"\\n" * 500_000 + b'"}', ""),
}

_DECODE = r"""
#include <fstream>
#include <iostream>
#include <iterator>
#include "pt2wire/json.h"
int main(int, char** argv) {
  std::ifstream file(argv[1], std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto bytes = pt2wire::Bytes::borrow(text.data(), text.size());
  try {
    if (*argv[2] == 'v') pt2wire::decode_json<pt2wire::Argument>(bytes);
    pt2wire::OwnedOptions options;
    options.drop_unknown = true;
    if (*argv[2] == 'o') pt2wire::decode_json_owned<pt2wire::owned::Argument>(bytes, options);
  } catch (const pt2wire::Error& error) {
    std::cout << error.what();
  }
}
"""


@pytest.mark.parametrize("flood", FLOODS)
def test_a_hostile_megabyte_takes_less_than_64_mib(flood: str, tmp_path: Path) -> None:
    source = tmp_path / "decode.cpp"
    source.write_text(_DECODE)
    decode = cpp.build(source, *cpp.WARNINGS)
    text, message = FLOODS[flood]
    file = tmp_path / "flood.json"
    file.write_bytes(text)
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (64 << 20, 64 << 20))  # noqa: E731
    for storage in ("view", "owned"):
        done = subprocess.run(
            [decode, file, storage], capture_output=True, text=True, preexec_fn=limit, check=True, timeout=60
        )
        assert done.stdout == "" if message == "" else message in done.stdout


def test_owned_trees_refuse_unknown_fields_unless_told(tmp_path: Path) -> None:
    source = tmp_path / "options.cpp"
    source.write_text(
        '#include <iostream>\n#include "pt2wire/json.h"\nusing namespace pt2wire;\nint main() try {\n'
        '  decode_json_owned<owned::Device>(Bytes::own(std::string(R"({"type":"cpu","core":1})")));\n'
        "} catch (const Error& error) { std::cout << error.what(); }\n"
    )
    found = cpp.run([cpp.build(source)]).decode()
    assert found.startswith("1 fields are unknown to this header, and would be lost if the tree were written")


_LIMITS = r"""
#include <iostream>
#include "pt2wire/json.h"
using namespace pt2wire;
int main() {
  const std::string text = R"({"as_int_lists": [[1, 2, 3], [4, 5, 6]]})";
  for (const std::size_t memory : {15, 40, 79, 111}) {
    try {
      decode_json<Argument>(Bytes::borrow(text.data(), text.size()), {0, memory});
    } catch (const Error& error) {
      std::cout << memory << " " << error.path() << " " << error.offset() << "\n";
    }
  }
}
"""


def test_what_goes_over_the_limits_is_named_by_its_place_in_the_text(tmp_path: Path) -> None:
    source = tmp_path / "limits.cpp"
    source.write_text(_LIMITS)
    found = cpp.run([cpp.build(source)]).decode().splitlines()
    nowhere = 2**64 - 1  # there is no memory for the sizes of lists, then none for the root
    assert found == [f"15  {nowhere}", f"40  {nowhere}", "79 as_int_lists 18", "111 as_int_lists[1] 30"]


def test_reading_json_takes_little_memory(tmp_path: Path) -> None:
    text: Any = serialize(MODELS["many_layers"].program()).exported_program
    file = tmp_path / "program.json"
    file.write_bytes(text)
    cost = {name: int(number) for name, number in cpp.costs(file, "json").items()}
    assert cost["nodes"] > 50
    assert cost["allocations"] <= 20
    assert cost["peak"] <= 1.5 * cost["input"]
    assert cost["left"] == 0
