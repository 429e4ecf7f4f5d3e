"""Where a loaded program lives: the devices that it was saved with, exchanged for others.

Devices are exchanged in the tree, before anything is made of it: what is made then never was elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from ..archive.payloads import Payload, each_payload
from ..errors import DeserializeError
from ..exact_values import sequence_items
from ..generated import types
from ..operators import ENTER_AUTOCAST
from .faults import cause_of, located
from .values import import_device

Device: TypeAlias = str | torch.device
#: One device for everything; other devices by the old ones; or a function from an old to a new one.
DeviceMap: TypeAlias = Device | Mapping[Device, Device] | Callable[[torch.device], Device | None]

#: Device types for which torch has no autocast; a region keeps the type that it had.
_NO_AUTOCAST = frozenset({"meta"})


class Devices:
    """Gives the device on which something is loaded that was saved on another.

    Args:
        wanted: See `DeviceMap`. In a mapping, a device without an index stands for all of its type that are
            not there themselves. A program's device without an index, which is the current one, is looked up
            as number 0 as well. What is not found, or mapped to None, stays where it was.

    Raises:
        TypeError: It is none of these.
        ValueError: It names no device.

    Example:
        >>> move = Devices({"cuda": "cpu", "cuda:1": "cuda:0"})
        >>> [str(move(torch.device(name))) for name in ("cuda:0", "cuda:1", "cuda", "cpu", "meta")]
        ['cpu', 'cuda:0', 'cpu', 'cpu', 'meta']
    """

    def __init__(self, wanted: DeviceMap) -> None:
        self._find = _finder(wanted)
        self._found: dict[torch.device, torch.device] = {}

    def __call__(self, device: torch.device) -> torch.device:
        if device not in self._found:
            wanted = self._find(device)
            self._found[device] = device if wanted is None else _indexed(_parsed(wanted))
        return self._found[device]

    @property
    def locations(self) -> dict[Any, Any]:
        """The same as a `map_location` of `torch.load`."""
        return _Locations(self)

    def move_program(self, tree: types.ExportedProgram) -> None:
        """Exchange the devices in a tree: those of values, and those that nodes are called with.

        Raises:
            DeserializeError: The tree names a device that torch does not know.
        """
        with _places("graph_module.graph"):
            self._move_graph(tree.graph_module.graph)

    def move_payloads(self, payloads: Mapping[str, Payload], path: str) -> None:
        """Exchange the devices of weights or constants, which messages call `path`, before they are made.

        Raises:
            DeserializeError: One names a device that torch does not know.
        """
        for name, payload in each_payload(payloads):
            if payload.meta.tensor_meta is not None:
                with _places(f"{path}.{name}"):
                    self._move_meta(payload.meta.tensor_meta)

    def _move_meta(self, meta: types.TensorMeta) -> None:
        meta.device = self._moved(meta.device)
        for part in (meta.inner or {}).values():
            self._move_meta(part)

    def _moved(self, device: types.Device) -> types.Device:
        found = self(import_device(device))
        return types.Device(type=found.type, index=found.index)

    def _move_graph(self, graph: types.Graph) -> None:
        for name, meta in graph.tensor_values.items():
            with _places(f"tensor_values[{name!r}]"):
                self._move_meta(meta)
        for index, node in enumerate(graph.nodes):
            with _places(f"nodes[{index}]"):
                self._move_node(node)

    def _move_node(self, node: types.Node) -> None:
        for named in node.inputs:
            self._move_argument(named.arg)
        for subgraph in node.subgraphs or ():
            self._move_graph(subgraph.graph)
        for exact in node.exact_inputs or ():
            if exact.value is not None:
                self._move_value(exact.value)
        if (position := _DEVICE_TYPE_ARGUMENTS.get(node.target)) is not None:
            self._move_device_type(node.inputs[position].arg)

    def _move_argument(self, argument: types.Argument) -> None:
        if argument.type == "as_device":
            argument.as_device = self._moved(argument.as_device)
        elif argument.type == "as_graph":
            self._move_graph(argument.as_graph.graph)
        elif argument.type == "as_string_to_argument":
            for item in argument.as_string_to_argument.values():
                self._move_argument(item)

    def _move_value(self, value: types.Value) -> None:
        if value.type == "as_device":
            value.as_device = self._moved(value.as_device)
        elif (items := sequence_items(value)) is not None:
            for item in items:
                self._move_value(item)
        elif value.type == "as_dict":
            for entry in value.as_dict:
                self._move_value(entry.key)
                self._move_value(entry.value)

    def _move_device_type(self, argument: types.Argument) -> None:
        found = self._moved(types.Device(type=argument.as_string))
        if found.type not in _NO_AUTOCAST:
            argument.as_string = found.type


@contextmanager
def _places(step: str) -> Iterator[None]:
    """Puts a step in front of the path of what is wrong with the file; errors of the caller pass."""
    try:
        yield
    except DeserializeError as error:
        raise located(error, step) from cause_of(error)


class _Locations(dict[Any, Any]):
    """A mapping that has every device: for tensors of subclasses, `torch.load` takes no function."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices

    def get(self, location: Any, default: Any = None) -> str:
        return str(self._devices(torch.device(location)))


# Operators that are given the type of a device as text, and the argument that it is.
_DEVICE_TYPE_ARGUMENTS = {"torch.ops.higher_order.wrap_with_autocast": 0, ENTER_AUTOCAST: 0}


def _finder(wanted: DeviceMap) -> Callable[[torch.device], Any]:
    if isinstance(wanted, (str, torch.device)):
        everywhere = _parsed(wanted)
        return lambda device: everywhere
    if isinstance(wanted, Mapping):
        table = {_parsed(old): _parsed(new) for old, new in wanted.items()}
        return lambda device: next((table[key] for key in _keys(device) if key in table), None)
    if callable(wanted):
        return wanted
    raise TypeError(
        "expected a device, a mapping of devices or a function from device to device, "
        f"found {type(wanted).__name__}"
    )


def _keys(device: torch.device) -> tuple[torch.device, torch.device]:
    """The entries of a mapping that apply to a device, the nearest first."""
    return device, torch.device(device.type, 0) if device.index is None else torch.device(device.type)


def _parsed(device: object) -> torch.device:
    if isinstance(device, torch.device):
        return device
    if not isinstance(device, str):
        raise TypeError(f"expected a device such as 'cuda:1', found {type(device).__name__}")
    try:
        return torch.device(device)
    except RuntimeError as error:
        raise ValueError(f"expected a device such as 'cuda:1', found {device[:80]!r}") from error


def _indexed(device: torch.device) -> torch.device:
    """The device as tensors on it name it: operators that compare devices tell "cuda" from "cuda:0"."""
    if device.type == "cpu":  # there is but one, whatever its index
        return torch.device("cpu")
    try:
        return FakeTensor(FakeTensorMode(), torch.empty(0, device="meta"), device).device
    except (AttributeError, RuntimeError) as error:  # a backend that no package has registered
        raise ValueError(f"expected a device that this PyTorch has, found '{device}'") from error
