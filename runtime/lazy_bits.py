"""Tensors whose conjugation or negation is pending: a bit says so, and the memory holds other numbers."""

from __future__ import annotations

import torch


def is_pending(tensor: torch.Tensor) -> bool:
    """Whether the numbers in a tensor's memory are not those of the tensor."""
    return tensor.is_conj() or tensor.is_neg()


def apply_bits(
    storage: torch.UntypedStorage, dtype: torch.dtype, conj: bool, neg: bool
) -> torch.UntypedStorage:
    """A new storage with the conjugated or negated numbers of another; its own inverse.

    Args:
        storage: The memory, of which each whole element of the dtype is taken.
        dtype: Of the tensors in it.
        conj: Whether to conjugate.
        neg: Whether to negate.
    """
    count = storage.nbytes() // dtype.itemsize
    with torch.no_grad():
        flat = torch.empty(0, dtype=dtype, device=storage.device).set_(storage, 0, (count,), (1,))
        if conj:
            flat = torch.conj_physical(flat)
        return (-flat if neg else flat).untyped_storage()


def set_bits(tensor: torch.Tensor, conj: bool, neg: bool) -> torch.Tensor:
    """A view of the same memory with the bits set."""
    if conj:
        tensor = tensor.conj()
    return torch._neg_view(tensor) if neg else tensor
