"""Running programs with examples/cpp/run, beside Python."""

from __future__ import annotations

import functools
import hashlib
import subprocess
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pt2wire
import torch
from pt2wire.generated import thrift_codec, types
from torch import Tensor, nn, randn
from torch.export import Dim, ExportedProgram
from torch.export._tree_utils import reorder_kwargs
from torch.utils import _pytree as pytree

from . import cpp
from .archives import record, with_records
from .cases import Case, Table, call
from .exporting import exported
from .programs import Description, describe_value

SEED = 2
_TORCH = Path(torch.__file__).parent

LOOPS = Table()


@LOOPS.case(
    lambda rows=4: call(randn(rows, 3), randn(3)),
    shapes={"xs": {0: Dim.DYNAMIC}, "y": None},
    sizes=({"rows": 7},),
)
def map_over_two_tensors(self, xs, y):
    from torch._higher_order_ops.map import map as map_

    return map_(lambda pair: (pair[0] * pair[1], [pair[1].sum() + y]), (xs, xs + 1))


@LOOPS.case(lambda: call(randn(3, 4), randn(3)))
def scan_with_two_stacks(self, xs, y):
    from torch._higher_order_ops.scan import scan

    return scan(lambda carry, x: (carry + x, [carry * x, (carry + y).sum()]), y, xs, dim=1, reverse=True)


@LOOPS.case(lambda rows=3: call(randn(rows)), shapes={"x": {0: Dim.DYNAMIC}}, sizes=({"rows": 5},))
def while_loop_with_what_it_does_not_carry(self, x):
    def more(i, y):
        return i.sum() < 4

    def step(i, y):
        return i + 1, torch.cond(y.sum() > 0, lambda z: z - x, lambda z: z * x + 1, (y,))

    return torch.while_loop(more, step, (torch.zeros(1), x * 2))


