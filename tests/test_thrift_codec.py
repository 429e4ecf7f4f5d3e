"""Thrift bytes: what is valid survives and agrees with JSON and with Apache's code; nothing else reads."""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import threading
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pt2wire.generated import (
    Argument,
    CodecError,
    DepthError,
    Device,
    Graph,
    GraphArgument,
    NamedArgument,
    Node,
    RangeConstraint,
    ScalarType,
    Struct,
    SymInt,
    TensorArgument,
    Union,
    WidthError,
    _thrift_reader,
    json_codec,
    thrift_codec,
    types,
)
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.transport.TTransport import TMemoryBuffer

from .helpers.idl import python_module
from .helpers.strategies import COMPOSITES, trees

PROPERTY = settings(max_examples=25, deadline=None)
each_type = pytest.mark.parametrize("cls", COMPOSITES, ids=lambda cls: cls.__name__)


def nested_graphs(levels: int) -> Graph:
    """A graph that holds a graph, as higher-order operators do; each level is five structs and unions."""
    graph = Graph([], [], [], {}, {}, {})
    for level in range(levels):
        arg = Argument.of_graph(GraphArgument(f"g{level}", graph))
        node = Node("cond", [NamedArgument("body", arg)], [], {})
        graph = Graph([], [], [node], {}, {}, {})
    return graph


@each_type
def test_bytes_read_back_equal_quickly_and_slowly(cls: type[Any]) -> None:
    @PROPERTY
    @given(trees(cls))
    def check(tree: Any) -> None:
        data = thrift_codec.encode(tree)
        fast = thrift_codec._decode_fast(cls, data)
        assert fast is not None, "the fast path hands valid bytes to the slow one"
        for found in (fast, thrift_codec.decode(cls, data), _thrift_reader.read(cls, data, None)):
            # Bytes rather than `==`, because NaN differs from itself; `repr` shows enums and tags.
            assert thrift_codec.encode(found) == data
            assert repr(found) == repr(tree)

    check()


@each_type
def test_thrift_and_json_hold_the_same(cls: type[Any]) -> None:
    @PROPERTY
    @given(trees(cls))
    def check(tree: Any) -> None:
        through_json = json_codec.decode(cls, json_codec.encode(tree))
        assert thrift_codec.encode(through_json) == thrift_codec.encode(tree)

    check()


@pytest.fixture(scope="module")
def apache() -> ModuleType:
    """The types that Apache's compiler makes of our IDL."""
    return python_module()


@each_type
def test_apaches_code_reads_our_bytes_and_writes_the_same(cls: type[Any], apache: ModuleType) -> None:
    @settings(max_examples=10, deadline=None)
    @given(trees(cls))
    def check(tree: Any) -> None:
        data = thrift_codec.encode(tree)
        theirs = getattr(apache, cls.__name__)()
        theirs.read(TCompactProtocol(TMemoryBuffer(data)))  # the protocol in Python, not the C extension
        assert as_apaches(tree, apache) == theirs
        buffer = TMemoryBuffer()
        theirs.write(TCompactProtocol(buffer))
        assert buffer.getvalue() == data

    check()


def as_apaches(value: Any, apache: ModuleType) -> Any:
    match value:
        case Union():
            return getattr(apache, type(value).__name__)(**{value.type: as_apaches(value.value, apache)})
        case Struct():
            values = {name: as_apaches(getattr(value, name), apache) for name in value.FIELD_IDS}
            return getattr(apache, type(value).__name__)(**values)
        case list():
            return [as_apaches(item, apache) for item in value]
        case dict():
            return {key: as_apaches(item, apache) for key, item in value.items()}
        case float() if value != value:
            return pytest.approx(value, nan_ok=True)
        case _:
            return value


@PROPERTY
@given(data=st.data(), tree=trees(Graph))
def test_mutated_bytes_are_a_codec_error_or_a_valid_tree(data: st.DataObject, tree: Graph) -> None:
    raw = bytearray(thrift_codec.encode(tree))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(raw)))
        match data.draw(st.sampled_from(["set", "insert", "delete", "cut"])):
            case "set":
                raw[place : place + 1] = [data.draw(st.integers(0, 255))]
            case "insert":
                raw[place:place] = data.draw(st.binary(max_size=4))
            case "delete":
                del raw[place : place + data.draw(st.integers(1, 4))]
            case "cut":
                del raw[place:]
    agree(Graph, bytes(raw))


@PROPERTY
@given(st.sampled_from(COMPOSITES), st.binary(max_size=60))
def test_arbitrary_bytes_are_a_codec_error_or_a_valid_tree(cls: type[Any], raw: bytes) -> None:
    agree(cls, raw)


def agree(cls: type[Any], raw: bytes) -> None:
    """Reads bytes by both paths, which must agree on whether they are valid, and on what they hold."""
    try:
        found = thrift_codec.decode(cls, raw)
    except CodecError:
        with pytest.raises(CodecError):
            _thrift_reader.read(cls, raw, None)
        return
    slow = _thrift_reader.read(cls, raw, None)
    assert thrift_codec.encode(found) == thrift_codec.encode(slow)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_every_mutation_the_fast_path_accepts_the_slow_one_accepts(data: st.DataObject) -> None:
    raw = bytearray(thrift_codec.encode(data.draw(trees(Node, depth=1))))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    fast = thrift_codec._decode_fast(Node, bytes(raw))
    if fast is not None:
        assert repr(_thrift_reader.read(Node, bytes(raw), None)) == repr(fast)


