"""Guards: the language that exporters write passes and means the same, everything else is refused."""

from __future__ import annotations

import ast
import contextlib
import time
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pt2wire.errors import DeserializeError, UnsafeArtifactError
from pt2wire.guards import check_guard, normal_guard

_HINT = ". Guards may only compute with the sizes, strides and numbers of the inputs."

_GUARDS = [
    "L['x'].size()[0] % 3 == 0",
    "2*L['x'].size()[0] <= 1 + L['y'].size()[1]",
    "L['flat_args'][2].stride()[0] != 1",
    "L['x']['key'][0].field.size()[-1] > 4",
    "((-1 + L['x'].size()[2]) // 2) < 5 and not (L['n'] == 3)",
    "max(1, L['x'].size()[0]) != 2 or min(L['x'].size()[0], 7) == 7",
    "math.trunc(1.5*torch.sym_float(L['x'].size()[0])) >= 2",
    "L['f'] < math.inf and L['f'] > -math.inf",
    "math.isnan(L['f'])",
    "(3 if L['x'].size()[0] > 2 else L['n']) < 5",
    "IsNonOverlappingAndDenseIndicator(L['x'].size()[0], L['x'].stride()[0]) == 1",
    "2 ** L['n'] < 100",
    "2 ** L['x'].size()[0] < 100",
    "round(L['f'], -2) == round(L['f'], 3)",
    "L['x'].size()[0] ** 2 < 100",
    "torch._sym_sqrt(L['n']) < 3.0",
    "L['x'].storage_offset() == 0",
    "L['x'].size()[0] & 7 == 0",
    "L['with space']['é'].size()[0] == 1",
    "L['d'][None] + L['d'][-2.5] + L['d'][1e-05] + L['d'][inf] + L['d'][-inf] + L['d'][True] == 1",
    f"L['d'][{10**30}].size()[0] == 1",
    "L['d'][(1, 'a')] + L['d'][(None, (2.5,))] + L['d'][()] + L['d'][(1, 'a')] == 1",
    "L['d'][(2+3j)] + L['d'][(-0-2.5j)] + L['d'][1j] == 1",
]


@pytest.mark.parametrize("text", _GUARDS)
def test_what_exporters_write_passes_and_means_the_same(text: str) -> None:
    checked = check_guard(text)
    assert ast.dump(ast.parse(checked)) == ast.dump(ast.parse(text))
    assert check_guard(checked) == checked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("((-1) + L['x'].size()[0]) == L['n']", None),
        ("(L['x'].size()[0]) // (2 + (L['n'])) != (0)", None),
        ("L['x(']['#'] == 1", None),
        ("(2*L['d'][(1, (2,))]) > 1 + L['d'][(2+3j)]", None),
        ("L['d'][1, (2,)] == 1", "L['d'][(1, (2,))] == 1"),
        ("L['d'][(1,(2, ))] == 1", "L['d'][(1, (2,))] == 1"),
        ("L['d'][(2 + 3j)] == 1", "L['d'][(2+3j)] == 1"),
        ("(10*L['x'].size()[0])//3 == max(L['n'],-2 + L['- [- '])", None),
        ("L['x'][- 1] == 1", "L['x'][-1] == 1"),
        ("L['x'][ -1] == 1", "L['x'][-1] == 1"),
        ("L['x'] [0]  ==  1", "L['x'][0] == 1"),
        ("(L)['x'] == 1", "L['x'] == 1"),
        ("(L['x'])['y'] == 1", "L['x']['y'] == 1"),
        ("(L['x'].size)()[(0)] == 1", "L['x'].size()[0] == 1"),
        ("L[('x')] == 1", "L['x'] == 1"),
        ("L['x']  == 1 # (", "L['x'] == 1"),
        ("(L['x']\n== 1)", "L['x'] == 1"),
        (f"{'(' * 150}L['x']{')' * 150} == 1", "L['x'] == 1"),
    ],
)
def test_a_text_stays_as_it_is_but_for_what_only_a_parser_passes_over(
    text: str, expected: str | None
) -> None:
    assert check_guard(text) == (expected or text)
    assert ast.dump(ast.parse(normal_guard(text))) == ast.dump(ast.parse(text))


