"""Programs in files of any format, which is told by the first bytes. Needs no torch."""

from __future__ import annotations

import contextlib
import enum
import io
import os
from collections.abc import Iterator
from pathlib import PurePath

from .archive.directory import ZIP_START
from .archives import Archive, read_archive
from .errors import DeserializeError, joined
from .findings import Finding
from .generated.types import ExportedProgram
from .limits import DEFAULT_LIMITS
from .trees import from_json, from_thrift
from .validation import validate
from .validation.rules import Findings


class FileFormat(enum.StrEnum):
    """How a program is kept in a file."""

    PT2 = "pt2"
    JSON = "json"
    THRIFT = "thrift"


SUFFIXES: dict[str, FileFormat] = {
    ".pt2": FileFormat.PT2,
    ".json": FileFormat.JSON,
    ".compact": FileFormat.THRIFT,
    ".thrift": FileFormat.THRIFT,
}

_STRUCT = 12  # Thrift compact's number for the type of a field
#: What files begin with, after blanks. Thrift has no mark, but its first field is a required one.
_BEGINNINGS: dict[bytes, FileFormat] = {
    ZIP_START: FileFormat.PT2,
    b"{": FileFormat.JSON,
    bytes([ExportedProgram.FIELD_IDS["graph_module"] << 4 | _STRUCT]): FileFormat.THRIFT,
}


def format_of(path: str | os.PathLike[str]) -> FileFormat | None:
    """The format that a file's suffix stands for; None for any other suffix.

    Example:
        >>> format_of("model.compact")
        <FileFormat.THRIFT: 'thrift'>
    """
    return SUFFIXES.get(PurePath(path).suffix.lower())


def read_programs(path: str, name: str | None = None) -> Archive:
    """Reads programs of any format; from JSON and Thrift files, an archive of one program without weights.

    Args:
        path: The file.
        name: The one program to read of an archive; by default all. The program of a JSON or Thrift file has
            no name, and gets this one, or "model".

    Raises:
        OSError: The file cannot be read.
        DeserializeError: It is damaged, is no program, or has none of that name.

    Example:
        >>> import os, tempfile, pt2wire, torch
        >>> path = os.path.join(tempfile.mkdtemp(), "relu")
        >>> tree = pt2wire.to_tree(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)))
        >>> with open(path, "wb") as file:
        ...     size = file.write(pt2wire.to_json(tree))
        >>> read_programs(path, "relu").programs == {"relu": tree}
        True
    """
    with _opened(path) as (file, format):
        if format is FileFormat.PT2:
            return read_archive(file, None if name is None else [name], None, True, DEFAULT_LIMITS)
        dropped: list[str] = []
        tree = _read_tree(file, format, path, dropped)
    name = name or "model"
    archive = Archive(programs={name: tree}, weights={name: {}}, constants={name: {}}, paths={name: path})
    if dropped:
        archive.dropped[name] = dropped
    return archive


def validate_programs(path: str, name: str | None = None) -> list[Finding]:
    """Checks programs of any format, and runs nothing of them.

    Args:
        path: The file.
        name: As for `read_programs`.

    Returns:
        What is wrong, as `pt2wire.validate` says it.

    Raises:
        OSError: The file cannot be read.
    """
    with _opened(path) as (file, format):
        if format is FileFormat.PT2:
            return validate(file, name=name)
        try:
            tree = _read_tree(file, format, path, [])
        except DeserializeError as error:
            findings = Findings()
            findings.add("file", error.path or path, error.message, error.hint)
            return findings.found
    return validate(tree)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[tuple[io.BufferedReader, FileFormat]]:
    """A file, which may be a pipe and so is opened once, and the format that it has by its first bytes."""
    with open(path, "rb") as file:
        begins = file.peek().lstrip()
        marked = (format for mark, format in _BEGINNINGS.items() if begins.startswith(mark))
        # What begins like none of them is refused as what it claims to be.
        yield file, next(marked, format_of(path) or FileFormat.PT2)


def _read_tree(file: io.BufferedReader, format: FileFormat, path: str, dropped: list[str]) -> ExportedProgram:
    decode = from_json if format is FileFormat.JSON else from_thrift
    content = file.read(DEFAULT_LIMITS.document_bytes + 1)  # some files have no end, such as /dev/zero
    try:
        return decode(content, unknown=dropped)
    except DeserializeError as error:
        error.path = joined(path, error.path or "")
        raise
