"""Thrift compact bytes <-> trees, strictly.

Thrift's C extension does the work in both directions. It hides faults in bytes, such as invalid UTF-8 or a
map key given twice, so what was decoded is encoded again and compared; where that differs, a slow reader in
Python decodes the same bytes, and its word counts.
"""

from __future__ import annotations

import os
import threading
from io import BytesIO
from typing import NoReturn, TypeVar

from ._check import check
from ._faults import explain
from ._spec import MAX_THRIFT_DEPTH
from ._thrift_build import finish, forget
from ._thrift_reader import read
from ._thrift_spec import DECODE, ENCODE
from .base import Struct, Union
from .collector import collector_off

try:
    from thrift.protocol.fastbinary import decode_compact, encode_compact
except ImportError as error:
    raise ImportError(
        "thrift is not installed, or without its C extension; install it from a wheel"
    ) from error

_T = TypeVar("_T", bound=Struct | Union)


def encode(tree: Struct | Union) -> bytes:
    """The Thrift compact encoding of a struct or union, without a message around it.

    Raises:
        CodecError: A value of a wrong type, or a missing one.
        DepthError: More than 64 structs and unions on a path, which Thrift's runtimes refuse to read.
        WidthError: An integer of more than 64 bits, where JSON may hold one.

    Example, with the types of pt2wire:
        >>> from pt2wire.generated import Device
        >>> encode(Device("cuda", 1)).hex()
        'a80463756461a60200'
    """
    cls = tree.__class__
    try:
        check(tree, MAX_THRIFT_DEPTH)
    except Exception:
        explain(tree, MAX_THRIFT_DEPTH, wide=False)
    try:
        encoded: bytes = encode_compact(tree, ENCODE[cls])
    except (UnicodeEncodeError, OverflowError):
        explain(tree, MAX_THRIFT_DEPTH, wide=False)
        raise
    return encoded


def decode(cls: type[_T], data: bytes | memoryview, *, unknown: list[str] | None = None) -> _T:
    """Reads a struct or union from its Thrift compact encoding.

    Args:
        cls: What the bytes hold.
        data: All the bytes; any left over are a fault.
        unknown: Gets the paths of struct fields that this version does not know, which are dropped. Without
            a list such fields are faults.

    Memory in use grows by at most some 300 bytes per byte of input, whatever the input is.

    Raises:
        CodecError: Whatever is wrong with the bytes.
        TypeError: `cls` or `data` is something else.

    Example, with the types of pt2wire:
        >>> from pt2wire.generated import Device
        >>> decode(Device, bytes.fromhex("a80463756461a60200"))
        Device(type='cuda', index=1)
    """
    if cls not in DECODE:
        raise TypeError(f"expected a struct or union of {__package__}.types, found {cls!r}")
    raw = data if isinstance(data, bytes) else bytes(memoryview(data))
    tree = _decode_fast(cls, raw)
    return tree if tree is not None else read(cls, raw, unknown)


def _decode_fast(cls: type[_T], raw: bytes) -> _T | None:
    with _lock, collector_off():
        try:
            tree: _T = decode_compact(None, _Protocol(raw), DECODE[cls])
            finish()
            return tree if encode_compact(tree, ENCODE[cls]) == raw else None
        except Exception:
            return None
        finally:
            forget()


#: Held while decoding: the builders collect what they make in lists that all threads share.
_lock = threading.Lock()


def _unlock_after_fork() -> None:
    global _lock
    _lock = threading.Lock()  # a thread that held it does not exist in the child
    forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_after_fork)


class _Protocol:
    """What the extension asks of a protocol and its transport, in one."""

    def __init__(self, raw: bytes) -> None:
        self.trans = self
        self.cstringio_buf = BytesIO(raw)
        # No element is shorter than a byte, so no container has more elements than that.
        self.container_length_limit = len(raw)
        self.string_length_limit = len(raw)

    def cstringio_refill(self, *_: object) -> NoReturn:
        raise EOFError