def test_every_truncation_is_a_codec_error() -> None:
    data = thrift_codec.encode(nested_graphs(2))
    for length in range(len(data)):
        with pytest.raises(CodecError):
            thrift_codec.decode(Graph, data[:length])


def test_enums_arrive_as_enums_and_unions_with_their_type() -> None:
    arg = thrift_codec.decode(Argument, thrift_codec.encode(Argument.of_scalar_type(ScalarType.HALF)))
    assert arg.type == "as_scalar_type"
    assert type(arg.value) is ScalarType


def test_memoryviews_are_read() -> None:
    data = thrift_codec.encode(Device("cuda", 1))
    assert thrift_codec.decode(Device, memoryview(b"--" + data)[2:]) == Device("cuda", 1)


def test_optional_fields_left_out_are_none_and_others_take_their_defaults() -> None:
    assert thrift_codec.decode(RangeConstraint, b"\0") == RangeConstraint(None, None)
    graph = Graph([], [], [], {}, {}, {})
    data = thrift_codec.encode(graph)
    without = data[:-6] + b"\0"  # the last three fields: a bool and two empty maps
    assert data[-6:] == bytes([0xA2, 0xAB, 0, 0xAB, 0, 0])
    with pytest.raises(CodecError):
        thrift_codec.decode(Graph, data[:-6])
    assert thrift_codec.decode(Graph, without) == graph


def test_a_program_as_deep_as_thrift_allows_is_written_and_read() -> None:
    graph = nested_graphs(12)
    assert thrift_codec.decode(Graph, thrift_codec.encode(graph)) == graph


def test_a_program_deeper_than_thrift_allows_is_not_written() -> None:
    with pytest.raises(DepthError) as caught:
        thrift_codec.encode(nested_graphs(13))
    assert caught.value.message == "expected at most 64 structs and unions on a path, found more"
    assert caught.value.path.startswith("nodes[0].inputs[0].arg.as_graph.graph.nodes[0].inputs[0]")
    assert json_codec.decode(Graph, json_codec.encode(nested_graphs(13))) == nested_graphs(13)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**4300 - 1])
@pytest.mark.parametrize("make", [Argument.of_int, lambda number: Argument.of_ints([1, number])])
def test_an_integer_longer_than_thrift_allows_is_written_as_json_alone(make: Any, number: int) -> None:
    argument = make(number)
    with pytest.raises(WidthError, match="expected a 64-bit integer, as Thrift's are, found") as caught:
        thrift_codec.encode(argument)
    assert caught.value.path in ("as_int", "as_ints[1]")
    text = json_codec.encode(argument)
    assert json.loads(text) == {argument.type: argument.value}
    assert json_codec.decode(Argument, text) == argument


@pytest.mark.parametrize("levels", [11, 12])
def test_the_depth_is_exact_for_what_hangs_below_the_deepest_graph(levels: int) -> None:
    graph = nested_graphs(levels)
    deepest = graph
    while deepest.nodes:
        deepest = deepest.nodes[0].inputs[0].arg.as_graph.graph
    size = SymInt.of_expr(types.SymExpr("s0", types.SymExprHint.of_int(3)))
    deepest.sym_int_values["s0"] = size  # three more levels
    depth = 1 + 5 * levels + 3
    if depth <= 64:
        assert thrift_codec.decode(Graph, thrift_codec.encode(graph)) == graph
    size.as_expr.hint = None
    assert thrift_codec.decode(Graph, thrift_codec.encode(graph)) == graph


def test_a_graph_that_contains_itself_is_refused() -> None:
    graph = nested_graphs(1)
    graph.nodes[0].inputs[0].arg.as_graph.graph = graph
    for codec in (thrift_codec, json_codec):
        with pytest.raises(CodecError, match="structs and unions on a path, found more"):
            codec.encode(graph)


def test_threads_decode_at_the_same_time() -> None:
    data = thrift_codec.encode(nested_graphs(5))
    results: list[bool] = []

    def work() -> None:
        results.extend(thrift_codec.decode(Graph, data) == nested_graphs(5) for _ in range(50))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_decodes_although_another_thread_was_decoding_when_it_was_forked() -> None:
    data = thrift_codec.encode(Device("cpu"))
    with thrift_codec._lock:
        child = os.fork()
        if child == 0:
            os._exit(0 if thrift_codec.decode(Device, data) == Device("cpu") else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_left_as_it_was(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    try:
        for codec in (thrift_codec, json_codec):
            data = codec.encode(Device("cpu"))
            codec.decode(Device, data)
            with pytest.raises(CodecError):
                codec.decode(Device, data[:-1])
            assert gc.isenabled() is enabled
    finally:
        gc.enable()


def test_decoded_objects_are_not_kept_alive() -> None:
    data = thrift_codec.encode(Argument.of_tensor(TensorArgument("x")))
    assert not any(made for made, _ in importlib.import_module("pt2wire.generated._thrift_build")._FINISHING)
    tree = thrift_codec.decode(Argument, data)
    assert sys.getrefcount(tree) == 2


def test_a_wrong_class_is_a_type_error() -> None:
    for codec in (thrift_codec, json_codec):
        with pytest.raises(TypeError, match=r"^expected a struct or union of .*types, found <class 'int'>$"):
            codec.decode(int, b"{}")  # type: ignore[type-var]


@pytest.mark.parametrize("data", [5, "text", None])
def test_data_that_is_no_bytes_is_a_type_error(data: Any) -> None:
    for codec in (thrift_codec, json_codec):
        with pytest.raises(TypeError):
            codec.decode(Device, data)
