"""The Python target: what each type is called, spelled and defaults to in the generated modules."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

from .model import (
    EnumValue,
    Field,
    Kind,
    ListType,
    MapType,
    NamedType,
    PrimitiveType,
    Schema,
    TypeDef,
    TypeRef,
)
from .python_code import SPELLINGS, Code, default_value
from .python_text import fitted, fitted_call, tidied
from .render import WIDTH, banner, render

#: The modules that depend on the schema, each with a template.
_RENDERED = (
    "__init__.py",
    "_check.py",
    "_json_read.py",
    "_json_write.py",
    "_spec.py",
    "_thrift_build.py",
    "types.py",
)
#: The modules that are the same for every schema.
_LIBRARY = Path(__file__).parent / "library"
_BASES = ("CodecError", "DepthError", "Struct", "Union", "WidthError")
_CONSTANTS = (
    "BITS",
    "C10_NAMES",
    "OLDEST_VERSION",
    "REVISION",
    "SCHEMA_VERSION",
    "TORCH_NAMES",
    "TREESPEC_VERSION",
)


def annotation(type_: TypeRef) -> str:
    """The annotation of a type: `dict[str, list[Node]]`."""
    match type_:
        case PrimitiveType(primitive):
            return SPELLINGS[primitive]
        case NamedType(name):
            return name
        case ListType(item):
            return f"list[{annotation(item)}]"
        case MapType(value):
            return f"dict[str, {annotation(value)}]"


def _annotation(field: Field) -> str:
    return annotation(field.type) + (" | None" if field.optional else "")


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
        case _:
            return default_value(field.type, field.default)


def short_name(member: str) -> str:
    """A union member's name in its fast constructor: `as_int` makes `of_int`."""
    return member.removeprefix("as_")


@dataclass(frozen=True, slots=True)
class PyField:
    """A struct's field or a union's member, as templates need it; `o` is the object that holds it."""

    name: str
    slot: str
    id: int
    annotation: str
    constructor: str
    doc: str
    required: bool
    own: bool
    spec: tuple[str, ...]
    checks: tuple[str, ...]
    written: str
    written_part: tuple[str, ...]
    written_member: tuple[str, ...]
    json_key: str
    read: str
    read_argument: tuple[str, ...]
    read_assignment: tuple[str, ...]
    prefill: str | None
    finishing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PyType:
    """A type, as templates need it."""

    name: str
    kind: str
    doc: str
    fields: tuple[PyField, ...]
    declarations: tuple[str, ...]
    slots: tuple[str, ...]
    values: tuple[EnumValue, ...]
    torch_names: tuple[tuple[str, str], ...]
    c10_names: tuple[tuple[str, str], ...]
    bits: tuple[tuple[str, int], ...]
    room: dict[str, str]
    make: str
    prefills: tuple[str, ...]
    finishing: tuple[str, ...]

    @property
    def required(self) -> list[PyField]:
        return [field for field in self.fields if field.required]

    @property
    def defaulted(self) -> list[PyField]:
        return [field for field in self.fields if not field.required]

    @property
    def written_always(self) -> list[PyField]:
        """The fields with which JSON begins, wherever they stand in the schema."""
        return [field for field in self.fields if not field.own]

    @property
    def written_if_set(self) -> list[PyField]:
        """Those that follow."""
        return [field for field in self.fields if field.own]


def view(definition: TypeDef, code: Code) -> PyType:
    """Decides everything about a type that templates print."""
    union = definition.kind is Kind.UNION
    fields = tuple(_field(field, union, code) for field in definition.fields)
    collected = union or any(field.finishing for field in fields)
    prefills = [f"o.{field.slot} = {field.prefill}" for field in fields if field.prefill is not None]
    bare = not prefills and not collected
    return PyType(
        name=definition.name,
        kind=definition.kind.value,
        doc=_class_doc(definition),
        fields=fields,
        declarations=_declarations(definition),
        slots=tuple(sorted(field.slot for field in fields)),
        values=definition.values,
        torch_names=tuple((value.name, value.torch) for value in definition.values if value.torch),
        c10_names=tuple((value.name, value.c10) for value in definition.values if value.c10),
        bits=tuple((value.name, value.bits) for value in definition.values if value.bits),
        room=_room(definition, code),
        make=f"_bare({definition.name})" if bare else f"_make_{definition.name}",
        prefills=(*prefills, *([f"_made_{definition.name}.append(o)"] if collected else [])),
        finishing=tuple(line for field in fields for line in field.finishing),
    )


def _declarations(definition: TypeDef) -> tuple[str, ...]:
    """The fields of a dataclass: those that constructors take by place, then those that go by name."""
    lines = [_declaration(field) for field in definition.positional]
    marker = ["_: KW_ONLY"] if definition.named else []
    return (*lines, *marker, *map(_declaration, definition.named))


def _declaration(field: Field) -> str:
    default = default_text(field)
    return f"{field.name}: {_annotation(field)}" + (f" = {default}" if default is not None else "")


