"""Sparse tensors, taken apart and put together again; the parts share their memory with the whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import methodcaller
from typing import Any

import torch

_OF_ROWS = {
    "crow_indices": methodcaller("crow_indices"),
    "col_indices": methodcaller("col_indices"),
    "values": methodcaller("values"),
}
_OF_COLUMNS = {
    "ccol_indices": methodcaller("ccol_indices"),
    "row_indices": methodcaller("row_indices"),
    "values": methodcaller("values"),
}
_PARTS = {
    # The methods without underscores refuse tensors that are not coalesced.
    torch.sparse_coo: {"indices": methodcaller("_indices"), "values": methodcaller("_values")},
    torch.sparse_csr: _OF_ROWS,
    torch.sparse_csc: _OF_COLUMNS,
    torch.sparse_bsr: _OF_ROWS,
    torch.sparse_bsc: _OF_COLUMNS,
}


def parts_of(tensor: torch.Tensor) -> dict[str, torch.Tensor]:
    """The tensors of which a sparse one is made, by the names of `layouts.PARTS`; none of a strided one.

    Example:
        >>> parts_of(torch.eye(2).to_sparse())["indices"].tolist()
        [[0, 1], [0, 1]]
    """
    with torch.no_grad():
        # Those of compressed ones would ask for gradients with the whole, which is what has one.
        return {name: get(tensor).detach() for name, get in _PARTS.get(tensor.layout, {}).items()}


def is_sparse(value: object) -> bool:
    """Whether a value is a tensor of a sparse layout.

    Example:
        >>> is_sparse(torch.eye(2)), is_sparse(torch.eye(2).to_sparse())
        (False, True)
    """
    return isinstance(value, torch.Tensor) and value.layout in _PARTS


def indices_are_shared(tensors: Iterable[torch.Tensor]) -> bool:
    """Whether indices lie in memory that others use as numbers: who writes those would move them.

    Of tensors of classes of one's own, which a file has only where they are permitted, nothing is said.

    Example:
        >>> numbers = torch.zeros(1, 3, dtype=torch.int64)
        >>> indices_are_shared([numbers, torch.sparse_coo_tensor(numbers, torch.ones(3), (4,))])
        True
    """
    whole, parts = list[torch.Tensor](), list[tuple[str, torch.Tensor]]()
    for tensor in tensors:
        if tensor.layout in _PARTS:
            parts += parts_of(tensor).items()
        elif type(tensor) in (torch.Tensor, torch.nn.Parameter):
            whole.append(tensor)
    indices = {_address(part) for name, part in parts if name != "values"} - {0}
    numbers = [part for name, part in parts if name == "values"] + whole
    return bool(indices) and not indices.isdisjoint(map(_address, numbers))


def _address(tensor: torch.Tensor) -> int:
    """Where the memory of a tensor begins; 0 on the meta device."""
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0


def put_together(
    layout: torch.layout, parts: Mapping[str, torch.Tensor], sizes: Sequence[Any], coalesced: bool
) -> torch.Tensor:
    """A sparse tensor of its parts.

    Args:
        layout: A sparse layout.
        parts: By the names of `layouts.PARTS`.
        sizes: Of the whole.
        coalesced: Whether the indices of a `sparse_coo` tensor are sorted and unique.

    Raises:
        RuntimeError: Indices lie outside, are not sorted, or contradict the sizes. On the meta device there
            are none that could.
    """
    *indices, values = (parts[name].detach() for name in _PARTS[layout])
    if values.is_meta:
        return _symbolic(layout, indices, values, list(sizes), coalesced)
    options: dict[str, Any] = {"check_invariants": True}
    if layout is torch.sparse_coo:
        return torch.sparse_coo_tensor(indices[0], values, list(sizes), is_coalesced=coalesced, **options)
    compressed, plain = indices
    return torch.sparse_compressed_tensor(compressed, plain, values, list(sizes), layout=layout, **options)


def _symbolic(
    layout: torch.layout,
    indices: Sequence[torch.Tensor],
    values: torch.Tensor,
    sizes: list[Any],
    coalesced: bool,
) -> torch.Tensor:
    """A tensor on the meta device; the public functions would take symbolic sizes for numbers."""
    options = {"dtype": values.dtype, "layout": layout, "device": values.device}
    if layout is not torch.sparse_coo:
        made: torch.Tensor = torch.ops.aten._sparse_compressed_tensor_unsafe.default(
            *indices, values, sizes, **options
        )
        return made
    dense = values.dim() - 1
    made = torch.ops.aten._sparse_coo_tensor_with_dims_and_tensors.default(
        len(sizes) - dense, dense, sizes, indices[0], values, is_coalesced=coalesced, **options
    )
    return made
