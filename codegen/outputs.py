"""The generated tree: which targets make it, writing it, and comparing it with what is on disk."""

from __future__ import annotations

import difflib
import fcntl
import keyword
import os
import re
import site
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from . import cpp, data, python, thrift
from .model import Schema
from .render import MARK

#: Each gives the files of one kind of binding: path below the output folder -> text.
TARGETS = (data.outputs, thrift.outputs, python.outputs, cpp.outputs)
#: What Python leaves beside modules that it has imported, perhaps while it writes it.
_COMPILED = re.compile(r"__pycache__/[^/]+\.pyc(\.\d+)?")
#: Behind the name of a file while it is written.
_UNFINISHED = ".unfinished"
#: Tells for files that can bear no mark, and for the folder, that a run wrote them.
_MARKED = "schema.thrift"
_MAX_DIFF_LINES = 40


@dataclass(frozen=True, slots=True)
class Difference:
    """What is not as it would be generated, as `check` names it; diff is for humans.

    Its state is `missing`, `stale`, `orphan`, `link`, `empty` of a folder, or `folder` where a file belongs.
    """

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

    Files that are already equal keep their times; others change as a whole or not at all, whenever a run is
    killed. Files that an earlier run generated beside them and this one does not are removed; others that
    have come since are left alone. Runs at once wait for each other.

    Raises:
        ForeignError: A file of the same name is there that no run has generated, a folder or pipe of that
            name, a link on the way to it, or anything else where nothing was generated yet. Nothing was
            written.
        OSError: The folder cannot be written.
    """
    with _alone(out):
        for path in (*files, *_unfinished(files)):
            _refuse_what_is_no_file(path, out)
        stale = [path for path, content in files.items() if not _holds(out / path, content)]
        foreign = [path for path in stale if not _replaceable(out / path, out)]
        if foreign:
            raise ForeignError(out / foreign[0])
        if not _generated(out / _MARKED):
            _refuse_other_files(files, out)
        for path in sorted(stale, key=lambda path: path != _MARKED):  # that first: it vouches for the others
            _replace(out / path, files[path])
        ours = {Path(path).parent for path in files}
        orphans = [path for path in _orphans(files, out) if Path(path).parent in ours]
        gone = [path for path in orphans if path in _unfinished(files) or _generated(out / path)]
        for path in gone:
            (out / path).unlink()
    return stale + gone


class ForeignError(Exception):
    """Something is in the way that was not generated: someone's own work, perhaps."""

    def __init__(self, path: Path, what: str = "was not generated") -> None:
        super().__init__(path, what)
        self.path = path
        self.what = what

    def __str__(self) -> str:
        return (
            f"{self.path} is in the way, and {self.what}. Move it elsewhere, or name a folder for"
            " generated code alone with --out"
        )


class MisplacedError(Exception):
    """Generated code may not have that folder, whatever lies in it; the message names another."""


def refuse_misplaced(schema_path: Path, out: Path) -> None:
    """Refuses folders in which generated code would be mixed up with something else.

    Args:
        schema_path: The schema, of which generated code has a copy called `schema.yaml`.
        out: The folder to write, whether it is there or not.

    Raises:
        MisplacedError: The schema lies within, or Python would import what is generated in place of a module
            of its own or of an installed package.
        OSError: Links lead in a circle.
    """
    with suppress(FileNotFoundError):
        out.stat()  # which fails where links lead in a circle: what `resolve` does there differs by version
    place = out.resolve()
    if schema_path.resolve().is_relative_to(place):
        raise MisplacedError(f"{out} holds {schema_path}: name a folder for generated code alone with --out")
    nested = (place.parent / "__init__.py").exists()
    if nested:
        return
    hidden = "Python's own" if place.name in sys.stdlib_module_names else "the installed"
    if place.name in {"thrift", "pt2wire", *sys.stdlib_module_names} or _installed(place):
        raise MisplacedError(
            f"{out} would hide {hidden} `{place.name}` from all code beside it, what is generated too:"
            " name a folder of another name with --out"
        )


