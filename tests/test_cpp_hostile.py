"""A museum of hostile and damaged bytes: what the C++ header refuses, with which message."""

from __future__ import annotations

import random
import re
import struct as struct_format
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
from pt2wire.codegen.model import Kind, NamedType
from pt2wire.generated import CodecError, thrift_codec, types

from .helpers import compact, cpp
from .helpers.compact import (
    DOUBLE,
    FALSE,
    I16,
    I32,
    I64,
    LIST,
    MAP,
    SET,
    STRING,
    STRUCT,
    TRUE,
    UUID,
    list_,
    number,
    string,
    varint,
)
from .helpers.cpp_trees import trees
from .test_thrift_codec_faults import MUSEUM as PYTHON_MUSEUM

# They share a program that takes long to compile: another process would only wait for it.
pytestmark = pytest.mark.xdist_group("cpp_dump")

_LONGEST = 2**32 - 1


_ONE = struct_format.pack("<d", 1.0)


class Exhibit(NamedTuple):
    """Bytes that must be refused, as which type they are read, and what the message must match."""

    name: str
    type: str
    data: bytes
    message: str


def struct(*fields: tuple[int, int, bytes]) -> bytes:
    """A struct or union of (id, type, encoded value)."""
    return compact.struct(*(compact.field(*field) for field in fields))


def map_(key: int, value: int, *entries: tuple[bytes, bytes], count: int | None = None) -> bytes:
    """A map of (encoded key, encoded value), with a count that may be a lie."""
    return compact.map_(key, value, *(k + v for k, v in entries), count=count)


def _argument(id_: int, type_: int, value: bytes = b"") -> bytes:
    return struct((id_, type_, value))


_NONE = b"\xa1\0"  # the shortest Argument: as_none, its header in the short form


def _node(inputs: bytes | None = None, outputs: bytes | None = None, metadata: bytes | None = None) -> bytes:
    return struct(
        (10, STRING, string("op")),
        (20, LIST, inputs if inputs is not None else list_(STRUCT)),
        (30, LIST, outputs if outputs is not None else list_(STRUCT)),
        (40, MAP, metadata if metadata is not None else map_(STRING, STRING)),
    )


def _input(argument: bytes) -> bytes:
    """A NamedArgument with a dictionary that holds the argument under the key "k"."""
    dictionary = _argument(290, MAP, map_(STRING, STRUCT, (string("k"), argument)))
    return struct((10, STRING, string("self")), (20, STRUCT, dictionary))


def _metadata(*keys: str) -> bytes:
    return map_(STRING, STRING, *((string(key), string("v")) for key in keys))


def _nested(levels: int, *unknown: tuple[int, int, bytes]) -> bytes:
    """An Argument inside `levels - 1` others: one union a level, unknown fields in a struct on the last."""
    argument = _argument(20, STRUCT, struct((10, STRING, string("x")), *unknown)) if unknown else _NONE
    for _ in range(levels - (2 if unknown else 1)):
        argument = _argument(290, MAP, map_(STRING, STRUCT, (string("k"), argument)))
    return argument


def _node_with_target(raw: bytes) -> bytes:
    return struct(
        (10, STRING, string(raw)),
        (20, LIST, list_(STRUCT)),
        (30, LIST, list_(STRUCT)),
        (40, MAP, map_(STRING, STRING)),
    )


