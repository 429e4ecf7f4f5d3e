"""Nested inputs and outputs come back with the keys and contexts that PyTorch's JSON loses."""

from __future__ import annotations

import enum
import io
import re
from collections import OrderedDict, defaultdict
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire import DeserializeError, SerializeError
from pt2wire.exporting.treespecs import export_treespec
from pt2wire.exporting.values import Program
from pt2wire.generated import types
from pt2wire.importing.treespecs import import_treespec
from pt2wire.treespecs import parse_treespec
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


for _kind, _name in ((_Kept, "pt2wire.tests.Kept"), (_Nameless, None)):
    pytree.register_pytree_node(
        _kind,
        lambda kept: ([kept.tensor], kept.context),
        lambda children, context, kind=_kind: kind(children[0], context),
        serialized_type_name=_name,
    )

#: Values whose structure JSON loses, though PyTorch saves it.
LOST = [
    {Number.ONE: 0, Number.TWO: 0},
    {Text.A: 0, "c": [0, {Text.B: 0}]},
    OrderedDict([((Number.TWO, (Plain.X, None)), 0), ("z", 0)]),
    defaultdict(list, {Number.ONE: 0, Plain.X: 0}),
    _Kept(0, (1, ("a", [Number.ONE]), {"b": (2,), 3: Text.A})),
]
#: Values that PyTorch does not save.
REFUSED = [
    {torch.float32: 0, torch.strided: 0, torch.device("cuda", 1): 0, torch.channels_last: 0},
    {1j: 0, (torch.bfloat16, 2): 0},
    defaultdict(None, {"a": 0, Number.ONE: 0}),
    _Nameless(0, ("a", torch.int8)),
    torch.return_types.max((0, 0)),
]
#: Values of which JSON has all.
KEPT = [
    {(1, "a"): 0, Plain.X: 0, None: 0, 1.5: 0, True: 0, float("inf"): 0, 2**70: 0},
    defaultdict(list, {"a": [0, (0, 0)]}),
    _Kept(0, ["a", {"b": None, "c": Plain.X}]),
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
    assert bool(program.beyond) == (text == "") == (value in REFUSED)


@pytest.mark.parametrize("value", KEPT, ids=_label)
def test_what_json_keeps_is_not_written_twice(value: Any) -> None:
    spec, text, exact, program = _exported(value)
    assert exact is None and not program.beyond
    assert _shape(import_treespec(text, {})) == _shape(spec)
    assert parse_treespec(text).leaf_count == spec.num_leaves


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