@LOOPS.case(lambda: call(randn(3, 3), randn(3, 3)))
def autocast_and_gradients_off(self, x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        product = x @ y
        with torch.autocast("cpu", enabled=False):
            again = x @ y
    with torch.no_grad():
        doubled = product * 2
    with torch.enable_grad():
        return product, again, doubled + 1, x @ y


@LOOPS.case(lambda: call(randn(3)), lambda m: m.register_buffer("total", torch.zeros(3)))
def buffer_changed_then_branched_on(self, x):
    self.total.add_(x)
    return torch.cond(self.total.sum() > 0, lambda t: t * 2, lambda t: t - 1, (self.total,))


@LOOPS.case(
    lambda rows=4: call(randn(rows, 3), torch.zeros(3)),
    shapes={"x": {0: Dim.DYNAMIC}, "state": None},
    sizes=({"rows": 2},),
    after=lambda ep: ep.run_decompositions({}),
)
def input_mutation_as_output(self, x, state):
    state.add_(x.sum(0))
    x.mul_(2)
    return state * x.size(0)


def _conjugates(m):
    base = randn(4, dtype=torch.complex64)
    m.register_buffer("conjugate", base.conj())
    m.register_buffer("base", base)
    m.register_buffer("negated", base.conj().imag)
    m.register_buffer("hidden", torch._neg_view(base[1:]), persistent=False)


@LOOPS.case(lambda: call(randn(4)), _conjugates)
def weights_in_one_memory_with_their_conjugates(self, x):
    self.base.mul_(2 + 1j)
    return x + self.conjugate, x * self.negated, self.hidden + 1


@torch.compiler.nested_compile_region
def _region(x, y):
    return (x @ y).sin()


@LOOPS.case(lambda: call(randn(3, 3), randn(3, 3)), export={"strict": True})
def region_called_twice(self, x, y):
    return _region(_region(x, y), y)


_DTYPES = (torch.float8_e4m3fn, torch.float8_e5m2, torch.uint16, torch.uint32, torch.uint64, torch.bfloat16)


def _newer_dtypes(m: nn.Module) -> None:
    for index, dtype in enumerate(_DTYPES):
        setattr(m, f"constant_{index}", torch.arange(5).to(dtype))


@LOOPS.case(lambda: call(randn(5)), _newer_dtypes)
def constants_of_newer_dtypes(self, x):
    return [x + getattr(self, f"constant_{index}").to(torch.float32) for index in range(len(_DTYPES))]


@LOOPS.case(lambda: call(*(torch.arange(12).view(3, 4).t().to(dtype) for dtype in _DTYPES)))
def inputs_of_newer_dtypes_changed_and_returned(self, *xs):
    for x in xs:
        x.copy_((x.to(torch.float32) * 2).to(x.dtype))
    return [x.view(x.shape) for x in xs], [x.clone() for x in xs]


@functools.cache
def runner() -> Path:
    """The example, compiled."""
    return cpp.build(
        cpp.ROOT / "examples" / "cpp" / "run" / "main.cpp",
        "-std=c++20",  # libtorch's headers need it
        *(f"-isystem{_TORCH / folder}" for folder in ("include", "include/torch/csrc/api/include")),
        *cpp.WARNINGS,
        f"-L{_TORCH / 'lib'}",
        f"-Wl,--no-as-needed,-rpath,{_TORCH / 'lib'}",
        "-ltorch",
        "-ltorch_cpu",
        "-lc10",
    )


def run_all(calls: Iterable[Sequence[str | Path]]) -> list[str]:
    """Runs the example once for many command lines; for each `ok`, or its error."""
    lines = ["\t".join(map(str, arguments)) for arguments in calls]
    done = subprocess.run(
        [runner(), "--batch"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    answers = done.stdout.splitlines()
    assert done.returncode == 0 and len(answers) == len(lines), (
        f"{done.returncode} at {lines[len(answers) : len(answers) + 1]}\n{done.stderr[-4000:]}"
    )
    return answers


@dataclass
class Comparison:
    """Two calls in a row of one program at one size, in Python, and where C++ finds and leaves its files."""

    case: Case
    sizes: dict[str, int]
    command: list[str | Path]
    expected: Description = field(default_factory=dict)
    nodes: int = 0

    @property
    def name(self) -> str:
        return self.case.name + "".join(f" {key}={size}" for key, size in self.sizes.items())

    def found(self) -> Description:
        """What C++ has left."""
        description: Description = {}
        for turn, path in enumerate(self.command[2:-2:2]):
            outputs, inputs, buffers = torch.load(path, weights_only=True)
            description |= _describe(turn, outputs, inputs, dict(buffers))
        return description


def compare(case: Case, folder: Path) -> list[Comparison]:
    """Runs a model in Python at all its sizes, and prepares the same for C++ in a folder."""
    ep = case.program()
    model = folder / f"{case.name}.pt2"
    pt2wire.save(ep, model, compress=False)
    return [_compare(case, ep, model, sizes) for sizes in ({}, *case.sizes)]


def _compare(case: Case, ep: ExportedProgram, model: Path, sizes: dict[str, int]) -> Comparison:
    module = ep.module()
    comparison = Comparison(case, sizes, [model], nodes=len(ep.graph.nodes))
    buffers = {name: tensor for name, tensor in _buffers(ep).items() if isinstance(tensor, Tensor)}
    before = {name: tensor.clone() for name, tensor in buffers.items()}
    stem = f"{model.with_suffix('')}-{'-'.join(map(str, sizes.values()))}"
    for turn in (0, 1):
        args, kwargs = case.make_inputs(**sizes)
        inputs = flat_inputs(ep, args, kwargs)
        comparison.command += [f"{stem}-{turn}-in.pt", f"{stem}-{turn}-out.pt"]
        torch.save([_plain(value) for value in inputs], comparison.command[-2])
        torch.manual_seed(SEED)
        with torch.no_grad():
            outputs = pytree.tree_leaves(module(*args, **kwargs))
        comparison.expected |= _describe(turn, outputs, inputs, buffers)
    comparison.command += ["--seed", str(SEED)]
    for name, tensor in buffers.items():
        if not torch.equal(tensor, before[name]):  # one that is expanded cannot be written to, nor was it
            tensor.copy_(before[name])
    return comparison


def flat_inputs(ep: ExportedProgram, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The leaves of a call's arguments in the order of the program."""
    leaves: list[Any] = pytree.tree_leaves((args, reorder_kwargs(kwargs, ep.call_spec.in_spec)))
    return leaves


def _buffers(ep: ExportedProgram) -> dict[str, Any]:
    tensors = {**ep.state_dict, **ep.constants}
    return {name: tensors[name] for name in ep.graph_signature.buffers}


def _describe(turn: int, outputs: Any, inputs: Any, buffers: dict[str, Tensor]) -> Description:
    description: Description = {}
    for path, values in (("output", outputs), ("input", inputs)):
        description |= describe_value(f"{turn} {path}", [_plain(value) for value in values])
    for name, tensor in buffers.items():
        description |= describe_value(f"{turn} buffer {name}", _plain(tensor))
    return description


_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _plain(value: Any) -> Any:
    """A value as files of libtorch have it: no parameter, nothing pending, of the newest dtypes the bits."""
    if isinstance(value, Tensor) and (value.is_conj() or value.is_neg()):
        value = value.resolve_conj().resolve_neg()
    if isinstance(value, nn.Parameter):
        value = value.detach().requires_grad_(value.requires_grad)
    return value.view(_INTEGERS[value.itemsize]) if getattr(value, "dtype", None) in _DTYPES[:-1] else value


def edited(path: Path, model: Path, edit: Callable[[types.GraphModule], object]) -> Path:
    """A copy of an archive, at `path`, whose program went through `edit`, which may make nonsense of it."""
    data = model.read_bytes()
    tree = pt2wire.from_thrift(record(data, "thrift/model.compact"))
    edit(tree.graph_module)
    program = thrift_codec.encode(tree)
    index = thrift_codec.decode(types.ArchiveIndex, record(data, "thrift/index.compact"))
    (entry,) = (entry for entry in index.entries if entry.record == "thrift/model.compact")
    entry.crc32, entry.size = zlib.crc32(program), len(program)
    entry.sha256 = hashlib.sha256(program).hexdigest()
    changes = {"thrift/model.compact": program, "thrift/index.compact": thrift_codec.encode(index)}
    path.write_bytes(with_records(data, changes))
    return path


def save_linear(folder: Path) -> Path:
    """Saves a program that calls `linear`, `sym_size`, `add`, as `model.pt2`, and `inputs.pt`; the folder."""
    torch.manual_seed(0)
    x = torch.ones(2, 4)
    ep = exported(
        lambda self, x: self.linear(x) + x.size(0),
        x,
        shapes=({0: Dim.DYNAMIC},),
        attributes={"linear": nn.Linear(4, 3)},
    )
    pt2wire.save(ep, folder / "model.pt2", compress=False)
    torch.save([x.clone()], folder / "inputs.pt")  # the export left attributes on the tensor
    return folder