MUSEUM = [
    # Sizes that lie
    Exhibit(
        "list_larger_than_input",
        "Node",
        _node(outputs=list_(STRUCT, count=2**31 - 1)),
        r"outputs: a list of 2147483647 items, with \d+ bytes left",
    ),
    Exhibit(
        "list_size_overflows_product",
        "Node",
        _node(outputs=list_(STRUCT, count=_LONGEST)),
        r"outputs: a list of 4294967295 items",
    ),
    Exhibit(
        "list_of_structs_too_short_for_their_fields",
        "GraphModule",
        struct((10, STRUCT, struct((10, LIST, list_(STRUCT, count=40) + b"\0" * 60)))),
        r"graph.inputs: a list of 40 items, with 62 bytes left",
    ),
    Exhibit(
        "list_of_doubles",
        "Argument",
        _argument(90, LIST, list_(DOUBLE, _ONE, count=2)),
        r"as_floats: a list of 2 items, with 9 bytes left",
    ),
    Exhibit(
        "map_larger_than_input",
        "Node",
        _node(metadata=map_(STRING, STRING, count=2**30)),
        r"metadata: a map of 1073741824 items",
    ),
    Exhibit(
        "text_larger_than_input",
        "Device",
        struct((10, STRING, varint(2**31) + b"cpu")),
        r"type: a text of 2147483648 bytes, with 4 bytes left",
    ),
    Exhibit(
        "text_one_byte_too_long",
        "TensorArgument",
        b"\xa8" + varint(3) + b"ab",
        r"name: a text of 3 bytes, with 2 bytes left",
    ),
    Exhibit(
        "flood_of_tiny_unions",
        "Node",
        _node(outputs=list_(STRUCT, *[_NONE] * 500_000)),
        r"outputs: the document needs more memory than its size allows",
    ),
    Exhibit(
        "flood_of_empty_structs",
        "Argument",
        _argument(30, LIST, list_(STRUCT, *[b"\0"] * 1_000_000)),
        r"as_tensors: a list of 1000000 items",
    ),
    # Depth
    Exhibit("65_levels", "Argument", _nested(65), r"more than 64 structs and unions"),
    Exhibit("5000_levels", "Argument", _nested(5000), r"more than 64 structs and unions"),
    Exhibit(
        "5000_levels_in_unknown_field",
        "Device",
        struct((10, STRING, string("cpu")), (99, STRUCT, _nested(5000))),
        r"more than 64 levels",
    ),
    Exhibit(
        "lists_in_unknown_field",
        "Device",
        struct((10, STRING, string("cpu")), (99, LIST, b"\x19" * 100_000 + b"\x15\0")),
        r"more than 64 levels",
    ),
    Exhibit(
        "maps_in_unknown_member",
        "Argument",
        _argument(999, MAP, b"\x01\x8b\x01a" * 100_000),
        r"more than 64 levels",
    ),
    Exhibit(
        "number_below_63_lists_in_unknown_field",
        "Device",
        struct((10, STRING, string("cpu")), (99, LIST, b"\x19" * 62 + list_(I32, number(1)))),
        r"more than 64 levels",
    ),
    Exhibit("bool_below_64_structs", "Argument", _nested(64, (99, TRUE, b"")), r"more than 64 levels"),
    # Keys, members, fields
    Exhibit(
        "key_twice",
        "Node",
        _node(metadata=_metadata("a", "b", "a")),
        r'metadata: the map has the key "a" twice',
    ),
    Exhibit(
        "key_twice_in_large_map",
        "Node",
        _node(metadata=_metadata(*"abcdefghijklmnopk")),
        r'metadata: the map has the key "k" twice',
    ),
    Exhibit("union_without_member", "Argument", struct(), r"the union Argument has no member"),
    Exhibit(
        "union_with_member_0",
        "Argument",
        _argument(0, I32, number(-1)),
        r"the union Argument has a member with id 0",
    ),
    Exhibit(
        "union_with_two_members",
        "Argument",
        struct((10, TRUE, b""), (50, I64, number(1))),
        r"the union Argument has two members",
    ),
    Exhibit(
        "union_with_unknown_second_member",
        "Argument",
        struct((10, TRUE, b""), (999, I64, number(1))),
        r"the union Argument has two members",
    ),
    Exhibit(
        "union_with_unknown_first_member",
        "Argument",
        struct((5, TRUE, b""), (10, TRUE, b"")),
        r"the union Argument has two members",
    ),
    Exhibit(
        "field_twice",
        "Device",
        struct((10, STRING, string("cpu")), (20, I64, number(0)), (20, I64, number(1))),
        r"index: the field is there twice",
    ),
    Exhibit(
        "field_twice_behind_another",
        "Device",
        struct((20, I64, number(0)), (10, STRING, string("cpu")), (20, I64, number(1))),
        r"index: the field is there twice",
    ),
    Exhibit("field_missing", "Device", struct((20, I64, number(0))), r"the struct Device lacks type"),
    Exhibit(
        "fields_missing",
        "Node",
        struct((10, STRING, string("op")), (40, MAP, map_(STRING, STRING))),
        r"the struct Node lacks inputs, outputs",
    ),
    # Types
    Exhibit("field_of_other_type", "Device", struct((10, I64, number(1))), r"type: expected text, found i64"),
    Exhibit(
        "optional_of_other_type",
        "Device",
        struct((10, STRING, string("cpu")), (20, I32, number(1))),
        r"index: expected i64, found i32",
    ),
    Exhibit(
        "bool_of_other_type", "Argument", _argument(10, I64, number(1)), r"as_none: expected bool, found i64"
    ),
    Exhibit("member_of_other_type", "Argument", _argument(50, TRUE), r"as_int: expected i64, found bool"),
    Exhibit(
        "enum_of_other_type",
        "Argument",
        _argument(130, I64, number(1)),
        r"as_scalar_type: expected i32, found i64",
    ),
    Exhibit("set_for_list", "Argument", _argument(70, SET, list_(I64)), r"as_ints: expected list, found set"),
    Exhibit(
        "list_of_other_items",
        "Argument",
        _argument(70, LIST, list_(I32, number(1))),
        r"as_ints: expected i64, found i32",
    ),
    Exhibit(
        "empty_list_of_other_items",
        "Argument",
        _argument(70, LIST, list_(I16)),
        r"as_ints: expected i64, found i16",
    ),
    Exhibit(
        "map_of_other_keys",
        "Node",
        _node(metadata=map_(I64, STRING, (number(1), string("")))),
        r"metadata: expected text, found i64",
    ),
    Exhibit(
        "map_of_other_values",
        "Node",
        _node(metadata=map_(STRING, I64, (string("k"), number(1)))),
        r"metadata: expected text, found i64",
    ),
    Exhibit("type_number_14", "Device", b"\xae", r"the type number 14 has no meaning"),
    Exhibit(
        "end_of_a_struct_with_a_difference",
        "Device",
        struct((10, STRING, string("cpu")), (899, I32, number(0)))[:-1] + b"\x10",
        r"the type number 0 has no meaning",
    ),
    Exhibit(
        "field_of_other_type_out_of_order",
        "Device",
        struct((20, I64, number(0)), (10, I64, number(1))),
        r"type: expected text, found i64",
    ),
    Exhibit(
        "list_of_type_0",
        "Argument",
        _argument(70, LIST, b"\x10"),
        r"as_ints: the type number 0 has no meaning",
    ),
    # Numbers
    Exhibit(
        "varint_of_11_bytes",
        "SymInt",
        b"\x06" + number(20) + b"\x80" * 10 + b"\x01\0",
        r"as_int: the varint is wider than 64 bits",
    ),
    Exhibit(
        "varint_of_65_bits",
        "SymInt",
        struct((20, I64, b"\xff" * 9 + b"\x02")),
        r"as_int: the varint is wider than 64 bits",
    ),
    Exhibit(
        "enum_of_33_bits",
        "Argument",
        _argument(130, I32, b"\xff" * 4 + b"\x10"),
        r"as_scalar_type: the varint is wider than 32 bits",
    ),
    Exhibit(
        "length_of_33_bits",
        "TensorArgument",
        struct((10, STRING, b"\xff" * 4 + b"\x1f")),
        r"name: the varint is wider than 32 bits",
    ),
    Exhibit(
        "list_size_of_33_bits",
        "Argument",
        _argument(70, LIST, b"\xf6" + b"\xff" * 4 + b"\x1f"),
        r"as_ints: the varint is wider than 32 bits",
    ),
    Exhibit(
        "varint_with_padding",
        "SymInt",
        struct((20, I64, b"\x82\x80\0")),
        r"as_int: the varint is longer than its value needs",
    ),
    Exhibit("field_id_of_17_bits", "Device", b"\x06" + number(70000), r"the field id 70000 is over 16 bits"),
    Exhibit(
        "field_id_over_32767",
        "Device",
        b"\x06" + number(32767) + number(0) + b"\x16\0",
        r"the field id is over 32767",
    ),
    Exhibit(
        "unknown_field_of_id_0",
        "Device",
        struct((10, STRING, string("cpu")), (0, I32, number(1))),
        r"the field id 0 is below 1",
    ),
    Exhibit(
        "negative_id_in_an_unknown_field",
        "Device",
        struct((10, STRING, string("cpu")), (900, STRUCT, struct((-8, I32, number(1))))),
        r"the field id -8 is below 1",
    ),
    Exhibit("union_of_a_negative_id", "SymInt", struct((-8, I64, number(1))), r"the field id -8 is below 1"),
    Exhibit(
        "unknown_i16_of_17_bits",
        "Device",
        struct((10, STRING, string("cpu")), (900, I16, number(2**15))),
        r"an i16 of more than 16 bits",
    ),
    Exhibit(
        "bool_item_3",
        "Argument",
        _argument(180, LIST, list_(TRUE, b"\x01", b"\x03")),
        r"as_bools\[1\]: a bool in a list or map is 1 or 2, not 3",
    ),
    Exhibit(
        "bool_item_0",
        "Argument",
        _argument(180, LIST, list_(FALSE, b"\0")),
        r"as_bools\[0\]: a bool in a list or map is 1 or 2, not 0",
    ),
    # Text
    *(
        Exhibit(
            f"text_{name}",
            "Node",
            _node_with_target(b"a" * 50 + raw + b"b"),
            r"target: the text is not valid UTF-8 \(at byte 53\)",
        )
        for name, raw in {
            "lone_continuation": b"\x80",
            "cut_short": b"\xe2\x82",
            "overlong_2": b"\xc0\xaf",
            "overlong_3": b"\xe0\x80\xaf",
            "overlong_4": b"\xf0\x80\x80\xaf",
            "surrogate": b"\xed\xa0\x80",
            "over_10ffff": b"\xf4\x90\x80\x80",
            "byte_ff": b"\xff",
        }.items()
    ),
    Exhibit(
        "key_is_not_utf8",
        "Node",
        _node(metadata=map_(STRING, STRING, (string(b"\xff"), string("")))),
        r"metadata: the text is not valid UTF-8",
    ),
    # Ends
    Exhibit("empty", "Device", b"", r"the bytes end where the next byte should be \(at byte 0\)"),
    Exhibit(
        "trailing_byte",
        "Device",
        struct((10, STRING, string("cpu"))) + b"\0",
        r"1 bytes follow the end of the struct",
    ),
    Exhibit(
        "double_cut_short",
        "ComplexValue",
        b"\xa7" + b"\0" * 7,
        r"real: the bytes end where a double should be",
    ),
    Exhibit("uuid_cut_short", "Device", b"\x1d" + b"\0" * 15, r"the bytes end where a value should be"),
    # Paths
    Exhibit(
        "path_through_everything",
        "Graph",
        struct(
            (
                30,
                LIST,
                list_(STRUCT, _node(), _node(inputs=list_(STRUCT, _input(_argument(20, STRUCT, b"\0"))))),
            )
        ),
        r'^nodes\[1\]\.inputs\[0\]\.arg\.as_string_to_argument\["k"\]\.as_tensor: '
        r"the struct TensorArgument lacks name \(at byte \d+\)$",
    ),
]


