"""JSON: the same keys and values as PyTorch's, read by PyTorch, and strict when read by us."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pt2wire.generated import (
    Argument,
    ArgumentKind,
    CodecError,
    DepthError,
    Device,
    ExportedProgram,
    NamedArgument,
    Node,
    PayloadMeta,
    RangeConstraint,
    ScalarType,
    SymInt,
    Writer,
    _json_reader,
    json_codec,
    thrift_codec,
)
from torch._export.serde import schema as pytorch
from torch._export.serde.serialize import _bytes_to_dataclass, _dataclass_to_dict, _to_json_bytes

from .helpers.oracles import forget_own_fields
from .helpers.schema_versions import NEWER
from .helpers.strategies import COMPOSITES, trees

PROPERTY = settings(max_examples=25, deadline=None)
each_type = pytest.mark.parametrize("cls", COMPOSITES, ids=lambda cls: cls.__name__)
each_type_of_pytorch = pytest.mark.parametrize(
    "cls", [cls for cls in COMPOSITES if hasattr(pytorch, cls.__name__)], ids=lambda cls: cls.__name__
)


@each_type
def test_json_reads_back_equal_quickly_and_slowly(cls: type[Any]) -> None:
    @PROPERTY
    @given(trees(cls))
    def check(tree: Any) -> None:
        plain = json_codec.to_plain(tree)
        data = json_codec.encode(tree)
        assert json.loads(data) == plain
        fast = json_codec._read_fast(cls, plain)
        assert fast is not None, "the fast path hands valid values to the slow one"
        slow = _json_reader.read(cls, plain, None)
        for found in (fast, slow, json_codec.from_plain(cls, plain), json_codec.decode(cls, data)):
            assert thrift_codec.encode(found) == thrift_codec.encode(tree)
            assert repr(found) == repr(tree)

    check()


@each_type_of_pytorch
def test_pytorch_reads_our_json_and_writes_the_same(cls: type[Any]) -> None:
    @PROPERTY
    @given(trees(cls, own=False))
    def check(tree: Any) -> None:
        data = json_codec.encode(tree)
        theirs = _bytes_to_dataclass(getattr(pytorch, cls.__name__), data)
        assert list(walk(json.loads(_to_json_bytes(theirs)))) == list(walk(json.loads(data)))
        assert list(walk(_dataclass_to_dict(theirs))) == list(walk(json_codec.to_plain(tree)))

    check()


def walk(value: Any, path: str = "") -> Any:
    """All leaves with their paths, in order: comparing these compares the order of keys too."""
    match value:
        case dict() if value:
            for key, item in value.items():
                yield from walk(item, f"{path}.{key}")
        case list() if value:
            for index, item in enumerate(value):
                yield from walk(item, f"{path}[{index}]")
        case _:
            yield path, type(value), value


@each_type_of_pytorch
def test_pytorch_ignores_own_fields(cls: type[Any]) -> None:
    @settings(max_examples=10, deadline=None)
    @given(trees(cls))
    def check(tree: Any) -> None:
        theirs = _bytes_to_dataclass(getattr(pytorch, cls.__name__), json_codec.encode(tree))
        ours = json_codec.decode(cls, _to_json_bytes(theirs))
        forget_own_fields(tree)
        assert thrift_codec.encode(ours) == thrift_codec.encode(tree)

    check()


@PROPERTY
@given(data=st.data(), tree=trees(Node))
def test_mutated_text_is_a_codec_error_or_a_valid_tree(data: st.DataObject, tree: Node) -> None:
    raw = bytearray(json_codec.encode(tree))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(raw)))
        raw[place : place + data.draw(st.integers(0, 3))] = data.draw(
            st.binary(max_size=3)
            | st.sampled_from([b'"', b"{}", b"[]", b"null", b"1", b"-", b"true", b"1e999"])
        )
    try:
        found = json_codec.decode(Node, bytes(raw))
    except CodecError:
        return
    plain = json.loads(raw.decode())
    assert thrift_codec.encode(_json_reader.read(Node, plain, None)) == thrift_codec.encode(found)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@PROPERTY
@given(data=st.data(), tree=trees(Node))
def test_values_replaced_by_others_are_a_codec_error_or_a_valid_tree(data: st.DataObject, tree: Node) -> None:
    plain = json_codec.to_plain(tree)
    spots: list[tuple[Any, Any]] = []

    def collect(value: Any) -> None:
        entries = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, item in entries:
            spots.append((value, key))
            collect(item)

    collect(plain)
    holder, key = data.draw(st.sampled_from(spots))
    holder[key] = data.draw(_JSON)
    fast = json_codec._read_fast(Node, plain)
    try:
        slow = _json_reader.read(Node, plain, None)
    except CodecError:
        assert fast is None
        return
    assert fast is not None
    assert thrift_codec.encode(fast) == thrift_codec.encode(slow)


@pytest.mark.parametrize(
    ("value", "text"), [(math.inf, "Infinity"), (-math.inf, "-Infinity"), (math.nan, "NaN"), (-0.0, -0.0)]
)
def test_special_doubles_are_written_as_pytorch_does(value: float, text: Any) -> None:
    ours, theirs = Argument.of_floats([value]), pytorch.Argument.create(as_floats=[value])
    data = json_codec.encode(ours)
    assert json.loads(data) == json.loads(_to_json_bytes(theirs)) == {"as_floats": [text]}
    assert repr(json_codec.decode(Argument, data)) == repr(ours)


def test_an_integer_will_do_for_a_double_as_in_pytorch() -> None:
    found = json_codec.decode(Argument, b'{"as_float": 1}')
    assert found == Argument.of_float(1.0)
    assert type(found.value) is float
    theirs = _bytes_to_dataclass(pytorch.Argument, b'{"as_float": 1}')
    assert (type(theirs.as_float), theirs.as_float) == (float, 1.0)


def test_own_fields_are_left_out_while_unset_and_written_last_otherwise() -> None:
    meta = PayloadMeta("weight_0", True, False, None)
    assert json_codec.encode(meta) == (
        b'{"path_name":"weight_0","is_param":true,"use_pickle":false,"tensor_meta":null}'
    )
    meta.alias_of = "w"
    assert json_codec.encode(meta).endswith(b'"tensor_meta":null,"alias_of":"w"}')
    assert (
        json_codec.encode(Writer("pt2wire", "0.1", 1)) == b'{"name":"pt2wire","version":"0.1","revision":1}'
    )


def test_fields_that_older_versions_lack_take_their_defaults() -> None:
    old = b'{"target": "t", "inputs": [{"name": "x", "arg": {"as_int": 1}}], "outputs": [], "metadata": {}}'
    expected = Node("t", [NamedArgument("x", Argument.of_int(1))], [], {})
    assert json_codec._read_fast(Node, json.loads(old)) == json_codec.decode(Node, old) == expected


def test_enums_are_numbers_in_json_and_enums_in_trees() -> None:
    data = json_codec.encode(
        NamedArgument("x", Argument.of_scalar_type(ScalarType.HALF), ArgumentKind.KEYWORD)
    )
    assert data == b'{"name":"x","arg":{"as_scalar_type":6},"kind":2}'
    found = json_codec.decode(NamedArgument, data)
    assert (type(found.kind), type(found.arg.value)) == (ArgumentKind, ScalarType)


def test_text_beyond_ascii_is_escaped_and_read_in_both_forms() -> None:
    device = Device("é\U0001f600")
    assert json_codec.encode(device) == b'{"type":"\\u00e9\\ud83d\\ude00","index":null}'
    for data in (json_codec.encode(device), '{"type":"é\U0001f600"}'.encode()):
        assert json_codec.decode(Device, data) == device


def test_an_escaped_pair_of_surrogates_is_no_reason_to_read_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_json_reader, "read", None)
    assert json_codec.decode(Device, json_codec.encode(Device("\U0001f600"))) == Device("\U0001f600")
    assert json_codec.decode(Device, b'{"type": "\\\\ud800"}') == Device("\\ud800")


def test_plain_values_share_no_container_with_the_tree() -> None:
    node = Node("t", [], [Argument.of_ints([1])], {"k": "v"})
    plain = json_codec.to_plain(node)
    plain["metadata"]["k"] = plain["outputs"][0]["as_ints"][0] = "changed"
    assert node == Node("t", [], [Argument.of_ints([1])], {"k": "v"})
    again = json_codec.to_plain(node)
    found = json_codec.from_plain(Node, again)
    found.metadata["k"] = "changed"
    assert again == json_codec.to_plain(node)


def argument(levels: int) -> Argument:
    made = Argument.of_none(True)
    for _ in range(levels - 1):
        made = Argument.of_string_to_argument({"k": made})
    return made


def test_the_depth_of_json_is_bounded_on_both_sides() -> None:
    deepest = argument(128)
    assert json_codec.decode(Argument, json_codec.encode(deepest)) == deepest
    with pytest.raises(DepthError, match="expected at most 128 structs and unions on a path, found more"):
        json_codec.encode(argument(129))
    text = b'{"as_string_to_argument":{"k":' * 128 + b'{"as_none":true}' + b"}}" * 128
    with pytest.raises(CodecError, match="expected at most 128 structs and unions on a path, found more"):
        json_codec.decode(Argument, text)


BIG = "9" * 40

MUSEUM: dict[str, tuple[type[Any], bytes, str]] = {
    "nothing": (
        Device,
        b"",
        "expected JSON, found something else: Expecting value: line 1 column 1 (char 0)",
    ),
    "text after the end": (
        Device,
        b'{"type": "cpu"} x',
        "expected JSON, found something else: Extra data: line 1 column 17 (char 16)",
    ),
    "a byte order mark": (
        Device,
        b'\xef\xbb\xbf{"type": "cpu"}',
        "expected JSON, found something else: Expecting value: line 1 column 1 (char 0)",
    ),
    "bytes that are not UTF-8": (
        Device,
        b'{"type": "\xff"}',
        "expected UTF-8, found invalid start byte at byte 10",
    ),
    "UTF-16": (
        Device,
        '{"type": "cpu"}'.encode("utf-16"),
        "expected UTF-8, found invalid start byte at byte 0",
    ),
    "a lone surrogate": (
        Device,
        b'{"type": "a\\ud800"}',
        "type: expected text that UTF-8 can hold, found a lone surrogate at 1",
    ),
    "a lone surrogate in a key": (
        Node,
        b'{"target": "t", "inputs": [], "outputs": [], "metadata": {"\\uDc00": "v"}}',
        "metadata['\\udc00']: expected text that UTF-8 can hold, found a lone surrogate at 0",
    ),
    "NaN as a number": (
        Argument,
        b'{"as_float": NaN}',
        'expected JSON, found something else: NaN as a number; it is written as "NaN"',
    ),
    "-Infinity as a number": (
        Argument,
        b'{"as_float": -Infinity}',
        'expected JSON, found something else: -Infinity as a number; it is written as "-Infinity"',
    ),
    "a number that overflows a double": (
        Argument,
        b'{"as_float": 1e999}',
        'as_float: expected a double, "NaN", "Infinity" or "-Infinity", found float inf',
    ),
    "an integer that no double holds": (
        Argument,
        b'{"as_float": 9007199254740993}',
        'as_float: expected a double, "NaN", "Infinity" or "-Infinity", found int 9007199254740993',
    ),
    "a number as a string": (
        Argument,
        b'{"as_float": "1.5"}',
        'as_float: expected a double, "NaN", "Infinity" or "-Infinity", found str \'1.5\'',
    ),
    "nested beyond Python": (
        Device,
        b"[" * 100_000,
        "expected JSON that is not nested too deeply for Python, found deeper",
    ),
    "an integer of thousands of digits": (
        SymInt,
        b'{"as_int": ' + b"9" * 5000 + b"}",
        "expected JSON, found something else: Exceeds the limit (4300 digits) for integer string conversion: "
        "value has 5000 digits; use sys.set_int_max_str_digits() to increase the limit",
    ),
    "an integer beyond 64 bits": (
        SymInt,
        b'{"as_int": %s}' % BIG.encode(),
        f"as_int: expected a 64-bit integer, found int {BIG}",
    ),
    "a bool for an integer": (
        SymInt,
        b'{"as_int": true}',
        "as_int: expected a 64-bit integer, found bool True",
    ),
    "a double for an integer": (
        SymInt,
        b'{"as_int": 1.0}',
        "as_int: expected a 64-bit integer, found float 1.0",
    ),
    "an integer for a bool": (Argument, b'{"as_bool": 1}', "as_bool: expected true or false, found int 1"),
    "a bool for an enum": (
        Argument,
        b'{"as_layout": true}',
        "as_layout: expected a number of Layout, found bool True",
    ),
    "an unknown value of an enum": (
        Argument,
        b'{"as_layout": 77}',
        f"as_layout: Layout has no value 77 {NEWER}",
    ),
    "an enum by name": (
        Argument,
        b'{"as_layout": "Strided"}',
        "as_layout: expected a number of Layout, found str 'Strided'",
    ),
    "null for a string": (Device, b'{"type": null}', "type: expected a string, found None"),
    "an array for the program": (Device, b"[]", "expected an object for Device, found list []"),
    "a string for a struct": (
        NamedArgument,
        b'{"name": "x", "arg": "as_int"}',
        "arg: expected an object for Argument, found str 'as_int'",
    ),
    "a string for a list": (
        Argument,
        b'{"as_strings": "ab"}',
        "as_strings: expected an array, found str 'ab'",
    ),
    "an object for a list": (Argument, b'{"as_tensors": {}}', "as_tensors: expected an array, found dict {}"),
    "an array for a map": (
        Argument,
        b'{"as_string_to_argument": []}',
        "as_string_to_argument: expected an object for a map, found list []",
    ),
    "a required field left out": (Device, b'{"index": 1}', "expected the key 'type' of Device, found none"),
    "an unknown field": (Device, b'{"type": "cpu", "core": 1}', f"Device has no field 'core' {NEWER}"),
    "an unknown member": (Argument, b'{"as_tuple": []}', f"Argument has no member 'as_tuple' {NEWER}"),
    "a union without a member": (SymInt, b"{}", "expected exactly one member of SymInt, found none"),
    "a union with two members": (
        SymInt,
        b'{"as_int": 1, "as_expr": null}',
        "expected exactly one member of SymInt, found 'as_int', 'as_expr'",
    ),
    "a union whose member is null": (
        SymInt,
        b'{"as_int": null}',
        "as_int: expected a 64-bit integer, found None",
    ),
    "a key twice": (
        Device,
        b'{"type": "cpu", "index": 1, "type": "cuda"}',
        "expected each key once, found 'type' twice",
    ),
    "a member twice": (
        SymInt,
        b'{"as_int": 1, "as_int": 1}',
        "expected each key once, found 'as_int' twice",
    ),
    "a key twice, further inside": (
        Node,
        b'{"target": "t", "inputs": [], "outputs": [{"as_int": 1}, {"as_device": {"type": "", "type": ""}}],'
        b' "metadata": {}}',
        "outputs[1].as_device: expected each key once, found 'type' twice",
    ),
    "a key of a map twice": (
        Node,
        b'{"target": "t", "inputs": [], "outputs": [], "metadata": {"k": "", "k": ""}}',
        "metadata: expected each key once, found 'k' twice",
    ),
    "a fault deep inside": (
        Node,
        b'{"target": "t", "inputs": [], "outputs": [{"as_sym_ints": [{"as_int": 1}, {"as_int": "2"}]}],'
        b' "metadata": {}}',
        "outputs[0].as_sym_ints[1].as_int: expected an integer, found str '2'",
    ),
}


@pytest.mark.parametrize("name", MUSEUM)
def test_hostile_text_is_refused(name: str) -> None:
    cls, data, message = MUSEUM[name]
    with pytest.raises(CodecError) as caught:
        json_codec.decode(cls, data)
    assert str(caught.value) == message


def test_unknown_fields_are_listed_and_dropped() -> None:
    data = b"""{"target": "t", "outputs": [{"as_device": {"type": "cpu", "core": [{"as_int": "?"}]}}],
        "inputs": [], "metadata": {}, "color and size": 1}"""
    unknown = ["earlier"]
    expected = Node("t", [], [Argument.of_device(Device("cpu"))], {})
    assert json_codec.decode(Node, data, unknown=unknown) == expected
    assert unknown == ["earlier", "['color and size']", "outputs[0].as_device.core"]


def test_an_unknown_member_is_an_error_even_when_unknown_fields_are_not() -> None:
    with pytest.raises(CodecError, match="has no member 'as_tuple'"):
        json_codec.decode(Argument, b'{"as_tuple": []}', unknown=[])


def test_a_key_twice_is_an_error_in_what_is_dropped_too() -> None:
    with pytest.raises(
        CodecError, match="expected each key once, found one twice in a field that is not known"
    ):
        json_codec.decode(Device, b'{"type": "cpu", "core": {"a": 1, "a": 2}}', unknown=[])


@pytest.mark.parametrize("more", [b'"core": "\\udc00"', b'"core": [{"\\ud800": 1}]', b'"\\ud800": 1'])
def test_half_a_surrogate_pair_is_an_error_in_what_is_dropped_too(more: bytes) -> None:
    with pytest.raises(CodecError, match="found a lone surrogate in a field that is not known"):
        json_codec.decode(Device, b'{"type": "cpu", ' + more + b"}", unknown=[])


@pytest.mark.parametrize("key", [1, None, ("a",)])
def test_plain_values_with_keys_that_are_not_strings_are_refused(key: Any) -> None:
    plain = {"target": "t", "inputs": [], "outputs": [], "metadata": {key: "v"}}
    with pytest.raises(CodecError) as caught:
        json_codec.from_plain(Node, plain)
    assert str(caught.value) == f"metadata: expected keys that are strings, found {key!r}"
    with pytest.raises(CodecError, match="expected keys that are strings"):
        json_codec.from_plain(Argument, {key: 1, "as_int": 1})


def test_what_messages_show_of_a_file_is_cut() -> None:
    for data in (b'{"%s": 1}' % (b"x" * 10_000), b'{"as_int": "%s"}' % (b"x" * 10_000)):
        with pytest.raises(CodecError) as caught:
            json_codec.decode(SymInt, data)
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("tree", "plain"),
    [
        (RangeConstraint(None, None), {}),
        (RangeConstraint(1, None), {"min_val": 1}),
        (PayloadMeta("a", True, False, None), {"path_name": "a", "is_param": True, "use_pickle": False}),
    ],
)
def test_an_optional_field_that_is_left_out_is_unset_in_both_encodings(
    tree: RangeConstraint | PayloadMeta, plain: dict[str, Any]
) -> None:
    """Also without a default: Thrift has no other way to write what is unset."""
    assert json_codec.from_plain(type(tree), plain) == tree
    assert thrift_codec.decode(type(tree), thrift_codec.encode(tree)) == tree


def test_errors_carry_message_and_path() -> None:
    with pytest.raises(CodecError) as caught:
        json_codec.from_plain(ExportedProgram, {"graph_module": {"graph": {"nodes": 3}}})
    assert isinstance(caught.value, ValueError)
    assert (caught.value.path, caught.value.message) == (
        "graph_module.graph",
        "expected the key 'inputs' of Graph, found none",
    )
