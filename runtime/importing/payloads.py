"""Payload records and their configs -> weights and constants; mirror of `exporting.payloads`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ..archive.extents import Extent, check_payload, tensor_extent
from ..archive.payloads import Payload, alias_problem, each_payload, owners, same_bytes
from ..archive.records import OBJECT_PREFIXES, SCRIPT_OBJECT_PREFIX
from ..classes import handing_in, known_class, path_of
from ..errors import DeserializeError, UnsafeArtifactError
from ..generated.types import PayloadMeta, SymInt, TensorMeta
from ..layouts import PARTS, element_type
from ..permissions import ALLOW_PICKLE, MISSING_WEIGHTS, NO_PERMISSIONS, Permissions
from ..sparse import put_together
from ..tensor_memory import move, part_name, storage_bytes, subclass_parts
from ..warning import warn_user
from .pickles import open_object, open_pickle, tensor_problem
from .values import import_device, import_dtype, import_layout, set_bits

_CHANGED = "The file was changed by a tool that does not know of sharing"

#: Bytes: the largest element. PyTorch's kernels may assume at least this.
_MEMORY_ALIGNMENT = 16


@dataclass(slots=True)
class PayloadStorages:
    """What is made of an archive's payloads, so that what shared a storage or an object does so again."""

    _storages: dict[tuple[int, torch.device], tuple[memoryview, torch.UntypedStorage]] = field(
        default_factory=dict
    )
    _pending: dict[object, tuple[memoryview, memoryview]] = field(default_factory=dict)
    _equal: dict[tuple[int, int], bool] = field(default_factory=dict)
    _named: dict[str, memoryview] = field(default_factory=dict)
    _opened: dict[tuple[int, str], tuple[memoryview, Any]] = field(default_factory=dict)

    def memory(self, payload: Payload, where: str) -> memoryview:
        """The bytes of a payload as they are in memory, the same view each time.

        Raises:
            DeserializeError: Payloads that are said to be one memory differ.
        """
        memory, name = self._own_memory(payload), payload.meta.memory
        if name is None:
            return memory
        shared = self._named.setdefault(name, memory)
        self.check_same(shared, memory, f"the memory {name[:80]!r}, in which it is said to lie", where)
        return shared

    def _own_memory(self, payload: Payload) -> memoryview:
        meta = payload.meta.tensor_meta
        assert meta is not None
        if not (meta.conj or meta.neg):
            return payload.data
        key = (id(payload.data), element_type(meta), meta.conj, meta.neg)
        if key not in self._pending:
            self._pending[key] = (payload.data, payload.in_memory())
        return self._pending[key][1]

    def check_same(self, shared: memoryview, own: memoryview, what: str, where: str) -> None:
        """Refuse a payload that differs from what it shares; bytes that many share are compared once."""
        key = (id(shared), id(own))
        if key not in self._equal:
            self._equal[key] = same_bytes(shared, own)
        if not self._equal[key]:
            message = f"expected the bytes of {what}, found others"
            raise DeserializeError(message, path=where, hint=_CHANGED)

    def opened(self, pickle: memoryview, kind: str, read: Callable[[], Any]) -> Any:
        """What a pickle holds, the same in all programs that share it.

        Args:
            pickle: Its bytes.
            kind: What it is taken for.
            read: Opens it.
        """
        key = (id(pickle), kind)
        if key not in self._opened:
            self._opened[key] = (pickle, read())  # with the view, whose id is not given to another one then
        return self._opened[key][1]

    def storage(self, data: memoryview, device: torch.device) -> torch.UntypedStorage:
        """The storage for what one payload is in memory, the same one each time.

        Not so of one without bytes, in which tensors of any storages lie: a program may make them larger.
        """
        if len(data) == 0 and device.type != "meta":
            return self._make(data, device)
        key = (id(data), device)
        if key not in self._storages:
            # Keeping the view keeps its id from being given to another one.
            self._storages[key] = (data, self._make(data, device))
        return self._storages[key][1]

    def _make(self, data: memoryview, device: torch.device) -> torch.UntypedStorage:
        if device.type == "meta" or len(data) == 0:
            return torch.UntypedStorage(0, device=device)  # type: ignore[no-untyped-call]
        if not data.readonly:
            mapped = torch.frombuffer(data, dtype=torch.uint8)
            if device.type != "cpu":
                return mapped.to(device).untyped_storage()
            if mapped.data_ptr() % _MEMORY_ALIGNMENT == 0:
                return mapped.untyped_storage()
        copied = torch.UntypedStorage(len(data))  # type: ignore[no-untyped-call]
        memory = (ctypes.c_ubyte * len(data)).from_address(copied.data_ptr())
        memoryview(memory).cast("B")[:] = data
        return copied if device.type == "cpu" else copied.to(device=device)


