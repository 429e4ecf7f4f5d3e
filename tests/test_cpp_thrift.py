"""The adapter over Apache's protocols: TCompact, TBinary and TJSON, both ways, against Python's thrift."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pt2wire.generated._thrift_spec import ENCODE
from thrift.protocol.fastbinary import encode_binary

from .helpers import cpp
from .helpers.cpp_trees import trees
from .test_cpp_decode import PROGRAMS, case_of, program
from .test_cpp_hostile import MUSEUM

# They share a program that takes long to compile: another process would only wait for it.
pytestmark = pytest.mark.xdist_group("cpp_protocol")

#: Exhibits that are read: Apache shows a number, bool or end only once it has taken it as it is, and skips by
#: itself what is not known, of which it counts the levels anew.
_READ_BY_APACHE = {
    "varint_of_65_bits",
    "enum_of_33_bits",
    "varint_with_padding",
    "end_of_a_struct_with_a_difference",
    "bool_item_3",
    "bool_item_0",
    "unknown_i16_of_17_bits",
    "negative_id_in_an_unknown_field",
    "number_below_63_lists_in_unknown_field",
    "bool_below_64_structs",
}


@pytest.fixture(scope="module")
def worker() -> Path:
    return cpp.protocol_worker()


def _trees() -> list[Any]:
    return [*trees(), *(program(name) for name in PROGRAMS)]


@pytest.mark.parametrize("way", ["compact", "virtual", "stream", "view"])
def test_compact_through_apache_is_compact_of_python(worker: Path, way: str) -> None:
    cases = [case_of(tree) for tree in _trees()]
    outcomes = cpp.answers(worker, cases, way)
    for outcome, (name, data) in zip(outcomes, cases, strict=True):
        assert outcome == (True, data), name


def test_binary_is_what_python_writes_and_reads_again(worker: Path) -> None:
    made = _trees()
    cases = [case_of(tree) for tree in made]
    outcomes = cpp.answers(worker, cases, "binary")
    for tree, outcome in zip(made, outcomes, strict=True):
        assert outcome == (True, encode_binary(tree, ENCODE[type(tree)])), type(tree).__name__


def test_json_of_thrift_reads_again(worker: Path) -> None:
    """Not PyTorch's JSON: Thrift's own, keyed by field ids. NaN and -0.0 are not in these."""
    cases = [case_of(program(name)) for name in PROGRAMS]
    outcomes = cpp.answers(worker, cases, "json")
    assert [outcome.ok for outcome in outcomes] == [True] * len(cases)
    assert [outcome.text for outcome in outcomes] == [data for _, data in cases]


@pytest.mark.parametrize("way", ["compact", "stream"])
def test_hostile_bytes_are_refused_as_without_apache(worker: Path, way: str) -> None:
    outcomes = cpp.answers(worker, [(exhibit.type, exhibit.data) for exhibit in MUSEUM], way)
    read = {exhibit.name for exhibit, outcome in zip(MUSEUM, outcomes, strict=True) if outcome.ok}
    # What follows the struct in a stream is not this reader's business.
    assert read == _READ_BY_APACHE | ({"trailing_byte"} if way == "stream" else set())
