"""What PyTorch's format loses comes back from ours, in both encodings; and PyTorch opens the file."""

from __future__ import annotations

import copy
import enum
import io
import math
import operator
import platform
import re
import sys
import time
import urllib.parse
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from typing import Any, NamedTuple

import numpy as np
import pt2wire
import pytest
import sympy
import torch
from hypothesis import given
from hypothesis import strategies as st
from pt2wire import SerializeError
from pt2wire.containers import is_harmless_named_tuple
from pt2wire.exporting.exact import export_note, export_plain_value
from pt2wire.generated import types
from pt2wire.importing.exact import import_plain_value
from torch.fx.immutable_collections import immutable_list
from torch.utils._sympy.value_ranges import ValueRanges

from .helpers.exporting import exported, node_named
from .helpers.objects import queue
from .helpers.oracles import pytorch_load
from .helpers.programs import assert_same_program, describe_value


class Place(NamedTuple):
    """A container of a class of its own."""

    row: int
    column: int


NOTES = [
    {(1, (2, "a")): 3},
    {1: "int", "1": "str", 1.5: "float", None: "none", False: "bool"},
    (1, [2, (3,)], {}),
    [(), [], math.inf, -0.0],
    {"dtype": torch.bfloat16, "device": torch.device("cuda", 1), "complex": 1 - 2j},
    (torch.strided, torch.channels_last),
    {torch.uint4: [torch.bits8], "packed": (torch.float4_e2m1fn_x2,)},
]


def _program(note: Any) -> torch.export.ExportedProgram:
    ep = exported(lambda self, x: x.relu() + 1, torch.ones(2))
    node_named(ep, "relu").meta["custom"] = note
    ep.graph_module.meta["custom"] = note
    return ep


@pytest.mark.parametrize("form", ["json", "thrift"])
@pytest.mark.parametrize("note", NOTES, ids=repr)
def test_notes_come_back_as_they_were(note: Any, form: Any) -> None:
    ep, file = _program(note), io.BytesIO()
    pt2wire.save(ep, file, formats=(form,))
    loaded = pt2wire.load(io.BytesIO(file.getvalue()))
    assert_same_program(ep, loaded)
    assert repr(loaded.graph_module.meta["custom"]) == repr(note)
    assert pt2wire.validate(pt2wire.to_tree(ep)) == []


class Count(int):
    """A number of a class of its own."""


class Level(enum.IntEnum):
    """Numbers with names."""

    LOW = 3


@pytest.mark.parametrize("constant", [Count(3), Level.LOW])
@pytest.mark.parametrize("make", [lambda c: {"a": c}, lambda c: {"a": (c,)}, lambda c: {c: Place(c, [c])}])
def test_constants_of_a_class_in_notes_come_back_plain_with_a_warning(constant: Any, make: Any) -> None:
    ep, file = _program(make(constant)), io.BytesIO()
    with pytest.warns(UserWarning, match=f"class {type(constant).__name__} comes back as the plain"):
        pt2wire.save(ep, file)
    loaded = pt2wire.load(io.BytesIO(file.getvalue()))
    assert repr(loaded.graph_module.meta["custom"]) == repr(make(3))


class Stubborn(dict[str, int]):
    """One that no method can read."""

    def __bool__(self) -> bool:
        raise AttributeError("for ever neither")

    items = None  # type: ignore[assignment]


#: Values of classes that are made with other arguments than their bases, and what they are without them.
OF_CLASSES = [
    (torch.Size([1, 2]), (1, 2)),
    (time.gmtime(0), (1970, 1, 1, 0, 0, 0, 3, 1, 0)),
    (torch.return_types.max((1, 2)), (1, 2)),
    (Counter("aab"), {"a": 2, "b": 1}),
    (defaultdict(list, {"a": [torch.Size([])]}), {"a": [()]}),
    (np.float64(1.5), 1.5),
    (np.str_("text"), "text"),
    (OrderedDict({Place(1, 2): Level.LOW}), {Place(1, 2): 3}),
    (Stubborn(a=1), {"a": 1}),
]


