"""Nested inputs and outputs come back with the keys and contexts that PyTorch's JSON loses."""

from __future__ import annotations

import enum
import io
import re
import warnings
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire import DeserializeError, SerializeError
from pt2wire.exact_treespecs import parse_exact_treespec, treespecs_agree
from pt2wire.exporting.exact import export_plain_value
from pt2wire.exporting.treespecs import export_nodes, export_treespec
from pt2wire.exporting.values import Program
from pt2wire.generated import types
from pt2wire.importing.treespecs import import_treespec
from pt2wire.treespecs import parse_treespec
from torch.export import register_dataclass
from torch.utils import _pytree as pytree

from .helpers.exporting import exported
from .helpers.oracles import pytorch_load
from .helpers.programs import assert_same_program


class Number(enum.IntEnum):
    ONE = 1
    TWO = 2


class Text(enum.StrEnum):
    A = "a"
    B = "b"


class Plain(enum.Enum):
    X = "x"


class _Kept:
    """A class whose context pytree writes as JSON, which has no tuples."""

    def __init__(self, tensor: Any, context: Any) -> None:
        self.tensor, self.context = tensor, context


class _Nameless(_Kept):
    """One that pytree has no name for."""


@dataclass
class Unit:
    """A context that only its own writer can write."""

    name: str


class _Said(_Kept):
    """A class that writes its context as an object of JSON."""


class _Told(_Kept):
    """One that writes it as a text."""


class _Listed(_Kept):
    """One that writes a tuple with a member of an enum, which PyTorch has it read as list and dict."""


class _Shifted(_Kept):
    """One that writes JSON text, but of another value."""


class _NamelessSaid(_Kept):
    """One that pytree has no name for."""


@dataclass
class Pair:
    """A class that torch.export registers."""

    left: Any
    right: Any = None


def _register(kind: Any, name: str | None, write: Any = None, read: Any = None) -> None:
    pytree.register_pytree_node(
        kind,
        lambda kept: ([kept.tensor], kept.context),
        lambda children, context: kind(children[0], context),
        serialized_type_name=name,
        flatten_with_keys_fn=lambda kept: ([(pytree.GetAttrKey("tensor"), kept.tensor)], kept.context),
        to_dumpable_context=write,
        from_dumpable_context=read,
    )


register_dataclass(Pair, serialized_type_name="pt2wire.tests.exact.Pair")
_register(_Kept, "pt2wire.tests.Kept")
_register(_Nameless, None)
_register(_Said, "pt2wire.tests.Said", lambda unit: {"name": unit.name}, lambda read: Unit(read["name"]))
_register(_Told, "pt2wire.tests.Told", lambda context: "/".join(context), lambda read: tuple(read.split("/")))
_register(
    _Listed,
    "pt2wire.tests.Listed",
    lambda context: (context, {1: Number.ONE}),
    lambda read: {"fqn": Plain, "1": None}[[*read[0]][1]][read[0]["name"]] if read[1] == {"1": 1} else None,
)
_register(
    _Shifted, "pt2wire.tests.Shifted", lambda context: f"[{context + 1}]", lambda read: int(read[1:-1]) - 1
)
_register(_NamelessSaid, None, lambda unit: (unit.name,), lambda read: Unit(read[0]))

#: Values of classes that write their contexts themselves: PyTorch's JSON has all of them.
WRITTEN = [
    _Said(0, Unit("m")),
    _Told(0, ("a", "b")),
    _Told(0, ("1",)),
    _Listed(0, Plain.X),
    _Shifted(0, 1),
    Pair(0),
]

