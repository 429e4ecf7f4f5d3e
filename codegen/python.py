"""The Python target: what each type is called, spelled and defaults to in the generated modules."""

from __future__ import annotations

import keyword
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from .model import (
    EnumValue,
    Field,
    Kind,
    ListType,
    MapType,
    NamedType,
    Primitive,
    PrimitiveType,
    Schema,
    TypeDef,
    TypeRef,
)
from .render import WIDTH, banner, render

#: Names that the classes need for themselves; a field of the schema cannot have them.
RESERVED_FIELD_NAMES = frozenset({"FIELD_IDS", "create", *keyword.kwlist})
RESERVED_MEMBER_NAMES = RESERVED_FIELD_NAMES | {"type", "value"}

#: Names of the generated modules' own; a type of the schema cannot have them.
RESERVED_TYPE_NAMES = frozenset({"Struct", "Union", "CodecError", "Any", "ClassVar", "Final", "IntEnum"})

_SPELLINGS = {
    Primitive.BOOL: "bool",
    Primitive.I64: "int",
    Primitive.DOUBLE: "float",
    Primitive.STRING: "str",
    Primitive.BINARY: "bytes",
}
_CONSTANTS = ("C10_NAMES", "OLDEST_VERSION", "REVISION", "SCHEMA_VERSION", "TORCH_NAMES", "TREESPEC_VERSION")


def annotation(type_: TypeRef) -> str:
    """The annotation of a type: `dict[str, list[Node]]`."""
    match type_:
        case PrimitiveType(primitive):
            return _SPELLINGS[primitive]
        case NamedType(name):
            return name
        case ListType(item):
            return f"list[{annotation(item)}]"
        case MapType(value):
            return f"dict[str, {annotation(value)}]"


def default_text(field: Field) -> str | None:
    """The default as an expression for a class body; None for a field that must be given."""
    if field.default is None:
        return None
    value = field.default.value
    match field.type:
        case ListType():
            return "field(default_factory=list)" if value is not None else "None"
        case MapType():
            return "field(default_factory=dict)" if value is not None else "None"
        case NamedType(name, Kind.ENUM) if value is not None:
            return f"{name}.{value}"
        case _:
            return _literal(value)


def _literal(value: object) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)


def short_name(member: str) -> str:
    """A union member's name in its fast constructor: `as_int` makes `of_int`."""
    return member.removeprefix("as_")


@dataclass(frozen=True, slots=True)
class PyField:
    """A struct's field or a union's member, as templates need it."""

    name: str
    slot: str
    id: int
    annotation: str
    declaration: str
    constructor: str
    doc: str


@dataclass(frozen=True, slots=True)
class PyType:
    """A type, as templates need it."""

    name: str
    kind: str
    doc: str
    fields: tuple[PyField, ...]
    slots: tuple[str, ...]
    values: tuple[EnumValue, ...]
    torch_names: tuple[tuple[str, str], ...]
    c10_names: tuple[tuple[str, str], ...]


def view(definition: TypeDef) -> PyType:
    """Decides everything about a type that templates print."""
    fields = tuple(_field(field) for field in definition.fields)
    return PyType(
        name=definition.name,
        kind=definition.kind.value,
        doc=_class_doc(definition),
        fields=fields,
        slots=tuple(sorted(field.slot for field in fields)),
        values=definition.values,
        torch_names=tuple((value.name, value.torch) for value in definition.values if value.torch),
        c10_names=tuple((value.name, value.c10) for value in definition.values if value.c10),
    )


def _field(field: Field) -> PyField:
    spelled = annotation(field.type) + (" | None" if field.optional else "")
    default = default_text(field)
    return PyField(
        name=field.name,
        slot=f"_{field.name}",
        id=field.id,
        annotation=spelled,
        declaration=f"{field.name}: {spelled}" + (f" = {default}" if default is not None else ""),
        constructor=f"of_{short_name(field.name)}",
        doc=docstring(field.doc, indent=8),
    )


def docstring(text: str, indent: int) -> str:
    """Text as the inside of a docstring that starts at column `indent`, wrapped, without its quotes."""
    paragraphs = [_wrapped(part, indent) for part in _escaped(text).split("\n\n")]
    joined = ("\n\n" + " " * indent).join(paragraphs)
    return joined + ("\n" + " " * indent if "\n" in joined or joined.endswith('"') else "")


def _escaped(text: str) -> str:
    return text.strip().replace("\\", "\\\\").replace('"""', "'''")


def _wrapped(text: str, indent: int, hang: int = 0) -> str:
    width = WIDTH - indent - 6  # the quotes at both ends
    pad = "\n" + " " * (indent + hang)
    return pad.join(textwrap.wrap(" ".join(text.split()), width - hang, break_on_hyphens=False))


def _class_doc(definition: TypeDef) -> str:
    heading = "Values" if definition.kind is Kind.ENUM else "Attributes"
    entries = [*definition.fields, *definition.values]
    lines = [docstring(definition.doc, indent=4).rstrip(), "", f"    {heading}:"]
    lines += [" " * 8 + _wrapped(f"{entry.name}: {_escaped(entry.doc)}", 8, hang=4) for entry in entries]
    return "\n".join(lines) + "\n    "


def views(schema: Schema) -> list[PyType]:
    """All types of a schema, in its order.

    Raises:
        ValueError: A name clashes with one that the generated modules need.
    """
    for clash in clashes(schema):
        raise ValueError(clash)
    return [view(definition) for definition in schema.types.values()]


def clashes(schema: Schema) -> Iterator[str]:
    """Names which the Python target cannot express, each as a sentence."""
    for definition in schema.types.values():
        if definition.name in RESERVED_TYPE_NAMES:
            yield f"type {definition.name}: the generated Python modules use this name themselves"
        union = definition.kind is Kind.UNION
        reserved = RESERVED_MEMBER_NAMES if union else RESERVED_FIELD_NAMES
        names = [field.name for field in definition.fields]
        for name in names:
            if name in reserved:
                yield f"field {definition.name}.{name}: Python, or the generated class, uses this name itself"
        if union and len({short_name(name) for name in names}) < len(names):
            yield f"union {definition.name}: two members have the same fast constructor"


def outputs(schema: Schema) -> dict[str, str]:
    """The Python modules of `generated/`: path relative to it -> text."""
    types = views(schema)
    names = [*_CONSTANTS, *(type_.name for type_ in types)]
    context = {
        "schema": schema,
        "banner": banner(schema, "#"),
        "types": types,
        "enums": [type_ for type_ in types if type_.kind == "enum"],
        "structs": [type_ for type_ in types if type_.kind == "struct"],
        "unions": [type_ for type_ in types if type_.kind == "union"],
        "torch_named": [type_ for type_ in types if type_.torch_names],
        "c10_named": [type_ for type_ in types if type_.c10_names],
        # ruff sorts names that are imported without regard to case, and names in __all__ with regard to it.
        "imported_names": sorted(names, key=lambda name: (not name.isupper(), name.lower())),
        "exported_names": sorted(
            ["CodecError", "Struct", "Union", *names], key=lambda name: (not name.isupper(), name)
        ),
    }
    return {path: render(f"python/{path}.j2", **context) for path in _MODULES}


_MODULES = ("__init__.py", "base.py", "types.py")
