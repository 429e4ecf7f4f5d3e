"""Guards after loading: what PyTorch makes of a loaded program refuses what it would have refused before."""

from __future__ import annotations

import copy
import functools
import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire.errors import DeserializeError
from pt2wire.guards import normal_guard
from torch import Tensor, nn, ones
from torch.export import Dim, ExportedProgram
from torch.export.exported_program import _convert_guards_to_code, _get_shape_env
from torch.utils._pytree import tree_leaves

_SIZES = range(2, 10)


class _Model(nn.Module):
    def __init__(self, condition: Callable[[int, int], bool]) -> None:
        super().__init__()
        self.condition = condition

    def forward(self, x: Tensor, y: dict[str, Tensor]) -> Tensor:
        total = x.sum() + y["a"].sum()
        return total + 1 if self.condition(x.shape[0], y["a"].shape[0]) else total


def _inputs(x: int, y: int) -> tuple[Any, ...]:
    return ones(x), {"a": ones(y)}


def _exported(
    condition: Callable[[int, int], bool], strict: bool = False, shapes: Any = (Dim.DYNAMIC, Dim.DYNAMIC)
) -> ExportedProgram:
    dynamic = ({0: shapes[0]}, {"a": {0: shapes[1]}})
    return torch.export.export(_Model(condition), _inputs(6, 5), dynamic_shapes=dynamic, strict=strict)


def _loaded(ep: ExportedProgram) -> ExportedProgram:
    file = io.BytesIO()
    pt2wire.save(ep, file)
    return pt2wire.load(file)


def _accepted(ep: ExportedProgram) -> set[tuple[int, int]]:
    module = ep.module()
    found = set()
    for x in _SIZES:
        for y in _SIZES:
            try:
                module(*_inputs(x, y))
            except AssertionError:
                continue
            found.add((x, y))
    return found


