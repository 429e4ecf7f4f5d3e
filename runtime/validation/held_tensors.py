"""Tensors that a subgraph holds: that their bytes are those of the tensors that the graph describes."""

from __future__ import annotations

from ..archive.extents import from_the_start, tensor_extent
from ..errors import DeserializeError
from ..generated import types
from .scopes import Scope
from .values import DIFFERENTIABLE

_RULE = "held-tensor"

#: Devices of which there is one: PyTorch drops the index of a tensor there.
_WITHOUT_INDEX = frozenset({"cpu", "meta"})


def check_held_tensors(scope: Scope, constants: list[types.GraphConstant]) -> None:
    """Checks the tensors that a graph holds, and defines the values that they are."""
    scope.at = ("constants",)
    scope.program.demand_beyond(scope.place())
    if scope.depth == 0:
        scope.add(_RULE, "expected the tensors of a program as its inputs, found some in its graph")
    for index, constant in enumerate(constants):
        scope.at = ("constants", index)
        scope.define(constant.name, "tensor")
        scope.getters[constant.name] = constant.target
        scope.check_name(constant.target, ".target")
        known = scope.held.setdefault(constant.target, constant)
        described = scope.graph.tensor_values
        same = _alike(described.get(known.name), described.get(constant.name))
        if not same or (known.data, known.requires_grad) != (constant.data, constant.requires_grad):
            scope.add(_RULE, f"expected one tensor named {constant.target[:80]!r}, found two that differ")
        meta = scope.graph.tensor_values.get(constant.name)
        if meta is not None:
            _check_bytes(scope, constant, meta)
    scope.at = ()


def _alike(first: types.TensorMeta | None, second: types.TensorMeta | None) -> bool:
    """Whether two descriptions are of one tensor, as far as its bytes say."""
    if first is second or first is None or second is None:
        return True
    fields = ("dtype", "extra_dtype", "sizes", "strides", "layout", "device")
    return all(getattr(first, field) == getattr(second, field) for field in fields)


def _check_bytes(scope: Scope, constant: types.GraphConstant, meta: types.TensorMeta) -> None:
    try:
        extent = tensor_extent(from_the_start(meta), "", scope.program.permissions.limits)
    except DeserializeError as error:
        scope.add(_RULE, error.message, hint=error.hint)
        return
    if meta.device.type in _WITHOUT_INDEX and meta.device.index is not None:
        message = f"expected a device {meta.device.type} without an index, found {meta.device.index}"
        scope.add(_RULE, message)
    expected = 0 if meta.device.type == "meta" else extent.nbytes
    if len(constant.data) != expected:
        scope.add(_RULE, f"expected {expected} bytes, found {len(constant.data)}", ".data")
    if meta.conj or meta.neg:
        scope.add(_RULE, "expected the numbers themselves, found a conjugation or negation of them")
    if constant.requires_grad and meta.dtype not in DIFFERENTIABLE:
        message = f"expected a dtype with gradients, or requires_grad false, found {meta.dtype.name}"
        scope.add(_RULE, message, ".requires_grad")
