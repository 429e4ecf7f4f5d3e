"""Changes that make a file mean something else, or that old or new code cannot read: a table of rules.

Files of the version before must mean the same to what is generated afterwards, and old readers must be able
to skip what is new (a field) or refuse it by name (a union's member, an enum's value). A new major version
may break that, as readers refuse files of another one: then these rules find nothing, but for numbers and
names that come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from .changes import Changes, Member, MemberPair, TypePair, compare, members, number
from .faults import Level
from .model import EnumValue, Field, Kind, Position, Schema, TypeDef
from .rules import BreakingRule, Report


@dataclass(frozen=True, slots=True)
class _Break:
    """Where and what; `own` tells whether it is in pt2wire's part of the schema rather than PyTorch's."""

    position: Position
    message: str
    own: bool


_Finder = Callable[[Changes], Iterator[_Break]]
#: What a member is called, by the kind of its type.
_WORD = {Kind.STRUCT: "field", Kind.UNION: "union member", Kind.ENUM: "enum value"}
_NUMBER_WORD = {Kind.STRUCT: "id", Kind.UNION: "id", Kind.ENUM: "value"}


def breaks(before: Schema, after: Schema, *, own: bool) -> int:
    """How many breaking changes there are in pt2wire's part of the schema, or in PyTorch's."""
    changes = compare(before, after)
    return sum(found.own is own for find in _FINDERS for found in find(changes))


def _judged(find: _Finder, excused: bool, before: Schema, after: Schema) -> Iterator[Report]:
    """`excused` tells whether a new major version may do it."""
    if excused and after.version.major > before.version.major:
        return
    for found in find(compare(before, after)):
        if not excused:
            hint = "Undo it and take a free one: no major version makes numbers and names mean something else"
        elif found.own:
            hint = "Undo it: what we added once stays as it is; add something new beside it"
        else:
            hint = f'Undo it, or, where PyTorch did it, raise `version` to "{before.version.major + 1}.0"'
        yield Report(found.position, found.message, hint)


def _types_removed(changes: Changes) -> Iterator[_Break]:
    for definition in changes.removed:
        yield _Break(
            changes.place, f"{definition.kind.value} `{definition.name}` was removed", definition.own
        )


def _types_renamed(changes: Changes) -> Iterator[_Break]:
    for old, new in changes.renamed:
        yield _Break(new.position, f"`{old.name}` was renamed to `{new.name}`", old.own)


def _kinds_changed(changes: Changes) -> Iterator[_Break]:
    for pair in changes.pairs:
        old, new = pair.before.kind.value, pair.after.kind.value
        if old != new:
            message = f"`{pair.after.name}` was a {old} and is a {new}"
            yield _Break(pair.after.position, message.replace("a enum", "an enum"), pair.before.own)


def _removed(kind: Kind, changes: Changes) -> Iterator[_Break]:
    for pair in _same_kind(changes):
        for member in pair.removed if pair.after.kind is kind else ():
            message = (
                f"{_WORD[kind]} `{pair.after.name}.{member.name}` "
                f"({_NUMBER_WORD[kind]} {number(member)}) was removed"
            )
            yield _Break(pair.after.position, message, _own(pair.before, member))


def _renamed(kinds: tuple[Kind, ...], changes: Changes) -> Iterator[_Break]:
    for pair in _same_kind(changes):
        for moved in pair.renamed if pair.after.kind in kinds else ():
            message = f"{_WORD[pair.after.kind]} `{pair.before.name}.{moved.before.name}` was renamed"
            yield _Break(moved.after.position, f"{message} to `{moved.after.name}`", moved.own)


def _renumbered(kinds: tuple[Kind, ...], changes: Changes) -> Iterator[_Break]:
    for pair, kept in _kept(changes):
        old, new = number(kept.before), number(kept.after)
        if pair.after.kind in kinds and old != new:
            message = f"the {_NUMBER_WORD[pair.after.kind]} of `{kept.name}` was {old} and is {new}"
            yield _Break(kept.after.position, message, kept.own)


def _ids_reused(changes: Changes) -> Iterator[_Break]:
    for pair in _same_kind(changes):
        before = {number(member): member for member in members(pair.before)}
        kept = [moved.after for moved in pair.kept if number(moved.before) != number(moved.after)]
        for member in (*pair.added, *kept):
            old = before.get(number(member))
            if old is not None:
                word = _NUMBER_WORD[pair.after.kind]
                message = (
                    f"`{pair.after.name}.{member.name}` takes the {word} {number(member)} of `{old.name}`"
                )
                yield _Break(member.position, message, _own(pair.before, old))


def _reservations_dropped(changes: Changes) -> Iterator[_Break]:
    for pair in changes.pairs:
        ids = sorted(set(pair.before.reserved_ids) - set(pair.after.reserved_ids))
        names = sorted(set(pair.before.reserved_names) - set(pair.after.reserved_names))
        for item in (*ids, *names):
            message = f"`{item}` is no longer reserved in `{pair.after.name}`"
            taker = next((m for m in members(pair.after) if item in (m.name, number(m))), None)
            position = taker.position if taker else pair.after.position
            yield _Break(position, message, pair.before.own)


def _types_changed(changes: Changes) -> Iterator[_Break]:
    for _, kept in _kept(changes):
        if isinstance(kept.before, Field) and isinstance(kept.after, Field):
            old, new = changes.spelled_before(kept.before.type), str(kept.after.type)
            if old != new:
                message = f"the type of `{kept.name}` was {kept.before.type} and is {new}"
                yield _Break(kept.after.position, message, kept.own)


def _required_added(changes: Changes) -> Iterator[_Break]:
    for pair in _same_kind(changes):
        for member in pair.added if pair.after.kind is Kind.STRUCT else ():
            if isinstance(member, Field) and member.default is None and not member.optional:
                message = f"`{pair.after.name}.{member.name}` is new and has no default: older files lack it"
                yield _Break(member.position, message, _own(pair.after, member))


def _made_required(changes: Changes) -> Iterator[_Break]:
    for old, new, kept in _kept_fields(changes):
        unset = old.optional and not new.optional
        if unset or (old.default is not None and new.default is None and not new.optional):
            was = "`optional`" if unset else "with a default"
            message = f"`{kept.name}` was {was} and no longer is: older files may lack it"
            yield _Break(new.position, message, kept.own)


def _made_optional(changes: Changes) -> Iterator[_Break]:
    for old, new, kept in _kept_fields(changes):
        unset = new.optional and not old.optional
        if unset or (new.default is not None and old.default is None and not new.optional):
            what = "is `optional` now" if unset else "has a default now"
            message = f"`{kept.name}` {what}: older readers fail on files that lack it"
            yield _Break(new.position, message, kept.own)


def _arguments_added(changes: Changes) -> Iterator[_Break]:
    """Readers take an optional field that a file lacks for unset; those who make objects have to name it."""
    for pair in _same_kind(changes):
        for member in pair.added if pair.after.kind is Kind.STRUCT else ():
            if isinstance(member, Field) and member.optional and member.default is None:
                message = f"`{pair.after.name}.{member.name}` is new and has to be given: it has no default"
                yield _Break(member.position, message, _own(pair.after, member))
    for old, new, kept in _kept_fields(changes):
        if old.optional and new.optional and old.default is not None and new.default is None:
            yield _Break(
                new.position, f"`{kept.name}` has to be given now: it has lost its default", kept.own
            )


def _defaults_changed(changes: Changes) -> Iterator[_Break]:
    for old, new, kept in _kept_fields(changes):
        if old.default is None or new.default is None or old.optional or new.optional:
            continue
        same_type = changes.spelled_before(old.type) == str(new.type)
        if same_type and not changes.same_default(old, new):
            message = f"the default of `{kept.name}` was {_shown(old)} and is {_shown(new)}"
            yield _Break(new.position, message, kept.own)


def _shown(field: Field) -> str:
    assert field.default is not None
    value = field.default.value
    return str(value).lower() if isinstance(value, bool) else f"`{value}`"


def _mappings_changed(changes: Changes) -> Iterator[_Break]:
    for _, kept in _kept(changes):
        for library in ("torch", "c10"):
            old, new = _mapping(kept.before, library), _mapping(kept.after, library)
            if old is not None and old != new:
                message = f"`{kept.name}` stood for `{library}: {old}` and stands for {_mapped(new)}"
                yield _Break(kept.after.position, message, kept.own)


def _bits_changed(changes: Changes) -> Iterator[_Break]:
    for _, kept in _kept(changes):
        if isinstance(kept.before, EnumValue) and isinstance(kept.after, EnumValue):
            old, new = kept.before.bits, kept.after.bits
            if old is not None and old != new:
                message = f"`{kept.name}` had `bits: {old}` and has {'none' if new is None else new}"
                yield _Break(kept.after.position, message, kept.own)


def _mapping(member: Member, library: str) -> str | None:
    if not isinstance(member, EnumValue):
        return None
    return member.torch if library == "torch" else member.c10


def _mapped(name: str | None) -> str:
    return f"`{name}`" if name is not None else "nothing"


def _owners_changed(changes: Changes) -> Iterator[_Break]:
    for pair in changes.pairs:
        if pair.before.own is not pair.after.own:
            yield _Break(pair.after.position, _moved(pair.after.name, pair.before.own), pair.before.own)
    for pair, kept in _kept(changes):
        if kept.own is not (kept.after.since_revision is not None) and pair.before.own is pair.after.own:
            yield _Break(kept.after.position, _moved(kept.name, kept.own), kept.own)


def _moved(name: str, own: bool) -> str:
    sides = ("ours", "PyTorch's") if own else ("PyTorch's", "ours")
    return f"`{name}` was {sides[0]} and is {sides[1]}"


def _orders_changed(changes: Changes) -> Iterator[_Break]:
    """Of structs alone: unions are made by the name of a member."""
    for pair in _same_kind(changes):
        if pair.after.kind is not Kind.STRUCT:
            continue
        renamed = {moved.before.name: moved.after.name for moved in pair.renamed}
        old = [renamed.get(field.name, field.name) for field in pair.before.positional]
        new = pair.after.positional
        known = [field for field in new if field.name in old]
        for place, field in enumerate(new):
            following = next((other for other in new[place:] if other.name in old), field)
            if following is not field and field.name not in old:
                message = f"`{pair.after.name}.{field.name}` is new and stands before `{following.name}`"
                yield _Break(field.position, message, _own(pair.after, field))
        for field, before in zip(known[1:], known, strict=False):
            if old.index(field.name) < old.index(before.name):
                message = f"`{pair.after.name}.{field.name}` moved behind fields that it stood before"
                yield _Break(field.position, message, pair.before.own)
                break


def _same_kind(changes: Changes) -> Iterator[TypePair]:
    """The types whose members can be told apart one by one: a change of kind is reported as such."""
    return (pair for pair in changes.pairs if pair.before.kind is pair.after.kind)


def _kept(changes: Changes) -> Iterator[tuple[TypePair, MemberPair]]:
    for pair in _same_kind(changes):
        for kept in pair.kept:
            yield pair, kept


def _kept_fields(changes: Changes) -> Iterator[tuple[Field, Field, MemberPair]]:
    """Fields of structs; members of unions are neither optional nor have they defaults."""
    for pair, kept in _kept(changes):
        if (
            pair.after.kind is Kind.STRUCT
            and isinstance(kept.before, Field)
            and isinstance(kept.after, Field)
        ):
            yield kept.before, kept.after, kept


def _own(definition: TypeDef, member: Member) -> bool:
    return definition.own or member.since_revision is not None


_FIELDS = (Kind.STRUCT, Kind.UNION)
_TABLE: tuple[tuple[str, Level, str, str, _Finder], ...] = (
    (
        "type-removed",
        Level.WIRE,
        "files that hold a type can still be read",
        "`IndexEntry` has gone",
        _types_removed,
    ),
    (
        "kind-changed",
        Level.WIRE,
        "a struct, a union and an enum are encoded differently",
        "`kind: union` became `kind: struct`",
        _kinds_changed,
    ),
    (
        "field-removed",
        Level.WIRE,
        "older files hold the field, and our readers refuse fields that they do not know",
        "`torch_version` of `ExportedProgram` has gone",
        partial(_removed, Kind.STRUCT),
    ),
    (
        "member-removed",
        Level.WIRE,
        "older files hold the member, and no other says the same",
        "`as_complex` of `Argument` has gone",
        partial(_removed, Kind.UNION),
    ),
    (
        "value-removed",
        Level.WIRE,
        "older files hold the number",
        "`UINT64` of `ScalarType` has gone",
        partial(_removed, Kind.ENUM),
    ),
    (
        "id-changed",
        Level.WIRE,
        "Thrift knows fields by id alone",
        "`id: 20` of `index` became `id: 30`",
        partial(_renumbered, _FIELDS),
    ),
    (
        "value-changed",
        Level.WIRE,
        "both encodings know an enum's values by number alone",
        "`value: 35` of `UINT64` became `value: 36`",
        partial(_renumbered, (Kind.ENUM,)),
    ),
    (
        "id-reused",
        Level.WIRE,
        "what a number meant once it means for ever",
        "`index` (id 20) has gone, and the new `count` has the id 20",
        _ids_reused,
    ),
    (
        "reserved-dropped",
        Level.WIRE,
        "what is reserved stays so",
        "`reserved: {ids: [20]}` became `reserved: {ids: []}`",
        _reservations_dropped,
    ),
    (
        "type-changed",
        Level.WIRE,
        "bytes are read as the type that they were written as",
        "`type: list<i64>` became `type: list<SymInt>`",
        _types_changed,
    ),
    (
        "required-added",
        Level.WIRE,
        "older files, which lack a new field, can be read",
        "a new field without `default`",
        _required_added,
    ),
    (
        "made-required",
        Level.WIRE,
        "older files, which may lack the field, can be read",
        "`type: optional i64` became `type: i64`",
        _made_required,
    ),
    (
        "made-optional",
        Level.WIRE,
        "older readers, which demand the field, can read new files",
        "`type: i64` became `type: optional i64`",
        _made_optional,
    ),
    (
        "argument-added",
        Level.SOURCE,
        "code that makes the struct goes on to do so",
        "a new field of type `optional i64` without `default`",
        _arguments_added,
    ),
    (
        "default-changed",
        Level.WIRE,
        "a file that lacks a field means the same to all readers",
        "`default: false` became `default: true`",
        _defaults_changed,
    ),
    (
        "mapping-changed",
        Level.WIRE,
        "an enum's value stands for the same in PyTorch for ever",
        "`torch: float16` of `HALF` became `torch: bfloat16`",
        _mappings_changed,
    ),
    (
        "bits-changed",
        Level.WIRE,
        "the elements of a weight lie where they did",
        "`bits: 8` of `BYTE` became `bits: 16`",
        _bits_changed,
    ),
    (
        "owner-changed",
        Level.WIRE,
        "ours and PyTorch's additions cannot be taken for each other",
        '`since_revision: 1` became `since: "8.21"`',
        _owners_changed,
    ),
    (
        "field-renamed",
        Level.JSON,
        "JSON knows fields and members by name alone",
        "`index` (id 20) became `ordinal` (id 20)",
        partial(_renamed, _FIELDS),
    ),
    (
        "type-renamed",
        Level.SOURCE,
        "code that uses the type compiles; PyTorch's classes have the same names",
        "`IndexEntry` became `Entry`",
        _types_renamed,
    ),
    (
        "value-renamed",
        Level.SOURCE,
        "code that uses the value compiles; PyTorch's enums have the same names",
        "`UINT64` became `U64`",
        partial(_renamed, (Kind.ENUM,)),
    ),
    (
        "order-changed",
        Level.SOURCE,
        "positional arguments of constructors, and the order of JSON keys, stay",
        "`index` of `Device` stands before `type`, or a new field between the two",
        _orders_changed,
    ),
)
#: What not even a new major version may do.
_NEVER = {"id-reused", "reserved-dropped"}
_FINDERS = tuple(row[-1] for row in _TABLE)

RULES = tuple(
    BreakingRule(id_, level, purpose, example, partial(_judged, find, id_ not in _NEVER))
    for id_, level, purpose, example, find in _TABLE
)
