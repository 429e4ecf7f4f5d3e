"""Programs that may move the indices of sparse tensors would write or read anywhere: they are refused."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire import UnsafeArtifactError
from pt2wire.importing.sparse_flow import check_sparse_flow
from pt2wire.operators import Target, TargetKind, refusal
from pt2wire.sparse_operators import CHANGING_SPARSE, MAKING_FROM_PARTS, ON_SPARSE, READING_PARTS
from torch import Tensor, nn, ones, tensor
from torch.export.graph_signature import ExportGraphSignature
from torch.fx import Graph, GraphModule, Proxy
from torch.fx.proxy import GraphAppendingTracer

from .helpers import sparse_search

aten = torch.ops.aten

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


_MAKERS = ("aten.sparse_coo_tensor",)


@pytest.mark.parametrize("name", _CHANGES)
@pytest.mark.filterwarnings("ignore")
def test_changed_indices_are_refused(name: str) -> None:
    forward, args, operator = _CHANGES[name]
    file = _saved(forward, *args)
    with pytest.raises(UnsafeArtifactError) as caught:
        pt2wire.load(file, allow_operators=_MAKERS)
    wanted = rf"expected indices of sparse tensors to stay as they are, found '\w+' changed by {operator}"
    assert re.fullmatch(wanted, caught.value.message)
    assert f"allow_operators=['{operator}']" in str(caught.value)
    assert pt2wire.load(file, allow_operators=[operator, *_MAKERS]) is not None


_ALIASES: dict[str, Callable[[Tensor], Tensor]] = {
    "aten._unsafe_view": lambda i: aten._unsafe_view.default(i, [2, 2]),
    "aten.unsafe_chunk": lambda i: aten.unsafe_chunk.default(i, 1)[0],
    "aten.unsafe_split": lambda i: aten.unsafe_split.Tensor(i, 2)[0],
    "aten.broadcast_tensors": lambda i: aten.broadcast_tensors.default([i, i])[0],
    "aten.dropout": lambda i: aten.dropout.default(i, 0.0, False),
    "aten.atleast_1d": lambda i: aten.atleast_1d.default(i),
    "aten.meshgrid": lambda i: aten.meshgrid.default([aten.flatten.using_ints(i)] * 2)[0],
    "aten.sum_to_size": lambda i: aten.sum_to_size.default(i, [2, 2]),
    "aten.einsum": lambda i: aten.einsum.default("ij->ij", [i]),
    "aten.to_dense": lambda i: aten.to_dense.default(i),
}


def _check(forward: Callable[..., Any], *examples: Tensor, allowed: tuple[str, ...] = ()) -> None:
    """Check the graph of calls that need not work."""
    graph = Graph()
    tracer = GraphAppendingTracer(graph)
    inputs = [Proxy(graph.placeholder(f"x{number}"), tracer) for number in range(len(examples))]
    for proxy, example in zip(inputs, examples, strict=True):
        proxy.node.meta["val"] = example
    graph.output(forward(*inputs).node)
    check_sparse_flow(GraphModule(nn.Module(), graph), ExportGraphSignature([], []), allowed)


@pytest.mark.parametrize("name", _ALIASES)
def test_aliases_that_no_schema_declares_are_refused(name: str) -> None:
    def forward(x: Tensor) -> Tensor:
        return aten.fill_.Scalar(_ALIASES[name](aten.indices.default(x)), 1 << 40)  # type: ignore[no-any-return]

    with pytest.raises(UnsafeArtifactError) as caught:
        _check(forward, _sparse())
    assert "expected an operator that is known to be safe for sparse tensors" in caught.value.message
    assert f"found {name}, in node" in caught.value.message
    assert f"allow_operators=['{name}']" in str(caught.value)
    _check(forward, _sparse(), allowed=(name, "aten.fill_"))
    with pytest.raises(UnsafeArtifactError, match=r"changed by aten\.fill_"):
        _check(forward, _sparse(), allowed=(name,))


#: What operators that are given sparse tensors, or their parts, would break: the last of each is refused.
_REFUSED: dict[str, Callable[..., Any]] = {
    "aten.resize_": lambda x, y: aten.resize_.default(aten.to_sparse_csr.default(y), [2, 4, 4]),
    "aten.resize_as_sparse_": lambda x, y: aten.resize_as_sparse_.default(y, x),
    "aten.new_empty": lambda x, y: aten.new_empty.default(aten._to_copy.default(x), [4, 4]),
    "aten.sub": lambda x, y: aten.sub.out(y, y, out=x),
    "aten.add_": lambda x, y: aten.add_.Tensor(x, x),
    "aten._coalesced_": lambda x, y: aten._coalesced_.default(aten.t.default(x), True),
    "aten.lstm": lambda x, y: aten.lstm.input(y, [y], [x], True, 1, 0.0, False, False, False),
    "aten.squeeze_": lambda x, y: aten.squeeze_.default(aten.empty_like.default(y, layout=torch.sparse_coo)),
    "aten.batch_norm": lambda x, y: aten.batch_norm.default(
        y, None, None, aten.view.dtype(aten._indices.default(x), torch.float64), None, True, 1.0, 1e-5, False
    ),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_operators_that_are_not_known_to_keep_sparse_tensors_sound_are_refused(name: str) -> None:
    with pytest.raises(UnsafeArtifactError, match=rf"found {re.escape(name)}, in node"):
        _check(_REFUSED[name], _sparse(), ones(4, 4))
    _check(_REFUSED[name], _sparse(), ones(4, 4), allowed=(name,))


#: In inference mode, what is done to the sizes of values is done to the sparse tensor.
_RESIZED: dict[str, Callable[..., Any]] = {
    "aten.resize_": lambda x: aten.resize_.default(aten._values.default(x), [9000]),
    "aten.t_": lambda x: aten.t_.default(aten.dropout.default(aten.values.default(x), 0.0, False)),
    "aten.add": lambda x: aten.add.out(1, 1, out=aten._values.default(x)),
}


@pytest.mark.parametrize("name", _RESIZED)
def test_values_keep_their_sizes(name: str) -> None:
    with pytest.raises(UnsafeArtifactError, match=rf"to keep their sizes, found .* given to {name}"):
        _check(_RESIZED[name], _sparse())


def _layers(x: Tensor, y: Tensor) -> Tensor:
    dense = aten.layer_norm.default(aten.mm.default(aten.mul_.Tensor(x, 2), y), [4])
    aten.squeeze_.default(dense)
    row = aten.select.int(aten.indices.default(x), 0, 0)
    aten.scatter_add_.default(
        aten.zeros_like.default(y), 0, row, aten.dropout.default(aten.values.default(x), 0.1, True)
    )
    return aten.new_empty.default(aten.add_.Scalar(aten.clone.default(row), 1), [2])  # type: ignore[no-any-return]


def test_what_is_made_of_sparse_tensors_may_go_anywhere() -> None:
    _check(_layers, _sparse(), ones(4, 4))


def test_operators_of_the_tables_exist() -> None:
    names = {name.partition(".")[0].replace("::", ".") for name in torch._C._dispatch_get_all_op_names()}
    assert names >= ON_SPARSE.keys() | READING_PARTS | CHANGING_SPARSE | MAKING_FROM_PARTS.keys()
    assert all(refusal(Target(TargetKind.OPERATOR, *name.split("."))) for name in MAKING_FROM_PARTS)


@pytest.mark.parametrize("name", ["aten.mul.Tensor", "aten.mm.default", "aten.coalesce.default"])
def test_operators_of_the_table_keep_sparse_tensors_sound(name: str) -> None:
    assert sparse_search.search(name, 40) is None


@pytest.mark.wide
def test_all_operators_of_the_table_keep_sparse_tensors_sound() -> None:
    assert {
        name: found for name in sparse_search.operators() if (found := sparse_search.search(name, 40))
    } == {}


def test_the_search_finds_what_breaks_sparse_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_search, "CHANGING_SPARSE", {"aten.add_"})
    found = sparse_search.search("aten.add_.Tensor", 400)
    assert found is not None and "dimensionality" in found


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
    arguments = tree, ep.state_dict, ep.constants
    assert pt2wire.from_tree(*arguments, allow_operators=_MAKERS) is not None
    cond = next(node for node in tree.graph_module.graph.nodes if node.target.endswith(".cond"))
    branch = cond.inputs[1].arg.as_graph.graph
    branch.nodes[0].target = "torch.ops.aten.add_.Tensor"
    with pytest.raises(UnsafeArtifactError, match=r"changed by aten\.add_"):
        pt2wire.from_tree(*arguments, allow_operators=_MAKERS)


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
@pytest.mark.filterwarnings("ignore")
def test_whatever_else_changes_is_let_through(forward: _Forward, args: tuple[Tensor, ...]) -> None:
    expected = forward(*(arg.clone() for arg in args))
    loaded = pt2wire.load(_saved(forward, *args), allow_operators=_MAKERS)
    found = loaded.module()(*(arg.clone() for arg in args))
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
