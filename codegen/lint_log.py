"""Lint rules on the log: that it is in order, and tells what `since` tells."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .lint_names import items
from .model import Release, Schema, Version
from .rules import Report

#: What the log notes of a version that PyTorch raised and changed no type; `compare-torch` writes it.
NO_ADDITION = "No addition."
#: What it notes of a release that goes on with a version.
_NO_CHANGE = "No change."
#: Which release writes a version that PyTorch had only between two of them.
NO_RELEASE = "none"
_ADDS = re.compile(r"Adds (\w+(?:\.\w+)?(?:, \w+(?:\.\w+)?)*)\.")


def ordered(schema: Schema) -> Iterator[Report]:
    """There is a line for `version`, none for a later one, and one for each release, in order."""
    if all(line.version != schema.version for line in schema.log):
        message = f"the log has no line for {schema.version}"
        yield Report(schema.places["version"], message, "Add one under `log`")
    releases: dict[str, Release] = {}
    for line in schema.log:
        if line.version > schema.version:
            message = f"the log has {line.version}, but `version` is {schema.version}"
            yield Report(line.position, message, "Raise `version`, or remove the line")
        first = releases.setdefault(line.torch, line)
        if first is not line and line.torch != NO_RELEASE:
            message = f"the log says twice what torch {line.torch} writes: {first.version} and {line.version}"
            yield Report(line.position, message, "A release writes one version; remove one of the lines")
    for before, line in zip(schema.log, schema.log[1:], strict=False):
        if line.version < before.version:
            message = f"the log has {line.version} after {before.version}"
            yield Report(line.position, message, "Order its lines by version")


def truthful(schema: Schema) -> Iterator[Report]:
    """A line that begins a version says what came with it, if it says that nothing came, or names something.

    Versions between two lines came to be known with the second. What was there at first needs no names.
    """
    for previous, line in zip(schema.log, schema.log[1:], strict=False):
        if line.version <= previous.version:
            continue
        came = _came(schema, previous.version, line.version)
        if line.note in (NO_ADDITION, _NO_CHANGE):
            if came:
                message = f"the log notes `{line.note}` of {line.version}, which brought `{came[0]}`"
                yield Report(line.position, message, f"Write `Adds {', '.join(came)}.`")
        elif named := _ADDS.fullmatch(line.note):
            yield from _compared(schema, line, named[1].split(", "), came)


def _came(schema: Schema, before: Version, until: Version) -> list[str]:
    """What has come after a version, until another; members that came with their type go without saying."""
    came = [name for name, item in items(schema) if item.since is not None and before < item.since <= until]
    return [name for name in came if "." not in name or name.partition(".")[0] not in came]


def _compared(schema: Schema, line: Release, named: list[str], came: list[str]) -> Iterator[Report]:
    untold = [name for name in came if name not in named]
    if untold:
        message = f"`{untold[0]}` came with {line.version}, and the log does not say so"
        yield Report(line.position, message, f"Write `Adds {', '.join(came)}.`")
    known = dict(items(schema))
    for name in named:
        owner, _, member = name.partition(".")
        if name in came or owner not in schema.types:
            continue  # types that have gone leave no trace
        if name in known:
            since = known[name].since
            was = f"is there since {since}" if since is not None else "extends the format"
            message = f"the log says that {line.version} added `{name}`, which {was}"
            yield Report(line.position, message, "Correct one of the two")
        elif member not in schema.types[owner].reserved_names:
            message = f"the log says that {line.version} added `{name}`, which is not there"
            yield Report(line.position, message, "Correct the note, or reserve the name that has gone")


def versions_between(before: Version, after: Version) -> Iterator[Version]:
    """The versions that lie between two, of which each major one begins with minor 0."""
    major, minor = before.major, before.minor + 1
    while major < after.major:
        major, minor = major + 1, 0
        if (major, minor) != (after.major, after.minor):
            yield Version(major, minor)
    yield from (
        Version(major, number) for number in range(max(minor, 1), after.minor) if major == after.major
    )
