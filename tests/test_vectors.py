"""Python, the C++ header in all its ways, and Apache's Python, C++, Go and Java agree on the vectors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from pt2wire.generated import CodecError, json_codec, thrift_codec, types
from thrift.protocol.TCompactProtocol import TCompactProtocolAcceleratedFactory, TCompactProtocolFactory
from thrift.TSerialization import deserialize, serialize

from .helpers import cpp, idl
from .helpers.cpp import Outcome
from .helpers.cpp_trees import with_sorted_maps
from .helpers.edges import lacking
from .helpers.vectors import FOLDER, Newer, Vector, files, gaps, newer, vectors


class Case(NamedTuple):
    """One vector, as the readers are given it: its type, both encodings, and what is not of this schema."""

    type: str
    json: Any
    compact: bytes
    what: str
    kept: bytes | None


Reader = Callable[[Sequence[Case]], list[Outcome]]


def _cases() -> list[Case]:
    known = [Case(row.type, row.json, row.compact, "", row.compact) for row in vectors()]
    return known + [
        Case(row.type, row.json, row.compact, f"unknown {row.what}", row.kept and row.kept.compact)
        for row in newer()
    ]


def _each(function: Callable[[Case], bytes], *errors: type[Exception]) -> Reader:
    """A reader in Python."""

    def attempt(case: Case) -> Outcome:
        try:
            return Outcome(True, function(case))
        except errors as error:
            return Outcome(False, str(error).encode())

    return lambda cases: [attempt(case) for case in cases]


def _program(command: Callable[[], Sequence[Any]]) -> Reader:
    """A reader that is a program, made when it is needed."""

    def run(cases: Sequence[Case]) -> list[Outcome]:
        program, *arguments = command()
        return cpp.answers(program, [(case.type, case.compact) for case in cases], *arguments)

    return run


def _cpp_json(cases: Sequence[Case]) -> list[Outcome]:
    """The header's reader of JSON, in both storages; what it says of skipped fields is cut off."""
    texts = [(case.type, json.dumps(case.json).encode()) for case in cases]
    outcomes = cpp.answers(cpp.json_worker(), texts)
    return [Outcome(ok, text.removesuffix(b" skipped 1")) for ok, text in outcomes]


def _apache_python(factory: Any) -> Callable[[Case], bytes]:
    def again(case: Case) -> bytes:
        tree = deserialize(
            getattr(idl.python_module(), case.type)(), case.compact, protocol_factory=factory()
        )
        return serialize(tree, protocol_factory=factory())  # type: ignore[no-any-return]

    return again


def _class(name: str) -> Any:
    return getattr(types, name)


#: Each decodes the vectors, and encodes what it got in TCompact.
READERS: dict[str, Reader] = {
    "Python, Thrift": _each(
        lambda case: thrift_codec.encode(thrift_codec.decode(_class(case.type), case.compact, unknown=[])),
        CodecError,
    ),
    "Python, JSON": _each(
        lambda case: thrift_codec.encode(
            json_codec.decode(_class(case.type), json.dumps(case.json).encode(), unknown=[])
        ),
        CodecError,
    ),
    "C++, View": _program(lambda: [cpp.tree_worker(), "encode"]),
    "C++, Owned": _program(lambda: [cpp.tree_worker(), "owned"]),
    "C++, View to Owned": _program(lambda: [cpp.tree_worker(), "convert"]),
    "C++, JSON": _cpp_json,
    "C++, Owned over libthrift": _program(lambda: [cpp.protocol_worker(), "compact"]),
    "C++, Owned over TProtocol": _program(lambda: [cpp.protocol_worker(), "virtual"]),
    "C++, Owned from a stream": _program(lambda: [cpp.protocol_worker(), "stream"]),
    "C++, View over libthrift": _program(lambda: [cpp.protocol_worker(), "view"]),
    "Apache's Python": _each(_apache_python(TCompactProtocolFactory), Exception),
    "Apache's Python, accelerated": _each(_apache_python(TCompactProtocolAcceleratedFactory), Exception),
    "Apache's C++": _program(lambda: [cpp.apache()]),
    "Apache's Go": _program(idl.go_program),
    "Apache's Java": _program(idl.java_program),
}
#: Their compilers take long.
WIDE = {"Apache's Go", "Apache's Java"}


def _outcome(case: Case, outcome: Outcome) -> str:
    """What a reader made of a vector: "agrees", or the word that known_gaps.yaml has for it."""
    if not outcome.ok:
        return "refuses" if case.kept is not None else "agrees"
    if outcome.text == (case.compact if case.kept is None else case.kept):
        return "agrees"
    try:
        trees = [thrift_codec.decode(_class(case.type), data) for data in (outcome.text, case.kept or b"")]
    except CodecError:
        return "loses" if case.kept is None else "differs"
    same = len({thrift_codec.encode(with_sorted_maps(tree)) for tree in trees}) == 1
    return "reorders" if same else "differs"


