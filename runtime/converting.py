"""One program in other clothes: `.pt2` archive, PyTorch's JSON, Thrift compact. Needs no torch."""

from __future__ import annotations

from .archive import records
from .archive.target import open_target
from .archives import Archive, write
from .arguments import check_flags
from .errors import SerializeError
from .format_versions import as_ours, with_writer
from .generated import types
from .program_files import SUFFIXES, FileFormat, format_of, read_programs
from .trees import to_json, to_thrift
from .validation.signatures import weight_names


def convert(
    source: str,
    target: str,
    *,
    to_format: FileFormat | None = None,
    name: str | None = None,
    drop_unknown: bool = False,
    allow_unsound: bool = False,
) -> list[str]:
    """Converts a file.

    Args:
        source: A `.pt2` archive, a program as PyTorch's JSON, or one as Thrift compact.
        target: The file to write; it is replaced as a whole.
        to_format: The format of the target where its suffix does not tell.
        name: Which program of an archive with several; what to call that of a JSON or Thrift file.
        drop_unknown: Convert a program of a newer version although fields that this version does not know
            are lost. It becomes a program of this version.
        allow_unsound: As for `write`, which writes archives.

    Returns:
        What the target does not hold of the source, one sentence each.

    Raises:
        OSError: A file cannot be read or written.
        DeserializeError: The source is damaged, or has no such program.
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
    check_flags(drop_unknown=drop_unknown, allow_unsound=allow_unsound)
    to_format = to_format or format_of(target)
    if to_format is None:
        raise SerializeError(
            f"expected a file that ends in {', '.join(SUFFIXES)}",
            path=target,
            hint="Name the format: to_format=pt2, json or thrift",
        )
    archive = read_programs(source, name)
    if to_format is FileFormat.PT2:
        for program, tree in archive.programs.items():
            _check_payloads(archive, program, tree, source)
        write(archive, target, drop_unknown=drop_unknown, allow_unsound=allow_unsound)
        return []
    if len(archive.programs) > 1:
        stored = ", ".join(map(repr, archive.programs))
        raise SerializeError(
            f"expected one program, found {stored}", path=source, hint="Pick one with name=NAME"
        )
    ((program, tree),) = archive.programs.items()
    tree = with_writer(as_ours(tree, archive.dropped.get(program, []), drop_unknown, source))
    content = to_json(tree) if to_format is FileFormat.JSON else to_thrift(tree)
    with open_target(target) as file:
        file.write(content)
    return _left_out(archive, program)


def _check_payloads(archive: Archive, name: str, tree: types.ExportedProgram, source: str) -> None:
    stored = archive.weights.get(name, {}).keys() | archive.constants.get(name, {}).keys()
    needed = [fqn for _, _, fqn in weight_names(tree.graph_module.signature)]
    missing = [fqn for fqn in needed if fqn not in stored]
    if missing:
        raise SerializeError(
            f"expected the program's weights for an archive, found {len(missing)} of {len(needed)} missing, "
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
