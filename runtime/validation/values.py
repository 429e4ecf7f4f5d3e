"""What graphs say about values: tensor metadata, symbolic numbers, and the expressions in both."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import DeserializeError
from ..exact_treespecs import plain_context
from ..expression_parser import parse_expression
from ..expressions import Expression, Integer, Symbol, count_terms, sort_of, symbols_in
from ..generated import types
from ..layouts import COMPLEX, COMPRESSED, PARTS, element_type
from ..limits import INT64_MAX, Limits, raising
from ..names import check_device, check_identifier
from ..treespecs import is_class_path
from .rules import Findings

#: The dtypes of which torch lets a tensor require a gradient: floating point and complex ones.
DIFFERENTIABLE = frozenset(
    dtype
    for dtype in types.ScalarType
    if dtype.name.startswith(("HALF", "FLOAT", "DOUBLE", "COMPLEX", "BFLOAT"))
)

_LARGE = 2**20  # numbers from which on a product could matter

SymbolicNumber = types.SymInt | types.SymFloat | types.SymBool

# What the expression of each union must be, and the hint member that goes with it. PyTorch writes no hint
# for a condition.
_SORTS = {
    types.SymInt: ("number", "as_int"),
    types.SymFloat: ("number", "as_float"),
    types.SymBool: ("boolean", "as_bool"),
}


class Symbols:
    """The symbols of one program: each distinct expression is parsed once."""

    def __init__(self, findings: Findings, ranges: Iterable[str], limits: Limits) -> None:
        self._findings = findings
        self._limits = limits
        self._terms = 0
        self._declared = frozenset(ranges)
        self._assumptions: dict[str, tuple[tuple[str, bool], ...]] = {}
        self._parsed: dict[str, Expression | DeserializeError] = {}
        self._sizes: set[str] = set()  # symbols that are a whole number of the program, as sizes are
        # Without symbols. Exporters fold such, so that none with a hint comes from them.
        self._constants: set[str] = set()

    def check(self, number: SymbolicNumber, path: str) -> None:
        """Checks the expression of a symbolic number that is not a constant."""
        described: types.SymExpr = number.value
        text = described.expr_str
        expression = self._parsed.get(text)
        if expression is None:
            expression = self._parse(text, path)
        if isinstance(expression, DeserializeError):
            self._findings.add_error("expression", f"{path}.as_expr.expr_str", expression)
            return
        sort, expected = _SORTS[type(number)]
        if (found := sort_of(expression)) != sort:
            self._findings.add(
                "expression-sort",
                f"{path}.as_expr.expr_str",
                f"expected a {sort}, found the {found} {text!r}",
            )
        if isinstance(number, types.SymInt) and isinstance(expression, Symbol):
            self._sizes.add(expression.name)
        hint = described.hint
        if hint is None:
            return
        problem = None
        if hint.type != expected:
            problem = f"expected {expected}, found {hint.type}"
        elif isinstance(expression, Integer) and hint.value != expression.value:
            problem = f"expected {expression.value} as the expression, found {hint.value}"
        elif text in self._constants and not isinstance(expression, Integer):
            problem = f"expected no hint for a constant expression, found {hint.value}"
        if problem is not None:
            self._findings.add("hint", f"{path}.as_expr.hint", problem)

    def least(self, name: str) -> int | None:
        """The least value that a symbol may have by its assumptions; None if they do not say."""
        assumed = dict(self._assumptions.get(name, ()))
        return 1 if assumed.get("positive") else 0 if assumed.get("nonnegative") else None

    def is_integer(self, name: str) -> bool:
        """Whether a symbol is an integer, by its assumptions or since a size is just that symbol."""
        return name in self._sizes or dict(self._assumptions.get(name, ())).get("integer") is True

    def _parse(self, text: str, path: str) -> Expression | DeserializeError:
        try:
            expression = parse_expression(text, self._limits)
            self._terms += count_terms(expression)
            if self._terms > self._limits.program_terms:
                raise DeserializeError(
                    f"expected at most {self._limits.program_terms} terms in all expressions, found more",
                    hint=raising("program_terms"),
                )
        except DeserializeError as error:
            self._parsed[text] = error
            return error
        self._parsed[text] = expression
        symbols = list(symbols_in(expression))
        if not symbols:
            self._constants.add(text)
        for symbol in symbols:
            known = self._assumptions.setdefault(symbol.name, symbol.assumptions)
            if known != symbol.assumptions:
                self._findings.add(
                    "symbol",
                    f"{path}.as_expr.expr_str",
                    f"symbol {symbol.name!r} has the assumptions {_shown(symbol.assumptions)}, "
                    f"and elsewhere {_shown(known)}",
                )
            # Backed symbols may be left undeclared: torch.func.jvp leaves such in the metadata. Nothing but
            # its range constraint ties an unbacked one to the program.
            if symbol.name.startswith(("u", "zuf")) and symbol.name not in self._declared:
                self._findings.add(
                    "undeclared-symbol",
                    f"{path}.as_expr.expr_str",
                    f"expected a range constraint for the unbacked symbol {symbol.name!r}, found none",
                )
        return expression


def _shown(assumptions: tuple[tuple[str, bool], ...]) -> str:
    return ", ".join(f"{name}={value}" for name, value in assumptions) or "none"


def check_tensor_meta(
    meta: types.TensorMeta, path: str, findings: Findings, symbols: Symbols, limits: Limits
) -> None:
    """Checks the description of a tensor.

    Args:
        meta: The description.
        path: Where it is.
        findings: What is wrong is added here.
        symbols: The program's symbols.
        limits: Bounds on the number of dimensions.
    """
    rule = "tensor-meta"
    sizes, strides = meta.sizes, meta.strides
    if len(sizes) > limits.tensor_dimensions:
        message = f"expected at most {limits.tensor_dimensions} dimensions, found {len(sizes)}"
        findings.add(rule, f"{path}.sizes", message, raising("tensor_dimensions"))
        return
    expected = 0 if meta.layout in COMPRESSED else len(sizes)
    if expected != len(strides):
        findings.add(rule, f"{path}.strides", f"expected {expected} strides, found {len(strides)}")
    large = False
    offset = (meta.storage_offset,)
    for numbers, field in ((sizes, "sizes"), (strides, "strides"), (offset, "storage_offset")):
        for index, number in enumerate(numbers):
            value = number.as_int if number.type == "as_int" else None
            if value is not None and 0 <= value < _LARGE:
                continue
            where = f"{path}.{field}" if numbers is offset else f"{path}.{field}[{index}]"
            if value is None:
                symbols.check(number, where)
                value = _hint(number)
                if not 0 <= value <= INT64_MAX:
                    message = f"expected a number from 0 to 2**63 - 1, found {value}"
                    findings.add("hint", f"{where}.as_expr.hint", message)
                large = large or value >= _LARGE
            elif value < 0:
                findings.add(rule, where, f"expected a number from 0 up, found {value}")
            else:
                large = True
    if large and (extent := _extent(meta)) > INT64_MAX:
        findings.add(rule, path, f"expected a tensor of at most 2**63 - 1 bytes, found {extent}")
    dtype = element_type(meta)
    if dtype == types.ScalarType.UNKNOWN:
        findings.add(rule, f"{path}.dtype", "expected a dtype, found UNKNOWN")
    elif meta.requires_grad and dtype not in DIFFERENTIABLE:
        message = f"expected a dtype with gradients, or requires_grad false, found {dtype.name}"
        findings.add(rule, f"{path}.requires_grad", message)
    if meta.extra_dtype is not None and meta.dtype != types.ScalarType.UNKNOWN:
        message = f"expected no dtype beside {meta.dtype.name}, found {meta.extra_dtype.name}"
        findings.add(rule, f"{path}.extra_dtype", message)
    if meta.layout == types.Layout.Unknown:
        findings.add(rule, f"{path}.layout", "expected a layout, found Unknown")
    if meta.conj and meta.dtype not in COMPLEX:
        findings.add(rule, f"{path}.conj", f"expected a complex dtype, found {meta.dtype.name}")
    if (problem := check_device(meta.device.type, meta.device.index)) is not None:
        findings.add(rule, f"{path}.device", problem)
    _check_inner(meta, path, findings, symbols, limits)


def _check_inner(
    meta: types.TensorMeta, path: str, findings: Findings, symbols: Symbols, limits: Limits
) -> None:
    rule = "tensor-meta"
    parts = PARTS.get(meta.layout, ())
    if meta.subclass is not None:
        _check_subclass(meta, meta.subclass, path, findings, symbols, limits)
        return
    if meta.context is not None:
        findings.add(rule, f"{path}.context", "expected none for a tensor of PyTorch's own class, found one")
    if meta.coalesced is not None and meta.layout is not types.Layout.SparseCoo:
        message = f"expected a tensor of layout SparseCoo, found {meta.layout.name}"
        findings.add(rule, f"{path}.coalesced", message)
    if meta.inner is None:
        if meta.layout in COMPRESSED:  # of the other PyTorch writes the layout alone
            findings.add(rule, f"{path}.inner", f"expected {', '.join(parts)}, found nothing")
        return
    if sorted(meta.inner) != sorted(parts):
        wanted = ", ".join(parts) or f"nothing for layout {meta.layout.name}"
        found = ", ".join(map(repr, meta.inner))
        findings.add(rule, f"{path}.inner", f"expected {wanted}, found {found:.80}")
    for name, part in meta.inner.items():
        where = f"{path}.inner[{name[:80]!r}]"
        if part.layout is not types.Layout.Strided:
            findings.add(rule, f"{where}.layout", f"expected layout Strided, found {part.layout.name}")
        check_tensor_meta(part, where, findings, symbols, limits)


def _check_subclass(
    meta: types.TensorMeta, name: str, path: str, findings: Findings, symbols: Symbols, limits: Limits
) -> None:
    """A tensor of a class of its own, made of any others. Only importing knows the class."""
    rule = "tensor-meta"
    if not is_class_path(name):
        findings.add(rule, f"{path}.subclass", f"expected MODULE:QUALIFIED_NAME, found {name[:80]!r}")
    if not meta.inner:
        findings.add(rule, f"{path}.inner", "expected the tensors that a tensor is made of, found none")
    for part, described in (meta.inner or {}).items():
        where = f"{path}.inner[{part[:80]!r}]"
        if (problem := check_identifier(part)) is not None:
            findings.add(rule, where, f"expected an identifier, found {part[:80]!r}: {problem}")
        check_tensor_meta(described, where, findings, symbols, limits)
    if meta.context is not None:
        try:
            plain_context(meta.context)
        except DeserializeError as error:
            findings.add_error(rule, f"{path}.context", error)


def _hint(number: types.SymInt) -> int:
    """The hint of a symbolic number; 1 where it has none, or one of another type."""
    hint = number.as_expr.hint
    return hint.as_int if hint is not None and hint.type == "as_int" else 1


def _count(number: types.SymInt) -> int:
    return number.as_int if number.type == "as_int" else _hint(number)


def _extent(meta: types.TensorMeta) -> int:
    # Bytes from the start of the storage to the end of the tensor, and at least the bytes of its elements.
    # Symbolic numbers count as their hints, or as 1; the widest dtype has 16 bytes.
    sizes = [_count(number) for number in meta.sizes]
    strides = [_count(number) for number in meta.strides]
    if 0 in sizes:
        return 0
    offset = meta.storage_offset.as_int if meta.storage_offset.type == "as_int" else 0
    reach = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=False))
    elements = 1
    for size in sizes:
        elements *= size
    return 16 * max(offset + reach + 1, elements)
