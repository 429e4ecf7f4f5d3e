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

from . import incompatible_members as members
from . import incompatible_shapes as shapes
from .changes import Changes, compare
from .faults import Level
from .lint_log import NO_RELEASE
from .model import Kind, Schema, Version
from .rules import Break, Report, Rule


@dataclass(frozen=True, slots=True)
class IncompatibleRule(Rule):
    """A judgement on what a change breaks.

    Attributes:
        find: The breaking changes of one sort.
        excused: Whether a new major version may do it; only what comes back it may not.
    """

    find: Callable[[Changes], Iterator[Break]]
    excused: bool = True

    def check(self, before: Schema, after: Schema) -> Iterator[Report]:
        """Reports, as those of `BreakingRule`.

        Of what is ours nothing says with which version it changed. So a new major version excuses it while
        there can be no files of an earlier version that are read as well.
        """
        new_major = self.excused and after.version.major > before.version.major
        earlier = _released_before(after) if new_major else None
        if new_major and earlier is None:
            return
        for found in self.find(compare(before, after)):
            if found.own or not new_major:
                yield Report(found.position, found.message, self._hint(found, before, earlier))

    def _hint(self, found: Break, before: Schema, earlier: Version | None) -> str:
        if not self.excused:
            return "Undo it and take a free one: no major version makes numbers and names mean something else"
        if earlier is not None:
            return f"Undo it, or, where it came with {earlier}, compare with a schema of that version"
        if found.own:
            return "Undo it: an extension, once made, stays as it is; add something new beside it"
        major = before.version.major + 1
        return f'Undo it, or, where the format itself changed, raise `version` to "{major}.0"'


def _released_before(schema: Schema) -> Version | None:
    """The oldest version, below its own, that some release writes and a schema's readers take."""
    told = [line.version for line in schema.log if line.torch != NO_RELEASE]
    return min((v for v in told if schema.oldest_version <= v < schema.version), default=None)


def breaks(before: Schema, after: Schema, *, own: bool) -> int:
    """How many breaking changes there are in pt2wire's part of the schema, or in PyTorch's."""
    changes = compare(before, after)
    return sum(found.own is own for rule in RULES for found in rule.find(changes))


_FIELDS = (Kind.STRUCT, Kind.UNION)
RULES = (
    IncompatibleRule(
        "type-removed",
        Level.WIRE,
        "files that hold a type can still be read",
        "`IndexEntry` has gone",
        shapes.types_removed,
    ),
    IncompatibleRule(
        "kind-changed",
        Level.WIRE,
        "a struct, a union and an enum are encoded differently",
        "`kind: union` became `kind: struct`",
        shapes.kinds_changed,
    ),
    IncompatibleRule(
        "field-removed",
        Level.WIRE,
        "older files hold the field, and our readers refuse fields that they do not know",
        "`torch_version` of `ExportedProgram` has gone",
        partial(shapes.removed, Kind.STRUCT),
    ),
    IncompatibleRule(
        "member-removed",
        Level.WIRE,
        "older files hold the member, and no other says the same",
        "`as_complex` of `Argument` has gone",
        partial(shapes.removed, Kind.UNION),
    ),
    IncompatibleRule(
        "value-removed",
        Level.WIRE,
        "older files hold the number",
        "`UINT64` of `ScalarType` has gone",
        partial(shapes.removed, Kind.ENUM),
    ),
    IncompatibleRule(
        "id-changed",
        Level.WIRE,
        "Thrift knows fields by id alone",
        "`id: 20` of `index` became `id: 30`",
        partial(shapes.renumbered, _FIELDS),
    ),
    IncompatibleRule(
        "value-changed",
        Level.WIRE,
        "both encodings know an enum's values by number alone",
        "`value: 35` of `UINT64` became `value: 36`",
        partial(shapes.renumbered, (Kind.ENUM,)),
    ),
    IncompatibleRule(
        "id-reused",
        Level.WIRE,
        "what a number meant once it means for ever",
        "`index` (id 20) has gone, and the new `count` has the id 20",
        shapes.ids_reused,
        excused=False,
    ),
    IncompatibleRule(
        "reserved-dropped",
        Level.WIRE,
        "what is reserved stays so",
        "`reserved: {ids: [20]}` became `reserved: {ids: []}`",
        shapes.reservations_dropped,
        excused=False,
    ),
    IncompatibleRule(
        "type-changed",
        Level.WIRE,
        "bytes are read as the type that they were written as",
        "`type: list<i64>` became `type: list<SymInt>`",
        members.types_changed,
    ),
    IncompatibleRule(
        "required-added",
        Level.WIRE,
        "older files, which lack a new field, can be read",
        "a new field without `default`",
        members.required_added,
    ),
    IncompatibleRule(
        "made-required",
        Level.WIRE,
        "older files, which may lack the field, can be read",
        "`type: optional i64` became `type: i64`",
        members.made_required,
    ),
    IncompatibleRule(
        "made-optional",
        Level.WIRE,
        "older readers, which demand the field, can read new files",
        "`type: i64` became `type: optional i64`",
        members.made_optional,
    ),
    IncompatibleRule(
        "argument-added",
        Level.SOURCE,
        "code that makes the struct goes on to do so",
        "a new field of type `optional i64` without `default`",
        members.arguments_added,
    ),
    IncompatibleRule(
        "default-changed",
        Level.WIRE,
        "a file that lacks a field means the same to all readers",
        "`default: false` became `default: true`",
        members.defaults_changed,
    ),
    IncompatibleRule(
        "mapping-changed",
        Level.WIRE,
        "an enum's value stands for the same in PyTorch for ever",
        "`torch: float16` of `HALF` became `torch: bfloat16`",
        members.mappings_changed,
    ),
    IncompatibleRule(
        "bits-changed",
        Level.WIRE,
        "the elements of a weight lie where they did",
        "`bits: 8` of `BYTE` became `bits: 16`",
        members.bits_changed,
    ),
    IncompatibleRule(
        "owner-changed",
        Level.WIRE,
        "ours and PyTorch's additions cannot be taken for each other",
        '`since_revision: 1` became `since: "8.21"`',
        shapes.owners_changed,
    ),
    IncompatibleRule(
        "field-renamed",
        Level.JSON,
        "JSON knows fields and members by name alone",
        "`index` (id 20) became `ordinal` (id 20)",
        partial(shapes.renamed, _FIELDS),
    ),
    IncompatibleRule(
        "type-renamed",
        Level.SOURCE,
        "code that uses the type compiles; PyTorch's classes have the same names",
        "`IndexEntry` became `Entry`",
        shapes.types_renamed,
    ),
    IncompatibleRule(
        "value-renamed",
        Level.SOURCE,
        "code that uses the value compiles; PyTorch's enums have the same names",
        "`UINT64` became `U64`",
        partial(shapes.renamed, (Kind.ENUM,)),
    ),
    IncompatibleRule(
        "order-changed",
        Level.SOURCE,
        "positional arguments of constructors, and the order of JSON keys, stay",
        "`index` of `Device` stands before `type`, or a new field between the two",
        shapes.orders_changed,
    ),
)
