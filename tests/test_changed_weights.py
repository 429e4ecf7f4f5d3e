"""Weights that were replaced after the export by others than the graph says."""

from __future__ import annotations

import io
from collections.abc import Callable

import pt2wire
import pytest
import torch
from pt2wire import DeserializeError
from torch.export import ExportedProgram

from .helpers.archives import saved, torch_saved
from .helpers.oracles import pytorch_load

ARGS = (torch.arange(12.0).view(4, 3), torch.tensor([0, 1, 2, 3]))
CHANGED = {
    "another dtype": ("w", torch.linspace(0, 1, 3, dtype=torch.float64)),
    "half": ("w", torch.linspace(0, 1, 3).half()),
    "other sizes": ("e.weight", torch.linspace(0, 1, 150).view(50, 3)),
    "a constant": ("c", torch.arange(3)),
}


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(3))
        self.e = torch.nn.Embedding(5, 3)
        self.register_buffer("c", torch.ones(3))

    def forward(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return x * self.w + self.e(i) + self.c  # type: ignore[operator]


def _changed(name: str) -> ExportedProgram:
    ep = torch.export.export(Scaled(), ARGS)
    fqn, weight = CHANGED[name]
    ep.state_dict[fqn] = weight if fqn == "c" else torch.nn.Parameter(weight)
    return ep


@pytest.mark.parametrize("name", CHANGED)
@pytest.mark.parametrize("written_by", [saved, torch_saved], ids=["pt2wire", "PyTorch"])
@pytest.mark.filterwarnings("ignore:model. PyTorch can load this file, pt2wire will not")
def test_changed_weights_are_taken_on_demand(
    written_by: Callable[[ExportedProgram], bytes], name: str
) -> None:
    ep = _changed(name)
    data = written_by(ep)
    with pytest.raises(DeserializeError, match=r"as in the graph, found .* or pass changed_weights=True"):
        pt2wire.load(io.BytesIO(data))
    loaded = pt2wire.load(io.BytesIO(data), changed_weights=True)
    expected = ep.module()(*ARGS)
    assert torch.equal(pytorch_load(data).module()(*ARGS), expected)
    for program in (loaded, loaded.run_decompositions()):
        found = program.module()(*ARGS)
        assert found.dtype == expected.dtype and torch.equal(found, expected)
    assert written_by(loaded) == data
    again = torch.export.export(loaded.module(), ARGS)  # as the hint says
    assert torch.equal(pt2wire.load(io.BytesIO(saved(again))).module()(*ARGS), expected)


@pytest.mark.parametrize("name", CHANGED)
def test_changed_weights_are_taken_from_memory_on_demand(name: str) -> None:
    ep = _changed(name)
    weights = (pt2wire.to_tree(ep), ep.state_dict, ep.constants)
    expected = ep.module()(*ARGS)
    readers: list[Callable[..., ExportedProgram]] = [
        lambda **options: pt2wire.deserialize(pt2wire.serialize(ep), **options),
        lambda **options: pt2wire.from_tree(*weights, **options),
    ]
    for read in readers:
        with pytest.raises(DeserializeError, match=r"or pass changed_weights=True"):
            read()
        assert torch.equal(read(changed_weights=True).module()(*ARGS), expected)


def test_weights_of_another_layout_are_refused_all_the_same() -> None:
    ep = torch.export.export(Scaled(), ARGS)
    ep.state_dict["c"] = torch.ones(3).to_sparse()
    with pytest.warns(UserWarning, match="of layout Strided as in the graph, found SparseCoo"):
        data = saved(ep)
    with pytest.raises(DeserializeError, match="of layout Strided as in the graph, found SparseCoo"):
        pt2wire.load(io.BytesIO(data), changed_weights=True)
