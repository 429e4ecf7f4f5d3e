"""Members that stayed or came, and say something else than before: a type, a default, a meaning."""

from __future__ import annotations

from collections.abc import Iterator

from .changes import Changes, MemberPair, came_later, owned_by
from .model import EnumValue, Field, Kind, MapType, Member, is_wide
from .rules import Break


def types_changed(changes: Changes) -> Iterator[Break]:
    for _, kept in changes.kept:
        if isinstance(kept.before, Field) and isinstance(kept.after, Field):
            old, new = changes.spelled_before(kept.before.type), str(kept.after.type)
            if old != new:
                was = old if str(kept.before.type) == new else kept.before.type  # its name means another one
                message = f"the type of `{kept.name}` was {was} and is {new}"
                yield Break(kept.after.position, message, kept.own)
            elif is_wide(kept.before.type) and not is_wide(kept.after.type):
                message = f"the type of `{kept.name}` was integer and is i64: JSON may hold more"
                yield Break(kept.after.position, message, kept.own)


def required_added(changes: Changes) -> Iterator[Break]:
    later = [(pair.after, member) for pair in changes.same_kind for member in pair.added]
    # There may be files of the version that a new type came with.
    later += [(definition, member) for definition in changes.added for member in came_later(definition)]
    for owner, member in later:
        if owner.kind is Kind.STRUCT and isinstance(member, Field) and member.demanded:
            message = f"`{owner.name}.{member.name}` is new and has no default: older files lack it"
            yield Break(member.position, message, owned_by(owner, member))


def made_required(changes: Changes) -> Iterator[Break]:
    for old, new, kept in _kept_fields(changes):
        unset = old.optional and not new.optional
        if unset or (old.default is not None and new.default is None and not new.optional):
            was = "`optional`" if unset else "with a default"
            message = f"`{kept.name}` was {was} and no longer is: older files may lack it"
            yield Break(new.position, message, kept.own)


def made_optional(changes: Changes) -> Iterator[Break]:
    for old, new, kept in _kept_fields(changes):
        unset = new.optional and not old.optional
        if unset or (new.default is not None and old.default is None and not new.optional):
            what = "is `optional` now" if unset else "has a default now"
            older = "fail on" if old.default is None else f"see {_shown(old)} in"
            message = f"`{kept.name}` {what}: older readers {older} files that lack it"
            yield Break(new.position, message, kept.own)


def arguments_added(changes: Changes) -> Iterator[Break]:
    """Readers take an optional field that a file lacks for unset; those who make objects have to name it."""
    for pair in changes.same_kind:
        for member in pair.added if pair.after.kind is Kind.STRUCT else ():
            if isinstance(member, Field) and member.optional and member.default is None:
                message = f"`{pair.after.name}.{member.name}` is new and has to be given: it has no default"
                yield Break(member.position, message, owned_by(pair.after, member))
    for old, new, kept in _kept_fields(changes):
        if old.optional and new.optional and old.default is not None and new.default is None:
            yield Break(new.position, f"`{kept.name}` has to be given now: it has lost its default", kept.own)


def defaults_changed(changes: Changes) -> Iterator[Break]:
    for old, new, kept in _kept_fields(changes):
        if old.default is None or new.default is None or old.optional or new.optional:
            continue
        same_type = changes.spelled_before(old.type) == str(new.type)
        if same_type and not changes.same_default(old, new):
            message = f"the default of `{kept.name}` was {_shown(old)} and is {_shown(new)}"
            yield Break(new.position, message, kept.own)


def _shown(field: Field) -> str:
    assert field.default is not None
    value = field.default.value
    if isinstance(value, tuple):
        return "`{}`" if isinstance(field.type, MapType) else "`[]`"
    return str(value).lower() if isinstance(value, bool) else f"`{value}`"


def mappings_changed(changes: Changes) -> Iterator[Break]:
    for _, kept in changes.kept:
        for library in ("torch", "c10"):
            old, new = _mapping(kept.before, library), _mapping(kept.after, library)
            if old is not None and old != new:
                message = f"`{kept.name}` stood for `{library}: {old}` and stands for {_mapped(new)}"
                yield Break(kept.after.position, message, kept.own)


def bits_changed(changes: Changes) -> Iterator[Break]:
    for _, kept in changes.kept:
        if isinstance(kept.before, EnumValue) and isinstance(kept.after, EnumValue):
            old, new = kept.before.bits, kept.after.bits
            if old is not None and old != new:
                message = f"`{kept.name}` had `bits: {old}` and has {'none' if new is None else new}"
                yield Break(kept.after.position, message, kept.own)


def _mapping(member: Member, library: str) -> str | None:
    if not isinstance(member, EnumValue):
        return None
    return member.torch if library == "torch" else member.c10


def _mapped(name: str | None) -> str:
    return f"`{name}`" if name is not None else "nothing"


def _kept_fields(changes: Changes) -> Iterator[tuple[Field, Field, MemberPair]]:
    """Fields of structs; members of unions are neither optional nor have they defaults."""
    for pair, kept in changes.kept:
        if (
            pair.after.kind is Kind.STRUCT
            and isinstance(kept.before, Field)
            and isinstance(kept.after, Field)
        ):
            yield kept.before, kept.after, kept
