"""Whether version, revision and history fit a change: they move exactly as far as what changed demands."""

from __future__ import annotations

from collections.abc import Iterator

from .changes import additions, compare
from .faults import Level
from .incompatible import breaks
from .lint_log import NO_ADDITION, versions_between
from .model import FIRST_OWN_ID, Kind, Member, Schema, TypeDef, Version, members, number
from .rules import BreakingRule, Report

#: How the log's line begins for a version that changed what something means, and perhaps no type.
_CHANGES = "Changes "


def _demanded(before: Schema, after: Schema) -> tuple[Version, str] | None:
    """The least version that a change of the format itself demands, and why; None for no change."""
    breaking = breaks(before, after, own=False)
    if breaking:
        return Version(before.version.major + 1, 0), f"breaking changes of the format: {breaking}"
    added = [name for name, item in additions(compare(before, after)) if item.since is not None]
    widened = _widened(before, after, own=False)
    if added or widened:
        minor = Version(before.version.major, before.version.minor + 1)
        return minor, f"additions to the format: {_listed([*added, *widened])}"
    return None


def _version_low(before: Schema, after: Schema) -> Iterator[Report]:
    demand = _demanded(before, after)
    if demand is not None and before.version <= after.version < demand[0]:
        least, reason = demand
        moved = " as before" if after.version == before.version else f", after {before.version}"
        message = f"`version` is {after.version}{moved}, which is too low for {reason}"
        yield Report(after.places["version"], message, f'Set `version` to "{least}" or undo them')


def _version_idle(before: Schema, after: Schema) -> Iterator[Report]:
    if after.version <= before.version:
        return
    demand = _demanded(before, after)
    if after.version.major > before.version.major and _broken_elsewhere(before, after):
        return
    if demand is None:
        if after.version in _raised_alone(after):
            return
        message = f"`version` was {before.version} and is {after.version}, but no change of the format came"
        told = f"note `{NO_ADDITION}` in `log`"
        if after.version.major > before.version.major:
            told += f", or one that begins with `{_CHANGES.strip()}` where a meaning changed"
        hint = f'Set it back to "{before.version}", or, where it rose alone, {told}'
        yield Report(after.places["version"], message, hint)
    elif after.version.major > before.version.major and demand[0].major == before.version.major:
        message = (
            f"the major version was {before.version.major} and is {after.version.major}, but no change breaks"
        )
        hint = (
            f'Set `version` to "{demand[0]}", as a new major version shuts out all files there are; or, '
            f"where a meaning changed, let the note in `log` begin with `{_CHANGES.strip()}`"
        )
        yield Report(after.places["version"], message, hint)


def _broken_elsewhere(before: Schema, after: Schema) -> bool:
    """Whether tree specs broke, or, as the log tells, a meaning or what came between: no type shows it."""
    if after.treespec_version != before.treespec_version:
        return True
    since = [line for line in after.log if before.version < line.version]
    return any(
        line.note.startswith(_CHANGES) or (line.version < after.version and line.note != NO_ADDITION)
        for line in since
    )


def _raised_alone(schema: Schema) -> set[Version]:
    """Versions that PyTorch has raised without changing a type, as the log says."""
    return {line.version for line in schema.log if line.note == NO_ADDITION}


def _version_lowered(before: Schema, after: Schema) -> Iterator[Report]:
    if after.version < before.version:
        message = f"`version` was {before.version} and is {after.version}"
        yield Report(after.places["version"], message, "Versions only rise; set it back")


def _version_skips(before: Schema, after: Schema) -> Iterator[Report]:
    """PyTorch may go on by several versions between two of its releases; then the log has them all."""
    came = {item.since for _, item in additions(compare(before, after)) if item.since is not None}
    if _widened(before, after, own=False):
        came.add(after.version)  # nothing says when
    told = {line.version for line in after.log} | came
    skipped = [version for version in versions_between(before.version, after.version) if version not in told]
    same_major = after.version.major == before.version.major
    if same_major and came and before.version < min(came) and max(came) < after.version:
        # The log has a line for `version` itself in any case, whatever came with it.
        skipped += {after.version} - _raised_alone(after)
    if skipped:
        first = skipped[0]
        right = max(came, default=first) if same_major and max(came, default=first) < first else first
        message = f"`version` was {before.version} and is {after.version}, and nothing tells of {first}"
        hint = f'Set it to "{right}", or, where the format had such a version, add its line to `log`'
        if first == after.version:
            message = f"`version` was {before.version} and is {first}, but nothing came with {first}"
            hint = f'Set it to "{right}", or, where it rose alone, note `{NO_ADDITION}` in `log`'
        yield Report(after.places["version"], message, hint)


