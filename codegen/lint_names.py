"""Lint rules on names: what languages take for themselves, and names that become one in some language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from . import python, words
from .model import EnumValue, Field, Kind, Position, Schema, TypeDef, members
from .rules import Report


def taken_words(schema: Schema) -> Iterator[Report]:
    """No name is a word of a target language, in which the generated code would not compile."""
    yield from _taken(schema.places["name"], schema.name, schema.name, words.FOR_NAMESPACES)
    for definition in schema.types.values():
        yield from _taken(definition.position, definition.name, definition.name, words.FOR_TYPES)
        tables = {Kind.ENUM: words.FOR_VALUES, Kind.UNION: words.FOR_MEMBERS, Kind.STRUCT: words.FOR_FIELDS}
        for member in members(definition):
            shown = f"{definition.name}.{member.name}"
            yield from _taken(member.position, member.name, shown, tables[definition.kind])


def _taken(
    position: Position, name: str, shown: str, table: Mapping[str, frozenset[str]]
) -> Iterator[Report]:
    languages = [language for language, taken in table.items() if name in taken]
    if languages:
        message = f"`{shown}` is a word of its own in {' and '.join(languages)}"
        yield Report(position, message, "Choose another name")


def apache_names(schema: Schema) -> Iterator[Report]:
    """No name is one that Apache's C++ has a macro or another use for."""
    for definition in schema.types.values():
        is_enum = definition.kind is Kind.ENUM
        taken = words.APACHE_VALUES | {definition.name} if is_enum else words.APACHE_MEMBERS
        yield from _apaches(definition.position, definition.name, definition.name, words.APACHE_TYPES)
        for member in members(definition):
            yield from _apaches(member.position, member.name, f"{definition.name}.{member.name}", taken)


def _apaches(position: Position, name: str, shown: str, taken: frozenset[str]) -> Iterator[Report]:
    if name in taken or name.startswith("BOOST_"):
        message = f"`{shown}` has a meaning of its own where Apache's C++ of schema.thrift stands"
        yield Report(position, message, "Apache's C++ does not compile with it; choose another name")


def reserved_forms(schema: Schema) -> Iterator[Report]:
    """No name has a form that languages keep for their own use."""
    for name, item in items(schema):
        if isinstance(item, EnumValue):
            taken, hint = r".*__|_[A-Z]|_.*_$", "Use neither `__` nor `_` before a capital or at both ends"
        else:
            taken, hint = r".*__|_", "Begin with a letter, and use no two underscores in a row"
        if re.match(taken, item.name):
            yield Report(item.position, f"`{name}` has a form that C++ and Python keep for themselves", hint)


def converted_names(schema: Schema) -> Iterator[Report]:
    """Names stay different where a language spells them in its own style."""
    yield from _folded("", schema.types.values())
    for definition in schema.types.values():
        yield from _folded(f"{definition.name}.", members(definition))


def _folded(owner: str, items: Iterable[TypeDef | Field | EnumValue]) -> Iterator[Report]:
    seen: dict[str, str] = {}
    for item in items:
        folded = item.name.replace("_", "").lower()
        if folded in seen:
            message = f"`{owner}{item.name}` and `{owner}{seen[folded]}` differ only in case or underscores"
            yield Report(item.position, message, "Languages that convert names would give both the same one")
        seen.setdefault(folded, item.name)


def mapped_names(schema: Schema) -> Iterator[Report]:
    """No two values of an enum stand for one name of PyTorch's, or of c10's."""
    for definition in schema.types.values():
        for library in ("torch", "c10"):
            seen: dict[str, str] = {}
            for value in definition.values:
                name = getattr(value, library)
                if name is not None and name in seen:
                    message = (
                        f"`{definition.name}.{value.name}` and `{seen[name]}` both are `{library}: {name}`"
                    )
                    yield Report(value.position, message, "The way back from there would be ambiguous")
                seen.setdefault(name, value.name)


def split_mappings(schema: Schema) -> Iterator[Report]:
    """Values of several enums that stand for one name of PyTorch's agree in all that they say of it."""
    seen: dict[str, tuple[str, EnumValue]] = {}
    for definition in schema.types.values():
        for value in definition.values:
            if value.torch is None:
                continue
            first, other = seen.setdefault(value.torch, (definition.name, value))
            for key in ("c10", "bits"):
                ours, theirs = getattr(value, key), getattr(other, key)
                if ours != theirs:
                    shown = f"`{definition.name}.{value.name}` and `{first}.{other.name}`"
                    message = f"{shown} both are `torch: {value.torch}`, and have `{key}` {ours} and {theirs}"
                    yield Report(value.position, message, "One of the two is wrong")


def missing_bits(schema: Schema) -> Iterator[Report]:
    """Where values of an enum have a size, all have that stand for something in PyTorch."""
    for definition in schema.types.values():
        sized = any(value.bits is not None for value in definition.values)
        for value in definition.values if sized else ():
            if value.torch is not None and value.bits is None:
                message = f"`{definition.name}.{value.name}` has `torch` and no `bits`, unlike others there"
                yield Report(value.position, message, "Add the size of one element in bits")


def short_names(schema: Schema) -> Iterator[Report]:
    """Members of a union stay different without their `as_`, as Python makes them."""
    for definition in schema.types.values():
        seen: dict[str, str] = {}
        for field in definition.fields if definition.kind is Kind.UNION else ():
            short = python.short_name(field.name)
            if short in seen:
                message = f"`{definition.name}.{field.name}` and `{seen[short]}` differ only in `as_`"
                hint = f"In Python, both would be made by {definition.name}.of_{short}(); rename one"
                yield Report(field.position, message, hint)
            seen.setdefault(short, field.name)
        constructors = {f"of_{short}": name for short, name in seen.items()}
        for field in definition.fields if definition.kind is Kind.UNION else ():
            if field.name in constructors:
                message = (
                    f"`{definition.name}.{field.name}` is what makes `{constructors[field.name]}` in Python"
                )
                yield Report(field.position, message, "Rename one of the two")


def shadowed_types(schema: Schema) -> Iterator[Report]:
    """No field or member is called as a type is, which it would hide within its class."""
    for definition in schema.types.values():
        for field in definition.fields:
            if field.name in schema.types:
                message = f"`{definition.name}.{field.name}` has the name of a type"
                yield Report(
                    field.position, message, "C++ and Python would take the one for the other; rename it"
                )


def items(schema: Schema) -> Iterator[tuple[str, TypeDef | Field | EnumValue]]:
    """Everything with a name, and that name as messages show it."""
    for definition in schema.types.values():
        yield definition.name, definition
        for member in members(definition):
            yield f"{definition.name}.{member.name}", member
