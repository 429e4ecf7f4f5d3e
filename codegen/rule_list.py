"""All rules by which findings are named: those of the file itself, of lint, and of breaking changes."""

from __future__ import annotations

from . import breaking, lint
from .faults import Level
from .rules import Rule

#: Faults that keep a file from being resolved; what finds them is the reading itself.
FAULTS = (
    Rule(
        "yaml-syntax",
        Level.SCHEMA,
        "a schema is plain YAML: no anchors, aliases or tags",
        "`name: &a pt2wire`",
    ),
    Rule("wrong-node", Level.SCHEMA, "each key holds what belongs there", "`types: []`"),
    Rule("wrong-value", Level.SCHEMA, "numbers and versions are within their range", "`id: 0`"),
    Rule("unquoted-version", Level.SCHEMA, "8.20 is not taken for 8.2", "`version: 8.20`"),
    Rule("unknown-key", Level.SCHEMA, "a misspelled key is not passed over", "`defualt: null`"),
    Rule("missing-key", Level.SCHEMA, "nothing is left to guess", "a field without `id`"),
    Rule("duplicate-key", Level.SCHEMA, "a name stands for one thing", "two fields `index` in one struct"),
    Rule("invalid-identifier", Level.SCHEMA, "names can stand in code", "a field `min-val`"),
    Rule("empty-type", Level.SCHEMA, "each type says something", "`fields: {}`"),
    Rule(
        "two-origins",
        Level.SCHEMA,
        "each addition is PyTorch's or ours",
        "`since` and `since_revision` at one field",
    ),
    Rule(
        "bad-type",
        Level.SCHEMA,
        "types are spelled so that both encodings have them",
        "`type: list<optional i64>`",
    ),
    Rule("undefined-type", Level.SCHEMA, "each type that is used is there", "`type: Lense`"),
    Rule("bad-default", Level.SCHEMA, "defaults have their field's type", "`type: i64, default: one`"),
    Rule(
        "union-member",
        Level.SCHEMA,
        "exactly one member of a union is set",
        "`type: optional i64` in a union",
    ),
    Rule(
        "duplicate-id", Level.SCHEMA, "an id stands for one field", "two fields with `id: 20` in one struct"
    ),
    Rule(
        "reserved-id",
        Level.SCHEMA,
        "an id that was used does not come back",
        "`id: 20` beside `reserved: {ids: [20]}`",
    ),
    Rule(
        "reserved-name",
        Level.SCHEMA,
        "a name that was used does not come back",
        "a field `x` beside `reserved: {names: [x]}`",
    ),
    Rule(
        "duplicate-reserved",
        Level.SCHEMA,
        "no slip leaves a number or name unreserved",
        "`reserved: {ids: [20, 20]}`",
    ),
)

#: The commands that apply rules, and theirs.
GROUPS: tuple[tuple[str, tuple[Rule, ...]], ...] = (
    ("every command", FAULTS),
    ("lint", lint.RULES),
    ("breaking", breaking.RULES),
)


def describe() -> str:
    """All rules as text: id, level, purpose and an example of what each finds."""
    lines = []
    for command, rules in GROUPS:
        lines.append(f"{command}:")
        for rule in rules:
            lines += [f"  {rule.id} ({rule.level.value}): {rule.purpose}", f"      finds {rule.example}"]
    return "\n".join(lines)
