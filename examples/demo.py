"""The main job, end to end: two programs through files of pt2wire and PyTorch, read by Python and by C++.

Run by `make demo`. Every comparison is exact; the first difference ends the run with exit code 1.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pt2wire
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
ROUNDS = 5

console = Console(soft_wrap=True)


class Block(nn.Module):
    """One block of a transformer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norms[0](x)
        x = x + self.attention(normed, normed, normed, need_weights=False)[0]
        return x + self.feed(self.norms[1](x))


class Transformer(nn.Module):
    """A small language model; the head shares its weight with the embedding."""

    def __init__(self, words: int = 500, width: int = 64, depth: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(depth)))
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.blocks(self.embedding(tokens)))


class Chooser(nn.Module):
    """A network with control flow: the data decide which branch runs, in two levels; it counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.near = nn.Linear(8, 8)
        self.far = nn.Linear(8, 8)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.calls.add_(1)

        def near(y: Tensor) -> Tensor:
            return self.near(y).relu()

        def far(y: Tensor) -> Tensor:
            return torch.cond(y.max() > 2, lambda z: self.far(z).sigmoid(), lambda z: z * 2, (y,))

        return torch.cond(x.abs().mean() < 0.5, near, far, (x,)) + self.calls


@dataclass
class Example:
    """A model, the way it is exported, and inputs of several sizes."""

    name: str
    model: nn.Module
    dynamic_shapes: dict[str, Any]
    inputs: list[Tensor]


def examples() -> list[Example]:
    torch.manual_seed(0)
    return [
        Example(
            "transformer",
            Transformer(),
            {"tokens": {0: Dim("batch", max=64), 1: Dim("sequence", max=512)}},
            [torch.randint(500, size) for size in ((2, 7), (1, 1), (5, 33))],
        ),
        Example(
            "chooser",
            Chooser(),
            {"x": {0: Dim("batch", max=64)}},
            [torch.randn(3, 8) * scale for scale in (1.0, 0.1, 9.0)],
        ),
    ]


def fail(message: str) -> NoReturn:
    console.print(f"[red]DIFFERENCE[/red] {message}", highlight=False)
    sys.exit(1)


def medians(actions: list[Callable[[], object]]) -> list[float]:
    """The median time of each action in milliseconds; they take turns, so that all meet the same machine."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(ROUNDS):
        for action, spent in zip(actions, times, strict=True):
            start = time.perf_counter()
            action()
            spent.append(1000 * (time.perf_counter() - start))
    return [statistics.median(spent) for spent in times]


def nodes(program: ExportedProgram) -> list[str]:
    return [f"{node.op} {node.name} {node.target}" for node in program.graph.nodes]


def run(program: ExportedProgram, inputs: list[Tensor]) -> list[Tensor]:
    """The outputs of calls in a row, which may build on one another's state."""
    module = program.module()
    return [module(value).detach() for value in inputs]


def compare(
    example: Example, expected: ExportedProgram, outputs: list[Tensor], found: ExportedProgram, what: str
) -> None:
    """The program found gives the same bits at every size, and is the same program."""
    for value, one, other in zip(example.inputs, outputs, run(found, example.inputs), strict=True):
        if (
            one.dtype != other.dtype
            or one.shape != other.shape
            or one.numpy().tobytes() != other.numpy().tobytes()
        ):
            fail(f"{example.name}, {what}, input of shape {tuple(value.shape)}: the outputs differ")
    if nodes(expected) != nodes(found):
        fail(f"{example.name}, {what}: the graphs differ")
    if str(expected.graph_signature) != str(found.graph_signature):
        fail(f"{example.name}, {what}: the signatures differ")
    if str(expected.range_constraints) != str(found.range_constraints):
        fail(f"{example.name}, {what}: the ranges of sizes differ")
    console.print(f"  {what}: {len(example.inputs)} sizes, outputs equal bit for bit")


def run_cpp(folder: Path, files: list[Path]) -> None:
    """Builds the C++ reader against the generated header, and compares its listing with Python's."""
    program = folder / "inspect"
    includes = [f"-I{ROOT / 'generated' / 'include'}", f"-I{ROOT / 'runtime' / 'include'}"]
    command = ["g++", "-std=c++17", "-O1", *includes, str(HERE / "cpp" / "inspect.cpp"), "-o", str(program)]
    console.print("C++: building examples/cpp/inspect.cpp with g++")
    subprocess.run(command, check=True)
    for path in files:
        cpp = subprocess.run([str(program), str(path)], check=True, capture_output=True, text=True).stdout
        python = subprocess.run(
            [sys.executable, str(HERE / "listing.py"), str(path)], check=True, capture_output=True, text=True
        ).stdout
        for number, (one, other) in enumerate(zip(cpp.splitlines(), python.splitlines(), strict=False), 1):
            if one != other:
                fail(f"{path.name}, line {number} of the listing: C++ says {one!r}, Python {other!r}")
        if cpp != python:
            fail(f"{path.name}: the listings of C++ and Python differ in length")
        console.print(f"  {path.name}: {len(cpp.splitlines())} lines of nodes and weights, equal to Python's")


def main() -> None:
    table = Table("program", "", "size", "save", "load", title="median of five, side by side")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = []
        for example in examples():
            console.print(f"{example.name}: exporting")
            program = torch.export.export(
                example.model.eval(), (example.inputs[0],), dynamic_shapes=example.dynamic_shapes
            )
            ours, theirs = folder / f"{example.name}.pt2", folder / f"{example.name}_by_pytorch.pt2"
            times = medians(
                [
                    partial(pt2wire.save, program, ours),
                    partial(torch.export.save, program, theirs),
                    partial(pt2wire.load, ours),
                    partial(torch.export.load, theirs),
                ]
            )
            # Not deflated: a C++ reader maps it, and needs no zlib.
            mapped = folder / f"{example.name}_mapped.pt2"
            pt2wire.save(program, mapped, compress=False)
            files.append(mapped)
            outputs = run(program, example.inputs)
            for found, what in (
                (pt2wire.load(ours), "written and read by pt2wire"),
                (torch.export.load(ours), "written by pt2wire, read by torch.export"),
                (pt2wire.load(theirs), "written by torch.export, read by pt2wire"),
            ):
                compare(example, program, outputs, found, what)
            for kind, path, save, load in (
                ("pt2wire", ours, times[0], times[2]),
                ("torch.export", theirs, times[1], times[3]),
            ):
                kib = f"{path.stat().st_size / 1024:,.0f} KiB"
                table.add_row(example.name, kind, kib, f"{save:.1f} ms", f"{load:.1f} ms")
        run_cpp(folder, files)
    console.print(table)
    console.print("No difference.")


if __name__ == "__main__":
    main()
