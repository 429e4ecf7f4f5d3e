"""What keeps a tree from being written, and where: slow, for any type, run only once `_check` suspects it."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any, NoReturn

from ._spec import (
    BY_NAME,
    MAX_INT,
    MAX_WIDE,
    MIN_INT,
    MIN_WIDE,
    ListOf,
    MapOf,
    Path,
    Type,
    Wide,
    expected,
    found,
    shown,
    slot,
)
from .base import CodecError, DepthError, Struct, Union, WidthError

_PLAIN: tuple[type[Any], ...] = (bool, int, Wide, float, str, bytes)


def explain(tree: Any, max_depth: int, *, wide: bool) -> None:
    """Raises the CodecError that says why a tree cannot be written; returns if it can.

    Args:
        tree: A struct or union.
        max_depth: How many structs and unions may be on a path.
        wide: Whether the encoding holds integers of more than 64 bits.

    Subclasses of int, float and str are fine here, but bool and enums are not integers.
    """
    if tree.__class__ not in BY_NAME:
        raise CodecError(f"expected a struct or union of {__package__}.types, found {found(tree)}")
    _Explainer(max_depth, wide).composite(tree, tree.__class__, 1)


class _Explainer:
    def __init__(self, max_depth: int, wide: bool) -> None:
        self._max_depth = max_depth
        self._wide = wide
        self._path = Path()

    def composite(self, value: Any, cls: type[Struct | Union], depth: int) -> None:
        if value.__class__ is not cls:
            self._fail(f"expected {expected(cls)}, found {found(value)}")
        if depth > self._max_depth:
            message = f"expected at most {self._max_depth} structs and unions on a path, found more"
            raise DepthError(message, str(self._path))
        if isinstance(value, Union):
            self._union(value, cls, depth)
            return
        for field in BY_NAME[cls].values():
            self._path.field(field.name)
            held = getattr(value, slot(cls, field), None)
            if held is None and not field.optional:
                self._fail(f"expected {expected(field.type)}, found None")
            if held is not None:
                self._value(held, field.type, depth)
            self._path.pop()

    def _union(self, value: Union, cls: type[Struct | Union], depth: int) -> None:
        fields = BY_NAME[cls]
        held = {name: getattr(value, slot(cls, field), None) for name, field in fields.items()}
        members = [name for name in fields if held[name] is not None]
        kind = getattr(value, "type", None)
        if members != [kind]:
            self._fail(f"expected one member set and named by `type`, found type {kind!r} and {members} set")
        field = fields[members[0]]
        self._path.field(field.name)
        self._value(held[field.name], field.type, depth)
        self._path.pop()

    def _value(self, value: Any, type_: Type, depth: int) -> None:
        match type_:
            case ListOf(item):
                if not isinstance(value, list):
                    self._fail(f"expected {expected(type_)}, found {found(value)}")
                for index, entry in enumerate(value):
                    self._path.item(index)
                    self._value(entry, item, depth)
                    self._path.pop()
            case MapOf(inner):
                if not isinstance(value, dict):
                    self._fail(f"expected {expected(type_)}, found {found(value)}")
                for key, entry in value.items():
                    self._path.key(key)
                    self._scalar(key, str)
                    self._value(entry, inner, depth)
                    self._path.pop()
            case _ if type_ in _PLAIN or issubclass(type_, IntEnum):
                self._scalar(value, type_)
            case _:
                self.composite(value, type_, depth + 1)

    def _scalar(self, value: Any, type_: type[Any]) -> None:
        if type_ in (int, Wide):
            self._integer(value, type_)
        elif not isinstance(value, type_):
            self._fail(f"expected {expected(type_)}, found {found(value)}")
        if type_ is str and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                self._fail(f"expected text that UTF-8 can hold, found a lone surrogate at {error.start}")

    def _integer(self, value: Any, type_: type[Any]) -> None:
        if not isinstance(value, int) or isinstance(value, bool | Enum):
            self._fail(f"expected {expected(type_)}, found {found(value)}")
        if type_ is Wide and not MIN_WIDE <= value <= MAX_WIDE:
            self._fail(f"expected an integer of at most 4,300 digits, found one of {value.bit_length()} bits")
        if not MIN_INT <= value <= MAX_INT and not (type_ is Wide and self._wide):
            error, thrifts = (WidthError, ", as Thrift's are") if type_ is Wide else (CodecError, "")
            raise error(f"expected a 64-bit integer{thrifts}, found {shown(value)}", str(self._path))

    def _fail(self, message: str) -> NoReturn:
        raise CodecError(message, str(self._path))
