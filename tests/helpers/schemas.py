"""Small schemas for tests of the compiler, with a mark where a fault is expected."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pt2wire.codegen.faults import Finding
from pt2wire.codegen.model import Field, Position

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "schema.yaml"

#: Stands in a schema's text directly before the place that a finding must name.
MARK = "§"

HEAD = """\
name: sample
version: "8.20"
oldest_version: "8.2"
revision: 1
treespec_version: 1
log:
  - {version: "8.20", torch: "2.12.0", note: First.}
types:
"""


def write_marked(folder: Path, text: str) -> tuple[Path, Position]:
    """Writes a schema without its mark; returns the file and the position of the mark."""
    before, _, after = text.partition(MARK)
    assert MARK not in after, "one mark a schema"
    path = folder / "schema.yaml"
    path.write_text(before + after, encoding="utf-8")
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    return path, Position(str(path), line, column)


def of_one_schema(finding: Finding) -> bool:
    """Whether a finding speaks as if of our schema.yaml: a schema of one's own has no part of PyTorch's."""
    said = finding.text().removeprefix(str(finding.position))
    return re.search(r"PyTorch|pt2wire|\bour|\bwe\b", said) is not None


def indented(types: str) -> str:
    """A schema whose types are given from column 1 on."""
    return HEAD + "".join(f"  {line}\n" if line else "\n" for line in types.splitlines())


def spelled(field: Field) -> str:
    """A field's type as schema.yaml spells it."""
    return ("optional " if field.optional else "") + str(field.type)


def default_of(field: Field) -> dict[str, Any]:
    """A field's default as the facts hold it: no key for a required field."""
    if field.default is None:
        return {}
    value = field.default.value
    if isinstance(value, tuple):
        value = {} if str(field.type).startswith("map") else []
    return {"default": value}
