"""One program in other clothes: `.pt2` archive, PyTorch's JSON, Thrift compact. Needs no torch."""

from __future__ import annotations

import enum
import os
from pathlib import PurePath

from .archive import records
from .archive.target import open_target
from .archives import Archive, read, write
from .errors import DeserializeError, SerializeError
from .generated import types
from .trees import from_json, from_thrift, joined, lowered, to_json, to_thrift
from .validation.signatures import weight_names


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


def format_of(path: str | os.PathLike[str]) -> FileFormat | None:
    """The format that a file's suffix stands for; None for any other suffix.

    Example:
        >>> format_of("model.compact")
        <FileFormat.THRIFT: 'thrift'>
    """
    return SUFFIXES.get(PurePath(path).suffix.lower())


def read_programs(path: str, format: FileFormat | None = None) -> Archive:
    """Reads programs of any format; from JSON and Thrift files, an archive of one program without weights.

    Args:
        path: The file.
        format: Its format; by default what its suffix says, and a `.pt2` archive for any other suffix.

    Raises:
        OSError: The file cannot be read.
        DeserializeError: It is damaged, or of another format.
    """
    format = format or format_of(path) or FileFormat.PT2
    if format is FileFormat.PT2:
        return read(path)
    with open(path, "rb") as file:
        content = file.read()
    decode = from_json if format is FileFormat.JSON else from_thrift
    dropped: list[str] = []
    try:
        tree = decode(content, unknown=dropped)
    except DeserializeError as error:
        error.path = joined(path, error.path or "")
        raise
    name = "model"
    archive = Archive(programs={name: tree}, weights={name: {}}, constants={name: {}}, paths={name: path})
    if dropped:
        archive.dropped[name] = dropped
    return archive


def convert(
    source: str,
    target: str,
    *,
    from_format: FileFormat | None = None,
    to_format: FileFormat | None = None,
    name: str | None = None,
    drop_unknown: bool = False,
) -> list[str]:
    """Converts a file.

    Args:
        source: A `.pt2` archive, a program as PyTorch's JSON, or one as Thrift compact.
        target: The file to write; it is replaced as a whole.
        from_format: The format of the source where its suffix does not tell.
        to_format: The format of the target where its suffix does not tell.
        name: Which program of an archive with several.
        drop_unknown: Convert a program of a newer version although fields that this version does not know
            are lost. It becomes a program of this version.

    Returns:
        What the target does not hold of the source, one sentence each.

    Raises:
        OSError: A file cannot be read or written.
        DeserializeError: The source is damaged.
        SerializeError: The target's format cannot hold the source; or it is an archive, and a program is not
            sound.

    Example:
        >>> import os, tempfile, pt2wire, torch
        >>> folder = tempfile.mkdtemp()
        >>> model, program = os.path.join(folder, "m.pt2"), os.path.join(folder, "m.json")
        >>> pt2wire.save(torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),)), model)
        >>> convert(model, program)
        ['2 weights', 'the example inputs']
    """
    to_format = to_format or format_of(target)
    if to_format is None:
        raise SerializeError(
            f"expected a file that ends in {', '.join(SUFFIXES)}",
            path=target,
            hint="Name the format: to_format=pt2, json or thrift",
        )
    archive = read_programs(source, from_format)
    if name is not None or to_format is not FileFormat.PT2:
        archive = only(archive, name, source)
    if to_format is FileFormat.PT2:
        for program, tree in archive.programs.items():
            _check_payloads(archive, program, tree, source)
        write(archive, target, drop_unknown=drop_unknown)
        return []
    ((program, tree),) = archive.programs.items()
    if archive.dropped and not drop_unknown:
        dropped = archive.dropped[program]
        raise SerializeError(
            f"a newer version wrote {len(dropped)} fields that would be lost, the first is {dropped[0]}",
            path=source,
            hint="Pass drop_unknown=True to convert without them, or upgrade pt2wire",
        )
    if archive.dropped:
        tree = lowered(tree)
    content = to_json(tree) if to_format is FileFormat.JSON else to_thrift(tree)
    with open_target(target) as file:
        file.write(content)
    return _left_out(archive, program)


def only(archive: Archive, name: str | None, source: str) -> Archive:
    """Leaves one program in an archive.

    Args:
        archive: What was read; it is changed.
        name: Which program; None for the only one.
        source: What the archive is called in messages.

    Raises:
        SerializeError: There is no such program, or none is named and there are several.
    """
    stored = ", ".join(map(repr, archive.programs))
    if name is None and len(archive.programs) > 1:
        raise SerializeError(
            f"expected one program, found {stored}", path=source, hint="Pick one with name=NAME"
        )
    if name is not None and name not in archive.programs:
        raise SerializeError(f"expected a program {name!r}, found {stored}", path=source)
    for other in [other for other in archive.programs if name is not None and other != name]:
        for programs in (archive.programs, archive.weights, archive.constants, archive.dropped):
            programs.pop(other, None)
    return archive


def _check_payloads(archive: Archive, name: str, tree: types.ExportedProgram, source: str) -> None:
    stored = archive.weights.get(name, {}).keys() | archive.constants.get(name, {}).keys()
    needed = [fqn for _, _, fqn in weight_names(tree.graph_module.signature)]
    missing = [fqn for fqn in needed if fqn not in stored]
    if missing:
        raise SerializeError(
            f"an archive needs the program's weights, and {len(missing)} of {len(needed)} are not there, "
            f"the first is {missing[0]!r}",
            path=source,
            hint="JSON and Thrift files hold no weights: convert the .pt2 archive that the program came from",
        )


def _left_out(archive: Archive, name: str) -> list[str]:
    counts = {
        "weight": len(archive.weights.get(name, {})),
        "constant": len(archive.constants.get(name, {})),
        "extra file": len(archive.extra_files),
    }
    left_out = [f"{count} {what}{'s' * (count > 1)}" for what, count in counts.items() if count]
    if archive.optional_record(records.sample_inputs(name)):
        left_out.append("the example inputs")
    return left_out
