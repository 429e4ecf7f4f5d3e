"""Guards: the checks of input shapes that an exported program carries as Python text.

torch compiles the texts when it builds `ExportedProgram.module()`, so each is checked here against the small
language that exporters write, and only the text of the checked syntax tree is handed on. Needs no torch.
"""

from __future__ import annotations

import ast
import re
import warnings
from functools import lru_cache
from itertools import accumulate

from .errors import DeserializeError, UnsafeArtifactError
from .limits import DEFAULT_LIMITS, Limits, raising

BINARY_OPERATORS = (
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.FloorDiv,
    ast.Mod,
    ast.Pow,
    ast.BitAnd,
    ast.BitOr,
    ast.BitXor,
)
UNARY_OPERATORS = (ast.USub, ast.UAdd, ast.Not)
COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)

MATH_CONSTANTS = frozenset({"inf", "nan", "pi", "e"})
# Every function that a guard may call, by its full name.
FUNCTIONS = frozenset(
    {"max", "min", "abs", "round", "IsNonOverlappingAndDenseIndicator"}
    | {
        f"math.{name}"
        for name in """
            floor ceil trunc sqrt exp log log2 sin cos tan sinh cosh tanh asin acos atan asinh isnan
        """.split()
    }
    | {
        f"torch.{name}"
        for name in "sym_float sym_int sym_max sym_min sym_not sym_ite sym_sqrt _sym_sqrt".split()
    }
)
# Methods of an input tensor, all without arguments.
METHODS = frozenset({"size", "stride", "storage_offset", "dim", "numel", "item"})

_MAX_BASE = 16  # of a power whose exponent is a size
_INPUTS = "L"  # the dictionary of inputs by argument name
_FIELD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,511}", re.ASCII)
_KEY = re.compile(r"[^'\"]{0,512}", re.DOTALL)


@lru_cache(maxsize=4_096)
def check_guard(text: str, limits: Limits = DEFAULT_LIMITS) -> str:
    """Check the text of one guard, and return it, or what has the same meaning in Python's normal spelling.

    Args:
        text: A Python expression over the inputs, `L['x'].size()[0] % 3 == 0` for example.
        limits: Bounds on its length, nesting and exponents.

    Returns:
        The text itself where nothing but parentheses and spaces around operators tell it from the normal
        spelling, so that the guards of an exporter come back as they were; else that spelling.

    Raises:
        UnsafeArtifactError: The expression does anything but compute with the sizes, strides, offsets and
            numbers of the inputs.
        DeserializeError: The text is no Python expression, or exceeds a limit.

    Example:
        >>> check_guard("open('/etc/passwd') == 1")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        pt2wire.errors.UnsafeArtifactError: column 1: expected a call of a known function, found 'open'. ...
        >>> check_guard("(3*L['x'].size()[0]) != 0"), check_guard("3*L['x'].size() [0] != 0")
        ("(3*L['x'].size()[0]) != 0", "3 * L['x'].size()[0] != 0")
    """
    normal = normal_guard(text, limits)
    return text if _differs_in_layout(text, normal, limits) else normal


@lru_cache(maxsize=4_096)
def normal_guard(text: str, limits: Limits = DEFAULT_LIMITS) -> str:
    """A guard as written back from its checked syntax tree: one text for all spellings of an expression.

    Args:
        text: As for `check_guard`.
        limits: As for `check_guard`.

    Raises:
        DeserializeError: As for `check_guard`.
    """
    if len(text) > limits.guard_length:
        raise DeserializeError(
            f"expected a guard of at most {limits.guard_length} characters, found {len(text)}",
            hint=raising("guard_length"),
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a doubtful spelling in the text: it is checked below
            tree = ast.parse(text.strip(" \t"), mode="eval")
        _check(tree.body, 0, limits)
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript) and isinstance(node.slice, _IN_PARENTHESES):
                node.slice = ast.Name(_key_text(node.slice))  # Python would write it without parentheses
        return ast.unparse(tree)
    except (RecursionError, MemoryError) as error:
        raise _too_deep(limits) from error
    except (SyntaxError, ValueError) as error:
        raise DeserializeError(f"expected a Python expression as guard, found {text[:60]!r}") from error


#: Parentheses and spaces in the name of an input: torch looks for the inputs by their text.
_IN_SOURCES = (")[", ").", ")(", "[(", "[ ", "[- ")
#: A key that stands in parentheses: a tuple or a complex number.
_KEY_IN_PARENTHESES = re.compile(r"\[\(.*?\)\]", re.DOTALL)
_IN_PARENTHESES = (ast.Tuple, ast.BinOp)


