"""What the interpreter in examples/cpp/run takes as inputs and gives as outputs: what Python does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pt2wire
import pytest
import torch
from pt2wire.generated import types
from torch import ones
from torch.export import Dim
from torch.fx.experimental.symbolic_shapes import sym_or
from torch.utils import _pytree as pytree

from .helpers.cpp_run import run_all

# The tests share what was compiled.
pytestmark = pytest.mark.xdist_group("cpp_run")

_AUTO = {0: Dim.AUTO}
_H = Dim("h", min=2, max=10)
_FROM_ONE = Dim("i", min=1, max=10)


def _export(
    forward: Callable[..., Any], args: tuple[Any, ...], shapes: Any = None, module: Any = None
) -> Any:
    module = module or torch.nn.Module()
    module.forward = forward.__get__(module)
    return torch.export.export(module, args, dynamic_shapes=shapes)


def _save(ep: Any, folder: Path, name: str, inputs: Sequence[Any]) -> list[str | Path]:
    paths = [folder / f"{name}.{suffix}" for suffix in ("pt2", "in", "out")]
    pt2wire.save(ep, paths[0], compress=False)
    torch.save(list(inputs), paths[1])
    return list(paths)


# -- sizes and integers --------------------------------------------------------------------------------------


@dataclass
class Bounded:
    """A program, and arguments that Python takes or refuses."""

    forward: Callable[..., Any]
    args: tuple[Any, ...]
    shapes: Any
    calls: Sequence[tuple[Any, ...]]


def _between(least: int) -> Callable[..., Any]:
    def forward(self: Any, x: Any, n: int) -> Any:
        torch._check(n >= least)
        torch._check(n < 10)
        return x + n

    return forward


def _as_size(self: Any, x: Any, n: int) -> Any:
    torch._check(n == x.size(0))
    return x + n


def _thirds(self: Any, x: Any, y: Any) -> Any:
    return x.view(-1, 3) + y[:, None]


def _largest(self: Any, x: Any, y: Any) -> Any:
    return x[:, : max(y.size(0), 3)] + ones(max(y.size(0), 3))


def _branches(self: Any, x: Any) -> Any:
    if x.size(0) % 3 == 0 and x.size(0) * 2 < x.size(1):
        return x + 1
    return x - 1


def _nested(self: Any, xs: Any, d: Any, *, k: Any) -> Any:
    if xs[1].size(0) // 2 > k.size(0):
        return xs[0] + d["k"].sum() + k.sum()
    return xs[0] - k.sum()


def _variadic(self: Any, *xs: Any) -> Any:
    return xs[0].sum() if xs[0].size(0) > 2 * xs[1].size(0) - 1 else xs[1]


class Sizes(NamedTuple):
    a: Any
    b: Any


@dataclass
class Own:
    a: Any
    b: Any


torch.export.register_dataclass(Own, serialized_type_name=f"{__name__}.Own")


def _unequal(a: Any, b: Any) -> Any:
    return a.sum() + b.sum() if a.size(0) * 2 > b.size(0) + 1 else a.sum()


def _key(key: Any) -> Bounded:
    """Sizes and an integer under a key."""

    def forward(self: Any, x: Any, d: Any) -> Any:
        torch._check(d[key][1] * 3 < x.size(0) + 20)
        return _unequal(x, d[key][0]) + d[key][1]

    calls = [(ones(n), {key: [ones(m), k]}) for n, m, k in ((5, 6, 3), (9, 2, 3), (2, 9, 3), (5, 6, 30))]
    return Bounded(forward, (ones(5), {key: [ones(6), 4]}), (_AUTO, {key: [_AUTO, Dim.DYNAMIC]}), calls)


def _no_division_by_zero(self: Any, x: Any, n: int) -> Any:
    torch._check(sym_or(n == 0, 12 % n == 0))
    return x + n


def _numbered(self: Any, x_99999999999999999999: Any) -> Any:
    return x_99999999999999999999 + 1 if x_99999999999999999999.size(0) % 3 == 0 else x_99999999999999999999


_INTEGERS = [(ones(2), n) for n in (-3, 0, 1, 2, 9, 10)]
#: Of dictionaries. Guards have them as Python prints them, tree specs as JSON has them.
KEYS = [
    "a b",
    "f()",
    "x.y",
    "[0]",
    "a\\b",
    "line\nend",
    "tab\t",
    "\x01",
    "é",
    "😀",
    "",
    3,
    -1,
    10**12,
    True,
]
BOUNDED = {
    **{
        f"an integer from {least} on": Bounded(_between(least), (ones(2), 7), (None, Dim.DYNAMIC), _INTEGERS)
        for least in (-1, 0, 1, 2, 5)
    },
    "any integer": Bounded(lambda self, x, n: x + n, (ones(2), 4), (None, Dim.DYNAMIC), _INTEGERS),
    "an integer that is a size": Bounded(
        _as_size,
        (ones(4), 4),
        ({0: Dim.DYNAMIC}, Dim.DYNAMIC),
        [(ones(n), m) for n, m in ((0, 0), (1, 1), (5, 5), (5, 6))],
    ),
    "3h + 1": Bounded(
        lambda self, x: x + x.size(0),
        (ones(7),),
        ({0: 3 * _H + 1},),
        [(ones(n),) for n in (1, 4, 7, 8, 31, 32, 34)],
    ),
    "i + 1": Bounded(
        lambda self, x: x + x.size(0), (ones(7),), ({0: _FROM_ONE + 1},), [(ones(n),) for n in (1, 2, 11, 12)]
    ),
    "h + 1 and 2h": Bounded(
        lambda self, x, y: (x + 1, y + 2),
        (ones(5), ones(8)),
        ({0: _H + 1}, {0: 2 * _H}),
        [(ones(n), ones(m)) for n, m in ((5, 8), (5, 9), (5, 10), (2, 2), (3, 4), (11, 20), (12, 22))],
    ),
    "2h twice": Bounded(
        lambda self, x, y: x + y,
        (ones(8), ones(8)),
        ({0: 2 * _H}, {0: 2 * _H}),
        [(ones(n), ones(m)) for n, m in ((4, 4), (5, 5), (4, 6), (2, 2), (20, 20), (21, 21))],
    ),
    "sum of two": Bounded(
        lambda self, x, y, z: x + torch.cat([y, z]),
        (ones(9), ones(4), ones(5)),
        ({0: Dim.DYNAMIC}, {0: Dim("a", min=3, max=6)}, {0: Dim("b", min=3, max=6)}),
        [
            (ones(c), ones(a), ones(b))
            for a, b, c in ((4, 5, 9), (6, 6, 12), (2, 4, 6), (7, 3, 10), (4, 5, 8))
        ],
    ),
    "multiples": Bounded(
        _thirds,
        (ones(12), ones(4)),
        (_AUTO, _AUTO),
        [(ones(n), ones(m)) for n, m in ((12, 4), (6, 2), (3, 1), (13, 4), (6, 4), (0, 0))],
    ),
    "the larger of two": Bounded(
        _largest,
        (ones(2, 12), ones(6)),
        ({1: Dim.AUTO}, _AUTO),
        [(ones(2, n), ones(m)) for n, m in ((12, 6), (6, 6), (3, 1), (2, 1), (5, 7), (5, 2))],
    ),
    "the condition of a branch": Bounded(
        _branches,
        (ones(6, 15),),
        ({0: Dim.AUTO, 1: Dim.AUTO},),
        [(ones(*n),) for n in ((6, 15), (6, 12), (7, 20), (3, 7), (0, 1))],
    ),
    "nested arguments": Bounded(
        lambda self, xs, d, k: _nested(self, xs, d, k=k),
        ([ones(7), ones(9)], {"k": ones(3)}, ones(3)),
        ([_AUTO, _AUTO], {"k": _AUTO}, _AUTO),
        [([ones(7), ones(n)], {"k": ones(2)}, ones(m)) for n, m in ((9, 3), (6, 3), (7, 2), (6, 2))],
    ),
    **{f"the key {number}": _key(key) for number, key in enumerate(KEYS)},
    "a named tuple": Bounded(
        lambda self, x: _unequal(x.a, x.b),
        (Sizes(ones(5), ones(6)),),
        (Sizes(_AUTO, _AUTO),),
        [(Sizes(ones(n), ones(m)),) for n, m in ((6, 4), (2, 9))],
    ),
    "keys that only the exact tree spec has": Bounded(
        lambda self, x: _unequal(x["a"], x[7][0]) + x[1, 2],
        ({"a": ones(5), 7: [ones(6)], (1, 2): ones(1)},),
        ({"a": _AUTO, 7: [_AUTO], (1, 2): None},),
        [({"a": ones(n), 7: [ones(m)], (1, 2): ones(1)},) for n, m in ((6, 4), (2, 9))],
    ),
    "a dictionary with a default": Bounded(
        lambda self, x: _unequal(x["a"], x["b"]),
        (defaultdict(list, a=ones(5), b=ones(6)),),
        ({"a": _AUTO, "b": _AUTO},),
        [(defaultdict(list, a=ones(n), b=ones(m)),) for n, m in ((6, 4), (2, 9))],
    ),
    "what is computed only where it is needed": Bounded(
        _no_division_by_zero, (ones(5), 6), (None, Dim.DYNAMIC), [(ones(5), n) for n in (0, 4, 5, -12)]
    ),
    "a name that ends with a number as no machine has": Bounded(
        _numbered, (ones(6),), (_AUTO,), [(ones(n),) for n in (3, 6, 7)]
    ),
    "any number of arguments": Bounded(
        _variadic,
        (ones(9), ones(3)),
        ((_AUTO, _AUTO),),
        [(ones(n), ones(m)) for n, m in ((9, 3), (6, 3), (5, 3), (7, 2), (4, 3))],
    ),
}


def test_sizes_and_integers_are_refused_where_python_refuses_them(tmp_path: Path) -> None:
    commands, expected = [], []
    for name, bounded in BOUNDED.items():
        ep = _export(bounded.forward, bounded.args, bounded.shapes)
        module = ep.module()
        model = _save(ep, tmp_path, name, ())[0]
        for number, call in enumerate(bounded.calls):
            inputs = tmp_path / f"{name} {number}.in"
            torch.save(pytree.tree_leaves(call), inputs)
            commands.append([model, inputs, tmp_path / "out"])
            try:
                module(*call)
            except (AssertionError, RuntimeError):
                expected.append((name, number, False))
            else:
                expected.append((name, number, True))
    answers = run_all(commands)
    wrong = [
        (*call, answer)
        for call, answer in zip(expected, answers, strict=True)
        if (answer == "ok") is not call[2]
    ]
    assert not wrong
    assert {taken for _, _, taken in expected} == {True, False}


#: Guards that no tracing makes, and the integers that they are asked about.
GUARDS = (
    "L['n'] < math.pi",
    "L['n'] > math.e",
    "L['n'] != math.nan",
    "L['n'] == 0 or 12 % L['n'] == 0",
    "(12 // L['n'] if L['n'] != 0 else 5) > 2",
    "L['n'] != 0 and 8 % L['n'] == 0",
    "0 < L['n'] < 12 // L['n']",
    "L['n'] ^ 3 == 0",
    "L['n'] ^ 1 & 5 | 2 == 6",
    "L['n'] > -9223372036854775808",
    "L['n'] < 1E1",
    "L['n'] > .5",
    "L[ 'n' ] < 5",
    "L['x'].item() > L['n']",
)


def test_guards_compute_what_python_computes(tmp_path: Path) -> None:
    ep = _export(lambda self, x, n: x + n, (torch.tensor(4), 6), (None, Dim.DYNAMIC))
    commands, expected = [], []
    for guard in GUARDS:
        ep._guards_code = [guard]
        model, inputs, _ = _save(ep, tmp_path, "model", ())
        model.rename(model := tmp_path / f"{len(commands)}.pt2")
        module = pt2wire.load(model).module()
        for n in (0, 3, 4, 5, 7, 10):
            torch.save([torch.tensor(4), n], inputs := tmp_path / f"{n}.in")
            commands.append([model, inputs, tmp_path / "out"])
            try:
                module(torch.tensor(4), n)
            except (AssertionError, ZeroDivisionError):
                expected.append((guard, n, False))
            else:
                expected.append((guard, n, True))
    answers = run_all(commands)
    assert [(*call[:2], answer == "ok") for call, answer in zip(expected, answers, strict=True)] == expected


def test_guards_on_what_has_no_known_name_are_refused_unless_told_otherwise(tmp_path: Path) -> None:
    ep = _export(lambda self, x: _unequal(x.a, x.b), (Own(ones(5), ones(6)),), ([_AUTO, _AUTO],))
    command = _save(ep, tmp_path, "model", [ones(6), ones(4)])
    refused, taken = run_all([command, [*command, "--skip-unknown-guards"]])
    assert refused.startswith(
        "this program cannot be run:\\n  guards_code[0]: \"L['x'].a.size()[0]\" lies in a container"
    )
    assert taken == "ok"


def test_guards_on_what_is_no_input_are_refused(tmp_path: Path) -> None:
    ep = _export(lambda self, x: x + x.size(0), (ones(5),), (_AUTO,))
    tree = pt2wire.to_tree(ep)
    tree.guards_code = ["L['y'].size()[0] > 3", "L['x'].rank() > 3", "y > 3"]
    paths = _save(ep, tmp_path, "model", [ones(5)])
    archive = pt2wire.read(paths[0])
    archive.programs["model"] = tree
    pt2wire.write(archive, paths[0], compress=False, allow_unsound=True)
    assert run_all([paths])[0].split("\\n  ")[1:] == [
        "guards_code[0]: a guard on \"L['y']\", which is no input",
        "guards_code[1]: a guard on \"L['x'].rank()\" is not supported",
        'guards_code[2]: a guard on "y", which is no input',
    ]


_ONE = types.Value.create(as_tuple=[types.Value.create(as_none=True)])


def test_tree_specs_that_are_none_are_refused(tmp_path: Path) -> None:
    ep = _export(lambda self, x, y: x + x.size(0), (ones(5), ones(2)), (_AUTO, None))
    commands = []
    for name, value in (
        ("in_spec", "[1]"),
        ("in_spec", "{}"),
        ("forward_arg_names", ["x", "x"]),
        ("exact_in_spec", [types.TreeSpecNode(type="collections.defaultdict", context=_ONE)]),
    ):
        paths = _save(ep, tmp_path, f"model {len(commands)}", [ones(5), ones(2)])
        archive = pt2wire.read(paths[0])
        tree = archive.programs["model"]
        tree.guards_code = ["L['x'].size()[0] > 1"]
        setattr(tree.graph_module.module_call_graph[0].signature, name, value)
        pt2wire.write(archive, paths[0], compress=False, allow_unsound=True)
        commands.append(paths)
    assert [answer.split("\\n  ")[1:] for answer in run_all(commands)] == [
        ["guards_code: a tree spec is a version and a container, found others"],
        ["guards_code: a tree spec is a version and a container, found others"],
        ["guards_code: two arguments have one name"],
        ["guards_code: a defaultdict in a tree spec has a factory and keys, found others"],
    ]


def test_chains_of_comparisons_are_computed_once(tmp_path: Path) -> None:
    guard = "1"
    for _ in range(60):
        guard = f"0 <= ({guard}) <= 1"
    ep = _export(lambda self, x: x + x.size(0), (ones(5),), (_AUTO,))
    paths = _save(ep, tmp_path, "model", [ones(5)])
    archive = pt2wire.read(paths[0])
    archive.programs["model"].guards_code = [guard]
    pt2wire.write(archive, paths[0], compress=False, allow_unsound=True)
    assert run_all([paths]) == ["ok"]


# -- numbers of other types than the schema's --------------------------------------------------------------


def test_integers_are_taken_for_booleans(tmp_path: Path) -> None:
    def forward(self: Any, grad: Any, x: Any, weight: Any) -> Any:
        mask = [True, True, False]
        return torch.ops.aten.convolution_backward(grad, x, weight, None, [1], [0], [1], False, [0], 1, mask)[
            :2
        ]

    inputs = torch.rand(1, 1, 4), torch.rand(1, 1, 4), torch.rand(1, 1, 1)
    ep = _export(forward, inputs)
    node = next(node for node in ep.graph.nodes if node.name == "convolution_backward")
    node.args = (*node.args[:-4], 0, *node.args[-3:-1], [1, 2, 0])
    command = _save(ep, tmp_path, "model", inputs)
    assert run_all([command]) == ["ok"]
    outputs = torch.load(command[2], weights_only=True)[0]
    assert all(map(torch.equal, outputs, ep.module()(*inputs)))


# -- weights that are resized --------------------------------------------------------------------------------


def test_buffers_that_a_program_resizes(tmp_path: Path) -> None:
    def forward(self: Any, x: Any) -> Any:
        self.a.resize_(4)
        self.a.copy_(x)
        self.b.resize_(2)
        self.b.fill_(7)
        return self.a + 1, self.b * 2, self.c + x

    module = torch.nn.Module()
    for name, size in (("a", 0), ("b", 0), ("c", 4)):
        module.register_buffer(name, torch.zeros(size))
    ep = _export(forward, (ones(4),), module=module)
    command = _save(ep, tmp_path, "model", [torch.arange(4.0)])
    assert run_all([command]) == ["ok"]
    outputs, _, buffers = torch.load(command[2], weights_only=True)
    assert all(map(torch.equal, outputs, ep.module()(torch.arange(4.0))))
    assert [name for name, buffer in buffers if len(buffer) == 4] == ["a", "c"]


# -- what files cannot hold ----------------------------------------------------------------------------------

UNWRITABLE = {
    "coordinates": (lambda self, x: (x + 1, x.to_sparse()), "layout Sparse"),
    "rows": (lambda self, x: (x + 1, x.to_sparse_csr()), "layout SparseCsr"),
    "no data": (lambda self, x: (x + 1, torch.empty(3, device="meta")), "the device meta"),
}


def test_outputs_that_files_cannot_hold_are_named_before_anything_runs(tmp_path: Path) -> None:
    commands = [
        _save(_export(forward, (torch.eye(3),)), tmp_path, name, [torch.ones(4)])
        for name, (forward, _) in UNWRITABLE.items()
    ]
    for (_, reason), answer in zip(UNWRITABLE.values(), run_all(commands), strict=True):
        assert answer.startswith("this program cannot be run:\\n  output 1: tensors ")
        assert reason in answer


# -- dtypes ------------------------------------------------------------------------------------------------


def test_complex_numbers_of_two_halves_go_in_and_out_as_bits(tmp_path: Path) -> None:
    x = torch.tensor([1 + 2j, -3 + 0.5j])
    half = x.to(torch.complex32)
    ep = _export(lambda self, x, y: (x.to(torch.complex32), y, y.to(torch.complex64) * 2), (x, half))
    command = _save(ep, tmp_path, "model", [x, half.view(torch.int32)])
    assert run_all([command]) == ["ok"]
    outputs = torch.load(command[2], weights_only=True)[0]
    expected = ep.module()(x, half)
    assert [output.dtype for output in outputs] == [torch.int32, torch.int32, torch.complex64]
    bits = [each.view(torch.int32) if each.dtype == torch.complex32 else each for each in expected]
    assert all(map(torch.equal, outputs, bits))


def test_an_unsigned_number_beyond_signed_ones_in_place_of_a_tensor(tmp_path: Path) -> None:
    x = torch.tensor(2**63 + 5, dtype=torch.uint64)
    ep = _export(lambda self, a: torch.zeros(2) + a.item(), (torch.tensor(7, dtype=torch.uint64),))
    command = _save(ep, tmp_path, "model", [x.view(torch.int64)])
    assert run_all([command]) == ["ok"]
    assert torch.equal(torch.load(command[2], weights_only=True)[0][0], ep.module()(x))
