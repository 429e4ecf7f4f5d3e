"""Expressions: what sympy writes is read as sympy reads it, anything else is refused and never evaluated."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import signal
import time
from collections.abc import Iterator
from typing import Any

import pt2wire
import pytest
import sympy
import torch
import torch.utils._sympy.functions as torch_functions
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pt2wire import expression_parser
from pt2wire.errors import DeserializeError
from pt2wire.expression_parser import parse_expression
from pt2wire.expressions import (
    FUNCTIONS,
    Apply,
    Constant,
    Float,
    Integer,
    Rational,
    Symbol,
    sort_of,
    symbols_in,
)
from pt2wire.importing.symbols import import_expression
from pt2wire.limits import Limits
from sympy.functions.elementary.piecewise import ExprCondPair
from torch.export import ExportedProgram
from torch.utils._sympy.numbers import int_oo

from .helpers.models import MODELS

_S0 = sympy.Symbol("s0", positive=True, integer=True)
_S1 = sympy.Symbol("s1", positive=True, integer=True)
_U0 = sympy.Symbol("u0", integer=True)
_ZF0 = sympy.Symbol("zf0", real=True)

# What sympy's own reader needs to know to read the same text: the oracle.
_CLASSES: dict[str, Any] = {
    **{name: getattr(torch_functions, name) for name in FUNCTIONS if hasattr(torch_functions, name)},
    **{name: getattr(sympy, name) for name in ("Add", "Mul", "Pow", "And", "Or", "Not", "Abs", "Piecewise")},
    **{name: getattr(sympy, name) for name in FUNCTIONS if name.endswith(("Than", "quality"))},
    "ExprCondPair": ExprCondPair,
    "int_oo": int_oo,
}


def _read_by_sympy(text: str) -> Any:
    return sympy.sympify(text, locals=_CLASSES)


def _read(text: str) -> Any:
    return import_expression(parse_expression(text))


_numbers = st.one_of(
    st.sampled_from([_S0, _S1, _U0, _ZF0]),
    st.integers(-(2**63), 2**63 - 1).map(sympy.Integer),
    st.integers(-8, 8).map(sympy.Integer),
    st.floats(allow_nan=False, allow_infinity=False).map(sympy.Float),
    st.builds(sympy.Rational, st.integers(-9, 9), st.integers(1, 9)),
)


_integers = st.one_of(
    st.sampled_from([_S0, _S1, _U0, _S0 * _S1 + 3, torch_functions.FloorDiv(_U0, sympy.Integer(2))]),
    st.integers(-64, 64).map(sympy.Integer),
)


def _applied(name: str, *arguments: Any) -> Any:
    try:
        with _a_second():
            expression = _CLASSES[name](*arguments)
            str(expression)  # Python refuses to print integers of thousands of digits
        return expression
    except Exception:
        assume(False)  # sympy has no such expression: a division by zero, say; or needs minutes to make it


@contextlib.contextmanager
def _a_second() -> Iterator[None]:
    """Ends what takes longer, in time of the processor."""

    def end(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


_BINARY = """
    Mod PythonMod IntTrueDiv FloatTrueDiv LShift PowByNatural FloatPow Max Min
    BitwiseFn_bitwise_and BitwiseFn_bitwise_or BitwiseFn_bitwise_xor
