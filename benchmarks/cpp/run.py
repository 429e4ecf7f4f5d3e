"""Decoding and encoding in C++: the generated header, Apache's classes, and nlohmann with torch's types.

    python benchmarks/cpp/run.py [--rounds N] [--layers 12 48]

Needs g++, thrift-compiler, libthrift-dev, libboost-dev, nlohmann-json3-dev. Builds in build/benchmarks.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import zipfile
from pathlib import Path

import pt2wire
import torch
import transformers

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "benchmarks"
TORCH = Path(torch.__file__).parent / "include"


def build() -> Path:
    """Compiles the decoders and encoders with -O2 into one program."""
    idl = ROOT / "generated" / "schema.thrift"
    BUILD.mkdir(parents=True, exist_ok=True)
    subprocess.run(["thrift", "--gen", "cpp", "-out", BUILD, idl], check=True)
    includes = [ROOT / "generated" / "include", ROOT / "runtime" / "include", BUILD, TORCH]
    sources = [*sorted(HERE.glob("*.cpp")), BUILD / "schema_types.cpp"]
    program = BUILD / "decoders"
    flags = ["-std=c++17", "-O2", "-DNDEBUG", *(f"-I{path}" for path in includes)]
    objects = []
    for source in sources:
        made = BUILD / f"{source.stem}.o"
        subprocess.run(["g++", *flags, "-c", source, "-o", made], check=True)
        objects.append(made)
    subprocess.run(["g++", *objects, "-o", program, "-lthrift"], check=True)
    return program


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


def main() -> None:
    """Prints the table, as Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--layers", type=int, nargs="+", default=[12, 48])
    arguments = parser.parse_args()
    program = build()
    print("| program | decoder | ms | view is faster by | peak heap / input | allocations |")
    print("| --- | --- | --- | --- | --- | --- |")
    for layers in arguments.layers:
        compact, json = program_files(layers)
        command = [program, str(arguments.rounds), compact, json]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows = [line.split() for line in output.splitlines()]
        if len({nodes for *_, nodes in rows}) != 1:
            raise SystemExit(f"the decoders disagree about the number of nodes: {rows}")
        times = {name: float(milliseconds) for name, milliseconds, *_ in rows}
        for name, milliseconds, peak, allocations, nodes in rows:
            size = (json if name == "nlohmann" else compact).stat().st_size
            what = f"{layers} layers, {nodes} nodes, {size / 1000:.0f} KB"
            ours = times["encode-view" if name.startswith("encode-") else "view"]
            ratio, heap = float(milliseconds) / ours, int(peak) / size
            print(f"| {what} | {name} | {milliseconds} | {ratio:.1f}x | {heap:.2f} | {allocations} |")


if __name__ == "__main__":
    main()
