"""Judgements on a schema that resolves: a table of rules, each one small pure function."""

from __future__ import annotations

from collections.abc import Iterator

from . import lint_log as log
from . import lint_names as names
from .changes import owned_by
from .faults import Finding, Level
from .lint_names import items
from .model import FIRST_OWN_ID, Field, Kind, Schema, TypeDef, members, number
from .order import by_value_cycles, map_cycles, mapped_type, named_types
from .rules import LintRule, Report, findings

#: How Apache's compiler prints doubles: for Go, C# and others; for Python, C++, Java and others.
_APACHE = ("%.6g", "%.16f")
#: Decoders in C++ keep the fields of a struct that they have seen as bits of one number.
MAX_FIELDS = 64


def lint(schema: Schema) -> list[Finding]:
    """All findings of all rules, in the order of the file."""
    return findings((rule, report) for rule in RULES for report in rule.check(schema))


def _own_ids(schema: Schema) -> Iterator[Report]:
    for definition, field in _fields(schema):
        name = f"{definition.name}.{field.name}"
        if definition.own:
            continue
        if field.own and field.id < FIRST_OWN_ID:
            message = f"`{name}` extends the format, as `since_revision` says, and has the id {field.id}"
            hint = f"The format itself may take that id; those of extensions start at {FIRST_OWN_ID}"
            yield Report(field.position, message, hint)
        if not field.own and field.id >= FIRST_OWN_ID:
            message = f"`{name}` has the id {field.id}, which is kept for those who extend the format"
            hint = f"Take one from 1 to {FIRST_OWN_ID - 1}, or mark an extension with `since_revision`"
            yield Report(field.position, message, hint)


def _own_members(schema: Schema) -> Iterator[Report]:
    for definition in schema.types.values():
        if definition.own or definition.kind is Kind.STRUCT:
            continue
        for member in members(definition):
            if member.own:
                kind = definition.kind.value
                message = f"`{definition.name}.{member.name}` extends the format's own {kind}"
                hint = "Who reads the format alone fails on members it does not know; use a struct's field"
                yield Report(member.position, message, hint)


def _own_optional(schema: Schema) -> Iterator[Report]:
    for definition, field in _fields(schema):
        if definition.own or definition.kind is Kind.UNION:
            continue
        if field.own and not (field.optional and field.default is not None):
            name = f"{definition.name}.{field.name}"
            message = f"`{name}` extends the format and is not `optional` with the default null"
            yield Report(field.position, message, "What was written by the format alone does not have it")


def _own_types(schema: Schema) -> Iterator[Report]:
    for definition, field in _fields(schema):
        for name in named_types(field.type):
            if schema.types[name].own and not definition.own and not field.own:
                message = f"`{definition.name}.{field.name}` is the format's own, and `{name}` extends it"
                hint = (
                    "Who reads the format alone lacks the type; mark the field with `since_revision` as well"
                )
                yield Report(field.position, message, hint)


def _own_origin(schema: Schema) -> Iterator[Report]:
    for definition in schema.types.values():
        for member in members(definition):
            if definition.own and member.since is not None:
                message = f"`{definition.name}.{member.name}` has `since`, in a type that extends the format"
                yield Report(member.position, message, "Use `since_revision`")


def _returned(schema: Schema) -> Iterator[Report]:
    for definition in schema.types.values():
        there = {member.name: member for member in members(definition)}
        for name in definition.returned:
            shown, member = f"{definition.name}.{name}", there.get(name)
            if member is None:
                message = f"`{shown}` is said to have returned and is not there"
                yield Report(definition.position, message, "Remove it from `returned`")
            elif owned_by(definition, member):
                message = f"`{shown}` extends the format and is said to have returned"
                hint = "Take a free id and name: only the format itself brings back what it gave up"
                yield Report(member.position, message, hint)
            elif number(member) not in definition.reserved_ids and name not in definition.reserved_names:
                message = f"`{shown}` is said to have returned, but nothing that it has is reserved"
                yield Report(member.position, message, "Put the number or name back into `reserved`")


