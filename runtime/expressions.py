"""Symbolic expressions as immutable trees, and the table of functions that they may use.

`expression_parser.py` makes them from the text in a file, `importing/symbols.py` makes sympy objects from
them. Neither torch nor sympy is needed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

Sort = Literal["number", "boolean", "case"]


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol such as `s0`, with the assumptions it was written with, in the order written."""

    name: str
    assumptions: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Integer:
    value: int


@dataclass(frozen=True, slots=True)
class Rational:
    numerator: int
    denominator: int


@dataclass(frozen=True, slots=True)
class Float:
    """A decimal number as text, and its precision in bits."""

    text: str
    precision: int


@dataclass(frozen=True, slots=True)
class Constant:
    """A named constant: one of `CONSTANTS`."""

    name: str


@dataclass(frozen=True, slots=True)
class Apply:
    """A function of `FUNCTIONS` applied to its arguments."""

    function: str
    arguments: tuple[Expression, ...]


Expression = Symbol | Integer | Rational | Float | Constant | Apply


class Signature(NamedTuple):
    """What a function takes and gives: how many arguments, of which sorts (the last one repeats)."""

    least: int
    most: int | None
    arguments: tuple[Sort, ...]
    result: Sort


def _numbers(count: int, most: int | None = -1, result: Sort = "number") -> Signature:
    return Signature(count, count if most == -1 else most, ("number",), result)


RELATIONS = frozenset("Equality Unequality StrictLessThan LessThan StrictGreaterThan GreaterThan".split())

FUNCTIONS: dict[str, Signature] = {
    # sympy
    **dict.fromkeys("Add Mul".split(), _numbers(0, None)),
    "Pow": _numbers(2),
    **dict.fromkeys("Abs floor ceiling".split(), _numbers(1)),
    **dict.fromkeys(RELATIONS, _numbers(2, result="boolean")),
    **dict.fromkeys("And Or".split(), Signature(0, None, ("boolean",), "boolean")),
    "Not": Signature(1, 1, ("boolean",), "boolean"),
    "Piecewise": Signature(1, None, ("case",), "number"),
    "ExprCondPair": Signature(2, 2, ("number", "boolean"), "case"),
    # torch.utils._sympy.functions
    **dict.fromkeys("Max Min IsNonOverlappingAndDenseIndicator".split(), _numbers(1, None)),
    **dict.fromkeys("FloorDiv CleanDiv CeilDiv Mod PythonMod IntTrueDiv FloatTrueDiv".split(), _numbers(2)),
    **dict.fromkeys("LShift RShift PowByNatural FloatPow RoundDecimal".split(), _numbers(2)),
    **dict.fromkeys("ToFloat CeilToInt FloorToInt RoundToInt TruncToInt".split(), _numbers(1)),
    **dict.fromkeys("TruncToFloat Identity".split(), _numbers(1)),
    "ModularIndexing": _numbers(3),
    "Where": Signature(3, 3, ("boolean", "number"), "number"),
    **{f"BitwiseFn_bitwise_{name}": _numbers(2) for name in "and or xor".split()},
    **{
        f"OpaqueUnaryFn_{name}": _numbers(1)
        for name in "sqrt cos cosh sin sinh tan tanh asin acos atan exp log asinh log2".split()
    },
}

CONSTANTS: dict[str, Sort] = {
    **dict.fromkeys("oo -oo int_oo -int_oo zoo nan pi E".split(), "number"),
    **dict.fromkeys("true false".split(), "boolean"),
}

ASSUMPTIONS = frozenset(
    """
    commutative complex even extended_real finite infinite integer irrational
    negative nonnegative nonpositive nonzero odd positive rational real zero
    """.split()
)


def sort_of(expression: Expression) -> Sort:
    """Whether an expression is a number or a boolean.

    Example:
        >>> from pt2wire.expression_parser import parse_expression
        >>> sort_of(parse_expression("Equality(Symbol('s0'), Integer(2))"))
        'boolean'
    """
    match expression:
        case Apply(function=function):
            return FUNCTIONS[function].result
        case Constant(name=name):
            return CONSTANTS[name]
        case _:
            return "number"


def symbols_in(expression: Expression) -> Iterator[Symbol]:
    """All symbols of an expression, from left to right, each as often as it occurs.

    Example:
        >>> from pt2wire.expression_parser import parse_expression
        >>> [symbol.name for symbol in symbols_in(parse_expression("Mul(Symbol('s0'), Symbol('s1'))"))]
        ['s0', 's1']
    """
    if isinstance(expression, Symbol):
        yield expression
    elif isinstance(expression, Apply):
        for argument in expression.arguments:
            yield from symbols_in(argument)


def count_terms(expression: Expression) -> int:
    """How many symbols, numbers and functions an expression has.

    Example:
        >>> from pt2wire.expression_parser import parse_expression
        >>> count_terms(parse_expression("Mul(Symbol('s0'), Add(Integer(2), Symbol('s1')))"))
        5
    """
    if isinstance(expression, Apply):
        return 1 + sum(map(count_terms, expression.arguments))
    return 1
