"""What all generated classes share, and the error of the codecs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, ClassVar, Self

_MAX_REPR_DEPTH = 3
_MAX_REPR_ITEMS = 4
_MAX_REPR_TEXT = 80


class CodecError(ValueError):
    """Bytes or values that are not a valid encoding, or a tree that cannot be encoded.

    Args:
        message: What was expected and what was there.
        path: Where, for example `graph_module.graph.nodes[3].inputs[1].arg`; empty for the whole.

    Example:
        >>> str(CodecError("expected a string, found 3", "graph_module.graph.nodes[3].target"))
        'graph_module.graph.nodes[3].target: expected a string, found 3'
    """

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message, path)
        self.message = message
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class DepthError(CodecError):
    """A tree that nests deeper than an encoding allows: JSON holds 128 levels, Thrift 64."""


class WidthError(CodecError):
    """An integer that is longer than an encoding allows: JSON holds 4,300 digits, Thrift 64 bits."""


class Struct:
    """Base of all structs: dataclasses that are mutable, compare by value and are not hashable."""

    __slots__ = ()
    #: Thrift ids of the fields, in the order of the constructor.
    FIELD_IDS: ClassVar[dict[str, int]]

    def __repr__(self) -> str:
        return _text(self, 0)


class Union:
    """Base of all unions: exactly one member is set, and reading another is an AttributeError.

    Make one with `Class.create(as_int=1)` or, several times faster, with `Class.of_int(1)`. Assigning to a
    member makes it the one that is set. Unions compare by member and value and are not hashable.

    Attributes:
        type: The name of the member that is set, such as `as_int`. Read only.
    """

    __slots__ = ("type",)
    __match_args__ = ("type", "value")
    #: Thrift ids of the members, in the order of the schema.
    FIELD_IDS: ClassVar[dict[str, int]]
    _SLOTS: ClassVar[dict[str, str]]
    type: str

    def __init__(self) -> None:
        name = self.__class__.__name__
        raise TypeError(f"{name} has exactly one member: use {name}.create(member=value)")

    @classmethod
    def create(cls, /, **member: Any) -> Self:
        """Makes a union of the one member given by keyword.

        Raises:
            TypeError: Not exactly one member, an unknown one, or None for its value.
        """
        if len(member) != 1:
            raise TypeError(f"{cls.__name__}.create() takes exactly one member, found {len(member)}")
        self = cls.__new__(cls)
        for slot in cls._SLOTS.values():
            setattr(self, slot, None)
        self.type = ""
        for name, value in member.items():
            self._become(name, value)
        return self

    @property
    def value(self) -> Any:
        """The value of the member that is set."""
        return getattr(self, self._SLOTS[self.type])

    def _become(self, name: str, value: object) -> None:
        slot = self._SLOTS.get(name)
        if slot is None:
            raise TypeError(f"{self.__class__.__name__} has no member {name!r}")
        if value is None:
            raise TypeError(f"{self.__class__.__name__}.{name} cannot be None")
        if self.type:
            setattr(self, self._SLOTS[self.type], None)
        setattr(self, slot, value)
        self.type = name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Union) or other.__class__ is not self.__class__:
            return NotImplemented
        return self.type == other.type and bool(self.value == other.value)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        return _text(self, 0)


def unset(union: Union, name: str) -> AttributeError:
    """The error for reading a member that is not the one set."""
    return AttributeError(f"{union.__class__.__name__}.{name} is not set; the member set is {union.type}")


def _text(value: object, depth: int) -> str:
    # A whole program's repr would be megabytes, so depth, items and text are cut.
    match value:
        case Struct() | Union() if depth >= _MAX_REPR_DEPTH:
            return f"{value.__class__.__name__}(...)"
        case Union():
            return f"{value.__class__.__name__}({value.type}={_text(value.value, depth + 1)})"
        case Struct():
            texts = (f"{name}={_text(held, depth + 1)}" for name, held in _shown_fields(value))
            return f"{value.__class__.__name__}({', '.join(texts)})"
        case list():
            return f"[{_items((_text(item, depth + 1) for item in value), len(value))}]"
        case dict():
            pairs = (f"{key!r}: {_text(item, depth + 1)}" for key, item in value.items())
            return f"{{{_items(pairs, len(value))}}}"
        case str() if len(value) > _MAX_REPR_TEXT:
            return f"{value[:_MAX_REPR_TEXT]!r}..."
        case _:
            return repr(value)


def _shown_fields(struct: Any) -> Iterator[tuple[str, Any]]:
    """A struct's fields, but for additions to PyTorch's types that are unset: they are many."""
    for field in fields(struct):
        held = getattr(struct, field.name)
        if held is not None or not field.kw_only:
            yield field.name, held


def _items(texts: Iterator[str], count: int) -> str:
    shown = [text for text, _ in zip(texts, range(_MAX_REPR_ITEMS), strict=False)]
    more = [f"... {count - len(shown)} more"] if count > len(shown) else []
    return ", ".join(shown + more)