def import_weights(
    payloads: Mapping[str, Payload],
    storages: PayloadStorages,
    path: str,
    permissions: Permissions = NO_PERMISSIONS,
) -> dict[str, torch.Tensor]:
    """A program's parameters and persistent buffers.

    Args:
        payloads: By name.
        storages: Shared by all programs of the archive.
        path: The program in messages.
        permissions: What the caller permits: whether pickles may be opened.

    Raises:
        DeserializeError: A payload is missing, too short, or contradicts its metadata.
        UnsafeArtifactError: A weight is stored as a pickle, and that is not permitted.
    """
    return _import(payloads, {}, storages, path, permissions)


def import_constants(
    payloads: Mapping[str, Payload],
    weights: Mapping[str, Payload],
    storages: PayloadStorages,
    path: str,
    permissions: Permissions = NO_PERMISSIONS,
) -> dict[str, Any]:
    """A program's constants, non-persistent buffers and custom objects.

    `weights` are those whose storage some may share.

    Raises:
        DeserializeError: A payload is missing, too short, or contradicts its metadata.
        UnsafeArtifactError: A constant is stored as a pickle, and that is not permitted.
    """
    return _import(payloads, weights, storages, path, permissions)


def _import(
    payloads: Mapping[str, Payload],
    weights: Mapping[str, Payload],
    storages: PayloadStorages,
    path: str,
    permissions: Permissions,
) -> dict[str, Any]:
    maker = _Maker(owners(each_payload(weights), each_payload(payloads)), storages, permissions)
    return {fqn: maker.make(payload, f"{path}.{fqn}") for fqn, payload in payloads.items()}


@dataclass(slots=True)
class _Maker:
    """Makes the tensors and objects of one config.

    Attributes:
        owners: Those of which some may share the storage, by name, parts among them.
        storages: Shared by all programs of the archive.
        permissions: What the caller permits.
    """

    owners: Mapping[str, Payload]
    storages: PayloadStorages
    permissions: Permissions
    # Tensors that are equal in everything are one under several names, such as tied weights.
    _made: dict[object, Any] = field(default_factory=dict)

    def make(self, payload: Payload, where: str) -> Any:
        meta = payload.meta
        if meta.use_pickle:
            if meta.path_name.startswith(OBJECT_PREFIXES):
                return self._object(meta.path_name, payload.data, where)
            return self._pickled(payload, where)
        if meta.tensor_meta is None:
            raise DeserializeError("expected metadata of a tensor, found none", path=where)
        if meta.tensor_meta.layout in PARTS:
            return self._sparse(payload, meta.tensor_meta, where)
        extent = tensor_extent(meta.tensor_meta, where, self.permissions.limits)
        data = _shared(payload, self.owners, self.storages, where)
        device = import_device(meta.tensor_meta.device)
        # PyTorch marks no weight as absent, it writes an empty payload.
        if meta.absent or (len(data) == 0 and extent.nbytes > 0 and device.type != "meta"):
            if self.permissions.missing_weights == "error":
                message = f"expected {extent.nbytes} bytes, found an empty payload, as of a fake weight"
                raise DeserializeError(message, path=where, hint=MISSING_WEIGHTS)
            device = torch.device("meta")
        else:
            check_payload(meta, len(data), where, self.permissions.limits)
        identity = (
            id(data),
            device,
            element_type(meta.tensor_meta),
            extent,
            *_manner(meta, meta.tensor_meta),
        )
        if identity not in self._made:
            tensor = _tensor(self.storages, data, device, extent, meta, where)
            self._made[identity] = _as_subclass(tensor, meta.tensor_meta, where, self.permissions)
        return self._made[identity]

    def _object(self, path_name: str, data: memoryview, where: str) -> Any:
        """A custom object."""
        if not self.permissions.allow_pickle:
            raise UnsafeArtifactError(
                f"stored as the pickle {path_name[:80]!r}, which can run code when it is opened",
                path=where,
                hint=ALLOW_PICKLE,
            )
        script = path_name.startswith(SCRIPT_OBJECT_PREFIX)
        return self.storages.opened(data, "object", lambda: open_object(data, where, script=script))

    def _pickled(self, payload: Payload, where: str) -> torch.Tensor:
        """A tensor of a class of its own."""
        meta = payload.meta.tensor_meta
        kind = "parameter" if payload.meta.is_param else "tensor"
        tensor: torch.Tensor = self.storages.opened(
            payload.data, kind, lambda: _unpickled(payload, where, self.permissions)
        )
        if meta is not None:
            _check_unpickled(tensor, meta, where)
        parts = subclass_parts(tensor) if payload.inner else {}
        for path, described in payload.inner.items():
            here = part_name(where, path)
            _share(parts.get(path), self.make(described, here), here)
        return tensor

    def _sparse(self, payload: Payload, meta: TensorMeta, where: str) -> Any:
        parts = {name: self._part(name, part, f"{where}.{name}") for name, part in payload.inner.items()}
        sizes = [size.as_int for size in meta.sizes]
        identity = (*sizes, *map(id, parts.values()), *_manner(payload.meta, meta))
        if identity not in self._made:
            try:
                whole = put_together(import_layout(meta.layout), parts, sizes, meta.coalesced is not False)
                self._made[identity] = _finished(whole, payload.meta, meta)
            except RuntimeError as error:
                raise DeserializeError(f"cannot make this tensor: {error}", path=where) from error
        return self._made[identity]

    def _part(self, name: str, payload: Payload, where: str) -> Any:
        """A part of a sparse tensor. Indices get memory of their own: they are checked once, and a program
        may change a weight that lies in the same payload."""
        part = self.make(payload, where)
        if name == "values":
            return part
        identity = ("indices", id(part))
        if identity not in self._made:
            memory = ("memory of indices", id(payload.data), part.device)
            if memory not in self._made:
                self._made[memory] = part.untyped_storage().clone()
            self._made[identity] = part.new_empty(0).set_(
                self._made[memory], part.storage_offset(), part.size(), part.stride()
            )
        return self._made[identity]