def test_every_exhibit_is_refused_with_its_message() -> None:
    outcomes = cpp.answers(cpp.dumper(), [(exhibit.type, exhibit.data) for exhibit in MUSEUM])
    wrong = {
        exhibit.name: outcome.text[:300].decode()
        for exhibit, outcome in zip(MUSEUM, outcomes, strict=True)
        if outcome.ok or not re.search(exhibit.message, outcome.text.decode())
    }
    assert not wrong


#: A legal document: the header's budget is what stops it. Python takes memory in proportion to its bytes.
_LEGAL = {"flood_of_tiny_unions"}


def test_python_refuses_each_exhibit_too() -> None:
    read = set()
    for exhibit in MUSEUM:
        try:
            thrift_codec.decode(getattr(types, exhibit.type), exhibit.data, unknown=[])
        except CodecError:
            continue
        read.add(exhibit.name)
    assert read == _LEGAL


#: Of Python's exhibits, what the header takes: unknown fields are skipped, unknown members and values shown.
_TAKEN = {
    "an unknown field",
    "an own field of a later revision",
    "an unknown member",
    "an unknown value of an enum",
}


def test_exhibits_of_python_are_refused_too() -> None:
    cases = [(cls.__name__, data) for cls, data, _ in PYTHON_MUSEUM.values()]
    outcomes = cpp.answers(cpp.dumper(), cases)
    assert {name for name, outcome in zip(PYTHON_MUSEUM, outcomes, strict=True) if outcome.ok} == _TAKEN


