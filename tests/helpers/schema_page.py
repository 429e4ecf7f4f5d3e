"""docs/schema.md as data: its blocks, and what stands in them once the schema has changed.

`python -m tests.helpers.schema_page` writes it anew: tables of rules, places in patches, what commands print.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pt2wire.codegen import breaking, lint
from pt2wire.codegen.outputs import render_all, write_files
from pt2wire.codegen.resolve import parse_schema
from pt2wire.codegen.rules import Rule

from .schemas import ROOT

PAGE = ROOT / "docs/schema.md"
COMMAND = "python -m tests.helpers.schema_page"
#: The page shows the version and revision of this schema, also when there are later ones.
SHOWN = ROOT / "tests/data/artifacts/8.20-r1/schema.yaml"
WALK = "## A bump, step by step"
#: A block that begins with a comment like `# mine.yaml` is a file of that name.
NAMED = re.compile(r"(?:#|//) (\S+\.(?:yaml|py|cpp))\n")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
_FILE = re.compile(r"^(?=--- )", re.MULTILINE)
_HUNK = re.compile(r"^@@ -\d+,\d+ \+\d+,\d+ @@\n((?:[-+ ].*\n|\n)+)", re.M)
#: A table of rules: first that of lint, then that of breaking.
_TABLE = re.compile(r"(^\| rule \| endangers \|.*\n\|[- |]*\n)(?:\|.*\n)+", re.M)

Block = tuple[str, str]


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a part of the page: language and content."""
    return _BLOCK.findall(text)


def section(page: str, heading: str) -> str:
    """The part of the page below a heading, down to the next of the same or a higher level."""
    level = heading.partition(" ")[0]
    rest = page.split(f"\n{heading}\n", 1)[1]
    return re.split(rf"^#{{2,{len(level)}}} ", rest, maxsplit=1, flags=re.M)[0]


def bumps(page: str) -> list[str]:
    """The headings of the bumps: what has a patch."""
    headings = re.findall(r"^### .*$", section(page, WALK), re.M)
    return [heading for heading in headings if "```diff\n" in section(page, heading)]


def fresh_tree(path: Path, page: str) -> Path:
    """A git repository with the schema and what is generated from it, tagged as the page says."""
    data = SHOWN.read_bytes()
    (path / "schema.yaml").write_bytes(data)
    write_files(render_all(parse_schema(data, "schema.yaml"), data), path / "generated")
    git = ["git", "-C", str(path), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "First"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    ((language, text),) = blocks(section(page, WALK).partition("\n### ")[0])
    assert language == "console" and performed(path, text) == text
    tags = subprocess.run([*git, "tag"], check=True, capture_output=True, text=True)
    assert tags.stdout == "v0.1.0\n"
    return path


def write_named(folder: Path, page: str) -> None:
    """Writes the files that the page shows under their names."""
    for _, text in blocks(page):
        if name := NAMED.match(text):
            (folder / name[1]).parent.mkdir(parents=True, exist_ok=True)
            (folder / name[1]).write_text(text)


def performed(folder: Path, text: str) -> str:
    """A console block again, with what its commands print now."""
    lines = []
    for command in re.findall(r"^\$ (.*)$", text, re.M):
        done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True)
        lines += [f"$ {command}\n", done.stdout, done.stderr]
    return "".join(lines)


def is_of_schema(patch: str) -> bool:
    """Whether a patch is one of the schema that is shown; others are of the runtime as it is."""
    return patch.startswith("--- schema.yaml\n")


def apply_patch(tree: Path, patch: str) -> None:
    """Applies a patch of the page as the page says; what it replaces and stands beside must be there."""
    command = ["patch", "-p0", "--fuzz=0"]
    done = subprocess.run(command, input=patch, text=True, cwd=tree, check=True, capture_output=True)
    assert "offset" not in done.stdout, f"{done.stdout}Run: {COMMAND}"


def placed(patch: str) -> str:
    """A patch with the places that its lines have now: of the schema that is shown, and of the runtime."""
    return "".join(_placed(part) for part in _FILE.split(patch) if part)


def _placed(patch: str) -> str:
    """The same of one file."""
    name = patch.partition("\n")[0].removeprefix("--- ")
    source = (SHOWN if is_of_schema(patch) else ROOT / name).read_text()
    shift = 0

    def numbered(hunk: re.Match[str]) -> str:
        nonlocal shift
        lines = hunk[1].splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] != "+")
        assert source.count("\n" + old) == 1, f"{source.count(old)} places in {name} have\n{old}"
        start = source.index("\n" + old) + 1
        number = source.count("\n", 0, start) + 1
        removed, added = (sum(line[0] != sign for line in lines) for sign in "+-")
        head = f"@@ -{number},{removed} +{number + shift},{added} @@\n"
        shift += added - removed
        return head + hunk[1]

    return _HUNK.sub(numbered, patch)


def _table(groups: Iterator[tuple[Rule, ...]], found: re.Match[str]) -> str:
    rows = [f"| `{rule.id}` | {rule.level.value} | {rule.purpose} |\n" for rule in next(groups)]
    return found[1] + "".join(rows)


def refreshed(page: str) -> str:
    """The page with rules, places and prints as they are now."""
    page = _TABLE.sub(partial(_table, iter((lint.RULES, breaking.RULES))), page)
    walk = section(page, WALK)
    with tempfile.TemporaryDirectory() as scratch:
        fresh = fresh_tree(Path(scratch), page)

        def again(tree: Path, part: str) -> str:
            def block(match: re.Match[str]) -> str:
                language, text = match.groups()
                if language == "diff":
                    text = placed(text)
                    if is_of_schema(text):
                        apply_patch(tree, text)
                elif language == "console":
                    text = performed(tree, text)
                return f"```{language}\n{text}```"

            return _BLOCK.sub(block, part)

        new_walk = walk
        for heading in bumps(page):
            with tempfile.TemporaryDirectory() as place:
                tree = shutil.copytree(fresh, Path(place) / "tree")
                part = section(page, heading)
                new_walk = new_walk.replace(part, again(tree, part))
        with tempfile.TemporaryDirectory() as place:
            tree = shutil.copytree(fresh, Path(place) / "tree")
            before, after = page.split(walk)
            write_named(tree, before + after)
            return again(tree, before) + new_walk + again(tree, after)


if __name__ == "__main__":
    PAGE.write_text(refreshed(PAGE.read_text()))
