"""The command line as a whole: exit codes, one line of error, paths, validate, schema."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pt2wire
import pytest
import torch
from pt2wire.cli import run
from pt2wire.validation import RULES
from torch import nn

from .helpers.schema_versions import REVISION, VERSION

#: A module that registers a class for what its program returns.
SHIPPING = """
import pt2wire, torch
from torch.utils import _pytree as pytree


class Parcel:
    def __init__(self, content):
        self.content = content


pytree.register_pytree_node(
    Parcel,
    lambda parcel: ([parcel.content], None),
    lambda content, _: Parcel(*content),
    serialized_type_name="shipping.Parcel",
)


class Packing(torch.nn.Module):
    def forward(self, x):
        return Parcel(x + 1)


def save(path):
    pt2wire.save(torch.export.export(Packing(), (torch.ones(2),)), path)
"""

COMMAND = str(Path(sys.executable).with_name("pt2wire"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "m.pt2"
    pt2wire.save(torch.export.export(nn.ReLU(), (torch.ones(2),)), path)
    return path


@pytest.fixture(scope="module")
def bad(model: Path) -> Path:
    tree = pt2wire.read(model).programs["model"]
    tree.graph_module.graph.nodes[0].target = "os.system"
    path = model.with_name("bad.json")
    path.write_bytes(pt2wire.to_json(tree))
    return path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("inspect nowhere.pt2", "nowhere.pt2: No such file or directory"),
        ("inspect .", ".: Is a directory"),
        ("validate nowhere.pt2", "nowhere.pt2: No such file or directory"),
        ("inspect", "Missing argument 'FILE'. (see --help)"),
        ("validate", "Invalid value: expected a file (see --help)"),
        ("bogus", "No such command 'bogus'. (see --help)"),
        ("inspect --bogus", "No such option: --bogus (see --help)"),
        ("convert a.pt2 b.json --to onnx", None),
        ("inspect /dev/null", None),
    ],
)
def test_failure_is_one_line_and_exit_code_2(
    words: str, message: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("pt2wire: ") and captured.err.count("\n") == 1
    if message is not None:
        assert captured.err == f"pt2wire: {message}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("lint --schema nowhere.yaml", "nowhere.yaml: No such file or directory"),
        ("lint --bogus", "unrecognized arguments: --bogus (see --help)"),
        ("breaking", "the following arguments are required: --against (see --help)"),
    ],
)
def test_failure_of_the_compiler_is_one_line_too(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["schema", *words.split()]) == 2
    assert capsys.readouterr() == ("", f"pt2wire schema: {message}\n")


def test_traceback_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError):
        run(["--debug", "inspect", "nowhere.pt2"])
    monkeypatch.setenv("PT2WIRE_DEBUG", "1")
    with pytest.raises(FileNotFoundError):
        run(["inspect", "nowhere.pt2"])


def test_debug_is_an_option_only_before_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", "nowhere.pt2", "--debug"]) == 2
    assert capsys.readouterr().err == "pt2wire: No such option: --debug (see --help)\n"


@pytest.mark.parametrize("command", ["inspect", "validate", "--help", "schema rules"])
def test_closed_output_is_a_failure(command: str, model: Path) -> None:
    file = shlex.quote(str(model)) if command in ("inspect", "validate") else ""
    line = f"exec {COMMAND} {command} {file} >&-"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (2, "pt2wire: standard output is closed\n")


def test_errors_without_a_stream_for_them_do_not_go_to_the_other(tmp_path: Path) -> None:
    line = f"exec {COMMAND} inspect {shlex.quote(str(tmp_path / 'none.pt2'))} 2>&-"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (2, "")


def test_a_reader_that_leaves_changes_no_exit_code(bad: Path, model: Path) -> None:
    wrong = model.with_name("wrong.yaml")
    wrong.write_text("x")
    for command, code in (
        (f"validate {shlex.quote(str(bad))}", 1),
        (f"validate {shlex.quote(str(bad))} --json", 1),
        (f"validate {shlex.quote(str(model))}", 0),
        ("--help", 0),
        (f"schema lint --schema {shlex.quote(str(wrong))}", 1),
    ):
        # The sleep lets `true` leave first, so that there is no reader at all.
        line = f"( sleep 0.3; exec {COMMAND} {command} ) | true; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=300)
        assert (done.stdout, done.stderr) == (f"{code}\n", ""), command


def test_unexpected_error_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(path: str, name: str | None) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("pt2wire.cli.read_programs", broken)
    assert run(["inspect", "m.pt2"]) == 2
    assert capsys.readouterr().err == (
        "pt2wire: internal error: RuntimeError: two\\nlines (PT2WIRE_DEBUG=1 shows where)\n"
    )


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert (
        capsys.readouterr().out
        == f"pt2wire {pt2wire.__version__} (export format {VERSION}, revision {REVISION})\n"
    )


@pytest.mark.parametrize(
    "words", [["--help"], ["inspect", "--help"], ["convert", "--help"], ["schema", "--help"]]
)
def test_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 0
    assert "usage:" in capsys.readouterr().out.lower()


# validate ------------------------------------------------------------------------------------


def test_sound_file(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", str(model)]) == 0
    assert capsys.readouterr().out == f"{model}: 0 findings\n"


def test_findings_are_lines_and_exit_code_1(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", str(bad)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "graph_module.graph.nodes[0].target: expected an operator or a symbolic function, found 'os.system', "
        "in node 'relu' (os.system) [target]",
        f"{bad}: 1 finding",
    ]


def test_findings_as_json(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", str(bad), "--json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)
    assert (finding["rule"], finding["unsafe"]) == ("target", True)


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A program that returns a class of a module which is not imported here."""
    (tmp_path / "shipping.py").write_text(SHIPPING)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    file = str(tmp_path / "m.pt2")
    subprocess.run(
        [sys.executable, "-c", "import shipping, sys; shipping.save(sys.argv[1])", file], check=True
    )
    return file


