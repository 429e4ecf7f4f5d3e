"""Types and members that went, came or moved: what no reader of the other version would take for the same."""

from __future__ import annotations

from collections.abc import Iterator

from .changes import Changes, TypePair, owned_by
from .faults import with_article
from .model import Field, Kind, members, number
from .rules import Break

#: What a member is called, and its number, by the kind of its type.
_WORD = {Kind.STRUCT: "field", Kind.UNION: "union member", Kind.ENUM: "enum value"}
_NUMBER_WORD = {Kind.STRUCT: "id", Kind.UNION: "id", Kind.ENUM: "value"}


def types_removed(changes: Changes) -> Iterator[Break]:
    for definition in changes.removed:
        yield Break(changes.place, f"{definition.kind.value} `{definition.name}` was removed", definition.own)


def types_renamed(changes: Changes) -> Iterator[Break]:
    """Types are in no file, so those of ours may give way to PyTorch's of the same name."""
    for old, new in changes.renamed:
        if old.name not in changes.after.types:
            yield Break(new.position, f"`{old.name}` was renamed to `{new.name}`", old.own)


def kinds_changed(changes: Changes) -> Iterator[Break]:
    for pair in changes.pairs:
        old, new = pair.before.kind.value, pair.after.kind.value
        if old != new:
            message = f"`{pair.after.name}` was {with_article(old)} and is {with_article(new)}"
            yield Break(pair.after.position, message, pair.before.own)


def removed(kind: Kind, changes: Changes) -> Iterator[Break]:
    for pair in changes.same_kind:
        for member in pair.removed if pair.after.kind is kind else ():
            message = (
                f"{_WORD[kind]} `{pair.after.name}.{member.name}` "
                f"({_NUMBER_WORD[kind]} {number(member)}) was removed"
            )
            yield Break(pair.after.position, message, owned_by(pair.before, member))


def renamed(kinds: tuple[Kind, ...], changes: Changes) -> Iterator[Break]:
    for pair in changes.same_kind:
        given_way = {moved.before.name for moved in pair.given_way}
        for moved in pair.renamed if pair.after.kind in kinds else ():
            if moved.before.name in given_way:
                continue
            message = f"{_WORD[pair.after.kind]} `{pair.before.name}.{moved.before.name}` was renamed"
            yield Break(moved.after.position, f"{message} to `{moved.after.name}`", moved.own)


def renumbered(kinds: tuple[Kind, ...], changes: Changes) -> Iterator[Break]:
    for pair, kept in changes.kept:
        old, new = number(kept.before), number(kept.after)
        if pair.after.kind in kinds and old != new:
            message = f"the {_NUMBER_WORD[pair.after.kind]} of `{kept.name}` was {old} and is {new}"
            yield Break(kept.after.position, message, kept.own)


def ids_reused(changes: Changes) -> Iterator[Break]:
    for pair in changes.same_kind:
        before = {number(member): member for member in members(pair.before)}
        kept = [moved.after for moved in pair.kept if number(moved.before) != number(moved.after)]
        for member in (*pair.added, *kept):
            old = before.get(number(member))
            if old is not None and member.name not in pair.after.returned:
                word = _NUMBER_WORD[pair.after.kind]
                message = (
                    f"`{pair.after.name}.{member.name}` takes the {word} {number(member)} of `{old.name}`"
                )
                yield Break(member.position, message, owned_by(pair.before, old))


def reservations_dropped(changes: Changes) -> Iterator[Break]:
    for pair in changes.pairs:
        ids = sorted(set(pair.before.reserved_ids) - set(pair.after.reserved_ids))
        names = sorted(set(pair.before.reserved_names) - set(pair.after.reserved_names))
        for item in (*ids, *names):
            message = f"`{item}` is no longer reserved in `{pair.after.name}`"
            taker = next((m for m in members(pair.after) if item in (m.name, number(m))), None)
            position = taker.position if taker else pair.after.position
            yield Break(position, message, pair.before.own)


def owners_changed(changes: Changes) -> Iterator[Break]:
    for pair in changes.pairs:
        if pair.before.own is not pair.after.own:
            yield Break(pair.after.position, _moved(pair.after.name, pair.before.own), pair.before.own)
    for pair, kept in changes.kept:
        if kept.own is not kept.after.own and pair.before.own is pair.after.own:
            yield Break(kept.after.position, _moved(kept.name, kept.own), kept.own)


def _moved(name: str, own: bool) -> str:
    sides = ("an extension", "the format's own")
    was, now = sides if own else reversed(sides)
    return f"`{name}` was {was} and is {now}"


def orders_changed(changes: Changes) -> Iterator[Break]:
    """Of structs alone: unions are made by the name of a member."""
    for pair in changes.same_kind:
        if pair.after.kind is not Kind.STRUCT:
            continue
        renamed = {moved.before.name: moved.after.name for moved in pair.renamed}
        old = [renamed.get(field.name, field.name) for field in pair.before.positional]
        new = pair.after.positional
        for place, field in enumerate(new):
            following = next((other for other in new[place:] if other.name in old), field)
            if following is not field and field.name not in old:
                message = f"`{pair.after.name}.{field.name}` is new and stands before `{following.name}`"
                yield Break(field.position, message, owned_by(pair.after, field))
        yield from _moved_behind(pair, old, new)
        named = [renamed.get(field.name, field.name) for field in pair.before.named]
        yield from _moved_behind(pair, named, pair.after.named)


def _moved_behind(pair: TypePair, old: list[str], new: tuple[Field, ...]) -> Iterator[Break]:
    """The first field that was before another one, and no longer is."""
    places = {name: place for place, name in enumerate(old)}
    known = [field for field in new if field.name in places]
    for field, before in zip(known[1:], known, strict=False):
        if places[field.name] < places[before.name]:
            message = f"`{pair.after.name}.{field.name}` moved behind fields that it stood before"
            yield Break(field.position, message, owned_by(pair.before, field))
            return
