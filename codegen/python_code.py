"""The straight-line Python that the generated codecs consist of, spelled out per type.

The generated fast paths only decide whether all is well, and are then done; whatever looks wrong they hand to
the handwritten slow paths, which know what is wrong and where.
"""

from __future__ import annotations

from dataclasses import dataclass

from .model import (
    Default,
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
from .order import named_types, reached_types
from .python_text import fitted, literal

SPELLINGS = {
    Primitive.BOOL: "bool",
    Primitive.I64: "int",
    Primitive.DOUBLE: "float",
    Primitive.STRING: "str",
    Primitive.BINARY: "bytes",
}
_READERS = {
    Primitive.BOOL: "read_bool",
    Primitive.I64: "read_int",
    Primitive.DOUBLE: "read_double",
    Primitive.STRING: "read_str",
    Primitive.BINARY: "read_binary",
}
_WRITERS = {
    Primitive.BOOL: "write_bool",
    Primitive.I64: "write_int",
    Primitive.DOUBLE: "write_double",
    Primitive.STRING: "write_str",
    Primitive.BINARY: "write_binary",
}


@dataclass(frozen=True, slots=True)
class Nesting:
    """How deep values of each type get.

    Attributes:
        deep: Types whose values can contain a value of a recursive type; their depth has no bound.
        height: For the others, how many structs and unions are at most on a path through one.
    """

    deep: frozenset[str]
    height: dict[str, int]

    def margin(self, definition: TypeDef) -> int:
        """How many levels a struct or union needs for itself and for its fields that are not deep."""
        return 1 + max((self._height(name) for name in _names(definition)), default=0)

    def _height(self, name: str) -> int:
        return self.height.get(name, 0)


def nesting(schema: Schema) -> Nesting:
    """Finds what recurses, and how high everything else is."""
    reached = reached_types(schema.types)
    recursive = {name for name, found in reached.items() if name in found}
    deep = recursive | {name for name, found in reached.items() if found & recursive}
    height: dict[str, int] = {}
    for definition in schema.ordered:  # what a type holds stands before it
        if definition.name not in deep:
            below = max((height[name] for name in _names(definition)), default=0)
            height[definition.name] = 0 if definition.kind is Kind.ENUM else 1 + below
    return Nesting(frozenset(deep), height)


def _names(definition: TypeDef) -> list[str]:
    return [name for field in definition.fields for name in named_types(field.type)]


class Code:
    """Spells the code of one schema; all methods return text at the indentation that templates expect."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._nesting = nesting(schema)

    def is_deep(self, definition: TypeDef) -> bool:
        """Whether functions for this type take `room`, the number of levels left."""
        return definition.name in self._nesting.deep

    def margin(self, definition: TypeDef) -> int:
        return self._nesting.margin(definition)

    def check(self, field: Field, held: str, indent: int) -> list[str]:
        """Statements that raise Suspect unless `held` can be written as this field."""
        if not field.optional:
            return self._checks(field.type, held, indent, 0)
        pad = " " * indent
        if (wrong := _wrong(field.type, "value")) is None:
            return [f"{pad}if {held} is not None:", *self._checks(field.type, held, indent + 4, 0)]
        return [
            f"{pad}value = {held}",
            f"{pad}if value is not None and ({wrong}):",
            f"{pad}    raise Suspect",
        ]

    def _checks(self, type_: TypeRef, value: str, indent: int, level: int) -> list[str]:
        pad = " " * indent
        item = f"item{level or ''}"
        match type_:
            case PrimitiveType(Primitive.I64):
                return [f"{pad}value = {value}", *_raise_if(_wrong(type_, "value"), pad)]
            case PrimitiveType() | NamedType(_, Kind.ENUM):
                return _raise_if(_wrong(type_, value), pad)
            case ListType(inner) if (scalar := _scalar(inner)) is not None:
                return [f"{pad}check_list({value}, {scalar})"]
            case MapType(inner) if (scalar := _scalar(inner)) is not None:
                return [f"{pad}check_map({value}, {scalar})"]
            case ListType(inner):
                head = [*_raise_if(f"{value}.__class__ is not list", pad), f"{pad}for {item} in {value}:"]
                return [*head, *self._checks(inner, item, indent + 4, level + 1)]
            case MapType(inner):
                head = [f"{pad}check_keys({value})", f"{pad}for {item} in {value}.values():"]
                return [*head, *self._checks(inner, item, indent + 4, level + 1)]
            case NamedType(name):
                return [f"{pad}_check_{name}({value}{self._room(name)})"]

    def _room(self, name: str) -> str:
        return ", room - 1" if name in self._nesting.deep else ""

    def to_json(self, field: Field, value: str) -> str:
        """An expression for the JSON text of a value."""
        written = self._writer(field.type).replace("@", value)
        return f'"null" if {value} is None else {written}' if field.optional and not field.own else written

    def _writer(self, type_: TypeRef) -> str:
        """A template of the expression, in which @ stands for the value."""
        match type_:
            case PrimitiveType(primitive):
                return f"{_WRITERS[primitive]}(@)"
            case NamedType(name, kind):
                return "write_int(@)" if kind is Kind.ENUM else f"_write_{name}(@)"
            case ListType(inner):
                return f"write_list(@, {self._function(inner)})"
            case MapType(inner):
                return f"write_map(@, {self._function(inner)})"

    def _function(self, type_: TypeRef) -> str:
        writer = self._writer(type_)
        return (
            writer.removesuffix("(@)") if writer.endswith("(@)") else f"lambda v: {writer.replace('@', 'v')}"
        )

    def from_plain(self, field: Field, value: str) -> str:
        """An expression that reads what the JSON decoder gave, or raises."""
        read = self._read(field.type, "value" if field.optional else value, 0)
        if not field.optional:
            return read
        # A field with a default is bound to `value` before; one without has no place for a statement.
        bound = "value" if field.default is not None else f"(value := {value})"
        return f"None if {bound} is None else {read}"

    def _read(self, type_: TypeRef, value: str, level: int) -> str:
        key, item = f"k{level or ''}", f"v{level or ''}"
        match type_:
            case PrimitiveType(primitive, wide):
                return f"{'read_wide' if wide else _READERS[primitive]}({value})"
            case NamedType(name, Kind.ENUM):
                return f"read_enum({name}, {value})"
            case NamedType(name):
                return f"_read_{name}({value}{self._room(name)})"
            case ListType(inner):
                return f"[{self._read(inner, item, level + 1)} for {item} in read_list({value})]"
            case MapType(inner):
                read = self._read(inner, item, level + 1)
                return "{" + f"{key}: {read} for {key}, {item} in read_map({value})" + "}"

    def described(self, type_: TypeRef) -> str:
        """The type as the table of types spells it: `ListOf(SymInt)`."""
        match type_:
            case PrimitiveType(primitive, wide):
                return "Wide" if wide else SPELLINGS[primitive]
            case NamedType(name):
                return name
            case ListType(inner):
                return f"ListOf({self.described(inner)})"
            case MapType(inner):
                return f"MapOf({self.described(inner)})"

    def prefill(self, field: Field) -> str | None:
        """What a field holds before bytes are read into it; None if bytes have to bring it."""
        if field.default is None:
            return "None" if field.optional else None
        match field.type:
            case ListType() if not field.optional:
                return "[]"
            case MapType() if not field.optional:
                return "{}"
            case _:
                return default_value(field.type, field.default)

    def finishing(self, field: Field, slot: str, guarded: bool, indent: int) -> list[str]:
        """Statements that turn the numbers in a field into enums; `guarded` if it is known to be set."""
        value = f"o.{slot}"
        converted = self._converted(field.type, value, 0)
        if converted == value:
            return []
        if field.optional and not guarded:
            return [
                f"{' ' * indent}if {value} is not None:",
                *fitted(f"{value} = ", converted, "", indent + 4),
            ]
        return fitted(f"{value} = ", converted, "", indent)

    def _converted(self, type_: TypeRef, value: str, level: int) -> str:
        key, item = f"k{level or ''}", f"v{level or ''}"
        match type_:
            case NamedType(name, Kind.ENUM):
                return f"_values_{name}[{value}]"
            case ListType(inner) if (made := self._converted(inner, item, level + 1)) != item:
                return f"[{made} for {item} in {value}]"
            case MapType(inner) if (made := self._converted(inner, item, level + 1)) != item:
                return "{" + f"{key}: {made} for {key}, {item} in {value}.items()" + "}"
            case _:
                return value


def default_value(type_: TypeRef, default: Default) -> str:
    """A default that is not a container, as an expression."""
    match type_:
        case NamedType(name, Kind.ENUM) if default.value is not None:
            return f"{name}.{default.value}"
        case PrimitiveType(Primitive.BINARY) if default.value is not None:
            return 'b""'  # its only one
        case _:
            return literal(default.value)


def _raise_if(condition: str | None, pad: str) -> list[str]:
    return [f"{pad}if {condition}:", f"{pad}    raise Suspect"]


def _wrong(type_: TypeRef, value: str) -> str | None:
    """A condition that is true of values that are wrong, for types that need no more than that."""
    scalar = _scalar(type_)
    if scalar is None:
        return None
    bounds = {"int": ("MIN_INT", "MAX_INT"), "Wide": ("MIN_WIDE", "MAX_WIDE")}.get(scalar)
    if bounds is None:
        return f"{value}.__class__ is not {scalar}"
    return f"{value}.__class__ is not int or not {bounds[0]} <= {value} <= {bounds[1]}"


def _scalar(type_: TypeRef) -> str | None:
    """The class of a scalar or an enum; None for other types."""
    match type_:
        case PrimitiveType(primitive, wide):
            return "Wide" if wide else SPELLINGS[primitive]
        case NamedType(name, Kind.ENUM):
            return name
        case _:
            return None