def test_every_truncation_of_a_program_is_refused() -> None:
    tree = next(
        tree for tree in trees() if isinstance(tree, types.ExportedProgram) and tree.writer is not None
    )
    data = thrift_codec.encode(tree)
    outcomes = cpp.answers(cpp.dumper(), [("ExportedProgram", data[:size]) for size in range(len(data) + 1)])
    assert [outcome.ok for outcome in outcomes] == [False] * len(data) + [True]


#: Bytes from newer writers, and what is seen of them: fields are skipped, members and enum numbers visible.
_NEWER = [
    (
        "Device",
        struct((10, STRING, string("cpu")), (900, STRING, string(b"\xff"))),
        'Device{type="cpu",index=-,} skipped 1',
    ),
    ("Device", struct((5, TRUE, b""), (10, STRING, string("cpu"))), 'Device{type="cpu",index=-,} skipped 1'),
    (
        "Device",
        struct(
            (10, STRING, string("cpu")),
            (900, STRUCT, struct((1, LIST, list_(STRUCT, *[struct()] * 100_000)), (2, UUID, b"\0" * 16))),
            (
                901,
                MAP,
                map_(STRING, LIST, (string("a"), list_(TRUE, b"\x01")), (string("a"), list_(DOUBLE, _ONE))),
            ),
            (902, SET, list_(I16, number(-1))),
            (903, MAP, map_(STRING, STRING)),
        ),
        'Device{type="cpu",index=-,} skipped 4',
    ),
    ("Argument", _argument(999, STRUCT, _nested(30)), "Argument.?(999)"),
    ("Argument", _argument(130, I32, number(99)), "Argument.as_scalar_type(99:)"),
    ("Argument", _argument(130, I32, number(-(2**31))), "Argument.as_scalar_type(-2147483648:)"),
]


