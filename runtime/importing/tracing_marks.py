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


def _is_integer(value: object) -> bool:
    return type(value) is int


def _is_bound(value: object) -> bool:
    return value is None or type(value) is int


def _is_range(value: Any) -> bool:
    # Nobody can have made one without having imported its class.
    is_one = f"{type(value).__module__} {type(value).__qualname__}" == RANGE
    return is_one and _is_integer(value.dim) and _is_bound(value.min) and _is_bound(value.max)


def _is_empty_list(value: object) -> bool:
    return type(value) is list and not value


def _are_bounds(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(_is_bound, value))


#: Names of sets, and of what may be in them.
_SETS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(
        (
            "_dynamo_dynamic_indices",
            "_dynamo_weak_dynamic_indices",
            "_dynamo_static_indices",
            "_dynamo_unbacked_indices",
            "_dynamo_strict_unbacked_indices",
            "_dynamo_propagated_dynamic_indices",
        ),
        _is_integer,
    ),
    "_dynamo_dynamic_range": _is_range,
}
#: Names of dicts that have something of a dimension, and what.
_TABLES: dict[str, Callable[[Any], bool]] = {
    "_dynamo_hint_overrides": _is_integer,
    "_dynamo_unbacked_bounds": _are_bounds,
    "_dynamo_shape_ids": lambda value: type(value) is str,
}
#: Those whose names begin otherwise. Of functions to specialize on, a file has none.
_OTHERS: dict[str, Callable[[Any], bool]] = {
    "_has_dynamo_dim_marking": lambda value: type(value) is bool,
    "_specialize_on": lambda value: type(value) is dict and all(map(_is_empty_list, value.values())),
}
NAMES = frozenset({*_SETS, *_TABLES, *_OTHERS})


def marks_problem(tensor: torch.Tensor) -> str | None:
    """What is wrong with the notes on a tensor, or None.

    Example:
        >>> tensor = torch.ones(2)
        >>> tensor._dynamo_static_indices = {0}
        >>> marks_problem(tensor)
        >>> tensor._dynamo_static_indices = {"0"}
        >>> marks_problem(tensor)
        'expected notes on dimensions as PyTorch makes them, found others in _dynamo_static_indices'
    """
    for name, value in vars(tensor).items():
        if (name.startswith(PREFIX) or name in _OTHERS) and not _is_sound(name, value):
            return f"expected notes on dimensions as PyTorch makes them, found others in {name[:80]}"
    return None


def _is_sound(name: str, value: Any) -> bool:
    if name in _OTHERS:
        return _OTHERS[name](value)
    if name in _SETS:
        return type(value) is set and all(map(_SETS[name], value))
    return (
        name in _TABLES
        and type(value) is dict
        and all(map(_is_integer, value))
        and all(map(_TABLES[name], value.values()))
    )
