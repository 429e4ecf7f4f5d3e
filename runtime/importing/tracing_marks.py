"""What `torch.compile` and `torch.export` note on tensors about their dimensions, in pickles of tensors.

`torch._dynamo.mark_dynamic` and its like set attributes, and an export that failed leaves some behind.
PyTorch believes them when it traces with such a tensor, so those of a file are judged before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

#: How the names begin of attributes that PyTorch's tracing believes.
PREFIX = "_dynamo"
#: The class of ranges among them, as a pickle names it.
RANGE = "torch._dynamo.decorators _DimRange"


def range_class() -> type:
    """The class of ranges. To import it takes a while."""
    from torch._dynamo.decorators import _DimRange

    return _DimRange


def _bound(value: object) -> bool:
    return value is None or type(value) is int


def _is_range(value: Any, dimensions: range) -> bool:
    # Nobody can have made one without having imported its class.
    return (
        f"{type(value).__module__} {type(value).__qualname__}" == RANGE
        and value.dim in dimensions
        and _bound(value.min)
        and _bound(value.max)
    )


def _is_dimension(value: object, dimensions: range) -> bool:
    return type(value) is int and value in dimensions


def _is_hint(value: object) -> bool:
    return type(value) is int


def _is_text(value: object) -> bool:
    return type(value) is str


def _are_bounds(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(_bound, value))


#: Names of sets, and of what may be in them.
_SETS: dict[str, Callable[[Any, range], bool]] = {
    **dict.fromkeys(
        (
            "_dynamo_dynamic_indices",
            "_dynamo_weak_dynamic_indices",
            "_dynamo_static_indices",
            "_dynamo_unbacked_indices",
            "_dynamo_strict_unbacked_indices",
            "_dynamo_propagated_dynamic_indices",
        ),
        _is_dimension,
    ),
    "_dynamo_dynamic_range": _is_range,
}
#: Names of dicts that have something of a dimension, and what.
_TABLES: dict[str, Callable[[Any], bool]] = {
    "_dynamo_hint_overrides": _is_hint,
    "_dynamo_unbacked_bounds": _are_bounds,
    "_dynamo_shape_ids": _is_text,
}
NAMES = frozenset({*_SETS, *_TABLES})


def marks_problem(tensor: torch.Tensor) -> str | None:
    """What is wrong with the notes on a tensor, or None.

    Example:
        >>> tensor = torch.ones(2)
        >>> tensor._dynamo_static_indices = {0}
        >>> marks_problem(tensor)
        >>> tensor._dynamo_static_indices = {1}
        >>> marks_problem(tensor)
        'expected notes on dimensions as PyTorch makes them, found others in _dynamo_static_indices'
    """
    dimensions = range(-tensor.dim(), tensor.dim())
    for name, value in vars(tensor).items():
        if name.startswith(PREFIX) and not _is_sound(name, value, dimensions):
            return f"expected notes on dimensions as PyTorch makes them, found others in {name[:80]}"
    return None


def _is_sound(name: str, value: Any, dimensions: range) -> bool:
    if name in _SETS:
        return type(value) is set and all(_SETS[name](item, dimensions) for item in value)
    return (
        name in _TABLES
        and type(value) is dict
        and all(_is_dimension(key, dimensions) and _TABLES[name](item) for key, item in value.items())
    )
