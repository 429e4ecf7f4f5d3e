"""Each lint rule finds what it is for, where it is, and nothing once that is mended."""

from __future__ import annotations

from pathlib import Path

import pytest
from pt2wire.codegen.cli import main
from pt2wire.codegen.faults import Finding, Level
from pt2wire.codegen.lint import MAX_FIELDS, RULES, lint
from pt2wire.codegen.model import Position
from pt2wire.codegen.resolve import load_schema

from .helpers.schemas import HEAD, MARK, SCHEMA, indented, of_one_schema, write_marked

STRUCT = """\
A:
  kind: struct
  since: "8.2"
  doc: A.
  fields:
    x: {id: 10, type: i64, doc: X.}
"""
ENUM = """\
E:
  kind: enum
  since: "8.2"
  doc: E.
  values:
    ZERO: {value: 0, doc: Z.}
"""
UNION = """\
U:
  kind: union
  since: "8.2"
  doc: U.
  fields:
    as_int: {id: 10, type: i64, doc: I.}
"""
OWN = """\
O:
  kind: struct
  since_revision: 1
  doc: O.
  fields:
    x: {id: 10, type: i64, doc: X.}
"""
IN_LISTS_OF_MAPS = f"""\
{STRUCT}    b: {{id: 20, type: "list<map<string, B>>", doc: B.}}
{UNION.replace("U:", "B:")}    of_a: {{id: 20, type: "map<string, A>", doc: A.}}
    of_b: {{id: 30, type: "list<map<string, B>>", doc: B.}}
"""
VALUE_OF_MAP = f"""\
{STRUCT}    a: {{id: 20, type: B, doc: A.}}
{STRUCT.replace("A:", "B:")}    b: {{id: 20, type: "map<string, A>", doc: B.}}
"""
USES = "    e: {id: 30, type: E, doc: E.}\n    u: {id: 40, type: U, doc: U.}\n"


def many_fields(others: int, mark: str = "") -> str:
    """A struct of one field and so many others, the last of them marked."""
    lines = [f"y{n}: {{id: {n}, type: i64, doc: Y.}}" for n in range(20, 20 + others)]
    return indented(STRUCT + "".join(f"    {line}\n" for line in (*lines[:-1], mark + lines[-1])))


def named(line: str) -> str:
    return indented(STRUCT).replace("name: sample", line, 1)


def field(line: str) -> str:
    return indented(STRUCT + f"    {line}\n")


def value(line: str) -> str:
    return indented(STRUCT + USES.splitlines()[0] + f"\n{ENUM}    {line}\n")


def mapped(line: str) -> str:
    """Two enums, the second an extension."""
    first = f"{ENUM}    ONE: {{value: 1, torch: one, c10: One, bits: 8, doc: O.}}\n"
    second = ENUM.replace("E:", "F:").replace('since: "8.2"', "since_revision: 1")
    fields = "    e: {id: 30, type: E, doc: E.}\n"
    ours = "    f: {id: 1000, type: optional F, since_revision: 1, default: null, doc: F.}\n"
    return indented(f"{STRUCT}{fields}{ours}{first}{second}    {line}\n")


def member(line: str) -> str:
    return indented(STRUCT + USES.splitlines()[1] + f"\n{UNION}    {line}\n")


def before_last(line: str) -> str:
    """A schema with one more line of the log, before that of its version."""
    return indented(STRUCT).replace("log:\n", f"log:\n  - {line}\n")


def logged(line: str) -> str:
    """And behind it."""
    return indented(STRUCT).replace("types:\n", f"  - {line}\ntypes:\n")


def noted(note: str, mark: str = "") -> str:
    """What the log notes of 8.20, which brought `A.y`; the name `A.w` has gone."""
    last, types = f'{mark}{{version: "8.20", torch: "2.12.0", note: "{note}"}}', STRUCT + OWN
    grown = types.replace("X.}\n", 'X.}\n    y: {id: 20, type: i64, since: "8.20", default: 0, doc: Y.}\n', 1)
    reserved = grown.replace("  kind", "  reserved: {names: [w]}\n  kind", 1)
    text = indented(reserved).replace('{version: "8.20", torch: "2.12.0", note: First.}', last)
    return text.replace("log:\n", 'log:\n  - {version: "8.2", torch: "2.6.0", note: First.}\n')


def pair(rule: str, before: str, after: str, message: str) -> tuple[str, str, str, str]:
    return rule, before, after, message


