"""Symbolic numbers: sympy expressions from text, hints, and the ranges of symbols."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import sympy
import torch.utils._sympy.functions
from sympy.functions.elementary.piecewise import ExprCondPair
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges
from torch.utils._traceback import CapturedTraceback

from .. import expressions
from ..errors import DeserializeError
from ..expression_parser import parse_expression
from ..expressions import Apply, Constant, Expression, Float, Integer, Rational, Sort, Symbol
from ..generated import types
from ..limits import DEFAULT_LIMITS, Limits, raising
from ..names import is_float_symbol
from .faults import within
from .shape_env import LazyShapeEnv

Hint = int | float | None


def _class(name: str) -> Any:
    # torch's Max, Min and Mod stand in for sympy's of the same name in every size that torch computes.
    return _SYMPY_CLASSES.get(name) or getattr(torch.utils._sympy.functions, name)


_SYMPY_CLASSES: dict[str, Any] = {
    "Add": sympy.Add,
    "Mul": sympy.Mul,
    "Pow": sympy.Pow,
    "Abs": sympy.Abs,
    "floor": sympy.floor,
    "ceiling": sympy.ceiling,
    "Equality": sympy.Equality,
    "Unequality": sympy.Unequality,
    "StrictLessThan": sympy.StrictLessThan,
    "LessThan": sympy.LessThan,
    "StrictGreaterThan": sympy.StrictGreaterThan,
    "GreaterThan": sympy.GreaterThan,
    "And": sympy.And,
    "Or": sympy.Or,
    "Not": sympy.Not,
    "Piecewise": sympy.Piecewise,
    "ExprCondPair": ExprCondPair,
}
#: The class behind each function that an expression may use.
_FUNCTIONS: dict[str, Any] = {name: _class(name) for name in expressions.FUNCTIONS}

_CONSTANTS: dict[str, Any] = {
    "oo": sympy.oo,
    "-oo": -sympy.oo,
    "int_oo": int_oo,
    "-int_oo": -int_oo,
    "zoo": sympy.zoo,
    "nan": sympy.nan,
    "pi": sympy.pi,
    "E": sympy.E,
    "true": sympy.true,
    "false": sympy.false,
}

_UNBACKED = re.compile(r"(?P<prefix>u|zuf)(?P<index>[0-9]+)", re.ASCII)
#: The assumptions that torch gives unbacked symbols, by prefix.
_UNBACKED_ASSUMPTIONS: Mapping[str, Mapping[str, bool]] = {"u": {"integer": True}, "zuf": {}}


class Symbols:
    """One program's symbolic numbers, all in one `ShapeEnv`.

    A program has thousands of symbolic sizes and a handful of distinct expressions: each is parsed and
    introduced to the `ShapeEnv` once.

    Args:
        ranges: The permitted range of each symbol, by name.
        limits: Bounds on expressions.

    Attributes:
        shape_env: Where torch keeps what it knows about the symbols.
        unbound: The unbacked symbols that first appeared in the graph being built, until the node that makes
            them is found. Each graph has its own set.
    """

    def __init__(self, ranges: Mapping[str, ValueRanges[Any]], limits: Limits = DEFAULT_LIMITS) -> None:
        self.shape_env = LazyShapeEnv(assume_static_by_default=True)
        self.unbound: set[sympy.Symbol] = set()
        self._ranges = ranges
        self._limits = limits
        # A dim derived from another has a range of its own: that of `2*s0`.
        self._compound = {name for name in ranges if not name.isidentifier()}
        self._printed = 0  # terms of what was printed to compare with these
        self._symbols: dict[str, Any] = {}
        self._expressions: dict[tuple[str, Sort], Any] = {}
        self._numbers: dict[Any, Any] = {}
        self._guessed: dict[int, Any] = {}  # the nodes of numbers without a hint, by their id
        # Where a symbol came from, for torch's messages: here, for all of them.
        self._stack = CapturedTraceback.extract(skip=1)  # type: ignore[no-untyped-call]
        for name in ranges:
            self._reserve(name)

    @property
    def by_name(self) -> Mapping[str, Any]:
        """The symbols that appeared so far, and the other expressions that have a range, by their text."""
        return self._symbols

    def expression(self, text: str, sort: Sort) -> Any:
        """The sympy expression for a text of the given sort."""
        known = self._expressions.get((text, sort))
        if known is not None:
            return known
        parsed = parse_expression(text, self._limits)
        if (found := expressions.sort_of(parsed)) != sort:
            raise DeserializeError(f"expected an expression for a {sort}, found one for a {found}")
        expression = self._expressions[text, sort] = import_expression(parsed)
        for symbol in expressions.symbols_in(parsed):
            self._introduce(_symbol(symbol))
        if self._compound:
            self._introduce_compound(expression)
        return expression

    def sym_int(self, text: str, hint: int | None) -> int | torch.SymInt:
        """The integer for an expression, with the value that tracing saw."""
        key = (text, hint)
        number = self._numbers.get(key)
        if number is None:
            expression = self.expression(text, "number")
            if expression.is_integer is False:
                raise DeserializeError(f"expected an expression for an integer, found {text[:80]}")
            self._set_hint(expression, None if hint is None else sympy.Integer(hint))
            number = self.shape_env.create_symintnode(expression, hint=hint)
            self._numbers[key] = self._noted(number, hint)
        return number

    def another(self, number: Any) -> Any:
        """A number equal to `number`, as an object of its own where it is symbolic."""
        if type(number) is not torch.SymInt:
            return number
        node = number.node
        hint = None if id(node) in self._guessed else node.hint
        return self._noted(self.shape_env.create_symintnode(node.expr, hint=hint), hint)

    def sym_float(self, text: str, hint: float | None) -> float | torch.SymFloat:
        """The float for an expression, with the value that tracing saw."""
        key = (text, hint, float)
        number = self._numbers.get(key)
        if number is None:
            expression = self.expression(text, "number")
            self._set_hint(expression, None if hint is None else sympy.Float(hint))
            number = self.shape_env.create_symfloatnode(expression, hint=hint)
            self._numbers[key] = self._noted(number, hint)
        return number

    def sym_bool(self, text: str) -> torch.SymBool:
        """The bool for an expression."""
        key = (text, None, bool)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self.shape_env.create_symboolnode(self.expression(text, "boolean"))
        return number

    def _noted(self, number: Any, hint: Hint) -> Any:
        if hint is None and isinstance(number, (torch.SymInt, torch.SymFloat)):
            self._guessed[id(number.node)] = number.node
        return number

    def forget_guesses(self) -> None:
        """Take away the hints that torch works out, from those of symbols, where none was written.

        Tracing saw none where it learned only later that a number depends on sizes of inputs. While values
        are built of numbers, the hints save torch from working out those of the results.
        """
        for node in self._guessed.values():
            node._hint = None

    def take_for_special(self, inputs: Iterable[Any]) -> None:
        """Let torch take it that sizes of inputs are neither 0 nor 1, as it does from the export on.

        A range that begins at 0 or 1 says what a program is called with; tracing computed as if there were
        more. Passes that compared a size with 1 would find it open, and guard against what is allowed.
        """
        for value in inputs:
            if isinstance(value, torch.Tensor):
                for size in value.size():
                    if isinstance(size, torch.SymInt) and (symbol := size.node.expr).is_Symbol:
                        self._raise_bound(symbol)

    def _raise_bound(self, symbol: sympy.Symbol) -> None:
        bounds = self.shape_env.var_to_range[symbol]
        if bounds.lower in (0, 1) and bounds.upper >= 2 and not _UNBACKED.fullmatch(symbol.name):
            self.shape_env.constrain_symbol_range(symbol, compiler_min=2, compiler_max=bounds.upper)

    def _set_hint(self, expression: Any, value: Any) -> None:
        if value is None or expression.is_number:
            return
        hints = self.shape_env.backed_var_to_val
        hints.setdefault(expression, value)
        if not expression.is_Symbol and len(expression.free_symbols) == 1:
            # A dim given as `4*d` may be all that there is of `d`.
            (symbol,) = expression.free_symbols
            if symbol not in hints and not _UNBACKED.fullmatch(symbol.name):
                solution = _solve_linear(expression, symbol, value)
                if solution is not None:
                    hints[symbol] = solution

    def _introduce(self, symbol: sympy.Symbol) -> None:
        name: str = symbol.name
        known = self._symbols.setdefault(name, symbol)
        if known is not symbol:
            if known != symbol:
                found = f"{sympy.srepr(known)} and {sympy.srepr(symbol)}"
                raise DeserializeError(f"expected one symbol named {name!r}, found {found}")
            return
        # torch asks for the range of each symbol; a file may leave out that of a backed one.
        bounds = self._ranges.get(name) or _widest(symbol)
        self.shape_env.constrain_symbol_range(symbol, compiler_min=bounds.lower, compiler_max=bounds.upper)
        if self._reserve(name):
            self.unbound.add(symbol)
        self.shape_env.var_to_stack[symbol] = self._stack

    def _introduce_compound(self, expression: Any) -> None:
        terms: dict[Any, int] = {}
        for part in sympy.postorder_traversal(expression):
            terms[part] = 1 + sum(terms[argument] for argument in part.args)
            if not part.args:
                continue
            self._printed += terms[part]
            if self._printed > self._limits.program_terms:
                most, hint = self._limits.program_terms, raising("program_terms")
                raise DeserializeError(
                    f"expected at most {most} terms where expressions have ranges, found more", hint=hint
                )
            # Not for the ShapeEnv: torch takes whatever has a range there for a symbol.
            if (name := str(part)) in self._compound:
                self._symbols.setdefault(name, part)

    def _reserve(self, name: str) -> bool:
        """Whether a name is that of an unbacked symbol; torch will not give it to another one then."""
        match = _UNBACKED.fullmatch(name)
        if match is None:
            return False
        counter = "unbacked_symint_counter" if match["prefix"] == "u" else "unbacked_symfloat_counter"
        following = int(match["index"]) + 1
        setattr(self.shape_env, counter, max(getattr(self.shape_env, counter), following))
        return True


def _widest(symbol: sympy.Symbol) -> ValueRanges[Any]:
    """What a symbol may be of which a file says nothing but its assumptions."""
    if symbol.is_integer:
        return ValueRanges(0 if symbol.is_nonnegative else -int_oo, int_oo)
    return ValueRanges(0.0 if symbol.is_nonnegative else -sympy.oo, sympy.oo)


def _solve_linear(expression: Any, symbol: sympy.Symbol, value: Any) -> Any:
    """The integer for a symbol of which `a*symbol + b` has an integer value; None if there is none."""
    constant = expression.xreplace({symbol: sympy.S.Zero})
    factor = expression.xreplace({symbol: sympy.S.One}) - constant
    if (
        not (factor.is_Integer and constant.is_Integer)
        or factor == 0
        or factor * symbol + constant != expression
    ):
        return None
    solution = (value - constant) / factor
    return solution if solution.is_Integer else None


def import_expression(expression: Expression) -> Any:
    """Read an expression: the sympy object that `sympy.srepr` wrote.

    Raises:
        DeserializeError: sympy refuses it, for example a division by zero.
    """
    try:
        return _import(expression)
    except DeserializeError:
        raise
    except Exception as error:
        raise DeserializeError(f"sympy cannot build the expression: {error}") from error


def _import(expression: Expression) -> Any:
    match expression:
        case Symbol():
            return _symbol(expression)
        case Integer(value=value):
            return sympy.Integer(value)
        case Apply(function=function, arguments=arguments):
            return _FUNCTIONS[function](*[_import(argument) for argument in arguments])
        case Constant(name=name):
            return _CONSTANTS[name]
        case Float(text=text, precision=precision):
            return sympy.Float(text, precision=precision)
        case Rational(numerator=numerator, denominator=denominator):
            return sympy.Rational(numerator, denominator)


def _symbol(symbol: Symbol) -> sympy.Symbol:
    return sympy.Symbol(symbol.name, **dict(symbol.assumptions))


def import_ranges(ranges: Mapping[str, types.RangeConstraint]) -> dict[str, ValueRanges[Any]]:
    """Read the permitted range of each symbol, by name; a bound that is missing stands for infinity."""
    made = {}
    for name, bounds in ranges.items():
        with within(f"[{name!r}]"):
            made[name] = _import_range(bounds, _FLOATS if _is_float(name, bounds) else _INTEGERS)
    return made


# torch tells ranges of floats from ranges of integers by the class of their bounds.
_INTEGERS = (sympy.Integer, int_oo)
_FLOATS = (sympy.Float, sympy.oo)


def _is_float(name: str, bounds: types.RangeConstraint) -> bool:
    fractions = (bounds.min_float, bounds.max_float)
    return fractions != (None, None) or is_float_symbol(name)


def _import_range(bounds: types.RangeConstraint, kind: tuple[Any, Any]) -> ValueRanges[Any]:
    number, infinity = kind
    least = bounds.min_val if bounds.min_float is None else bounds.min_float
    most = bounds.max_val if bounds.max_float is None else bounds.max_float
    lower = -infinity if least is None else number(least)
    upper = infinity if most is None else number(most)
    if not lower <= upper:
        raise DeserializeError(
            f"expected a range whose minimum is not above its maximum, found [{lower}, {upper}]"
        )
    return ValueRanges(lower, upper)


def import_range_constraints(
    ranges: Mapping[str, ValueRanges[Any]], symbols: Symbols
) -> dict[sympy.Symbol, ValueRanges[Any]]:
    """Read the ranges of symbols and derived sizes.

    What the graph does not use has assumptions that are known only if it is a number that calls find; the
    ranges of others are left out.
    """
    known = symbols.by_name
    made = {}
    for name, bounds in ranges.items():
        if name in known:
            made[known[name]] = bounds
        elif match := _UNBACKED.fullmatch(name):
            made[sympy.Symbol(name, **_UNBACKED_ASSUMPTIONS[match["prefix"]])] = bounds
    return made
