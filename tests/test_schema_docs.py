"""docs/schema.md shows what is there: commands print what it says, YAML stands in schema.yaml, code runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pt2wire
import pytest
import yaml
from pt2wire.codegen.breaking import RULES as BREAKING_RULES
from pt2wire.codegen.lint import RULES

from .helpers.archives import linear_archive
from .helpers.schema_page import (
    COMMAND,
    NAMED,
    PAGE,
    WALK,
    apply_patch,
    blocks,
    bumps,
    fresh_tree,
    is_of_schema,
    performed,
    placed,
    section,
    write_named,
)
from .helpers.schemas import ROOT, SCHEMA

DOC = PAGE.read_text()
BUMPS = bumps(DOC)
OWN_FIELD = "### A field of our own"
BLOCKS = blocks(DOC.replace(section(DOC, WALK), ""))


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fresh_tree(tmp_path_factory.mktemp("fresh"), DOC)


@pytest.fixture(scope="module")
def folder(fresh: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That repository with the files that the page shows under their names."""
    path = shutil.copytree(fresh, tmp_path_factory.mktemp("shown") / "tree")
    write_named(path, DOC)
    return path


def consoles() -> list[Any]:
    needs = {"thrift": "thrift ", "g++": "g++ "}
    return [
        pytest.param(
            text,
            marks=[
                pytest.mark.skipif(shutil.which(tool) is None, reason=f"needs {tool}")
                for tool, word in needs.items()
                if f"$ {word}" in text
            ],
        )
        for language, text in BLOCKS
        if language == "console"
    ]


@pytest.mark.parametrize("text", consoles())
def test_commands_print_what_the_page_says(folder: Path, text: str) -> None:
    assert performed(folder, text) == text, f"Run: {COMMAND}"


@pytest.mark.parametrize("heading", BUMPS)
def test_a_bump_goes_as_the_page_says(fresh: Path, tmp_path: Path, heading: str) -> None:
    tree = shutil.copytree(fresh, tmp_path / "tree")
    blocks_here = blocks(section(DOC, heading))
    # tests/test_bump.py does what is left to do in the runtime, whose schema is not the one that is shown.
    steps = [(kind, text) for kind, text in blocks_here if kind == "console" or is_of_schema(text)]
    assert {language for language, _ in steps} == {"diff", "console"}
    for language, text in steps:
        if language == "diff":
            apply_patch(tree, text)
        else:
            assert performed(tree, text) == text, f"Run: {COMMAND}"


@pytest.mark.parametrize(
    "patch", [text for language, text in blocks(section(DOC, WALK)) if language == "diff"]
)
def test_patches_name_the_lines_that_they_change(patch: str) -> None:
    assert placed(patch) == patch, f"Run: {COMMAND}"


@pytest.mark.parametrize(
    "text", [text for language, text in BLOCKS if language == "yaml" and not NAMED.match(text)]
)
def test_yaml_without_a_file_name_stands_in_the_schema(text: str) -> None:
    assert text in SCHEMA.read_text()