def _oldest_lowered(before: Schema, after: Schema) -> Iterator[Report]:
    if after.oldest_version < before.oldest_version:
        message = f"`oldest_version` was {before.oldest_version} and is {after.oldest_version}"
        hint = "Nothing shows that files of the versions between can be read; set it back"
        yield Report(after.places["oldest_version"], message, hint)


def _oldest_raised(before: Schema, after: Schema) -> Iterator[Report]:
    if after.oldest_version > before.oldest_version and after.version.major == before.version.major:
        message = f"`oldest_version` was {before.oldest_version} and is {after.oldest_version}"
        hint = "Files of the versions between are no longer read; set it back"
        yield Report(after.places["oldest_version"], message, hint)


def _treespec_changed(before: Schema, after: Schema) -> Iterator[Report]:
    same_major = after.version.major == before.version.major
    if after.treespec_version != before.treespec_version and same_major:
        message = f"`treespec_version` was {before.treespec_version} and is {after.treespec_version}"
        hint = "Older readers do not know the new one; it moves with a major version"
        yield Report(after.places["treespec_version"], message, hint)


def _revision_low(before: Schema, after: Schema) -> Iterator[Report]:
    changed = _own_changes(before, after)
    if changed and after.revision == before.revision:
        message = f"`revision` is {after.revision} as before, in spite of new extensions: {_listed(changed)}"
        yield Report(after.places["revision"], message, f"Set it to {before.revision + 1}")


def _revision_idle(before: Schema, after: Schema) -> Iterator[Report]:
    changed = _own_changes(before, after) or breaks(before, after, own=True) or _came_and_went(before, after)
    if after.revision > before.revision and not changed:
        message = f"`revision` was {before.revision} and is {after.revision}, but no extension changed"
        yield Report(after.places["revision"], message, f"Set it back to {before.revision}")


def _revision_skips(before: Schema, after: Schema) -> Iterator[Report]:
    own = {item.since_revision for _, item in additions(compare(before, after))}
    came = {number for number in own if number is not None and number > before.revision}
    # Nothing says with which revision what changed otherwise came.
    otherwise = breaks(before, after, own=True) + len(_given_way(before, after))
    otherwise += len(_widened(before, after, own=True))
    if came:  # what came may have given way to PyTorch since, with a version that added something
        otherwise += len(
            {line.version for line in after.log if line.version > before.version} - _raised_alone(after)
        )
    last = after.revision + 1 if came or otherwise else after.revision
    untold = [number for number in range(before.revision + 1, last) if number not in came]
    skipped = untold[0] if len(untold) > otherwise else None
    if skipped is not None:
        right = skipped if any(number > skipped for number in came) else skipped - 1
        message = f"`revision` was {before.revision} and is {after.revision}, but nothing came with {skipped}"
        yield Report(after.places["revision"], message, f"Set it to {right}: revisions count one by one")


def _revision_lowered(before: Schema, after: Schema) -> Iterator[Report]:
    if after.revision < before.revision:
        message = f"`revision` was {before.revision} and is {after.revision}"
        yield Report(after.places["revision"], message, "Revisions only rise; set it back")


def _came_and_went(before: Schema, after: Schema) -> bool:
    """Whether numbers are reserved of what extended the format between the two alone."""
    for pair in compare(before, after).pairs:
        known = {number(member) for member in members(pair.before)} | set(pair.before.reserved_ids)
        new = set(pair.after.reserved_ids) - known
        if any(pair.after.own or item >= FIRST_OWN_ID for item in new):
            return True
    return False