def _future(schema: Schema) -> Iterator[Report]:
    for name, item in items(schema):
        owner = schema.types[name.partition(".")[0]]
        if item is not owner and (item.since, item.since_revision) == (owner.since, owner.since_revision):
            continue  # reported once, at the type
        if item.since is not None and item.since > schema.version:
            message = f"`{name}` is there since {item.since}, but `version` is {schema.version}"
            yield Report(item.position, message, "Raise `version`, or correct `since`")
        if item.since_revision is not None and item.since_revision > schema.revision:
            message = (
                f"`{name}` is there since revision {item.since_revision}, but `revision` is {schema.revision}"
            )
            yield Report(item.position, message, "Raise `revision`, or correct `since_revision`")


def _older_than_type(schema: Schema) -> Iterator[Report]:
    for definition in schema.types.values():
        for member in members(definition):
            older = member.since and definition.since and member.since < definition.since
            ours = member.since_revision is not None and definition.since_revision is not None
            if older or (ours and (member.since_revision or 0) < (definition.since_revision or 0)):
                message = f"`{definition.name}.{member.name}` is older than `{definition.name}`"
                yield Report(member.position, message, "Correct one of the two")


def _required_late(schema: Schema) -> Iterator[Report]:
    """Of what is ours nothing says which revision the oldest version had."""
    for definition, field in _fields(schema):
        if definition.kind is Kind.UNION or field.since is None or not field.demanded:
            continue
        oldest = max(schema.oldest_version, definition.since or schema.oldest_version)
        if field.since > oldest:
            name = f"{definition.name}.{field.name}"
            message = f"`{name}` is required since {field.since}, and files of {oldest} lack it"
            hint = "Give it a default, or, where the format shuts out such files, raise `oldest_version`"
            yield Report(field.position, message, hint)


def _oldest(schema: Schema) -> Iterator[Report]:
    oldest, version = schema.oldest_version, schema.version
    if oldest > version or oldest.major != version.major:
        message = f"`oldest_version` {oldest} is not a version before {version} with the same major number"
        yield Report(schema.places["oldest_version"], message, None)


def _cycles(schema: Schema) -> Iterator[Report]:
    for cycle in by_value_cycles(schema.types):
        first = schema.types[cycle[0]]
        following = cycle[1] if len(cycle) > 1 else cycle[0]
        field = next(f for f in first.fields if str(f.type) == following)
        chain = " > ".join((*cycle, cycle[0]))
        yield Report(
            field.position, f"types hold each other by value: {chain}", "Put one of them into a list"
        )


def _map_cycles(schema: Schema) -> Iterator[Report]:
    for cycle in map_cycles(schema.types):
        field = next(f for f in schema.types[cycle[0]].fields if mapped_type(f.type) == cycle[1])
        chain = " > ".join((*cycle, cycle[0]))
        hint = f"Apache's C++ cannot compile it; hold lists in the map, as `map<string, list<{cycle[1]}>>`"
        yield Report(field.position, f"types hold each other in maps or by value: {chain}", hint)


def _rounded_defaults(schema: Schema) -> Iterator[Report]:
    for definition, field in _fields(schema):
        value = field.default.value if field.default is not None else None
        # To Go, -0 is an integer.
        if isinstance(value, float) and (
            repr(value) == "-0.0" or any(float(f % value) != value for f in _APACHE)
        ):
            message = (
                f"`{definition.name}.{field.name}` has the default {value!r}, which Apache's compiler rounds"
            )
            hint = "Take one with at most 6 significant digits and 16 decimal places, or make it `optional`"
            yield Report(field.position, message, hint)


def _field_order(schema: Schema) -> Iterator[Report]:
    for definition in schema.types.values():
        defaulted: str | None = None
        for field in definition.fields if definition.kind is Kind.STRUCT else ():
            if field.default is None and defaulted is not None:
                name = f"{definition.name}.{field.name}"
                message = f"`{name}` has no default and stands after `{defaulted}`, which has"
                yield Report(
                    field.position,
                    message,
                    "Move it up, or give it a default: constructors take fields in order",
                )
            defaulted = field.name if field.default is not None else defaulted


