"""Fuzzing the C++ headers with libFuzzer under ASan and UBSan, from seeds that the tests know.

    python -m tests.helpers.fuzzing [--minutes M] [TARGET ...]

runs each target so long, and keeps what it learns in build/fuzz/TARGET for the next time. An input that ends
a target is printed. Once its fault is mended it goes to tests/data/fuzz/TARGET.jsonl, a line each:
`{"proves": ..., "input": "hex"}`. Those of `compact` and `json` name the type instead of starting
with its number: `{"proves": ..., "type": "Node", "input": "hex"}`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pt2wire.codegen.model import Kind
from pt2wire.generated import thrift_codec, types

from . import archives, cpp, vectors

FINDINGS = cpp.ROOT / "tests" / "data" / "fuzz"
CORPORA = cpp.ROOT / "build" / "fuzz"
SOURCES = cpp.SOURCES / "fuzz"

_FLAGS = ("-g1", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all")
#: Bytes of an input at most: enough for a program with a few nodes, or an archive with all kinds of records.
_LONGEST = 1 << 16


class Target(NamedTuple):
    """A fuzzer: its source, the flags that this needs, and the inputs that it starts from."""

    source: str
    flags: tuple[str, ...]
    seeds: Callable[[], Iterable[bytes]]


class Run(NamedTuple):
    """What a run of libFuzzer came to: inputs run, seconds, and the input that ended it, if one did."""

    inputs: int
    seconds: int
    failed: bytes | None
    report: str


def typed(type_: str, data: bytes) -> bytes:
    """An input of `compact` or `json`: the type's number in the file of types goes before the bytes."""
    names = [t.name for t in cpp.schema().ordered if t.kind is not Kind.ENUM]
    return bytes([names.index(type_)]) + data


def _compact_seeds() -> Iterable[bytes]:
    return [typed(row.type, row.compact) for row in (*vectors.vectors(), *vectors.newer())]


def _json_seeds() -> Iterable[bytes]:
    rows = (*vectors.vectors(), *vectors.newer())
    return [typed(row.type, json.dumps(row.json, ensure_ascii=False).encode()) for row in rows]


def _archive_seeds() -> Iterable[bytes]:
    program = archives.linear_program()
    both = {"a": program, "b": program}
    yield from (archives.linear_archive(), archives.linear_torch_archive())
    yield from (archives.saved(program, compress=False), archives.saved(both))
    stored = archives.with_records(archives.saved(program, compress=False), {"extra/notes.txt": b"notes"})
    yield stored


def _weights_seeds() -> Iterable[bytes]:
    configs = [row.compact for row in vectors.vectors() if row.type == "PayloadConfig"]
    for folder in ("weights", "constants"):
        configs.append(archives.record(archives.linear_archive(), f"thrift/model_{folder}.compact"))
    configs += [_large_config(shape) for shape in ((2**31, 2**31), (2**62, 1), (1, 2**62), (3, 2**61))]
    yield from (size.to_bytes(2, "little") + config for config in configs for size in (0, 48, 4096))


def _large_config(shape: tuple[int, ...]) -> bytes:
    """A weight without bytes, whose sizes and strides are near the end of 64 bits."""
    sizes = [types.SymInt.create(as_int=size) for size in shape]
    config = thrift_codec.decode(
        types.PayloadConfig, archives.record(archives.linear_archive(), "thrift/model_weights.compact")
    )
    name, payload = next(iter(config.config.items()))
    assert payload.tensor_meta is not None
    tensor = replace(payload.tensor_meta, sizes=sizes, strides=sizes[::-1])
    return thrift_codec.encode(types.PayloadConfig({name: replace(payload, absent=True, tensor_meta=tensor)}))


TARGETS = {
    "compact": Target("documents", (), _compact_seeds),
    "json": Target("documents", ("-DFUZZ_JSON=1",), _json_seeds),
    "archive": Target("archive", cpp.ZLIB, _archive_seeds),
    "weights": Target("weights", (), _weights_seeds),
}


def build(name: str, includes: Sequence[Path] = cpp.INCLUDES, *, optimized: bool = False) -> Path:
    """The fuzzer of a target, with the headers of these folders. It needs clang++ and its runtime library.

    Optimized it runs faster, and takes minutes to compile.
    """
    source, flags, _ = TARGETS[name]
    level = "-O1" if optimized else "-O0"
    options = (level, *_FLAGS, *flags, cpp.types_file())
    return cpp.build(SOURCES / f"{source}.cpp", *options, includes=includes)


def findings(name: str) -> dict[str, bytes]:
    """Inputs that once ended a target: what each proves -> the input."""
    path = FINDINGS / f"{name}.jsonl"
    rows = map(json.loads, path.read_text("utf-8").splitlines()) if path.exists() else ()
    return {
        row["proves"]: typed(row["type"], data) if "type" in row else data
        for row in rows
        for data in [bytes.fromhex(row["input"])]
    }


def fuzz(
    name: str,
    corpus: Path,
    *,
    seconds: int,
    seed: int,
    includes: Sequence[Path] = cpp.INCLUDES,
    optimized: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Run:
    """Runs a target from its seeds, its findings, and what `corpus` holds; what it learns goes there."""
    program = build(name, includes, optimized=optimized)
    corpus.mkdir(parents=True, exist_ok=True)
    for data in (*TARGETS[name].seeds(), *findings(name).values()):
        (corpus / hashlib.sha1(data).hexdigest()).write_bytes(data)
    limits = (f"-max_total_time={seconds}", f"-max_len={_LONGEST}")
    return _run(program, corpus, *limits, f"-seed={seed}", environment=environment or {})


def _run(program: Path, *arguments: str | Path, environment: Mapping[str, str]) -> Run:
    artifact = program.with_suffix(f".{os.getpid()}.failed")
    # What one input may take is bounded by the harness; the process also holds all inputs that it learned,
    # and the memory that the sanitizer keeps from being used again.
    limits = ("-malloc_limit_mb=128", "-rss_limit_mb=4096", "-timeout=20")
    variables = {**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=32", **environment}
    command = [program, *limits, f"-exact_artifact_path={artifact}", *arguments]
    done = subprocess.run(command, capture_output=True, check=False, env=variables)
    report = done.stderr.decode(errors="replace")
    failed = artifact.read_bytes() if artifact.exists() else None
    artifact.unlink(missing_ok=True)
    finished = re.search(r"Done (\d+) runs in (\d+) second", report)
    if finished and done.returncode == 0:
        return Run(int(finished[1]), int(finished[2]), failed, "")
    return Run(0, 0, failed or b"", report[-6000:])


def main() -> int:
    """Fuzzes targets one after the other; 1 if one of them was ended by an input."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS], help="all, if none is named")
    parser.add_argument("--minutes", type=float, default=10, help="for each target")
    parser.add_argument("--seed", type=int, default=0, help="0 takes another one each time")
    arguments = parser.parse_args()
    failed = False
    for name in arguments.targets or TARGETS:
        seconds = int(60 * arguments.minutes)
        run = fuzz(name, CORPORA / name, seconds=seconds, seed=arguments.seed, optimized=True)
        print(f"{name}: {run.inputs} inputs in {run.seconds} s", flush=True)
        if run.failed is not None:
            failed = True
            print(f"{run.report}\nended by the input {run.failed.hex()}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
