"""Programs as four byte strings, in the shape of PyTorch's `SerializedArtifact`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch.export import ExportedProgram

from .arguments import check_flags, check_versions, mistaken
from .errors import DeserializeError, SerializeError, UnsafeArtifactError
from .exporting import export_program
from .exporting.example_inputs import DEFAULT_PICKLE_PROTOCOL, check_protocol, pickled
from .exporting.payloads import with_objects
from .format_versions import check_opset
from .importing import check_weights, import_program
from .importing.devices import DeviceMap, Devices
from .importing.example_inputs import import_example_inputs
from .importing.pickles import open_pickle, tensor_problem
from .limits import DEFAULT_LIMITS, Limits
from .noted_sharing import noting_shared, share_again
from .permissions import ALLOW_PICKLE, Permissions, permit
from .sparse import indices_are_shared
from .trees import beyond_error, from_json, to_json
from .validation.loading import check_loadable


@dataclass(slots=True)
class SerializedArtifact:
    """A program as bytes, with the fields of PyTorch's class of the same name.

    Attributes:
        exported_program: The tree in PyTorch's JSON.
        state_dict: Parameters and persistent buffers, as torch.save writes them.
        constants: Constants and non-persistent buffers, likewise.
        example_inputs: Positional and keyword arguments, likewise; empty if there are none.
    """

    exported_program: bytes
    state_dict: bytes
    constants: bytes
    example_inputs: bytes
    # The pickles that `serialize` has put here in this process. An artifact that was pickled, copied or
    # rebuilt has none, and bytes that were exchanged later are not among them: they may come from anywhere.
    _made_here: tuple[bytes, ...] = field(default=(), init=False, repr=False, compare=False)

    def __getstate__(self) -> tuple[bytes, ...]:
        return self.exported_program, self.state_dict, self.constants, self.example_inputs

    def __setstate__(self, state: tuple[bytes, ...]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def is_made_here(self) -> bool:
        """Whether `serialize` made all of it in this process."""
        pickles = (self.state_dict, self.constants, self.example_inputs)
        return len(self._made_here) == 3 and all(
            a is b for a, b in zip(pickles, self._made_here, strict=True)
        )


class _Artifact(Protocol):
    exported_program: bytes
    state_dict: bytes
    constants: bytes
    example_inputs: bytes


def serialize(
    ep: ExportedProgram,
    *,
    opset_version: Mapping[str, int] | None = None,
    pickle_protocol: int = DEFAULT_PICKLE_PROTOCOL,
) -> SerializedArtifact:
    """Write a program as four byte strings. For files, `save` is faster and safer.

    Args:
        ep: The program.
        opset_version: The version of each operator namespace that the program was written for.
        pickle_protocol: For everything but the tree.

    Raises:
        SerializeError: The program holds something that cannot be written; the path names the node.
        TypeError: `ep` is no exported program, or another argument has the wrong type.
        ValueError: There is no such pickle protocol.

    Example:
        >>> import torch
        >>> ep = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),))
        >>> again = deserialize(serialize(ep))
        >>> torch.equal(again.state_dict["weight"], ep.state_dict["weight"])
        True
    """
    if not isinstance(ep, ExportedProgram):
        raise mistaken("an ExportedProgram of torch", ep)
    check_versions(opset_version, "opset_version")
    check_protocol(pickle_protocol)
    objects: dict[str, Any] = {}
    tree = export_program(ep, opset_version=opset_version, objects=objects)
    if tree.beyond:
        raise beyond_error(tree.beyond, "", "Use pt2wire.save, whose files can hold it")
    text = to_json(tree)
    constants = with_objects(ep.constants, objects)
    owners: dict[Hashable, str] = {}
    pickles = (
        _pickled(noting_shared(ep.state_dict, owners), pickle_protocol, "state_dict"),
        _pickled(noting_shared(constants, owners), pickle_protocol, "constants"),
        b"" if ep.example_inputs is None else _pickled(ep.example_inputs, pickle_protocol, "example_inputs"),
    )
    artifact = SerializedArtifact(text, *pickles)
    artifact._made_here = pickles
    return artifact


def _pickled(value: object, pickle_protocol: int, path: str) -> bytes:
    try:
        return pickled(value, pickle_protocol)
    except Exception as error:  # whatever the classes in it raise
        raise SerializeError(
            f"cannot pickle what the program holds ({type(error).__name__}: {error!s:.120})", path=path
        ) from error


def deserialize(
    artifact: _Artifact,
    *,
    expected_opset_version: Mapping[str, int] | None = None,
    device: DeviceMap | None = None,
    types: Iterable[type] = (),
    allow_pickle: bool = False,
    allow_operators: Iterable[str] = (),
    changed_weights: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> ExportedProgram:
    """Make a program of four byte strings.

    Args:
        artifact: What `serialize` returned, or PyTorch's `SerializedArtifact`. Pickles are opened without
            running code from them, unless `serialize` made this very object in this process.
        expected_opset_version: Versions that operator namespaces must have, where the artifact names them.
        device: Where the program is to live if not where it was, as for `load`.
        types: As for `load`.
        allow_pickle: As for `load`.
        allow_operators: As for `load`.
        changed_weights: As for `load`.
        limits: As for `load`.

    Raises:
        TypeError: The argument is no such artifact, or another argument has the wrong type.
        ValueError: `device` names no device.
        DeserializeError: The bytes are damaged, contradict each other or have a version that cannot be read.
        UnsafeArtifactError: A pickle needs classes, and could run code, and that is not permitted.

    Example:
        >>> import torch
        >>> from torch._export.serde.serialize import serialize as torch_serialize
        >>> ep = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),))
        >>> list(deserialize(torch_serialize(ep)).state_dict)
        ['weight', 'bias']
    """
    for name in ("exported_program", "state_dict", "constants", "example_inputs"):
        if not isinstance(getattr(artifact, name, None), bytes):
            raise TypeError(
                f"expected a SerializedArtifact, whose {name} is bytes, found {type(artifact).__name__}"
            )
    check_flags(allow_pickle=allow_pickle)
    trusted = isinstance(artifact, SerializedArtifact) and artifact.is_made_here()
    permissions = permit(
        allow_pickle=allow_pickle or trusted,
        allow_operators=allow_operators,
        types=types,
        limits=limits,
        changed_weights=changed_weights,
    )
    check_versions(expected_opset_version, "expected_opset_version")
    devices = None if device is None else Devices(device)
    tree = from_json(artifact.exported_program, limits=limits)
    check_loadable(tree, permissions=permissions)
    check_opset(tree, expected_opset_version or {})
    if devices is not None:
        devices.move_program(tree)
    example_inputs = import_example_inputs(
        tree, artifact.example_inputs, None, "example_inputs", devices, permissions
    )
    state_dict = _tensors(artifact.state_dict, devices, permissions, "state_dict")
    constants = _tensors(artifact.constants, devices, permissions, "constants")
    share_again(state_dict, state_dict, "state_dict")
    share_again(constants, state_dict, "constants")
    if not permissions.allow_pickle:
        _check_indices({**state_dict, **constants})
    ep = import_program(
        tree,
        state_dict=dict(state_dict),
        constants=dict(constants),
        example_inputs=example_inputs,
        permissions=permissions,
    )
    check_weights(ep, permissions)
    return ep


def _tensors(data: bytes, devices: Devices | None, permissions: Permissions, path: str) -> dict[str, Any]:
    if not data:
        return {}
    loaded = open_pickle(data, path, devices, allow_pickle=permissions.allow_pickle, known=permissions.types)
    if not isinstance(loaded, dict) or not all(isinstance(key, str) for key in loaded):
        raise DeserializeError(f"expected a dict of tensors, found {type(loaded).__name__}", path=path)
    for key, value in loaded.items():
        if not permissions.allow_pickle and not isinstance(value, torch.Tensor):
            raise DeserializeError(f"expected a tensor, found {type(value).__name__}", path=f"{path}.{key}")
        if not permissions.allow_pickle and (problem := tensor_problem(value, permissions.types)):
            raise DeserializeError(problem, path=f"{path}.{key}")
        if devices is not None and isinstance(value, torch.Tensor) and value.is_meta:
            _check_stays_on_meta(devices, f"{path}.{key}")
    return loaded


def _check_indices(tensors: Mapping[str, Any]) -> None:
    """Refuse checked indices in memory of other tensors, which a program may change."""
    if indices_are_shared(tensor for tensor in tensors.values() if isinstance(tensor, torch.Tensor)):
        raise UnsafeArtifactError(
            "indices of a sparse tensor share memory with numbers, which a program may change",
            path="state_dict",
            hint=ALLOW_PICKLE,
        )


def _check_stays_on_meta(devices: Devices, path: str) -> None:
    target = devices(torch.device("meta"))
    if target.type != "meta":
        raise DeserializeError(
            f"expected a tensor that can be put on {target}, found one on the meta device, without data",
            path=path,
            hint="Let `device` leave the meta device as it is",
        )
