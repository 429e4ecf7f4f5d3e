"""Two versions of a schema compared: all rules, and where the version before comes from."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from . import bumps, incompatible
from .faults import Finding
from .model import Schema
from .resolve import parse_schema
from .rules import BreakingRule, findings

RULES: tuple[incompatible.IncompatibleRule | BreakingRule, ...] = (*incompatible.RULES, *bumps.RULES)

#: Variables that tell git where its repository is, which is where the schema lies.
_GIT_PLACES = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR"}


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
    return findings((rule, report) for rule in RULES for report in rule.check(before, after))


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
    if Path(against).exists() and not Path(against).is_dir():  # pipes of a shell are no plain files
        return parse_schema(Path(against).read_bytes(), against)
    return parse_schema(_from_git(against, schema_path), f"{against}:{schema_path}")


def _from_git(revision: str, schema_path: Path) -> bytes:
    if revision.startswith("-") or not revision:
        message = f"expected a file or a git revision to compare with, found {revision!r}"
        raise SourceError(f"{message}. Where there is no release yet, name a branch, such as origin/main")
    place = schema_path.resolve()  # git would show where a link leads, not what is there
    try:
        # One file of one revision: a range is refused. `./` makes git look in the folder that it runs in.
        done = _git(place.parent, "cat-file", "blob", f"{revision}:./{place.name}")
        if done.returncode != 0:
            shallow = _git(place.parent, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true"
            raise SourceError(_refusal(revision, schema_path, done.stderr.decode(errors="replace"), shallow))
    except FileNotFoundError:
        raise SourceError(f"there is no file {revision}, and git is not installed") from None
    return done.stdout


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Runs git in a folder. Hooks of git get variables that would lead it to another one."""
    environment = {name: value for name, value in os.environ.items() if name not in _GIT_PLACES}
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, check=False, env=environment)


def _refusal(revision: str, schema_path: Path, said: str, shallow: bool) -> str:
    revision, reason = " ".join(revision.split()), " ".join(said.split())
    message = f"{revision} is neither a file nor a git revision that has {schema_path}"
    if shallow:
        hint = "The clone is shallow, and may lack it: git fetch --unshallow --tags"
    else:
        hint = (
            "Name a schema file, a tag (git fetch --tags), a branch or a commit; where the schema had another"
            f" name, write that one to a file first: git show {revision}:OLD-NAME > before.yaml"
        )
    return f"{message} (git: {reason}). {hint}"
