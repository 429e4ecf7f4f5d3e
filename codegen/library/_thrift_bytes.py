"""The units of Thrift's compact protocol, read with every check: varints, strings, headers."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from . import _thrift_wires as compact
from ._spec import Wide


class Fault(Exception):
    """What is wrong with the bytes, and at which offset; the reader adds the path."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message, offset)
        self.message = message
        self.offset = offset

    def __str__(self) -> str:
        return self.message


class Bytes:
    """Bytes, and how far they have been read."""

    #: Python types of scalars -> how to read one where no field header holds it.
    SCALARS: ClassVar[dict[Any, Callable[[Bytes], Any]]]

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def take(self, count: int, what: str) -> bytes:
        end = self.position + count
        if end > len(self._data):
            left = len(self._data) - self.position
            expected = f"{count} bytes of {what}" if count > 1 else what
            fail(f"expected {expected}, found {f'only {left}' if left else 'the end'}", self.position)
        taken = self._data[self.position : end]
        self.position = end
        return taken

    def varint(self, bits: int, what: str) -> int:
        """An unsigned number of at most `bits` bits."""
        start, value, shift = self.position, 0, 0
        while True:
            byte = self.take(1, what)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift >= bits:
                fail(f"expected {what} of at most {bits} bits, found a longer varint", start)
        if value >> bits:
            fail(f"expected {what} of at most {bits} bits, found a larger number", start)
        if byte == 0 and shift:  # one number has one spelling, here as in the C++ header
            fail(f"expected {what} as the shortest varint, found a longer one", start)
        return value

    def signed(self, bits: int, what: str) -> int:
        zigzag = self.varint(bits, what)
        return (zigzag >> 1) ^ -(zigzag & 1)

    def field_header(self, last: int) -> tuple[int, int]:
        """Wire type and id of the next field, or STOP and `last`."""
        start = self.position
        byte = self.take(1, "a field header")[0]
        wire, delta = byte & 0x0F, byte >> 4
        if wire == compact.STOP:
            if delta:
                fail(f"expected a field header or a stop byte, found {byte:#04x}", start)
            return compact.STOP, last
        number = last + delta if delta else self.signed(16, "a field id")
        self._expect_known_wire(wire, start)
        if not 0 < number < 2**15:
            fail(f"expected a field id from 1 to 32767, found {number}", start)
        return wire, number

    def list_header(self) -> tuple[int, int]:
        """Wire type and number of the elements."""
        start = self.position
        byte = self.take(1, "a list header")[0]
        wire, count = byte & 0x0F, byte >> 4
        if count == 15:
            count = self.varint(32, "a list's length")
        self._expect_known_wire(wire, start)
        self._expect_room(count, _MIN_SIZES.get(wire, 1), "elements", start)
        return wire, count

    def map_header(self) -> tuple[int, int, int]:
        """Wire types of keys and values, and the number of entries; an empty map has no wire types."""
        start = self.position
        count = self.varint(32, "a map's length")
        if not count:
            return compact.STOP, compact.STOP, 0
        byte = self.take(1, "a map header")[0]
        key, value = byte >> 4, byte & 0x0F
        self._expect_known_wire(key, start)
        self._expect_known_wire(value, start)
        self._expect_room(count, _MIN_SIZES.get(key, 1) + _MIN_SIZES.get(value, 1), "entries", start)
        return key, value, count

    def binary(self) -> bytes:
        return self.take(self.varint(32, "a string's length"), "a string")

    def string(self) -> str:
        start = self.position
        raw = self.binary()
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            fail(f"expected text in UTF-8, found {error.reason} at byte {error.start} of it", start)

    def integer(self) -> int:
        return self.signed(64, "an integer")

    def enum(self) -> int:
        return self.signed(32, "an enum's number")

    def double(self) -> float:
        value: float = struct.unpack("<d", self.take(8, "a double"))[0]
        return value

    def boolean(self) -> bool:
        byte = self.take(1, "a bool")[0]
        if byte not in compact.BOOLS:
            fail(f"expected 1 for true or 2 for false, found {byte}", self.position - 1)
        return byte == compact.BOOLS[0]

    def _expect_known_wire(self, wire: int, start: int) -> None:
        if wire not in compact.WIRE_NAMES or wire == compact.STOP:
            fail(f"expected one of Thrift's wire types, found {wire}", start)

    def _expect_room(self, count: int, size: int, what: str, start: int) -> None:
        left = len(self._data) - self.position
        if count > left // size:
            fail(f"expected at most {left // size} {what} in the {left} bytes left, found {count}", start)


_MIN_SIZES = {compact.DOUBLE: 8, compact.UUID: 16}
Bytes.SCALARS = {
    bool: Bytes.boolean,
    int: Bytes.integer,
    Wide: Bytes.integer,
    float: Bytes.double,
    str: Bytes.string,
    bytes: Bytes.binary,
}


def fail(message: str, offset: int) -> NoReturn:
    """Raises a Fault."""
    raise Fault(message, offset)