#: Values whose structure JSON loses, though PyTorch saves it.
LOST = [
    {Number.ONE: 0, Number.TWO: 0},
    {Text.A: 0, "c": [0, {Text.B: 0}]},
    OrderedDict([((Number.TWO, (Plain.X, None)), 0), ("z", 0)]),
    defaultdict(list, {Number.ONE: 0, Plain.X: 0}),
    _Kept(0, (1, ("a", [Number.ONE]), {"b": (2,), 3: Text.A})),
    _Kept(0, (Plain.X, {1: "a", "1": "b", None: True, 1.5: Plain.X})),
    *([_Kept(0, (1,)), {"a": written}] for written in WRITTEN),
]
#: Values that PyTorch does not save.
REFUSED = [
    {torch.float32: 0, torch.strided: 0, torch.device("cuda", 1): 0, torch.channels_last: 0},
    {1j: 0, (torch.bfloat16, 2): 0},
    defaultdict(None, {"a": 0, Number.ONE: 0}),
    _Nameless(0, ("a", torch.int8)),
    [_NamelessSaid(0, Unit("m")), *WRITTEN],
    torch.return_types.max((0, 0)),
]
#: Values of which JSON has all.
KEPT = [
    {(1, "a"): 0, Plain.X: 0, None: 0, 1.5: 0, True: 0, float("inf"): 0, 2**70: 0},
    defaultdict(list, {"a": [0, (0, 0)]}),
    _Kept(0, ["a", {"b": None, "c": Plain.X}]),
    *WRITTEN,
]


def _exported(value: Any) -> tuple[pytree.TreeSpec, str, list[types.TreeSpecNode] | None, Program]:
    spec, program = pytree.tree_structure(value), Program()
    text, exact = export_treespec(spec, {}, program)
    return spec, text, exact, program


def _shape(spec: pytree.TreeSpec) -> Any:
    # `1 == Number.ONE`, so the text has to be the same too.
    return repr(spec.type), repr(spec.context), [_shape(child) for child in spec.children()]