@pytest.mark.parametrize(("value", "plain"), OF_CLASSES, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(
    "wrap", [lambda value: value, lambda value: {"noted": [value]}], ids=["bare", "within"]
)
def test_values_of_classes_in_notes_come_back_plain(value: Any, plain: Any, wrap: Any) -> None:
    file, expected, note = io.BytesIO(), io.BytesIO(), wrap(value)
    ep = _program(note)
    node_named(ep, "x").meta["custom"] = note
    with pytest.warns(UserWarning, match=f"class {type(value).__name__} comes back as the plain"):
        pt2wire.save(ep, file)
    loaded = pt2wire.load(io.BytesIO(file.getvalue()))
    notes = [node_named(loaded, name).meta for name in ("x", "relu")]
    assert [repr(meta["custom"]) for meta in (*notes, loaded.graph_module.meta)] == [repr(wrap(plain))] * 3
    try:
        torch.export.save(ep, expected)
    except Exception:  # PyTorch asks more of notes
        return
    ours, theirs = (pytorch_load(each.getvalue()) for each in (file, expected))
    assert node_named(ours, "relu").meta["custom"] == node_named(theirs, "relu").meta["custom"]
    assert ours.graph_module.meta["custom"] == theirs.graph_module.meta["custom"]


@pytest.mark.parametrize(
    ("note", "message"),
    [
        ({"a": np.ones(2)}, "found numpy.ndarray"),
        (np.ones(2), "found numpy.ndarray"),
        ({"a": np.int64(1)}, "found numpy.int64"),
        ({"a": deque([1])}, "found collections.deque"),
        ({immutable_list([1]): 1}, "expected a constant or a tuple as key, found immutable_list"),
        ({"a": torch.ops.aten.relu.default}, "expected a constant, found OpOverload"),
        ({torch.ops.aten.relu.default: 1}, "expected a constant, found OpOverload"),
        ([torch.ops.higher_order.cond], "expected a constant, found CondOp"),
        ((torch.fx.Graph().get_attr("true_graph_0"),), "expected a constant, found the node `true_graph_0`"),
        ({"a": queue()}, "expected a constant, found ScriptObject"),
    ],
)
def test_notes_that_no_field_holds_are_refused_by_name(note: Any, message: str) -> None:
    with pytest.raises(SerializeError, match=f"expected custom metadata of texts, numbers, .*{message}"):
        pt2wire.save(_program(note), io.BytesIO())


def _parts(self: Any, x: torch.Tensor, condition: torch.Tensor) -> Any:
    one, other = x.split(1)
    with torch.no_grad():
        both = one * other
    chosen = torch.cond(condition, torch.sin, torch.cos, (one,))
    return chosen, both, other.topk(2).values, [part + 1 for part in torch.tensor_split(x, 2, dim=1)]


@pytest.mark.parametrize("form", ["json", "thrift"])
def test_modules_and_nodes_that_are_no_calls_keep_names_and_notes_of_their_own(form: Any) -> None:
    inputs = torch.ones(2, 3), torch.tensor(True)
    ep = exported(_parts, *inputs)
    for name, module in ep.graph_module.named_modules():
        module.meta["custom"] = {"of": name, "plain": [len(name)], "exact": (len(name),)}
        for node in module.graph.nodes:
            node.meta["custom"] = {"of": node.name, "number": (len(node.name),)}
    getters = [node for node in ep.graph.nodes if node.op == "get_attr"]
    assert any(node.name != node.target for node in getters)
    file = io.BytesIO()
    pt2wire.save(ep, file, formats=(form,))
    loaded = pt2wire.load(io.BytesIO(file.getvalue()))
    assert_same_program(ep, loaded)
    kinds = [(node.op, node.target is operator.getitem) for node in loaded.graph.nodes]
    assert ("get_attr", False) in kinds and ("call_function", True) in kinds
    if form == "json":
        assert torch.equal(pytorch_load(file.getvalue()).module()(*inputs)[0], torch.ones(1, 3).sin())


@pytest.mark.parametrize("note", [b"bytes", torch.ops.aten.relu.default], ids=["bytes", "operator"])
def test_what_no_note_can_hold_is_left_out_where_pytorch_drops_all_notes(note: Any) -> None:
    ep = exported(_parts, torch.ones(2, 3), torch.tensor(True))
    dropped: dict[str, Any] = {
        node.name: node for node in ep.graph.nodes if node.op != "call_function" or "getitem" in node.name
    } | dict(ep.graph_module.named_children())
    assert {getattr(each, "op", "module") for each in dropped.values()} == {
        "placeholder",
        "call_function",
        "get_attr",
        "output",
        "module",
    }
    for each in dropped.values():
        each.meta = {**each.meta, "custom": {"of": note}}  # some nodes share one dictionary
    file = io.BytesIO()
    with pytest.warns(UserWarning) as warned:
        pt2wire.save(ep, file)
    for name in dropped:
        text = f"the note on `{name}` is left out: .* found {type(note).__name__}"
        assert any(re.search(text, str(warning.message)) for warning in warned)
    loaded = pt2wire.load(io.BytesIO(file.getvalue()))
    for each in dropped.values():
        del each.meta["custom"]
    assert_same_program(ep, loaded)


@pytest.mark.parametrize("form", ["json", "thrift"])
def test_modules_of_any_name_come_back_and_pytorch_reads_the_rest(form: Any) -> None:
    inputs = torch.ones(2, 3), torch.tensor(True)
    ep = exported(_parts, *inputs)
    stack = {
        "L__self__": ("", "m.Model"),
        "L__self__a;b": ("a;b", "m.List[m.Of, (m.Two)]"),
        "a],": ("[", ")"),
    }
    for number, node in enumerate(ep.graph.nodes):
        node.meta["nn_module_stack"] = dict(list(stack.items())[: 1 + number % 3])
    file = io.BytesIO()
    pt2wire.save(ep, file, formats=(form,))
    assert_same_program(ep, pt2wire.load(io.BytesIO(file.getvalue())))
    assert pt2wire.validate(pt2wire.to_tree(ep)) == []
    if form == "json":
        read = pytorch_load(file.getvalue())
        assert torch.equal(read.module()(*inputs)[0], torch.ones(1, 3).sin())
        assert {len(node.meta.get("nn_module_stack") or ()) for node in read.graph.nodes} == {0, 1}


def test_nodes_without_notes_beside_a_call_with_some_have_none() -> None:
    ep = exported(lambda self, x: x.split(1)[0], torch.ones(2))
    item = node_named(ep, "getitem")
    for key in list(item.meta.keys() - {"val"}):
        del item.meta[key]
    loaded = pt2wire.from_tree(pt2wire.to_tree(ep), {}, {}, example_inputs=ep.example_inputs)
    assert node_named(loaded, "split").meta["torch_fn"]
    assert node_named(loaded, "getitem").meta.keys() == {"val"}


def test_notes_of_calls_are_written_once() -> None:
    graph = pt2wire.to_tree(exported(lambda self, x: x.split(1)[0], torch.ones(2))).graph_module.graph
    assert graph.nodes[0].metadata
    assert graph.getitem_metadata is None and graph.get_attr_metadata is None


def test_pytorch_loads_a_program_without_a_note_that_it_cannot_hold() -> None:
    file = io.BytesIO()
    pt2wire.save(_program({(1, 2): 3}), file)
    loaded = pytorch_load(file.getvalue())
    assert "custom" not in node_named(loaded, "relu").meta
    assert torch.equal(loaded.module()(torch.ones(2)), torch.full((2,), 2.0))


@pytest.mark.parametrize("note", [None, {}, {"a": [1, 2.0, None, {"b": "c"}]}, "text"], ids=repr)
def test_nothing_of_ours_is_written_where_json_is_exact(note: Any) -> None:
    tree = pt2wire.to_tree(_program(note))
    assert tree.writer is None
    assert tree.graph_module.custom is None
    assert all(node.custom is None for node in tree.graph_module.graph.nodes)


_KEYS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda keys: st.lists(keys, max_size=3).map(tuple) | st.builds(Place, keys, keys),
    max_leaves=4,
)
_NOTES = st.recursive(
    _KEYS | st.complex_numbers(allow_nan=False),
    lambda notes: (
        st.lists(notes)
        | st.lists(notes).map(tuple)
        | st.builds(Place, notes, notes)
        | st.dictionaries(_KEYS, notes)
    ),
    max_leaves=12,
)