def _field_count(schema: Schema) -> Iterator[Report]:
    for definition in schema.types.values():
        beyond = definition.fields[MAX_FIELDS:]
        if beyond:
            kind, word = definition.kind.value, "field" if definition.kind is Kind.STRUCT else "member"
            count = f"{len(definition.fields)} {word}s, more than {MAX_FIELDS}"
            message = f"the {kind} `{definition.name}` has {count}"
            hint = (
                f"Move some, such as `{beyond[0].name}`, into a {kind} of their own that is one {word} here"
            )
            yield Report(beyond[0].position, message, hint)


def _doc_text(schema: Schema) -> Iterator[Report]:
    for name, item in items(schema):
        found = [text for text in ("*/", "/*", "??/", '"""', "\\") if text in item.doc]
        found += sorted({f"U+{ord(sign):04X}" for sign in item.doc if not sign.isprintable()})
        if found:
            message = f"the doc of `{name}` has {' and '.join(found)}"
            yield Report(
                item.position, message, "Comments and docstrings cannot hold it, or would not show it"
            )


def _documented(schema: Schema) -> Iterator[Report]:
    for name, item in items(schema):
        if not item.doc.strip() or item.doc.strip(" .").upper() in ("TODO", "TBD", "FIXME"):
            yield Report(
                item.position,
                f"`{name}` has no doc",
                "Say why it exists, in which units and shapes, and who reads it",
            )


def _used(schema: Schema) -> Iterator[Report]:
    used = {name for _, field in _fields(schema) for name in named_types(field.type)}
    for definition in schema.types.values():
        if definition.kind is not Kind.STRUCT and definition.name not in used:
            message = f"no field has the type `{definition.name}`"
            yield Report(definition.position, message, "Remove it, or use it")


def _fields(schema: Schema) -> Iterator[tuple[TypeDef, Field]]:
    for definition in schema.types.values():
        for field in definition.fields:
            yield definition, field


