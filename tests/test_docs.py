"""What the documentation shows is what happens: each block of a page is run, in order, in one folder.

python      runs; blocks of a page share their names
output      is what the block before it printed
console     commands after `$ `, and what they print
cpp         is a file of the name in its first line; commands that follow compile it
text        is no program
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import io
import json
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire.cli import app, run
from pt2wire.generated import json_codec

from .helpers.oracles import trips_of

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    "README.md",
    "CHANGELOG.md",
    "docs/format.md",
    "docs/architecture.md",
    "docs/comparing.md",
    "docs/python.md",
    "docs/coverage.md",
    "docs/security.md",
    "benchmarks/README.md",
)
# Pages that need files of their own beside them, and what runs their blocks.
TESTED_ELSEWHERE = {"docs/schema.md": "test_schema_docs.py", "docs/cpp.md": "test_cpp_docs.py"}

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: What is meant to be typed: inline, at a prompt, on a server.
_TYPED = re.compile(r"`([^`\n]+)`|^ *\$ (.*)$|^ *- run: (.*)$", re.MULTILINE)
_CALL = re.compile(r"\bpt2wire (schema [a-z-]+|[a-z-]+)([^|;&)$]*)")
# Installing takes minutes, and the targets run this test: they are asked what they would do.
_PIP = "pip install --quiet --dry-run --no-deps"
_DRY_RUNS = (
    (re.compile(r"^make (\w[\w-]*)$"), r"make --dry-run \1"),
    (re.compile(r"^pip install \.$"), f"{_PIP} --no-build-isolation ."),
    (
        re.compile(r"^pip install --no-deps \. && pip install (.*)$"),
        rf"{_PIP} --no-build-isolation . && {_PIP} \1",
    ),
)


class Page:
    """The blocks of one page, run in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.printed = ""

    def python(self, text: str) -> None:
        printed = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
            exec(compile(text, "<page>", "exec"), self.names)
        self.printed = printed.getvalue()

    def output(self, text: str) -> None:
        assert self.printed == text

    def console(self, text: str) -> None:
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            folder = self.folder
            for pattern, replacement in _DRY_RUNS:
                if pattern.match(command):
                    command, folder, expected = pattern.sub(replacement, command), ROOT, ""
            done = subprocess.run(
                ["bash", "-c", f'PATH="{Path(sys.executable).parent}:$PATH"; {command}'],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,  # as on a terminal
                text=True,
                timeout=600,
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}"
            assert folder == ROOT or done.stdout == expected, command

    def cpp(self, text: str) -> None:
        name = re.match(r"// (\w+\.cpp)\n", text)
        assert name, "say in a comment first which file this is"
        (self.folder / name[1]).write_text(text)

    def text(self, text: str) -> None:
        pass


@pytest.mark.parametrize("name", PAGES)
def test_every_block_of_a_page_is_true(name: str, tmp_path: Path) -> None:
    for part in ("schema.json", "schema.yaml"):
        shutil.copy(ROOT / "generated" / part, tmp_path)
    page = Page(tmp_path)
    for language, text in _BLOCK.findall((ROOT / name).read_text()):
        run = getattr(page, language, None)
        assert run is not None, f"a block of {language!r} cannot be run: say in this test how"
        run(text)


@pytest.mark.parametrize(
    "name",
    (
        "scalars",
        "while_loop_with_tuples",
        "metadata_of_inputs_weights_and_outputs",
        "cond_that_makes_tensors",
    ),
)
def test_the_reader_on_a_page_reads_all_that_programs_hold(name: str, tmp_path: Path) -> None:
    """Fields and types of our own, bytes, and numbers that JSON has no digits for."""
    blocks = [text for _, text in _BLOCK.findall((ROOT / "docs/format.md").read_text())]
    (reader,) = [text for text in blocks if "class Compact" in text]
    code, _, _ = reader.partition("\nwith zipfile")
    shutil.copy(ROOT / "generated/schema.json", tmp_path)
    page = Page(tmp_path)
    page.python(code)
    tree = pt2wire.to_tree(trips_of(name).program)
    found = page.names["Compact"](pt2wire.to_thrift(tree)).fields("ExportedProgram", "struct")
    assert found == json.loads(json_codec.encode(tree))


