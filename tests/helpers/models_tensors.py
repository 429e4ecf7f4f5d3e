"""Tensors of other kinds than strided ones of numbers: sparse layouts, dtypes without arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils import _pytree as pytree

from .cases import Table, call

TENSORS = Table()
TENSORS_BEYOND = Table()


def _coo(values: Tensor) -> Tensor:
    """Sparse rows and dense columns, with one index twice."""
    indices = torch.tensor([[0, 2, 0]])
    return torch.sparse_coo_tensor(indices, values[:3], (4, *values.shape[1:]), check_invariants=True)


@TENSORS.case(lambda: call(torch.eye(4).to_sparse(), torch.tensor([0, 3, 0]).to_sparse()))
def sparse_coo_inputs_and_outputs(self: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return x * 2, y * 3, x.to_dense()


def _coo_weights(m: nn.Module) -> None:
    torch.manual_seed(0)
    m.matrix = nn.Parameter(torch.randn(4, 4).to_sparse())
    m.register_buffer("doubled", _coo(torch.randn(4, 4)))
    m.register_buffer("scalar", torch.tensor(2.5).to_sparse())
    m.register_buffer("empty", torch.zeros(4, 4, dtype=torch.int64).to_sparse())
    m.register_buffer("same", m.doubled)
    m.register_buffer("hidden", torch.eye(4).to_sparse(), persistent=False)
    m.constant = torch.eye(4, dtype=torch.bool).to_sparse()


@TENSORS_BEYOND.case(lambda: call(torch.ones(4, 4)), _coo_weights, unsaved="SparseTensorImpl")
def sparse_coo_weights(self: nn.Module, x: Tensor) -> tuple[Tensor, ...]:
    dense = self.doubled.to_dense() + self.hidden.to_dense() + self.empty.to_dense()
    return x + self.matrix.to_dense(), x + dense * self.scalar.to_dense(), self.constant.to_dense()


def _coo_weights_over_the_same(m: nn.Module) -> None:
    indices, values = torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 2.0])
    for name, size, coalesced in (("small", 2, True), ("large", 3, True), ("not_coalesced", 2, False)):
        m.register_buffer(
            name, torch.sparse_coo_tensor(indices, values, (size, size), is_coalesced=coalesced)
        )
    m.register_buffer("another", m.small.detach())
    m.trained, m.frozen = nn.Parameter(m.small), nn.Parameter(m.small, requires_grad=False)


@TENSORS_BEYOND.case(lambda: call(torch.ones(2, 2)), _coo_weights_over_the_same, unsaved="SparseTensorImpl")
def sparse_coo_weights_over_the_same_indices_and_values(self: nn.Module, x: Tensor) -> tuple[Tensor, ...]:
    return (
        x + self.small.to_dense() * self.another.to_dense(),
        self.large.to_dense(),
        self.trained.to_dense() + self.frozen.to_dense(),
    )


_COMPRESSED: dict[str, Callable[[Tensor], Tensor]] = {
    "csr": lambda dense: dense.to_sparse_csr(),
    "csc": lambda dense: dense.to_sparse_csc(),
    "bsr": lambda dense: dense.to_sparse_bsr((2, 1)),
    "bsc": lambda dense: dense.to_sparse_bsc((1, 2)),
}


def _compressed_weights(to_sparse: Callable[[Tensor], Tensor], m: nn.Module) -> None:
    torch.manual_seed(0)
    m.matrix = nn.Parameter(to_sparse(torch.randn(4, 6)), requires_grad=False)
    m.frozen = nn.Parameter(to_sparse(torch.eye(4)), requires_grad=False)
    m.register_buffer("batches", to_sparse(torch.ones(2, 4, 4, dtype=torch.float64)))
    m.register_buffer("same", m.frozen.detach())
    m.register_buffer("hidden", to_sparse(torch.eye(4) * 3), persistent=False)


def _compressed(self: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    weights = self.matrix.to_dense(), self.frozen.to_dense(), self.hidden.to_dense()
    return (*weights, x + self.batches.to_dense(), y * 2, y.to_dense())


for _name, _to_sparse in _COMPRESSED.items():
    TENSORS_BEYOND.case(
        lambda to_sparse=_to_sparse: call(torch.ones(4, 4), to_sparse(torch.eye(4))),
        partial(_compressed_weights, _to_sparse),
        name=f"sparse_{_name}_weights_and_inputs",
        unsaved=f"Sparse {_name.upper()} tensors do not have|Failed serializing node",
    )(_compressed)


def _bytes_as(dtype: torch.dtype) -> Tensor:
    return torch.arange(3, 11, dtype=torch.uint8).view(dtype)


def _named(names: Iterable[str]) -> list[torch.dtype]:
    return [getattr(torch, name) for name in names]


def _weights_of(dtypes: list[torch.dtype], m: nn.Module) -> None:
    for number, dtype in enumerate(dtypes):
        m.register_buffer(f"buffer_{number}", _bytes_as(dtype))
    m.frozen = nn.Parameter(_bytes_as(dtypes[0]).view(2, -1).t(), requires_grad=False)


def _views(self: nn.Module, *xs: Tensor) -> tuple[list[Tensor], ...]:
    return [x.view(x.shape) for x in xs], [*self.buffers()], [self.frozen.view(torch.uint8)]


_DTYPES = {
    "float4_weights_and_inputs": ["float4_e2m1fn_x2"],
    "bits_weights_and_inputs": ["bits1x8", "bits2x4", "bits4x2", "bits8", "bits16"],
    "sub_byte_integer_weights_and_inputs": [f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8)],
}
for _name, _names in _DTYPES.items():
    TENSORS_BEYOND.case(
        lambda names=_names: call(*map(_bytes_as, _named(names))),
        partial(_weights_of, _named(_names)),
        name=_name,
        unsaved="torch.(float4|bits|int)",
    )(_views)


@TENSORS_BEYOND.case(
    lambda: call(torch.ones(2, 4, dtype=torch.uint8)), unsaved="Failed serializing node|torch.uint4"
)
def dtypes_of_a_few_bits_as_arguments(self: nn.Module, x: Tensor) -> tuple[Tensor, ...]:
    bits = torch.empty_like(x, dtype=torch.bits8).view(torch.uint8) * 0
    return x.view(torch.float4_e2m1fn_x2), x.view(torch.uint4).view(torch.uint8) + bits, x.view(torch.int3)


class Scaled(Tensor):
    """Integers with a factor, as a quantized weight is, and a constant beside them."""

    @staticmethod
    def __new__(cls, whole: Tensor, factor: Tensor, note: Any = None) -> Scaled:
        made = Tensor._make_wrapper_subclass(cls, whole.shape, dtype=factor.dtype, device=whole.device)
        made.whole, made.factor, made.note = whole, factor, note
        return made  # type: ignore[no-any-return]

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        return ["whole", "factor"], self.note

    @staticmethod
    def __tensor_unflatten__(parts: Any, note: Any, size: Any, stride: Any) -> Scaled:
        return Scaled(parts["whole"], parts["factor"], note)

    @classmethod
    def __torch_dispatch__(cls, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in _KEEPING:
            value, *others = args
            whole, factor = (function(part, *others) for part in (value.whole, value.factor))
            return Scaled(whole, factor, value.note)
        if function is torch.ops.aten._to_copy.default:
            parts = (args[0].whole, args[0].factor)
            return Scaled(*(part.to(kwargs.get("device")) for part in parts), args[0].note)
        args = pytree.tree_map_only(Scaled, lambda value: value.whole * value.factor, args)
        return function(*args, **(kwargs or {}))


_KEEPING = (torch.ops.aten.detach.default, torch.ops.aten.alias.default, torch.ops.aten.clone.default)


class Marked(Tensor):
    """A tensor of a class of its own, and nothing else."""


def _subclass_weights(m: nn.Module) -> None:
    torch.manual_seed(0)
    whole = torch.randint(-8, 8, (4, 4), dtype=torch.int8)
    m.weight = nn.Parameter(
        Scaled(whole, torch.tensor(0.5), (4, torch.int8, "per_tensor")), requires_grad=False
    )
    m.register_buffer("pair", TwoTensor(torch.randn(4), torch.randn(4)))
    m.register_buffer("hidden", TwoTensor(torch.randn(4), torch.randn(4)), persistent=False)
    m.register_buffer("marked", torch.randn(4).as_subclass(Marked))
    m.same, m.again = m.weight, m.pair


@TENSORS.case(lambda: call(torch.ones(4, 4)), _subclass_weights, types=(Scaled, TwoTensor, Marked))
def weights_of_subclasses(self: nn.Module, x: Tensor) -> tuple[Tensor, ...]:
    return x @ self.weight, x * self.pair + self.hidden, x * self.marked, x @ self.same


def _subclass_weights_sharing(m: nn.Module) -> None:
    torch.manual_seed(0)
    base, other = torch.randn(8), torch.randn(8)
    m.register_buffer("base", base)
    m.pair = nn.Parameter(TwoTensor(base[:4], other[:4]))
    m.register_buffer("second", TwoTensor(other[:4], base[:4]))
    m.register_buffer(
        "nested", TwoTensor(TwoTensor(other[:4], base[:4]), TwoTensor(torch.randn(4), base[:4]))
    )
    m.register_buffer("hidden", TwoTensor(base[:4], torch.randn(4)), persistent=False)
    m.register_buffer("bits", other[4:].view(torch.int32), persistent=False)
    m.register_buffer("marked", base[4:].as_subclass(Marked))


@TENSORS.case(lambda: call(torch.ones(4)), _subclass_weights_sharing, types=(TwoTensor, Marked))
def weights_of_subclasses_that_share_memory(self: nn.Module, x: Tensor) -> tuple[Tensor, ...]:
    return x * self.pair + self.second, x * self.hidden, x * self.marked, x * self.bits, x * self.nested


@TENSORS.case(
    lambda: call(torch.ones(3, 4), TwoTensor(torch.ones(3, 4), torch.eye(3, 4))), types=(TwoTensor,)
)
def inputs_of_subclasses(self: nn.Module, x: Tensor, pair: Tensor) -> tuple[Tensor, ...]:
    return x + pair, *pair.split(2, dim=1)
