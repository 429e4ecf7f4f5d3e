"""Inputs that are members of enums: found in what is imported or handed in, refused without a name."""

from __future__ import annotations

import enum
import io
import sys
from types import ModuleType
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire.errors import DeserializeError, SerializeError, UnsafeArtifactError
from pt2wire.importing.pickles import open_pickle
from torch import Tensor, nn

from .helpers.archives import pickled
from .helpers.models_beyond import Number, Plain


class Flags(enum.IntFlag):
    A = 1
    B = 2


class Quoted(enum.StrEnum):
    BAD = "it's"


class Model(nn.Module):
    def forward(self, x: Tensor, mode: Any) -> Tensor:
        return x + 1


def _save(mode: object) -> io.BytesIO:
    file = io.BytesIO()
    with pytest.warns(UserWarning, match="the input `mode`, a member of an enum"):
        pt2wire.save(torch.export.export(Model(), (torch.ones(2), mode)), file)
    return file


def test_the_guards_of_pytorch_hold_for_what_is_loaded() -> None:
    """PyTorch compares members that are numbers or texts, and lets others pass, before saving and after."""
    for mode, others in ((Number.ONE, (Number.TWO, 2)), (Plain.A, ())):
        module = pt2wire.load(_save(mode)).module()
        assert torch.equal(module(torch.ones(2), mode), torch.full((2,), 2.0))
        for other in others:
            with pytest.raises(AssertionError, match="Guard failed: mode == 1"):
                module(torch.ones(2), other)


def test_the_class_is_looked_up_and_never_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("module_of_an_enum")
    module.Mode = enum.Enum("Mode", ["FAST"], module="module_of_an_enum", qualname="Mode")
    monkeypatch.setitem(sys.modules, "module_of_an_enum", module)
    file = _save(module.Mode.FAST)
    monkeypatch.delitem(sys.modules, "module_of_an_enum")
    with pytest.raises(
        DeserializeError,
        match=r"module_of_an_enum.Mode.FAST\. It needs `import module_of_an_enum` first, or pass .* types=",
    ):
        pt2wire.load(file)
    again = enum.Enum("Mode", ["FAST"], module="module_of_an_enum", qualname="Mode")
    loaded = pt2wire.load(file, types=[again])
    assert loaded.example_inputs is not None and loaded.example_inputs[0][1] is again.FAST
    assert next(node for node in loaded.graph.nodes if node.name == "mode").meta["val"] is again.FAST
    assert "module_of_an_enum" not in sys.modules


class Reduced:
    """Pickled as a call, which may be given a state."""

    def __init__(self, *call: Any) -> None:
        self._call = call

    def __reduce__(self) -> Any:
        return self._call


def test_pickles_find_members_of_enums_that_were_handed_in_and_do_no_more() -> None:
    def opened(value: object) -> Any:
        return open_pickle(pickled(value), "inputs", allow_pickle=False, known=[Flags, Plain])

    honest = [Plain.A, Plain.B, Flags.B]
    assert all(found is member for found, member in zip(opened(honest), honest, strict=True))
    state = {"_value_": (1, 2), "_name_": "B"}
    for change, what in (
        (Reduced(Plain, ("a",), state), "code of Plain"),
        (Reduced(getattr, ()), "getattr"),
    ):
        with pytest.raises(UnsafeArtifactError, match=what):
            opened(change)
    for call in ((Flags, (8,)), (Flags, (True,)), (Plain, ("New",)), (Plain, ("New", ["X"]))):
        with pytest.raises(DeserializeError, match=r"expected a value of|takes 1 positional argument"):
            opened(Reduced(*call))
    assert (Plain.A.value, Plain.A.name) == ("a", "A") and 8 not in Flags._value2member_map_


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        (Flags.A | Flags.B, r"expected a member of Flags, found <Flags.A\|B: 3>. Combinations of flags"),
        (
            Quoted.BAD,
            'expected a text that a guard can hold, found <Quoted.BAD: "it\'s">, which holds a quote',
        ),
        (enum.Enum("Local", ["A"]).A, "expected a class that its module knows, found Local"),
    ],
    ids=["a combination of flags", "a text with a quote", "a local class"],
)
def test_members_that_could_not_be_found_again_are_refused(mode: enum.Enum, message: str) -> None:
    with pytest.raises(SerializeError, match=message):
        pt2wire.to_tree(torch.export.export(Model(), (torch.ones(2), mode)))
