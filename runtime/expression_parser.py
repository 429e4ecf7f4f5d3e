"""Symbolic expressions as text: what sympy's `srepr` writes for programs, parsed without evaluating it.

sympy's own reader, `sympify`, evaluates the text as Python. This one knows a fixed grammar and a fixed table
of functions, and returns a tree of `expressions.py`. It needs neither torch nor sympy.

    expression  = symbol | number | constant | application
    symbol      = "Symbol('" name "'" {", " assumption "=" ("True" | "False")} ")"
    number      = "Integer(" int ")" | "Rational(" int ", " int ")"
                | "Float('" decimal "', precision=" int ")"
    constant    = ["-"] ("oo" | "int_oo") | "true" | "false" | "nan" | "zoo" | "pi" | "E"
    application = function "(" expression {", " expression} ")"
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from .errors import DeserializeError
from .expressions import (
    ASSUMPTIONS,
    CONSTANTS,
    FUNCTIONS,
    RELATIONS,
    Apply,
    Constant,
    Expression,
    Float,
    Integer,
    Rational,
    Signature,
    Sort,
    Symbol,
)
from .limits import DEFAULT_LIMITS, Limits, raising

_MAX_DECIMAL_EXPONENT = 324  # of the smallest double; the largest has 308

_TOKEN = re.compile(
    r"""[ ]*(?:
        (?P<name>[A-Za-z_][A-Za-z0-9_]*) | (?P<integer>-?[0-9]+)
        | (?P<string>'[^'\\\x00-\x1f]*') | (?P<mark>[(),=-])
    )""",
    re.ASCII | re.VERBOSE,
)
_SYMBOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_DECIMAL = re.compile(r"-?[0-9]{1,400}(\.[0-9]{0,400})?(e[+-]?[0-9]{1,9})?|[+-]?inf|nan", re.ASCII)

# A relation of numbers alone is true or false, and sympy writes just that. Where it fails to see which, as of
# `0 <= ToFloat(0.0)`, cases with such a condition make it calculate without end. So do numbers beside symbols
# whose value it fails to see: of any function but these.
_SEEN_THROUGH = frozenset("Add Mul Pow ExprCondPair".split())

# Functions whose value is a float, and those whose value is one if an argument is.
_FLOAT_VALUED = frozenset(
    "ToFloat TruncToFloat IntTrueDiv FloatTrueDiv FloatPow RoundDecimal".split()
    + [name for name in FUNCTIONS if name.startswith("OpaqueUnaryFn_")]
)
_FLOAT_PRESERVING = frozenset(
    "Add Mul Pow Abs Max Min Identity Where Piecewise ExprCondPair Mod PythonMod".split()
)
# Given floats, these search for a common divisor without end. torch gives them integers only.
_NO_FLOATS = frozenset("FloorDiv CleanDiv CeilDiv RShift ModularIndexing".split())

# What PyTorch finds the range of in time that doubles with each that is in another.
_DIVISIONS = frozenset("FloorDiv CleanDiv CeilDiv Mod PythonMod ModularIndexing".split())


class _Part(NamedTuple):
    """A parsed expression with its sort and two bounds: the bits of its value, for symbols below 2**64, and
    the terms of the polynomial that it would expand to."""

    expression: Expression
    sort: Sort
    bits: int
    terms: int
    is_float: bool = False
    has_symbols: bool = False
    has_opaque: bool = False  # functions of numbers whose value sympy does not see
    divisions: int = 0  # nested in each other


@lru_cache(maxsize=4_096)
def parse_expression(text: str, limits: Limits = DEFAULT_LIMITS) -> Expression:
    """Parse the text of one symbolic expression.

    Args:
        text: What `sympy.srepr` writes for an expression over the symbols and functions that programs use.
        limits: Bounds. sympy folds constants and torch expands products while it builds and checks an
            expression, so a short text must not make them compute numbers or polynomials of any size.

    Returns:
        An immutable tree. Equal texts give the same object.

    Raises:
        DeserializeError: The text is not such an expression, or exceeds a limit; the path is the position in
            the text.

    Example:
        >>> parse_expression("Mul(Symbol('s0'), Integer(2))")
        Apply(function='Mul', arguments=(Symbol(name='s0', assumptions=()), Integer(value=2)))
    """
    if len(text) > limits.expression_length:
        raise DeserializeError(
            f"expected an expression of at most {limits.expression_length} characters, found {len(text)}",
            path="column 1",
            hint=raising("expression_length"),
        )
    try:
        return _Parser(text, limits).parse()
    except (RecursionError, ValueError) as error:  # of raised limits only: the default ones come first
        raise DeserializeError(
            f"expected an expression that Python can hold, found one that it cannot: {error}"
        ) from error


class _Parser:
    def __init__(self, text: str, limits: Limits) -> None:
        self._text = text
        self._limits = limits
        self._at = 0  # end of the last token
        self._start = 0  # begin of the last token
        self._nodes = 0

    def parse(self) -> Expression:
        part = self._expression(0)
        if part.sort == "case":
            raise self._fault("expected a number or a boolean, found an ExprCondPair on its own")
        if self._text[self._at :].strip(" "):
            self._start = self._at
            raise self._fault(f"expected the end of the expression, found {self._rest()}")
        return part.expression

    # -- tokens

    def _next(self, expected: str) -> tuple[str, str]:
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            self._start = self._at
            raise self._fault(f"expected {expected}, found {self._rest()}")
        kind = match.lastgroup
        assert kind is not None
        self._start, self._at = match.span(kind)
        return kind, match[kind]

    def _expect(self, kind: str, expected: str) -> str:
        found, value = self._next(expected)
        if found != kind:
            raise self._fault(f"expected {expected}, found {value!r}")
        return value

    def _mark(self, mark: str) -> None:
        found, value = self._next(repr(mark))
        if (found, value) != ("mark", mark):
            raise self._fault(f"expected {mark!r}, found {value!r}")

    def _more(self) -> bool:
        """Whether another argument follows: consumes "," or ")"."""
        found, value = self._next("',' or ')'")
        if found != "mark" or value not in (",", ")"):
            raise self._fault(f"expected ',' or ')', found {value!r}")
        return value == ","

    def _rest(self) -> str:
        rest = self._text[self._at : self._at + 20]
        return repr(rest) if rest.strip(" ") else "the end of the text"

    def _fault(self, message: str, limit: str | None = None) -> DeserializeError:
        hint = None if limit is None else raising(limit)
        return DeserializeError(message, path=f"column {self._start + 1}", hint=hint)

    def _bound(self, limit: str, found: int, expected: str) -> None:
        """Refuse more than a limit allows; `expected` says what, with the limit in place of `{}`."""
        if found > (most := getattr(self._limits, limit)):
            raise self._fault(expected.format(most), limit)

    # -- expressions

    def _expression(self, depth: int) -> _Part:
        kind, name = self._next("an expression")
        self._nodes += 1
        if depth > self._limits.expression_depth:
            self._bound("expression_depth", depth, "expected at most {} nested functions, found more")
        if self._nodes > self._limits.expression_terms:
            self._bound("expression_terms", self._nodes, "expected at most {} terms, found more")
        if (kind, name) == ("mark", "-"):
            name = "-" + self._expect("name", "'oo' or 'int_oo'")
            if name not in CONSTANTS:
                raise self._fault(f"expected 'oo' or 'int_oo' after '-', found {name[1:]!r}")
        elif kind != "name":
            raise self._fault(f"expected an expression, found {name!r}")
        if name in CONSTANTS:
            return _Part(Constant(name), CONSTANTS[name], 64, 1)
        if name == "Symbol":
            return self._symbol()
        if name == "Integer":
            return self._integer()
        if name == "Rational":
            return self._rational()
        if name == "Float":
            return self._float()
        if name in FUNCTIONS:
            return self._apply(name, depth)
        raise self._fault(f"expected a symbol, a number or a known function, found {name!r}")

    def _symbol(self) -> _Part:
        self._mark("(")
        name = self._expect("string", "the name of a symbol in single quotes")[1:-1]
        if not _SYMBOL_NAME.fullmatch(name):
            raise self._fault(f"expected an identifier as the name of a symbol, found {name[:40]!r}")
        assumptions: dict[str, bool] = {}
        while self._more():
            key = self._expect("name", "an assumption")
            if key not in ASSUMPTIONS:
                raise self._fault(f"expected an assumption of sympy such as 'integer', found {key!r}")
            if key in assumptions:
                raise self._fault(f"expected each assumption once, found {key!r} again")
            self._mark("=")
            value = self._expect("name", "'True' or 'False'")
            if value not in ("True", "False"):
                raise self._fault(f"expected 'True' or 'False', found {value!r}")
            assumptions[key] = value == "True"
        return _Part(Symbol(name, tuple(assumptions.items())), "number", 64, 1, has_symbols=True)

    def _integer(self) -> _Part:
        self._mark("(")
        value = self._whole_number()
        self._mark(")")
        return _Part(Integer(value), "number", value.bit_length(), 1)

    def _rational(self) -> _Part:
        self._mark("(")
        numerator = self._whole_number()
        self._mark(",")
        denominator = self._whole_number()
        self._mark(")")
        if denominator < 1:
            raise self._fault(f"expected a denominator of at least 1, found {denominator}")
        return _Part(
            Rational(numerator, denominator),
            "number",
            max(numerator.bit_length(), denominator.bit_length()),
            1,
        )

    def _whole_number(self) -> int:
        digits = self._expect("integer", "an integer")
        # Converting a long text costs more than its length, so digits are counted first: 3.3 bits each.
        bits = len(digits.lstrip("-")) * 10 // 3 - 3
        value = int(digits) if bits <= self._limits.integer_bits else None
        if value is None or value.bit_length() > self._limits.integer_bits:
            found = f"expected an integer of at most {{}} bits, found {len(digits)} digits"
            self._bound("integer_bits", bits if value is None else value.bit_length(), found)
        assert value is not None  # that was too many bits
        return value

    def _float(self) -> _Part:
        self._mark("(")
        text = self._expect("string", "a decimal number in single quotes")[1:-1]
        if not _DECIMAL.fullmatch(text):
            raise self._fault(f"expected a decimal number, found {text[:40]!r}")
        # As decimal digits: of what sympy writes for the largest double, float() makes infinity.
        digits = Decimal(text)
        exponent = abs(digits.adjusted()) if digits.is_finite() and digits else 0
        if exponent > _MAX_DECIMAL_EXPONENT:
            raise self._fault(f"expected a number that a double can hold, found {text[:40]!r}")
        self._mark(",")
        if (key := self._expect("name", "'precision'")) != "precision":
            raise self._fault(f"expected 'precision', found {key!r}")
        self._mark("=")
        precision = self._whole_number()
        expected = f"expected a precision of 1 to {{}} bits, found {precision}"
        self._bound("float_precision", precision, expected)
        if precision < 1:
            raise self._fault(expected.format(self._limits.float_precision))
        self._mark(")")
        return _Part(Float(text, precision), "number", max(53, 4 * exponent), 1, True)

    def _apply(self, function: str, depth: int) -> _Part:
        signature = FUNCTIONS[function]
        start = self._start
        self._mark("(")
        parts: list[_Part] = []
        if signature.least == 0 and self._text.startswith(")", self._at):
            self._mark(")")
        else:
            while True:
                part = self._expression(depth + 1)
                wanted = signature.arguments[min(len(parts), len(signature.arguments) - 1)]
                if part.sort != wanted:
                    raise self._fault(
                        f"expected a {wanted} as argument {len(parts) + 1} of {function}, found a {part.sort}"
                    )
                if part.is_float and function in _NO_FLOATS:
                    raise self._fault(
                        f"expected an integer as argument {len(parts) + 1} of {function}, found a float"
                    )
                parts.append(part)
                if not self._more():
                    break
        self._start = start
        if len(parts) < signature.least or (signature.most is not None and len(parts) > signature.most):
            raise self._fault(f"expected {_count(signature)} for {function}, found {len(parts)}")
        has_symbols = any(part.has_symbols for part in parts)
        has_opaque = any(part.has_opaque for part in parts) or not (has_symbols or function in _SEEN_THROUGH)
        if function in RELATIONS and (has_opaque or not has_symbols):
            raise self._fault(
                f"expected symbols in all that a relation compares, found {function} of numbers"
            )
        bits, terms = self._size(function, parts)
        self._bound(
            "value_bits", bits, f"expected a value of at most {{}} bits, found {function} of up to {bits}"
        )
        self._bound(
            "expanded_terms", terms, f"expected at most {{}} terms when expanded, found {function} of {terms}"
        )
        divisions = max((part.divisions for part in parts), default=0) + (function in _DIVISIONS)
        self._bound(
            "nested_divisions",
            divisions,
            f"expected at most {{}} quotients and remainders in each other, found {divisions}",
        )
        is_float = function in _FLOAT_VALUED or (
            function in _FLOAT_PRESERVING and any(part.is_float for part in parts)
        )
        expression = Apply(function, tuple(part.expression for part in parts))
        return _Part(expression, signature.result, bits, terms, is_float, has_symbols, has_opaque, divisions)

    def _size(self, function: str, parts: list[_Part]) -> tuple[int, int]:
        bits = [part.bits for part in parts]
        terms = [part.terms for part in parts]
        match function:
            case "Add":
                return max(bits, default=0) + len(bits).bit_length(), max(1, sum(terms))
            case "Mul":
                return sum(bits), math.prod(terms)
            case "Pow" | "PowByNatural":
                return self._power_size(function, parts)
            case "Piecewise" | "ExprCondPair" | "Where" | "Max" | "Min" | "Identity":
                return max(bits), max(terms)
            case _:
                return max(bits, default=0) + 1, 1

    def _power_size(self, function: str, parts: list[_Part]) -> tuple[int, int]:
        base, exponent = parts
        match exponent.expression:
            case Integer(value=value):
                power = abs(value)
            case _ if function == "PowByNatural":
                return base.bits, base.terms  # torch bounds what it computes for a symbolic exponent
            case _:
                # No fraction: whether a sum of roots is zero, sympy computes without end. Exporters write
                # OpaqueUnaryFn_sqrt and FloatPow.
                raise self._fault("expected a literal integer as the exponent of Pow")
        self._bound("exponent", power, f"expected an exponent of at most {{}}, found {power}")
        return base.bits * power, base.terms**power


def _count(signature: Signature) -> str:
    if signature.most is None:
        return f"at least {signature.least} argument" + "s" * (signature.least != 1)
    return f"{signature.least} argument" + "s" * (signature.least != 1)