# The schema before, with a mark where the finding is; the schema after; a part of the message.
PAIRS = [
    pair(
        "own-id",
        field(f"{MARK}y: {{id: 20, type: optional i64, since_revision: 1, default: null, doc: Y.}}"),
        field("y: {id: 1000, type: optional i64, since_revision: 1, default: null, doc: Y.}"),
        "`A.y` extends the format, as `since_revision` says, and has the id 20",
    ),
    pair(
        "own-id",
        field(f"{MARK}y: {{id: 1000, type: i64, doc: Y.}}"),
        field("y: {id: 999, type: i64, doc: Y.}"),
        "`A.y` has the id 1000, which is kept for those who extend the format",
    ),
    pair(
        "own-member",
        member(f"{MARK}as_o: {{id: 1000, type: bool, since_revision: 1, doc: O.}}"),
        member("as_o: {id: 20, type: bool, doc: O.}"),
        "`U.as_o` extends the format's own union",
    ),
    pair(
        "own-member",
        value(f"{MARK}ONE: {{value: 1, since_revision: 1, doc: O.}}"),
        value("ONE: {value: 1, doc: O.}"),
        "`E.ONE` extends the format's own enum",
    ),
    pair(
        "own-required",
        field(f"{MARK}y: {{id: 1000, type: i64, since_revision: 1, doc: Y.}}"),
        field("y: {id: 1000, type: optional i64, since_revision: 1, default: null, doc: Y.}"),
        "`A.y` extends the format and is not `optional`",
    ),
    pair(
        "own-type",
        indented(f"{STRUCT}    {MARK}y: {{id: 20, type: list<O>, doc: Y.}}\n{OWN}"),
        indented(
            f"{STRUCT}    y: {{id: 1000, type: optional O, since_revision: 1, default: null, doc: Y.}}\n{OWN}"
        ),
        "`A.y` is the format's own, and `O` extends it",
    ),
    pair(
        "own-origin",
        indented(OWN + f'    {MARK}y: {{id: 20, type: i64, since: "8.2", doc: Y.}}\n'),
        indented(OWN + "    y: {id: 20, type: i64, doc: Y.}\n"),
        "`O.y` has `since`, in a type that extends the format",
    ),
    pair(
        "returned-member",
        indented(STRUCT.replace("A:", f"{MARK}A:") + "  reserved: {ids: [20], returned: [y]}\n"),
        indented(STRUCT + "    y: {id: 20, type: i64, doc: Y.}\n  reserved: {ids: [20], returned: [y]}\n"),
        "`A.y` is said to have returned and is not there",
    ),
    pair(
        "returned-member",
        indented(STRUCT.replace("x:", f"{MARK}x:") + "  reserved: {names: [y], returned: [x]}\n"),
        indented(STRUCT + "  reserved: {names: [x], returned: [x]}\n"),
        "`A.x` is said to have returned, but nothing that it has is reserved",
    ),
    pair(
        "returned-member",
        indented(OWN.replace("x:", f"{MARK}x:") + "  reserved: {ids: [10], returned: [x]}\n"),
        indented(OWN + "  reserved: {ids: [20]}\n"),
        "`O.x` extends the format and is said to have returned",
    ),
    pair(
        "since-future",
        field(f'{MARK}y: {{id: 20, type: i64, since: "8.21", default: 0, doc: Y.}}'),
        field('y: {id: 20, type: i64, since: "8.20", default: 0, doc: Y.}'),
        "there since 8.21, but `version` is 8.20",
    ),
    pair(
        "since-future",
        indented(MARK + OWN.replace("since_revision: 1", "since_revision: 2")),
        indented(OWN),
        "there since revision 2, but `revision` is 1",
    ),
    pair(
        "since-order",
        field(f'{MARK}y: {{id: 20, type: i64, since: "8.1", doc: Y.}}'),
        field('y: {id: 20, type: i64, since: "8.3", default: 0, doc: Y.}'),
        "`A.y` is older than `A`",
    ),
    pair(
        "required-late",
        field(f'{MARK}y: {{id: 20, type: i64, since: "8.3", doc: Y.}}'),
        field('y: {id: 20, type: i64, since: "8.2", doc: Y.}'),
        "`A.y` is required since 8.3, and files of 8.2 lack it",
    ),
    pair(
        "oldest-version",
        HEAD.replace('oldest_version: "8.2"', f'{MARK}oldest_version: "7.3"')
        + indented(STRUCT).removeprefix(HEAD),
        indented(STRUCT),
        "`oldest_version` 7.3 is not a version before 8.20",
    ),
    pair(
        "version-log",
        HEAD.replace('version: "8.20"\n', f'{MARK}version: "8.21"\n', 1)
        + indented(STRUCT).removeprefix(HEAD),
        indented(STRUCT),
        "the log has no line for 8.21",
    ),
    pair(
        "version-log",
        indented(STRUCT).replace(
            "types:\n", f'  - {MARK}{{version: "8.2", torch: "2.6.0", note: Old.}}\ntypes:\n'
        ),
        indented(STRUCT).replace("log:\n", 'log:\n  - {version: "8.2", torch: "2.6.0", note: Old.}\n'),
        "the log has 8.2 after 8.20",
    ),
    pair(
        "version-log",
        logged(f'{MARK}{{version: "8.21", torch: "2.13.0", note: Next.}}'),
        logged('{version: "8.20", torch: "2.13.0", note: Next.}'),
        "the log has 8.21, but `version` is 8.20",
    ),
    pair(
        "version-log",
        logged(f'{MARK}{{version: "8.20", torch: "2.12.0", note: First.}}'),
        logged('{version: "8.20", torch: "2.12.1", note: First.}'),
        "the log says twice what torch 2.12.0 writes: 8.20 and 8.20",
    ),
    pair(
        "version-log",
        before_last('{version: "8.19", torch: "2.12.0", note: Last.}').replace(
            '{version: "8.20"', MARK + '{version: "8.20"'
        ),
        before_last('{version: "8.19", torch: "2.11.0", note: Last.}'),
        "the log says twice what torch 2.12.0 writes: 8.19 and 8.20",
    ),
    *(
        pair("log-note", noted(wrong, MARK), noted(right), message)
        for wrong, right, message in (
            ("No addition.", "Adds A.y.", "the log notes `No addition.` of 8.20, which brought `A.y`"),
            ("No change.", "Whatever it takes.", "the log notes `No change.` of 8.20, which brought `A.y`"),
            ("Adds A.y, A.x.", "Adds A.y.", "8.20 added `A.x`, which is there since 8.2"),
            ("Adds A.y, O.x.", "Adds A.y, Gone.", "8.20 added `O.x`, which extends the format"),
            ("Adds A.y, A.z.", "Adds A.y, A.w.", "8.20 added `A.z`, which is not there"),
            ("Adds A.w.", "Adds A.w, A.y.", "`A.y` came with 8.20, and the log does not say so"),
        )
    ),
    *(
        pair("apache-name", bad, good, f"`{name}` has a meaning of its own where Apache's C++")
        for name, bad, good in (
            ("E.type", value(f"{MARK}type: {{value: 1, doc: T.}}"), value("types: {value: 1, doc: T.}")),
            ("E.E", value(f"{MARK}E: {{value: 1, doc: T.}}"), value("F: {value: 1, doc: T.}")),
            ("E.MAX", value(f"{MARK}MAX: {{value: 1, doc: T.}}"), value("MOST: {value: 1, doc: T.}")),
            (
                "A.isset",
                field(f"{MARK}isset: {{id: 20, type: i64, doc: Y.}}"),
                field("y: {id: 20, type: i64, doc: Y.}"),
            ),
            ("TBase", indented(STRUCT.replace("A:", f"{MARK}TBase:", 1)), indented(STRUCT)),
        )
    ),
    pair(
        "keyword",
        field(f"{MARK}lambda: {{id: 20, type: i64, doc: Y.}}"),
        field(Y := "y: {id: 20, type: i64, doc: Y.}"),
        "`A.lambda` is a word of its own in Thrift and Python",
    ),
    pair(
        "keyword",
        field(f"{MARK}template: {{id: 20, type: i64, doc: Y.}}"),
        field(Y),
        "word of its own in C++",
    ),
    pair(
        "keyword", field(f"{MARK}end: {{id: 20, type: i64, doc: Y.}}"), field(Y), "word of its own in Thrift"
    ),
    pair(
        "keyword",
        indented(MARK + STRUCT.replace("A:", "optional:", 1)),
        indented(STRUCT),
        "`optional` is a word of its own in Thrift and Python and schema",
    ),
    pair(
        "keyword",
        value(f"{MARK}None: {{value: 1, doc: O.}}"),
        value("ONE: {value: 1, doc: O.}"),
        "`E.None` is a word of its own in Python",
    ),
    pair(
        "keyword",
        member(f"{MARK}type: {{id: 20, type: i64, doc: T.}}"),
        member("as_type: {id: 20, type: i64, doc: T.}"),
        "`U.type` is a word of its own in Python",
    ),
    pair(
        "keyword",
        named(f"{MARK}name: class"),
        named("name: klass"),
        "`class` is a word of its own in Thrift and C++",
    ),
    pair(
        "reserved-form",
        field(f"{MARK}y__z: {{id: 20, type: i64, doc: Y.}}"),
        field("y_z: {id: 20, type: i64, doc: Y.}"),
        "`A.y__z` has a form",
    ),
    pair(
        "reserved-form",
        field(f"{MARK}_y: {{id: 20, type: i64, doc: Y.}}"),
        field("y_: {id: 20, type: i64, doc: Y.}"),
        "`A._y` has a form",
    ),
    pair(
        "reserved-form",
        value(f"{MARK}_missing_: {{value: 1, doc: O.}}"),
        value("_missing: {value: 1, doc: O.}"),
        "`E._missing_` has a form",
    ),
    pair(
        "reserved-form",
        value(f"{MARK}_One: {{value: 1, doc: O.}}"),
        value("_one: {value: 1, doc: O.}"),
        "`E._One` has a form",
    ),
    pair(
        "keyword",
        indented(STRUCT.replace("A:", f"{MARK}dataclass:", 1)),
        indented(STRUCT),
        "`dataclass` is a word of its own in Python",
    ),
    pair(
        "keyword",
        indented(STRUCT.replace("A:", f"{MARK}json_codec:", 1)),
        indented(STRUCT),
        "`json_codec` is a word of its own in Python",
    ),
    pair(
        "keyword",
        indented(STRUCT.replace("A:", f"{MARK}Weight:", 1)),
        indented(STRUCT),
        "`Weight` is a word of its own in C++",
    ),
    *(
        pair(
            "keyword",
            indented(STRUCT.replace("A:", f"{MARK}{name}:", 1)),
            indented(STRUCT),
            f"`{name}` is a word of its own in C++",
        )
        for name in ("over_budget", "find", "LITTLE_ENDIAN")
    ),
    pair(
        "keyword",
        value(f"{MARK}EINVAL: {{value: 1, doc: O.}}"),
        value("INVALID: {value: 1, doc: O.}"),
        "`E.EINVAL` is a word of its own in C++",
    ),
    pair(
        "keyword",
        field(f"{MARK}mro: {{id: 20, type: i64, doc: Y.}}"),
        member("mro: {id: 20, type: i64, doc: T.}"),
        "`A.mro` is a word of its own in Python",
    ),
    pair(
        "keyword",
        field(f"{MARK}read: {{id: 20, type: i64, doc: Y.}}"),
        field("reads: {id: 20, type: i64, doc: Y.}"),
        "`A.read` is a word of its own in Thrift",
    ),
    pair(
        "too-many-fields",
        member(
            "".join(f"y{n}: {{id: {n}, type: i64, doc: Y.}}\n    " for n in range(100, 99 + MAX_FIELDS))
            + f"{MARK}last: {{id: 900, type: i64, doc: Y.}}"
        ),
        member("y: {id: 20, type: i64, doc: Y.}"),
        "members, more than 64",
    ),
    pair(
        "keyword",
        field(f"{MARK}typeof: {{id: 20, type: i64, doc: Y.}}"),
        field("type_of: {id: 20, type: i64, doc: Y.}"),
        "`A.typeof` is a word of its own in C++",
    ),
    pair(
        "too-many-fields",
        many_fields(MAX_FIELDS, MARK),
        many_fields(MAX_FIELDS - 1),
        "the struct `A` has 65 fields, more than 64",
    ),
    pair(
        "shadowed-type",
        field(f"{MARK}A: {{id: 20, type: i64, doc: Y.}}"),
        field("a: {id: 20, type: i64, doc: Y.}"),
        "`A.A` has the name of a type",
    ),
    pair(
        "short-name",
        member(f"{MARK}of_int: {{id: 20, type: i64, doc: Y.}}"),
        member("of_i: {id: 20, type: i64, doc: Y.}"),
        "`U.of_int` is what makes `as_int` in Python",
    ),
    pair(
        "converted-name",
        field(f"{MARK}X: {{id: 20, type: i64, doc: X.}}"),
        field(Y),
        "`A.X` and `A.x` differ only in case",
    ),
    pair(
        "converted-name",
        indented(STRUCT.replace("A:", "Ab:") + MARK + STRUCT.replace("A:", "AB:")),
        indented(STRUCT.replace("A:", "Ab:") + STRUCT.replace("A:", "B:")),
        "`AB` and `Ab` differ only in case",
    ),
    pair(
        "by-value-cycle",
        field(f"{MARK}a: {{id: 20, type: optional A, default: null, doc: A.}}"),
        field("a: {id: 20, type: list<A>, doc: A.}"),
        "types hold each other by value: A > A",
    ),
    pair(
        "by-value-cycle",
        indented(
            STRUCT
            + f"    {MARK}b: {{id: 20, type: B, doc: B.}}\n"
            + STRUCT.replace("A:", "B:").replace("i64", "A")
        ),
        indented(
            STRUCT
            + "    b: {id: 20, type: list<B>, doc: B.}\n"
            + STRUCT.replace("A:", "B:").replace("i64", "A")
        ),
        "types hold each other by value: A > B > A",
    ),
    pair(
        "map-cycle",
        indented(IN_LISTS_OF_MAPS.replace("    b:", f"    {MARK}b:")),
        indented(IN_LISTS_OF_MAPS.replace("list<map<string, B>>", "map<string, list<B>>")),
        "types hold each other in maps or by value: A > B > A",
    ),
    pair(
        "map-cycle",
        indented(VALUE_OF_MAP.replace("    b:", f"    {MARK}b:")),
        indented(VALUE_OF_MAP.replace('"map<string, A>"', "list<A>")),
        "types hold each other in maps or by value: B > A > B",
    ),
    pair(
        "rounded-default",
        field(f"{MARK}y: {{id: 20, type: double, default: 1e-20, doc: Y.}}"),
        field("y: {id: 20, type: double, default: 1e-5, doc: Y.}"),
        "`A.y` has the default 1e-20, which Apache's compiler rounds",
    ),
    pair(
        "field-order",
        field(f"y: {{id: 20, type: i64, default: 0, doc: Y.}}\n    {MARK}z: {{id: 30, type: i64, doc: Z.}}"),
        field("z: {id: 30, type: i64, doc: Z.}\n    y: {id: 20, type: i64, default: 0, doc: Y.}"),
        "`A.z` has no default and stands after `y`",
    ),
    pair(
        "mapped-name",
        value(f"ONE: {{value: 1, c10: One, doc: O.}}\n    {MARK}TWO: {{value: 2, c10: One, doc: T.}}"),
        value("ONE: {value: 1, c10: One, doc: O.}\n    TWO: {value: 2, c10: Two, torch: One, doc: T.}"),
        "`E.TWO` and `ONE` both are `c10: One`",
    ),
    *(
        pair(
            "mapping-split",
            mapped(f"{MARK}ONE: {{value: 1000, torch: one, {wrong}doc: O.}}"),
            mapped("ONE: {value: 1000, torch: one, c10: One, bits: 8, doc: O.}"),
            f"`F.ONE` and `E.ONE` both are `torch: one`, and have {message}",
        )
        for wrong, message in (
            ("c10: Uno, bits: 8, ", "`c10` Uno and One"),
            ("c10: One, bits: 4, ", "`bits` 4 and 8"),
        )
    ),
    pair(
        "missing-bits",
        value(
            "ONE: {value: 1, torch: one, bits: 8, doc: O.}\n"
            f"    {MARK}TWO: {{value: 2, torch: two, doc: T.}}"
        ),
        value("ONE: {value: 1, torch: one, bits: 8, doc: O.}\n    TWO: {value: 2, doc: T.}"),
        "`E.TWO` has `torch` and no `bits`",
    ),
    pair(
        "short-name",
        member(f"as_b: {{id: 20, type: bool, doc: B.}}\n    {MARK}b: {{id: 30, type: bool, doc: B.}}"),
        member("as_bool: {id: 20, type: bool, doc: T.}"),
        "`U.b` and `as_b` differ only in `as_`",
    ),
    pair(
        "doc-text",
        field(f'{MARK}y: {{id: 20, type: i64, doc: "A */ end."}}'),
        field('y: {id: 20, type: i64, doc: "A * / end."}'),
        "the doc of `A.y` has */",
    ),
    pair(
        "doc-text",
        field(f"{MARK}y: {{id: 20, type: i64, doc: 'What??/'}}"),
        field("y: {id: 20, type: i64, doc: What}"),
        "the doc of `A.y` has ??/",
    ),
    pair(
        "missing-doc",
        field(f"{MARK}y: {{id: 20, type: i64, doc: TODO.}}"),
        field(Y),
        "`A.y` has no doc",
    ),
    pair(
        "missing-doc",
        indented(MARK + STRUCT.replace("doc: A.", 'doc: " "')),
        indented(STRUCT),
        "`A` has no doc",
    ),
    pair(
        "unused-type",
        indented(STRUCT + MARK + ENUM),
        indented(STRUCT + USES.splitlines()[0] + "\n" + ENUM),
        "no field has the type `E`",
    ),
]


