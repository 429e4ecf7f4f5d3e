"""Notes in pickles of tensors: which of them share memory where a pickle alone would not say so.

Two pickles know nothing of each other, and torch.save refuses two dtypes in one memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .archive.payloads import same_bytes
from .errors import DeserializeError, SerializeError
from .tensor_memory import move, part_name, storage_bytes, storage_key, subclass_parts

#: The attribute of an ordered dict of tensors that says whose storage each lies in. Pickles keep it, and
#: PyTorch does not look at it. It keeps the metadata of a module's weights in the same way.
_SHARED = "_pt2wire_shared"


def noting_shared(tensors: Mapping[str, Any], owners: dict[Hashable, str]) -> dict[str, Any]:
    """Tensors as one pickle can hold them, with notes if they need some.

    Args:
        tensors: By name, and other values, which are left alone.
        owners: By storage, the name of the first tensor in it of an earlier pickle. Those of this one are
            added.

    Raises:
        SerializeError: Two parts of tensors of subclasses lie in one memory with different dtypes.
    """
    first: dict[Hashable, tuple[str, torch.dtype | None]] = {}
    # What has no parts can be moved to a copy of its memory, so the others come first.
    for fqn in sorted(tensors, key=lambda fqn: _is_plain(tensors[fqn])):
        for name, part, key in _in_memory(fqn, tensors[fqn]):
            other, dtype = first.setdefault(key, (name, _stored_as(part)))
            if dtype != _stored_as(part) and not _is_plain(tensors[fqn]):
                message = f"cannot save what views the memory of {other!r} with another dtype, {part.dtype}"
                raise SerializeError(message, path=name, hint="Use pt2wire.save, whose files can hold it")
    result, shared = dict(tensors), dict[str, str]()
    copies: dict[Hashable, torch.UntypedStorage] = {}
    for fqn, tensor in tensors.items():
        for name, part, key in _in_memory(fqn, tensor):
            other, dtype = first[key]
            if (other_dtype := _stored_as(part)) != dtype:
                if (key, other_dtype) not in copies:
                    copies[key, other_dtype] = part.untyped_storage().clone()  # type: ignore[no-untyped-call]
                result[fqn] = _moved(part, copies[key, other_dtype])
            if key in owners or other_dtype != dtype:
                shared[name] = owners.get(key, other)
    for key, (name, _) in first.items():
        owners.setdefault(key, name)
    if not shared:
        return result
    noting = OrderedDict(result)
    setattr(noting, _SHARED, shared)
    return noting


def _in_memory(fqn: str, tensor: Any) -> Iterator[tuple[str, torch.Tensor, Hashable]]:
    """The strided tensors in a value that have memory, with their names and what stands for that."""
    for path, part in subclass_parts(tensor).items():
        if (key := storage_key(part)) is not None:
            yield part_name(fqn, path), part, key


def _stored_as(tensor: torch.Tensor) -> torch.dtype | None:
    """The dtype with which torch.save stores the memory, if there is any."""
    return None if tensor.device.type == "meta" or isinstance(tensor, FakeTensor) else tensor.dtype


def _is_plain(value: object) -> bool:
    """Whether something is a tensor, or parameter of any class, that is only a storage and how it is seen."""
    return isinstance(value, torch.Tensor) and type(value.data) in (torch.Tensor, FakeTensor)


def _moved(tensor: torch.Tensor, storage: torch.UntypedStorage) -> torch.Tensor:
    copy = tensor.detach()
    move(copy, storage)
    if isinstance(tensor, torch.nn.Parameter):
        made: torch.Tensor = torch.Tensor._make_subclass(type(tensor), copy, tensor.requires_grad)
        return made
    return copy.requires_grad_(tensor.requires_grad)


def share_again(tensors: dict[str, Any], owners: dict[str, Any], path: str) -> None:
    """Let tensors of a pickle share memory as its notes say.

    Args:
        tensors: What the pickle holds.
        owners: Tensors of an earlier pickle, or the same.
        path: The pickle in messages.

    Raises:
        DeserializeError: What is said of that does not hold.
    """
    shared = getattr(tensors, _SHARED, {})
    if not isinstance(shared, dict) or not all(isinstance(name, str) for name in shared.values()):
        message = f"expected the names of tensors, found {shared!r:.80}"
        raise DeserializeError(message, path=f"{path}.{_SHARED}")
    if not shared:
        return
    parts = _by_name(tensors)
    named = {**parts, **_by_name(owners)}
    compared: dict[tuple[int, int], bool] = {}
    for fqn, name in shared.items():
        tensor, owner = parts.get(fqn), named.get(name)
        if tensor is None or owner is None:
            message = (
                f"expected a tensor that shares the memory of another, found {fqn!r:.80} and {name!r:.80}"
            )
            raise DeserializeError(message, path=f"{path}.{_SHARED}")
        ours, theirs = tensor.untyped_storage(), owner.untyped_storage()
        pair = ours._cdata, theirs._cdata
        if pair not in compared:
            alike = (ours.device, ours.nbytes()) == (theirs.device, theirs.nbytes())
            compared[pair] = alike and same_bytes(storage_bytes(ours), storage_bytes(theirs))
        if not compared[pair]:
            raise DeserializeError(
                f"expected the bytes of {name!r:.80}, whose storage it is said to share, found others",
                path=f"{path}.{fqn:.80}",
                hint="The artifact was changed by a tool that does not know of sharing",
            )
        move(tensor, theirs)


def _by_name(tensors: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    return {
        part_name(fqn, path): part
        for fqn, tensor in tensors.items()
        for path, part in subclass_parts(tensor).items()
    }
