"""The C++ header reads what Python writes: trees of every shape, and real programs; Apache's C++ agrees."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import pytest
from pt2wire.codegen.model import Kind, NamedType
from pt2wire.exporting import export_program
from pt2wire.generated import thrift_codec, types

from .helpers import compact, cpp
from .helpers.cpp_trees import trees, with_sorted_maps
from .helpers.models import MODELS

# They share a program that takes long to compile: another process would only wait for it.
pytestmark = pytest.mark.xdist_group("cpp_dump")

#: Programs whose trees differ in kind; the last has some hundred nodes.
PROGRAMS = (
    "dims_automatic",
    "unbacked_sizes_from_tolist",
    "symbolic_ints_in_arguments",
    "symbolic_floats_in_arguments",
    "symbolic_bools_and_choices",
    "nested_containers",
    "namedtuples",
    "constant_inputs",
    "input_mutation",
    "buffers_persistent_and_not",
    "constants_lifted",
    "weights_aliased",
    "weights_and_inputs_of_every_dtype",
    "cond_nested",
    "training_ir",
    "metadata_custom",
    "module_call_signatures",
    "lists_of_floats_and_bools",
    "optional_tensors_in_lists",
    "texts",
    "memory_formats_and_layouts",
    "complex_numbers",
    "many_layers",
)


def case_of(tree: Any) -> tuple[str, bytes]:
    return type(tree).__name__, thrift_codec.encode(tree)


def _dump(tree: Any) -> bytes:
    kind = Kind.STRUCT if isinstance(tree, types.Struct) else Kind.UNION
    return cpp.dump(tree, NamedType(type(tree).__name__, kind)).encode()


@functools.cache
def program(name: str) -> types.ExportedProgram:
    return export_program(MODELS[name].program())


def _assert_same(found: list[cpp.Outcome], expected: list[bytes], cases: list[tuple[str, bytes]]) -> None:
    for outcome, text, (name, data) in zip(found, expected, cases, strict=True):
        assert outcome.ok, f"{name} {data[:200].hex()}: {outcome.text.decode()}"
        assert outcome.text == text, f"{name} {data[:200].hex()}"


@pytest.mark.parametrize("compiler", cpp.CLANG_AND_SLOW_GCC)
def test_header_decodes_every_type_member_and_value(compiler: str) -> None:
    made = list(trees())
    cases = [case_of(tree) for tree in made]
    assert {name for name, _ in cases} == {t.name for t in cpp.schema().ordered if t.kind is not Kind.ENUM}
    dumper = cpp.dumper(compiler) if compiler == "clang++" else cpp.dumper(compiler, "-O2")
    _assert_same(cpp.answers(dumper, cases), [_dump(tree) for tree in made], cases)


def test_header_decodes_fields_in_any_order_and_skips_others_between_them() -> None:
    fields = (
        compact.field(10, compact.STRING, compact.string("op")),
        compact.field(20, compact.LIST, compact.list_(compact.STRUCT)),
        compact.field(30, compact.LIST, compact.list_(compact.STRUCT)),
        compact.field(40, compact.MAP, compact.map_(compact.STRING, compact.STRING)),
        compact.field(7, compact.I64, compact.number(7)),
    )
    cases = [("Node", compact.struct(*order)) for order in itertools.permutations(fields)]
    expected = _dump(types.Node(target="op", inputs=[], outputs=[], metadata={})) + b" skipped 1"
    _assert_same(cpp.answers(cpp.dumper(), cases), [expected] * len(cases), cases)


def test_apache_cpp_decodes_and_encodes_every_type_member_and_value() -> None:
    made = list(trees())
    cases = [case_of(tree) for tree in made]
    expected = [thrift_codec.encode(with_sorted_maps(tree)) for tree in made]
    _assert_same(cpp.answers(cpp.apache(), cases), expected, cases)


def test_header_decodes_real_programs() -> None:
    cases = [case_of(program(name)) for name in PROGRAMS]
    _assert_same(cpp.answers(cpp.dumper(), cases), [_dump(program(name)) for name in PROGRAMS], cases)
    assert max(len(program(name).graph_module.graph.nodes) for name in PROGRAMS) > 100


def test_header_decodes_what_apache_cpp_writes() -> None:
    cases = [case_of(program(name)) for name in PROGRAMS]
    written = cpp.answers(cpp.apache(), cases)
    again = [(name, outcome.text) for (name, _), outcome in zip(cases, written, strict=True)]
    expected = []
    for name, data in cases:
        tree = thrift_codec.decode(getattr(types, name), data)
        expected.append(_dump(with_sorted_maps(tree)))
    _assert_same(cpp.answers(cpp.dumper(), again), expected, again)