#: PyTorch writes `2*x + 1`, Python's normal spelling is `2 * x + 1`.
_SPACED_OPERATOR = re.compile(r" ?([-+*/%&|^<>=!,]+) ?")


def _differs_in_layout(text: str, normal: str, limits: Limits) -> bool:
    """Whether a text is the normal spelling with other parentheses and other spaces around operators, though
    not within the name of an input.

    That leaves no room for what only a parser passes over: comments, line breaks, other spellings of names.
    """
    if _without_layout(text) != _without_layout(normal):
        return False
    depth = max(accumulate((mark == "(") - (mark == ")") for mark in text))
    return (
        depth <= limits.guard_depth
        and all(text.count(mark) == normal.count(mark) for mark in _IN_SOURCES)
        and _KEY_IN_PARENTHESES.findall(text) == _KEY_IN_PARENTHESES.findall(normal)
    )


def _without_layout(text: str) -> str:
    return _SPACED_OPERATOR.sub(r"\1", text.translate(str.maketrans("", "", "()")))


def _refuse(node: ast.expr, expected: str, found: str) -> UnsafeArtifactError:
    return UnsafeArtifactError(
        f"expected {expected}, found {found}",
        path=f"column {node.col_offset + 1}",
        hint="Guards may only compute with the sizes, strides and numbers of the inputs",
    )


def _too_deep(limits: Limits, node: ast.expr | None = None) -> DeserializeError:
    return DeserializeError(
        f"expected at most {limits.guard_depth} nested operations in a guard, found more",
        path=None if node is None else f"column {node.col_offset + 1}",
        hint=raising("guard_depth"),
    )


def _check(node: ast.expr, depth: int, limits: Limits) -> None:
    if depth > limits.guard_depth:
        raise _too_deep(limits, node)
    match node:
        case ast.Constant(value=bool() | int() | float() as number):
            _check_number(node, number, limits)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, BINARY_OPERATORS):
            _check(left, depth + 1, limits)
            _check(right, depth + 1, limits)
            if isinstance(op, ast.Pow):
                _check_power(node, left, right, limits)
        case ast.UnaryOp(op=op, operand=operand) if isinstance(op, UNARY_OPERATORS):
            _check(operand, depth + 1, limits)
        case ast.BoolOp(values=values):
            for value in values:
                _check(value, depth + 1, limits)
        case ast.Compare(left=left, ops=ops, comparators=comparators) if all(
            isinstance(op, COMPARISONS) for op in ops
        ):
            _check(left, depth + 1, limits)
            for comparator in comparators:
                _check(comparator, depth + 1, limits)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            for part in (test, body, orelse):
                _check(part, depth + 1, limits)
        case ast.Call(func=ast.Attribute(attr=method, value=source), args=[], keywords=[]) if (
            method in METHODS
        ):
            _check_source(source, depth + 1, limits)
        case ast.Call(func=func, args=args, keywords=[]):
            if (name := full_name(func)) not in FUNCTIONS:
                raise _refuse(node, "a call of a known function", repr(ast.unparse(func))[:80])
            if name == "round":
                _check_round(node, limits)
            for argument in args:
                _check(argument, depth + 1, limits)
        case ast.Attribute(value=ast.Name(id="math"), attr=name) if name in MATH_CONSTANTS:
            pass
        case ast.Subscript() | ast.Attribute():
            _check_source(node, depth, limits)
        case _:
            raise _refuse(node, "arithmetic or a comparison", _shown(node))


def _check_number(node: ast.expr, value: float, limits: Limits) -> None:
    if type(value) is int and value.bit_length() > limits.integer_bits:
        raise _refuse(
            node, f"an integer of at most {limits.integer_bits} bits", f"one of {value.bit_length()}"
        )


def _check_power(node: ast.expr, base: ast.expr, exponent: ast.expr, limits: Limits) -> None:
    # Constant powers are computed as they stand, whatever their size.
    if any(isinstance(part, ast.Pow) for side in (base, exponent) for part in ast.walk(side)):
        raise _refuse(node, "a power of something simpler", "a power of a power")
    if isinstance(exponent, ast.Constant):
        if abs(exponent.value) > limits.exponent:  # type: ignore[arg-type]
            raise _refuse(node, f"an exponent of at most {limits.exponent}", _shown(exponent))
    # Of a size as the exponent only `2**size` is small whatever the size.
    elif not (isinstance(base, ast.Constant) and abs(base.value) <= _MAX_BASE and _is_size(exponent)):  # type: ignore[arg-type]
        raise _refuse(
            node, f"an exponent of at most {limits.exponent}, or a small number to a size", _shown(node)
        )


