"""Hypothesis strategies for every type of the format, derived from generated/schema.json."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import pt2wire.generated
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pt2wire.generated import types

_SCHEMA = json.loads((Path(pt2wire.generated.__file__).parent / "schema.json").read_text())["types"]
_MAX_ITEMS = 3

#: All structs and unions.
COMPOSITES: list[type[Any]] = [
    getattr(types, name) for name, definition in _SCHEMA.items() if definition["kind"] != "enum"
]

_SCALARS: dict[str, SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "i64": st.integers(-(2**63), 2**63 - 1),
    # One NaN is enough: JSON does not keep its bits.
    "double": st.floats(allow_nan=False) | st.just(math.nan),
    "string": st.text(max_size=20),
    "binary": st.binary(max_size=20),
}


def trees(cls: type[Any], *, own: bool = True, depth: int = 2) -> SearchStrategy[Any]:
    """Valid values of a struct or union.

    Args:
        cls: A class of `pt2wire.generated.types`.
        own: Whether pt2wire's own optional fields may be set.
        depth: How many times a recursive type may contain itself.
    """
    return _composite(cls.__name__, own, depth)


@cache
def _composite(name: str, own: bool, depth: int) -> SearchStrategy[Any]:
    definition = _SCHEMA[name]
    cls = getattr(types, name)
    fields = definition["fields"]
    if definition["kind"] == "struct":
        return st.builds(cls, **{name: _field(field, own, depth) for name, field in fields.items()})
    members = {
        member: _type(field["type"], own, depth - _recurses(name, field["type"]))
        for member, field in fields.items()
        if depth > 0 or not _recurses(name, field["type"])
    }
    return st.sampled_from(sorted(members)).flatmap(
        lambda member: members[member].map(lambda value: cls.create(**{member: value}))
    )


def _field(field: dict[str, Any], own: bool, depth: int) -> SearchStrategy[Any]:
    if field["optional"] and "since_revision" in field and not own:
        return st.none()
    value = _type(field["type"], own, depth)
    return st.none() | value if field["optional"] else value


def _type(type_: dict[str, Any], own: bool, depth: int) -> SearchStrategy[Any]:
    match type_["kind"]:
        case "list":
            return st.lists(_type(type_["item"], own, depth), max_size=_MAX_ITEMS)
        case "map":
            return st.dictionaries(_SCALARS["string"], _type(type_["value"], own, depth), max_size=_MAX_ITEMS)
        case "enum":
            return st.sampled_from(getattr(types, type_["name"]))
        case "struct" | "union":
            name = type_["name"]
            return st.deferred(lambda: _composite(name, own, depth))
        case scalar:
            return _SCALARS[scalar]


def _recurses(union: str, type_: dict[str, Any]) -> bool:
    """Whether a member of a union can contain the same union again."""
    return union in _reachable(_named(type_))


@cache
def _reachable(name: str | None) -> frozenset[str]:
    seen: set[str] = set()
    todo = [name]
    while todo:
        current = todo.pop()
        if current is not None and current not in seen:
            seen.add(current)
            todo += [_named(field["type"]) for field in _SCHEMA[current].get("fields", {}).values()]
    return frozenset(seen)


def _named(type_: dict[str, Any]) -> str | None:
    inner = type_.get("item") or type_.get("value")
    return _named(inner) if inner else type_.get("name")
