"""Times and sizes of pt2wire beside PyTorch's own serializer, measured side by side in one run.

The two take turns in every round, so that both meet the same machine; the table shows medians and ratios.
Absolute figures belong to the machine, ratios travel. Run by `make bench`; `--smoke` only shows that it runs.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import platform
import statistics
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pt2wire
import pt2wire.programs as programs
import torch
import transformers
from rich.console import Console
from rich.table import Table
from torch import nn
from torch._export.serde import schema
from torch._export.serde import serialize as serde
from torch.export import Dim, ExportedProgram


class Pair(NamedTuple):
    """One thing that both do.

    Attributes:
        name: What is done.
        ours: By pt2wire.
        theirs: By PyTorch.
        files: What each of the two writes; removed before its turn, since what it costs to overwrite a file
            depends on the file system.
    """

    name: str
    ours: Callable[[], object]
    theirs: Callable[[], object]
    files: tuple[Path | None, Path | None] = (None, None)


def bert(layers: int) -> ExportedProgram:
    """A BERT with dynamic batch and sequence. Narrow: its program is measured, not its weights."""
    config = transformers.BertConfig(
        vocab_size=100,
        hidden_size=32,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    tokens = torch.randint(100, (2, 7))
    shapes = {"input_ids": {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}}
    model = transformers.BertModel(config).eval()
    return torch.export.export(model, (), {"input_ids": tokens}, dynamic_shapes=shapes)


def heavy(mebibytes: int) -> ExportedProgram:
    """A program of few nodes and large weights, 16 MiB each."""
    width = 2048
    layers = [nn.Linear(width, width, bias=False) for _ in range(max(1, mebibytes // 16))]
    return torch.export.export(nn.Sequential(*layers), (torch.randn(2, width),))


def program_pairs(program: ExportedProgram) -> list[Pair]:
    """Program <-> bytes, and bytes -> typed tree."""
    ours, theirs = pt2wire.serialize(program), serde.serialize(program)
    tree = pt2wire.to_tree(program)
    compact = pt2wire.to_thrift(tree)
    text = pt2wire.to_json(tree)
    read_by_pytorch = partial(serde._bytes_to_dataclass, schema.ExportedProgram, theirs.exported_program)
    return [
        Pair(
            "serialize: program to artifact",
            partial(pt2wire.serialize, program),
            partial(serde.serialize, program),
        ),
        Pair(
            "deserialize: artifact to program",
            partial(pt2wire.deserialize, ours),
            partial(serde.deserialize, theirs),
        ),
        Pair("read a typed tree, Thrift", partial(pt2wire.from_thrift, compact), read_by_pytorch),
        Pair("read a typed tree, JSON", partial(pt2wire.from_json, text), read_by_pytorch),
        Pair(
            "write a typed tree, Thrift",
            partial(pt2wire.to_thrift, tree),
            partial(_write_by_pytorch, read_by_pytorch()),
        ),
    ]


def _write_by_pytorch(tree: object) -> bytes:
    return json.dumps(serde._dataclass_to_dict(tree), cls=serde.EnumEncoder, allow_nan=False).encode()


def file_pairs(name: str, program: ExportedProgram, folder: Path) -> list[Pair]:
    """Program <-> file."""
    ours, theirs = folder / f"{name}.pt2", folder / f"{name}_by_pytorch.pt2"
    # Without fsync, which PyTorch does not do.
    save = partial(pt2wire.save, program, ours, durable=False)
    return [
        Pair(f"save {name}", save, partial(torch.export.save, program, theirs), (ours, theirs)),
        Pair(f"load {name}", partial(pt2wire.load, ours), partial(torch.export.load, theirs)),
        Pair(
            f"load {name}, CRCs of weights unchecked",
            partial(pt2wire.load, ours, verify=False),
            partial(torch.export.load, theirs),
        ),
    ]


def measure(
    pairs: list[Pair], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> list[tuple[float, float]]:
    """The median times of ours and theirs in milliseconds, for each pair."""
    times: list[tuple[list[float], list[float]]] = [([], []) for _ in pairs]
    for _ in range(rounds):
        for pair, spent in zip(pairs, times, strict=True):
            for action, column, file in zip((pair.ours, pair.theirs), spent, pair.files, strict=True):
                if file is not None:
                    file.unlink(missing_ok=True)
                gc.collect()
                start = clock()
                result = action()
                column.append(1000 * (clock() - start))
                del result
    return [(statistics.median(ours), statistics.median(theirs)) for ours, theirs in times]


def times_table(pairs: list[Pair], rounds: int) -> Table:
    table = Table(title=f"time, ms, median of {rounds} rounds", title_justify="left")
    table.add_column("what")
    for column in ("pt2wire", "PyTorch", "times faster"):
        table.add_column(column, justify="right")
    for pair, (ours, theirs) in zip(pairs, measure(pairs, rounds), strict=True):
        table.add_row(pair.name, f"{ours:,.1f}", f"{theirs:,.1f}", f"{theirs / ours:.1f}")
    return table


def plain_write(mebibytes: int, rounds: int, folder: Path) -> float:
    """The median time in milliseconds of writing as many bytes to a new file and doing nothing else."""
    path = folder / "plain.bin"
    piece = torch.randn(16 * 2**18).numpy().tobytes()

    def write() -> None:
        with open(path, "wb", buffering=0) as file:
            for _ in range(max(1, mebibytes // 16)):
                file.write(piece)

    pair = Pair("plain", write, lambda: None, (path, None))
    return measure([pair], rounds)[0][0]


def load_unchecked(path: Path) -> ExportedProgram:
    """Loads a file that is known to be sound: all that validation does is left out."""
    checked = programs.check_loadable
    programs.check_loadable = lambda *_, **__: None  # type: ignore[assignment]
    try:
        return pt2wire.load(path)
    finally:
        programs.check_loadable = checked


def checks_table(by_layers: dict[int, ExportedProgram], rounds: int, folder: Path) -> Table:
    """What the checks of an untrusted file cost of loading it, by the number of layers."""
    pairs = []
    for layers, program in by_layers.items():
        path = folder / f"checks_{layers}.pt2"
        pt2wire.save(program, path, durable=False)
        what = f"load BERT of {layers} layer{'s' * (layers != 1)}"
        pairs.append(Pair(what, partial(pt2wire.load, path), partial(load_unchecked, path)))
    # Of the processor, since the shares are small beside what else runs on the machine.
    measured = measure(pairs, 3 * rounds, time.process_time)
    table = Table(
        title=f"checks in load, ms of the processor, median of {3 * rounds} rounds", title_justify="left"
    )
    for column in ("what", "with checks", "without", "share"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for pair, (checked, unchecked) in zip(pairs, measured, strict=True):
        share = 1 - unchecked / checked
        table.add_row(pair.name, f"{checked:,.1f}", f"{unchecked:,.1f}", f"{100 * share:.0f} %")
    return table


def sizes_table(ours: Path, theirs: Path) -> Table:
    table = Table(title="size of the program, without weights, KB", title_justify="left")
    table.add_column("what")
    for column in ("in the file", "unpacked"):
        table.add_column(column, justify="right")
    for path, record, what in (
        (theirs, "models/model.json", "PyTorch's file: JSON"),
        (ours, "models/model.json", "pt2wire's file: JSON"),
        (ours, "thrift/model.compact", "pt2wire's file: Thrift"),
    ):
        with zipfile.ZipFile(path) as archive:
            info = next(info for info in archive.infolist() if info.filename.endswith(record))
        table.add_row(what, f"{info.compress_size / 1000:,.0f}", f"{info.file_size / 1000:,.0f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="one round on a small program: does it run")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--mebibytes", type=int, default=512, help="size of the weights of the heavy program")
    options = parser.parse_args()
    if options.smoke:
        options.rounds, options.layers, options.mebibytes = 1, 1, 16

    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    console = Console(soft_wrap=True)
    program, big = bert(options.layers), heavy(options.mebibytes)
    nodes, threads = len(program.graph.nodes), torch.get_num_threads()
    console.print(
        f"BERT of {options.layers} layers, {nodes} nodes, dynamic batch and sequence; "
        f"heavy: {options.mebibytes} MiB of weights\n"
        f"torch {torch.__version__}, {platform.python_implementation()} {platform.python_version()}, "
        f"{threads} thread{'s' * (threads != 1)}"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pairs = [
            *program_pairs(program),
            *file_pairs("BERT", program, folder),
            *file_pairs("heavy", big, folder),
        ]
        console.print(times_table(pairs, options.rounds))
        plainly = plain_write(options.mebibytes, options.rounds, folder)
        console.print(f"writing {options.mebibytes} MiB to a new file and nothing else: {plainly:,.1f} ms")
        few = min(2, options.layers)
        both = {few: bert(few), options.layers: program}
        console.print(checks_table(both, options.rounds, folder))
        console.print(sizes_table(folder / "BERT.pt2", folder / "BERT_by_pytorch.pt2"))


if __name__ == "__main__":
    main()
