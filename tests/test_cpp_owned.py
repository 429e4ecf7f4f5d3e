"""Owned storage: trees that a program builds, edits and writes; hostile bytes get what View gives them."""

from __future__ import annotations

import re
import resource
import subprocess
from pathlib import Path

import pytest
from pt2wire.generated import thrift_codec, types

from .helpers import cpp
from .helpers.cpp_trees import trees
from .test_cpp_decode import case_of, program
from .test_cpp_hostile import MUSEUM, mutations

_EDIT = r"""
#include <iostream>
#include <iterator>
#include <string>
#include "pt2wire/schema.h"
using namespace pt2wire;
using Tag = owned::Argument::Tag;

int main() {
  static_assert(sizeof(Argument) == 40 && sizeof(owned::Argument) <= 80);
  const std::string bytes((std::istreambuf_iterator<char>(std::cin)), {});
  const auto document = decode_compact<ExportedProgram>(Bytes::borrow(bytes.data(), bytes.size()));
  auto program = to_owned(*document);
  auto& graph = program.graph_module.graph;
  // In place, by assignment, by adding, by erasing.
  for (auto& input : graph.nodes.at(0).inputs) {
    if (auto* const tensor = input.arg.get_if<Tag::as_tensor>()) tensor->name += "_renamed";
  }
  owned::Node node;
  node.target = "torch.ops.aten.relu.default";
  node.inputs.push_back({"self", owned::Argument::make<Tag::as_tensor>({"x"}), {}});
  node.inputs.back().arg.visit([](auto& value) {
    if constexpr (std::is_same_v<decltype(value), owned::TensorArgument&>) value.name = "y";
  });
  node.outputs.emplace_back().emplace<Tag::as_ints>({1, -2});
  auto& inner = node.outputs.emplace_back().emplace<Tag::as_graph>();
  inner.name = "true_graph";
  inner.graph.is_single_tensor_return = true;
  node.outputs.push_back(node.outputs.back());
  inner.name = "gone with its node";
  node.metadata["z"] = "1";
  node.metadata["a"] = "2";
  node.metadata["gone"] = "3";
  node.metadata.erase("gone");
  node.metadata.each([](const std::string& key, std::string& value) { value += key; });
  graph.nodes.insert(graph.nodes.begin(), node);
  program.verifiers.assign(1, "TRAINING");
  if (program == *document || *document == program) return 3;
  const std::string written = encode_compact(program);
  if (decode_owned<owned::ExportedProgram>(Bytes::own(written)) != program) return 4;
  std::cout << written;
}
"""


def test_an_edited_program_is_what_python_edits(tmp_path: Path) -> None:
    tree = program("many_layers")
    data = thrift_codec.encode(tree)
    source = tmp_path / "edit.cpp"
    source.write_text(_EDIT)
    written = cpp.run([cpp.build(source, *cpp.SANITIZED, *cpp.WARNINGS)], data)
    expected = thrift_codec.decode(types.ExportedProgram, data)
    graph = expected.graph_module.graph
    for named in graph.nodes[0].inputs:
        if named.arg.type == "as_tensor":
            named.arg.value.name += "_renamed"
    argument = types.Argument.create
    inner = types.Graph([], [], [], {}, {}, {}, True)
    outputs = [
        argument(as_ints=[1, -2]),
        argument(as_graph=types.GraphArgument("gone with its node", inner)),
        argument(as_graph=types.GraphArgument("true_graph", inner)),
    ]
    inputs = [types.NamedArgument("self", argument(as_tensor=types.TensorArgument("y")))]
    node = types.Node("torch.ops.aten.relu.default", inputs, outputs, {"z": "1z", "a": "2a"})
    graph.nodes.insert(0, node)
    expected.verifiers = ["TRAINING"]
    assert thrift_codec.decode(types.ExportedProgram, written) == expected


_MAP = r"""
#include <cassert>
#include <iostream>
#include <map>
#include <string>
#include "pt2wire/owned.h"
using namespace pt2wire;

template <class F>
void refused(F&& f) {
  try {
    f();
    std::cout << "not refused\n";
  } catch (const Error& error) {
    std::cout << error.what() << "\n";
  }
}

int main() {
  FlatMap<int> map;
  std::map<std::string, int> model;
  std::vector<std::string> order;
  std::uint32_t random = 1;
  for (int step = 0; step != 4000; ++step) {
    random = random * 1664525 + 1013904223;
    const std::string key = "key " + std::to_string((random >> 8) % (step < 2000 ? 300 : 20));
    if ((random >> 28) < 6) {
      const bool there = model.erase(key) != 0;
      if (map.erase(key) != there) return 3;
      if (there) order.erase(std::find(order.begin(), order.end(), key));
    } else {
      if (model.count(key) == 0) order.push_back(key);
      map[key] = model[key] = step;
    }
    if (map.size() != model.size()) return 4;
    std::size_t i = 0;
    for (const auto& [found, value] : map) {
      if (found != order[i++] || value != model.at(found) || map.at(found) != value) return 5;
    }
    if (map.contains(key) != (model.count(key) != 0)) return 6;
  }
  auto copy = map;
  const auto moved = std::move(map);
  for (const auto& [key, value] : moved) {
    if (copy.at(key) != value) return 7;
  }
  copy.clear();
  if (!copy.empty() || copy.contains("key 1")) return 8;
  copy["a\n"] = 1;
  ++copy.at("a\n");
  std::cout << moved.size() << " " << copy.at("a\n") << "\n";
  refused([&] { copy.at("b\n"); });
}
"""


