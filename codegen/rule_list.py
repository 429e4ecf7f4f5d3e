"""All rules by which findings are named: those of the file itself, of lint, and of breaking changes."""

from __future__ import annotations

from . import breaking, lint
from .faults import Level
from .rules import Rule

#: Faults that keep a file from being resolved; what finds them is the reading itself.
FAULTS = tuple(
    Rule(id_, Level.SCHEMA, purpose, example)
    for id_, purpose, example in (
        ("yaml-syntax", "a schema is plain YAML: no anchors, aliases or tags", "`name: &a pt2wire`"),
        ("wrong-node", "each key holds what belongs there", "`types: []`"),
        ("wrong-value", "numbers and versions are within their range", "`id: 0`"),
        ("unquoted-version", "8.20 is not taken for 8.2", "`version: 8.20`"),
        ("unknown-key", "a misspelled key is not passed over", "`defualt: null`"),
        ("missing-key", "nothing is left to guess", "a field without `id`"),
        ("duplicate-key", "a name stands for one thing", "two fields `index` in one struct"),
        ("invalid-identifier", "names can stand in code", "a field `min-val`"),
        ("empty-type", "each type says something", "`fields: {}`"),
        ("two-origins", "each addition is PyTorch's or ours", "`since` and `since_revision` at one field"),
        ("bad-type", "types are spelled so that both encodings have them", "`type: list<optional i64>`"),
        ("undefined-type", "each type that is used is there", "`type: Lense`"),
        ("bad-default", "defaults have their field's type", "`type: i64, default: one`"),
        ("union-member", "exactly one member of a union is set", "`type: optional i64` in a union"),
        ("duplicate-id", "an id stands for one field", "two fields with `id: 20` in one struct"),
        ("reserved-id", "an id that was used does not come back", "`id: 20` beside `reserved: {ids: [20]}`"),
        (
            "reserved-name",
            "a name that was used does not come back",
            "a field `x` beside `reserved: {names: [x]}`",
        ),
        ("duplicate-reserved", "no slip leaves a number or name unreserved", "`reserved: {ids: [20, 20]}`"),
    )
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
