"""The Thrift target: an IDL that Apache's compiler takes as it is, in every language it knows.

Types come in by-value order, so that its C++ output compiles. Fields have default requiredness, as in
PyTorch's own IDL: always written, and no reader fails on a file that lacks one.
"""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass

from .model import EnumValue, Field, MapType, NamedType, Schema, TypeDef
from .render import WIDTH, banner, render

#: One namespace a language; dots make nested packages. Python gets one name, as a package `pt2wire` exists.
_NAMESPACES = (
    "cpp {name}.idl",
    "py {name}_idl",
    "java {name}.idl",
    "go {name}.idl",
    "rs {name}",
    "js {name}",
)


@dataclass(frozen=True, slots=True)
class _Member:
    doc: str
    text: str


@dataclass(frozen=True, slots=True)
class _Type:
    doc: str
    keyword: str
    name: str
    members: tuple[_Member, ...]


def outputs(schema: Schema) -> dict[str, str]:
    """schema.thrift."""
    constants = (
        ("VERSION_MAJOR", schema.version.major),
        ("VERSION_MINOR", schema.version.minor),
        ("OLDEST_VERSION_MAJOR", schema.oldest_version.major),
        ("OLDEST_VERSION_MINOR", schema.oldest_version.minor),
        ("REVISION", schema.revision),
        ("TREESPEC_VERSION", schema.treespec_version),
    )
    text = render(
        "thrift/schema.thrift.j2",
        banner=banner(schema, "//"),
        namespaces=[line.format(name=schema.name) for line in _NAMESPACES],
        constants=constants,
        types=[_type(definition) for definition in schema.ordered],
    )
    return {"schema.thrift": text}


def _type(definition: TypeDef) -> _Type:
    members = (*map(_value, definition.values), *map(_field, definition.fields))
    return _Type(_comment(definition.doc, ""), definition.kind.value, definition.name, members)


def _value(value: EnumValue) -> _Member:
    return _Member(_comment(value.doc, "  "), f"{value.name} = {value.value},")


def _field(field: Field) -> _Member:
    optional = "optional " if field.optional else ""
    text = f"{field.id}: {optional}{field.type} {field.name}{default_text(field)};"
    return _Member(_comment(field.doc, "  "), text)


def default_text(field: Field) -> str:
    """A field's default in IDL, such as ` = false`; an optional field that is left out is simply unset."""
    if field.default is None or field.default.value is None:
        return ""
    value = field.default.value
    if isinstance(value, bool):
        return f" = {str(value).lower()}"
    if isinstance(value, tuple):
        return " = {}" if isinstance(field.type, MapType) else " = []"
    if isinstance(value, str):
        # An enum's value is named through its type; JSON's escapes for what a default can hold are the IDL's.
        return (
            f" = {field.type}.{value}"
            if isinstance(field.type, NamedType)
            else f" = {json.dumps(value, ensure_ascii=False)}"
        )
    return f" = {value!r}"


def _comment(text: str, indent: str) -> str:
    """A doc comment, which Apache's compiler carries into the code that it generates."""
    line = f"{indent}/** {text} */"
    if len(line) <= WIDTH:
        return line
    body = textwrap.wrap(text, WIDTH - len(indent) - 3, break_long_words=False, break_on_hyphens=False)
    return "\n".join([f"{indent}/**", *(f"{indent} * {part}" for part in body), f"{indent} */"])