def test_what_the_readme_compiles_says_what_it_lacks(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    (source,) = re.findall(r"^```cpp\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (line,) = re.findall(r"^\$ (g\+\+ .*)$", text, re.MULTILINE)
    assert " -DPT2WIRE_WITH_ZLIB=1 -lz" in line
    page = Page(tmp_path)
    page.cpp(source)
    page.console(f"$ {line.replace(' -DPT2WIRE_WITH_ZLIB=1 -lz', ' -Wall -Wextra -Werror')}\n")
    ep = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    for compress, code in ((False, 0), (True, 1)):
        pt2wire.save(ep, tmp_path / "model.pt2", compress=compress)
        done = subprocess.run(["./nodes", "model.pt2"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == code
        assert ("PT2WIRE_WITH_ZLIB" in done.stderr) == compress
    done = subprocess.run(["./nodes", "none.pt2"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("none.pt2")


def test_every_page_is_tested() -> None:
    pages = {str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"))}
    assert pages <= {*PAGES, *TESTED_ELSEWHERE}
    for page, test in TESTED_ELSEWHERE.items():
        assert page in pages
        assert (ROOT / "tests" / test).exists()


def test_the_architecture_has_a_place_for_every_module() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    named = set(re.findall(r"`(\w+)`|`(\w+)\.py`", page))
    modules = {path.stem for folder in ("codegen", "generated") for path in (ROOT / folder).glob("*.py")} - {
        "__init__"
    }
    assert modules <= {one or other for one, other in named}
    folders = {path.parts[0] for path in map(Path, _tracked()) if len(path.parts) > 1}
    assert {name for name in folders - {"docs"} if f"`{name}/" not in page} == set()  # the page is in docs/


def test_the_architecture_lists_the_modules_of_the_runtime_and_no_others() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    listed: dict[str, list[str]] = {}
    for heading, tables in re.findall(r"^### (.*)\n((?:(?!#).*\n)*)", page, re.MULTILINE):
        first_cells = re.findall(r"^\| (`.*?) \|", tables, re.MULTILINE)
        for folder in re.findall(r"`(.*?)/`", heading):
            listed.setdefault(folder, []).extend(re.findall(r"`(\w+)`", " ".join(first_cells)))
    modules: dict[str, list[str]] = {}
    for path in sorted((ROOT / "runtime").rglob("*.py")):
        if path.stem != "__init__":
            modules.setdefault(str(path.parent.relative_to(ROOT)), []).append(path.stem)
    assert {folder: sorted(names) for folder, names in listed.items()} == modules


def _tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    return listed.stdout.splitlines()


def test_links_of_pages_lead_somewhere() -> None:
    for page in (ROOT / name for name in (*PAGES, *TESTED_ELSEWHERE)):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_commands_and_options_on_pages_are_those_of_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    def helped(*words: str) -> str:
        assert run([*words, "--help"]) == 0
        return capsys.readouterr().out

    compiler = [f"schema {name}" for name in re.findall(r"^    ([a-z-]+)", helped("schema"), re.MULTILINE)]
    commands = {str(command.name) for command in app.registered_commands} | {*compiler}
    options = {name: set(re.findall(r"--[a-z-]+", helped(*name.split()))) for name in commands}
    shown = set()
    for page in (*PAGES, *TESTED_ELSEWHERE):
        text = (ROOT / page).read_text()
        for line in _TYPED.findall(text):
            for name, arguments in _CALL.findall("".join(line)):
                assert name in commands, f"{page}: pt2wire {name}"
                assert set(re.findall(r"--[a-z-]+", arguments)) <= options[name], f"{page}: pt2wire {name}"
                shown.add(name)
    assert shown == commands


def _modules() -> list[str]:
    # Three folders are one package: in a source tree, none lies in another one's path.
    packages = [importlib.import_module(name) for name in ("pt2wire", "pt2wire.codegen", "pt2wire.generated")]
    found = {package.__name__ for package in packages}
    for package in packages:
        walked = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        found |= {module.name for module in walked if not module.name.endswith("__main__")}
    return sorted(found)


@pytest.mark.parametrize("name", _modules())
def test_examples_in_docstrings(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_public_functions_have_an_example() -> None:
    missing = [
        name
        for name in pt2wire.__all__
        if inspect.isfunction(thing := getattr(pt2wire, name)) and ">>>" not in (thing.__doc__ or "")
    ]
    assert missing == []
