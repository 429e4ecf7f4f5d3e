"""The generated tree: which targets make it, writing it, and comparing it with what is on disk."""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from . import cpp, data, python, thrift
from .model import Schema
from .render import MARK

#: Each gives the files of one kind of binding: path below the output folder -> text.
TARGETS = (data.outputs, thrift.outputs, python.outputs, cpp.outputs)
#: What Python leaves beside modules that it has imported, perhaps while it writes it.
_COMPILED = re.compile(r"__pycache__/[^/]+\.pyc(\.\d+)?")
_MAX_DIFF_LINES = 40


@dataclass(frozen=True, slots=True)
class Difference:
    """What is not as it would be generated: `missing`, `stale`, `orphan` or `link`; diff is for humans."""

    path: str
    state: str
    diff: str


def render_all(schema: Schema, source: bytes) -> dict[str, bytes]:
    """Every generated file in memory: path below the output folder (with slashes) -> content.

    Args:
        schema: The resolved schema, in which `lint` finds nothing but matters of style.
        source: The schema file as it is; its copy travels with the generated code.
    """
    files = {"schema.yaml": source}
    for target in TARGETS:
        for path, text in target(schema).items():
            if path in files:
                raise AssertionError(f"two targets write {path}")
            files[path] = text.encode()
    return dict(sorted(files.items()))


def write_files(files: dict[str, bytes], out: Path) -> list[str]:
    """Makes a folder hold the files; returns the paths that changed.

    Files that are already equal keep their times. Files that an earlier run generated and this one does not
    are removed; others are left alone.
    """
    changed = []
    for path, content in files.items():
        target = out / path
        if target.is_file() and target.read_bytes() == content:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        changed.append(path)
    for path in _orphans(files, out):
        if MARK.encode() in (out / path).read_bytes()[:200]:
            (out / path).unlink()
            changed.append(path)
    return changed


def compare_files(files: dict[str, bytes], out: Path) -> list[Difference]:
    """What a folder holds otherwise than `files`: missing, stale, orphaned files and links, by path."""
    differences = []
    for path, content in files.items():
        target = out / path
        if not target.is_file():
            differences.append(Difference(path, "missing", ""))
        elif (found := target.read_bytes()) != content:
            differences.append(Difference(path, "stale", _diff(path, found, content)))
    differences += [Difference(path, "orphan", "") for path in _orphans(files, out)]
    differences += [Difference(path, "link", "") for path in _entries(out) if (out / path).is_symlink()]
    return sorted(differences, key=lambda difference: (difference.path, difference.state))


def _orphans(files: dict[str, bytes], out: Path) -> list[str]:
    """Files that no target writes; links are no files, wherever they lead."""
    found = [path for path in _entries(out) if path not in files and not (out / path).is_symlink()]
    return [path for path in found if not _COMPILED.search(path) and not (out / path).is_dir()]


def _entries(out: Path) -> list[str]:
    """All that lies in a folder: files, folders, links; these are not followed."""
    paths = (
        Path(folder, name).relative_to(out).as_posix()
        for folder, folders, names in os.walk(out)
        for name in (*folders, *names)
    )
    return sorted(paths)


def _diff(path: str, found: bytes, expected: bytes) -> str:
    try:
        old, new = found.decode().splitlines(), expected.decode().splitlines()
    except UnicodeDecodeError:
        old = new = []
    lines = list(difflib.unified_diff(old, new, f"{path} (found)", f"{path} (generated)", lineterm=""))
    if not lines:
        pairs = zip(found, expected, strict=False)
        common = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(found), len(expected)))
        return f"differs from byte {common} on"
    if len(lines) > _MAX_DIFF_LINES:
        lines[_MAX_DIFF_LINES:] = [f"... {len(lines) - _MAX_DIFF_LINES} more lines"]
    return "\n".join(lines)