""".split()
_INTEGER_BINARY = "FloorDiv CleanDiv CeilDiv RShift".split()
_UNARY = "Abs ToFloat CeilToInt FloorToInt RoundToInt TruncToInt TruncToFloat Identity".split()
_UNARY += [name for name in FUNCTIONS if name.startswith("OpaqueUnaryFn_")]
_RELATIONS = "Equality Unequality StrictLessThan LessThan StrictGreaterThan GreaterThan".split()


@st.composite
def _expressions(draw: Any, depth: int = 3) -> Any:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(_numbers)
    number = functools.partial(draw, _expressions(depth - 1))
    match draw(
        st.sampled_from(["n-ary", "binary", "binary of integers", "unary", "power", "indexing", "choice"])
    ):
        case "n-ary":
            return _applied(draw(st.sampled_from(["Add", "Mul", "Max"])), number(), number(), number())
        case "binary":
            return _applied(draw(st.sampled_from(_BINARY)), number(), number())
        case "binary of integers":
            return _applied(draw(st.sampled_from(_INTEGER_BINARY)), draw(_integers), draw(_integers))
        case "unary":
            return _applied(draw(st.sampled_from(_UNARY)), number())
        case "power":
            return _applied("Pow", number(), sympy.Integer(draw(st.integers(-3, 3))))
        case "indexing":
            return _applied("ModularIndexing", *(draw(_integers) for _ in range(3)))
        case _:
            condition = draw(_conditions(depth - 1))
            if draw(st.booleans()):
                return _applied("Where", condition, number(), number())
            return _applied("Piecewise", (number(), condition), (number(), True))


@st.composite
def _conditions(draw: Any, depth: int = 3) -> Any:
    relations = [
        _applied(draw(st.sampled_from(_RELATIONS)), draw(_expressions(depth)), draw(_expressions(depth)))
        for _ in range(draw(st.integers(1, 3)))
    ]
    condition = _applied(draw(st.sampled_from(["And", "Or"])), *relations)
    return _applied("Not", condition) if draw(st.booleans()) else condition


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(_expressions(), _conditions(2)))
def test_an_expression_reads_as_sympy_reads_it(expression: Any) -> None:
    try:
        text = sympy.srepr(expression)
        expected = _read_by_sympy(text)
    except Exception:
        assume(False)
    try:
        found = _read(text)
    except DeserializeError as error:
        # The bounds on what an expression may compute are tighter than sympy's, and where torch's functions
        # overflow they fall back on sympy's (`cosh(711)`), which programs have no use for.
        reasons = (
            *("at most", "a double can hold", "a decimal number, found", "a known function, found"),
            "symbols in all that a relation compares",
        )
        assert any(reason in error.message for reason in reasons), str(error)
        assume(False)
    assert found == expected
    assert type(found) is type(expected)
    assert sympy.srepr(found) == sympy.srepr(expected)
    assert {s: s.assumptions0 for s in found.free_symbols} == {
        s: s.assumptions0 for s in expected.free_symbols
    }


@pytest.mark.wide
@settings(max_examples=3_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(_expressions(4), _conditions(3)))
def test_thousands_of_expressions_read_as_sympy_reads_them(expression: Any) -> None:
    test_an_expression_reads_as_sympy_reads_it.hypothesis.inner_test(expression)  # type: ignore[attr-defined]


def _texts(value: Any) -> Iterator[str]:
    """Every expression in the plain form of a program."""
    if isinstance(value, dict):
        if isinstance(text := value.get("expr_str"), str):
            yield text
        value = value.values()
    if not isinstance(value, str | int | float | None):
        for inner in value:
            yield from _texts(inner)


def _check_expressions(ep: ExportedProgram) -> int:
    texts = set(_texts(json.loads(pt2wire.to_json(pt2wire.to_tree(ep)))))
    for text in texts:
        found, expected = _read(text), _read_by_sympy(text)
        assert found == expected and sympy.srepr(found) == sympy.srepr(expected), text
        assert type(found) is type(expected)
    return len(texts)


_USUAL = ("nested_containers_dynamic",)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in _USUAL else pytest.mark.wide) for name in MODELS]
)
def test_expressions_of_programs_read_as_sympy_reads_them(name: str) -> None:
    _check_expressions(MODELS[name].program())


def test_each_distinct_expression_of_a_file_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deep(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(20):
                x = torch.cat([x, x * x.shape[0]])[: x.shape[0]] + x.shape[0] * 2
            return x

    shapes = {"x": {0: torch.export.Dim("n", min=2, max=1000)}}
    file = io.BytesIO()
    pt2wire.save(torch.export.export(Deep(), (torch.ones(4),), dynamic_shapes=shapes), file)
    (tree,) = pt2wire.read(file).programs.values()
    texts = list(_texts(json.loads(pt2wire.to_json(tree))))
    parsed: list[str] = []
    parser = expression_parser._Parser

    def counting(text: str, limits: Limits) -> Any:
        parsed.append(text)
        return parser(text, limits)

    monkeypatch.setattr(expression_parser, "_Parser", counting)
    parse_expression.cache_clear()
    pt2wire.load(file)
    assert sorted(parsed) == sorted(set(texts))
    assert len(texts) > 10 * len(parsed) > 0


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="SymbolIntegerFloatAddMax()',=-_ 0123456789TrueFalse", max_size=60))
def test_any_text_is_an_expression_or_a_refusal(text: str) -> None:
    try:
        parse_expression(text)
    except DeserializeError as error:
        assert error.path is not None and error.path.startswith("column ")


def test_the_tree_of_an_expression() -> None:
    text = sympy.srepr(sympy.Max(_S0 * sympy.Rational(1, 2) + sympy.Float(2.5), sympy.oo, evaluate=False))
    assert parse_expression(text).function == "Max"  # type: ignore[union-attr]
    assert parse_expression(
        "Add(Symbol('s0', positive=True), Rational(1, 2), Float('2.5', precision=53))"
    ) == Apply("Add", (Symbol("s0", (("positive", True),)), Rational(1, 2), Float("2.5", 53)))
    assert parse_expression("-int_oo") == Constant("-int_oo")
    assert parse_expression("Integer(-3)") == Integer(-3)
    assert parse_expression("Integer(7)") is parse_expression("Integer(7)")


@pytest.mark.parametrize(
    "value",
    [sympy.oo, -sympy.oo, int_oo, -int_oo, sympy.zoo, sympy.nan, sympy.pi, sympy.E, sympy.true, sympy.false],
    ids=str,
)
def test_constants_are_sympys_own_objects(value: Any) -> None:
    assert _read(sympy.srepr(value)) is value


def test_max_and_min_are_torchs_classes() -> None:
    """sympy's classes of the same name would compute with assumptions that torch's leave alone."""
    assert type(_read("Max(Symbol('u0', integer=True), Symbol('u1', integer=True))")) is torch_functions.Max
    assert type(_read("Min(Symbol('u0', integer=True), Symbol('u1', integer=True))")) is torch_functions.Min


def test_every_torch_function_of_the_format_is_known() -> None:
    assert set(torch_functions.__all__) <= set(FUNCTIONS)


def test_sorts_and_symbols() -> None:
    relation = parse_expression("StrictLessThan(Symbol('s0'), Mul(Symbol('u0'), Symbol('s0')))")
    assert sort_of(relation) == "boolean"
    assert sort_of(parse_expression("true")) == "boolean"
    assert sort_of(parse_expression("Where(true, Integer(1), Symbol('s0'))")) == "number"
    assert [symbol.name for symbol in symbols_in(relation)] == ["s0", "u0", "s0"]


_NOT_EXPRESSIONS = {
    "": "column 1: expected an expression, found the end of the text",
    "   ": "column 1: expected an expression, found the end of the text",
    "s0": "column 1: expected a symbol, a number or a known function, found 's0'",
    "__import__('os').system('x')": (
        "column 1: expected a symbol, a number or a known function, found '__import__'"
    ),
    "Max(Integer(3), '__import__(\"os\")')": (
        "column 17: expected an expression, found '\\'__import__(\"os\")\\''"
    ),
    "Add(Integer(1)).func": "column 16: expected the end of the expression, found '.func'",
    "Add(Integer(1)": "column 15: expected ',' or ')', found the end of the text",
    "Add(Integer(1),)": "column 16: expected an expression, found ')'",
    "Add(Integer(1) Integer(2))": "column 16: expected ',' or ')', found 'Integer'",
    "Lambda(Symbol('x'), Symbol('x'))": (
        "column 1: expected a symbol, a number or a known function, found 'Lambda'"
    ),
    "Symbol(s0)": "column 8: expected the name of a symbol in single quotes, found 's0'",
    "Symbol('a b')": "column 8: expected an identifier as the name of a symbol, found 'a b'",
    "Symbol('s0', cls=True)": "column 14: expected an assumption of sympy such as 'integer', found 'cls'",
    "Symbol('s0', integer=1)": "column 22: expected 'True' or 'False', found '1'",
    "Symbol('s0', real=True, real=True)": "column 25: expected each assumption once, found 'real' again",
    "Integer('3')": "column 9: expected an integer, found \"'3'\"",
    "Integer(3.5)": "column 10: expected ')', found '.5)'",
    "Integer(1" + "0" * 60 + ")": "column 9: expected an integer of at most 128 bits, found 61 digits. "
    "Raise `integer_bits` in the limits if the file is yours.",
    "Rational(1, 0)": "column 14: expected a denominator of at least 1, found 0",
    "Float('1e999', precision=53)": "column 7: expected a number that a double can hold, found '1e999'",
    "Float('__import__', precision=53)": "column 7: expected a decimal number, found '__import__'",
    "Float('1.0', precision=99999)": "column 24: expected a precision of 1 to 1024 bits, found 99999. "
    "Raise `float_precision` in the limits if the file is yours.",
    "Float('1.0', dps=53)": "column 14: expected 'precision', found 'dps'",
    "Pow(Integer(2), Integer(1000000))": "column 1: expected an exponent of at most 64, found 1000000. "
    "Raise `exponent` in the limits if the file is yours.",
    "Pow(Integer(2), Mul(Integer(99), Integer(99)))": (
        "column 1: expected a literal integer as the exponent of Pow"
    ),
    "Pow(Integer(2), Symbol('s0'))": "column 1: expected a literal integer as the exponent of Pow",
    "Pow(Symbol('s0'), Rational(1, 2))": "column 1: expected a literal integer as the exponent of Pow",
    "Not(Integer(1))": "column 14: expected a boolean as argument 1 of Not, found a number",
    "Add(true, Integer(1))": "column 5: expected a number as argument 1 of Add, found a boolean",
    "FloorDiv(Integer(1))": "column 1: expected 2 arguments for FloorDiv, found 1",
    "ExprCondPair(Integer(1), true)": (
        "column 1: expected a number or a boolean, found an ExprCondPair on its own"
    ),
    "-Integer(1)": "column 2: expected 'oo' or 'int_oo' after '-', found 'Integer'",
    "(" * 5: "column 1: expected an expression, found '('",
}


@pytest.mark.parametrize("text", _NOT_EXPRESSIONS, ids=lambda text: text[:30])
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(DeserializeError) as caught:
        parse_expression(text)
    assert str(caught.value) == _NOT_EXPRESSIONS[text]


def _nested(function: str, argument: str, depth: int) -> str:
    return f"{function}(" * depth + argument + ")" * depth


_TOO_MUCH = {
    "depth": _nested("Identity", "Integer(1)", 200),
    "length": "Add(" + "Integer(1), " * 6_000 + "Integer(1))",
    "nodes": "Add(" + ", ".join(["Integer(1)"] * 5_000) + ")",
    "tower of powers": "Pow(Pow(Pow(Integer(9223372036854775807), Integer(64)), Integer(64)), Integer(64))",
    "factors": "Mul(" + ", ".join(["Integer(9223372036854775807)"] * 100) + ")",
    "power of a sum": "Pow(Add(Symbol('a'), Symbol('b'), Symbol('c')), Integer(60))",
    "product of sums": "Mul(" + ", ".join(["Add(Symbol('a'), Symbol('b'))"] * 20) + ")",
    "divisor of fractions": (
        "ModularIndexing(Float('8402279259913077.0', precision=53), Symbol('zf0', real=True), Integer(457))"
    ),
}


@pytest.mark.parametrize("kind", _TOO_MUCH)
def test_what_would_compute_for_ages_is_refused_at_once(kind: str) -> None:
    begin = time.process_time()
    with pytest.raises(DeserializeError, match=r"at most|an integer as argument"):
        parse_expression(_TOO_MUCH[kind])
    assert time.process_time() - begin < 2


def test_the_largest_expressions_that_are_accepted_build_fast() -> None:
    texts = [
        "Add(" + ", ".join(f"Mul(Integer({n}), Symbol('s{n}', integer=True))" for n in range(800)) + ")",
        "Max(" + ", ".join(f"Symbol('s{n}', integer=True)" for n in range(100)) + ")",
        "And(" + ", ".join(f"StrictLessThan(Symbol('s{n}'), Integer({n}))" for n in range(300)) + ")",
        _nested("ToFloat", "Symbol('s0')", 90),
        "Mul(" + ", ".join(["Add(Symbol('a'), Symbol('b'))"] * 12) + ")",
        "Pow(Integer(9223372036854775807), Integer(64))",
        "TruncToInt(Float('1e308', precision=53))",
    ]
    for text in texts:
        begin = time.process_time()
        _read(text)
        assert time.process_time() - begin < 5, text[:60]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("FloorDiv(Integer(1), Integer(0))", "division by zero"),
        ("Symbol('s0', positive=True, negative=True)", "negative=True"),
        ("LShift(Integer(1), Integer(-1))", "negative shift count"),
    ],
)
def test_what_sympy_refuses_has_sympys_error_as_cause(text: str, reason: str) -> None:
    with pytest.raises(DeserializeError, match="sympy cannot build the expression") as caught:
        _read(text)
    assert reason in str(caught.value.__cause__)


def test_a_text_is_parsed_once() -> None:
    parse_expression.cache_clear()
    for _ in range(5):
        parse_expression("Add(Symbol('s0'), Integer(41))")
    assert parse_expression.cache_info().misses == 1