@pytest.mark.parametrize(
    ("rule", "before", "after", "message"), PAIRS, ids=[f"{p[0]}: {p[3]}" for p in PAIRS]
)
def test_a_rule_finds_its_case_and_nothing_afterwards(
    tmp_path: Path, rule: str, before: str, after: str, message: str
) -> None:
    path, position = write_marked(tmp_path, before)
    (finding,) = lint(load_schema(path))
    assert (finding.rule, finding.position) == (rule, position)
    assert message in finding.message
    assert not of_one_schema(finding)
    path, _ = write_marked(tmp_path, after)
    assert lint(load_schema(path)) == []


def test_every_rule_has_a_pair_and_a_purpose() -> None:
    assert {rule.id for rule in RULES} == {rule for rule, *_ in PAIRS}
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert all(rule.purpose for rule in RULES)


def blocking() -> list[tuple[str, str]]:
    """One pair of each rule that keeps `generate` from writing."""
    levels = {rule.id: rule.level for rule in RULES}
    first = {rule: before for rule, before, *_ in reversed(PAIRS) if levels[rule] is not Level.STYLE}
    return list(first.items())


@pytest.mark.parametrize(("rule", "before"), blocking())
def test_generate_writes_nothing_from_a_schema_whose_code_would_not_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rule: str, before: str
) -> None:
    path, position = write_marked(tmp_path, before)
    out = tmp_path / "out"
    assert main(["generate", "--schema", str(path), "--out", str(out)]) == 1
    assert not out.exists()
    assert capsys.readouterr().out.startswith(f"{position}: ")


