"""docs/schema.md shows what is there: commands print what it says, YAML stands in schema.yaml, code runs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from pt2wire.codegen.breaking import RULES as BREAKING_RULES
from pt2wire.codegen.lint import RULES
from pt2wire.codegen.outputs import render_all, write_files
from pt2wire.codegen.resolve import parse_schema

from .helpers.schemas import ROOT, SCHEMA

DOC = (ROOT / "docs/schema.md").read_text()
#: The page shows the version and revision of this schema, also when there are later ones.
SHOWN = ROOT / "tests/data/artifacts/8.20-r1/schema.yaml"
#: A block that begins with a comment like `# mine.yaml` is a file of that name.
NAMED = re.compile(r"(?:#|//) (\S+\.(?:yaml|py|cpp))\n")

Block = tuple[str, str]


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a part of the page: language and content."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S)


def section(heading: str) -> str:
    """The part of the page below a heading, down to the next of the same or a higher level."""
    level = heading.partition(" ")[0]
    rest = DOC.split(f"\n{heading}\n", 1)[1]
    return re.split(rf"^#{{2,{len(level)}}} ", rest, maxsplit=1, flags=re.M)[0]


WALK = "## A bump, step by step"
BUMPS = re.findall(r"^### .*$", section(WALK), re.M)[:3]
BLOCKS = blocks(DOC.replace(section(WALK), ""))


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with the schema and what is generated from it, tagged as the page says."""
    path = tmp_path_factory.mktemp("fresh")
    data = SHOWN.read_bytes()
    (path / "schema.yaml").write_bytes(data)
    write_files(render_all(parse_schema(data, "schema.yaml"), data), path / "generated")
    git = ["git", "-C", str(path), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "First"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    ((language, text),) = blocks(section(WALK).partition("\n### ")[0])
    assert language == "console" and performed(path, text) == text
    tags = subprocess.run([*git, "tag"], check=True, capture_output=True, text=True)
    assert tags.stdout == "v0.1.0\n"
    return path


@pytest.fixture(scope="module")
def folder(fresh: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That repository with the files that the page shows under their names."""
    path = shutil.copytree(fresh, tmp_path_factory.mktemp("shown") / "tree")
    for _, text in BLOCKS:
        if name := NAMED.match(text):
            (path / name[1]).parent.mkdir(parents=True, exist_ok=True)
            (path / name[1]).write_text(text)
    return path


def performed(folder: Path, text: str) -> str:
    """A console block again, with what its commands print now."""
    lines = []
    for command in re.findall(r"^\$ (.*)$", text, re.M):
        done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True)
        lines += [f"$ {command}\n", done.stdout, done.stderr]
    return "".join(lines)


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
    assert performed(folder, text) == text


@pytest.mark.parametrize("heading", BUMPS)
def test_a_bump_goes_as_the_page_says(fresh: Path, tmp_path: Path, heading: str) -> None:
    tree = shutil.copytree(fresh, tmp_path / "tree")
    steps = blocks(section(heading))
    assert {language for language, _ in steps} == {"diff", "console"}
    for language, text in steps:
        if language == "diff":
            command = ["patch", "-p0", "--fuzz=0"]
            subprocess.run(command, input=text, text=True, cwd=tree, check=True, capture_output=True)
        else:
            assert performed(tree, text) == text


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


def test_the_steps_of_the_workflow_run(folder: Path) -> None:
    workflow = yaml.safe_load((folder / ".github/workflows/schema.yaml").read_text())
    runs = [step["run"] for step in workflow["jobs"]["schema"]["steps"] if "run" in step]
    commands = [run for run in runs if run.startswith("pt2wire schema ")]
    assert [command.split()[2] for command in commands] == ["check", "lint", "breaking"]
    for command in commands:
        done = subprocess.run(["bash", "-ec", command], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
