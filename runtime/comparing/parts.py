"""Differences between two parts of trees that are known to be the same part, in words that a user knows."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal

from ..generated import Struct, Union, types
from ..spelling import describe_size


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two programs differ.

    Attributes:
        path: Where, in the names of the first program where it has one:
            `graph.nodes['linear'].inputs['bias']`, `range_constraints['s0'].max_val`, `weights['fc.weight']`.
        kind: "added" (only the second has it), "removed" (only the first has it) or "changed".
        before: What the first has; None where it has nothing.
        after: What the second has; None where it has nothing.
    """

    path: str
    kind: Literal["added", "removed", "changed"]
    before: str | None
    after: str | None

    def __str__(self) -> str:
        if self.kind == "changed":
            return f"{self.path}: {self.before} -> {self.after}"
        return f"{self.path}: {self.kind}: {self.after if self.kind == 'added' else self.before}"


def changed(path: str, before: object, after: object) -> Difference:
    """A difference between two parts that are both there."""
    return Difference(path, "changed", describe(before), describe(after))


def added(path: str, after: object) -> Difference:
    """A part that only the second program has."""
    return Difference(path, "added", None, describe(after))


def removed(path: str, before: object) -> Difference:
    """A part that only the first program has."""
    return Difference(path, "removed", describe(before), None)


def compare(path: str, a: Any, b: Any) -> Iterator[Difference]:
    """Differences between two parts, field by field; parts that fit into a line are compared as a whole."""
    if same(a, b):
        return
    if type(a) is not type(b) or isinstance(a, _WHOLE):
        yield changed(path, a, b)
    elif isinstance(a, Struct):
        for field in a.FIELD_IDS:
            place = path if field == "arg" else f"{path}.{field}"
            yield from compare(place, getattr(a, field), getattr(b, field))
    elif isinstance(a, Union) and a.type == b.type:
        yield from compare(path, a.value, b.value)
    elif isinstance(a, dict):
        yield from compare_tables(path, a, b)
    elif isinstance(a, list) and len(a) == len(b) and isinstance(a[0], Struct | Union | list):
        for index, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from compare(f"{path}[{index}]", one, other)
    else:
        yield changed(path, a, b)


def compare_tables(
    path: str,
    a: dict[str, Any],
    b: dict[str, Any],
    inner: Callable[[str, Any, Any], Iterator[Difference]] = compare,
) -> Iterator[Difference]:
    """Differences between two tables, key by key."""
    for key in [*a, *(key for key in b if key not in a)]:
        place = f"{path}[{key!r}]"
        if key not in b:
            yield removed(place, a[key])
        elif key not in a:
            yield added(place, b[key])
        else:
            yield from inner(place, a[key], b[key])


def compare_sets(path: str, a: Sequence[str], b: Sequence[str]) -> Iterator[Difference]:
    """Differences between two lists whose order has no meaning."""
    left = list(b)
    for item in a:
        if item in left:
            left.remove(item)
        else:
            yield removed(path, item)
    yield from (added(path, item) for item in left)


def same(a: Any, b: Any) -> bool:
    """Whether two parts are equal: NaN equals NaN, and 0.0 is not -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Struct):
        return all(same(getattr(a, field), getattr(b, field)) for field in a.FIELD_IDS)
    if isinstance(a, Union):
        return a.type == b.type and same(a.value, b.value)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, float):
        return a.hex() == b.hex() if a == a else math.isnan(b)
    return bool(a == b)


# Compared and shown as a whole.
_WHOLE = (
    types.Argument,
    types.Device,
    types.SymBool,
    types.SymFloat,
    types.SymInt,
    types.SchemaVersion,
    types.NamedTupleDef,
)


def describe(part: Any) -> str:
    """A part of a tree as people write it; values of a graph appear as `%name`.

    Example:
        >>> describe(types.Argument.create(as_tensors=[types.TensorArgument("x"), types.TensorArgument("y")]))
        '[%x, %y]'
    """
    match part:
        case str():
            return part
        case IntEnum():
            return types.TORCH_NAMES.get(type(part), {}).get(part, part.name)
        case types.SymInt():
            return _with_hint(describe_size(part), part.value)
        case types.SymFloat() | types.SymBool():
            return _with_hint(_text_of_symbol(part), part.value)
        case types.Device():
            return part.type if part.index is None else f"{part.type}:{part.index}"
        case types.SchemaVersion():
            return f"{part.major}.{part.minor}"
        case types.Argument(type="as_none") | types.OptionalTensorArgument(type="as_none"):
            return "None"
        case types.Argument(type="as_string" | "as_strings"):
            return repr(part.value)
        case types.TensorArgument() | types.TokenArgument() | types.CustomObjArgument():
            return f"%{part.name}"
        case types.SymIntArgument() | types.SymFloatArgument() | types.SymBoolArgument():
            return f"%{part.value}" if part.type == "as_name" else describe(part.value)
        case types.ComplexValue():
            return repr(complex(part.real, part.imag))
        case types.GraphArgument():
            return f"a graph of {len(part.graph.nodes)} nodes"
        case types.RangeConstraint():
            bounds = ("-inf" if part.min_val is None else part.min_val, part.max_val)
            return f"{bounds[0]} to {'inf' if bounds[1] is None else bounds[1]}"
        case types.ModuleCallEntry():
            return "called" if part.signature is None else "called, with a signature"
        case types.InputSpec() | types.OutputSpec():
            return f"{part.type.replace('_', ' ')}, {describe(part.value)}"
        case Union():
            return describe(part.value)
        case Struct():
            fields = ((field, getattr(part, field)) for field in part.FIELD_IDS)
            return ", ".join(f"{field}: {describe(value)}" for field, value in fields)
        case bytes():
            return f"{len(part)} bytes of SHA-256 {hashlib.sha256(part).hexdigest()[:16]}..."
        case list():
            return f"[{', '.join(map(describe, part))}]"
        case dict():
            return f"{{{', '.join(f'{key!r}: {describe(value)}' for key, value in part.items())}}}"
    return repr(part)


def _with_hint(text: str, value: Any) -> str:
    if not isinstance(value, types.SymExpr) or value.hint is None:
        return text
    return f"{text} (hint {value.hint.value})"


def _text_of_symbol(part: types.SymFloat | types.SymBool) -> str:
    return part.as_expr.expr_str if part.type == "as_expr" else repr(part.value)
