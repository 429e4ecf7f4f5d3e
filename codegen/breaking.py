"""Two versions of a schema compared: all rules, and where the version before comes from."""

from __future__ import annotations

import subprocess
from pathlib import Path

from . import bumps, incompatible
from .faults import Finding
from .model import Schema
from .resolve import parse_schema

RULES = (*incompatible.RULES, *bumps.RULES)


class SourceError(Exception):
    """There is no schema to compare with; the message says what was looked for and what to name instead."""


def breaking(before: Schema, after: Schema) -> list[Finding]:
    """All findings of all rules, in the order of the file after the change.

    Args:
        before: The version released last: what files and readers out there have.
        after: The version to judge.

    Example:
        >>> from pt2wire.codegen.resolve import load_schema
        >>> schema = load_schema(Path(__file__).parent.parent / "generated/schema.yaml")
        >>> breaking(schema, schema)
        []
    """
    findings = [
        Finding(report.position, rule.id, rule.level, report.message, report.hint)
        for rule in RULES
        for report in rule.check(before, after)
    ]
    return sorted(findings, key=lambda finding: (finding.position, finding.rule))


def schema_before(against: str, schema_path: Path) -> Schema:
    """The schema that a change is compared with.

    Args:
        against: A file, or else a revision of the git repository that holds `schema_path`.
        schema_path: The schema after the change; the revision's file of the same path is taken.

    Raises:
        SourceError: There is neither such a file nor such a revision.
        SchemaError: What is there is not a schema.
        OSError: The file cannot be read.
    """
    if Path(against).is_file():
        return parse_schema(Path(against).read_bytes(), against)
    return parse_schema(_from_git(against, schema_path), f"{against}:{schema_path}")


def _from_git(revision: str, schema_path: Path) -> bytes:
    if revision.startswith("-") or not revision:
        raise SourceError(f"expected a file or a git revision to compare with, found {revision!r}")
    # Git gets one argument that cannot be an option; `./` makes it look beside the folder that it runs in.
    command = ["git", "-C", str(schema_path.parent), "show", f"{revision}:./{schema_path.name}"]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        raise SourceError(f"there is no file {revision}, and git is not installed") from None
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip().replace("\n", " ")
        message = f"{revision} is neither a file nor a git revision that has {schema_path}"
        raise SourceError(f"{message} (git: {reason}). Name a schema file, a tag, a branch or a commit")
    return done.stdout
