"""Tensors whose conjugation or negation is pending: a bit says so, and their memory holds other numbers."""

from __future__ import annotations

from .generated.types import ScalarType, TensorMeta
from .layouts import COMPLEX, ITEM_SIZES, element_type
from .limits import MIB

#: The dtypes whose numbers have a bit for the sign, the last one.
_SIGNED = COMPLEX | {ScalarType.HALF, ScalarType.BFLOAT16, ScalarType.FLOAT, ScalarType.DOUBLE}

#: The dtypes whose numbers are two's complements.
_INTEGERS = frozenset(
    getattr(ScalarType, name)
    for name in ("BYTE", "CHAR", "SHORT", "INT", "LONG", "UINT16", "UINT32", "UINT64")
)


def bits_problem(meta: TensorMeta) -> str | None:
    """What is wrong with the operations that are pending for a tensor, or None."""
    dtype = element_type(meta)
    if meta.conj and dtype not in COMPLEX:
        return f"expected a complex dtype of a conjugated tensor, found {dtype.name}"
    if meta.neg and dtype not in _SIGNED | _INTEGERS:
        return f"expected a dtype that can be negated of a negated tensor, found {dtype.name}"
    return None


def flipped(data: memoryview, meta: TensorMeta) -> memoryview:
    """The bytes in memory from those in a file, or the other way round: one function is both.

    Args:
        data: A whole storage.
        meta: A tensor in it, by whose dtype and pending operations all of the storage goes; there is no
            `bits_problem` with it.

    Returns:
        `data` itself where nothing is pending.
    """
    if not (meta.conj or meta.neg):
        return data
    dtype = element_type(meta)
    size = ITEM_SIZES[dtype]
    if dtype in COMPLEX:  # the conjugate, negated, is the real part alone negated
        real, imaginary = bool(meta.neg), bool(meta.conj) != bool(meta.neg)
        change, lane = _signs_turned, _sign(size // 2, real) + _sign(size // 2, imaginary)
    else:
        change, lane = _signs_turned if dtype in _SIGNED else _complements, _sign(size, True)
    end = len(data) // size * size
    chunks = (data[start : min(start + MIB, end)] for start in range(0, end, MIB))
    return memoryview(bytearray().join([change(chunk, lane) for chunk in chunks] + [data[end:]]))


def _sign(size: int, turned: bool) -> bytes:
    """The highest bit of a little-endian number, or no bit."""
    return bytes(size - 1) + bytes([0x80 * turned])


def _signs_turned(chunk: memoryview, lane: bytes) -> bytes:
    return _packed(_number(chunk) ^ _repeated(lane, chunk), chunk)


def _complements(chunk: memoryview, lane: bytes) -> bytes:
    """All numbers at once: the highest bits apart, so that no number carries into the next."""
    signs, ones = _repeated(lane, chunk), _repeated(b"\1" + bytes(len(lane) - 1), chunk)
    inverted = _number(chunk) ^ _number(b"\xff" * len(chunk))
    return _packed((inverted & ~signs) + ones ^ inverted & signs, chunk)


def _number(data: bytes | memoryview) -> int:
    return int.from_bytes(data, "little")


def _packed(number: int, chunk: memoryview) -> bytes:
    return number.to_bytes(len(chunk), "little")


def _repeated(lane: bytes, chunk: memoryview) -> int:
    return _number(lane * (len(chunk) // len(lane)))
