"""CRC-32 of large records on all processors: zlib's takes twice as long as writing them does."""

from __future__ import annotations

import functools
import os
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from ..limits import MIB

_PART = MIB
_WORTH_THREADS = 4 * _PART


def crc32(data: bytes | bytearray | memoryview) -> int:
    """The CRC-32 of some bytes, as `zlib.crc32` gives it.

    Example:
        >>> crc32(b"123456789") == zlib.crc32(b"123456789") == 0xCBF43926
        True
    """
    return start_crc32(data)()


def start_crc32(data: bytes | bytearray | memoryview) -> Callable[[], int]:
    """Compute the CRC-32 of some bytes while something else is done.

    Returns:
        What waits for it.

    Example:
        >>> wait = start_crc32(b"123456789")
        >>> hex(wait())
        '0xcbf43926'
    """
    view = memoryview(data)
    if len(view) < _WORTH_THREADS or _processors() == 1:
        return lambda: zlib.crc32(view)
    # All parts but the first have one length, so that one table serves.
    first = len(view) % _PART or _PART
    parts = [view[:first], *(view[start : start + _PART] for start in range(first, len(view), _PART))]
    running = _pool().map(zlib.crc32, parts)
    return lambda: functools.reduce(lambda crc, part: _behind(crc) ^ part, running, 0)


def _behind(crc: int) -> int:
    """What the CRC of the bytes before contributes to that of the bytes with one more part behind them."""
    tables = _tables()
    return (
        tables[0][crc & 255] ^ tables[1][crc >> 8 & 255] ^ tables[2][crc >> 16 & 255] ^ tables[3][crc >> 24]
    )


@functools.cache
def _tables() -> list[list[int]]:
    """The contribution is linear: per byte of the CRC, that of each of its values."""
    zeros = bytes(1024)
    columns = [zlib.crc32(zeros, 1 << bit) ^ zlib.crc32(zeros) for bit in range(32)]
    length = len(zeros)
    while length < _PART:
        columns = [_product(columns, column) for column in columns]  # twice as many bytes
        length *= 2
    return [[_product(columns, value << 8 * byte) for value in range(256)] for byte in range(4)]


def _product(columns: list[int], vector: int) -> int:
    result = 0
    for column in columns:
        if vector & 1:
            result ^= column
        vector >>= 1
    return result


def _processors() -> int:
    return min(16, os.cpu_count() or 1)


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_processors(), thread_name_prefix="pt2wire-crc32")


os.register_at_fork(after_in_child=_pool.cache_clear)  # the child has none of the threads