_ROWS = Dim("rows", min=2, max=12)
_KINDS: dict[str, tuple[Callable[[int, int], bool], tuple[Any, Any]]] = {
    "divisible": (lambda x, y: x % 3 == 0, (Dim.DYNAMIC, Dim.DYNAMIC)),
    "related": (lambda x, y: x > y, (Dim.DYNAMIC, Dim.DYNAMIC)),
    "equal to a constant": (lambda x, y: x == 6, (Dim.AUTO, Dim.DYNAMIC)),
    "equal to each other": (lambda x, y: x == y + 1, (Dim.AUTO, Dim.AUTO)),
    "derived": (lambda x, y: x > y, (_ROWS + 1, _ROWS)),
    "bounded": (lambda x, y: 2 * x + y * y <= 60 and x != 4, (Dim.DYNAMIC, Dim.DYNAMIC)),
    "rounded": (lambda x, y: (x - 2) // 2 * 2 % 4 == 0 and max(x, y) < 12, (Dim.DYNAMIC, Dim.DYNAMIC)),
}


@pytest.mark.parametrize("kind", _KINDS)
def test_a_decomposed_program_refuses_what_it_did(kind: str) -> None:
    condition, shapes = _KINDS[kind]
    ep = _exported(condition, kind == "divisible", shapes)
    expected = _accepted(ep.run_decompositions())
    assert set() < expected < {(x, y) for x in _SIZES for y in _SIZES}
    decomposed = _loaded(ep).run_decompositions()
    assert _accepted(decomposed) == expected
    assert _normal(decomposed) >= _normal(ep)
    again = _loaded(decomposed)
    assert _normal(again) == _normal(decomposed) == set(map(normal_guard, _written(again)))


@dataclass
class _Pair:
    a: Tensor
    b: Tensor


torch.export.register_dataclass(_Pair, serialized_type_name="tests.test_importing_guards._Pair")


def test_guards_within_classes_of_pytree_add_no_ranges() -> None:
    class Sum(nn.Module):
        def forward(self, pair: _Pair) -> Tensor:
            return pair.a + pair.b

    shapes = {"pair": [{0: Dim.AUTO}, {0: Dim.AUTO}]}
    ep = torch.export.export(Sum(), (_Pair(ones(4), ones(4)),), dynamic_shapes=shapes)
    decomposed = _loaded(ep).run_decompositions()
    assert decomposed.range_constraints == ep.run_decompositions().range_constraints
    assert _normal(decomposed) == _normal(ep) != set()
    with pytest.raises(AssertionError, match=r"Guard failed: pair\.b"):
        decomposed.module()(_Pair(ones(4), ones(5)))


class _Rows(nn.Module):
    """Decompositions of these ask whether there is one row, or none."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        normed = nn.functional.layer_norm(x, (3,))
        return x.expand(2, -1, -1), torch.cat([x, normed]), x.mean(0), x.reshape(-1).softmax(0)


@pytest.mark.parametrize("least", [0, 1, 2])
def test_a_decomposed_program_takes_one_row_or_none_where_it_did(least: int) -> None:
    rows = Dim("rows", min=least, max=9)
    ep = torch.export.export(_Rows(), (ones(4, 3),), dynamic_shapes=({0: rows},))
    before, after = ep.run_decompositions(), _loaded(ep).run_decompositions()
    assert after._guards_code == before._guards_code == []
    assert list(after.range_constraints.values()) == list(before.range_constraints.values())
    for number in (0, 1, 2, 9):
        expected, found = before.module()(ones(number, 3)), after.module()(ones(number, 3))
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


def _normal(ep: ExportedProgram) -> set[str]:
    return set(map(normal_guard, ep._guards_code))


def _written(ep: ExportedProgram) -> list[str]:
    """The guards that PyTorch writes of a program that a pass made."""
    return _convert_guards_to_code(ep.graph_module)


@functools.cache
def _program() -> ExportedProgram:
    return _exported(lambda x, y: x > y)


def test_pytorch_accepts_what_the_program_refuses() -> None:
    """The reason for all this: once PyTorch keeps them, less is to be done here."""
    file = io.BytesIO()
    torch.export.save(_program(), file)
    file.seek(0)
    assert torch.export.load(file).run_decompositions()._guards_code == []


def test_guards_are_read_when_pytorch_asks() -> None:
    loaded = _loaded(_program())
    env = _get_shape_env(loaded.graph_module)
    assert "guards" not in vars(env)
    assert [guard.expr for guard in copy.deepcopy(env).guards] == [guard.expr for guard in env.guards]
    assert _written(loaded) == loaded._guards_code
    with pytest.raises(AttributeError, match="object has no attribute 'other'"):
        _ = env.other


def _with_guard(text: str) -> ExportedProgram:
    ep = _loaded(_program())
    ep._guards_code = [text]
    return _loaded(ep)


#: What PyTorch writes, other spellings of it too; all true of the inputs.
_TEXTS = [
    "L['x'].size()[0] - 7 != 3 - 1",
    "(L['x'].size()[0] - 7) % 4 == 3",
    "(3 * L['x'].size()[0] + 1) % 4 == 3",
    "+L['x'].size()[0] / 4 == 1.5",
    "L['x'].size()[0] * 0.5 / 2 == 1.5",
    "2 ** L['x'].size()[0] == 64 and L['x'].size()[0] ** 2 == 36",
    "torch.sym_float(L['x'].size()[0]) ** 0.5 < 2.5",
    "not (L['x'].size()[0] == 3 or L['y']['a'].size()[0] >= 6)",
    "1 < L['x'].size()[0] <= 6",
    "max(L['x'].size()[0], 2, L['y']['a'].size()[0]) == 6",
    "torch.sym_min(-L['x'].size()[0], 2) == -6",
    "abs(2 - L['x'].size()[0]) == 4",
    "round(L['x'].size()[0] / 4) == 2 and round(L['x'].size()[0] / 4, 1) == 1.5",
    "math.floor(L['x'].size()[0] / 4) == 1 and math.ceil(L['x'].size()[0] / 4) == 2",
    "math.trunc(L['x'].size()[0] * 0.3) == 1 and torch.sym_int(L['x'].size()[0] / 4) == 1",
    "math.sqrt(L['x'].size()[0]) < 2.5 and torch._sym_sqrt(L['x'].size()[0]) > 2.4",
    "L['x'].size()[0] & 3 == 2 and L['x'].size()[0] | 8 == 14 and L['x'].size()[0] ^ 3 == 5",
    "L['x'].stride()[0] == 1 and L['x'].storage_offset() != L['x'].numel()",
    "L['flat_args'][1].size()[-1] == L['y']['a'].dim() + 4",
    "IsNonOverlappingAndDenseIndicator(L['x'].size()[0], L['x'].stride()[0]) == 1",
    "torch.sym_not(L['x'].size()[0] > 8) and L['x'].size()[0] < math.inf",
    "(2*L['x'].size()[0] if L['x'].size()[0] > 5 else 3) == 12",
]


def _holds(guard: str, x: int, y: int) -> bool:
    args = _inputs(x, y)
    inputs = {"x": args[0], "y": args[1], "flat_args": tree_leaves(args)}
    functions = {"IsNonOverlappingAndDenseIndicator": lambda size, stride: int(stride == 1 or size < 2)}
    return bool(eval(guard, {"L": inputs, "torch": torch, "math": math} | functions))


@pytest.mark.parametrize("text", _TEXTS)
def test_what_pytorch_writes_again_means_the_same(text: str) -> None:
    written = _written(_with_guard(text))
    for x, y in ((6, 5), (7, 4), (3, 9), (10, 2)):
        assert all(_holds(guard, x, y) for guard in written) == _holds(text, x, y), written


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("math.sin(L['x'].size()[0]) < 2", "column 1: .* found math.sin of 1"),
        ("1 == 1", "expected symbols in all that a relation compares"),
    ],
)
def test_what_pytorch_does_not_write_is_named_when_it_would(text: str, expected: str) -> None:
    loaded = _with_guard(text)
    for _ in range(2):
        with pytest.raises(DeserializeError, match=expected) as caught:
            _written(loaded)
        assert caught.value.path is not None and caught.value.path.startswith("guards_code[0]")
