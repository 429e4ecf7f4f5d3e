"""The C++ header writes the bytes that Python and Apache write, and compares trees as Python does."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path
from typing import Any

import pytest
from pt2wire.generated import thrift_codec, types

from .helpers import cpp
from .helpers.cpp_trees import trees
from .test_cpp_decode import PROGRAMS, case_of, program

# They share a program that takes long to compile: another process would only wait for it.
pytestmark = pytest.mark.xdist_group("cpp_trees")


def _pair(a: bytes, b: bytes) -> bytes:
    return struct.pack("<I", len(a)) + a + struct.pack("<I", len(b)) + b


def _failures(found: list[cpp.Outcome], expected: list[bytes], cases: list[tuple[str, bytes]]) -> list[Any]:
    return [
        (name, data[:100].hex(), outcome.text[:200])
        for outcome, text, (name, data) in zip(found, expected, cases, strict=True)
        if outcome != (True, text)
    ]


@pytest.mark.parametrize("what", ["encode", "owned", "convert"])
@pytest.mark.parametrize("compiler", cpp.CLANG_AND_SLOW_GCC)
def test_header_writes_the_bytes_that_python_writes(compiler: str, what: str) -> None:
    """Every type, member and edge value, in both storages. TCompact has one form for each, so equal bytes are
    equal values."""
    cases = [case_of(tree) for tree in trees()]
    worker = cpp.tree_worker(compiler) if compiler == "clang++" else cpp.tree_worker(compiler, "-O2")
    assert not _failures(cpp.answers(worker, cases, what), [data for _, data in cases], cases)


@pytest.mark.parametrize("what", ["encode", "owned", "convert"])
def test_header_writes_real_programs_as_python_does(what: str) -> None:
    cases = [case_of(program(name)) for name in PROGRAMS]
    outcomes = cpp.answers(cpp.tree_worker(), cases, what)
    assert not _failures(outcomes, [data for _, data in cases], cases)


def test_comparison_agrees_with_that_of_python() -> None:
    """Each tree with itself, decoded anew, and with its neighbours of the same type. NaN equals nothing."""
    by_type: dict[str, list[bytes]] = {}
    for tree in trees():
        name, data = case_of(tree)
        by_type.setdefault(name, []).append(data)
    cases, expected = [], []
    for name, documents in by_type.items():
        cls = getattr(types, name)
        for a, b in [*zip(documents, documents, strict=True), *itertools.pairwise(documents)]:
            same = thrift_codec.decode(cls, a) == thrift_codec.decode(cls, b)
            cases.append((name, _pair(a, b)))
            expected.append(b"equal" if same else b"different")
    assert expected.count(b"equal") > 500
    assert expected.count(b"different") > 500
    nans = [e for (_, data), e in zip(cases, expected, strict=True) if data[4:].count(b"\xf8\x7f") == 2]
    assert b"different" in nans
    assert not _failures(cpp.answers(cpp.tree_worker(), cases, "compare"), expected, cases)


def test_order_of_a_map_does_not_count_for_equality_but_is_kept_in_bytes() -> None:
    many = {f"key {i}": str(i) for i in range(20)}
    a = types.Node("op", [], [], many)
    b = types.Node("op", [], [], dict(reversed(many.items())))
    data_a, data_b = thrift_codec.encode(a), thrift_codec.encode(b)
    assert a == b
    assert data_a != data_b
    worker = cpp.tree_worker()
    assert cpp.answers(worker, [("Node", _pair(data_a, data_b))], "compare") == [(True, b"equal")]
    assert cpp.answers(worker, [("Node", data_b)], "encode") == [(True, data_b)]


def test_nesting_over_64_is_refused_with_the_path(tmp_path: Path) -> None:
    """A tree that was built in C++: decoding would not give one so deep."""
    source = tmp_path / "deep.cpp"
    source.write_text(_DEEP)
    output = cpp.run([cpp.build(source, *cpp.SANITIZED, *cpp.WARNINGS)]).decode().splitlines()
    assert int(output[0]) > 64
    argument: Any = types.Argument.create(as_none=True)
    for _ in range(63):
        argument = types.Argument.create(as_string_to_argument={"k": argument})
    assert output[1] == thrift_codec.encode(argument).hex()
    step = 'as_string_to_argument["k"]'
    assert output[2] == ".".join([step] * 64) + ": more than 64 structs and unions lie inside each other"
    assert output[3] == "the union Argument has no member"
    assert output[4] == "the union Argument holds the unknown member 900, whose content was skipped"
    assert output[5] == "type: the text is not valid UTF-8"


_DEEP = r"""
#include <cstdio>
#include <string>
#include <vector>
#include "pt2wire/schema.h"
using namespace pt2wire;

template <class T>
void attempt(const T& tree) {
  try {
    for (const char c : encode_compact(tree)) std::printf("%02x", static_cast<unsigned>(c) & 0xff);
    std::printf("\n");
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
}

int main() {
  Arena arena(0, 1 << 20);
  ViewBuilder builder{arena};
  std::vector<Argument> chain(70);
  chain[0].variant().emplace<static_cast<std::size_t>(Argument::Tag::as_none)>(true);
  for (std::size_t i = 1; i != chain.size(); ++i) {
    auto& map = chain[i].variant().emplace<static_cast<std::size_t>(Argument::Tag::as_string_to_argument)>();
    auto* const entry = builder.map(map, 1);
    entry->key = "k";
    entry->value = chain[i - 1];
    builder.finish(map);
  }
  std::printf("%zu\n", chain.size());
  attempt(chain[63]);
  attempt(chain[64]);
  attempt(Argument());
  Argument newer;
  newer.variant().emplace<0>(Unknown{900});
  attempt(newer);
  Device device;
  device.type = "\xff";
  attempt(device);
}
"""
