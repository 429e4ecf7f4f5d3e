"""Weights and constants -> payload records and their configs; mirror of `importing.payloads`.

A payload is one whole storage, so that tied, aliased, strided and offset tensors share it in the file as they
do in memory, over all programs of an archive. Nothing is copied here: a record is written straight from the
tensor's memory.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, is_fake
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from ..archive.extents import check_payload
from ..archive.records import (
    CONSTANTS,
    OPAQUE_OBJECT_PREFIX,
    SCRIPT_OBJECT_PREFIX,
    TENSOR_PREFIX,
    WEIGHT_PREFIX,
    WEIGHTS,
)
from ..errors import Pt2WireError, SerializeError
from ..generated.types import PayloadConfig, PayloadMeta, TensorMeta
from ..layouts import PARTS
from ..lazy_bits import flipped
from ..objects import object_class
from ..sparse import parts_of
from ..tensor_memory import (
    first_in_storages,
    memory_parts,
    part_name,
    storage_bytes,
    storage_key,
    subclass_parts,
)
from ..warning import warn_user
from .exact import class_path
from .example_inputs import DEFAULT_PICKLE_PROTOCOL, pickled
from .faults import located
from .symbols import Symbols
from .values import export_tensor_meta


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """What tensors of an archive share that one record each would not say.

    Attributes:
        parts: Storages in which a pickled tensor has a part, and another tensor lies or has a part, too.
        names: By storage a name for it, where tensors of several programs have records of their own.
    """

    parts: frozenset[Hashable]
    names: Mapping[Hashable, str]


@dataclass(frozen=True, slots=True)
class _Object:
    """A custom object that was pickled.

    Attributes:
        value: The object: its id is free for others once it is gone.
        storages: Those of the tensors that its pickle holds.
    """

    value: Any
    storages: frozenset[Hashable]


@dataclass(slots=True)
class PayloadRecords:
    """The payloads of an archive in the making, shared by its programs.

    Attributes:
        shared: What tensors of the archive share beyond records.
        contents: Record name -> function that gives the record's bytes. They are the tensor's own memory
            where that is in host memory, so nothing may change it until the record has been written.
    """

    shared: SharedMemory = field(default_factory=lambda: SharedMemory(frozenset(), {}))
    contents: dict[str, Callable[[], memoryview]] = field(default_factory=dict)
    _path_names: dict[Hashable, str] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _objects: dict[str, _Object] = field(default_factory=dict)

    def add(self, tensor: torch.Tensor, meta: TensorMeta, folder: str, prefix: str) -> str:
        """The name of the payload in `folder` that holds the tensor's storage.

        PyTorch reads all views of one payload with one dtype, so a storage that is viewed with two is stored
        twice. So is one that is viewed with and without a pending conjugation or negation: that is applied,
        since PyTorch's readers know of none.
        """
        key = (folder, storage_key(tensor), tensor.dtype, meta.conj, meta.neg)
        path_name = self._path_names.get(key)
        if path_name is None:
            path_name = self._path_names[key] = self._new_name(folder, prefix)
            self.contents[folder + path_name] = _contents(tensor.untyped_storage(), meta)
        return path_name

    def add_pickled(self, fqn: str, tensor: torch.Tensor, folder: str, prefix: str) -> str:
        """The name of the payload in `folder` that is the pickle of a tensor of a subclass.

        Writing it raises a SerializeError if the tensor cannot be pickled.
        """
        key = (folder, id(tensor))  # which the record keeps alive
        path_name = self._path_names.get(key)
        if path_name is None:
            path_name = self._path_names[key] = self._new_name(folder, prefix)
            self.contents[folder + path_name] = lambda: _pickled_tensor(fqn, tensor)
        return path_name

    def _new_name(self, folder: str, prefix: str) -> str:
        number = self._counts.get(folder + prefix, 0)
        self._counts[folder + prefix] = number + 1
        return f"{prefix}{number}"

    def add_object(self, value: Any, folder: str, pickle_protocol: int) -> str:
        """The name of the payload in `folder` that holds an object, pickled as it is now.

        Raises:
            SerializeError: It cannot be pickled.
        """
        key = (folder, "object", id(value))
        path_name = self._path_names.get(key)
        if path_name is None:
            prefix, data, tensors = _pickled_object(value, pickle_protocol)
            path_name = self._path_names[key] = self._new_name(folder, prefix)
            self.contents[folder + path_name] = lambda: memoryview(data)
            storages = frozenset(map(storage_key, tensors)) - {None}
            self._objects[path_name] = _Object(value, storages)
        return path_name

    def storages_in(self, path_name: str) -> frozenset[Hashable]:
        """The storages of tensors that an object of that name was pickled with."""
        return self._objects[path_name].storages


def _pickled_tensor(fqn: str, tensor: torch.Tensor) -> memoryview:
    try:
        return memoryview(pickled(tensor, DEFAULT_PICKLE_PROTOCOL))
    except Exception as error:  # of the methods of its class, of parts that torch.save does not take
        raise SerializeError(
            f"cannot pickle a tensor of the class {type(tensor).__qualname__} ({type(error).__name__}: "
            f"{error!s:.120})",
            path=fqn,
        ) from error


class _Pickler(pickle.Pickler):
    """Pickles as `pickle.dumps` does, and knows the tensors that it came by."""

    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.tensors: list[torch.Tensor] = []

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            self.tensors.append(value)
        return NotImplemented


def _pickled_object(value: Any, pickle_protocol: int) -> tuple[str, bytes, list[torch.Tensor]]:
    """How the record of an object is called, its pickle, and the tensors in that."""
    try:
        if isinstance(value, torch.ScriptObject):
            data = torch._C._pickle_save(value)
            state = pytree.tree_leaves(value.__getstate__())
            return SCRIPT_OBJECT_PREFIX, data, [leaf for leaf in state if isinstance(leaf, torch.Tensor)]
        file = io.BytesIO()
        pickler = _Pickler(file, pickle_protocol)
        pickler.dump(value)
        return OPAQUE_OBJECT_PREFIX, file.getvalue(), pickler.tensors
    except Exception as error:  # of the object's own methods
        raise SerializeError(
            f"cannot pickle an object of class {object_class(value)} ({type(error).__name__}: "
            f"{error!s:.120})",
            hint="Give its class def_pickle() in C++"
            if isinstance(value, torch.ScriptObject)
            else "Define the class at the top of its module",
        ) from error


def _contents(storage: torch.UntypedStorage, meta: TensorMeta) -> Callable[[], memoryview]:
    return lambda: flipped(storage_bytes(storage), meta)


def export_weights(state_dict: Mapping[str, torch.Tensor], records: PayloadRecords) -> PayloadConfig:
    """Payloads of a program's parameters and persistent buffers.

    Raises:
        SerializeError: Names a weight that cannot be written.
    """
    return _export(state_dict, records, WEIGHTS, WEIGHT_PREFIX)


def with_objects(constants: Mapping[str, Any], objects: Mapping[str, Any]) -> dict[str, Any]:
    """What a file holds as constants of a program: also the objects that stand in arguments of its nodes.

    Raises:
        SerializeError: A constant has the name that such an object got.
    """
    for name, value in objects.items():
        if constants.get(name, value) is not value:
            raise SerializeError("expected a name that no object in an argument has", path=name)
    return {**objects, **constants}


def export_constants(
    constants: Mapping[str, Any],
    records: PayloadRecords,
    state_dict: Mapping[str, torch.Tensor],
    pickle_protocol: int,
) -> PayloadConfig:
    """Payloads of a program's constants, non-persistent buffers and custom objects.

    A constant that shares its storage with a weight is stored a second time, since PyTorch's readers look for
    constants in their own folder only, and says whose storage it shares. Objects are pickled, as PyTorch
    pickles them.

    Raises:
        SerializeError: Names a constant that cannot be written.
    """
    tensors = {fqn: value for fqn, value in constants.items() if object_class(value) is None}
    config = _export(tensors, records, CONSTANTS, TENSOR_PREFIX, state_dict).config
    named = first_in_storages({**state_dict, **tensors})
    for fqn in (fqn for fqn in constants if fqn not in tensors):
        try:
            path_name = records.add_object(constants[fqn], CONSTANTS, pickle_protocol)
        except SerializeError as error:
            raise located(error, fqn) from error.__cause__
        for storage in sorted(records.storages_in(path_name) & named.keys(), key=named.__getitem__):
            warn_user(
                f"the object {fqn!r} holds memory of {named[storage]!r}, and a copy of it once loaded: what "
                "changes one will not change the other"
            )
        config[fqn] = PayloadMeta(path_name=path_name, is_param=False, use_pickle=True, tensor_meta=None)
    return PayloadConfig(config={fqn: config[fqn] for fqn in constants})


def _export(
    tensors: Mapping[str, Any],
    records: PayloadRecords,
    folder: str,
    prefix: str,
    weights: Mapping[str, torch.Tensor] = MappingProxyType({}),
) -> PayloadConfig:
    owners: dict[Hashable, tuple[str, str | None]] = {
        key: (fqn, None) for key, fqn in first_in_storages(weights).items()
    }
    writer = _Writer(records, folder, prefix, owners)
    return PayloadConfig(config={fqn: writer.write_whole(fqn, tensor) for fqn, tensor in tensors.items()})


@dataclass(slots=True)
class _Writer:
    """Writes the tensors of one config.

    Attributes:
        records: Shared by all programs of the archive.
        folder, prefix: Where the payloads lie, and what their names begin with.
        owners: By storage, the first tensor in it, and its payload in the folder, if it has one there.
    """

    records: PayloadRecords
    folder: str
    prefix: str
    owners: dict[Hashable, tuple[str, str | None]]
    _symbols: Symbols = field(default_factory=Symbols)
    _alike: dict[Hashable, dict[int, int]] = field(default_factory=dict)

    def write_whole(self, fqn: str, tensor: Any) -> PayloadMeta:
        """Write what has a name of its own, and is a tensor object of its own or one under several names."""
        payload = self.write(fqn, tensor)
        if not payload.use_pickle:  # pickles have a record for each object
            payload.instance = self._instance(tensor, payload) or None
        return payload

    def _instance(self, tensor: torch.Tensor, payload: PayloadMeta) -> int:
        """The number of a tensor among those that are told apart by nothing that a file says of them."""
        place = None if payload.inner else (tensor.storage_offset(), tensor.stride())
        seen = (payload.path_name, tensor.dtype, tensor.size(), place, payload.is_param, tensor.requires_grad)
        alike = self._alike.setdefault(seen, {})
        return alike.setdefault(id(tensor), len(alike))

    def write(self, fqn: str, tensor: Any) -> PayloadMeta:
        _check_supported(fqn, tensor)
        try:
            meta = export_tensor_meta(tensor, self._symbols)
            if type(tensor) not in _CLASSES:
                meta.subclass = class_path(type(tensor))
            if is_subclass(tensor):
                return self._pickled(fqn, tensor, meta)
            if meta.layout in PARTS:
                return self._sparse(fqn, tensor, meta)
            return self._strided(fqn, tensor, meta)
        except Pt2WireError as error:  # a layout that the format lacks, a storage that was resized
            raise SerializeError(error.message, path=fqn) from error

    def _pickled(self, fqn: str, tensor: torch.Tensor, meta: TensorMeta) -> PayloadMeta:
        """A pickle keeps what its parts share with one another, not what they share with other tensors."""
        path_name = self.records.add_pickled(fqn, tensor, self.folder, self.prefix)
        payload = _payload(tensor, meta, path_name, use_pickle=True)
        inner = {
            path: self._strided(part_name(fqn, path), part, export_tensor_meta(part, self._symbols))
            for path, part in subclass_parts(tensor).items()
            if storage_key(part) in self.records.shared.parts
        }
        payload.inner = inner or None
        return payload

    def _sparse(self, fqn: str, tensor: torch.Tensor, meta: TensorMeta) -> PayloadMeta:
        """The format demands the name of one payload, which is that of the last part."""
        inner = {name: self.write(f"{fqn}.{name}", part) for name, part in parts_of(tensor).items()}
        payload = _payload(tensor, meta, inner[PARTS[meta.layout][-1]].path_name)
        payload.inner = inner
        return payload

    def _strided(self, fqn: str, tensor: torch.Tensor, meta: TensorMeta) -> PayloadMeta:
        path_name = self.records.add(tensor, meta, self.folder, self.prefix)
        payload = _payload(tensor, meta, path_name)
        payload.alias_of = self._owner_elsewhere(fqn, tensor, path_name)
        payload.memory = self.records.shared.names.get(storage_key(tensor))
        if not payload.absent:
            check_payload(payload, tensor.untyped_storage().nbytes(), fqn)
        return payload

    def _owner_elsewhere(self, fqn: str, tensor: torch.Tensor, path_name: str) -> str | None:
        """The tensor that the storage belongs to, where that lies in another payload."""
        key = storage_key(tensor)
        if key is None:
            return None
        owner, owner_path = self.owners.setdefault(key, (fqn, path_name))
        return owner if owner_path != path_name else None


def _payload(
    tensor: torch.Tensor, meta: TensorMeta, path_name: str, *, use_pickle: bool = False
) -> PayloadMeta:
    return PayloadMeta(
        path_name=path_name,
        is_param=isinstance(tensor, torch.nn.Parameter),
        use_pickle=use_pickle,
        tensor_meta=meta,
        absent=isinstance(tensor, FakeTensor) or None,
    )


def shared_memory(programs: Mapping[str, ExportedProgram]) -> SharedMemory:
    """What the tensors of programs share."""
    tensors: dict[Hashable, set[Hashable]] = {}
    in_programs: dict[Hashable, set[str]] = {}
    of_records: dict[Hashable, set[Hashable]] = {}
    names: dict[Hashable, str] = {}
    with_parts: set[Hashable] = set()
    for program_name, program in programs.items():
        for folder, held in ((WEIGHTS, program.state_dict), (CONSTANTS, program.constants)):
            for fqn, tensor in held.items():
                for path, part in memory_parts(tensor).items():
                    if (key := storage_key(part)) is None:
                        continue
                    names.setdefault(key, f"{program_name}:{part_name(fqn, path)}")
                    tensors.setdefault(key, set()).add((folder, id(tensor)))
                    in_programs.setdefault(key, set()).add(program_name)
                    of_records.setdefault(key, set()).add((folder, part.dtype, part.is_conj(), part.is_neg()))
                    if is_subclass(tensor):
                        with_parts.add(key)
    return SharedMemory(
        parts=frozenset(key for key in with_parts if len(tensors[key]) > 1),
        names={
            key: name for key, name in names.items() if len(in_programs[key]) > 1 and len(of_records[key]) > 1
        },
    )


_CLASSES = frozenset((torch.Tensor, torch.nn.Parameter, FakeTensor))


def is_subclass(tensor: torch.Tensor) -> bool:
    """Whether a tensor is more than a storage and what the format says of it, so that only a pickle holds it.

    That is not so for a class of parameters, which holds plain tensors.
    """
    return type(tensor.data) not in _CLASSES


def _check_supported(fqn: str, tensor: object) -> None:
    for refused, what, hint in _REFUSALS:
        if refused(tensor):
            raise SerializeError(f"cannot save {what} ({type(tensor).__name__})", path=fqn, hint=hint)


# What this version refuses to write: test, what it is called, what to do instead. The order matters.
_REFUSALS: tuple[tuple[Callable[[Any], bool], str, str], ...] = (
    (
        lambda value: not isinstance(value, torch.Tensor),
        "a constant that is neither a tensor nor an object of PyTorch's",
        "Register its class with torch._library.opaque_object, or replace it by tensors",
    ),
    (
        torch._C._functorch.is_functorch_wrapped_tensor,
        "a constant that functorch made while the program was traced, and that has no data",
        "torch.export lost how the program computes it: leave gradients of torch.func out of the program",
    ),
    (
        lambda tensor: is_subclass(tensor) and is_fake(tensor),
        "a fake tensor of a subclass",
        "Export the program with real weights",
    ),
    (
        lambda tensor: tensor.is_quantized,
        "a quantized tensor",
        "Replace it by its integers, scale and zero point before exporting",
    ),
    (
        lambda tensor: tensor.is_mkldnn,
        "a tensor in a layout of oneDNN's own",
        "Call to_dense() on it before exporting",
    ),
)
