"""The version of a program that cannot be decoded, so that the error can say: too new, or too old."""

from __future__ import annotations

import json
from collections.abc import Iterator

from .generated.types import ExportedProgram, SchemaVersion

_MAX_DEPTH = 64

# Thrift's compact wire types.
_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)
_NUMBERS = frozenset((_I16, _I32, _I64))


def peek_json(data: bytes) -> SchemaVersion | None:
    """The version in a program's JSON, if that much can be made out.

    Example:
        >>> peek_json(b'{"schema_version": {"major": 9, "minor": 1}, "graph": "new"}')
        SchemaVersion(major=9, minor=1)
    """
    try:
        version = json.loads(data)["schema_version"]
        major, minor = version["major"], version["minor"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return SchemaVersion(major, minor) if type(major) is int and type(minor) is int else None


def peek_thrift(data: bytes) -> SchemaVersion | None:
    """The version in a program's Thrift compact encoding, if that much can be made out.

    Example:
        >>> peek_thrift(bytes.fromhex("0c78a612a60200") + b"the rest")
        SchemaVersion(major=9, minor=1)
    """
    cursor = _Cursor(data)
    try:
        cursor.enter(ExportedProgram.FIELD_IDS["schema_version"], _STRUCT)
        numbers = {number: cursor.signed() for number, wire in cursor.fields() if cursor.expect(wire, _I64)}
    except _Damaged:
        return None
    major, minor = (numbers.get(SchemaVersion.FIELD_IDS[name]) for name in ("major", "minor"))
    return None if major is None or minor is None else SchemaVersion(major, minor)


class _Damaged(Exception):
    pass


class _Cursor:
    """Bytes that are read once, from front to back: every step takes at least one of them."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def enter(self, wanted: int, expected: int) -> None:
        """Stop in front of the value of one field of the struct that begins here."""
        for number, wire in self.fields():
            if number == wanted:
                self.expect(wire, expected)
                return
            self.skip(wire, _MAX_DEPTH)
        raise _Damaged

    def fields(self) -> Iterator[tuple[int, int]]:
        """Id and wire type of each field; the caller reads or skips its value."""
        number = 0
        while True:
            header = self._byte()
            wire, step = header & 15, header >> 4
            if wire == _STOP:
                return
            number = number + step if step else self.signed()
            yield number, wire

    def expect(self, wire: int, expected: int) -> bool:
        if wire != expected:
            raise _Damaged
        return True

    def signed(self) -> int:
        zigzag = self._varint()
        return (zigzag >> 1) ^ -(zigzag & 1)

    def skip(self, wire: int, depth: int, *, in_container: bool = False) -> None:
        if depth == 0:
            raise _Damaged
        if wire in (_TRUE, _FALSE):
            self._take(1 if in_container else 0)
        elif wire == _BYTE:
            self._take(1)
        elif wire in _NUMBERS:
            self._varint()
        elif wire == _DOUBLE:
            self._take(8)
        elif wire == _BINARY:
            self._take(self._varint())
        elif wire in (_LIST, _SET):
            header = self._byte()
            count = header >> 4 if header >> 4 < 15 else self._varint()
            for _ in range(count):
                self.skip(header & 15, depth - 1, in_container=True)
        elif wire == _MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            for _ in range(count):
                self.skip(kinds >> 4, depth - 1, in_container=True)
                self.skip(kinds & 15, depth - 1, in_container=True)
        elif wire == _STRUCT:
            for _, field in self.fields():
                self.skip(field, depth - 1)
        else:
            raise _Damaged

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise _Damaged

    def _byte(self) -> int:
        self._take(1)
        return self._data[self._at - 1]

    def _take(self, count: int) -> None:
        self._at += count
        if self._at > len(self._data):
            raise _Damaged
