"""Symbolic numbers: sympy expressions as text, hints, and the ranges of symbols."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import sympy
import torch
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges

from ..errors import SerializeError
from ..generated import types

Symbolic = torch.SymInt | torch.SymFloat | torch.SymBool

_INFINITIES = frozenset((int_oo, -int_oo, sympy.oo, -sympy.oo))


class Symbols:
    """Memo of one program's symbolic numbers.

    A program has thousands of symbolic sizes and a handful of distinct expressions. Two tables: by the
    number's symbolic node (asking a node for its expression applies the replacements known so far, each
    time), and by expression (printing is slow).
    """

    __slots__ = ("_expressions", "_texts")

    def __init__(self) -> None:
        # The node is kept beside its expression, so that its id is not given to another node meanwhile.
        self._expressions: dict[int, tuple[Any, Any]] = {}
        self._texts: dict[Any, str] = {}

    def expression(self, value: Symbolic) -> Any:
        """The sympy expression behind a symbolic number."""
        node = value.node
        known = self._expressions.get(id(node))
        if known is not None:
            return known[1]
        try:
            expression = node.expr
        except (AttributeError, NotImplementedError) as cause:
            message = f"expected a symbolic number with an expression, found {value} of {type(node).__name__}"
            raise SerializeError(message) from cause
        self._expressions[id(node)] = (node, expression)
        return expression

    def text(self, expression: Any) -> str:
        """An expression in the form that the format keeps: sympy's structural representation."""
        text = self._texts.get(expression)
        if text is None:
            text = self._texts[expression] = export_expression(expression)
        return text


def export_expression(expression: sympy.Basic) -> str:
    """Write an expression as text, for example `Symbol('s77', positive=True, integer=True)`."""
    text: str = sympy.srepr(expression)
    return text


def export_range_constraints(
    ranges: Mapping[sympy.Symbol, ValueRanges[Any]],
) -> dict[str, types.RangeConstraint]:
    """Write the permitted range of each symbol; a bound that is missing stands for infinity."""
    return {
        str(symbol): types.RangeConstraint(
            min_val=_export_bound(value.lower, math.ceil),
            max_val=_export_bound(value.upper, math.floor),
            min_float=_export_fraction(value.lower),
            max_float=_export_fraction(value.upper),
        )
        for symbol, value in ranges.items()
    }


def _export_bound(bound: Any, rounded: Any) -> int | None:
    if bound in _INFINITIES:
        return None
    # Bounds of integer symbols may be fractions: the nearest integer inside of the range means the same.
    return int(bound) if isinstance(bound, sympy.Integer) else int(rounded(bound))


def _export_fraction(bound: Any) -> float | None:
    """The bound of a floating-point number, where no integer is the same."""
    return float(bound) if isinstance(bound, sympy.Float) and bound != int(bound) else None