def _own_changes(before: Schema, after: Schema) -> list[str]:
    """What a revision announces: what older readers do not know of extensions, and breaks nothing."""
    added = [name for name, item in additions(compare(before, after)) if item.own]
    return [*added, *_given_way(before, after), *_widened(before, after, own=True)]


def _given_way(before: Schema, after: Schema) -> list[str]:
    """Fields of extensions that JSON knows by a new name, as the format has adopted the old one."""
    pairs = compare(before, after).same_kind
    return [moved.name for pair in pairs for moved in pair.given_way]


def _widened(before: Schema, after: Schema, *, own: bool) -> list[str]:
    """Fields that JSON may hold longer integers in, which older readers refuse by path, as a new member."""
    return [kept.name for kept in compare(before, after).widened if kept.own is own]


def _backdated(before: Schema, after: Schema) -> Iterator[Report]:
    for name, item in additions(compare(before, after)):
        if item.since is not None and item.since <= before.version:
            message = f"`{name}` is new, but `since` {item.since}, and {before.version} did not have it"
            yield Report(item.position, message, f'Give it `since: "{_next(before, after)}"`')
        if item.since_revision is not None and item.since_revision <= before.revision:
            message = f"`{name}` is new, but since revision {item.since_revision}, which did not have it"
            revision = max(after.revision, before.revision + 1)
            yield Report(item.position, message, f"Give it `since_revision: {revision}`")


def _next(before: Schema, after: Schema) -> Version:
    return max(after.version, Version(before.version.major, before.version.minor + 1))


def _redated(before: Schema, after: Schema) -> Iterator[Report]:
    for pair in compare(before, after).pairs:
        yield from _redated_item(pair.after.name, pair.before, pair.after)
        for member in (*pair.kept, *pair.renamed):
            inherited = _date(member.before) == _date(pair.before) and _date(member.after) == _date(
                pair.after
            )
            if not inherited:
                yield from _redated_item(member.name, member.before, member.after)


def _redated_item(name: str, old: TypeDef | Member, new: TypeDef | Member) -> Iterator[Report]:
    """A change from `since` to `since_revision` or back is one of owner, and reported as such."""
    if _date(old) != _date(new) and (old.since is None) is (new.since is None):
        was, now = old.since or old.since_revision, new.since or new.since_revision
        message = f"`{name}` was there since {was}, and now since {now}"
        yield Report(new.position, message, "History does not change; set it back")


def _date(item: TypeDef | Member) -> tuple[Version | None, int | None]:
    return item.since, item.since_revision


def _unreserved(before: Schema, after: Schema) -> Iterator[Report]:
    for pair in compare(before, after).pairs:
        ids = {number(member) for member in members(pair.after)} | set(pair.after.reserved_ids)
        names = {member.name for member in members(pair.after)} | set(pair.after.reserved_names)
        # Within a major version, a new id or name is undone, not reserved.
        moved = (*pair.kept, *pair.renamed) if after.version.major > before.version.major else ()
        for member in (*pair.removed, *(one.before for one in moved)):
            word = "value" if pair.after.kind is Kind.ENUM else "id"
            lost = {
                f"{word} {number(member)}": f"ids: [{number(member)}]" if number(member) not in ids else "",
                "name": f"names: [{member.name}]" if member.name not in names else "",
            }
            missing = {what: entry for what, entry in lost.items() if entry}
            if missing:
                what = "" if member in pair.removed else f"the {' and the '.join(missing)} of "
                message = f"{what}`{pair.after.name}.{member.name}` has gone and is not reserved"
                entries = ", ".join(missing.values())
                hint = f"Add `reserved: {{{entries}}}`, so that it cannot come back as something else"
                yield Report(pair.after.position, message, hint)


def _log_rewritten(before: Schema, after: Schema) -> Iterator[Report]:
    kept = {(line.version, line.torch): line for line in after.log}
    for line in before.log:
        now = kept.get((line.version, line.torch))
        if now is not None and (line.note == NO_ADDITION) is not (now.note == NO_ADDITION):
            message = f"the log noted `{line.note}` of {line.version}, and now `{now.note}`"
            yield Report(now.position, message, "What a release brought does not change; put it back")
        if now is None:
            message = f"the log has lost its line for {line.version}, written by torch {line.torch}"
            yield Report(after.places["log"], message, "Releases do not go away; put it back")


