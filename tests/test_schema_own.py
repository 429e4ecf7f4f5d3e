"""A schema of a user's own: Python, Thrift and C++ of it build, and agree on its documents."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pt2wire.codegen.cli import main
from pt2wire.codegen.model import Kind, NamedType
from pt2wire.codegen.resolve import parse_schema

from .helpers import cpp
from .helpers.artifacts import FORMS
from .helpers.compendium import all_of, documents, met
from .helpers.schema_edits import Bindings, import_generated

ACME = """\
name: acme
version: "2.1"
oldest_version: "2.0"
revision: 0
treespec_version: 1
log:
  - {version: "2.0", torch: "2.12.0", note: First.}
  - {version: "2.1", torch: "2.13.0", note: Adds Kernel.cache and Chip.DSP.}
types:
  Chip:
    kind: enum
    since: "2.0"
    doc: What a kernel runs on.
    values:
      HOST: {value: 0, doc: The host.}
      NPU: {value: 4, doc: The accelerator.}
      DSP: {value: -1, since: "2.1", doc: The signal processor.}
  Payload:
    kind: struct
    since: "2.0"
    doc: All that the delegate keeps; stands before what it holds.
    fields:
      kernels: {id: 1, type: "map<string, Kernel>", doc: The kernels by name.}
      schedule: {id: 3, type: Step, doc: What runs.}
      notes: {id: 4, type: "map<string, list<string>>", default: {}, doc: For people.}
  Kernel:
    kind: struct
    since: "2.0"
    doc: One compiled kernel.
    reserved: {ids: [5], names: [speed]}
    fields:
      code: {id: 2, type: string, doc: Record of the archive that holds the machine code.}
      operands: {id: 3, type: list<Operand>, doc: What it is given in order.}
      chips: {id: 40, type: list<Chip>, doc: What it can run on.}
      chip: {id: 4, type: Chip, default: NPU, doc: What it runs on.}
      cycles: {id: 6, type: i64, default: -1, doc: Estimate; -1 where there is none.}
      scale: {id: 7, type: double, default: 1.5, doc: Of its results.}
      exact: {id: 8, type: bool, default: true, doc: Whether it rounds.}
      license: {id: 9, type: string, default: 'the "usual" one, ??/', doc: Of the code.}
      cache: {id: 10, type: optional list<double>, since: "2.1", default: null, doc: Timings.}
  Operand:
    kind: union
    since: "2.0"
    doc: What a kernel is given.
    fields:
      tensor: {id: 1, type: string, doc: Name of a tensor.}
      scalar: {id: 2, type: double, doc: A constant.}
      shape: {id: 3, type: list<i64>, doc: Sizes.}
      chip: {id: 4, type: Chip, doc: Where it lies.}
  Step:
    kind: union
    since: "2.0"
    doc: A part of the schedule.
    fields:
      run: {id: 1, type: string, doc: Name of a kernel.}
      parallel: {id: 2, type: list<Step>, doc: Steps in any order.}
      named: {id: 3, type: "map<string, Step>", doc: Steps with names.}
      wait: {id: 4, type: bool, doc: For all before.}
"""


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with all that the command has generated from it."""
    folder = tmp_path_factory.mktemp("acme")
    (folder / "acme.yaml").write_text(ACME)
    assert main(["lint", "--schema", str(folder / "acme.yaml")]) == 0
    for command in ("generate", "check"):
        assert main([command, "--schema", str(folder / "acme.yaml"), "--out", str(folder / "acme")]) == 0
    return folder / "acme"


@pytest.fixture(scope="module")
def bound(acme: Path) -> Bindings:
    return Bindings(parse_schema(ACME.encode(), "acme.yaml"), import_generated(acme))


@pytest.fixture(scope="module")
def payload(acme: Path, bound: Bindings) -> Path:
    """A document that holds all of the schema, in Thrift's bytes."""
    (tree,) = documents(bound.schema, bound.types).values()
    path = acme / "payload.compact"
    path.write_bytes(bound.codec("thrift_codec").encode(tree))
    return path


def test_the_documents_hold_all_of_it(bound: Bindings) -> None:
    (tree,) = documents(bound.schema, bound.types).values()
    # One document has one schedule: the other steps lie within.
    assert all_of(bound.schema) - set(met(bound.schema, tree)) <= {"Step.named", "Step.parallel", "Step.wait"}


@pytest.mark.parametrize("form", FORMS.values())
def test_python_round_trips(bound: Bindings, form: str) -> None:
    codec, types = bound.codec(form), bound.types
    (tree,) = documents(bound.schema, types).values()
    nested = types.Step.create(named={"a": types.Step.create(parallel=[types.Step.create(wait=True)])})
    tree.schedule = types.Step.create(parallel=[nested, types.Step.create(run="scale")])
    assert codec.decode(types.Payload, codec.encode(tree)) == tree


def test_python_says_where_a_fault_is(bound: Bindings) -> None:
    kernel = {"code": "", "operands": [], "chips": [], "chip": "NPU"}
    with pytest.raises(bound.package.CodecError, match=r"^kernels\['a'\]\.chip: expected .*'NPU'"):
        bound.codec("json_codec").from_plain(bound.types.Payload, {"kernels": {"a": kernel}, "schedule": {}})


@pytest.mark.parametrize("form", FORMS.values())
def test_python_names_its_own_package(bound: Bindings, form: str) -> None:
    expected = f"expected a struct or union of {bound.types.__name__}, found"
    with pytest.raises(TypeError, match=expected):
        bound.codec(form).decode(str, b"{}")
    with pytest.raises(bound.package.CodecError, match=expected):
        bound.codec(form).encode("text")


@pytest.mark.skipif(shutil.which("thrift") is None, reason="needs Apache's thrift compiler")
def test_apaches_python_writes_the_same_bytes(acme: Path, payload: Path) -> None:
    out = acme.parent / "apache"
    out.mkdir()
    subprocess.run(["thrift", "-strict", "--gen", "py", "-out", out, acme / "schema.thrift"], check=True)
    script = """
import sys
from acme_idl import ttypes
from thrift.TSerialization import deserialize, serialize
from thrift.protocol.TCompactProtocol import TCompactProtocolFactory as Compact
data = open(sys.argv[1], "rb").read()
tree = deserialize(ttypes.Payload(), data, protocol_factory=Compact())
assert serialize(tree, protocol_factory=Compact()) == data
"""
    environment = {**os.environ, "PYTHONPATH": str(out)}
    done = subprocess.run(
        [sys.executable, "-c", script, payload], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("clang++") is None, reason="needs clang++")
def test_the_cpp_header_reads_the_same(
    acme: Path, payload: Path, bound: Bindings, monkeypatch: pytest.MonkeyPatch
) -> None:
    includes = [f"-I{path}" for path in (acme / "include", cpp.ROOT / "runtime/include", cpp.SOURCES)]
    composites = [name for name, t in bound.schema.types.items() if t.kind is not Kind.ENUM]
    program = acme / "dump"
    flags = ["-std=c++17", *cpp.SANITIZED, *cpp.WARNINGS, *includes, cpp.types_file(composites)]
    cpp.run(["clang++", *flags, cpp.SOURCES / "dump.cpp", "-o", program])
    (outcome,) = cpp.answers(program, [("Payload", payload.read_bytes())])
    tree = bound.codec("thrift_codec").decode(bound.types.Payload, payload.read_bytes())
    monkeypatch.setattr(cpp, "schema", lambda: bound.schema)
    assert outcome.text.decode() == cpp.dump(tree, NamedType("Payload", Kind.STRUCT))