def _kind(case: Case) -> str:
    """What known_gaps.yaml calls vectors like this one."""
    return case.what or ("maps" if _has_map(thrift_codec.decode(_class(case.type), case.compact)) else "all")


def _has_map(value: Any) -> bool:
    """Whether the tree has a map of two entries or more, and so an order of entries."""
    if isinstance(value, dict):
        return len(value) > 1 or any(map(_has_map, value.values()))
    if isinstance(value, list):
        return any(map(_has_map, value))
    if isinstance(value, types.Union):
        return _has_map(value.value)
    return isinstance(value, types.Struct) and any(
        _has_map(getattr(value, field.name)) for field in cpp.schema().types[type(value).__name__].fields
    )


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.wide) if name in WIDE else name for name in READERS]
)
def test_a_reader_agrees_but_for_the_known_gaps(name: str) -> None:
    """Each gap is known, and each that is said to be known is there."""
    cases = _cases()
    outcomes = READERS[name](cases)
    found: dict[tuple[str, str], str] = {}
    for case, outcome in zip(cases, outcomes, strict=True):
        if (word := _outcome(case, outcome)) != "agrees":
            example = f"{case.type} {case.compact[:200].hex()}: {outcome.text[:200]!r}"
            found.setdefault((_kind(case), word), example)
    assert found.keys() == {(gap.vectors, gap.outcome) for gap in gaps() if gap.reader == name}, found


def test_gaps_are_of_readers_that_there_are_and_have_reasons() -> None:
    assert {gap.reader for gap in gaps()} <= READERS.keys()
    assert all(len(gap.reason.split()) > 4 for gap in gaps())
    assert len({gap[:2] for gap in gaps()}) == len(gaps())


def test_ours_have_no_gap() -> None:
    """Listed are those of others' code."""
    assert {gap.reader for gap in gaps() if not gap.reader.startswith("Apache's")} <= {
        "C++, Owned over libthrift",
        "C++, Owned over TProtocol",
        "C++, Owned from a stream",
    }


# --- the vectors themselves --------------------------------------------------------------------------


def test_the_files_are_those_of_the_schema() -> None:
    """Else: python -m tests.helpers.vectors"""
    assert {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.jsonl")} == files()


def _trees(rows: Sequence[Vector]) -> Iterator[Any]:
    return (thrift_codec.decode(_class(row.type), row.compact) for row in rows)


def test_no_type_member_or_edge_value_is_lacking() -> None:
    assert lacking(_trees(list(vectors()))) == []


#: What is taken out of the vectors, as a text in their JSON; what is then said to be lacking.
WITHOUT = {
    "a type": ('"config"', "PayloadConfig.config: present"),
    "a member": ('"as_complex"', "Argument.as_complex: present"),
    "an edge value": ("-9223372036854775808", "Argument.as_int: value: -9223372036854775808"),
    "a double": ('"NaN"', "ComplexValue.real: value: 7ff8000000000000"),
    "a long text": ("x" * 20000, "anywhere: text of 20000 bytes"),
    "a long map": ('"key 299"', "anywhere: map of 300"),
}


@pytest.mark.parametrize("what", WITHOUT)
def test_what_is_taken_out_is_lacking(what: str) -> None:
    text, line = WITHOUT[what]
    rows = [row for row in vectors() if text not in json.dumps(row.json)]
    assert line in lacking(_trees(rows))


def test_both_encodings_hold_the_same() -> None:
    for row in vectors():
        tree = thrift_codec.decode(_class(row.type), row.compact)
        assert json.loads(json_codec.encode(tree)) == row.json


def test_unknown_fields_are_of_every_type_and_reported() -> None:
    rows = [row for row in newer() if row.kept is not None]
    wires = [
        "bool",
        "i8",
        "i16",
        "i32",
        "i64",
        "double",
        "text",
        "binary",
        "list",
        "set",
        "map",
        "struct",
        "uuid",
    ]
    assert {row.what.split()[0] for row in rows} == set(wires)
    for row in rows:
        for decode, data in _both(row):
            with pytest.raises(CodecError):
                decode(data)
            unknown: list[str] = []
            decode(data, unknown=unknown)
            assert len(unknown) == 1


def _both(row: Newer) -> list[tuple[Callable[..., Any], bytes]]:
    cls = _class(row.type)
    return [
        (lambda data, **options: json_codec.decode(cls, data, **options), json.dumps(row.json).encode()),
        (lambda data, **options: thrift_codec.decode(cls, data, **options), row.compact),
    ]


def test_unknown_members_are_visible_in_cpp() -> None:
    rows = [row for row in newer() if row.what == "member"]
    assert len(rows) >= 4
    cases = [(row.type, row.compact) for row in rows]
    for outcome in cpp.answers(cpp.dumper(), cases):
        assert outcome.ok
        assert b".?(1024)" in outcome.text
    for what in ("encode", "owned", "convert"):
        for outcome in cpp.answers(cpp.tree_worker(), cases, what):
            assert not outcome.ok
            assert b"holds the unknown member 1024, whose content was skipped" in outcome.text
