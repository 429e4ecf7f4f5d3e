"""Files of other versions: what is read, what is refused, and what is said about it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pt2wire
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pt2wire import DeserializeError, SerializeError
from pt2wire.generated import OLDEST_VERSION, REVISION

from .helpers.archives import INPUT, linear_archive, linear_program, linear_torch_archive, with_records
from .helpers.schema_versions import MAJOR, MINOR, OLDER, OLDEST


def plain_program() -> Any:
    return json.loads(pt2wire.to_json(pt2wire.to_tree(linear_program())))


def json_of(major: int, minor: int, change: Callable[[Any], None] = lambda plain: None) -> bytes:
    plain = plain_program()
    plain["schema_version"] = {"major": major, "minor": minor}
    change(plain)
    return json.dumps(plain).encode()


def thrift_of(major: int, minor: int, added: bytes = b"") -> bytes:
    """The program in Thrift; `added` are more fields of its outermost struct."""
    tree = pt2wire.to_tree(linear_program())
    tree.schema_version.major, tree.schema_version.minor = major, minor
    data = pt2wire.to_thrift(tree)
    assert data[-1] == 0  # the end of the struct
    return data[:-1] + added + b"\x00"


@pytest.mark.parametrize(
    "version", [None, 8, {}, {"major": "8", "minor": 20}, {"major": {}, "minor": 1}, {"major": 8}]
)
def test_a_version_that_is_none_is_our_error(version: Any) -> None:
    plain = plain_program()
    plain["schema_version"] = version
    with pytest.raises(DeserializeError, match="schema_version"):
        pt2wire.from_json(json.dumps(plain))


# A field whose id is 5 more than the last one's (guards_code, 90), of type i64.
UNKNOWN_THRIFT = b"\x56\x02"


def add_unknown(plain: Any) -> None:
    plain["graph_module"]["shiny"] = {"new": [1, 2]}


@pytest.mark.parametrize(
    "minor", sorted({OLDEST_VERSION[1], (OLDEST_VERSION[1] + MINOR) // 2, MINOR, MINOR + 1})
)
def test_every_minor_version_since_the_oldest_is_read(minor: int) -> None:
    for tree in (pt2wire.from_json(json_of(MAJOR, minor)), pt2wire.from_thrift(thrift_of(MAJOR, minor))):
        assert tree.schema_version.minor == minor


@pytest.mark.parametrize(
    ("major", "minor", "hint"),
    [
        (MAJOR + 1, 0, "Upgrade pt2wire"),
        (*OLDER, "Load it with the PyTorch that wrote it, and save it with a newer one"),
        (MAJOR - 1, 3, "Load it with the PyTorch that wrote it, and save it with a newer one"),
    ],
)
def test_other_versions_are_refused_with_both_numbers(major: int, minor: int, hint: str) -> None:
    for read, data in (
        (pt2wire.from_json, json_of(major, minor)),
        (pt2wire.from_thrift, thrift_of(major, minor)),
    ):
        with pytest.raises(DeserializeError) as caught:
            read(data)
        assert str(caught.value) == (
            f"program:schema_version: expected format {OLDEST} or a later {MAJOR}, "
            f"found {major}.{minor}. {hint}."
        )


def test_another_major_version_is_named_even_if_nothing_else_can_be_read() -> None:
    def change(plain: Any) -> None:
        plain["graph_module"] = {"everything": "else"}

    with pytest.raises(DeserializeError, match=rf"found {MAJOR + 1}\.0\. Upgrade pt2wire"):
        pt2wire.from_json(json_of(MAJOR + 1, 0, change))
    # A program whose graph module is a number, in Thrift.
    with pytest.raises(DeserializeError, match=rf"found {MAJOR + 1}\.0\. Upgrade pt2wire"):
        pt2wire.from_thrift(bytes.fromhex("a602") + _thrift_version(MAJOR + 1, 0) + b"\x00")


def _thrift_version(major: int, minor: int) -> bytes:
    """Field 60 of a program behind field 10, in the long form: id as zigzag; a struct of fields 10 and 20."""
    return b"\x0c\x78" + bytes([0xA6, major * 2, 0xA6, minor * 2, 0x00])


def test_an_unknown_field_is_a_fault_in_a_version_that_is_known() -> None:
    with pytest.raises(DeserializeError) as caught:
        pt2wire.from_json(json_of(MAJOR, MINOR, add_unknown))
    assert str(caught.value) == (
        f"program:graph_module.shiny: expected a field of format {MAJOR}.{MINOR}, "
        "found one that it does not have. "
        "The file is damaged, its version number is wrong, or a program with fields of a newer pt2wire "
        "does not name its `writer`, as `write` would."
    )
    with pytest.raises(DeserializeError, match=f"expected a field of format {MAJOR}.{MINOR}, found"):
        pt2wire.from_thrift(thrift_of(MAJOR, MINOR, UNKNOWN_THRIFT))


def test_an_unknown_field_of_a_newer_version_is_dropped_with_a_warning() -> None:
    newer = f"format {MAJOR}.{MINOR + 1}, this is {MAJOR}.{MINOR}: 1 unknown field was dropped, the first is "
    with pytest.warns(UserWarning, match=newer + r"graph_module\.shiny"):
        from_json = pt2wire.from_json(json_of(MAJOR, MINOR + 1, add_unknown))
    with pytest.warns(UserWarning, match=newer):
        from_thrift = pt2wire.from_thrift(thrift_of(MAJOR, MINOR + 1, UNKNOWN_THRIFT))
    assert from_json == from_thrift


def test_the_caller_can_collect_what_was_dropped(recwarn: pytest.WarningsRecorder) -> None:
    unknown: list[str] = []
    pt2wire.from_json(json_of(MAJOR, MINOR + 1, add_unknown), unknown=unknown)
    assert unknown == ["graph_module.shiny"]
    assert not recwarn.list


def test_an_unknown_value_of_a_newer_version_is_refused_with_both_numbers() -> None:
    def change(plain: Any) -> None:
        plain["graph_module"]["graph"]["nodes"][0]["inputs"][0]["arg"] = {"as_shiny": 1}

    with pytest.raises(DeserializeError) as caught:
        pt2wire.from_json(json_of(MAJOR, MINOR + 1, change))
    assert "as_shiny" in str(caught.value)
    hint = f"The file has format {MAJOR}.{MINOR + 1}, this is {MAJOR}.{MINOR}: upgrade pt2wire."
    assert str(caught.value).endswith(hint)


def test_own_fields_of_a_newer_revision_are_dropped() -> None:
    def change(plain: Any) -> None:
        plain["shiny"] = 1
        plain["writer"] = {"name": "pt2wire", "version": "9.9", "revision": REVISION + 1}

    with pytest.warns(UserWarning, match="the first is shiny"):
        pt2wire.from_json(json_of(MAJOR, MINOR, change))


@settings(max_examples=300, deadline=2000)
@given(st.data())
def test_looking_for_the_version_of_damaged_thrift_never_fails_or_hangs(data: st.DataObject) -> None:
    damaged = bytearray(thrift_of(MAJOR + 1, 0))
    for _ in range(data.draw(st.integers(1, 5))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with pytest.raises(DeserializeError):
        pt2wire.from_thrift(bytes(damaged))


@pytest.mark.parametrize(
    "hostile",
    [
        # Field 10 is a list of 100,000 lists, each of 2**31 - 1 elements that take no byte.
        bytes.fromhex("a9f9a08d06") + bytes.fromhex("f0ffffffff07") * 100_000,
        # It is a number of a million bytes.
        b"\xa6" + b"\xff" * 1_000_000,
        # It is nested deeper than Python goes.
        b"\xac" + b"\x1c" * 1_000_000,
    ],
    ids=["lists of nothing", "endless number", "deep"],
)
def test_looking_for_the_version_takes_no_time(hostile: bytes) -> None:
    with pytest.raises(DeserializeError):
        pt2wire.from_thrift(hostile)


# The same in archives.


def newer_archive() -> bytes:
    return with_records(linear_torch_archive(), {"models/model.json": json_of(MAJOR, MINOR + 1, add_unknown)})


def test_a_newer_file_loads_with_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"<BytesIO>:models/model.json has format .* graph_module\.shiny"):
        loaded = pt2wire.load(io.BytesIO(newer_archive()))
    assert torch.equal(loaded.module()(INPUT), linear_program().module()(INPUT))


def test_a_newer_file_is_written_back_only_if_the_loss_is_accepted() -> None:
    archive = pt2wire.read(io.BytesIO(newer_archive()))
    assert archive.dropped == {"model": ["graph_module.shiny"]}
    file = io.BytesIO()
    with pytest.raises(SerializeError) as caught:
        pt2wire.write(archive, file)
    assert str(caught.value) == (
        "model: expected fields that this version knows, found 1 that would be lost, "
        "the first is graph_module.shiny. "
        "Pass drop_unknown=True to write the program without them, or upgrade pt2wire."
    )
    assert file.getvalue() == b""
    pt2wire.write(archive, file, drop_unknown=True)
    tree = archive.programs["model"]
    assert (tree.schema_version.major, tree.schema_version.minor) == (MAJOR, MINOR + 1), "left as it was read"
    tree.schema_version.minor = MINOR
    assert pt2wire.read(file).programs == archive.programs, "what is written claims to be no more than it is"


def test_a_program_of_a_newer_revision_is_written_as_one_of_ours() -> None:
    def change(plain: Any) -> None:
        add_unknown(plain)
        plain["writer"] = {"name": "pt2wire", "version": "9.9", "revision": REVISION + 1}

    newer = with_records(linear_torch_archive(), {"models/model.json": json_of(*OLDEST_VERSION, change)})
    file = io.BytesIO()
    pt2wire.write(pt2wire.read(io.BytesIO(newer)), file, drop_unknown=True)
    tree = pt2wire.read(file).programs["model"]
    assert tree.writer is not None
    assert (tree.writer.version, tree.writer.revision) == ("9.9", REVISION)
    assert tree.schema_version.minor == OLDEST_VERSION[1], "an older version claims too little already"


def test_a_newer_file_of_which_nothing_was_dropped_keeps_its_version() -> None:
    newer = with_records(linear_torch_archive(), {"models/model.json": json_of(MAJOR, MINOR + 1)})
    file = io.BytesIO()
    pt2wire.write(pt2wire.read(io.BytesIO(newer)), file)
    assert pt2wire.read(file).programs["model"].schema_version.minor == MINOR + 1


def test_another_major_version_in_an_archive_names_the_record() -> None:
    data = with_records(linear_torch_archive(), {"models/model.json": json_of(MAJOR + 1, 1)})
    with pytest.raises(
        DeserializeError,
        match=rf"<BytesIO>:models/model.json:schema_version: expected .* found {MAJOR + 1}.1",
    ):
        pt2wire.load(io.BytesIO(data))


def test_an_expected_opset_version_is_compared() -> None:
    version = pt2wire.to_tree(linear_program()).opset_version["aten"]
    pt2wire.load(io.BytesIO(linear_archive()), expected_opset_version={"aten": version, "other": 3})
    with pytest.raises(
        DeserializeError, match=f"expected version 5 of the operators 'aten', found {version}"
    ):
        pt2wire.load(io.BytesIO(linear_archive()), expected_opset_version={"aten": 5})


def test_an_opset_version_is_saved() -> None:
    file = io.BytesIO()
    pt2wire.save(linear_program(), file, opset_version={"mine": 3})
    assert pt2wire.read(file).programs["model"].opset_version["mine"] == 3
