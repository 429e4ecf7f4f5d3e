"""Symbolic expressions as text, and the ranges of symbols."""

from __future__ import annotations

import pytest
import sympy
import torch
from pt2wire.errors import SerializeError
from pt2wire.exporting.symbols import Symbols, export_expression, export_range_constraints
from pt2wire.generated import types
from torch._export.serde.serialize import serialize_range_constraints
from torch.export import Dim
from torch.utils._sympy.functions import FloorDiv, Mod
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges

from .helpers.exporting import assert_json_is_pytorchs, exported


def test_an_expression_is_text_with_its_symbols_assumptions():
    symbol = sympy.Symbol("s7", positive=True, integer=True)
    text = "FloorDiv(Mul(Integer(2), Symbol('s7', positive=True, integer=True)), Integer(3))"
    assert export_expression(FloorDiv(2 * symbol, 3)) == text


def test_each_expression_is_printed_once(monkeypatch):
    printed = []
    monkeypatch.setattr(
        "pt2wire.exporting.symbols.export_expression", lambda each: printed.append(each) or ""
    )
    symbols, symbol = Symbols(), sympy.Symbol("s7")
    for _ in range(3):
        symbols.text(Mod(symbol, 3))
    assert printed == [Mod(symbol, 3)]


@pytest.mark.parametrize(
    "bounds",
    [(0, 10), (2, int_oo), (-int_oo, 7), (-sympy.oo, sympy.oo), (sympy.Rational(3, 2), sympy.Rational(7, 2))],
    ids=str,
)
def test_ranges_are_pytorchs(bounds):
    symbol = sympy.Symbol("u0", integer=True)
    ranges = {symbol: ValueRanges(*map(sympy.sympify, bounds))}
    (expected,) = serialize_range_constraints(ranges).values()
    assert export_range_constraints(ranges) == {
        "u0": types.RangeConstraint(expected.min_val, expected.max_val)
    }


def test_backed_derived_and_unbacked_dims():
    batch = Dim("batch", min=3, max=50)

    def forward(self, x, y, z):
        size = z.sum().item()
        torch._check(size >= 0)
        torch._check(size < 20)
        return x + y[1:], x.view(-1, x.shape[0]), z.nonzero(), torch.zeros(size, size + 1), x.shape[0] // 2

    ep = exported(
        forward,
        torch.randn(4),
        torch.randn(5),
        torch.tensor([1, 2]),
        shapes=({0: batch}, {0: batch + 1}, None),
    )
    tree = assert_json_is_pytorchs(ep)
    ranges = {(each.min_val, each.max_val) for each in tree.range_constraints.values()}
    assert {(3, 50), (0, 19)} <= ranges


def test_guards_are_kept():
    def forward(self, x, y):
        return x.reshape(-1, 4) if x.shape[0] > y.shape[0] else x

    assert_json_is_pytorchs(
        exported(forward, torch.ones(8), torch.ones(2), shapes=({0: Dim.AUTO}, {0: Dim.AUTO}))
    )


def test_a_number_without_an_expression_is_refused():
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
    with pytest.raises(SerializeError, match="expected a symbolic number with an expression, found j"):
        Symbols().expression(nested.shape[1])