def test_the_map_keeps_order_and_finds_keys_like_a_map_of_the_standard(tmp_path: Path) -> None:
    source = tmp_path / "map.cpp"
    source.write_text("#include <algorithm>\n" + _MAP)
    lines = cpp.run([cpp.build(source, *cpp.SANITIZED, *cpp.WARNINGS)]).decode().splitlines()
    assert lines[0].endswith(" 2")
    assert int(lines[0].split()[0]) > 0
    assert lines[1:] == ['the map has no key "b\\x0a"']


def test_owned_storage_refuses_what_view_refuses() -> None:
    """With the same messages. The one difference: what exceeds the memory that a document may take."""
    cases = [(exhibit.type, exhibit.data) for exhibit in MUSEUM]
    outcomes = cpp.answers(cpp.tree_worker(), cases, "owned")
    for exhibit, outcome in zip(MUSEUM, outcomes, strict=True):
        assert not outcome.ok, exhibit.name
        assert re.search(exhibit.message, outcome.text.decode()), (exhibit.name, outcome.text)


def test_owned_storage_agrees_with_view_on_mutated_bytes() -> None:
    """The same tree, or the same message."""
    made = [tree for tree in trees() if isinstance(tree, types.Struct)]
    seeds = [case for tree in made if 20 < len((case := case_of(tree))[1]) < 2000]
    cases = list(mutations(seeds, 4000))
    worker = cpp.tree_worker()
    view = cpp.answers(worker, cases, "encode")
    assert cpp.answers(worker, cases, "owned") == view
    assert 200 < sum(outcome.ok for outcome in view) < 3800


_OPTIONS = r"""
#include <fstream>
#include <iostream>
#include <iterator>
#include "pt2wire/schema.h"
using namespace pt2wire;

int main(int, char** argv) {
  std::ifstream file(argv[1], std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  OwnedOptions options;
  options.drop_unknown = std::string(argv[2]) == "drop";
  try {
    const auto graph = decode_owned<owned::Graph>(Bytes::borrow(bytes.data(), bytes.size()), options);
    std::cout << encode_compact(graph).size() << " bytes\n";
  } catch (const Error& error) {
    std::cout << error.what() << "\n";
  }
}
"""


@pytest.fixture
def options_program(tmp_path: Path) -> Path:
    source = tmp_path / "options.cpp"
    source.write_text(_OPTIONS)
    return cpp.build(source, *cpp.WARNINGS)


def test_unknown_fields_are_refused_unless_dropped(options_program: Path, tmp_path: Path) -> None:
    data = thrift_codec.encode(types.Graph([], [], [], {}, {}, {}))
    newer = tmp_path / "newer.compact"
    newer.write_bytes(data[:-1] + b"\x06\x88\x0e\x02\x06\x8a\x0e\x02\x00")  # fields 900 and 901, i64, 1
    found = cpp.run([options_program, newer, "keep"]).decode()
    assert found.startswith("2 fields are unknown to this header, and would be lost if the tree were written")
    assert cpp.run([options_program, newer, "drop"]).decode() == f"{len(data)} bytes\n"


def test_a_hostile_megabyte_takes_less_than_64_mib(options_program: Path, tmp_path: Path) -> None:
    count = 500_000
    varint = bytes([count & 0x7F | 0x80, count >> 7 & 0x7F | 0x80, count >> 14])
    flood = tmp_path / "flood.compact"
    flood.write_bytes(b"\xa9\xfc" + varint + b"\xa1\0" * count)
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (64 << 20, 64 << 20))  # noqa: E731
    done = subprocess.run([options_program, flood, "keep"], capture_output=True, preexec_fn=limit, check=True)
    assert done.stdout.startswith(b"inputs: the document needs more memory than its size allows")


def test_unknown_members_survive_reading_but_not_writing() -> None:
    argument = ("Argument", b"\x06\x88\x0e\x02\x00")
    message = b"the union Argument holds the unknown member 900, whose content was skipped"
    worker = cpp.tree_worker()
    for what in ("encode", "owned", "convert"):
        assert cpp.answers(worker, [argument], what) == [(False, message)]