def _label(value: Any) -> str:
    """The same in every process, as parallel tests want it: no addresses."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


@pytest.mark.parametrize("value", LOST + REFUSED, ids=_label)
def test_what_json_loses_comes_back(value: Any) -> None:
    spec, text, exact, program = _exported(value)
    assert exact is not None
    assert _shape(import_treespec(text, {}, exact=exact)) == _shape(spec)
    assert text == "" or treespecs_agree(parse_exact_treespec(exact), parse_treespec(text))
    assert bool(program.beyond) == (text == "") == (value in REFUSED)


@pytest.mark.parametrize("value", KEPT, ids=_label)
def test_what_json_keeps_is_not_written_twice(value: Any) -> None:
    spec, text, exact, program = _exported(value)
    assert exact is None and not program.beyond
    assert _shape(import_treespec(text, {})) == _shape(spec)
    assert parse_treespec(text).leaf_count == spec.num_leaves


@pytest.mark.parametrize("written", WRITTEN, ids=_label)
def test_contexts_that_classes_write_themselves_are_what_pytorch_has_them_read(written: Any) -> None:
    spec = pytree.tree_structure(written)
    text = pytree.treespec_dumps(spec)
    assert _shape(import_treespec(text, {})) == _shape(pytree.treespec_loads(text)) == _shape(spec)


@pytest.mark.parametrize("form", ["json", "thrift"])
@pytest.mark.parametrize(
    "beside", [_Kept(torch.ones(2), (1, 2)), {(Number.ONE, 2): torch.ones(2)}], ids=_label
)
def test_classes_that_write_their_contexts_come_back_beside_others(beside: Any, form: Any) -> None:
    inputs = [_Said(torch.ones(2), Unit("m")), _Told(torch.ones(2), ("a", "b")), Pair(torch.ones(2)), beside]
    ep = exported(lambda self, x: (x[0].tensor + x[1].tensor, x[2]), inputs)
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pt2wire.save(ep, file, formats=(form,))
    assert pt2wire.validate(pt2wire.to_tree(ep)) == []
    loaded = pt2wire.load(io.BytesIO(file.getvalue()), types=[_Said, _Told, _Kept, Pair, Unit, Number])
    assert_same_program(ep, loaded)
    if form == "json":
        assert pytorch_load(file.getvalue()).call_spec.in_spec.child(0).child(0).child(0).context == Unit("m")


def test_an_exact_spec_says_no_other_context_than_the_text() -> None:
    for value, other in (
        (_Said(0, Unit("m")), {"name": "n"}),
        (_Told(0, ("a", "b")), "a"),
        (_Told(0, ("1",)), ["1"]),
        (_Shifted(0, 1), 1),
        (_Kept(0, {1: "a", "1": "b"}), {1: "a", "1": "c"}),
        (_Kept(0, (True, Plain.X)), (1, Plain.X)),
    ):
        text = pytree.treespec_dumps(pytree.tree_structure(value))
        exact = list(export_nodes(pytree.tree_structure(value)))
        assert treespecs_agree(parse_exact_treespec(exact), parse_treespec(text))
        exact[0].context = export_plain_value(other)
        assert not treespecs_agree(parse_exact_treespec(exact), parse_treespec(text))


@pytest.mark.parametrize("form", ["json", "thrift"])
def test_members_of_enums_that_are_numbers_are_still_members_after_loading(form: Any) -> None:
    inputs = {Number.ONE: torch.ones(2), Text.A: torch.ones(2)}
    ep = exported(lambda self, x: {Number.TWO: x[Number.ONE], Text.B: x[Text.A] + 1}, inputs)
    file = io.BytesIO()
    pt2wire.save(ep, file, formats=(form,))
    assert pt2wire.validate(pt2wire.to_tree(ep)) == []
    assert_same_program(ep, pt2wire.load(io.BytesIO(file.getvalue())))
    if form == "json":
        loaded = pytorch_load(file.getvalue())
        assert loaded.call_spec.in_spec.child(0).child(0).context == [1, "a"]


def test_a_program_that_pytorch_cannot_express_has_no_json() -> None:
    ep = exported(lambda self, x: x.max(0), torch.ones(2, 3))
    tree, file = pt2wire.to_tree(ep), io.BytesIO()
    with pytest.raises(SerializeError) as caught:
        pt2wire.save(ep, io.BytesIO(), formats=("json",))
    assert str(caught.value) == (
        "expected a program that PyTorch's format can express, found inputs or outputs that pytree cannot "
        "write: No registered serialization name for <class 'torch.return_types.max'> found. Please update "
        'your _register_pytree_node call with a `serialized_type_name` kwarg. Add "thrift" to the formats.'
    )
    with pytest.raises(SerializeError, match="Write it in Thrift, which PyTorch does not read"):
        pt2wire.to_json(tree)
    with pytest.warns(UserWarning, match="torch.export.load will refuse this program") as warned:
        pt2wire.save(ep, file)
    assert len(warned) == 1
    assert [name for name in pt2wire.read(file).records if "model" in name and name.endswith("json")] == []
    with pytest.raises(Exception):  # noqa: B017  # PyTorch's words for a missing record change
        pytorch_load(file.getvalue())


def test_a_class_that_is_gone_is_named() -> None:
    _, _, exact, _ = _exported(torch.return_types.max((0, 0)))
    assert exact is not None
    for path in ("os:system", "pt2wire_gone:Kind", "torch:Tensor", "enum:EnumMeta"):
        exact[0].type = path
        with pytest.raises(DeserializeError) as caught:
            import_treespec("", {}, exact=exact)
        module = path.partition(":")[0]
        assert str(caught.value) == (
            f"expected a named tuple, or a class that is registered with pytree, found {path!r}. "
            f"It needs `import {module}` first, or pass the class with types=[...]."
        )


def test_a_class_that_nobody_would_find_is_refused_when_it_is_written() -> None:
    class Local(enum.IntEnum):
        A = 1

    with pytest.raises(SerializeError, match=r"expected a class that its module knows, found .*Local"):
        _exported({Local.A: 0})
