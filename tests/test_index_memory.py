"""Programs that change indices of sparse tensors in place would write or read anywhere: they are refused."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import pt2wire
import pytest
import torch
from pt2wire import UnsafeArtifactError
from torch import Tensor, nn, ones, tensor

_Forward = Callable[..., Tensor]


def _indices() -> Tensor:
    return tensor([[0, 1], [1, 0]])


def _sparse() -> Tensor:
    return torch.sparse_coo_tensor(_indices(), ones(2), (2, 2)).coalesce()


def _saved(forward: _Forward, *args: Tensor) -> io.BytesIO:
    model: nn.Module = type("Model", (nn.Module,), {"forward": lambda self, *args: forward(*args)})()
    file = io.BytesIO()
    pt2wire.save(torch.export.export(model, args), file)
    return file


def _through_a_view(x: Tensor) -> Tensor:
    x.indices()[0].view(-1).add_(1 << 40)
    return x.to_dense()


def _through_parts(x: Tensor) -> Tensor:
    x._indices().unbind(0)[1].fill_(1 << 40)
    return x.to_dense()


def _of_what_shares_them(x: Tensor) -> Tensor:
    x.detach().indices().zero_()
    return x.to_dense()


def _by_rows(x: Tensor) -> Tensor:
    x.col_indices().mul_(1 << 40)
    return x.to_dense()


def _behind_its_back(indices: Tensor) -> Tensor:
    x = torch.sparse_coo_tensor(indices, ones(2), (2, 2))
    indices.copy_(indices + (1 << 40))
    return x.to_dense()


_CHANGES: dict[str, tuple[_Forward, tuple[Tensor, ...], str]] = {
    "through a view": (_through_a_view, (_sparse(),), "aten.add_"),
    "through parts": (_through_parts, (_sparse(),), "aten.fill_"),
    "of what shares them": (_of_what_shares_them, (_sparse(),), "aten.zero_"),
    "by rows": (_by_rows, (torch.eye(2).to_sparse_csr(),), "aten.mul_"),
    "behind its back": (_behind_its_back, (_indices(),), "aten.copy_"),
}


@pytest.mark.parametrize("name", _CHANGES)
def test_changed_indices_are_refused(name: str) -> None:
    forward, args, operator = _CHANGES[name]
    file = _saved(forward, *args)
    with pytest.raises(UnsafeArtifactError) as caught:
        pt2wire.load(file)
    wanted = rf"expected indices of sparse tensors to stay as they are, found '\w+' changed by {operator}"
    assert re.fullmatch(wanted, caught.value.message)
    assert f"allow_operators=['{operator}']" in str(caught.value)
    assert pt2wire.load(file, allow_operators=[operator]) is not None


class _Updating(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("indices", _indices())

    def forward(self, values: Tensor) -> Tensor:
        x = torch.sparse_coo_tensor(self.indices, values, (2, 2))  # type: ignore[arg-type]
        self.indices.add_(1)  # type: ignore[operator]
        return x


def test_an_update_behind_the_back_of_a_sparse_tensor_is_refused() -> None:
    file = io.BytesIO()
    pt2wire.save(torch.export.export(_Updating(), (ones(2),)).run_decompositions(), file)
    with pytest.raises(UnsafeArtifactError, match="found 'b_indices' changed by an output, which updates it"):
        pt2wire.load(file, allow_operators=["aten._sparse_coo_tensor_with_dims_and_tensors"])


class _Branching(nn.Module):
    """Gives a branch the indices that a sparse tensor is made of."""

    def forward(self, indices: Tensor) -> Tensor:
        x = torch.sparse_coo_tensor(indices, ones(2), (9, 9))
        found: Tensor = torch.cond(indices.sum() > 5, lambda i: i + 1, lambda i: i - 1, (indices,))
        return x.to_dense().sum() + found.sum()


def test_subgraphs_change_no_indices_that_they_are_given() -> None:
    ep = torch.export.export(_Branching(), (_indices(),))
    tree = pt2wire.to_tree(ep)
    assert pt2wire.from_tree(tree, ep.state_dict, ep.constants) is not None
    cond = next(node for node in tree.graph_module.graph.nodes if node.target.endswith(".cond"))
    branch = cond.inputs[1].arg.as_graph.graph
    branch.nodes[0].target = "torch.ops.aten.add_.Tensor"
    with pytest.raises(UnsafeArtifactError, match=r"changed by aten\.add_"):
        pt2wire.from_tree(tree, ep.state_dict, ep.constants)


def _written_before(indices: Tensor, values: Tensor) -> Tensor:
    own = torch.zeros_like(indices)
    own.copy_(indices)
    return torch.sparse_coo_tensor(own, values, (2, 2)).to_dense()


def _values_changed(x: Tensor) -> Tensor:
    x.values().mul_(2)
    x.indices().clone().add_(5)
    return x.to_dense()


def _whole_changed(x: Tensor) -> Tensor:
    x.mul_(2 + x.indices().size(0))
    return x.to_dense()


_HONEST: list[tuple[_Forward, tuple[Tensor, ...]]] = [
    (_written_before, (_indices(), ones(2))),
    (_values_changed, (_sparse(),)),
    (_whole_changed, (_sparse(),)),
]


@pytest.mark.parametrize(("forward", "args"), _HONEST)
def test_whatever_else_changes_is_let_through(forward: _Forward, args: tuple[Tensor, ...]) -> None:
    expected = forward(*(arg.clone() for arg in args))
    found = pt2wire.load(_saved(forward, *args)).module()(*(arg.clone() for arg in args))
    assert torch.equal(found, expected)


def test_example_inputs_share_no_indices_with_numbers() -> None:
    numbers = _indices()
    sparse = torch.sparse_coo_tensor(numbers, ones(2), (2, 2))
    file = _saved(lambda numbers, x: numbers.add_(1) + x.to_dense().long(), numbers, sparse)
    with pytest.warns(UserWarning, match="indices of a sparse tensor share memory with numbers"):
        loaded = pt2wire.load(file)
    assert loaded.example_inputs is not None
    assert all(tensor.is_meta for tensor in loaded.example_inputs[0])
    numbers, sparse = _indices(), _sparse()
    expected = numbers + 1 + sparse.to_dense().long()
    assert torch.equal(loaded.module()(numbers, sparse), expected)