def _is_size(node: ast.expr) -> bool:
    """Whether this is a size or number of an input as it is, without arithmetic on it."""
    return isinstance(node, ast.Subscript) or (isinstance(node, ast.Call) and full_name(node.func) == "")


def _check_round(node: ast.Call, limits: Limits) -> None:
    # With many negative digits Python computes a power of ten of so many.
    digits = node.args[1] if len(node.args) == 2 else ast.Constant(0)
    if isinstance(digits, ast.UnaryOp) and isinstance(digits.op, ast.USub):
        digits = digits.operand
    small = (
        isinstance(digits, ast.Constant) and isinstance(digits.value, int) and digits.value <= limits.exponent
    )
    if not small:
        raise _refuse(node, f"at most {limits.exponent} digits to round to", _shown(digits))


def _check_source(node: ast.expr, depth: int, limits: Limits) -> None:
    """An input, or something in it: `L['x']['key'][0].field`, and `L['x'].size()[0]`."""
    while True:
        depth += 1
        if depth > limits.guard_depth:
            raise _refuse(node, f"at most {limits.guard_depth} steps into an input", "more")
        match node:
            case ast.Subscript(value=value, slice=key):
                _check_key(key, depth, limits)
                node = value
            case ast.Attribute(value=value, attr=field) if _FIELD.fullmatch(field):
                node = value
            case ast.Call(func=ast.Attribute(value=value, attr=method), args=[], keywords=[]) if (
                method in METHODS
            ):
                node = value
            case ast.Name(id=name) if name == _INPUTS:
                return
            case _:
                raise _refuse(node, f"an input, {_INPUTS}['name']", _shown(node))


def _check_key(node: ast.expr, depth: int, limits: Limits) -> None:
    """What dictionaries and sequences of inputs are asked for, as Python writes it: it is not computed."""
    if depth > limits.guard_depth:
        raise _too_deep(limits, node)
    match node:
        case ast.Constant(value=str() as key) if _KEY.fullmatch(key):
            pass
        case ast.Constant(value=None | bool() | int() | float() | complex()) | ast.Name(id="inf" | "nan"):
            pass
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _check_number_in_key(operand)
        case ast.BinOp(left=real, op=ast.Add() | ast.Sub(), right=ast.Constant(value=complex())):
            _check_number_in_key(real.operand if isinstance(real, ast.UnaryOp) else real)
        case ast.Tuple(elts=items):
            for item in items:
                _check_key(item, depth + 1, limits)
        case _:
            raise _refuse(node, "a number or a plain text in brackets", _shown(node))


def _check_number_in_key(node: ast.expr) -> None:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() | complex()) | ast.Name(id="inf" | "nan"):
            return
    raise _refuse(node, "a number", _shown(node))


def source_text(node: ast.expr) -> str:
    """The text by which PyTorch knows an input, of an expression that `check_guard` accepts.

    Example:
        >>> source_text(ast.parse("L['x'] [(1,'a')].size() [0]", mode="eval").body)
        "L['x'][(1, 'a')].size()[0]"
    """
    match node:
        case ast.Subscript(value=value, slice=key):
            return f"{source_text(value)}[{_key_text(key)}]"
        case ast.Attribute(value=value, attr=name):
            return f"{source_text(value)}.{name}"
        case ast.Call(func=func):
            return f"{source_text(func)}()"
    return ast.unparse(node)


def _key_text(node: ast.expr) -> str:
    """A key as `repr` writes it."""
    match node:
        case ast.Tuple(elts=[item]):
            return f"({_key_text(item)},)"
        case ast.Tuple(elts=items):
            return f"({', '.join(map(_key_text, items))})"
        case ast.BinOp(left=real, op=op, right=imaginary):
            sign = "+" if isinstance(op, ast.Add) else "-"
            return f"({ast.unparse(real)}{sign}{ast.unparse(imaginary)})"
    return ast.unparse(node)


def full_name(node: ast.expr) -> str:
    """What a call calls: `max`, `math.floor`; empty for a method of an input."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return f"{module}.{name}"
    return ""


def _shown(node: ast.expr) -> str:
    return f"{type(node).__name__} {ast.unparse(node)[:60]!r}"
