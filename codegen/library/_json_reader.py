"""A slow, exact reader of plain JSON values: names every fault with its path, and lists unknown fields."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NoReturn, TypeVar

from ._json_scalars import (
    read_binary,
    read_bool,
    read_double,
    read_enum,
    read_int,
    read_list,
    read_str,
    read_wide,
)
from ._json_text import Repeated
from ._spec import (
    BY_NAME,
    MAX_JSON_DEPTH,
    NEWER,
    FieldSpec,
    ListOf,
    MapOf,
    Path,
    Type,
    Wide,
    found,
    listed,
    shown,
)
from .base import CodecError, Struct, Union

_T = TypeVar("_T", bound=Struct | Union)
_SCALARS: dict[type[Any], Callable[[Any], Any]] = {
    bool: read_bool,
    int: read_int,
    Wide: read_wide,
    float: read_double,
    str: read_str,
    bytes: read_binary,
}


def read(cls: type[_T], plain: Any, unknown: list[str] | None) -> _T:
    """Reads; arguments and errors as for `json_codec.from_plain`."""
    reader = _Reader(unknown is not None)
    try:
        tree: _T = reader.composite(cls, plain, 1)
    except CodecError as error:
        raise CodecError(error.message, str(reader.path)) from None
    if unknown is not None:
        unknown += reader.unknown
    return tree


class _Reader:
    def __init__(self, keep_going: bool) -> None:
        self.path = Path()
        self.unknown: list[str] = []
        self._keep_going = keep_going

    def composite(self, cls: type[Any], plain: Any, depth: int) -> Any:
        if depth > MAX_JSON_DEPTH:
            _fail(f"expected at most {MAX_JSON_DEPTH} structs and unions on a path, found more")
        self._object(plain, cls.__name__)
        fields = BY_NAME[cls]
        if issubclass(cls, Union):
            return self._union(cls, fields, plain, depth)
        for name in plain:
            if name not in fields:
                self._unknown_field(cls, name)
        values = {}
        for name, field in fields.items():
            if name in plain:
                self.path.field(name)
                values[name] = self._field(field, plain[name], depth)
                self.path.pop()
            elif field.required and field.optional:
                values[name] = None
            elif field.required:
                _fail(f"expected the key {name!r} of {cls.__name__}, found none")
        return cls(**values)

    def _union(self, cls: type[Any], fields: dict[str, FieldSpec], plain: dict[str, Any], depth: int) -> Any:
        if len(plain) != 1:
            _fail(f"expected exactly one member of {cls.__name__}, found {listed(plain)}")
        ((name, value),) = plain.items()
        if name not in fields:
            _fail(f"{cls.__name__} has no member {shown(name)} {NEWER}")
        self.path.field(name)
        made = cls.create(**{name: self._field(fields[name], value, depth)})
        self.path.pop()
        return made

    def _unknown_field(self, cls: type[Any], name: str) -> None:
        if not self._keep_going:
            _fail(f"{cls.__name__} has no field {shown(name)} {NEWER}")
        self.path.field(name)
        self.unknown.append(str(self.path))
        self.path.pop()

    def _field(self, field: FieldSpec, value: Any, depth: int) -> Any:
        return None if value is None and field.optional else self._value(field.type, value, depth)

    def _value(self, type_: Type, value: Any, depth: int) -> Any:
        match type_:
            case ListOf(item):
                return self._list(item, value, depth)
            case MapOf(inner):
                return self._map(inner, value, depth)
            case _ if type_ in BY_NAME:
                return self.composite(type_, value, depth + 1)
            case _ if issubclass(type_, IntEnum):
                return read_enum(type_, value)
            case _:
                return self._text(value) if type_ is str else _SCALARS[type_](value)

    def _list(self, item: Type, value: Any, depth: int) -> list[Any]:
        made = []
        for index, entry in enumerate(read_list(value)):
            self.path.item(index)
            made.append(self._value(item, entry, depth))
            self.path.pop()
        return made

    def _map(self, inner: Type, value: Any, depth: int) -> dict[str, Any]:
        self._object(value, "a map")
        made = {}
        for key, entry in value.items():
            self.path.key(key)
            made[self._text(key)] = self._value(inner, entry, depth)
            self.path.pop()
        return made

    def _object(self, plain: Any, what: str) -> None:
        if isinstance(plain, Repeated):
            _fail(f"expected each key once, found {shown(plain.key)} twice")
        if plain.__class__ is not dict:
            _fail(f"expected an object for {what}, found {found(plain)}")
        if not {*map(type, plain)} <= {str}:
            _fail(f"expected keys that are strings, found {listed(plain)}")

    def _text(self, value: Any) -> str:
        text = read_str(value)
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                _fail(f"expected text that UTF-8 can hold, found a lone surrogate at {error.start}")
        return text


def _fail(message: str) -> NoReturn:
    raise CodecError(message)
