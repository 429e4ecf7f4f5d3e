"""A museum of Thrift compact bytes that must not be read, each with the exact error."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from pt2wire.generated import (
    Argument,
    CodecError,
    Device,
    Node,
    SymInt,
    TensorMeta,
    json_codec,
    thrift_codec,
    types,
)

from .helpers import compact as c
from .helpers.compact import field, list_, map_, number, string, struct, varint
from .helpers.schema_versions import NEWER

TYPE = field(10, c.STRING, string("cpu"))


def test_thrift_without_its_extension_or_none_at_all_is_said_to_be_missing() -> None:
    """In another process: this one has it."""
    script = (
        "import sys; sys.modules['thrift.protocol.fastbinary'] = None; import pt2wire.generated.thrift_codec"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr.endswith(
        "ImportError: thrift is not installed, or without its C extension; install it from a wheel\n"
    )


def deep(levels: int) -> bytes:
    """An Argument that holds a map of an Argument, and so on; each level is one union."""
    data = struct(field(10, c.TRUE))
    for _ in range(levels - 1):
        data = struct(field(290, c.MAP, map_(c.STRING, c.STRUCT, string("k") + data)))
    return data


def skipped(levels: int) -> bytes:
    """A Device with an unknown field of lists in lists; the outermost is a level, and so is the bool."""
    data = list_(c.TRUE, b"\1")
    for _ in range(levels - 2):
        data = list_(c.LIST, data)
    return struct(TYPE, field(999, c.LIST, data))


MUSEUM: dict[str, tuple[type[Any], bytes, str]] = {
    "nothing": (Device, b"", "expected a field header, found the end, at byte 0 of 0"),
    "no stop": (Device, TYPE, "expected a field header, found the end, at byte 6 of 6"),
    "bytes after the end": (
        Device,
        struct(TYPE) + b"\0\0",
        "expected the end, found 2 more bytes, at byte 7 of 9",
    ),
    "a stop with an id": (
        Device,
        TYPE + b"\x10",
        "expected a field header or a stop byte, found 0x10, at byte 6 of 7",
    ),
    "a required field left out": (
        Device,
        struct(),
        "expected field 10 (type) of Device, found none, at byte 1 of 1",
    ),
    "a field twice": (
        Device,
        struct(TYPE, TYPE),
        "type: expected field 10 once, found it twice, at byte 6 of 13",
    ),
    "an unknown field": (
        Device,
        struct(TYPE, field(30, c.I64, number(1))),
        f"Device has no field 30 {NEWER}, at byte 6 of 10",
    ),
    "an own field of a later revision": (
        Device,
        struct(TYPE, field(1999, c.STRUCT, struct())),
        f"Device has no field 1999 {NEWER}, at byte 6 of 11",
    ),
    "an unknown member": (
        SymInt,
        struct(field(30, c.I64, number(1))),
        f"SymInt has no member 30 {NEWER}, at byte 0 of 4",
    ),
    "a field id of zero": (
        Device,
        struct(field(0, c.I64, number(1))),
        "expected a field id from 1 to 32767, found 0, at byte 0 of 4",
    ),
    "a negative field id": (
        Device,
        struct(field(-5, c.I64, number(1))),
        "expected a field id from 1 to 32767, found -5, at byte 0 of 4",
    ),
    "a field id beyond 16 bits": (
        Device,
        struct(field(40000, c.I64, number(1))),
        "expected a field id of at most 16 bits, found a larger number, at byte 1 of 6",
    ),
    "an id that a delta carries beyond 16 bits": (
        Device,
        struct(TYPE, field(32767, c.TRUE), bytes([0x11])),
        f"Device has no field 32767 {NEWER}, at byte 6 of 12",
    ),
    "a string for a number": (
        Device,
        struct(TYPE, field(20, c.STRING, string("1"))),
        "index: expected wire type i64, found string, at byte 6 of 11",
    ),
    "a number for a string": (
        Device,
        struct(field(10, c.I64, number(1))),
        "type: expected wire type string, found i64, at byte 0 of 4",
    ),
    "a 32-bit number for one of 64 bits": (
        Device,
        struct(TYPE, field(20, c.I32, number(1))),
        "index: expected wire type i64, found i32, at byte 6 of 10",
    ),
    "a number for an enum of another width": (
        Argument,
        struct(field(130, c.I64, number(1))),
        "as_scalar_type: expected wire type i32, found i64, at byte 0 of 5",
    ),
    "a wire type that Thrift does not have": (
        Device,
        struct(field(10, 14)),
        "expected one of Thrift's wire types, found 14, at byte 0 of 3",
    ),
    "text that is not UTF-8": (
        Device,
        struct(field(10, c.STRING, string(b"a\xff"))),
        "type: expected text in UTF-8, found invalid start byte at byte 1 of it, at byte 2 of 6",
    ),
    "text with an encoded surrogate": (
        Device,
        struct(field(10, c.STRING, string(b"\xed\xa0\x80"))),
        "type: expected text in UTF-8, found invalid continuation byte at byte 0 of it, at byte 2 of 7",
    ),
    "text with an overlong zero": (
        Device,
        struct(field(10, c.STRING, string(b"\xc0\x80"))),
        "type: expected text in UTF-8, found invalid start byte at byte 0 of it, at byte 2 of 6",
    ),
    "a number as a longer varint than it needs": (
        Device,
        struct(TYPE, field(20, c.I64, b"\x82\x80\x00")),
        "index: expected an integer as the shortest varint, found a longer one, at byte 8 of 12",
    ),
    "text longer than the bytes": (
        Device,
        field(10, c.STRING, varint(100) + b"cpu"),
        "type: expected 100 bytes of a string, found only 3, at byte 3 of 6",
    ),
    "text of four gigabytes": (
        Device,
        field(10, c.STRING, varint(2**32 - 1)),
        "type: expected 4294967295 bytes of a string, found the end, at byte 7 of 7",
    ),
    "a length beyond 32 bits": (
        Device,
        field(10, c.STRING, varint(2**32)),
        "type: expected a string's length of at most 32 bits, found a larger number, at byte 2 of 7",
    ),
    "a varint that does not end": (
        Device,
        struct(TYPE, field(20, c.I64, b"\x80" * 11 + b"\0")),
        "index: expected an integer of at most 64 bits, found a longer varint, at byte 8 of 21",
    ),
    "a varint of ten bytes that overflows": (
        Device,
        struct(TYPE, field(20, c.I64, b"\xff" * 9 + b"\x7f")),
        "index: expected an integer of at most 64 bits, found a larger number, at byte 8 of 19",
    ),
    "an enum of more than 32 bits": (
        Argument,
        struct(field(130, c.I32, varint(2**32))),
        "as_scalar_type: expected an enum's number of at most 32 bits, found a larger number, at byte 3 of 9",
    ),
    "an unknown value of an enum": (
        Argument,
        struct(field(130, c.I32, number(99))),
        f"as_scalar_type: ScalarType has no value 99 {NEWER}, at byte 3 of 6",
    ),
    "an enum inside a struct": (
        TensorMeta,
        struct(field(10, c.I32, number(-1))),
        f"dtype: ScalarType has no value -1 {NEWER}, at byte 2 of 4",
    ),
    "a union without a member": (
        SymInt,
        struct(),
        "expected exactly one member of SymInt, found none, at byte 1 of 1",
    ),
    "a union with two members": (
        Argument,
        struct(field(50, c.I64, number(1)), field(170, c.TRUE)),
        "expected exactly one member of Argument, found 'as_int', 'as_bool', at byte 7 of 7",
    ),
    "a union with two members, further inside": (
        Node,
        struct(
            field(10, c.STRING, string("t")),
            field(20, c.LIST, list_(c.STRUCT)),
            field(
                30,
                c.LIST,
                list_(c.STRUCT, struct(field(10, c.TRUE)), struct(field(10, c.TRUE), field(10, c.TRUE))),
            ),
            field(40, c.MAP, map_(c.STRING, c.STRING)),
        ),
        "outputs[1].as_none: expected field 10 once, found it twice, at byte 15 of 22",
    ),
    "a double cut off": (
        Argument,
        field(80, c.DOUBLE, b"\0" * 7),
        "as_float: expected 8 bytes of a double, found only 7, at byte 3 of 10",
    ),
    "a list of two billion": (
        Argument,
        struct(field(70, c.LIST, list_(c.I64, count=2**31 - 1))),
        "as_ints: expected at most 1 elements in the 1 bytes left, found 2147483647, at byte 3 of 10",
    ),
    "a list with a count beyond 31 bits": (
        Argument,
        struct(field(70, c.LIST, list_(c.I64, count=2**32 - 1))),
        "as_ints: expected at most 1 elements in the 1 bytes left, found 4294967295, at byte 3 of 10",
    ),
    "doubles that cannot be there": (
        Argument,
        struct(field(90, c.LIST, list_(c.DOUBLE, b"\0" * 8, b"\0" * 8, count=3))),
        "as_floats: expected at most 2 elements in the 17 bytes left, found 3, at byte 3 of 21",
    ),
    "a list of the wrong elements": (
        Argument,
        struct(field(70, c.LIST, list_(c.STRING, string("1")))),
        "as_ints: expected wire type i64, found string, at byte 3 of 7",
    ),
    "an empty list of the wrong elements": (
        Argument,
        struct(field(70, c.LIST, list_(c.STRING))),
        "as_ints: expected wire type i64, found string, at byte 3 of 5",
    ),
    "a bool in a list that is neither": (
        Argument,
        struct(field(180, c.LIST, list_(c.TRUE, b"\1", b"\0"))),
        "as_bools[1]: expected 1 for true or 2 for false, found 0, at byte 5 of 7",
    ),
    "a map key twice": (
        Argument,
        struct(field(290, c.MAP, map_(c.STRING, c.STRUCT, *[string("k") + struct(field(10, c.TRUE))] * 2))),
        "as_string_to_argument['k']: expected each key once, found this one twice, at byte 10 of 16",
    ),
    "a map with keys that are not strings": (
        Argument,
        struct(field(290, c.MAP, map_(c.I64, c.STRUCT, number(1) + struct(field(10, c.TRUE))))),
        "as_string_to_argument: expected wire type string, found i64, at byte 3 of 10",
    ),
    "a map of two billion": (
        Argument,
        struct(field(290, c.MAP, map_(c.STRING, c.STRUCT, count=2**31 - 1))),
        "as_string_to_argument: expected at most 0 entries in the 1 bytes left, found 2147483647,"
        " at byte 3 of 10",
    ),
    "65 unions on a path": (
        Argument,
        deep(65),
        "as_string_to_argument['k']"
        + ".as_string_to_argument['k']" * 63
        + ": expected at most 64 structs and unions on a path, found more, at byte 448 of 515",
    ),
}


@pytest.mark.parametrize("name", MUSEUM)
def test_hostile_bytes_are_refused(name: str) -> None:
    cls, data, message = MUSEUM[name]
    with pytest.raises(CodecError) as caught:
        thrift_codec.decode(cls, data)
    assert str(caught.value) == message


def test_what_is_exactly_as_deep_as_allowed_reads() -> None:
    tree = thrift_codec.decode(Argument, deep(64))
    assert thrift_codec.encode(tree) != deep(64)  # short headers
    assert thrift_codec.decode(Argument, thrift_codec.encode(tree)) == tree


def test_unknown_fields_are_listed_and_dropped() -> None:
    device = struct(TYPE, field(30, c.I64, number(1)), field(1500, c.STRUCT, struct(field(1, c.FALSE))))
    size = struct(field(20, c.I64, number(2)))
    meta = struct(
        field(10, c.I32, number(7)),
        field(20, c.LIST, list_(c.STRUCT, size)),
        field(30, c.TRUE),
        field(31, c.TRUE),
        field(40, c.STRUCT, device),
        field(50, c.LIST, list_(c.STRUCT, size)),
        field(60, c.STRUCT, size),
        field(70, c.I32, number(7)),
    )
    unknown = ["earlier"]
    tree = thrift_codec.decode(TensorMeta, meta, unknown=unknown)
    two = SymInt.of_int(2)
    expected = TensorMeta(
        types.ScalarType.FLOAT, [two], True, Device("cpu"), [two], two, types.Layout.Strided
    )
    assert tree == expected
    assert unknown == ["earlier", "#31", "device.#30", "device.#1500"]


def test_an_unknown_member_is_an_error_even_when_unknown_fields_are_not() -> None:
    unknown: list[str] = []
    with pytest.raises(CodecError, match="SymInt has no member 30"):
        thrift_codec.decode(SymInt, struct(field(30, c.I64, number(1))), unknown=unknown)
    assert unknown == []


def test_unknown_fields_of_every_wire_type_are_skipped() -> None:
    payloads = {
        c.TRUE: b"",
        c.FALSE: b"",
        c.I8: b"\xff",
        c.I16: number(-3),
        c.I32: number(3),
        c.I64: number(-(2**63)),
        c.DOUBLE: b"\0" * 8,
        c.STRING: string(b"\xff\xfe"),
        c.LIST: list_(c.TRUE, b"\1", b"\2"),
        c.SET: list_(c.LIST, list_(c.I64, number(1)), list_(c.I64)),
        c.MAP: map_(c.I64, c.MAP, number(1) + map_(c.STRING, c.UUID, string("x") + b"\0" * 16)),
        c.STRUCT: struct(field(1, c.STRUCT, struct(field(1, c.TRUE))), field(2, c.I8, b"\0")),
        c.UUID: b"\0" * 16,
    }
    for wire, payload in payloads.items():
        unknown: list[str] = []
        data = struct(TYPE, field(999, wire, payload))
        assert thrift_codec.decode(Device, data, unknown=unknown) == Device("cpu")
        assert unknown == ["#999"]
        with pytest.raises(CodecError):
            thrift_codec.decode(
                Device, struct(TYPE, field(999, wire, payload[:-1])), unknown=[]
            ) if payload else (thrift_codec.decode(Device, TYPE + field(999, wire), unknown=[]))


def test_containers_count_as_levels_inside_unknown_fields() -> None:
    assert thrift_codec.decode(Device, skipped(63), unknown=[]) == Device("cpu")
    with pytest.raises(CodecError, match="expected at most 64 levels, found more"):
        thrift_codec.decode(Device, skipped(64), unknown=[])


@pytest.mark.parametrize("lie", [list_(c.STRUCT, count=2**31 - 1), list_(c.TRUE, count=2**30)])
def test_counts_in_unknown_fields_are_held_against_the_bytes_left(lie: bytes) -> None:
    with pytest.raises(CodecError, match="elements in the 1 bytes left, found"):
        thrift_codec.decode(Device, struct(TYPE, field(999, c.LIST, lie)), unknown=[])


def test_valid_bytes_that_we_would_write_otherwise_read_as_well() -> None:
    other_order = struct(field(20, c.I64, number(1)), TYPE)
    assert thrift_codec._decode_fast(Device, other_order) is None
    assert thrift_codec.decode(Device, other_order) == Device("cpu", 1)
    assert thrift_codec.decode(Argument, struct(field(180, c.LIST, list_(c.FALSE, b"\2")))).as_bools == [
        False
    ]


def test_memory_stays_in_proportion_to_the_bytes() -> None:
    """A million empty unions, and a list that claims two billion, in a process that may have 1 GiB."""
    code = """
