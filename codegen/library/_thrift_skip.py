"""Skipping a value of Thrift's compact protocol whose type is known from the wire only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _thrift_wires as compact
from ._thrift_bytes import Bytes, fail


def skip(data: Bytes, wire: int, depth: int, max_depth: int, in_field: bool = False) -> None:
    """Skips a value, and checks it as far as bytes without a schema can be.

    Args:
        data: Gets read past the value.
        wire: The value's wire type.
        depth: Its level. Here containers and scalars count as levels, as in Thrift's own runtimes.
        max_depth: The deepest level there may be.
        in_field: Whether a field's header came before: of a bool there is then nothing left to skip.
    """
    if depth > max_depth:
        fail(f"expected at most {max_depth} levels, found more", data.position)
    if wire in (compact.LIST, compact.SET):
        inner, count = data.list_header()
        for _ in range(count):
            skip(data, inner, depth + 1, max_depth)
    elif wire == compact.MAP:
        key, value, count = data.map_header()
        for _ in range(count):
            skip(data, key, depth + 1, max_depth)
            skip(data, value, depth + 1, max_depth)
    elif wire == compact.STRUCT:
        inner, last = data.field_header(0)
        while inner != compact.STOP:
            skip(data, inner, depth + 1, max_depth, in_field=True)
            inner, last = data.field_header(last)
    elif wire in _SCALARS:
        _SCALARS[wire](data)
    elif not in_field:
        data.boolean()


_SCALARS: dict[int, Callable[[Bytes], Any]] = {
    compact.BYTE: lambda data: data.take(1, "an i8"),
    compact.I16: lambda data: data.signed(16, "an i16"),
    compact.I32: Bytes.enum,
    compact.I64: Bytes.integer,
    compact.DOUBLE: Bytes.double,
    compact.BINARY: Bytes.binary,
    compact.UUID: lambda data: data.take(16, "a uuid"),
}