def _room(definition: TypeDef, code: Code) -> dict[str, str]:
    """What functions for a type add to their text when its values can nest without bound."""
    if not code.is_deep(definition):
        return {"parameter": "", "argument": "", "test": "", "margin": ""}
    margin = str(code.margin(definition))
    return {
        "parameter": ", room: int",
        "argument": ", room",
        "test": f" or room < {margin}",
        "margin": margin,
    }


def _field(field: Field, union: bool, code: Code) -> PyField:
    slot = f"_{field.name}" if union else field.name
    required = field.default is None and not union
    own = field.own and field.optional
    flags = {"optional": field.optional, "required": required, "own": own}
    spec = [f'"{field.name}"', str(field.id), code.described(field.type)]
    spec += [f"{flag}=True" for flag, on in flags.items() if on]
    written = code.to_json(field, f"o.{slot}")
    read = code.from_plain(field, f'p["{field.name}"]' if required else "value")
    return PyField(
        name=field.name,
        slot=slot,
        id=field.id,
        annotation=_annotation(field),
        constructor=f"of_{short_name(field.name)}",
        doc=docstring(field.doc, indent=8),
        required=required,
        own=own,
        spec=tuple(fitted_call("FieldSpec", spec, indent=8)),
        checks=tuple(code.check(field, f"o.{slot}", indent=4)),
        written=written,
        written_part=tuple(fitted("", written, ",", indent=8)),
        written_member=tuple(fitted(f'"{field.name}": lambda o: ', written, ",", indent=4)),
        json_key=f'"{field.name}":',
        read=read,
        read_argument=tuple(fitted("", read, ",", indent=8)),
        read_assignment=tuple(_assignment(slot, read, union)),
        prefill="None" if union else code.prefill(field),
        finishing=tuple(code.finishing(field, slot, guarded=union, indent=12 if union else 8)),
    )


def _assignment(slot: str, read: str, union: bool) -> list[str]:
    return fitted(f"o.{slot} = " if union else f"made.{slot} = ", read, "", indent=4 if union else 8)


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
    entries: list[Field | EnumValue] = [*definition.fields, *definition.values]
    lines = [docstring(definition.doc, indent=4).rstrip(), "", f"    {heading}:"]
    lines += [" " * 8 + _wrapped(f"{entry.name}: {_escaped(entry.doc)}", 8, hang=4) for entry in entries]
    return "\n".join(lines) + "\n    "


def views(schema: Schema) -> list[PyType]:
    """All types of a schema, in its order; `lint` has seen to it that Python can express them."""
    code = Code(schema)
    return [view(definition, code) for definition in schema.types.values()]


def outputs(schema: Schema) -> dict[str, str]:
    """The Python modules of `generated/`: path relative to it -> text."""
    return _rendered(schema) | _copied(schema)


def _copied(schema: Schema) -> dict[str, str]:
    mark = banner(schema, "#")
    return {path.name: f"{mark}\n{path.read_text('utf-8')}" for path in _LIBRARY.glob("*.py")}


def _rendered(schema: Schema) -> dict[str, str]:
    types = views(schema)
    names = [type_.name for type_ in types]
    composites = [type_ for type_ in types if type_.kind != "enum"]
    context = {
        "schema": schema,
        "banner": banner(schema, "#"),
        "types": types,
        "enums": [type_ for type_ in types if type_.kind == "enum"],
        "structs": [type_ for type_ in types if type_.kind == "struct"],
        "unions": [type_ for type_ in types if type_.kind == "union"],
        "composites": composites,
        "built": [type_ for type_ in composites if type_.prefills],
        "finished": [type_ for type_ in composites if type_.kind == "union" or type_.finishing],
        "finished_structs": [type_ for type_ in composites if type_.kind == "struct" and type_.finishing],
        "torch_named": [type_ for type_ in types if type_.torch_names],
        "c10_named": [type_ for type_ in types if type_.c10_names],
        "sized": [type_ for type_ in types if type_.bits],
        "deep": [type_ for type_ in composites if type_.room["parameter"]],
        "imported_types": _as_imported(names),
        "imported_names": _as_imported([*_CONSTANTS, *names]),
        "exported_names": _as_exported([*_CONSTANTS, *names, *_BASES]),
    }
    return {path: tidied(render(f"python/{path}.j2", **context)) for path in _RENDERED}


def _as_imported(names: list[str]) -> list[str]:
    """The order that the linter demands of imports."""
    return sorted(names, key=lambda name: (*_rank(name), _natural(name.lower()), name))


def _as_exported(names: list[str]) -> list[str]:
    """And its order for `__all__`."""
    return sorted(names, key=lambda name: (*_rank(name), _natural(name)))


def _rank(name: str) -> tuple[bool, bool]:
    """Constants first, then classes, then what begins with a small letter."""
    return not (len(name) > 1 and name.isupper()), not name[0].isupper()


def _natural(name: str) -> list[tuple[bool, int | str]]:
    """Numbers within names count as numbers."""
    parts = re.split(r"(\d+)", name)
    return [(not part.isdigit(), int(part) if part.isdigit() else part) for part in parts]
