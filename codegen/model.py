"""The resolved schema: what every template, rule and comparison reads.

A model is immutable and complete: each type name has been looked up, each default checked, each missing
`since` filled in from its type. Nothing in it depends on a target language: that is decided in the target
modules.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

#: Ids of our own fields in PyTorch's structs start here; PyTorch's stay below.
FIRST_OWN_ID = 1000


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A version of PyTorch's export format, such as 8.20 (minor 20, not a decimal fraction)."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a schema file; lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Kind(enum.Enum):
    """What a type of the schema is."""

    ENUM = "enum"
    STRUCT = "struct"
    UNION = "union"


class Primitive(enum.Enum):
    """The scalar types of the format, spelled as in Thrift."""

    BOOL = "bool"
    I64 = "i64"
    DOUBLE = "double"
    STRING = "string"
    BINARY = "binary"


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A scalar type as a field has it.

    Attributes:
        wide: Of I64, spelled `integer` in schema.yaml: JSON holds more than 64 bits, as PyTorch's does.
    """

    primitive: Primitive
    wide: bool = False

    def __str__(self) -> str:
        return self.primitive.value


@dataclass(frozen=True, slots=True)
class NamedType:
    """A reference to an enum, struct or union of the schema; look the definition up in `Schema.types`."""

    name: str
    kind: Kind

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ListType:
    """`list<item>`."""

    item: TypeRef

    def __str__(self) -> str:
        return f"list<{self.item}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """A map with string keys, the only keys that both encodings can hold."""

    value: TypeRef

    def __str__(self) -> str:
        return f"map<string, {self.value}>"


TypeRef = PrimitiveType | NamedType | ListType | MapType


def is_wide(ref: TypeRef) -> bool:
    """Whether a type holds an `integer`, which other targets than Python and JSON spell `i64`."""
    match ref:
        case PrimitiveType(wide=wide):
            return wide
        case ListType(inner) | MapType(inner):
            return is_wide(inner)
        case NamedType():
            return False


#: A default as schema.yaml spells it. Containers are always empty; an enum's default is its value's name.
DefaultValue = bool | int | float | str | tuple[()] | None


@dataclass(frozen=True, slots=True)
class Default:
    """A field's default. A field without one (`Field.default is None`) is a required argument."""

    value: DefaultValue


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct, or a member of a union."""

    name: str
    id: int
    type: TypeRef
    optional: bool
    default: Default | None
    doc: str
    since: Version | None
    since_revision: int | None
    position: Position

    @property
    def own(self) -> bool:
        """Whether the field is pt2wire's addition rather than PyTorch's."""
        return self.since_revision is not None

    @property
    def demanded(self) -> bool:
        """Whether a document without it is refused: optional ones may lack even if Python wants them."""
        return not self.optional and self.default is None


@dataclass(frozen=True, slots=True)
class EnumValue:
    """A value of an enum.

    `torch` and `c10` are the names that it maps to there, where it maps to any; `bits` is the size of an
    element, where the value stands for a type of elements.
    """

    name: str
    value: int
    doc: str
    since: Version | None
    since_revision: int | None
    torch: str | None
    c10: str | None
    bits: int | None
    position: Position

    @property
    def own(self) -> bool:
        """Whether the value is pt2wire's addition rather than PyTorch's."""
        return self.since_revision is not None


@dataclass(frozen=True, slots=True)
class TypeDef:
    """An enum (has `values`), or a struct or union (has `fields`), in the order of schema.yaml.

    `returned` names the members that have a reserved number or name, as PyTorch has brought it back.
    """

    name: str
    kind: Kind
    doc: str
    since: Version | None
    since_revision: int | None
    fields: tuple[Field, ...]
    values: tuple[EnumValue, ...]
    reserved_ids: tuple[int, ...]
    reserved_names: tuple[str, ...]
    returned: tuple[str, ...]
    position: Position

    @property
    def own(self) -> bool:
        """Whether the type is pt2wire's addition rather than PyTorch's."""
        return self.since_revision is not None

    @property
    def positional(self) -> tuple[Field, ...]:
        """The fields that constructors take by place. In types of PyTorch's, ours go by name."""
        return tuple(field for field in self.fields if self.own or not field.own)

    @property
    def named(self) -> tuple[Field, ...]:
        """The others, which JSON has behind those."""
        return tuple(field for field in self.fields if field.own and not self.own)


@dataclass(frozen=True, slots=True)
class Release:
    """One line of the version log."""

    version: Version
    torch: str
    note: str
    position: Position


@dataclass(frozen=True, slots=True)
class Schema:
    """A whole schema. `types` keeps the order of the file; `ordered` is the by-value order for C++.

    `digest` is a SHA-256 over all that is said here but `places`, the positions of the top-level keys.
    """

    name: str
    version: Version
    oldest_version: Version
    revision: int
    treespec_version: int
    log: tuple[Release, ...]
    types: dict[str, TypeDef]
    ordered: tuple[TypeDef, ...]
    digest: str
    places: dict[str, Position]


Member = Field | EnumValue


def number(member: Member) -> int:
    """What stands for a member in bytes: a field's id, an enum value's value."""
    return member.id if isinstance(member, Field) else member.value


def members(definition: TypeDef) -> tuple[Member, ...]:
    """The fields of a struct, the members of a union or the values of an enum."""
    return definition.values if definition.kind is Kind.ENUM else definition.fields
