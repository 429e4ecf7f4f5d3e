"""Where a tensor lies within its payload: checked in plain integers, before any tensor is made."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..errors import DeserializeError
from ..generated.types import (
    ExtraScalarType,
    Layout,
    PayloadConfig,
    PayloadMeta,
    ScalarType,
    SymInt,
    TensorMeta,
)
from ..layouts import ITEM_SIZES, element_type
from ..lazy_bits import bits_problem
from ..limits import DEFAULT_LIMITS, INT64_MAX, Limits, raising


class Extent(NamedTuple):
    """A strided view, in elements, and the bytes that it needs from the start of its payload."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    storage_offset: int
    nbytes: int


def tensor_extent(meta: TensorMeta, path: str, limits: Limits = DEFAULT_LIMITS) -> Extent:
    """The view that a payload's metadata describe.

    Args:
        meta: Metadata of a weight or constant; all its numbers must be constant.
        path: The tensor in messages.
        limits: Bounds.

    Raises:
        DeserializeError: The numbers are symbolic, negative, too large or contradict each other, the layout
            is not strided, or the dtype is unknown or lacks the operation that is pending.
    """
    if meta.layout != Layout.Strided:
        raise DeserializeError(f"expected a strided tensor, found layout {meta.layout.name}", path=path)
    item_size = ITEM_SIZES.get(element_type(meta))
    if item_size is None:
        raise DeserializeError(f"expected the dtype of a tensor, found {meta.dtype!r}", path=path)
    if problem := bits_problem(meta):
        raise DeserializeError(problem, path=path)
    if len(meta.sizes) != len(meta.strides):
        raise DeserializeError(
            f"expected as many strides as sizes, {len(meta.sizes)}, found {len(meta.strides)}", path=path
        )
    if len(meta.sizes) > limits.tensor_dimensions:
        raise DeserializeError(
            f"expected at most {limits.tensor_dimensions} dimensions, found {len(meta.sizes)}",
            path=path,
            hint=raising("tensor_dimensions"),
        )
    sizes = tuple(_constant(size, "sizes", path) for size in meta.sizes)
    strides = tuple(_constant(stride, "strides", path) for stride in meta.strides)
    offset = _constant(meta.storage_offset, "storage_offset", path)
    elements, last = 1, offset
    for size, stride in zip(sizes, strides, strict=True):
        elements *= size
        last += (size - 1) * stride
    nbytes = (last + 1) * item_size if elements else 0
    if max(elements * item_size, nbytes, (offset + 1) * item_size) > INT64_MAX:
        raise DeserializeError(
            f"expected a tensor within 64 bits, found sizes {sizes}, strides {strides} and offset {offset}",
            path=path,
        )
    return Extent(sizes, strides, offset, nbytes)


def from_the_start(meta: TensorMeta) -> TensorMeta:
    """The description of a tensor that begins with the first of its bytes, as one that a subgraph holds."""
    moved = copy.copy(meta)
    moved.storage_offset = SymInt.of_int(0)
    return moved


def check_payload(meta: PayloadMeta, available: int, path: str, limits: Limits = DEFAULT_LIMITS) -> Extent:
    """The view that a weight or constant takes of its payload, which holds `available` bytes.

    Raises:
        DeserializeError: As for `tensor_extent`; or the payload is too short.
    """
    if meta.tensor_meta is None:
        raise DeserializeError("expected metadata of a tensor, found none", path=path)
    extent = tensor_extent(meta.tensor_meta, path, limits)
    if meta.tensor_meta.device.type == "meta" or extent.nbytes <= available:
        return extent
    if available == 0:
        raise DeserializeError(
            f"expected {extent.nbytes} bytes, found an empty payload",
            path=path,
            hint="The program was saved with fake weights: save it with real ones",
        )
    raise DeserializeError(
        f"expected {extent.nbytes} bytes for sizes {extent.sizes}, strides {extent.strides} and offset "
        f"{extent.storage_offset}, found {available} in the payload {meta.path_name!r}",
        path=path,
    )


def check_one_dtype(config: PayloadConfig, path: str) -> None:
    """PyTorch reads all views of a payload with the dtype of one of them, so there must be only one.

    Raises:
        DeserializeError: Two tensors view one payload with different dtypes.
    """
    first: dict[str, tuple[str, ScalarType | ExtraScalarType]] = {}
    for fqn, payload in each_meta(config.config):
        if payload.tensor_meta is None or payload.use_pickle:
            continue
        dtype = element_type(payload.tensor_meta)
        other, expected = first.setdefault(payload.path_name, (fqn, dtype))
        if dtype != expected:
            raise DeserializeError(
                f"payload {payload.path_name!r} is {expected.name} for {other!r}, "
                f"but {dtype.name} for {fqn!r}",
                path=path,
            )


def each_meta(config: Mapping[str, PayloadMeta]) -> Iterator[tuple[str, PayloadMeta]]:
    """All entries by name, each before those of the tensors that it is made of, called `whole.part`."""
    for fqn, payload in config.items():
        yield fqn, payload
        for name, part in each_meta(payload.inner or {}):
            yield f"{fqn}.{name}", part


def _constant(value: SymInt, what: str, path: str) -> int:
    if value.type != "as_int":
        raise DeserializeError(f"expected integers as {what}, found a symbolic expression", path=path)
    number: int = value.as_int
    if not 0 <= number <= INT64_MAX:
        raise DeserializeError(f"expected {what} of at least 0, found {number}", path=path)
    return number
