"""The spelling of types in schema.yaml: `optional list<SymInt>` and back."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .model import Kind, ListType, MapType, NamedType, Primitive, PrimitiveType, TypeRef
from .source import shortened

_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*|[<>,]|\S)")
_PRIMITIVES = {
    **{primitive.value: PrimitiveType(primitive) for primitive in Primitive},
    "integer": PrimitiveType(Primitive.I64, wide=True),
}
_MAX_DEPTH = 8


class SpellingError(Exception):
    """A type that does not parse: which rule it breaks, the offset in the text, what is wrong, and a hint."""

    def __init__(self, rule: str, offset: int, message: str, hint: str | None = None) -> None:
        super().__init__(rule, offset, message, hint)
        self.rule = rule
        self.offset = offset
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message


def parse_type(text: str, kinds: Mapping[str, Kind]) -> tuple[TypeRef, bool]:
    """Parses a type.

    Args:
        text: Such as `i64`, `list<Node>`, `map<string, list<SymInt>>`, `optional string`.
        kinds: The names that are defined.

    Returns:
        The type, and whether it is optional.

    Raises:
        SpellingError: With the offset of the first thing that is wrong.

    Example:
        >>> parse_type("optional list<string>", {})
        (ListType(item=PrimitiveType(primitive=<Primitive.STRING: 'string'>, wide=False)), True)
    """
    parser = _Parser(text, kinds)
    optional = parser.peek() == "optional"
    if optional:
        parser.take()
    parsed = parser.type(0)
    parser.expect_end()
    return parsed, optional


class _Parser:
    def __init__(self, text: str, kinds: Mapping[str, Kind]) -> None:
        self._tokens = [(match[1], match.start(1)) for match in _TOKEN.finditer(text)]
        self._end = len(text)
        self._kinds = kinds

    def peek(self) -> str | None:
        return self._tokens[0][0] if self._tokens else None

    def take(self) -> tuple[str, int]:
        return self._tokens.pop(0) if self._tokens else ("", self._end)

    def type(self, depth: int) -> TypeRef:
        name, offset = self.take()
        if depth > _MAX_DEPTH:
            raise SpellingError(
                "bad-type", offset, f"expected at most {_MAX_DEPTH} nested containers, found more"
            )
        if name == "list":
            self._expect("<")
            item = self.type(depth + 1)
            self._expect(">")
            return ListType(item)
        if name == "map":
            self._expect("<")
            self._expect("string", "Keys are always strings: JSON has no others")
            self._expect(",", "Within braces, YAML ends the type here: put it in quotes")
            value = self.type(depth + 1)
            self._expect(">")
            return MapType(value)
        if name in _PRIMITIVES:
            return _PRIMITIVES[name]
        if name in self._kinds:
            return NamedType(name, self._kinds[name])
        raise _unknown(name, offset)

    def expect_end(self) -> None:
        if self._tokens:
            token, offset = self._tokens[0]
            raise SpellingError(
                "bad-type", offset, f"expected the end of the type, found `{shortened(token)}`"
            )

    def _expect(self, token: str, hint: str | None = None) -> None:
        found, offset = self.take()
        if found != token:
            what = f"`{shortened(found)}`" if found else "the end of the type"
            raise SpellingError("bad-type", offset, f"expected `{token}`, found {what}", hint)


def _unknown(name: str, offset: int) -> SpellingError:
    if name == "optional":
        hint = "A field is optional as a whole; elements cannot be"
        return SpellingError("bad-type", offset, "`optional` stands only at the start of a type", hint)
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        primitives = ", ".join(_PRIMITIVES)
        hint = f"Define it under `types`, or use {primitives}, list<T>, map<string, T>"
        return SpellingError("undefined-type", offset, f"the type `{shortened(name)}` is not defined", hint)
    what = f"`{name}`" if name else "the end of the type"
    return SpellingError("bad-type", offset, f"expected a type, found {what}")