def _unpickled(payload: Payload, where: str, permissions: Permissions) -> torch.Tensor:
    """A tensor of a class of its own, which PyTorch stores as a pickle that knows how to make it."""
    meta = payload.meta
    if not (permissions.allow_pickle or permissions.types):
        raise UnsafeArtifactError(
            "stored as a pickle, which can run code when it is opened", path=where, hint=ALLOW_PICKLE
        )
    device = None if meta.tensor_meta is None else import_device(meta.tensor_meta.device)
    opened = open_pickle(
        payload.data, where, device, allow_pickle=permissions.allow_pickle, known=permissions.types
    )
    if not isinstance(opened, torch.Tensor):
        raise DeserializeError(f"expected a tensor in a pickle, found {type(opened).__name__}", path=where)
    if not permissions.allow_pickle and (problem := tensor_problem(opened, permissions.types)):
        raise DeserializeError(problem, path=where)
    if meta.tensor_meta is not None:
        _check_unpickled(opened, meta.tensor_meta, where)
    if meta.is_param and not isinstance(opened, torch.nn.Parameter):
        return torch.nn.Parameter(opened, requires_grad=opened.requires_grad)
    return opened


def _share(part: torch.Tensor | None, described: torch.Tensor, where: str) -> None:
    """Let a part of a tensor of a subclass lie in the memory that it shares with others.

    Raises:
        DeserializeError: The pickle has another tensor there.
    """
    if part is None or _seen(part) != _seen(described):
        found = "none" if part is None else "another"
        message = f"expected the tensor that is described in the pickle, found {found}"
        raise DeserializeError(message, path=where)
    storage = described.untyped_storage()
    if part.untyped_storage()._cdata == storage._cdata:
        return
    if not same_bytes(storage_bytes(part.untyped_storage()), storage_bytes(storage)):
        raise DeserializeError(
            "expected the bytes that it has in the pickle, found others",
            path=where,
            hint=_CHANGED,
        )
    move(part, storage)


def _seen(tensor: torch.Tensor) -> tuple[object, ...]:
    """How a tensor sees its memory."""
    bits = (tensor.is_conj(), tensor.is_neg())
    return tensor.device, tensor.dtype, tensor.size(), tensor.stride(), tensor.storage_offset(), *bits