@given(_NOTES)
def test_any_note_survives(note: Any) -> None:
    exact = export_note(note)
    if exact is not None:
        assert describe_value("", import_plain_value(exact)) == describe_value("", note)
        assert repr(import_plain_value(exact)) == repr(note)


@pytest.mark.parametrize("bounds", [(0.25, 8.5), (0.2, 0.8), (-math.inf, 2.5), (-2.0, 2.0)], ids=repr)
def test_ranges_of_floats_come_back(bounds: tuple[float, float]) -> None:
    ep = exported(lambda self, x: x.sum().item() * 2.5, torch.ones(2))
    (symbol,) = ep.range_constraints
    low, high = (sympy.oo * bound if math.isinf(bound) else sympy.Float(bound) for bound in bounds)
    ep.range_constraints[symbol] = ValueRanges(low, high)
    file = io.BytesIO()
    pt2wire.save(ep, file)
    assert_same_program(ep, pt2wire.load(io.BytesIO(file.getvalue())))


class _Pending(torch.nn.Module):
    """Weights whose conjugation or negation is pending: whole, strided, of another dtype, in one memory."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3, 4, dtype=torch.complex64).conj())
        conjugated = torch.randn(3, 4, dtype=torch.complex64).conj()
        self.register_buffer("conjugated", conjugated)
        self.register_buffer("part", conjugated[1:, ::2])
        self.register_buffer("negated", torch.randn(3, 4, dtype=torch.complex64).conj().imag)
        self.register_buffer("both", torch._neg_view(torch.randn(2, dtype=torch.complex128).conj()))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (self.weight * x).conj(), self.conjugated, self.part * 2, self.negated + 1, self.both, x.conj()


def test_pending_conjugations_and_negations_come_back_and_pytorch_gets_right_numbers() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 4, dtype=torch.complex64)
    ep, file = torch.export.export(_Pending(), (x,)), io.BytesIO()
    pt2wire.save(ep, file)
    loaded = pt2wire.load(io.BytesIO(file.getvalue()))
    assert_same_program(ep, loaded)
    assert loaded.state_dict["part"].is_conj() and loaded.state_dict["both"].is_neg()
    expected = ep.module()(x)
    for program in (loaded, pytorch_load(file.getvalue())):
        assert all(map(torch.equal, program.module()(x), expected))
    again = io.BytesIO()
    pt2wire.save(loaded, again)
    assert again.getvalue() == file.getvalue()


def test_a_weight_and_its_conjugate_in_one_memory_keep_their_numbers() -> None:
    base = torch.randn(3, dtype=torch.complex64)
    attributes = {"plain": torch.nn.Buffer(base), "conjugated": torch.nn.Buffer(base.conj())}
    ep, file = (
        exported(lambda self, x: x * self.plain + self.conjugated, base, attributes=attributes),
        io.BytesIO(),
    )
    pt2wire.save(ep, file)
    for program in (pt2wire.load(io.BytesIO(file.getvalue())), pytorch_load(file.getvalue())):
        assert torch.equal(program.module()(base), ep.module()(base))


class Span(Place):
    """One that has a say in how it is made."""

    def __new__(cls, row: int, column: int) -> Span:
        raise AssertionError("a class whose code ran")


_TUPLES = [
    Place(1, 2),
    {"at": [Place(1, (2, Place(3, 4)))]},
    {Place(1, 2): "key", ("in", Place(3, 4)): "part of one"},
    Place(torch.float16, Place(None, {})),
    tuple.__new__(Span, (1, 2)),
    urllib.parse.urlsplit("https://pytorch.org/docs?q=1#top"),
]


@pytest.mark.filterwarnings("ignore:model. a named tuple of class Span comes back as a plain tuple, unless")
@pytest.mark.parametrize("form", ["json", "thrift"])
@pytest.mark.parametrize("note", _TUPLES, ids=repr)
def test_named_tuples_in_notes_keep_their_classes_without_running_their_code(note: Any, form: Any) -> None:
    ep, file = _program(note), io.BytesIO()
    pt2wire.save(ep, file, formats=(form,))
    loaded = pt2wire.load(io.BytesIO(file.getvalue()), types=[Span])
    assert_same_program(ep, loaded)
    assert _classes(loaded.graph_module.meta["custom"]) == _classes(note)
    assert pt2wire.validate(pt2wire.to_tree(ep)) == []


def _classes(note: Any) -> Any:
    """The classes of all containers in a note, and what is in them."""
    if isinstance(note, dict):
        return [(_classes(key), _classes(item)) for key, item in note.items()]
    return (type(note), *map(_classes, note)) if isinstance(note, tuple | list) else note


def test_pytorch_gets_named_tuples_as_the_lists_that_it_writes_itself() -> None:
    ep, ours, theirs = _program({"at": Place(1, 2)}), io.BytesIO(), io.BytesIO()
    pt2wire.save(ep, ours)
    torch.export.save(ep, theirs)
    read, expected = (pytorch_load(file.getvalue()) for file in (ours, theirs))
    assert (
        node_named(read, "relu").meta["custom"]
        == node_named(expected, "relu").meta["custom"]
        == {"at": [1, 2]}
    )


def test_named_tuples_of_classes_that_are_not_here_come_back_plain_unless_handed_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exact, kind = export_note(Place(1, 2)), Place
    assert exact is not None
    monkeypatch.delattr(f"{__name__}.Place")
    lacking = re.escape(f"the class '{__name__}:Place' with the fields row, column, found none here.")
    with pytest.warns(UserWarning, match=rf"{lacking} .* or pass the class with types=\[...\]"):
        assert type(import_plain_value(exact)) is tuple
    assert type(import_plain_value(exact, (kind,))) is kind


@pytest.mark.parametrize("path", ["builtins:tuple", "os:system", "threading:Thread", "no_module:Place"])
def test_named_tuples_of_what_is_no_class_of_them_come_back_plain(path: str) -> None:
    named = types.NamedTupleValue(path, ["row", "column"], [types.Value.of_int(1), types.Value.of_int(2)])
    with pytest.warns(UserWarning, match=f"the class '{path}' with the fields row, column, found none here"):
        read = import_plain_value(types.Value.of_named_tuple(named))
    assert type(read) is tuple and read == (1, 2)
    assert "no_module" not in sys.modules


@pytest.mark.parametrize("fields", [["column", "row"], ["row"], ["row", "column", "depth"]], ids=repr)
def test_named_tuples_whose_fields_have_changed_come_back_plain(fields: list[str]) -> None:
    values = [types.Value.of_int(1) for _ in fields]
    named = types.NamedTupleValue(f"{__name__}:Place", fields, values)
    with pytest.warns(UserWarning, match=f"with the fields {', '.join(fields)}, found none here"):
        read = import_plain_value(types.Value.of_named_tuple(named))
    assert type(read) is tuple and read == (1,) * len(fields)


Six = namedtuple("Six", "a b c d e f")


class Iterated(namedtuple("Iterated", "row column")):
    def __iter__(self) -> Any:
        yield from (1, 2)


class Made(namedtuple("Made", "row column")):
    def __new__(cls, row: int, column: int = 0) -> Made:
        return super().__new__(cls, row, column)


class Shown(NamedTuple):
    row: int
    column: int

    def __repr__(self) -> str:
        return "shown"


class Sound(namedtuple("Sound", "row column")):
    __slots__ = ()

    def area(self) -> int:
        return self.row * self.column  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", [Iterated, Made, Shown, Sound])
def test_named_tuples_that_run_code_of_their_own_have_to_be_handed_in(kind: Any) -> None:
    numbers = [types.Value.of_int(1), types.Value.of_int(2)]
    named = types.Value.of_named_tuple(
        types.NamedTupleValue(f"{__name__}:{kind.__name__}", ["row", "column"], numbers)
    )
    assert type(import_plain_value(named, (kind,))) is kind
    if kind is Sound:
        assert type(import_plain_value(named)) is kind
        return
    handing_in = rf"types=\[{kind.__name__}\]"
    with pytest.warns(UserWarning, match=f"special methods of its own, found none here. Pass {handing_in}"):
        assert type(import_plain_value(named)) is tuple
    with pytest.warns(UserWarning, match=f"as a plain tuple, unless load is given {handing_in}"):
        export_plain_value(tuple.__new__(kind, (1, 2)))


def test_named_tuples_that_were_copied_are_as_harmless_as_before() -> None:
    copy.copy(Place(1, 2))  # Python keeps names of slots in the class
    assert "__slotnames__" in vars(Place)
    assert is_harmless_named_tuple(Place)


def test_named_tuples_that_start_programs_start_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """`platform.uname_result` asks a program for its last item."""
    started: list[Any] = []
    monkeypatch.setattr("subprocess.check_output", lambda *args, **_: started.append(args))
    ep = exported(lambda self, x: x.permute(5, 4, 3, 2, 1, 0), torch.ones(1, 1, 1, 1, 1, 2))
    permute = node_named(ep, "permute")
    permute.args = (permute.args[0], Six(5, 4, 3, 2, 1, 0))
    tree = pt2wire.to_tree(ep)
    named = next(exact.value for exact in tree.graph_module.graph.nodes[0].exact_inputs or () if exact.value)
    named.as_named_tuple.fqn = "platform:uname_result"
    named.as_named_tuple.field_names = list(platform.uname_result._fields)
    with pytest.warns(UserWarning, match="'platform:uname_result' without special methods of its own"):
        loaded = pt2wire.from_tree(tree, {}, {})
    assert type(node_named(loaded, "permute").args[1]) is tuple
    assert loaded.module()(torch.ones(1, 1, 1, 1, 1, 2)).shape == (2, 1, 1, 1, 1, 1)
    pt2wire.to_tree(loaded.run_decompositions())
    assert started == []


def test_named_tuples_whose_classes_nobody_would_find_are_lost_aloud() -> None:
    local = namedtuple("local", ["x"])
    with pytest.warns(UserWarning, match=f"class local comes back as a plain tuple: {__name__} has no class"):
        exact = export_note([local(1)])
    assert exact is not None and import_plain_value(exact) == [(1,)]
    short = tuple.__new__(Place, (1,))
    with pytest.warns(
        UserWarning, match="expected as many items of a named tuple as it has fields, 2, found 1"
    ):
        export_note(short)


@pytest.mark.parametrize("form", ["json", "thrift"])
def test_named_tuples_among_arguments_keep_their_classes(form: Any) -> None:
    ep = exported(lambda self, x: x.permute(1, 0), torch.ones(2, 3))
    permute = node_named(ep, "permute")
    permute.args = (permute.args[0], Place(1, 0))
    ep.graph_module.recompile()
    file = io.BytesIO()
    pt2wire.save(ep, file, formats=(form,))
    loaded = pt2wire.load(io.BytesIO(file.getvalue()))
    assert_same_program(ep, loaded)
    assert type(node_named(loaded, "permute").args[1]) is Place
    assert loaded.module()(torch.ones(2, 3)).shape == (3, 2)
    assert pt2wire.canonicalize(pt2wire.to_tree(ep)) == pt2wire.canonicalize(pt2wire.to_tree(loaded))
    if form == "json":
        assert pytorch_load(file.getvalue()).module()(torch.ones(2, 3)).shape == (3, 2)


def test_other_classes_of_containers_in_notes_are_lost_aloud() -> None:
    with pytest.warns(UserWarning, match="a note of class OrderedDict comes back as"):
        assert export_note(OrderedDict(a=1)) is None
