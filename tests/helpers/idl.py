"""Programs over what Apache's compiler makes of the IDL: in C++, Go and Java, and the module for Python.

Each program decodes cases and encodes them again; see tests/cpp/cases.h. What was built stays in build/idl.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

from pt2wire.codegen.model import Kind

from . import cpp

IDL = cpp.ROOT / "generated" / "schema.thrift"
SOURCES = cpp.ROOT / "tests" / "idl"
BUILD = cpp.ROOT / "build" / "idl"
#: Where Debian keeps Thrift's libraries.
GO_LIBRARIES = Path("/usr/share/gocode")
JARS = tuple(
    Path(f"/usr/share/java/{name}.jar") for name in ("thrift", "slf4j-api", "geronimo-annotation-1.3-spec")
)


def generated(language: str, idl: Path, out: Path) -> Path:
    """Code for a language, in a folder of that name; fails on anything the compiler says."""
    folder = out / language
    folder.mkdir(parents=True, exist_ok=True)
    command = ["thrift", "-strict", "--gen", language, "-out", str(folder), str(idl)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


@functools.cache
def go_program() -> list[str | Path]:
    """The command of tests/idl/roundtrip.go."""
    return [_made("go", SOURCES / "roundtrip.go", ["go", "version"], _build_go) / "roundtrip"]


@functools.cache
def java_program() -> list[str | Path]:
    """The command of tests/idl/Roundtrip.java."""
    folder = _made("java", SOURCES / "Roundtrip.java", ["javac", "-version"], _build_java)
    return ["java", "-cp", _class_path(folder), "Roundtrip"]


@functools.cache
def python_module() -> ModuleType:
    """The classes for Python."""
    folder = _made("py", IDL, [sys.executable, "--version"], lambda out: None)
    sys.path.insert(0, str(folder / "py"))
    try:
        return importlib.import_module("pt2wire_idl.ttypes")
    finally:
        sys.path.remove(str(folder / "py"))


def _made(language: str, source: Path, version: Sequence[str], build: Callable[[Path], None]) -> Path:
    """The folder with the generated code and what `build` made there, by the hash of all that went in."""
    assert shutil.which(version[0]), f"{version[0]} is not installed; tests of the IDL need it"
    digest = hashlib.sha256(IDL.read_bytes() + source.read_bytes())
    for command in (["thrift", "--version"], version):
        digest.update(subprocess.run(command, capture_output=True, check=True).stdout)
    folder = BUILD / f"{language}-{digest.hexdigest()[:20]}"
    if not folder.exists():
        partial = folder.with_suffix(f".{os.getpid()}")
        generated(language, IDL, partial)
        build(partial)
        if not folder.exists():
            partial.rename(folder)
    return folder


def _build_go(folder: Path) -> None:
    main = folder / "src" / "roundtrip"
    main.mkdir(parents=True)
    (folder / "go" / "pt2wire").rename(folder / "src" / "pt2wire")
    shutil.copy(SOURCES / "roundtrip.go", main)
    names = [t.name for t in cpp.schema().ordered if t.kind is not Kind.ENUM]
    rows = "".join(f'\t"{name}": func() thrift.TStruct {{ return idl.New{name}() }},\n' for name in names)
    (main / "types.go").write_text(
        'package main\n\nimport (\n\t"pt2wire/idl"\n\n\t"github.com/apache/thrift/lib/go/thrift"\n)\n\n'
        f"var types = map[string]func() thrift.TStruct{{\n{rows}}}\n"
    )
    settings = {
        "GO111MODULE": "off",
        "GOPATH": f"{folder}:{GO_LIBRARIES}",
        "GOCACHE": str(BUILD / "go-cache"),
    }
    command = ["go", "build", "-o", str(folder / "roundtrip"), "roundtrip"]
    done = subprocess.run(
        command, env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-8000:]


def _build_java(folder: Path) -> None:
    for jar in JARS:
        assert jar.exists(), f"{jar} is missing; tests of the IDL need it"
    sources = [SOURCES / "Roundtrip.java", *sorted((folder / "java").rglob("*.java"))]
    cpp.run(["javac", "-Xlint:-options", "-cp", _class_path(folder), "-d", folder / "classes", *sources])


def _class_path(folder: Path) -> str:
    return os.pathsep.join(map(str, (folder / "classes", *JARS)))
