"""Building and running the C++ test programs. Binaries stay in build/cpp, by the hash of all that went in."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import struct
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pt2wire.codegen.model import (
    Kind,
    ListType,
    MapType,
    NamedType,
    Primitive,
    PrimitiveType,
    Schema,
    TypeRef,
)
from pt2wire.codegen.resolve import load_schema

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "cpp"
SOURCES = ROOT / "tests" / "cpp"
INCLUDES = (ROOT / "generated" / "include", ROOT / "runtime" / "include")

COMPILERS = ("g++", "clang++")
#: The same for programs that take an optimizing compiler a minute.
CLANG_AND_SLOW_GCC = (pytest.param("g++", marks=pytest.mark.wide), "clang++")
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
#: For clang++, which compiles twice as fast as g++. -g1 has the lines that a sanitizer names. The headers
#: have no virtual functions and no pointers to functions, and checking these would cost a seventh more.
SANITIZED = (
    *("-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize=function,vptr"),
    "-fno-sanitize-recover=all",
)
ZLIB = ("-DPT2WIRE_WITH_ZLIB=1", "-lz")


class Outcome(NamedTuple):
    """What a program answered to one case: a result, or the text of an error."""

    ok: bool
    text: bytes


@functools.cache
def schema() -> Schema:
    """The schema that the header was generated from."""
    return load_schema(ROOT / "schema.yaml")


def build(
    source: Path,
    *flags: str,
    compiler: str = "clang++",
    more: Sequence[Path] = (),
    includes: Sequence[Path] = INCLUDES,
) -> Path:
    """Compiles a program, unless the same one has been compiled before.

    Args:
        source: Its main file.
        flags: For the compiler, libraries too. C++17 and the include folders are given anyway.
        compiler: A missing one is a failure.
        more: Further files to compile with it.
        includes: Folders that have the headers.

    Returns:
        The executable.
    """
    command = [compiler, "-std=c++17", *(f"-I{path}" for path in (*includes, SOURCES))]
    folders = dict.fromkeys((*includes, SOURCES, source.parent))
    inputs = [path for folder in folders for path in sorted(folder.rglob("*.h"))] + [source, *more]
    digest = hashlib.sha256(repr([command, flags, _version(compiler)]).encode())
    for path in inputs:
        digest.update(b"%s\0%s\0" % (path.name.encode(), path.read_bytes()))
    program = BUILD / f"{source.stem}-{digest.hexdigest()[:20]}"
    with _alone(program):
        if not program.exists():
            partial = program.with_suffix(".partial")
            libraries = [flag for flag in flags if flag.startswith("-l")]
            options = [flag for flag in flags if not flag.startswith("-l")]
            run([*command, *options, str(source), *map(str, more), "-o", str(partial), *libraries])
            partial.replace(program)
    return program


@contextlib.contextmanager
def _alone(made: Path) -> Iterator[None]:
    """While this process makes something, parallel tests that want it wait rather than make it as well."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(made.with_suffix(".lock"), "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(command: Sequence[str | Path], data: bytes = b"", timeout: float = 1_800) -> bytes:
    """Runs a program to its end; anything but exit code 0 fails the test with what it printed."""
    done = subprocess.run(
        [str(part) for part in command], input=data, capture_output=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, (
        f"{command[0]} gave {done.returncode}\n{done.stderr.decode(errors='replace')[-8000:]}"
    )
    return done.stdout


def types_file(names: Iterable[str] | None = None) -> str:
    """A flag that tells a program of a file that lists the structs and unions as X(Name)."""
    chosen = names if names is not None else [t.name for t in schema().ordered if t.kind is not Kind.ENUM]
    text = "".join(f"X({name})\n" for name in chosen)
    BUILD.mkdir(parents=True, exist_ok=True)
    path = BUILD / f"types-{hashlib.sha256(text.encode()).hexdigest()[:16]}.inc"
    path.write_text(text)
    return f'-DTYPES_FILE="{path}"'


def dumper(compiler: str = "clang++", *flags: str) -> Path:
    """The program that prints what the header decodes, under the sanitizers unless told otherwise."""
    return build(SOURCES / "dump.cpp", *(flags or SANITIZED), *WARNINGS, types_file(), compiler=compiler)


def tree_worker(compiler: str = "clang++", *flags: str) -> Path:
    """The program that encodes and compares trees, under the sanitizers unless told otherwise."""
    return build(SOURCES / "trees.cpp", *(flags or SANITIZED), *WARNINGS, types_file(), compiler=compiler)


def json_worker(compiler: str = "clang++", *flags: str) -> Path:
    """The program that reads trees from JSON, built as `tree_worker` is."""
    return build(SOURCES / "json.cpp", *(flags or SANITIZED), *WARNINGS, types_file(), compiler=compiler)


def protocol_worker(*flags: str) -> Path:
    """The program that reads and writes trees through Apache's protocols, as `tree_worker` is built."""
    # Apache's own readMapBegin computes the least size of a map's bytes as an int, which overflows.
    options = (*(flags or SANITIZED), "-fno-sanitize=signed-integer-overflow")
    return build(SOURCES / "protocol.cpp", *options, *WARNINGS, types_file(), "-lthrift")


def archive_reader() -> Path:
    """The program that reads archives in memory, under the sanitizers."""
    return build(SOURCES / "archive.cpp", *SANITIZED, *WARNINGS, *ZLIB)


def costs(file: Path, what: str) -> dict[str, str]:
    """What reading a file costs: the lines of tests/cpp/costs.cpp, which says what `what` can be."""
    lines = run([build(SOURCES / "costs.cpp", *WARNINGS, *ZLIB), file, what]).decode().splitlines()
    return dict(line.split(" ", 1) for line in lines)


def apache() -> Path:
    """The program that decodes and encodes with the classes that Apache's compiler generates."""
    idl = ROOT / "generated" / "schema.thrift"
    version = subprocess.run(["thrift", "--version"], capture_output=True, check=True).stdout
    out = BUILD / f"apache-{hashlib.sha256(idl.read_bytes() + version).hexdigest()[:20]}"
    with _alone(out):
        if not out.exists():
            partial = out.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            run(["thrift", "--gen", "cpp", "-out", partial, idl])
            partial.replace(out)
    return build(
        SOURCES / "apache.cpp", "-O1", f"-I{out}", types_file(), "-lthrift", more=[out / "schema_types.cpp"]
    )


def answers(program: str | Path, cases: Sequence[tuple[str, bytes]], *arguments: str | Path) -> list[Outcome]:
    """Feeds cases (type name, bytes) to a program made like cases.h, started with some arguments.

    A crash or a sanitizer's report fails the test, and names the case that was running.
    """
    parts = []
    for name, data in cases:
        parts += [struct.pack("<I", len(name)), name.encode(), struct.pack("<I", len(data)), data]
    environment = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=0:max_allocation_size_mb=256"}
    done = subprocess.run(
        [program, *arguments],
        input=b"".join(parts),
        capture_output=True,
        timeout=600,
        check=False,
        env=environment,
    )
    outcomes = list(_outcomes(done.stdout))
    if done.returncode != 0 or len(outcomes) != len(cases):
        name, data = cases[min(len(outcomes), len(cases) - 1)]
        report = done.stderr.decode(errors="replace")[-6000:]
        raise AssertionError(f"{program} gave {done.returncode} on {name} {data[:400].hex()}\n{report}")
    return outcomes


def _outcomes(data: bytes) -> Iterable[Outcome]:
    at = 0
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at + 1)
        yield Outcome(data[at : at + 1] == b"=", data[at + 5 : at + 5 + size])
        at += 5 + size


