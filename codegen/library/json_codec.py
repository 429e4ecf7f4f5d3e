"""PyTorch's JSON <-> trees, strictly: the same keys and values as PyTorch writes, in the same order."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from . import _json_reader
from ._check import DEEP, check
from ._faults import explain
from ._json_read import READ
from ._json_text import REPEATED, decoded, has_lone_surrogate, parse, parse_marking
from ._json_write import WRITE
from ._spec import MAX_JSON_DEPTH
from .base import CodecError, Struct, Union
from .collector import collector_off

_T = TypeVar("_T", bound=Struct | Union)


def to_plain(tree: Struct | Union) -> dict[str, Any]:
    """A tree as dicts, lists, strings, numbers and None, for `json.dump` or for walking.

    Own fields are left out while they are None. NaN and infinities are strings, as PyTorch writes them.

    Raises:
        CodecError: A value of a wrong type, or a missing one.
        DepthError: More than 128 structs and unions on a path.

    Example, with the types of pt2wire:
        >>> from pt2wire.generated import Device
        >>> to_plain(Device("cuda", 1))
        {'type': 'cuda', 'index': 1}
    """
    plain: dict[str, Any] = json.loads(encode(tree))
    return plain


def from_plain(cls: type[_T], plain: Any, *, unknown: list[str] | None = None) -> _T:
    """Reads a struct or union from what `to_plain` makes, or `json.load`.

    Args:
        cls: What to read.
        plain: Its plain form. Nothing of it is kept but strings.
        unknown: Gets the paths of struct fields that this version does not know, which are dropped. Without
            a list such fields are faults.

    Raises:
        CodecError: Whatever is wrong with the values.

    Example, with the types of pt2wire:
        >>> from pt2wire.generated import Device
        >>> from_plain(Device, {"type": "cuda", "index": "1"})
        Traceback (most recent call last):
            ...
        pt2wire.generated.base.CodecError: index: expected a 64-bit integer, found str '1'
    """
    with collector_off():
        tree = _read_fast(cls, plain)
        return tree if tree is not None else _json_reader.read(cls, plain, unknown)


def check_types(tree: Struct | Union) -> None:
    """Whether every value of a tree has the type of its field, and is there where it has to be.

    Raises:
        CodecError: As for `to_plain`.

    Example, with the types of pt2wire:
        >>> from pt2wire.generated import Device
        >>> check_types(Device("cuda", "1"))
        Traceback (most recent call last):
            ...
        pt2wire.generated.base.CodecError: index: expected a 64-bit integer, found str '1'
    """
    try:
        check(tree, MAX_JSON_DEPTH)
    except Exception:
        explain(tree, MAX_JSON_DEPTH, wide=True)


def encode(tree: Struct | Union) -> bytes:
    """A tree as JSON in ASCII, without spaces; `json.loads` of it equals that of PyTorch's own JSON.

    Raises:
        CodecError: As for `to_plain`.

    Example, with the types of pt2wire:
        >>> from pt2wire.generated import Device
        >>> encode(Device("cuda", 1))
        b'{"type":"cuda","index":1}'
    """
    check_types(tree)
    with collector_off():
        text = WRITE[tree.__class__](tree)
        if has_lone_surrogate(text):
            explain(tree, MAX_JSON_DEPTH, wide=True)
    return text.encode("ascii")


def decode(cls: type[_T], data: bytes | memoryview, *, unknown: list[str] | None = None) -> _T:
    """Reads a struct or union from JSON in UTF-8.

    Args:
        cls: What the text holds.
        data: The text. Keys given twice, text that is not UTF-8, NaN as a number and the like are faults.
        unknown: As for `from_plain`.

    Raises:
        CodecError: Whatever is wrong with the text.

    Example, with the types of pt2wire:
        >>> from pt2wire.generated import Device
        >>> decode(Device, b'{"type": "cpu"}')
        Device(type='cpu', index=None)
    """
    text = decoded(data)
    with collector_off():
        plain = parse(text)
        if plain is REPEATED:
            _json_reader.read(cls, parse_marking(text), unknown)
            raise CodecError("expected each key once, found one twice in a field that is not known")
        lone = has_lone_surrogate(text, plain)
        tree = None if lone else _read_fast(cls, plain)
        if tree is None:
            tree = _json_reader.read(cls, plain, unknown)
            if lone:
                raise CodecError(
                    "expected text that UTF-8 can hold, found a lone surrogate in a field that is not known"
                )
        return tree


def _read_fast(cls: type[_T], plain: Any) -> _T | None:
    if cls not in READ:
        raise TypeError(f"expected a struct or union of {__package__}.types, found {cls!r}")
    try:
        tree: _T = READ[cls](plain, MAX_JSON_DEPTH) if cls in DEEP else READ[cls](plain)
        return tree
    except Exception:
        return None
