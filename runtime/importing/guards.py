"""Guards as sympy has them, for the passes that write those of a new program.

`run_decompositions`, as any pass over a program, makes another one, whose guards PyTorch prints from the
`ShapeEnv`: there tracing has left them, with the inputs that each symbol came from. A file has their text
alone. So it is read back here: from the syntax tree that `check_guard` accepts, by way of the text of an
expression, so that the bounds on these hold.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sympy
import torch
from torch._guards import GuardSource, ShapeGuard, SLoc, Source
from torch.utils._sympy.functions import Mod

from ..errors import DeserializeError
from ..guard_inputs import GuardInputs, Number
from ..guards import METHODS, full_name, source_text
from .faults import each, within
from .symbols import Symbols


def learn_guards(guards: Sequence[str], inputs: GuardInputs[Any], symbols: Symbols) -> None:
    """Tell the `ShapeEnv` the guards of a program, and where the symbols in its inputs came from.

    Args:
        guards: Texts that `check_guard` and `check_guard_inputs` accept.
        inputs: The values of the inputs, by the texts that guards have for them.
        symbols: The symbols of the program.

    Raises:
        DeserializeError: A guard computes what no expression of sympy is.
    """
    env, reader = symbols.shape_env, _Reader(inputs, symbols)
    with within("guards_code"):
        expressions = each("", guards, lambda guard: symbols.expression(reader.condition(guard), "boolean"))
    env.guards = [
        ShapeGuard(expression, SLoc(None, None), size_oblivious=False)
        for expression in expressions
        if expression is not sympy.true
    ]
    for expression in expressions:
        env.axioms.update(env.get_implications(env.simplify(expression)))
        if isinstance(expression, sympy.Eq) and isinstance(expression.lhs, Mod) and expression.rhs == 0:
            env._add_divisible(expression.lhs)
    for symbol in reader.unseen:  # no value has them, so that they are no symbols of the program
        env.var_to_range.pop(symbol, None)
    reader.add_sources()
    env.var_to_sources.update(reader.sources)


@dataclass(frozen=True)
class _Place(Source):
    """Where a guard finds a number."""

    text: str

    @property
    def _name_template(self) -> str:
        return self.text

    @property
    def guard_source(self) -> GuardSource:
        return GuardSource.LOCAL


class _Term(NamedTuple):
    """An expression as `sympy.srepr` writes it, and what tells apart functions that Python writes alike."""

    text: str
    sort: type[Number] = int
    is_nonnegative: bool = False


def _apply(function: str, *terms: _Term, sort: type[Number] = bool, is_nonnegative: bool = False) -> _Term:
    return _Term(f"{function}({', '.join(term.text for term in terms)})", sort, is_nonnegative)


_MINUS_ONE = _Term("Integer(-1)")
_ARITHMETIC = {
    ast.Add: "Add",
    ast.Mult: "Mul",
    ast.FloorDiv: "FloorDiv",
    ast.BitAnd: "BitwiseFn_bitwise_and",
    ast.BitOr: "BitwiseFn_bitwise_or",
    ast.BitXor: "BitwiseFn_bitwise_xor",
}
_COMPARISONS = {
    ast.Eq: "Equality",
    ast.NotEq: "Unequality",
    ast.Lt: "StrictLessThan",
    ast.LtE: "LessThan",
    ast.Gt: "StrictGreaterThan",
    ast.GtE: "GreaterThan",
}
_CONNECTIVES = {ast.And: "And", ast.Or: "Or"}
#: What PyTorch writes in guards, by name and number of arguments: the function that it writes so, and the
#: class of its values, which is that of the arguments where there is none here.
_CALLS: Mapping[tuple[str, int | None], tuple[str, type[Number] | None]] = {
    ("max", None): ("Max", None),
    ("min", None): ("Min", None),
    ("torch.sym_max", 2): ("Max", None),
    ("torch.sym_min", 2): ("Min", None),
    ("abs", 1): ("Abs", None),
    ("round", 1): ("RoundToInt", int),
    ("round", 2): ("RoundDecimal", float),
    ("math.floor", 1): ("FloorToInt", int),
    ("math.ceil", 1): ("CeilToInt", int),
    ("math.trunc", 1): ("TruncToInt", int),
    ("torch.sym_int", 1): ("TruncToInt", int),
    ("torch.sym_float", 1): ("ToFloat", float),
    ("torch.sym_not", 1): ("Not", bool),
    ("math.sqrt", 1): ("OpaqueUnaryFn_sqrt", float),
    ("torch.sym_sqrt", 1): ("OpaqueUnaryFn_sqrt", float),
    ("torch._sym_sqrt", 1): ("OpaqueUnaryFn_sqrt", float),
    ("IsNonOverlappingAndDenseIndicator", None): ("IsNonOverlappingAndDenseIndicator", int),
}
_CONSTANTS = {"math.inf": "oo", "math.nan": "nan", "math.pi": "pi", "math.e": "E"}


class _Reader:
    """Reads the guards of one program, and finds a symbol for each place that they name.

    Attributes:
        sources: For each symbol, the place that it is written as.
        unseen: Those of places within classes that pytree knows and guards alone look into.
    """

    def __init__(self, inputs: GuardInputs[Any], symbols: Symbols) -> None:
        self.sources: dict[sympy.Symbol, list[Source]] = {}
        self.unseen: list[sympy.Symbol] = []
        self._inputs = inputs
        self._symbols = symbols
        self._places: dict[str, sympy.Symbol] = {}
        self._names = {prefix: map(f"{prefix}{{}}".format, itertools.count()) for prefix in ("s", "zf")}
        self._taken = set(symbols.by_name)

    def condition(self, guard: str) -> str:
        """The text of the expression that a guard is."""
        return self._term(ast.parse(guard.strip(" \t"), mode="eval").body).text

    def add_sources(self) -> None:
        """Find places also for those symbols of the inputs that no guard is about."""
        for text, value in self._inputs.by_text.items():
            for place, number in _numbers(text, value):
                expression = _expression(number)
                if isinstance(expression, sympy.Symbol) and expression not in self.sources:
                    self.sources[expression] = [_Place(place)]

    def _term(self, node: ast.expr) -> _Term:
        match node:
            case ast.Constant(value=bool() as value):
                return _Term(str(value).lower(), bool)
            case ast.Constant(value=int() as value):
                return _Term(f"Integer({value})", int, value >= 0)
            case ast.Constant(value=float() as value):
                return _Term(f"Float('{value!r}', precision=53)", float, value >= 0)
            case ast.Attribute() if (constant := _CONSTANTS.get(full_name(node))) is not None:
                return _Term(constant, float, True)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(op, self._term(left), self._term(right))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return _apply("Not", self._term(operand))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self._term(operand)
            case ast.UnaryOp(operand=ast.Constant(value=int() as value)):
                return _Term(f"Integer({-value})")
            case ast.UnaryOp(operand=operand):
                return _negative(self._term(operand))
            case ast.BoolOp(op=op, values=values):
                return _apply(_CONNECTIVES[type(op)], *map(self._term, values))
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                sides = [self._term(side) for side in (left, *comparators)]
                relations = [
                    _apply(_COMPARISONS[type(op)], *sides[index : index + 2]) for index, op in enumerate(ops)
                ]
                return relations[0] if len(relations) == 1 else _apply("And", *relations)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return _chosen(self._term(test), self._term(body), self._term(orelse))
            case ast.Call(func=func, args=[_, *_] as args):
                return _call(node, full_name(func), [self._term(argument) for argument in args])
            case _:
                return self._place(node)

    def _binary(self, op: ast.operator, left: _Term, right: _Term) -> _Term:
        terms = (left, right)
        sort = float if float in (left.sort, right.sort) else int
        is_nonnegative = left.is_nonnegative and right.is_nonnegative
        match op:
            case ast.Sub():
                return _apply("Add", left, _negative(right), sort=sort)
            case ast.Div():
                name = "IntTrueDiv" if sort is int else "FloatTrueDiv"
                return _apply(name, *terms, sort=float, is_nonnegative=is_nonnegative)
            case ast.Mod():
                # torch's Mod is for what cannot be negative, where it knows more.
                name = "Mod" if is_nonnegative else "PythonMod"
            case ast.Pow():
                natural = sort is int and right.is_nonnegative
                name, sort = ("PowByNatural", int) if natural else ("FloatPow", float)
            case _:
                name = _ARITHMETIC[type(op)]
        return _apply(name, *terms, sort=sort, is_nonnegative=is_nonnegative)

    def _place(self, node: ast.expr) -> _Term:
        """An input that is a number, or a number that a tensor says of itself."""
        text = source_text(node)
        sort: type[Number] = int
        match node:
            case ast.Subscript(value=ast.Call(func=ast.Attribute(attr=method, value=source)), slice=index):
                value = _asked(self._inputs.by_text.get(source_text(source)), method)
                number = None if value is None else value[ast.literal_eval(index)]
            case ast.Call(func=ast.Attribute(attr="item")):
                number, sort = None, float
            case ast.Call(func=ast.Attribute(attr=method, value=source)) if method in METHODS:
                number = _asked(self._inputs.by_text.get(source_text(source)), method)
            case _:
                number = self._inputs.by_text.get(text)
                sort = float if isinstance(number, (float, torch.SymFloat)) else int
        symbol = self._symbol(text, number, sort)
        return _Term(sympy.srepr(symbol), sort, bool(symbol.is_nonnegative))

    def _symbol(self, text: str, number: Any, sort: type[Number]) -> sympy.Symbol:
        """The symbol of a place: that of the graph, or one that stands for what the graph has there.

        Two places of equal numbers have one symbol in the graph, and a guard that says so.
        """
        symbol = self._places.get(text)
        if symbol is not None:
            return symbol
        symbol = expression = _expression(number)
        if not isinstance(expression, sympy.Symbol) or expression in self.sources:
            symbol = self._new_symbol(sort, is_nonnegative=".size()" in text)
            if expression is None:
                self.unseen.append(symbol)
            else:
                self._symbols.shape_env.replacements[symbol] = expression
        self._places[text] = symbol
        self._taken.add(symbol.name)
        self.sources[symbol] = [_Place(text)]
        return symbol

    def _new_symbol(self, sort: type[Number], *, is_nonnegative: bool) -> sympy.Symbol:
        prefix, assumptions = ("zf", {"real": True}) if sort is float else ("s", {"integer": True})
        if is_nonnegative:
            assumptions["nonnegative"] = True
        name = next(name for name in self._names[prefix] if name not in self._taken)
        return sympy.Symbol(name, **assumptions)


def _chosen(test: _Term, body: _Term, orelse: _Term) -> _Term:
    sort = float if float in (body.sort, orelse.sort) else int
    cases = _apply("ExprCondPair", body, test), _apply("ExprCondPair", orelse, _Term("true", bool))
    is_nonnegative = body.is_nonnegative and orelse.is_nonnegative
    return _apply("Piecewise", *cases, sort=sort, is_nonnegative=is_nonnegative)


def _negative(term: _Term) -> _Term:
    return _apply("Mul", _MINUS_ONE, term, sort=term.sort)


def _call(node: ast.Call, name: str, terms: list[_Term]) -> _Term:
    known = _CALLS.get((name, len(terms))) or _CALLS.get((name, None))
    if known is None:
        raise _unwritten(node, f"{name} of {len(terms)}")
    function, sort = known
    if sort is None:
        sort = float if float in [term.sort for term in terms] else int
    is_nonnegative = sort is not float and all(term.is_nonnegative for term in terms)
    return _apply(function, *terms, sort=sort, is_nonnegative=is_nonnegative)


def _unwritten(node: ast.expr, found: str) -> DeserializeError:
    return DeserializeError(
        f"expected what PyTorch writes in the guards of a new program, found {found}",
        path=f"column {node.col_offset + 1}",
        hint="Save the program that it was made from again, of which PyTorch writes the guards itself",
    )


def _asked(tensor: Any, method: str) -> Any:
    """What a tensor says of itself; None where there is no tensor that can."""
    try:
        return getattr(tensor, method)()
    except (AttributeError, RuntimeError):
        return None


def _numbers(text: str, value: Any) -> Iterator[tuple[str, Any]]:
    """All places in an input where there is a symbolic number."""
    if isinstance(value, torch.Tensor):
        for index, size in enumerate(value.size()):
            if isinstance(size, torch.SymInt):
                yield f"{text}.size()[{index}]", size
    elif isinstance(value, (torch.SymInt, torch.SymFloat)):
        yield text, value


def _expression(number: Any) -> Any:
    """The expression of a number; None where it is not known."""
    if isinstance(number, (torch.SymInt, torch.SymFloat)):
        return number.node.expr
    return None if number is None else sympy.sympify(number)