def dump(value: Any, type_: TypeRef, optional: bool = False) -> str:
    """The text that tests/cpp/dump.h prints for an object, made from Python's tree."""
    if value is None and optional:
        return "-"
    match type_:
        case PrimitiveType(Primitive.BOOL):
            return "true" if value else "false"
        case PrimitiveType(Primitive.I64):
            return str(value)
        case PrimitiveType(Primitive.DOUBLE):
            return struct.pack(">d", value).hex()
        case PrimitiveType():
            return _quoted(value if isinstance(value, bytes) else value.encode())
        case ListType(item):
            return "[" + "".join(f"{dump(element, item)}," for element in value) + "]"
        case MapType(item):
            return (
                "{"
                + "".join(f"{_quoted(key.encode())}:{dump(element, item)}," for key, element in value.items())
                + "}"
            )
        case NamedType(name, Kind.ENUM):
            return f"{int(value)}:{value.name}"
        case NamedType(name, Kind.UNION):
            members = {field.name: field for field in schema().types[name].fields}
            return f"{name}.{value.type}({dump(value.value, members[value.type].type)})"
        case NamedType(name):
            fields = (
                f"{field.name}={dump(getattr(value, field.name), field.type, field.optional)},"
                for field in sorted(schema().types[name].fields, key=lambda field: field.id)
            )
            return f"{name}{{{''.join(fields)}}}"


def _quoted(text: bytes) -> str:
    return (
        '"' + "".join(chr(b) if 0x20 <= b < 0x7F and b not in b'"\\' else f"\\x{b:02x}" for b in text) + '"'
    )


@functools.cache
def _version(compiler: str) -> bytes:
    assert shutil.which(compiler), f"{compiler} is not installed; the C++ tests need it"
    return subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