def test_lint_prints_findings_as_text_with_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, position = write_marked(tmp_path, field(f"{MARK}y: {{id: 20, type: i64, doc: TODO}}"))
    assert main(["lint", "--schema", str(path)]) == 1
    expected = (
        f"{position}: `A.y` has no doc. Say why it exists, in which units and shapes, and who reads it."
    )
    assert capsys.readouterr().out == f"{expected} [missing-doc]\n"


def test_lint_prints_findings_as_github_annotations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, position = write_marked(tmp_path, field(f"{MARK}lambda: {{id: 20, type: i64, doc: Y.}}"))
    assert main(["lint", "--schema", str(path), "--format", "github"]) == 1
    assert capsys.readouterr().out == (
        f"::error file={path},line={position.line},col={position.column},title=keyword::"
        "`A.lambda` is a word of its own in Thrift and Python. Choose another name.\n"
    )


def test_annotations_escape_what_would_end_them() -> None:
    finding = Finding(Position("a,b:c%.yaml", 1, 2), "rule", Level.WIRE, "100 %\nof it")
    assert finding.github() == "::error file=a%2Cb%3Ac%25.yaml,line=1,col=2,title=rule::100 %25%0Aof it."


def test_lint_reports_a_schema_that_does_not_resolve_as_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, position = write_marked(tmp_path, field(f"y: {{id: 20, type: {MARK}Nope, doc: Y.}}"))
    assert main(["lint", "--schema", str(path)]) == 1
    assert capsys.readouterr().out.startswith(f"{position}: the type `Nope` is not defined. ")


def test_lint_of_our_schema_is_silent_but_for_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--schema", str(SCHEMA)]) == 0
    assert (
        capsys.readouterr().out
        == f"{SCHEMA} is fine: {len(load_schema(SCHEMA).types)} types, {len(RULES)} rules\n"
    )


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["lint", "--nonsense"], ["lint", "--format", "xml"]])
def test_wrong_arguments_are_a_failure(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("pt2wire schema: ") and line.endswith(" (see --help)")


@pytest.mark.parametrize("command", ["generate", "check", "lint"])
def test_a_file_that_cannot_be_read_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        assert main([command, "--schema", str(path)]) == 2
        assert str(path) in capsys.readouterr().err