def test_the_guards_of_an_export_pass() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: list[torch.Tensor]) -> torch.Tensor:
            return x[:, ::2].reshape(-1, 3) + y[0].sum()

    batch, size = torch.export.Dim.AUTO, torch.export.Dim.AUTO
    ep = torch.export.export(
        Model(), (torch.ones(6, 8), [torch.ones(6)]), dynamic_shapes=({0: batch, 1: size}, [{0: batch}])
    )
    assert ep._guards_code
    for guard in ep._guards_code:
        assert ast.dump(ast.parse(check_guard(guard))) == ast.dump(ast.parse(guard))


_UNSAFE = {
    "__import__('os').system('true')": (
        "column 1: expected a call of a known function, found \"__import__('os').system\""
    ),
    "open('f', 'w')": "column 1: expected a call of a known function, found 'open'",
    "eval('1')": "column 1: expected a call of a known function, found 'eval'",
    "torch.load('f') == 1": "column 1: expected a call of a known function, found 'torch.load'",
    "math.__loader__ == 1": "column 1: expected an input, L['name'], found Attribute 'math.__loader__'",
    "L['x'].__class__ == 1": "column 1: expected an input, L['name'], found Attribute \"L['x'].__class__\"",
    "L['x'].tofile('f')": "column 1: expected a call of a known function, found \"L['x'].tofile\"",
    "L['x'].size(0) == 1": "column 1: expected a call of a known function, found \"L['x'].size\"",
    "L.clear()": "column 1: expected a call of a known function, found 'L.clear'",
    "L == 1": "column 1: expected arithmetic or a comparison, found Name 'L'",
    "x == 1": "column 1: expected arithmetic or a comparison, found Name 'x'",
    "G['x'].size()[0] == 1": "column 1: expected an input, L['name'], found Name 'G'",
    "L[f'{1}'] == 1": "column 3: expected a number or a plain text in brackets, found JoinedStr \"f'{1}'\"",
    "L['x'][1 + 2] == 1": "column 8: expected a number or a plain text in brackets, found BinOp '1 + 2'",
    "L['x'][(1, f())] == 1": "column 12: expected a number or a plain text in brackets, found Call 'f()'",
    "L['x'][-True] == 1": "column 9: expected a number, found Constant 'True'",
    "L['x'][L['x'] + 1j] == 1": "column 8: expected a number, found Subscript \"L['x']\"",
    "L['x'][b'x'] == 1": "column 8: expected a number or a plain text in brackets, found Constant \"b'x'\"",
    "L['x'][0:1] == 1": "column 8: expected a number or a plain text in brackets, found Slice '0:1'",
    "(lambda: 1)()": "column 1: expected a call of a known function, found 'lambda: 1'",
    "[1 for _ in ()]": "column 1: expected arithmetic or a comparison, found ListComp '[1 for _ in ()]'",
    "(y := 1)": "column 2: expected arithmetic or a comparison, found NamedExpr '(y := 1)'",
    "'text' == 1": "column 1: expected arithmetic or a comparison, found Constant \"'text'\"",
    "max(*L['x'].size()) == 1": (
        "column 5: expected arithmetic or a comparison, found Starred \"*L['x'].size()\""
    ),
    "round(1.5, ndigits=0) == 1": (
        "column 1: expected arithmetic or a comparison, found Call 'round(1.5, ndigits=0)'"
    ),
    "1 << 99999999999 == 1": "column 1: expected arithmetic or a comparison, found BinOp '1 << 99999999999'",
    "1 in L['x']": "column 1: expected arithmetic or a comparison, found Compare \"1 in L['x']\"",
    "10**10**10 == 1": "column 1: expected a power of something simpler, found a power of a power",
    "10**1000000 == 1": "column 1: expected an exponent of at most 64, found Constant '1000000'",
    "10**(9*9*9) == 1": (
        "column 1: expected an exponent of at most 64, or a small number to a size, "
        "found BinOp '10 ** (9 * 9 * 9)'"
    ),
    "2**(L['n'] * 1000000000) == 1": (
        "column 1: expected an exponent of at most 64, or a small number to a size, "
        "found BinOp \"2 ** (L['n'] * 1000000000)\""
    ),
    "999**L['n'] == 1": (
        "column 1: expected an exponent of at most 64, or a small number to a size, "
        "found BinOp \"999 ** L['n']\""
    ),
    "round(L['n'], -1000000000) == 1": (
        "column 1: expected at most 64 digits to round to, found Constant '1000000000'"
    ),
    "round(5, L['n']) == 1": "column 1: expected at most 64 digits to round to, found Subscript \"L['n']\"",
    f"L['x'] == {2**128}": "column 11: expected an integer of at most 128 bits, found one of 129",
    # what would end the string, or the line, that torch pastes the guard into
    'L["it\'s"].size()[0] == 1': (
        "column 3: expected a number or a plain text in brackets, found Constant '\"it\\'s\"'"
    ),
}