def _namespace_changed(before: Schema, after: Schema) -> Iterator[Report]:
    if after.name != before.name:
        message = f"`name` was {before.name} and is {after.name}"
        yield Report(after.places["name"], message, "Namespaces in schema.thrift follow it; set it back")


def _listed(names: list[str]) -> str:
    shown = [f"`{name}`" for name in names[:3]]
    return ", ".join(shown) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


RULES = (
    BreakingRule(
        "version-low",
        Level.WIRE,
        "readers can tell a file of a newer version from a damaged one",
        'an added field while `version` stays "8.20", a removed one while it becomes "8.21"',
        _version_low,
    ),
    BreakingRule(
        "version-idle",
        Level.STYLE,
        "no file is taken for newer than it is",
        '`version: "8.20"` became "8.21", and nothing of PyTorch\'s changed',
        _version_idle,
    ),
    BreakingRule(
        "version-lowered",
        Level.WIRE,
        "a number never stands for two versions",
        '`version: "8.20"` became "8.19"',
        _version_lowered,
    ),
    BreakingRule(
        "version-skips",
        Level.STYLE,
        "versions count one by one, or the log tells which ones PyTorch has skipped",
        '`version: "8.20"` became "8.27", and the log has no line for "8.21"',
        _version_skips,
    ),
    BreakingRule(
        "oldest-lowered",
        Level.WIRE,
        "what is said to be read has been read by some release",
        '`oldest_version: "8.2"` became "8.1"',
        _oldest_lowered,
    ),
    BreakingRule(
        "oldest-raised",
        Level.WIRE,
        "files that could be read still can",
        '`oldest_version: "8.2"` became "8.7" within major version 8',
        _oldest_raised,
    ),
    BreakingRule(
        "treespec-changed",
        Level.JSON,
        "the trees of inputs and outputs, JSON within the file, can be read",
        "`treespec_version: 1` became 2 within a major version",
        _treespec_changed,
    ),
    BreakingRule(
        "revision-low",
        Level.WIRE,
        "readers can tell a field of a newer pt2wire from damage",
        "a field with `since_revision` was added while `revision` stays 1",
        _revision_low,
    ),
    BreakingRule(
        "revision-idle",
        Level.STYLE,
        "no file is taken for newer than it is",
        "`revision: 1` became 2, and nothing of ours changed",
        _revision_idle,
    ),
    BreakingRule(
        "revision-skips",
        Level.STYLE,
        "revisions count one by one",
        "`revision: 1` became 9, and nothing has `since_revision: 2`",
        _revision_skips,
    ),
    BreakingRule(
        "revision-lowered",
        Level.WIRE,
        "a number never stands for two revisions",
        "`revision: 2` became 1",
        _revision_lowered,
    ),
    BreakingRule(
        "since-backdated",
        Level.WIRE,
        "`since` tells which readers know something",
        "a new field whose `since` was forgotten, and so is its type's",
        _backdated,
    ),
    BreakingRule(
        "since-rewritten",
        Level.STYLE,
        "`since` tells which readers know something",
        '`since: "8.7"` became `since: "8.8"`',
        _redated,
    ),
    BreakingRule(
        "removed-unreserved",
        Level.WIRE,
        "ids and names of what has gone do not come back, in no major version",
        "`index` (id 20) has gone, without `reserved: {ids: [20], names: [index]}`",
        _unreserved,
    ),
    BreakingRule(
        "log-rewritten",
        Level.STYLE,
        "the log tells what each release wrote",
        "the line of torch 2.12.0 has gone, or `No addition.` of a version became another note",
        _log_rewritten,
    ),
    BreakingRule(
        "namespace-changed",
        Level.SOURCE,
        "code compiled from schema.thrift finds its namespaces",
        "`name: pt2wire` became `name: pt2`",
        _namespace_changed,
    ),
)