def test_a_class_of_a_module_that_is_not_imported_is_a_finding_until_it_is(shipped: str) -> None:
    command = [sys.executable, "-m", "pt2wire", "validate", shipped]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")
    assert "found 'shipping.Parcel' [unknown-class] It needs `--import shipping` first" in done.stdout
    assert "register_pytree_node(..., serialized_type_name=...)" in done.stdout
    done = subprocess.run([*command, "--import", "shipping"], capture_output=True, text=True)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", f"{shipped}: 0 findings\n")


def test_a_module_that_cannot_be_imported_is_a_failure(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["validate", str(model), "--import", "no_such_module"]) == 2
    assert "expected a module that can be imported, found 'no_such_module'" in capsys.readouterr().err


def test_damaged_archive_is_a_finding(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cut.pt2").write_bytes(model.read_bytes()[:-50])
    assert run(["validate", str(tmp_path / "cut.pt2")]) == 1
    assert capsys.readouterr().out.endswith("cut.pt2: 1 finding\n")


def test_rules_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", "--rules"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines[2:]} == set(RULES)
    assert run(["validate", "--rules", "--json"]) == 0
    assert [rule["id"] for rule in json.loads(capsys.readouterr().out)] == list(RULES)


# paths and schema ----------------------------------------------------------------------------


def test_paths_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["paths", "--json"]) == 0
    paths = json.loads(capsys.readouterr().out)
    includes, texts = {"include", "generated include", "cmake"}, {"thrift", "schema", "resolved schema"}
    assert set(paths) == includes | texts | {"templates"}
    assert all(Path(path).exists() for path in paths.values())
    assert (Path(paths["generated include"]) / "pt2wire" / "schema.h").is_file()
    assert (Path(paths["include"]) / "pt2wire" / "archive.h").is_file()


def test_cxxflags_are_what_a_compiler_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["paths", "--cxxflags"]) == 0
    source = tmp_path / "x.cpp"
    source.write_text("#include <pt2wire/schema.h>\n#include <pt2wire/archive.h>\n")
    flags = shlex.split(capsys.readouterr().out)
    subprocess.run(["g++", "-std=c++17", "-fsyntax-only", *flags, str(source)], check=True)


def test_the_folder_of_the_cmake_package_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["paths", "--cmake"]) == 0
    assert (Path(capsys.readouterr().out.rstrip("\n")) / "pt2wireConfig.cmake").is_file()


def test_schema_gets_its_arguments_untouched(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []

    def main(argv: list[str]) -> int:
        seen.append(argv)
        return 1

    monkeypatch.setattr("pt2wire.codegen.cli.main", main)
    assert run(["schema", "check", "--format", "github", "--", "-x"]) == 1
    assert run(["schema"]) == 1
    assert seen == [["check", "--format", "github", "--", "-x"], []]


# As a process --------------------------------------------------------------------------------


def test_the_installed_command(model: Path, bad: Path) -> None:
    def code(*words: object) -> int:
        return subprocess.run([COMMAND, *map(str, words)], capture_output=True, check=False).returncode

    assert [code("inspect", model), code("validate", bad), code("inspect", "nowhere.pt2")] == [0, 1, 2]


def test_reader_that_stops_early_is_no_failure(model: Path) -> None:
    command = f"{shlex.quote(COMMAND)} validate --rules | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_output_without_a_utf8_locale(model: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([COMMAND, "inspect", str(model)], capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
