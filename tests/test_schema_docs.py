"""docs/schema.md shows what is there: commands print what it says, YAML stands in schema.yaml, code runs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from pt2wire.codegen.breaking import RULES as BREAKING_RULES
from pt2wire.codegen.lint import RULES

from .helpers.schemas import ROOT, SCHEMA

DOC = (ROOT / "docs/schema.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", DOC, re.M | re.S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the schema and of generated/, with the files that the page shows under their names."""
    path = tmp_path_factory.mktemp("tree")
    shutil.copy(SCHEMA, path)
    shutil.copytree(ROOT / "generated", path / "generated", ignore=shutil.ignore_patterns("__pycache__"))
    for language, text in BLOCKS:
        if language == "yaml" and (name := re.match(r"# (\S+\.yaml)\n", text)):
            (path / name[1]).write_text(text)
    return path


@pytest.mark.parametrize("text", [text for language, text in BLOCKS if language == "console"])
def test_commands_print_what_the_page_says(folder: Path, text: str) -> None:
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, expected = part.partition("\n")
        done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True)
        assert done.stdout + done.stderr == expected, command


@pytest.mark.parametrize("text", [text for language, text in BLOCKS if language == "yaml" and text[0] != "#"])
def test_yaml_without_a_file_name_stands_in_the_schema(text: str) -> None:
    assert text in SCHEMA.read_text()


@pytest.mark.parametrize("text", [text for language, text in BLOCKS if language == "python"])
def test_python_runs(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.chdir(folder)
    exec(compile(text, "docs/schema.md", "exec"), {})


def test_the_page_lists_every_rule_of_lint_and_breaking() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| (\w+) \| (.*) \|$", DOC, re.M)
    assert rows == [(rule.id, rule.level.value, rule.purpose) for rule in (*RULES, *BREAKING_RULES)]
