"""The wire types of Thrift's compact protocol, and which of them a value of a type may have."""

from __future__ import annotations

from typing import Any

from ._spec import BY_ID, ListOf, MapOf, Type, Wide

STOP, BOOLS, BYTE, I16, I32, I64, DOUBLE, BINARY = 0, (1, 2), 3, 4, 5, 6, 7, 8
LIST, SET, MAP, STRUCT, UUID = 9, 10, 11, 12, 13
_NAMES = "stop, bool, bool, i8, i16, i32, i64, double, string, list, set, map, struct, uuid"
WIRE_NAMES = dict(enumerate(_NAMES.split(", ")))

#: The wire types that scalars may have; only a bool has two.
_WIRES: dict[Any, tuple[int, ...]] = {
    bool: BOOLS,
    int: (I64,),
    Wide: (I64,),
    float: (DOUBLE,),
    str: (BINARY,),
    bytes: (BINARY,),
}


def wires(type_: Type) -> tuple[int, ...]:
    """The wire types of a type: one, but for a bool, whose value is in the wire type."""
    match type_:
        case ListOf():
            return (LIST,)
        case MapOf():
            return (MAP,)
        case _ if type_ in BY_ID:
            return (STRUCT,)
        case _:
            return _WIRES.get(type_, (I32,))  # what is left are enums