import resource
from pt2wire.generated import CodecError, Argument, Graph, thrift_codec
from tests.helpers import compact as c
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
flood = c.list_(c.STRUCT, b"\\0" * 1_000_000, count=1_000_000)
lie = c.list_(c.STRUCT, b"\\0" * 1000, count=2**31 - 1)
for data in (flood, lie):
    try:
        thrift_codec.decode(Graph, c.struct(c.field(10, c.LIST, data)))
    except CodecError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "inputs[0]: expected exactly one member of Argument, found none, at byte 7 of 1000007",
        "inputs: expected at most 1001 elements in the 1001 bytes left, found 2147483647, at byte 2 of 1009",
    ], done.stderr


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (Device(1), "type: expected a string, found int 1"),  # type: ignore[arg-type]
        (Device("cpu", "1"), "index: expected a 64-bit integer, found str '1'"),  # type: ignore[arg-type]
        (Device("cpu", True), "index: expected a 64-bit integer, found bool True"),
        (Device("cpu", 2**63), "index: expected a 64-bit integer, found 9223372036854775808"),
        (Device(None), "type: expected a string, found None"),  # type: ignore[arg-type]
        (Device(b"cpu"), "type: expected a string, found bytes b'cpu'"),  # type: ignore[arg-type]
        (Argument.of_int(1.0), "as_int: expected an integer, found float 1.0"),  # type: ignore[arg-type]
        (Argument.of_float(1), "as_float: expected a double, found int 1"),
        (Argument.of_bool(1), "as_bool: expected a bool, found int 1"),  # type: ignore[arg-type]
        (
            Argument.of_ints([1, 10**4300]),
            "as_ints[1]: expected an integer of at most 4,300 digits, found one of 14285 bits",
        ),
        (Argument.of_ints((1, 2)), "as_ints: expected a list<integer>, found tuple (1, 2)"),  # type: ignore[arg-type]
        (Argument.of_strings("ab"), "as_strings: expected a list<string>, found str 'ab'"),  # type: ignore[arg-type]
        (Argument.of_scalar_type(7), "as_scalar_type: expected a ScalarType, found int 7"),  # type: ignore[arg-type]
        (
            Argument.of_layout(types.ScalarType.INT),  # type: ignore[arg-type]
            "as_layout: expected a Layout, found ScalarType <ScalarType.INT: 4>",
        ),
        (
            Argument.of_tensor(types.TokenArgument("x")),  # type: ignore[arg-type]
            "as_tensor: expected a TensorArgument, found TokenArgument TokenArgument(name='x')",
        ),
        (
            Argument.of_string_to_argument({1: Argument.of_int(1)}),  # type: ignore[dict-item]
            "as_string_to_argument[1]: expected a string, found int 1",
        ),
        (
            Argument.of_string_to_argument([]),  # type: ignore[arg-type]
            "as_string_to_argument: expected a map<string, Argument>, found list []",
        ),
        (
            Node("t", [], [Argument.of_int(1), None], {}),  # type: ignore[list-item]
            "outputs[1]: expected an Argument, found None",
        ),
        (Node("t", [], [], {"k": 1}), "metadata['k']: expected a string, found int 1"),  # type: ignore[dict-item]
        (
            Argument.of_int(None),  # type: ignore[arg-type]
            "expected one member set and named by `type`, found type 'as_int' and [] set",
        ),
        ("text", "expected a struct or union of pt2wire.generated.types, found str 'text'"),
    ],
)
def test_a_tree_with_a_wrong_value_is_not_written(tree: Any, message: str) -> None:
    for encode in (thrift_codec.encode, json_codec.encode, json_codec.to_plain):
        with pytest.raises(CodecError) as caught:
            encode(tree)
        assert str(caught.value) == message


@pytest.mark.parametrize("encode", [thrift_codec.encode, json_codec.encode])
def test_text_that_utf8_cannot_hold_is_not_written(encode: Any) -> None:
    with pytest.raises(CodecError) as caught:
        encode(Node("t", [], [], {"k": "fine \U0001f600", "m": "a\ud800"}))
    assert (
        str(caught.value) == "metadata['m']: expected text that UTF-8 can hold, found a lone surrogate at 1"
    )
