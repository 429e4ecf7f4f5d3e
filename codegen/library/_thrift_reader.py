"""A slow, exact reader of Thrift compact bytes: names every fault, and lists unknown fields."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NoReturn, TypeVar

from . import _thrift_wires as compact
from ._spec import BY_ID, MAX_THRIFT_DEPTH, NEWER, FieldSpec, ListOf, MapOf, Path, Type, listed
from ._thrift_bytes import Bytes, Fault, fail
from ._thrift_skip import skip
from ._thrift_wires import WIRE_NAMES, wires
from .base import CodecError, Struct, Union

_T = TypeVar("_T", bound=Struct | Union)


def read(cls: type[_T], data: bytes, unknown: list[str] | None) -> _T:
    """Decodes; arguments and errors as for `thrift_codec.decode`."""
    reader = _Reader(data, unknown)
    try:
        tree: _T = reader.composite(cls, 1)
        if left := len(data) - reader.bytes.position:
            fail(f"expected the end, found {left} more bytes", reader.bytes.position)
    except Fault as fault:
        raise CodecError(f"{fault}, at byte {fault.offset} of {len(data)}", str(reader.path)) from None
    if unknown is not None:
        unknown += reader.unknown
    return tree


class _Reader:
    def __init__(self, data: bytes, unknown: list[str] | None) -> None:
        self.bytes = Bytes(data)
        self.path = Path()
        self.unknown: list[str] = []
        self._keep_going = unknown is not None

    def composite(self, cls: type[Any], depth: int) -> Any:
        if depth > MAX_THRIFT_DEPTH:
            self._fail(f"expected at most {MAX_THRIFT_DEPTH} structs and unions on a path, found more")
        fields = BY_ID[cls]
        values: dict[str, Any] = {}
        last = 0
        while True:
            start = self.bytes.position
            wire, last = self.bytes.field_header(last)
            if wire == compact.STOP:
                break
            field = fields.get(last)
            if field is None:
                self._unknown_field(cls, last, wire, start, depth)
                continue
            self.path.field(field.name)
            if field.name in values:
                self._fail(f"expected field {last} once, found it twice", start)
            self._expect_wire(field.type, wire, start)
            if field.type is bool:
                values[field.name] = wire == compact.BOOLS[0]
            else:
                values[field.name] = self._value(field.type, depth)
            self.path.pop()
        return self._made(cls, fields, values)

    def _made(self, cls: type[Any], fields: dict[int, FieldSpec], values: dict[str, Any]) -> Any:
        if issubclass(cls, Union):
            if len(values) != 1:
                self._fail(f"expected exactly one member of {cls.__name__}, found {listed(values)}")
            return cls.create(**values)
        for field in fields.values():
            if field.name in values:
                continue
            if field.required and not field.optional:
                self._fail(f"expected field {field.id} ({field.name}) of {cls.__name__}, found none")
            if field.required:
                values[field.name] = None
        return cls(**values)

    def _unknown_field(self, cls: type[Any], number: int, wire: int, start: int, depth: int) -> None:
        what = "member" if issubclass(cls, Union) else "field"
        if not self._keep_going or what == "member":
            self._fail(f"{cls.__name__} has no {what} {number} {NEWER}", start)
        self.path.unknown(number)
        self.unknown.append(str(self.path))
        skip(self.bytes, wire, depth + 1, MAX_THRIFT_DEPTH, in_field=True)
        self.path.pop()

    def _expect_wire(self, type_: Type, wire: int, start: int) -> None:
        expected = wires(type_)
        if wire not in expected:
            self._fail(f"expected wire type {WIRE_NAMES[expected[0]]}, found {WIRE_NAMES[wire]}", start)

    def _value(self, type_: Type, depth: int) -> Any:
        match type_:
            case ListOf(item):
                return self._list(item, depth)
            case MapOf(value):
                return self._map(value, depth)
            case _ if type_ in BY_ID:
                return self.composite(type_, depth + 1)
            case _ if issubclass(type_, IntEnum):
                return self._enum(type_)
            case _:
                return self.bytes.SCALARS[type_](self.bytes)

    def _list(self, item: Type, depth: int) -> list[Any]:
        start = self.bytes.position
        wire, count = self.bytes.list_header()
        self._expect_wire(item, wire, start)
        values = []
        for index in range(count):
            self.path.item(index)
            values.append(self._value(item, depth))
            self.path.pop()
        return values

    def _map(self, type_: Type, depth: int) -> dict[str, Any]:
        start = self.bytes.position
        key_wire, wire, count = self.bytes.map_header()
        if count:
            self._expect_wire(str, key_wire, start)
            self._expect_wire(type_, wire, start)
        values: dict[str, Any] = {}
        for _ in range(count):
            start = self.bytes.position
            key = self.bytes.string()
            self.path.key(key)
            if key in values:
                self._fail("expected each key once, found this one twice", start)
            values[key] = self._value(type_, depth)
            self.path.pop()
        return values

    def _enum(self, cls: type[IntEnum]) -> IntEnum:
        start = self.bytes.position
        number = self.bytes.enum()
        try:
            return cls(number)
        except ValueError:
            self._fail(f"{cls.__name__} has no value {number} {NEWER}", start)

    def _fail(self, message: str, offset: int | None = None) -> NoReturn:
        fail(message, self.bytes.position if offset is None else offset)
