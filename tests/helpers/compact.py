"""A tiny writer of Thrift compact bytes, right or wrong: hostile inputs are spelled with it."""

from __future__ import annotations

STOP = b"\0"
TRUE, FALSE, I8, I16, I32, I64, DOUBLE, STRING, LIST, SET, MAP, STRUCT, UUID = range(1, 14)


def varint(value: int) -> bytes:
    """An unsigned varint."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(value: int) -> bytes:
    """A signed number, zigzag."""
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def string(value: str | bytes) -> bytes:
    """A string or binary."""
    raw = value.encode() if isinstance(value, str) else value
    return varint(len(raw)) + raw


def field(id_: int, wire: int, payload: bytes = b"") -> bytes:
    """A field with its header in the long form, which names the id itself."""
    return bytes([wire]) + number(id_) + payload


def list_(wire: int, *items: bytes, count: int | None = None) -> bytes:
    """A list, with a count that may be a lie."""
    count = len(items) if count is None else count
    head = bytes([count << 4 | wire]) if count < 15 else bytes([0xF0 | wire]) + varint(count)
    return head + b"".join(items)


def map_(key: int, wire: int, *pairs: bytes, count: int | None = None) -> bytes:
    """A map, with a count that may be a lie."""
    count = len(pairs) if count is None else count
    return varint(count) + (bytes([key << 4 | wire]) if count else b"") + b"".join(pairs)


def struct(*fields: bytes) -> bytes:
    """A struct or union."""
    return b"".join(fields) + STOP
