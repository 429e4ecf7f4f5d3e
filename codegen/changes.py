"""What differs between two schemas: types and members matched by name and by number, without judgement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .matching import same_types, spelled
from .model import (
    Field,
    Kind,
    Member,
    NamedType,
    Position,
    Schema,
    TypeDef,
    TypeRef,
    is_wide,
    members,
    number,
)


def owned_by(definition: TypeDef, member: Member) -> bool:
    """Whether a member of a type is pt2wire's rather than PyTorch's."""
    return definition.own or member.own


@dataclass(frozen=True, slots=True)
class MemberPair:
    """A member before and after a change; `own` tells whether it was pt2wire's rather than PyTorch's."""

    owner: TypeDef
    before: Member
    after: Member

    @property
    def own(self) -> bool:
        return self.before.own

    @property
    def name(self) -> str:
        return f"{self.owner.name}.{self.after.name}"


@dataclass(frozen=True, slots=True)
class TypePair:
    """A type before and after a change.

    Attributes:
        before, after: The two, of the same name or renamed.
        kept: Members with the same name.
        renamed: Members with the same number and type under another name, which may be PyTorch's by now.
        removed: Members of before which are neither.
        added: Members of after which are neither.
    """

    before: TypeDef
    after: TypeDef
    kept: tuple[MemberPair, ...]
    renamed: tuple[MemberPair, ...]
    removed: tuple[Member, ...]
    added: tuple[Member, ...]

    @property
    def given_way(self) -> tuple[MemberPair, ...]:
        """Those renamed members of ours whose name PyTorch has adopted."""
        come = {member.name for member in self.added}
        return tuple(moved for moved in self.renamed if moved.before.name in come)


@dataclass(frozen=True, slots=True)
class Changes:
    """Two schemas side by side. `pairs` holds the types of both, `renamed` those of another name again.

    `place` is where the types of the schema after begin: what has gone has no place of its own.
    """

    before: Schema
    after: Schema
    place: Position
    pairs: tuple[TypePair, ...]
    renamed: tuple[tuple[TypeDef, TypeDef], ...]
    removed: tuple[TypeDef, ...]
    added: tuple[TypeDef, ...]

    @property
    def same_kind(self) -> Iterator[TypePair]:
        """The types whose members can be told apart one by one: a change of kind is reported as such."""
        return (pair for pair in self.pairs if pair.before.kind is pair.after.kind)

    @property
    def kept(self) -> Iterator[tuple[TypePair, MemberPair]]:
        """The members, of types that are still of the same kind, which are there yet, perhaps renamed."""
        return ((pair, kept) for pair in self.same_kind for kept in (*pair.kept, *pair.renamed))

    def spelled_before(self, ref: TypeRef) -> str:
        """A type of the schema before, in the names of the one after."""
        names = {before.name: after.name for before, after in self.renamed}
        return spelled(ref, names)

    @property
    def widened(self) -> Iterator[MemberPair]:
        """The fields of `i64` that are `integer` now: JSON may hold what older readers refuse."""
        for _, kept in self.kept:
            old, new = kept.before, kept.after
            if isinstance(old, Field) and isinstance(new, Field):
                same = self.spelled_before(old.type) == str(new.type)
                if same and is_wide(new.type) and not is_wide(old.type):
                    yield kept

    def same_default(self, old: Field, new: Field) -> bool:
        """Whether a reader who sees the default sees the same: of an enum the number, whatever its name.

        An enum's value that has another number by now is a change of the enum, and not of each default.
        """
        same_name = isinstance(old.type, NamedType) and old.default == new.default
        return same_name or _default(self.before, old) == _default(self.after, new)


def compare(before: Schema, after: Schema) -> Changes:
    """Matches two schemas."""
    kept, renamed = same_types(before, after)
    names = {old.name: new.name for old, new in renamed}
    old_ones, new_ones = ({id(pair[side]) for pair in (*kept, *renamed)} for side in (0, 1))
    return Changes(
        before,
        after,
        place=after.places["types"],
        pairs=tuple(_pair(old, new, names) for old, new in (*kept, *renamed)),
        renamed=tuple(renamed),
        removed=tuple(definition for definition in before.types.values() if id(definition) not in old_ones),
        added=tuple(definition for definition in after.types.values() if id(definition) not in new_ones),
    )


def _default(schema: Schema, field: Field) -> str | None:
    if field.default is None:
        return None
    value = field.default.value
    if isinstance(field.type, NamedType):
        return next((str(v.value) for v in schema.types[field.type.name].values if v.name == value), None)
    return repr(value)  # -0.0 is not 0.0


def _pair(before: TypeDef, after: TypeDef, names: dict[str, str]) -> TypePair:
    if before.kind is not after.kind and Kind.ENUM in (before.kind, after.kind):
        return TypePair(before, after, (), (), (), ())  # nothing of the one is in the other
    old = {member.name: member for member in members(before)}
    new = {member.name: member for member in members(after)}
    by_number = {number(member): member for member in members(after) if member.name not in old}
    renamed = []
    for name, member in old.items():
        successor = by_number.get(number(member))
        handed = name not in new or (member.own and not new[name].own)
        if handed and successor is not None and _same_type(member, successor, names):
            renamed.append(MemberPair(after, member, successor))
    moved, come = {pair.before.name for pair in renamed}, {pair.after.name for pair in renamed}
    kept = [name for name in new if name in old and name not in moved]
    return TypePair(
        before,
        after,
        tuple(MemberPair(after, old[name], new[name]) for name in kept),
        tuple(renamed),
        removed=tuple(m for name, m in old.items() if name not in kept and name not in moved),
        added=tuple(m for name, m in new.items() if name not in kept and name not in come),
    )


def _same_type(old: Member, new: Member, names: dict[str, str]) -> bool:
    if isinstance(old, Field) and isinstance(new, Field):
        return spelled(old.type, names) == str(new.type)
    return True


def came_later(definition: TypeDef) -> Iterator[Member]:
    """Members that a type got in a later version or revision than the one that it came with."""
    for member in members(definition):
        if (member.since, member.since_revision) != (definition.since, definition.since_revision):
            yield member


def additions(changes: Changes) -> Iterator[tuple[str, TypeDef | Member]]:
    """Types and members that have come, of new types only what came later: shown name and definition."""
    for definition in changes.added:
        yield definition.name, definition
        yield from ((f"{definition.name}.{member.name}", member) for member in came_later(definition))
    for pair in changes.pairs:
        for member in pair.added:
            yield f"{pair.after.name}.{member.name}", member
