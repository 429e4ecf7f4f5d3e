"""Scalars in JSON: what PyTorch writes, and strict readers, whose errors get a path from their caller."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, ItemsView
from enum import IntEnum
from functools import cache
from json.encoder import encode_basestring_ascii
from typing import Any, TypeVar

from ._spec import MAX_INT, MAX_WIDE, MIN_INT, MIN_WIDE, NEWER, found
from .base import CodecError

_E = TypeVar("_E", bound=IntEnum)

#: JSON has no such numbers; PyTorch writes these strings.
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


write_str: Callable[[str], str] = encode_basestring_ascii
write_int: Callable[[int], str] = int.__repr__  # of subclasses too


def write_bool(value: bool) -> str:
    """The JSON literal."""
    return "true" if value else "false"


def write_double(value: float) -> str:
    """The number, or the string that stands for it."""
    if math.isfinite(value):
        return float.__repr__(value)
    return '"NaN"' if value != value else '"Infinity"' if value > 0 else '"-Infinity"'


def write_binary(value: bytes) -> str:
    """Base64, as PyTorch does."""
    return f'"{base64.b64encode(value).decode()}"'


def write_list(values: list[Any], write: Callable[[Any], str]) -> str:
    """An array, each item by `write`."""
    return f"[{','.join(map(write, values))}]"


def write_map(values: dict[str, Any], write: Callable[[Any], str]) -> str:
    """An object, each value by `write`."""
    return f"{{{','.join([f'{write_str(key)}:{write(value)}' for key, value in values.items()])}}}"


def read_bool(value: Any) -> bool:
    """True or false; 0 and 1 are not."""
    if value is True or value is False:
        return bool(value)
    raise CodecError(f"expected true or false, found {found(value)}")


def read_int(value: Any) -> int:
    """An integer of 64 bits; 1.0 and true are not."""
    if value.__class__ is int and MIN_INT <= value <= MAX_INT:
        number: int = value
        return number
    raise CodecError(f"expected a 64-bit integer, found {found(value)}")


def read_wide(value: Any) -> int:
    """An integer of any length that Python reads; 1.0 and true are not."""
    if value.__class__ is int and MIN_WIDE <= value <= MAX_WIDE:
        number: int = value
        return number
    raise CodecError(f"expected an integer, found {found(value)}")


def read_double(value: Any) -> float:
    """A finite number, or one of PyTorch's strings for the others.

    JSON has one type of numbers, and writers other than Python's drop a trailing `.0`, so an integer will do
    if a double holds it exactly.
    """
    if value.__class__ is float and math.isfinite(value):
        number: float = value
        return number
    if value.__class__ is int and -(2**53) <= value <= 2**53:
        return float(value)
    if value.__class__ is str and value in _SPECIAL:
        return _SPECIAL[value]
    raise CodecError(f'expected a double, "NaN", "Infinity" or "-Infinity", found {found(value)}')


def read_str(value: Any) -> str:
    """A string."""
    if value.__class__ is str:
        text: str = value
        return text
    raise CodecError(f"expected a string, found {found(value)}")


def read_binary(value: Any) -> bytes:
    """Bytes in Base64; each sequence of bytes has one spelling."""
    try:
        data = base64.b64decode(read_str(value), validate=True)
    except ValueError:  # a CodecError too
        data = None
    if data is None or base64.b64encode(data) != value.encode():
        raise CodecError(f"expected bytes in Base64, found {found(value)}")
    return data


def read_enum(cls: type[_E], value: Any) -> _E:
    """A value of an enum, by number."""
    if value.__class__ is not int:
        raise CodecError(f"expected a number of {cls.__name__}, found {found(value)}")
    member: _E | None = _members(cls).get(value)
    if member is None:
        raise CodecError(f"{cls.__name__} has no value {value} {NEWER}")
    return member


@cache
def _members(cls: type[_E]) -> dict[int, _E]:
    return {member.value: member for member in cls}


def read_list(value: Any) -> list[Any]:
    """An array."""
    if value.__class__ is list:
        items: list[Any] = value
        return items
    raise CodecError(f"expected an array, found {found(value)}")


def read_map(value: Any) -> ItemsView[str, Any]:
    """The entries of an object."""
    if value.__class__ is dict and {*map(type, value)} <= {str}:
        entries: ItemsView[str, Any] = value.items()
        return entries
    raise CodecError(f"expected an object, found {found(value)}")
