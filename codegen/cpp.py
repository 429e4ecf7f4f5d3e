"""The C++ target: one header of class templates over a storage policy, and tables for generic code.

The header holds no logic. Decoding, checking and memory are handwritten, in runtime/include/pt2wire.
"""

from __future__ import annotations

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
from .render import banner, render

#: Words that cannot be names in C++17 or 20, and macros that GNU compilers define by default.
KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
    char32_t class compl concept const consteval constexpr constinit const_cast continue contract_assert
    co_await
    co_return co_yield decltype default delete do double dynamic_cast else enum explicit export extern
    false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr
    operator or or_eq private protected public register reinterpret_cast requires return short signed
    sizeof static static_assert static_cast struct switch template this thread_local throw true try
    typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq linux
    unix i386 errno stdin stdout stderr assert NULL EOF
    """.split()
)
#: Names that every union has for itself.
UNION_NAMES = frozenset(
    "Tag tag index unknown member_name visit variant get get_if find emplace make set Variant".split()
)

#: A union's member over this size (bytes, in View storage) is kept beside the union, which stays at 40 bytes.
_INLINE_LIMIT = 32

#: Functions on an enum's values: name, doc, and the attribute of `EnumValue` that they give.
_TABLES = (
    ("name", "The name in schema.yaml; empty where there is none.", "name"),
    ("torch_name", "The name in `torch`; empty where there is none.", "torch"),
    ("c10_name", "The name in `c10`; empty where there is none.", "c10"),
    ("bits", "The size of one element in bits; 0 where there is none.", "bits"),
)


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a type looks in C++ and on the wire; sizes in bytes, `min_size` that of its shortest encoding."""

    spelling: str
    wire: str
    by_value: bool
    size: int
    alignment: int
    min_size: int


_PRIMITIVES = {
    Primitive.BOOL: _Shape("bool", "boolean", True, 1, 1, 1),
    Primitive.I64: _Shape("std::int64_t", "i64", True, 8, 8, 1),
    Primitive.DOUBLE: _Shape("double", "f64", True, 8, 8, 8),
    Primitive.STRING: _Shape("String<S>", "text", True, 16, 8, 1),
    Primitive.BINARY: _Shape("Binary<S>", "text", False, 16, 8, 1),
}


@dataclass(frozen=True, slots=True)
class _Value:
    doc: str
    name: str
    text: str
    number: int


@dataclass(frozen=True, slots=True)
class _Table:
    """A function from an enum's values to what schema.yaml says of them; `result` is its C++ type."""

    function: str
    doc: str
    result: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _ValueInfo:
    """What a field or item holds: the name of its `ValueInfo`, and how that is initialized."""

    name: str
    info: str


@dataclass(frozen=True, slots=True)
class _Member:
    doc: str
    name: str
    info: str
    id: int
    position: int
    type: str
    result: str
    stored: str
    initializer: str


@dataclass(frozen=True, slots=True)
class _Type:
    doc: str
    name: str
    template: str
    keyword: str
    members: tuple[_Member, ...] = ()
    written: tuple[_Member, ...] = ()
    zipped: str = ""
    stored: str = ""
    min_size: int = 0
    values: tuple[_Value, ...] = ()
    tables: tuple[_Table, ...] = ()


def outputs(schema: Schema) -> dict[str, str]:
    """include/pt2wire/schema.h."""
    shapes = _shapes(schema)
    types = [_type(definition, shapes) for definition in schema.ordered]
    constants = (
        (
            "schema_version_major",
            schema.version.major,
            "The version of PyTorch's format that this header describes.",
        ),
        ("schema_version_minor", schema.version.minor, "Minor versions add; 8.20 is twenty, not a fraction."),
        ("oldest_version_major", schema.oldest_version.major, "The oldest version that it reads."),
        ("oldest_version_minor", schema.oldest_version.minor, "The oldest version that it reads."),
        ("schema_revision", schema.revision, "The revision of pt2wire's own fields (ids from 1000)."),
        ("treespec_version", schema.treespec_version, "The version of the text form of treespecs."),
    )
    text = render(
        "cpp/schema.h.j2",
        banner=banner(schema, "//"),
        constants=constants,
        enums=[type_ for type_ in types if type_.keyword == "enum"],
        types=[type_ for type_ in types if type_.keyword != "enum"],
        values=_values(schema),
    )
    return {"include/pt2wire/schema.h": text}


