"""Random changes of real archives, at every level: whatever comes of them is our error or a program.

`python -m tests.helpers.fuzzing_python --count 20000 --seed 7` tries so many, each with its own number, and
prints what goes wrong; the file is kept beside the number. A level is a way to change an archive:

* bytes: of the file;
* zip: fields of both headers, order, names and sizes of records;
* json: text between tokens;
* thrift: bytes of a document, under an index that agrees with them;
* tree: values of the program, with the right types;
* calls: values of one of several programs for others of the same field;
* payloads: values of the payload configs;
* inputs: bytes of the pickle of the example inputs.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import mmap
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pt2wire
from pt2wire import Pt2WireError
from pt2wire.generated import CodecError, json_codec, thrift_codec, types

from .fuzzing_calls import accident, of_calls
from .hostile import (
    CONSTANTS,
    INPUTS,
    PROGRAM,
    WEIGHTS,
    honest,
    honest_records,
    honest_thrift,
    inputs,
    records,
    thrift,
)
from .hostile_files import Entry, _entries, _zip
from .mutations import mutate

CPU_SECONDS = 10
"""What one file may take."""
MEMORY = 2 << 30
"""Bytes that one file may take beyond what is there before."""
_BATCH = 250


class Finding(NamedTuple):
    """One file that gave something else than our error or a program."""

    seed: int
    number: int
    level: str
    problem: str


# -- changes ----------------------------------------------------------------------------------------------


def _bytes(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data or b"\0")
    for _ in range(chance.choice([1, 1, 1, 2, 4, 16])):
        at, length = chance.randrange(len(changed)), chance.choice([1, 1, 2, 4, 8, 64])
        kind = chance.randrange(5)
        if kind == 0:
            changed[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            changed[at : at + length] = chance.randbytes(length)
        elif kind == 2:
            del changed[at : at + length]
        elif kind == 3:
            changed[at:at] = changed[at : at + length]
        else:
            changed[at : at + length] = bytes([chance.choice([0, 255, 0x7F, 0x80])]) * length
        if not changed:
            break
    return bytes(changed)


def _of_bytes(chance: random.Random) -> bytes:
    return _bytes(honest(), chance)


_NUMBERS = (0, 1, 2, 8, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF)
_NAMES = (
    b"",
    b"/",
    b"..",
    b"archive/",
    b"archive/../x",
    b"archive/models/model.json",
    b"\xff",
    b"archive/extra/\0",
)


def _of_zip(chance: random.Random) -> bytes:
    entries = _entries()
    for _ in range(chance.choice([1, 1, 2, 3])):
        entry = chance.choice(entries)
        field = chance.choice(fields(Entry)).name
        before = getattr(entry, field)
        if field == "data" or field in ("extra", "local_extra", "descriptor"):
            setattr(entry, field, _bytes(before or b"\x01\x00\x18\x00" + bytes(24), chance))
        elif field in ("name", "local_name"):
            setattr(entry, field, chance.choice([*_NAMES, _bytes(entry.name, chance)]))
        elif field == "listed":
            entry.listed = chance.random() < 0.5
        elif field == "offset":
            entry.offset = chance.choice([-60, -1, 1, 30, 64])
        else:
            wide = field in ("size", "packed_size", "crc", "local_size", "local_crc")
            setattr(entry, field, chance.choice(_NUMBERS) & (0xFFFFFFFF if wide else 0xFFFF))
        if chance.random() < 0.1:
            entries.insert(chance.randrange(len(entries)), chance.choice(entries))
        if chance.random() < 0.1:
            chance.shuffle(entries)
    end: dict[str, Any] = {}
    if chance.random() < 0.2:
        end[chance.choice(["count", "here", "disk"])] = chance.choice(_NUMBERS) & 0xFFFF
    if chance.random() < 0.1:
        end[chance.choice(["start", "directory_size"])] = chance.choice([-46, -1, 1, 46])
    if chance.random() < 0.1:
        end["comment"] = chance.choice([b"x", b"PK\x05\x06" + bytes(18)])
    try:
        return _zip(entries, **end)
    except Exception:  # what no header can hold
        return b""


_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[-0-9.eE+]+|true|false|null|[{}\[\],:]')
_SCRAPS = (
    *(b"{", b"}", b"[", b"]", b",", b":", b'""', b"null", b"true", b"-1", b"1e999", b"NaN", b"0.1"),
    *(b"9" * 30, b'"as_int"', b'"as_none"', b'"\\ud800"', b'"\xff"', b"{}", b"[]", b'{"as_bool":true}', b" "),
)


def _tokens(data: bytes, chance: random.Random) -> bytes:
    found = _TOKEN.findall(data)
    for _ in range(chance.choice([1, 1, 2, 4])):
        if not found:
            break
        at = chance.randrange(len(found))
        kind = chance.randrange(4)
        if kind == 0:
            found[at] = chance.choice(_SCRAPS)
        elif kind == 1:
            found[at] = chance.choice(found)
        elif kind == 2:
            del found[at : at + chance.choice([1, 2, 5])]
        else:
            found[at:at] = found[at : at + chance.choice([1, 2, 20])]
    return b"".join(found)


def _of_json(chance: random.Random) -> bytes:
    record = chance.choice([PROGRAM, PROGRAM, PROGRAM, WEIGHTS, CONSTANTS])
    return records({record: _tokens(honest_records()[record], chance)})


def _of_thrift(chance: random.Random) -> bytes:
    names = [name for name in honest_thrift() if name.startswith("thrift/")]
    return thrift(lambda data: _bytes(data, chance), chance.choice(names))()


@cache
def _plain(record: str) -> Any:
    return json.loads(honest_records()[record])


def _of_tree(chance: random.Random) -> bytes:
    plain = mutate(_plain(PROGRAM), chance, chance.choice([1, 1, 1, 2, 4]))
    if chance.random() < 0.7:
        return records({PROGRAM: json.dumps(plain).encode()})
    try:
        tree = json_codec.from_plain(types.ExportedProgram, plain)
        return thrift(lambda data: thrift_codec.encode(tree))()
    except CodecError:
        return records({PROGRAM: json.dumps(plain).encode()})


def _of_payloads(chance: random.Random) -> bytes:
    plain = mutate(_plain(WEIGHTS), chance, chance.choice([1, 1, 2]))
    return records({WEIGHTS: json.dumps(plain).encode()})


def _of_inputs(chance: random.Random) -> bytes:
    return records({INPUTS: _bytes(honest_records()[INPUTS], chance)})


_LEVELS: dict[str, tuple[int, Callable[[random.Random], bytes]]] = {
    "bytes": (2, _of_bytes),
    "zip": (4, _of_zip),
    "json": (4, _of_json),
    "thrift": (4, _of_thrift),
    "tree": (6, _of_tree),
    "calls": (6, of_calls),
    "payloads": (2, _of_payloads),
    "inputs": (1, _of_inputs),
}


def make(seed: int, number: int) -> tuple[str, bytes]:
    """The level and the bytes of one file."""
    chance = random.Random(f"{seed} {number}")
    level = _level(chance)
    return level, _LEVELS[level][1](chance)


def _level(chance: random.Random) -> str:
    return chance.choices(list(_LEVELS), [weight for weight, _ in _LEVELS.values()])[0]


# -- runs -------------------------------------------------------------------------------------------------


def check(data: bytes) -> str | None:
    """What is wrong with how a file is taken; None for our error, or a program that can be called."""
    try:
        for finding in pt2wire.validate(io.BytesIO(data)):
            if not str(finding.error()):
                return "a finding without text"
    except Exception as error:
        return f"validate raised {type(error).__name__}: {error}"
    try:
        program = pt2wire.load(io.BytesIO(data))
    except Pt2WireError as error:
        return None if error.path and error.message else f"an error without path or text: {error!r}"
    except Exception as error:
        return f"load raised {type(error).__name__}: {error}"
    args, kwargs = program.example_inputs or inputs()
    return accident(program, args, kwargs, thorough=zlib.crc32(data) % 4 == 0)


def fuzz(count: int, seed: int, start: int = 0) -> tuple[list[Finding], Counter[str]]:
    """Tries files by number; returns what went wrong, and how many files of each level were tried."""
    warnings.simplefilter("ignore")
    honest(), honest_thrift(), honest_records(), of_calls(random.Random(0))
    assert check(honest()) is None
    progress = mmap.mmap(-1, 8)
    findings: list[Finding] = []
    number, end = start, start + count
    while number < end:
        last = min(number + _BATCH, end)
        with tempfile.TemporaryFile() as said:
            status = _batch(range(number, last), seed, progress, said.fileno())
            said.seek(0)
            findings += (Finding(*json.loads(line)) for line in said)
        if status == 0:
            number = last
            continue
        number = int.from_bytes(progress[:8], "little")
        how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {status >> 8}"
        findings.append(Finding(seed, number, make(seed, number)[0], f"the process ended: {how}"))
        number += 1
    return findings, Counter(_level(random.Random(f"{seed} {number}")) for number in range(start, end))


def _batch(numbers: range, seed: int, progress: mmap.mmap, said: int) -> int:
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    code = 1
    try:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)
        os.dup2(null, 2)
        logging.disable()
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        for number in numbers:
            progress[:8] = number.to_bytes(8, "little")
            level, data = make(seed, number)
            signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS)  # ends the process
            problem = check(data)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            if problem is not None:
                os.write(said, (json.dumps([seed, number, level, problem[:500]]) + "\n").encode())
        code = 0
    finally:
        os._exit(code)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--start", type=int, default=0)
    options = parser.parse_args()
    print(f"seed {options.seed}, files {options.start} to {options.start + options.count}", flush=True)
    found: list[Finding] = []
    levels: Counter[str] = Counter()
    for start in range(options.start, options.start + options.count, 1000):
        count = min(1000, options.start + options.count - start)
        some, tried = fuzz(count, options.seed, start)
        levels += tried
        for finding in some:
            _keep(finding)
        found += some
        print(f"{start + count - options.start} tried, {len(found)} found", flush=True)
    print(f"tried {sum(levels.values())}: {', '.join(f'{n} {level}' for level, n in sorted(levels.items()))}")
    return 1 if found else 0


def _keep(finding: Finding) -> None:
    file = Path(tempfile.gettempdir(), f"pt2wire-{finding.seed}-{finding.number}.pt2")
    file.write_bytes(make(finding.seed, finding.number)[1])
    print(f"number {finding.number} ({finding.level}), kept as {file}: {finding.problem}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
