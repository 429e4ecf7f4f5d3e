"""Fields of our own, which a schema adds to PyTorch's types: whether a tree has any."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ._spec import BY_NAME, ListOf, MapOf, Type
from .base import Struct, Union


def first_own_field(tree: Struct | Union) -> str | None:
    """The path of the first field of our own that is set; None if there is none.

    Only parts that can hold such a field are looked at.

    Args:
        tree: A struct or union. Its types are taken to be right.

    Example, with the types of pt2wire:
        >>> from pt2wire.generated import RangeConstraint
        >>> first_own_field(RangeConstraint(0, 1, min_float=0.5))
        'min_float'
        >>> first_own_field(RangeConstraint(0, 1)) is None
        True
    """
    path = _in_composite(tree)
    return None if path is None else path.removeprefix(".")


def _in_composite(part: Any) -> str | None:
    cls = part.__class__
    for name in _OWN[cls]:
        if getattr(part, name) is not None:
            return f".{name}"
    leading = _LEADING[cls]
    if isinstance(part, Union):
        if part.type not in leading:
            return None
        leading = {part.type: leading[part.type]}
    for name, type_ in leading.items():
        value = getattr(part, name)
        if value and (path := _in_value(value, type_)) is not None:
            return f".{name}{path}"
    return None


def _in_value(value: Any, type_: Type) -> str | None:
    items: Iterable[tuple[object, Any]]
    match type_:
        case ListOf(item):
            items, inner = enumerate(value), item
        case MapOf(item):
            items, inner = value.items(), item
        case _:
            return _in_composite(value)
    for key, part in items:
        if (path := _in_value(part, inner)) is not None:
            return f"[{key!r}]{path}"
    return None


def _innermost(type_: Type) -> type[Any]:
    match type_:
        case ListOf(inner) | MapOf(inner):
            return _innermost(inner)
        case _:
            return type_


_OWN: dict[type[Any], tuple[str, ...]] = {
    cls: tuple(name for name, field in fields.items() if field.own) for cls, fields in BY_NAME.items()
}


def _holders() -> set[type[Any]]:
    """The types that have fields of our own, or hold a type that does."""
    holders = {cls for cls, names in _OWN.items() if names}
    while more := {
        cls
        for cls, fields in BY_NAME.items()
        if cls not in holders and any(_innermost(field.type) in holders for field in fields.values())
    }:
        holders |= more
    return holders


_HOLDERS = _holders()
#: The other fields that lead to one.
_LEADING: dict[type[Any], dict[str, Type]] = {
    cls: {
        name: field.type
        for name, field in fields.items()
        if not field.own and _innermost(field.type) in _HOLDERS
    }
    for cls, fields in BY_NAME.items()
}
