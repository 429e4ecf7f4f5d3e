"""Weights whose conjugation or negation is pending share their memory with others in the file as they did."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire.exporting.payloads import storage_bytes
from pt2wire.exporting.symbols import Symbols
from pt2wire.exporting.values import export_tensor_meta
from pt2wire.lazy_bits import flipped
from torch.export import ExportedProgram

from .helpers.archives import saved
from .helpers.cpp_run import LOOPS
from .helpers.exporting import exported
from .helpers.oracles import pytorch_load
from .helpers.programs import assert_same_program


@pytest.mark.parametrize(
    "again",
    [
        lambda ep: pt2wire.load(io.BytesIO(saved(ep))),
        lambda ep: pt2wire.load(io.BytesIO(saved(ep)), mmap=False),
    ],
    ids=["map", "copy"],
)
def test_what_changes_a_weight_changes_its_conjugates(again: Callable[[ExportedProgram], Any]) -> None:
    case = LOOPS["weights_in_one_memory_with_their_conjugates"]
    ep, (x,) = case.program(), case.make_inputs()[0]
    loaded = again(ep)
    assert_same_program(ep, loaded)
    for _ in range(2):
        assert all(map(torch.equal, loaded.module()(x), ep.module()(x)))


def test_artifacts_keep_conjugates_in_one_memory() -> None:
    base = torch.randn(3, dtype=torch.complex64)
    hidden = torch.nn.Buffer(torch._neg_view(base[1:]), persistent=False)
    attributes = {"base": torch.nn.Buffer(base), "conjugate": torch.nn.Buffer(base.conj()), "hidden": hidden}
    ep = exported(lambda self, x: x * self.base.mul_(2) + self.hidden.sum(), base, attributes=attributes)
    assert_same_program(ep, pt2wire.deserialize(pt2wire.serialize(ep)))


def test_pytorch_gets_right_numbers_of_conjugates_in_one_memory() -> None:
    ep = LOOPS["weights_in_one_memory_with_their_conjugates"].program()
    loaded = pytorch_load(saved(ep))
    for name, tensor in {**ep.state_dict, **ep.constants}.items():
        assert torch.equal({**loaded.state_dict, **loaded.constants}[name], tensor)


def test_conjugates_that_another_tool_changed_are_not_shared_silently() -> None:
    archive = pt2wire.read(io.BytesIO(saved(LOOPS["weights_in_one_memory_with_their_conjugates"].program())))
    weights = archive.weights["model"]
    assert weights["base"].meta.alias_of == "conjugate"
    weights["base"].data = memoryview(bytes(len(weights["base"].data)))
    with pytest.raises(pt2wire.SerializeError, match="expected the bytes of 'conjugate'"):
        pt2wire.write(archive, io.BytesIO())
    with pytest.raises(pt2wire.DeserializeError, match="expected the bytes of 'conjugate'"):
        pt2wire.from_tree(archive.programs["model"], weights, archive.constants["model"])


_SIGNED = [getattr(torch, name) for name in "float16 bfloat16 float32 float64 complex64 complex128".split()]
_INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


@pytest.mark.parametrize("dtype", [*_SIGNED, *_INTEGERS], ids=str)
@pytest.mark.parametrize("conj", [False, True], ids=["", "conjugated"])
@pytest.mark.parametrize("neg", [False, True], ids=["", "negated"])
def test_bytes_of_pending_operations_are_those_that_pytorch_computes(
    dtype: torch.dtype, conj: bool, neg: bool
) -> None:
    tensor = torch.tensor([-128, -1, 0, 1, 127, 100]).to(dtype)
    tensor = torch.complex(tensor.real, 1 - tensor.real) if dtype.is_complex else tensor
    pending = tensor.conj() if conj else tensor
    pending = torch._neg_view(pending) if neg else pending
    found = flipped(storage_bytes(tensor.untyped_storage()), export_tensor_meta(pending, Symbols()))
    # Where zeros are concerned PyTorch's kernels disagree on signs.
    assert torch.equal(torch.frombuffer(bytearray(found), dtype=dtype), pending.resolve_conj().resolve_neg())