def test_what_a_newer_writer_adds_is_skipped_or_visible() -> None:
    outcomes = cpp.answers(cpp.dumper(), [(name, data) for name, data, _ in _NEWER])
    assert [outcome.text.decode() for outcome in outcomes] == [expected for _, _, expected in _NEWER]


def test_depth_limit_is_that_of_apache() -> None:
    cases = [("Argument", _nested(levels)) for levels in (63, 64, 65)]
    cases += [("Argument", _nested(levels, (99, I32, number(1)))) for levels in (62, 63, 64)]
    ours = [outcome.ok for outcome in cpp.answers(cpp.dumper(), cases)]
    apache = [outcome.ok for outcome in cpp.answers(cpp.apache(), cases)]
    assert ours == apache == [True, True, False] * 2


def _colliding_keys(count: int) -> list[bytes]:
    """Texts of 8 ASCII bytes whose hashes agree in the low 32 bits: map_index.h, inverted."""
    first, second = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
    undo_first, undo_second = np.uint64(pow(first, -1, 2**64)), np.uint64(pow(second, -1, 2**64))

    def unmix(hashes: np.ndarray) -> np.ndarray:
        hashes = hashes ^ (hashes >> np.uint64(29)) ^ (hashes >> np.uint64(58))
        hashes = hashes * undo_first
        return hashes ^ (hashes >> np.uint64(32))

    hashes = np.arange(count * 400, dtype=np.uint64) << np.uint64(32)
    state = unmix(unmix(hashes) * undo_second)
    words = unmix(state * undo_second) - np.uint64(8)
    ascii_only = words[(words & np.uint64(0x8080808080808080)) == 0]
    return [word.tobytes() for word in ascii_only[:count]]


def test_keys_made_to_collide_are_refused() -> None:
    keys = _colliding_keys(60_000)
    assert len(keys) == len(set(keys)) == 60_000
    hostile = _node(metadata=map_(STRING, STRING, *((string(key), string("")) for key in keys)))
    harmless = _node(metadata=map_(STRING, STRING, *((string(f"{i:08}"), string("")) for i in range(60_000))))
    refused, accepted = cpp.answers(cpp.dumper(), [("Node", hostile), ("Node", harmless)])
    assert refused.text.startswith(b"metadata: the keys of the map have been made to collide")
    assert accepted.ok


def mutations(seeds: list[tuple[str, bytes]], count: int) -> Iterator[tuple[str, bytes]]:
    chance = random.Random(20)
    for _ in range(count):
        name, data = chance.choice(seeds)
        changed = bytearray(data)
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            at = chance.randrange(len(changed) + 1)
            match chance.randrange(4):
                case 0:
                    changed[at : at + 1] = bytes([chance.randrange(256)])
                case 1:
                    changed[at:at] = bytes(
                        chance.choices((0, 1, 0x0C, 0x18, 0x19, 0x1C, 0x7F, 0xFF), k=chance.randrange(1, 4))
                    )
                case 2:
                    del changed[at : at + chance.randrange(1, 6)]
                case _:
                    changed[at : at + 1] = (
                        bytes([changed[at] ^ 1 << chance.randrange(8)]) if at < len(changed) else b""
                    )
        yield name, bytes(changed)


def test_mutated_bytes_give_an_error_or_the_tree_that_python_reads() -> None:
    made = [tree for tree in trees() if isinstance(tree, types.Struct)]
    seeds = [
        (type(tree).__name__, data) for tree in made if 20 < len(data := thrift_codec.encode(tree)) < 2000
    ]
    cases = list(mutations(seeds, 6000))
    outcomes = cpp.answers(cpp.dumper(), cases)
    read = 0
    for outcome, (name, data) in zip(outcomes, cases, strict=True):
        try:
            tree = thrift_codec.decode(getattr(types, name), data)
        except CodecError:
            continue
        read += 1
        assert outcome.ok, (name, data.hex(), outcome.text)
        assert outcome.text.decode() == cpp.dump(tree, NamedType(name, Kind.STRUCT)), (name, data.hex())
    assert 500 < read < 5500
