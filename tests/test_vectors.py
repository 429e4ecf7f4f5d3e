"""Python, the C++ header in both storages, and Apache's Python and C++ agree on the conformance vectors."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from pt2wire.codegen.model import Kind
from pt2wire.generated import CodecError, json_codec, thrift_codec, types
from thrift.protocol.TCompactProtocol import TCompactProtocolAcceleratedFactory, TCompactProtocolFactory
from thrift.TSerialization import deserialize, serialize

from .helpers import cpp
from .helpers.cpp_trees import with_sorted_maps
from .helpers.vectors import FOLDER, Vector, files, newer, vectors
from .test_idl import compile_idl


@pytest.fixture(scope="module")
def known() -> list[Vector]:
    return list(vectors())


def _cases(rows: list[Vector]) -> list[tuple[str, bytes]]:
    return [(row.type, row.compact) for row in rows]


def _class(name: str) -> Any:
    return getattr(types, name)


def test_the_files_are_those_of_the_schema() -> None:
    """Else: python -m tests.helpers.vectors"""
    assert {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.jsonl")} == files()


def test_every_member_and_field_is_in_them(known: list[Vector]) -> None:
    seen: dict[str, set[str]] = {}
    for row in known:
        seen.setdefault(row.type, set()).update(key for key, value in row.json.items() if value is not None)
    for definition in cpp.schema().ordered:
        if definition.kind is not Kind.ENUM:
            assert seen[definition.name] == {field.name for field in definition.fields}


def test_python_reads_both_encodings_and_writes_them_again(known: list[Vector]) -> None:
    for row in known:
        cls = _class(row.type)
        text = json.dumps(row.json).encode()
        from_json, from_thrift = json_codec.decode(cls, text), thrift_codec.decode(cls, row.compact)
        assert thrift_codec.encode(from_json) == row.compact
        assert thrift_codec.encode(from_thrift) == row.compact
        assert json.loads(json_codec.encode(from_thrift)) == row.json


@pytest.mark.parametrize("what", ["encode", "owned", "convert"])
def test_the_header_agrees(known: list[Vector], what: str) -> None:
    outcomes = cpp.answers(cpp.tree_worker("clang++"), _cases(known), what)
    assert outcomes == [(True, row.compact) for row in known]


@pytest.mark.parametrize("way", ["compact", "virtual", "stream", "view"])
def test_the_header_over_libthrift_agrees(known: list[Vector], way: str) -> None:
    outcomes = cpp.answers(cpp.protocol_worker(), _cases(known), way)
    assert outcomes == [(True, row.compact) for row in known]


def test_cpp_of_apache_agrees_but_sorts_maps(known: list[Vector]) -> None:
    outcomes = cpp.answers(cpp.apache(), _cases(known))
    trees = [with_sorted_maps(thrift_codec.decode(_class(row.type), row.compact)) for row in known]
    assert outcomes == [(True, thrift_codec.encode(tree)) for tree in trees]


@pytest.fixture(scope="module")
def ttypes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The module that Apache's compiler generates for Python."""
    idl = tmp_path_factory.mktemp("vectors") / "schema.thrift"
    idl.write_text((cpp.ROOT / "generated" / "schema.thrift").read_text())
    folder = str(compile_idl(idl, "py"))
    sys.path.insert(0, folder)
    try:
        yield importlib.import_module("pt2wire_idl.ttypes")
    finally:
        sys.path.remove(folder)
        for name in [name for name in sys.modules if name.split(".")[0] == "pt2wire_idl"]:
            del sys.modules[name]


@pytest.mark.parametrize("factory", [TCompactProtocolFactory, TCompactProtocolAcceleratedFactory])
def test_python_of_apache_agrees(known: list[Vector], ttypes: ModuleType, factory: Any) -> None:
    for row in known:
        tree = deserialize(getattr(ttypes, row.type)(), row.compact, protocol_factory=factory())
        assert serialize(tree, protocol_factory=factory()) == row.compact, row


def test_unknown_fields_are_reported_and_dropped() -> None:
    rows = [row for row in newer() if row.kept is not None]
    assert len(rows) >= 8
    for row in rows:
        assert row.kept
        cls, text = _class(row.type), json.dumps(row.json).encode()
        for decode, data in ((json_codec.decode, text), (thrift_codec.decode, row.compact)):
            with pytest.raises(CodecError):
                decode(cls, data)
            unknown: list[str] = []
            assert thrift_codec.encode(decode(cls, data, unknown=unknown)) == row.kept.compact
            assert len(unknown) == 1
    cases = [(row.type, row.compact) for row in rows]
    kept = [(True, row.kept.compact) for row in rows if row.kept]
    for what in ("encode", "owned", "convert"):
        assert cpp.answers(cpp.tree_worker("clang++"), cases, what) == kept
    assert cpp.answers(cpp.apache(), cases) == kept


def test_unknown_members_are_refused_or_shown() -> None:
    """Never taken for another member, nor lost. The gap is Apache's C++: its union has no member then."""
    rows = [row for row in newer() if row.kept is None]
    assert len(rows) >= 4
    for row in rows:
        cls, text = _class(row.type), json.dumps(row.json).encode()
        for decode, data in ((json_codec.decode, text), (thrift_codec.decode, row.compact)):
            with pytest.raises(CodecError):
                decode(cls, data, unknown=[])
    cases = [(row.type, row.compact) for row in rows]
    for outcome in cpp.answers(cpp.dumper("clang++"), cases):
        assert outcome.ok
        assert b".?(1024)" in outcome.text
    for what in ("encode", "owned", "convert"):
        for outcome in cpp.answers(cpp.tree_worker("clang++"), cases, what):
            assert not outcome.ok
            assert b"holds the unknown member 1024, whose content was skipped" in outcome.text
    assert all(outcome.ok for outcome in cpp.answers(cpp.apache(), cases))
