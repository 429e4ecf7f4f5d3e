"""Which versions of programs are read, and what becomes of the fields that only newer ones know."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from .errors import DeserializeError, SerializeError, joined
from .generated.own_fields import first_own_field
from .generated.types import (
    OLDEST_VERSION,
    REVISION,
    SCHEMA_VERSION,
    ExportedProgram,
    SchemaVersion,
    Writer,
)
from .version import __version__


def check_version(version: SchemaVersion, path: str) -> None:
    """Refuse another major version, and one older than the oldest that this package reads."""
    number = (version.major, version.minor)
    if version.major != SCHEMA_VERSION[0] or number < OLDEST_VERSION:
        raise DeserializeError(
            f"expected format {_text(OLDEST_VERSION)} or a later {SCHEMA_VERSION[0]}, found {_text(number)}",
            path=joined(path, "schema_version"),
            hint="Upgrade pt2wire"
            if number > SCHEMA_VERSION
            else "Load it with the PyTorch that wrote it, and save it with a newer one",
        )


def check_opset(tree: ExportedProgram, expected: Mapping[str, int]) -> None:
    """Refuse a program that was written for another version of some operators than the caller expects."""
    for namespace, version in expected.items():
        found = tree.opset_version.get(namespace, version)
        if found != version:
            raise DeserializeError(
                f"expected version {version} of the operators {namespace!r}, found {found}",
                path=f"opset_version[{namespace!r}]",
            )


def check_dropped(dropped: list[str], version: SchemaVersion, writer: Writer | None, path: str) -> None:
    """Refuse unknown fields unless the file is newer than this package."""
    if not dropped or _is_newer(version) or (writer is not None and writer.revision > REVISION):
        return
    raise DeserializeError(
        f"expected a field of format {version.major}.{version.minor}, found one that it does not have",
        path=joined(path, dropped[0]),
        hint=(
            "The file is damaged, its version number is wrong, or a program with fields of a newer pt2wire "
            "does not name its `writer`, as `write` would"
        ),
    )


def dropped_message(path: str, dropped: list[str], tree: ExportedProgram) -> str:
    """What to say about fields that only a newer version, or a newer revision of pt2wire's own, knows."""
    version = (tree.schema_version.major, tree.schema_version.minor)
    if version == SCHEMA_VERSION and tree.writer is not None:
        newer = f"was written by {tree.writer.name} with revision {tree.writer.revision}, this is {REVISION}"
    else:
        newer = f"has format {_text(version)}, this is {_text(SCHEMA_VERSION)}"
    lost = "1 unknown field was" if len(dropped) == 1 else f"{len(dropped)} unknown fields were"
    return f"{path} {newer}: {lost} dropped, the first is {dropped[0]}"


def as_ours(tree: ExportedProgram, dropped: list[str], drop_unknown: bool, path: str) -> ExportedProgram:
    """A program that was read without fields of a newer version, as one of ours: it claims to be no more.

    Args:
        tree: The program; it is left as it is. What it says of an older version stays.
        dropped: Paths of the fields; a program that lost none is as it should be.
        drop_unknown: Whether the caller knows that they are lost.
        path: Where the program is, in messages.

    Raises:
        SerializeError: Fields would be lost, and the caller does not know.
    """
    if not dropped:
        return tree
    if not drop_unknown:
        raise SerializeError(
            f"expected fields that this version knows, found {len(dropped)} that would be lost, "
            f"the first is {dropped[0]}",
            path=path,
            hint="Pass drop_unknown=True to write the program without them, or upgrade pt2wire",
        )
    version, writer = tree.schema_version, tree.writer
    if _is_newer(version):
        version = SchemaVersion(*SCHEMA_VERSION)
    if writer is not None and writer.revision > REVISION:
        writer = dataclasses.replace(writer, revision=REVISION)
    return dataclasses.replace(tree, schema_version=version, writer=writer)


def own_field(tree: ExportedProgram) -> str | None:
    """The path of the first field of pt2wire's own that a program has besides `writer`; None without any."""
    return first_own_field(tree if tree.writer is None else dataclasses.replace(tree, writer=None))


def with_writer(tree: ExportedProgram) -> ExportedProgram:
    """A program that says who wrote its fields of pt2wire's own, so that older versions know them as newer.

    Args:
        tree: The program; it is left as it is. What it says of its writer stays, but for a revision that is
            older than the fields may be.
    """
    writer = tree.writer
    if (writer is not None and writer.revision >= REVISION) or own_field(tree) is None:
        return tree
    if writer is None:
        writer = Writer(name="pt2wire", version=__version__, revision=REVISION)
    return dataclasses.replace(tree, writer=dataclasses.replace(writer, revision=REVISION))


def newer_than_ours(version: SchemaVersion) -> str | None:
    """What to do about a program whose version is newer than ours; None about any other.

    Example:
        >>> newer_than_ours(SchemaVersion(*SCHEMA_VERSION))
    """
    if not _is_newer(version):
        return None
    found = _text((version.major, version.minor))
    return f"The file has format {found}, this is {_text(SCHEMA_VERSION)}: upgrade pt2wire"


def _is_newer(version: SchemaVersion) -> bool:
    return (version.major, version.minor) > SCHEMA_VERSION


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