def importable(out: Path) -> bool:
    """Whether a statement of Python can import a folder: its name is an identifier and no keyword."""
    name = out.resolve().name
    return name.isidentifier() and not keyword.iskeyword(name)


def _installed(place: Path) -> bool:
    """Whether a package is installed under the name of a folder, other than that folder; none is imported."""
    folders = [*site.getsitepackages(), site.getusersitepackages()]
    spec = PathFinder.find_spec(place.name, folders)
    return spec is not None and str(place) not in (spec.submodule_search_locations or ())


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Makes a folder, and holds it while files in it are written."""
    out.mkdir(parents=True, exist_ok=True)
    folder = os.open(out, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks: whoever runs two at once there sees to it
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _refuse_what_is_no_file(path: str, out: Path) -> None:
    """Files are written to their own place: not through a link, which `check` finds, nor over a folder."""
    for place in (Path(path), *Path(path).parents[:-1]):
        if (out / place).is_symlink():
            raise ForeignError(out / place, "is a symbolic link, which others cannot follow")
    if (out / path).is_dir():
        raise ForeignError(out / path, "is a folder, where a file belongs")
    if (out / path).exists() and not (out / path).is_file():
        raise ForeignError(out / path, "is a pipe or device, where a file belongs")


def _refuse_other_files(files: dict[str, bytes], out: Path) -> None:
    """The first time, a folder is for generated code alone; what comes later, `check` names and leaves."""
    known = {Path(path).parts[0] for path in (*files, *_unfinished(files))} | {"__pycache__"}
    for place in sorted(out.iterdir()):
        if place.name not in known and not _generated(place):
            raise ForeignError(place)


def _holds(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


def _unfinished(files: Iterable[str]) -> set[str]:
    """Where a run that was killed may have left a file half written."""
    return {path + _UNFINISHED for path in files}


def _generated(path: Path) -> bool:
    """Whether a run wrote it."""
    # No file is a pipe, say, which nobody may ever write to.
    return path.is_file() and MARK.encode() in path.read_bytes()[:200]


def _replaceable(path: Path, out: Path) -> bool:
    """Whether nothing is lost with a file. The copy of the schema and its JSON bear no mark of their own."""
    if not path.is_file() or not path.read_bytes().strip():
        return True
    marked = out / _MARKED if path.suffix in (".yaml", ".json") else path
    return marked.is_file() and _generated(marked)


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + _UNFINISHED)
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def compare_files(files: dict[str, bytes], out: Path) -> list[Difference]:
    """What a folder holds otherwise than `files`, by path: one difference for each state."""
    differences = []
    for path, content in files.items():
        target = out / path
        if not target.is_file():
            differences.append(Difference(path, "folder" if target.is_dir() else "missing", ""))
        elif (found := target.read_bytes()) != content:
            differences.append(Difference(path, "stale", _diff(path, found, content)))
    differences += [Difference(path, "orphan", "") for path in _orphans(files, out)]
    differences += [Difference(path, "link", "") for path in _entries(out) if (out / path).is_symlink()]
    differences += [Difference(path, "empty", "") for path in _empty_folders(files, out)]
    return sorted(differences, key=lambda difference: (difference.path, difference.state))


def _orphans(files: dict[str, bytes], out: Path) -> list[str]:
    """Files that no target writes; links are no files, wherever they lead."""
    found = [path for path in _entries(out) if path not in files and not (out / path).is_symlink()]
    return [path for path in found if not _COMPILED.search(path) and not (out / path).is_dir()]


def _empty_folders(files: dict[str, bytes], out: Path) -> list[str]:
    """Folders with nothing in them, but for Python's own and those where files are missing or belong."""
    known = {*files, *(parent.as_posix() for path in files for parent in Path(path).parents)}
    found = [path for path in _entries(out) if path not in known and Path(path).name != "__pycache__"]
    folders = [path for path in found if (out / path).is_dir() and not (out / path).is_symlink()]
    return [path for path in folders if not any((out / path).iterdir())]


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
