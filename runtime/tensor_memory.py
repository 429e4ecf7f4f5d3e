"""The memory that tensors lie in, with their parts, and which of them share it."""

from __future__ import annotations

import ctypes
from collections.abc import Hashable, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from .sparse import parts_of


def subclass_parts(tensor: Any) -> dict[str, torch.Tensor]:
    """The strided tensors that lie in one memory each, by the attributes that lead to them, joined by dots.

    The empty path is the tensor itself. Sparse tensors have none: they cannot be moved to other memory.

    Example:
        >>> from torch.testing._internal.two_tensor import TwoTensor
        >>> list(subclass_parts(TwoTensor(torch.ones(2), torch.ones(2))))
        ['a', 'b']
        >>> list(subclass_parts(torch.ones(2)))
        ['']
    """
    if not isinstance(tensor, torch.Tensor) or torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return {}
    if not is_traceable_wrapper_subclass(tensor):
        return {"": tensor} if tensor.layout is torch.strided else {}
    return {
        part_name(name, path): part
        for name in tensor.__tensor_flatten__()[0]
        for path, part in subclass_parts(getattr(tensor, name)).items()
    }


def memory_parts(tensor: Any) -> dict[str, torch.Tensor]:
    """The same, with the parts of a sparse tensor.

    Example:
        >>> list(memory_parts(torch.eye(2).to_sparse()))
        ['indices', 'values']
    """
    return subclass_parts(tensor) or (parts_of(tensor) if isinstance(tensor, torch.Tensor) else {})


def part_name(whole: str, path: str) -> str:
    """What a part of a tensor is called.

    Example:
        >>> part_name("linear.weight", "a"), part_name("linear.weight", "")
        ('linear.weight.a', 'linear.weight')
    """
    return f"{whole}.{path}" if path else whole


def first_in_storages(tensors: Mapping[str, Any]) -> dict[Hashable, str]:
    """The name of the first tensor, or part of one, in each storage that several can share."""
    first: dict[Hashable, str] = {}
    for fqn, tensor in tensors.items():
        for path, part in memory_parts(tensor).items():
            if (key := storage_key(part)) is not None:
                first.setdefault(key, part_name(fqn, path))
    return first


def storage_key(tensor: torch.Tensor) -> Hashable | None:
    """What tensors that share their memory have in common; None of one that has no memory."""
    try:
        storage = tensor.untyped_storage()
        if storage.nbytes() == 0:
            return None
        if storage.device.type == "meta":
            cdata: int = storage._cdata  # no memory that could be compared
            return cdata
        return str(storage.device), storage.data_ptr()
    except (RuntimeError, NotImplementedError):  # a tensor of a class that keeps its numbers elsewhere
        return None


def storage_bytes(storage: torch.UntypedStorage) -> memoryview:
    """The bytes of a storage, without a copy if they are in host memory; the view keeps the storage alive."""
    if storage.device.type == "meta" or storage.nbytes() == 0:
        return memoryview(b"")
    storage = storage.cpu()  # type: ignore[no-untyped-call]
    array = (ctypes.c_ubyte * storage.nbytes()).from_address(storage.data_ptr())
    array._storage = storage  # type: ignore[attr-defined]  # keeps the memory alive
    return memoryview(array).cast("B")


def move(tensor: torch.Tensor, storage: torch.UntypedStorage) -> None:
    """Let a tensor of any class lie in another storage as it lies in its own."""
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        tensor.set_(storage, tensor.storage_offset(), tensor.size(), tensor.stride())
