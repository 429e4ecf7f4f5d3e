"""Programs in C++: the generated header beside Apache's classes, and nlohmann-json with torch's types.

    python benchmarks/cpp/run.py [--rounds N] [--layers 12 48] [--smoke]

Needs g++, thrift-compiler, libthrift-dev, libboost-dev, nlohmann-json3-dev; builds in build/benchmarks.
Prints times and memory of each decoder and encoder, and each target with what was measured.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import statistics
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pt2wire
import torch
import transformers

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "benchmarks"
TORCH = Path(torch.__file__).parent / "include"
INCLUDES = (ROOT / "generated" / "include", ROOT / "runtime" / "include")
FLAGS = ("-std=c++17", "-O2", "-DNDEBUG")
#: Each is a program of its own; the others are one.
ALONE = ("pages", "reader")
PAGE = 4096


class Measured(NamedTuple):
    """What one decoder or encoder takes for one program: milliseconds a round, bytes of heap, allocations."""

    nodes: int
    peak: int
    allocations: int
    times: list[float]


class Target(NamedTuple):
    """A ratio of times that one decoder or encoder should reach against another."""

    ours: str
    theirs: str
    least: float


TARGETS = (
    Target("view", "nlohmann", 60),
    Target("view", "apache", 6),
    Target("owned", "nlohmann", 20),
    Target("owned", "apache", 2),
    Target("adapter", "apache", 1),
    Target("json-view", "nlohmann", 5),
    Target("json-owned", "nlohmann", 5),
    Target("encode-view", "encode-apache", 2),
    Target("encode-owned", "encode-apache", 2),
)


def build() -> Path:
    """Compiles the decoders and encoders with -O2 into one program."""
    BUILD.mkdir(parents=True, exist_ok=True)
    idl = ROOT / "generated" / "schema.thrift"
    subprocess.run(["thrift", "--gen", "cpp", "-out", BUILD, idl], check=True)
    sources = [path for path in sorted(HERE.glob("*.cpp")) if path.stem not in ALONE]
    objects = []
    for source in (*sources, BUILD / "schema_types.cpp"):
        objects.append(BUILD / f"{source.stem}.o")
        _compile(source, "-c", "-o", objects[-1])
    program = BUILD / "decoders"
    subprocess.run(["g++", *objects, "-o", program, "-lthrift"], check=True)
    return program


def _compile(source: Path, *options: str | Path) -> None:
    includes = [f"-I{path}" for path in (*INCLUDES, BUILD, TORCH)]
    subprocess.run(["g++", *FLAGS, *includes, source, *options], check=True)


def program_files(layers: int) -> tuple[Path, Path]:
    """A BERT with random weights, as Thrift and as JSON. Narrow: its program is measured, not its weights."""
    config = transformers.BertConfig(
        vocab_size=100,
        hidden_size=32,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    model = transformers.BertModel(config).eval()
    file = io.BytesIO()
    pt2wire.save(torch.export.export(model, (torch.randint(100, (2, 7)),)), file, compress=False)
    compact, json = BUILD / f"bert{layers}.compact", BUILD / f"bert{layers}.json"
    with zipfile.ZipFile(file) as archive:
        root = archive.namelist()[0].split("/")[0]
        compact.write_bytes(archive.read(f"{root}/thrift/model.compact"))
        json.write_bytes(archive.read(f"{root}/models/model.json"))
    return compact, json


def measure(program: Path, compact: Path, json: Path, rounds: int) -> dict[str, Measured]:
    """Runs the decoders and encoders in turn. They must agree about the number of nodes."""
    command = [program, str(rounds), compact, json]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = {}
    for line in output.splitlines():
        name, nodes, peak, allocations, *times = line.split()
        found[name] = Measured(int(nodes), int(peak), int(allocations), [float(time) for time in times])
    if len({measured.nodes for measured in found.values()}) != 1:
        raise SystemExit(f"the decoders disagree about the number of nodes: {output}")
    return found


def ratio(found: dict[str, Measured], target: Target) -> float:
    """How many times faster ours is: the median over the rounds, in each of which both saw one machine."""
    pairs = zip(found[target.theirs].times, found[target.ours].times, strict=True)
    return statistics.median(theirs / ours for theirs, ours in pairs)


def compile_seconds() -> float:
    """Processor time to compile a program that reads one, least of three."""
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        _compile(HERE / "reader.cpp", "-o", BUILD / "reader")
        seconds.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    return min(seconds)


def argument_size(file: Path) -> int:
    """sizeof(Argument), as the reader prints it."""
    output = subprocess.run([BUILD / "reader", file], check=True, capture_output=True, text=True).stdout
    return int(output.split()[-2])


def large_archive(mebibytes: int) -> Path:
    """An archive with a small program and large weights."""
    rows = mebibytes * 2**20 // 4 // 8192 // 8
    layers = [torch.nn.Linear(8192, rows, bias=False) for _ in range(8)]

    class Heavy(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(layers)

        def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
            return [layer(x) for layer in self.layers]

    path = BUILD / "large.pt2"
    pt2wire.save(torch.export.export(Heavy(), (torch.zeros(1, 8192),)), path, compress=False, durable=False)
    return path


def touched_pages(path: Path) -> dict[str, int]:
    """Pages of the archive that were touched by the end of each step."""
    _compile(HERE / "pages.cpp", "-o", BUILD / "pages")
    output = subprocess.run(
        [BUILD / "pages", path, "model"], check=True, capture_output=True, text=True
    ).stdout
    rows = [line.split() for line in output.splitlines()]
    return {row[0]: int(row[1]) for row in rows if len(row) == 2}


def print_times(layers: int, sizes: dict[str, int], found: dict[str, Measured]) -> None:
    """The table of one program, as Markdown."""
    nodes = found["view"].nodes
    print(f"{layers} layers, {nodes} nodes, {sizes['compact'] / 1000:.0f} KB of Thrift, ", end="")
    print(f"{sizes['json'] / 1000:.0f} KB of JSON:\n")
    print("| decoder or encoder | ms | peak heap / input | allocations |")
    print("| --- | --- | --- | --- |")
    for name, measured in found.items():
        size = sizes["json" if "json" in name or name == "nlohmann" else "compact"]
        time = statistics.median(measured.times)
        print(f"| {name} | {time:.3f} | {measured.peak / size:.2f} | {measured.allocations} |")
    print()


def print_targets(figures: Sequence[tuple[str, str, list[str]]], layers: Sequence[int]) -> None:
    """Each figure beside its target, as Markdown."""
    print("| figure | target |", " | ".join(f"{n} layers" for n in layers), "|")
    print("| --- | --- |", " | ".join("---" for _ in layers), "|")
    for name, target, values in figures:
        print(f"| {name} | {target} |", " | ".join(values), "|")


def main() -> None:
    """Measures, and prints the tables as Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--layers", type=int, nargs="+", default=[12, 48])
    parser.add_argument("--mebibytes", type=int, default=1024, help="of the large archive's weights")
    parser.add_argument("--smoke", action="store_true", help="one small round")
    arguments = parser.parse_args()
    rounds, layers, mebibytes = arguments.rounds, arguments.layers, arguments.mebibytes
    if arguments.smoke:
        rounds, layers, mebibytes = 3, [1], 8

    program = build()
    results, sizes = {}, {}
    for count in layers:
        compact, json = program_files(count)
        sizes[count] = {"compact": os.path.getsize(compact), "json": os.path.getsize(json)}
        results[count] = measure(program, compact, json, rounds)
        print_times(count, sizes[count], results[count])

    figures = [
        (
            f"{t.ours}, times faster than {t.theirs}",
            f">= {t.least:g}",
            [f"{ratio(results[n], t):.1f}" for n in layers],
        )
        for t in TARGETS
    ]
    views = [(results[n]["view"], sizes[n]["compact"]) for n in layers]
    figures.append(("peak heap of a view / input", "<= 1.2", [f"{v.peak / size:.2f}" for v, size in views]))
    figures.append(("allocations of a view", "<= 20", [str(v.allocations) for v, _ in views]))
    print_targets(figures, layers)

    seconds = compile_seconds()
    large = large_archive(mebibytes)
    pages, all_pages = touched_pages(large), os.path.getsize(large) // PAGE
    print(f"\nsizeof(Argument): {argument_size(large)} bytes (target <= 80)")
    print(f"compiling a program that includes archive.h and reads a program: {seconds:.1f} s (target <= 6)")
    print(f"an archive of {all_pages:,} pages: " + ", ".join(f"{step} {n}" for step, n in pages.items()))
    large.unlink()


if __name__ == "__main__":
    main()