@pytest.mark.parametrize(
    "text", [text for language, text in BLOCKS if language == "python" and not NAMED.match(text)]
)
def test_python_runs(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.chdir(folder)
    exec(compile(text, "docs/schema.md", "exec"), {})


@pytest.mark.parametrize("text", [text for language, text in blocks(DOC) if language == "sh"])
def test_other_commands_run(text: str) -> None:
    if text.strip() == "python -m tests.helpers.artifacts":
        text = text.replace(".artifacts", ".artifacts --help")
    done = subprocess.run(["bash", "-c", text], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ") or Path(done.stdout.strip()).is_file()


def test_the_page_lists_every_rule_of_lint_and_breaking() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| (\w+) \| (.*) \|$", DOC, re.M)
    assert rows == [(rule.id, rule.level.value, rule.purpose) for rule in (*RULES, *BREAKING_RULES)]


def test_the_hooks_are_those_that_are_offered(folder: Path) -> None:
    """What pre-commit would run with the configuration shown, in a repository where all is well."""
    offered = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    (repository,) = yaml.safe_load((folder / ".pre-commit-config.yaml").read_text())["repos"]
    assert [hook["id"] for hook in repository["hooks"]] == list(offered)
    for hook in repository["hooks"]:
        assert offered[hook["id"]]["language"] == "system"
        assert offered[hook["id"]]["pass_filenames"] is False
        command = [*offered[hook["id"]]["entry"].split(), *hook.get("args", ())]
        assert command[0] == "python"
        done = subprocess.run([sys.executable, *command[1:]], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_hook_fails_where_something_is_wrong(fresh: Path, tmp_path: Path) -> None:
    tree = shutil.copytree(fresh, tmp_path / "tree")
    text = (tree / "schema.yaml").read_text()
    (tree / "schema.yaml").write_text(text.replace("UINT64: {value: 35", "UINT64: {value: 36"))
    for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text()):
        command = [sys.executable, *hook["entry"].split()[1:]]
        command += ["--against", "v0.1.0"] if "breaking" in hook["id"] else []
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
        assert done.returncode == 1, done.stdout + done.stderr


def test_hooks_for_a_schema_of_another_name_are_those_that_the_page_says(
    folder: Path, tmp_path: Path
) -> None:
    shutil.copy(folder / "acme.yaml", tmp_path)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in (["init", "-q"], ["add", "acme.yaml"], ["commit", "-qm", "One"], ["tag", "v0.1.0"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    generate = ["generate", "--schema", "acme.yaml", "--out", "acme"]
    subprocess.run([sys.executable, "-m", "pt2wire.codegen", *generate], cwd=tmp_path, check=True)
    given = [words.split(", ") for words in re.findall(r"`args: \[(.*?)\]`", section(DOC, "## Hooks"))]
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    commands = [[sys.executable, *hook["entry"].split()[1:]] for hook in hooks]

    def codes(*, named: bool) -> list[int]:
        runs = [
            command + (words if named else words[-2:]) for command, words in zip(commands, given, strict=True)
        ]
        return [subprocess.run(run, cwd=tmp_path, capture_output=True).returncode for run in runs]

    assert codes(named=True) == [0, 0]
    assert codes(named=False) == [2, 2]
    text = (tmp_path / "acme.yaml").read_text()
    (tmp_path / "acme.yaml").write_text(text.replace("NPU: {value: 1", "NPU: {value: 2"))
    assert codes(named=True) == [1, 1]


def test_the_steps_of_the_workflow_run(folder: Path) -> None:
    workflow = yaml.safe_load((folder / ".github/workflows/schema.yaml").read_text())
    runs = [step["run"] for step in workflow["jobs"]["schema"]["steps"] if "run" in step]
    commands = [run for run in runs if run.startswith("pt2wire schema ")]
    assert [command.split()[2] for command in commands] == ["check", "lint", "breaking"]
    for command in commands:
        done = subprocess.run(["bash", "-ec", command], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_field_of_our_own_goes_to_files_that_older_readers_know_as_newer(
    fresh: Path, tmp_path: Path
) -> None:
    """The program of that bump, run by the package with what the bump generates."""
    steps = section(DOC, OWN_FIELD)
    tree = shutil.copytree(fresh, tmp_path / "tree")
    ((_, patch),) = (block for block in blocks(steps) if block[0] == "diff")
    ((_, program),) = (block for block in blocks(steps) if block[0] == "python")
    ((_, printed),) = (block for block in blocks(steps) if block[0] == "text")
    apply_patch(tree, patch)
    performed(tree, "$ pt2wire schema generate\n")
    package = tmp_path / "package" / "pt2wire"
    package.mkdir(parents=True)
    for part in (*(ROOT / "runtime").iterdir(), tree / "generated"):
        (package / part.name).symlink_to(part)
    file = tmp_path / "m.pt2"
    file.write_bytes(linear_archive())
    done = subprocess.run(
        [sys.executable, "-c", program, file],
        env={**os.environ, "PYTHONPATH": str(package.parent)},
        capture_output=True,
        text=True,
    )
    assert (done.stderr, done.stdout) == ("", printed)
    with pytest.warns(UserWarning, match=r"with revision 2, this is 1: .* the first is #1002"):
        pt2wire.load(file)