@pytest.mark.parametrize("text", _UNSAFE)
def test_what_does_more_than_compute_is_refused(text: str) -> None:
    with pytest.raises(UnsafeArtifactError) as caught:
        check_guard(text)
    assert str(caught.value) == _UNSAFE[text] + _HINT


@pytest.mark.parametrize(
    "text", ["", "L['x'", "import os", "x = 1", "1; 2", "L['x'] == 1\nimport os", "\0", "1 == \\"]
)
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(DeserializeError, match="expected a Python expression as guard, found"):
        check_guard(text)


@pytest.mark.parametrize(
    "text",
    [
        "-" * 50_000 + "1",
        "(" * 150 + "1" + ")" * 150,
        "1" + " + 1" * 5_000,
        "L" + "['x']" * 5_000,
        "a" + ".a" * 20_000,
        "not " * 5_000 + "1",
        "1 == " * 20_000 + "1",
    ],
    ids=lambda text: text[:8],
)
def test_deep_nesting_ends_in_a_refusal_or_a_result(text: str) -> None:
    begin = time.process_time()
    with contextlib.suppress(DeserializeError):
        check_guard(text)
    assert time.process_time() - begin < 5


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="L['x'].size()[0] 123+-*/%<>=!&|^~@:,{}\"#\\\n", max_size=40))
def test_any_text_is_a_guard_or_a_refusal(text: str) -> None:
    try:
        checked = check_guard(text)
    except DeserializeError:
        return
    assert check_guard(checked) == checked


def _numbers(depth: int) -> st.SearchStrategy[str]:
    leaf = st.sampled_from(["L['x'].size()[0]", "L['y'][1].stride()[2]", "3", "2.5", "L['n']"])
    if depth == 0:
        return leaf
    inner = _numbers(depth - 1)
    return st.one_of(
        leaf,
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "//", "%", "/"]), inner),
        st.builds("{}({}, {})".format, st.sampled_from(["max", "min"]), inner, inner),
        st.builds("math.{}({})".format, st.sampled_from(["floor", "ceil", "trunc"]), inner),
    )


@given(st.builds("{} {} {}".format, _numbers(3), st.sampled_from(["==", "<", ">=", "!="]), _numbers(3)))
def test_a_checked_guard_computes_the_same(text: str) -> None:
    import math

    class Tensor:
        size = staticmethod(lambda: (5, 6))
        stride = staticmethod(lambda: (7, 8, 9))

    names: dict[str, Any] = {"L": {"x": Tensor(), "y": [0, Tensor()], "n": 4}, "math": math}

    def outcome(code: str) -> Any:
        try:
            return eval(code, dict(names))  # a text made in this test
        except ArithmeticError as error:
            return type(error)

    assert outcome(check_guard(text)) == outcome(text)