def safe_name(name: str, taken: frozenset[str] = frozenset()) -> str:
    """A name of the schema as C++ can have it: words of the language and `taken` get an underscore."""
    return f"{name}_" if name in KEYWORDS or name in taken else name


def _type(definition: TypeDef, shapes: dict[str, _Shape]) -> _Type:
    name = safe_name(definition.name)
    if definition.kind is Kind.ENUM:
        values = tuple(_value(value) for value in definition.values)
        return _Type(definition.doc, name, name, "enum", values=values, tables=_tables(definition))
    taken = UNION_NAMES if definition.kind is Kind.UNION else frozenset()
    members = tuple(
        _member(field, position, definition.kind, taken, shapes)
        for position, field in enumerate(definition.fields)
    )
    return _Type(
        definition.doc,
        name,
        f"basic::{name}<S>",
        "class" if definition.kind is Kind.UNION else "struct",
        members=members,
        written=tuple(sorted(members, key=lambda member: member.id)),
        zipped=" &&\n           ".join(f"f(a.{m.name}, b.{m.name})" for m in members) or "true",
        stored=", ".join(member.stored for member in members),
        min_size=shapes[definition.name].min_size,
    )


def _value(value: EnumValue) -> _Value:
    return _Value(value.doc, safe_name(value.name), _text(value.name), value.value)


def _tables(definition: TypeDef) -> tuple[_Table, ...]:
    tables = []
    for function, doc, attribute in _TABLES:
        facts = [(value, getattr(value, attribute)) for value in definition.values]
        rows = tuple((safe_name(value.name), _fact(fact)) for value, fact in facts if fact is not None)
        if rows:
            result = "std::uint32_t" if attribute == "bits" else "std::string_view"
            tables.append(_Table(function, doc, result, rows))
    return tuple(tables)


def _fact(fact: str | int) -> str:
    return _text(fact) if isinstance(fact, str) else str(fact)


def _member(
    field: Field, position: int, kind: Kind, taken: frozenset[str], shapes: dict[str, _Shape]
) -> _Member:
    shape = _shape(field.type, shapes)
    spelling = f"std::optional<{shape.spelling}>" if field.optional else shape.spelling
    required = kind is Kind.STRUCT and field.demanded
    return _Member(
        doc=field.doc,
        name=safe_name(field.name, taken),
        info=f"{{{field.id}, {_text(field.name)}, {_flag(required)}, {_flag(field.optional)}, "
        f"&Values::{_value_name(field.type)}}}",
        id=field.id,
        position=position,
        type=spelling,
        result=spelling if shape.by_value else f"const {spelling}&",
        stored=f"Indirect<S, {spelling}>" if shape.size > _INLINE_LIMIT else spelling,
        initializer=_initializer(field),
    )


def _initializer(field: Field) -> str:
    value = field.default.value if field.default else None
    if value is None or value == () or field.type == PrimitiveType(Primitive.BINARY):
        return "" if field.optional or not isinstance(field.type, PrimitiveType | NamedType) else "{}"
    if isinstance(value, bool):
        return f" = {_flag(value)}"
    if isinstance(value, str):
        return (
            f" = {field.type}::{safe_name(value)}"
            if isinstance(field.type, NamedType)
            else f"{{{_text(value)}}}"
        )
    if value == -(2**63):
        return " = -9223372036854775807 - 1"  # a sign is an operator, the number alone too large
    return f" = {value!r}"


def _flag(value: bool) -> str:
    return str(value).lower()


def _text(text: str) -> str:
    """A C++ string literal. Octal escapes end by themselves; hexadecimal ones would swallow digits."""
    plain = {byte: chr(byte) for byte in range(0x20, 0x7F) if chr(byte) not in '"\\?'}
    return '"' + "".join(plain.get(byte, f"\\{byte:03o}") for byte in text.encode()) + '"'


def _shape(type_: TypeRef, shapes: dict[str, _Shape]) -> _Shape:
    match type_:
        case PrimitiveType(primitive):
            return _PRIMITIVES[primitive]
        case NamedType(name):
            return shapes[name]
        case ListType(item):
            return _Shape(f"List<S, {_spelling(item)}>", "list", False, 16, 8, 1)
        case MapType(value):
            return _Shape(f"Map<S, {_spelling(value)}>", "map", False, 16, 8, 1)