def _check_unpickled(tensor: torch.Tensor, meta: TensorMeta, where: str) -> None:
    """Refuse a tensor that is not what was said of it, to whoever decided to open its pickle."""
    kind = type(tensor)
    if meta.subclass is not None and path_of(kind) != meta.subclass:
        raise DeserializeError(
            f"expected a tensor of {meta.subclass[:80]!r} in a pickle, found one of {kind.__qualname__!r}",
            path=where,
        )
    expected: dict[str, tuple[object, object]] = {
        "sizes": (_constants(meta.sizes), list(tensor.shape)),
        "dtype": (import_dtype(meta), tensor.dtype),
        "layout": (import_layout(meta.layout), tensor.layout),
        "device": (import_device(meta.device).type, tensor.device.type),
        "requires_grad": (meta.requires_grad, tensor.requires_grad),
    }
    if tensor.layout is torch.strided:
        expected["strides"] = _constants(meta.strides), list(tensor.stride())
    for what, (said, found) in expected.items():
        if said != found:
            raise DeserializeError(
                f"expected a tensor of {what} {said} in a pickle, found {found}", path=where
            )


def _constants(numbers: Sequence[SymInt]) -> list[int | None]:
    return [number.as_int if number.type == "as_int" else None for number in numbers]


def _as_subclass(
    tensor: torch.Tensor, meta: TensorMeta, where: str, permissions: Permissions
) -> torch.Tensor:
    """A parameter of the class that it had, if the caller has handed that in, else as PyTorch reads it."""
    if meta.subclass is None:
        return tensor
    kind = known_class(meta.subclass, permissions.types)
    if kind is None:
        warn_user(
            f"{where}: read as {type(tensor).__name__}, found one of {meta.subclass[:80]!r}. "
            f"{handing_in(meta.subclass)}",
        )
        return tensor
    if not (issubclass(kind, torch.nn.Parameter) and isinstance(tensor, torch.nn.Parameter)):
        message = f"expected a class of parameters, found {meta.subclass[:80]!r}"
        raise DeserializeError(message, path=where)
    made: torch.Tensor = torch.Tensor._make_subclass(kind, tensor.data, tensor.requires_grad)
    return made


def _shared(
    payload: Payload, owners: Mapping[str, Payload], storages: PayloadStorages, where: str
) -> memoryview:
    """The memory to use: that of another tensor where the config says that the storage is shared."""
    memory = storages.memory(payload, where)
    name = payload.meta.alias_of
    if name is None:
        return memory
    owner = owners.get(name)
    if problem := alias_problem(payload.meta, None if owner is None else owner.meta):
        raise DeserializeError(problem, path=where)
    assert owner is not None  # that is a problem
    shared = storages.memory(owner, where)
    storages.check_same(shared, memory, f"{name!r}, whose storage it is said to share", where)
    return shared


def _tensor(
    storages: PayloadStorages,
    data: memoryview,
    device: torch.device,
    extent: Extent,
    meta: PayloadMeta,
    where: str,
) -> torch.Tensor:
    assert meta.tensor_meta is not None
    _check_present(device, where)
    try:
        dtype = import_dtype(meta.tensor_meta)
        tensor = torch.empty(0, dtype=dtype, device=device)
        storage = storages.storage(data, device)
        tensor.set_(storage, extent.storage_offset, extent.sizes, extent.strides)
        return _finished(set_bits(tensor, meta.tensor_meta), meta, meta.tensor_meta)
    except RuntimeError as error:  # an integer that requires grad, a device without the dtype
        raise DeserializeError(f"cannot make this tensor: {error}", path=where) from error


def _finished(tensor: torch.Tensor, payload: PayloadMeta, meta: TensorMeta) -> torch.Tensor:
    """The tensor as parameter, or with the wish for a gradient."""
    if payload.is_param:
        return torch.nn.Parameter(tensor, requires_grad=meta.requires_grad)
    return tensor.requires_grad_(meta.requires_grad)


def _manner(payload: PayloadMeta, meta: TensorMeta) -> tuple[object, ...]:
    """What tells two tensors apart that see the same elements."""
    bits = (meta.conj, meta.neg)
    return (
        payload.is_param,
        payload.instance,
        meta.requires_grad,
        meta.subclass,
        meta.layout,
        meta.coalesced is not False,
        *bits,
    )


def _check_present(device: torch.device, where: str) -> None:
    try:
        torch.empty(0, device=device)
    except Exception as error:  # of an absent device PyTorch says so in errors of any kind
        raise DeserializeError(
            f"cannot make this tensor: {error}",
            path=where,
            hint=f"This machine lacks {device}: load with another `device`",
        ) from error
