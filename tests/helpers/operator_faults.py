"""Bad arguments in place of good ones: what a hostile program may hand to an operator.

Each fault is named, so that the one that ended a process can be told from its number.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

Fault = tuple[str, Callable[[Any], Any]]

_INT64 = torch.iinfo(torch.int64)
_INTS = (
    *(-1, 0, 1, 2, 3, 5, 7, 9, 100, -2, -3, -100, 5_000, -5_000, 100_000, -100_000),
    *(2**31 - 1, 2**31, -(2**31), 2**40, -(2**40), 2**62, _INT64.max, _INT64.min),
)
_FLOATS = (math.nan, math.inf, -math.inf, -1.0, 0.0, 1.5, 1e30, -1e30, 5e3)
_DTYPES = (
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64),
)


def _last(value: float, at: int = -1) -> Callable[[Tensor], Tensor]:
    def change(tensor: Tensor) -> Tensor:
        changed = tensor.contiguous().clone()
        changed.view(-1)[at] = min(value, torch.iinfo(tensor.dtype).max) if _is_int(tensor) else value
        return changed

    return change


def _is_int(tensor: Tensor) -> bool:
    return not (tensor.dtype.is_floating_point or tensor.dtype.is_complex or tensor.dtype == torch.bool)


def _filled(value: float) -> Callable[[Tensor], Tensor]:
    def change(tensor: Tensor) -> Tensor:
        if _is_int(tensor):
            limits = torch.iinfo(tensor.dtype)
            return torch.full_like(tensor, max(limits.min, min(value, limits.max)))
        return torch.full_like(tensor, value)

    return change


def _resized(dim: int, size: Callable[[int], int]) -> Callable[[Tensor], Tensor]:
    def change(tensor: Tensor) -> Tensor:
        old = tensor.shape[dim]
        return torch.index_select(tensor, dim, torch.arange(size(old)) % old)

    return change


#: Tensors of another kind than strided ones of the CPU: a program gets each by an operator. It gets none that
#: are quantized or without memory: those operators are refused.
_KINDS: tuple[Fault, ...] = (
    ("sparse", lambda tensor: tensor.to_sparse()),
    ("sparse by rows", lambda tensor: tensor.to_sparse_csr()),
    ("for oneDNN", lambda tensor: tensor.to_mkldnn()),
    ("on meta", lambda tensor: tensor.to("meta")),
    ("nested", lambda tensor: torch._nested_tensor_from_tensor_list([tensor, tensor])),
    ("conjugated", lambda tensor: torch.complex(tensor.float(), tensor.float()).conj()),
    ("negated", lambda tensor: torch._neg_view(tensor)),
)

_SHAPES: tuple[Fault, ...] = (
    ("empty", lambda tensor: tensor.new_empty(0)),
    ("empty of its rank", lambda tensor: tensor.new_empty((0,) * tensor.dim())),
    ("empty columns", lambda tensor: tensor.new_empty((*tensor.shape[:-1], 0))),
    ("of rank 0", lambda tensor: tensor.reshape(-1)[0].clone()),
    ("of one", lambda tensor: tensor.reshape(-1)[:1].clone()),
    ("flat", lambda tensor: tensor.reshape(-1).clone()),
    ("of a higher rank", lambda tensor: tensor.unsqueeze(0).clone()),
    ("of a higher rank at the end", lambda tensor: tensor.unsqueeze(-1).clone()),
    ("repeated without memory", lambda tensor: tensor.reshape(-1)[:1].expand(tensor.shape)),
    ("of many rows", lambda tensor: tensor.repeat(50, *[1] * (tensor.dim() - 1))),
    ("of many columns", lambda tensor: tensor.repeat(*[1] * (tensor.dim() - 1), 50)),
    ("transposed", lambda tensor: tensor.transpose(0, -1)),
    ("with strides", lambda tensor: torch.stack([tensor, tensor], -1)[..., 0]),
    *(
        (f"with {text} in dimension {dim}", _resized(dim, size))
        for dim in range(5)
        for text, size in (
            ("none", lambda old: 0),
            ("one", lambda old: 1),
            ("fewer", lambda old: old - 1),
            ("more", lambda old: old + 3),
        )
    ),
)

_VALUES: tuple[Fault, ...] = (
    *((f"all {value}", _filled(value)) for value in _INTS),
    *((f"{value} at the end", _last(value)) for value in (-5_000, 5_000, _INT64.max)),
    *((f"{value} at the beginning", _last(value, 0)) for value in (-5_000, 5_000, _INT64.min)),
    ("falling", lambda tensor: torch.flip(tensor.reshape(-1), [0]).view(tensor.shape)),
    ("counted down", lambda tensor: torch.arange(tensor.numel(), 0, -1).view(tensor.shape).to(tensor.dtype)),
    ("counted up", lambda tensor: torch.arange(tensor.numel()).view(tensor.shape).to(tensor.dtype)),
)

_TENSORS: tuple[Fault, ...] = (
    *_SHAPES,
    *((f"as {dtype}", lambda tensor, dtype=dtype: tensor.to(dtype)) for dtype in _DTYPES),
    *_KINDS,
)


def _constant(values: Any) -> tuple[Fault, ...]:
    return tuple((f"{value!r}", lambda _, value=value: value) for value in values)


def _at(position: int, change: Callable[[Any], Any]) -> Callable[[list[Any]], list[Any]]:
    def changed(items: list[Any]) -> list[Any]:
        items = list(items)
        items[position] = change(items[position])
        return items

    return changed


def _lists(items: list[Any]) -> Iterator[Fault]:
    yield "no items", lambda items: []
    yield "without the last", lambda items: list(items)[:-1]
    yield "without the first", lambda items: list(items)[1:]
    yield "the last twice", lambda items: [*items, items[-1]]
    yield "many", lambda items: list(items) * 20
    for position, item in enumerate(items[:4]):
        for name, change in faults(item):
            yield f"item {position}: {name}", _at(position, change)
    if items and all(isinstance(item, int) for item in items):
        for value in _INTS:
            yield f"all {value}", lambda items, value=value: [value] * len(items)


def faults(value: Any) -> list[Fault]:
    """What may stand in place of a value, by its type."""
    if isinstance(value, Tensor):
        if value.layout is not torch.strided or value.is_quantized:
            return []
        if _is_int(value):
            return [*_VALUES, *_TENSORS]
        return [*((f"all {number}", _filled(number)) for number in _FLOATS), *_TENSORS]
    if isinstance(value, bool):
        return [("the other", lambda value: not value)]
    if isinstance(value, int):
        return list(_constant(_INTS))
    if isinstance(value, float):
        return list(_constant(_FLOATS))
    if isinstance(value, str):
        return list(_constant(("", "x", "sum", "mean", "max", "none", "a" * 5_000)))
    if isinstance(value, torch.dtype):
        return list(_constant(_DTYPES))
    if isinstance(value, list | tuple):
        return list(_lists(list(value)))
    return []


def in_place_of_none(kind: str, chance: random.Random) -> Any:
    """A value for an argument that may be left out."""
    return {
        "Optional[Tensor]": torch.randn(4),
        "Optional[int]": chance.choice(_INTS),
        "Optional[float]": chance.choice(_FLOATS),
        "Optional[number]": chance.choice(_INTS),
        "Optional[bool]": True,
        "Optional[List[int]]": [chance.choice(_INTS) for _ in range(chance.randrange(4))],
        "Optional[ScalarType]": chance.choice(_DTYPES),
    }.get(kind)