def _values(schema: Schema) -> tuple[_ValueInfo, ...]:
    """What the fields of all structs and unions hold, items before their containers, each once."""
    found: dict[str, str] = {}
    for definition in schema.ordered:
        for field in definition.fields:
            _add_value(field.type, found)
    return tuple(_ValueInfo(name, info) for name, info in found.items())


def _add_value(type_: TypeRef, found: dict[str, str]) -> None:
    match type_:
        case PrimitiveType(primitive):
            binary = ", nullptr, nullptr, nullptr, true" if primitive is Primitive.BINARY else ""
            info = f"{{Wire::{_PRIMITIVES[primitive].wire}{binary}}}"
        case NamedType(name, Kind.ENUM):
            # In `Values`, names of types may be those of what fields hold.
            info = f"{{Wire::i32, nullptr, nullptr, has_name<pt2wire::{safe_name(name)}>}}"
        case NamedType(name):
            info = f"{{Wire::structure, &Types::{safe_name(name)}}}"
        case ListType(item) | MapType(item):
            _add_value(item, found)
            wire = "list" if isinstance(type_, ListType) else "map"
            info = f"{{Wire::{wire}, nullptr, &{_value_name(item)}}}"
    found[_value_name(type_)] = info


def _value_name(type_: TypeRef) -> str:
    match type_:
        case PrimitiveType(primitive):
            return _PRIMITIVES[primitive].wire if primitive is not Primitive.BINARY else "binary"
        case NamedType(name):
            return f"of_{safe_name(name)}"
        case ListType(item):
            return f"list_{_value_name(item)}"
        case MapType(value):
            return f"map_{_value_name(value)}"


def _spelling(type_: TypeRef) -> str:
    """A type inside a container, which may be one that is defined further down."""
    match type_:
        case PrimitiveType(primitive):
            return _PRIMITIVES[primitive].spelling
        case NamedType(name, kind):
            return safe_name(name) if kind is Kind.ENUM else f"{safe_name(name)}<S>"
        case ListType(item):
            return f"List<S, {_spelling(item)}>"
        case MapType(value):
            return f"Map<S, {_spelling(value)}>"


def _shapes(schema: Schema) -> dict[str, _Shape]:
    """The shape of every named type; by-value order makes one pass enough."""
    shapes: dict[str, _Shape] = {}
    for definition in schema.ordered:
        match definition.kind:
            case Kind.ENUM:
                shapes[definition.name] = _Shape(safe_name(definition.name), "i32", True, 4, 4, 1)
            case Kind.STRUCT:
                shapes[definition.name] = _struct_shape(definition, shapes)
            case Kind.UNION:
                shapes[definition.name] = _union_shape(definition, shapes)
    return shapes


def _struct_shape(definition: TypeDef, shapes: dict[str, _Shape]) -> _Shape:
    size, alignment, min_size = 0, 1, 1  # on the wire: one byte that ends the struct
    for field in definition.fields:
        shape = _shape(field.type, shapes)
        # std::optional puts its flag behind the value, at the value's alignment.
        field_size = shape.size + shape.alignment if field.optional else shape.size
        size = _round_up(size, shape.alignment) + field_size
        alignment = max(alignment, shape.alignment)
        if field.demanded:
            in_header = field.type == PrimitiveType(Primitive.BOOL)
            min_size += 1 if in_header else 1 + shape.min_size
    name = safe_name(definition.name)
    return _Shape(f"{name}<S>", "structure", False, _round_up(max(size, 1), alignment), alignment, min_size)


def _union_shape(definition: TypeDef, shapes: dict[str, _Shape]) -> _Shape:
    size, alignment = 2, 2  # of Unknown
    for field in definition.fields:
        shape = _shape(field.type, shapes)
        inline = shape.size <= _INLINE_LIMIT
        size = max(size, shape.size if inline else 8)
        alignment = max(alignment, shape.alignment if inline else 8)
    # A tag behind the members; on the wire, the header of a member (a bool lies in it) and the end.
    return _Shape(
        f"{safe_name(definition.name)}<S>", "structure", False, _round_up(size + 1, alignment), alignment, 2
    )


def _round_up(size: int, alignment: int) -> int:
    return (size + alignment - 1) // alignment * alignment
