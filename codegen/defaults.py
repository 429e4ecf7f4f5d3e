"""Checks a field's default against its type."""

from __future__ import annotations

import math
import re

from .faults import FaultList
from .model import Default, Kind, ListType, MapType, NamedType, Primitive, PrimitiveType, TypeRef
from .reading import DECIMAL
from .source import Element, Mapping, Scalar, Sequence

#: The literals of Thrift's IDL have no escapes for these; Go takes no byte order mark in the midst of a file.
_UNSPEAKABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff]")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
#: A digit other than 0 before the exponent.
_NONZERO = re.compile(r"[-0.]*[1-9]")


def resolve_default(
    faults: FaultList, element: Element, what: str, ref: TypeRef, optional: bool, enum_names: tuple[str, ...]
) -> Default | None:
    """The default that an element spells, or None and a fault.

    Args:
        faults: Receives the fault.
        element: What stands behind `default:`.
        what: The field, for the message.
        ref: The field's type.
        optional: Whether the field is optional; its only default is null, which is how it is when left out.
        enum_names: The names of the enum's values, where `ref` is an enum.
    """
    if optional:
        if isinstance(element, Scalar) and element.kind == "null":
            return Default(None)
        _bad(faults, element, what, "null, the only default of an optional field")
        return None
    if isinstance(ref, ListType):
        if isinstance(element, Sequence) and not element.items:
            return Default(())
        _bad(faults, element, what, "[]")
        return None
    if isinstance(ref, MapType):
        if isinstance(element, Mapping) and not element.entries:
            return Default(())
        _bad(faults, element, what, "{}")
        return None
    if isinstance(ref, NamedType):
        if ref.kind is not Kind.ENUM:
            _bad(faults, element, what, f"none: a {ref.kind.value} has no default")
            return None
        if isinstance(element, Scalar) and element.kind == "string" and element.text in enum_names:
            return Default(element.text)
        _bad(faults, element, what, f"a value of `{ref.name}` ({', '.join(enum_names)})")
        return None
    return _primitive(faults, element, what, ref)


def _primitive(faults: FaultList, element: Element, what: str, ref: PrimitiveType) -> Default | None:
    expected = _EXPECTED[ref.primitive]
    if not isinstance(element, Scalar):
        _bad(faults, element, what, expected)
        return None
    text = element.text
    match ref.primitive:
        case Primitive.BOOL:
            if element.kind == "boolean" and text in ("true", "false"):
                return Default(text == "true")
        case Primitive.I64:
            if element.kind == "integer" and DECIMAL.fullmatch(text) and -(2**63) <= int(text) < 2**63:
                return Default(int(text))
        case Primitive.DOUBLE:
            # YAML takes 1e5 for a string, so the text decides, not the kind.
            if not element.quoted and _NUMBER.fullmatch(text) and _fits(text):
                return Default(float(text))
        case Primitive.STRING:
            if element.kind == "string" and not _UNSPEAKABLE.search(text):
                return Default(text)
        case Primitive.BINARY:
            if element.kind == "string" and text == "":
                return Default("")
    _bad(faults, element, what, expected)
    return None


def _fits(text: str) -> bool:
    """Whether a double can hold a number, neither as infinity nor as a zero that it is not."""
    value = float(text)
    return math.isfinite(value) and (value != 0 or not _NONZERO.match(text))


_EXPECTED = {
    Primitive.BOOL: "true or false",
    Primitive.I64: "a decimal integer of 64 bits",
    Primitive.DOUBLE: "a finite number, and no zero but 0: of 64 bits, its size at least 5e-324",
    Primitive.STRING: "a string without byte order marks and control characters, but for tabs and line ends",
    Primitive.BINARY: '""',
}


def _bad(faults: FaultList, element: Element, what: str, expected: str) -> None:
    faults.add("bad-default", element.position, f"{what}: expected the default {expected}, found {element}")