RULES = (
    LintRule(
        "own-id",
        Level.WIRE,
        "PyTorch's future fields and ours never meet in one id",
        "`id: 70, since_revision: 1` in a struct of PyTorch's, or `id: 1000` without `since_revision`",
        _own_ids,
    ),
    LintRule(
        "own-member",
        Level.WIRE,
        "PyTorch can read every union and enum that it defines",
        "`since_revision: 1` at a member of `Argument`",
        _own_members,
    ),
    LintRule(
        "own-required",
        Level.WIRE,
        "programs written by PyTorch can be read",
        "`type: string, since_revision: 1` without `optional` in a struct of PyTorch's",
        _own_optional,
    ),
    LintRule(
        "own-type",
        Level.WIRE,
        "PyTorch knows the type of each field that it defines",
        "`type: Writer` without `since_revision` in a struct of PyTorch's",
        _own_types,
    ),
    LintRule(
        "own-origin",
        Level.WIRE,
        "a type of ours moves with our revision, not with PyTorch's version",
        '`since: "8.20"` at a field of `Writer`',
        _own_origin,
    ),
    LintRule(
        "returned-member",
        Level.WIRE,
        "what was reserved comes back by PyTorch's hand alone",
        "`reserved: {ids: [70], returned: [mine]}` and `mine` with `since_revision`",
        _returned,
    ),
    LintRule(
        "since-future",
        Level.WIRE,
        "an addition comes with the version that announces it",
        '`since: "8.21"` while `version` is "8.20"',
        _future,
    ),
    LintRule(
        "since-order",
        Level.WIRE,
        "nothing is older than the type that holds it",
        '`since: "8.2"` at a field of a type with `since: "8.14"`',
        _older_than_type,
    ),
    LintRule(
        "required-late",
        Level.WIRE,
        "files of each version from `oldest_version` on can be read",
        'a field without `default`, with `since: "8.20"`, while `oldest_version` is "8.2"',
        _required_late,
    ),
    LintRule(
        "oldest-version",
        Level.WIRE,
        "the range of versions read is not empty",
        '`oldest_version: "7.3"` while `version` is "8.20"',
        _oldest,
    ),
    LintRule(
        "version-log",
        Level.STYLE,
        "the log tells which version each release writes, up to `version`",
        "a `version` without a line under `log`, or a release with two",
        log.ordered,
    ),
    LintRule(
        "log-note",
        Level.STYLE,
        "the log tells what each version added",
        "`note: No addition.` of a version that is the `since` of a field",
        log.truthful,
    ),
    LintRule(
        "keyword",
        Level.SOURCE,
        "names are free in Thrift, C++, Python, in what is generated, and in the schema language",
        "a field `lambda`, a type `optional`, a type `dataclass`",
        names.taken_words,
    ),
    LintRule(
        "apache-name",
        Level.STYLE,
        "what Apache's compiler makes of schema.thrift compiles in C++, whatever things are called",
        "an enum value `type`, `MAX` or `SIGINT`, or one with the name of its enum",
        names.apache_names,
    ),
    LintRule(
        "reserved-form",
        Level.SOURCE,
        "names are not of a form that C++ or Python treats specially",
        "a field `a__b` or `_b`, an enum value `_missing_`",
        names.reserved_forms,
    ),
    LintRule(
        "converted-name",
        Level.SOURCE,
        "names stay apart where a language converts case",
        "fields `min_val` and `minVal` in one struct",
        names.converted_names,
    ),
    LintRule(
        "by-value-cycle",
        Level.SOURCE,
        "values end; languages without references can hold them",
        "a field of type `optional Node` in `Node`",
        _cycles,
    ),
    LintRule(
        "map-cycle",
        Level.STYLE,
        "what Apache's compiler makes of schema.thrift compiles in C++",
        "`map<string, B>` in `A` and `map<string, A>` in `B`",
        _map_cycles,
    ),
    LintRule(
        "rounded-default",
        Level.STYLE,
        "what Apache's compiler makes of schema.thrift has the defaults that pt2wire has",
        "`type: double, default: 1e-20`",
        _rounded_defaults,
    ),
    LintRule(
        "field-order",
        Level.SOURCE,
        "constructors can take fields in order, required ones first",
        "a field without `default` behind one with it",
        _field_order,
    ),
    LintRule(
        "too-many-fields",
        Level.SOURCE,
        "decoders in C++ can tell which fields of a struct they have seen",
        f"a struct of {MAX_FIELDS + 1} fields",
        _field_count,
    ),
    LintRule(
        "mapped-name",
        Level.SOURCE,
        "enum tables can be read in both directions",
        "two values with `torch: float16`",
        names.mapped_names,
    ),
    LintRule(
        "mapping-split",
        Level.WIRE,
        "what has one name in PyTorch is the same thing in each enum that knows it",
        "`torch: int4, bits: 4` in one enum and `torch: int4, bits: 8` in another",
        names.split_mappings,
    ),
    LintRule(
        "shadowed-type",
        Level.SOURCE,
        "a name within a class is a field or a type, not both",
        "a field `Device` while there is a type `Device`",
        names.shadowed_types,
    ),
    LintRule(
        "missing-bits",
        Level.SOURCE,
        "weights of every dtype can be found in their payload",
        "a value of `ScalarType` with `torch: int4` and without `bits`",
        names.missing_bits,
    ),
    LintRule(
        "short-name",
        Level.SOURCE,
        "each union member has a constructor of its own in Python",
        "members `text` and `as_text` in one union",
        names.short_names,
    ),
    LintRule(
        "doc-text",
        Level.SOURCE,
        "docs can stand in comments and docstrings",
        "`*/` or a control character in a doc",
        _doc_text,
    ),
    LintRule(
        "missing-doc",
        Level.STYLE,
        "every reader finds out what a name means",
        "`doc: TODO.`",
        _documented,
    ),
    LintRule(
        "unused-type",
        Level.STYLE,
        "no enum or union is left behind by a removed field",
        "a union that no field has as its type",
        _used,
    ),
)
