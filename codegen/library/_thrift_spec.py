"""The description of all types that thrift's C extension wants, made from the table of types."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from ._spec import BY_ID, FieldSpec, ListOf, MapOf, Type, Wide, slot
from ._thrift_build import BUILDERS

_Specs = dict[type[Any], list[Any]]

_BOOL, _DOUBLE, _I32, _I64, _STRING, _STRUCT, _MAP, _LIST = 2, 4, 8, 10, 11, 12, 13, 15
_SCALARS: dict[type[Any], tuple[int, str | None]] = {
    bool: (_BOOL, None),
    int: (_I64, None),
    Wide: (_I64, None),
    float: (_DOUBLE, None),
    str: (_STRING, "UTF8"),
    bytes: (_STRING, "BINARY"),
}


def _arguments(type_: Type, specs: _Specs) -> tuple[int, Any]:
    match type_:
        case ListOf(item):
            return _LIST, (*_arguments(item, specs), False)
        case MapOf(value):
            return _MAP, (_STRING, "UTF8", *_arguments(value, specs), False)
        case _ if type_ in specs:
            return _STRUCT, specs[type_]
        case _ if issubclass(type_, IntEnum):
            return _I32, None
        case _:
            return _SCALARS[type_]


#: Per type the list of two that the extension wants; lists, because types refer to each other.
ENCODE: _Specs = {cls: [cls, ()] for cls in BY_ID}
DECODE: _Specs = {cls: [builder, ()] for cls, builder in BUILDERS.items()}


def _fill() -> None:
    for cls, fields in BY_ID.items():
        # Encoding walks the whole tuple per object, so it is dense; decoding looks fields up by id.
        ENCODE[cls][1] = tuple(_entry(cls, field, ENCODE) for field in fields.values())
        by_id: list[Any] = [None] * (max(fields) + 1)
        for field in fields.values():
            by_id[field.id] = _entry(cls, field, DECODE)
        DECODE[cls][1] = tuple(by_id)


def _entry(cls: type[Any], field: FieldSpec, specs: _Specs) -> tuple[int, int, str, Any, None]:
    wire, arguments = _arguments(field.type, specs)
    return field.id, wire, slot(cls, field), arguments, None


_fill()
