"""What is wrong with a schema file is found, all of it at once, each with its rule, line and column."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pt2wire.codegen.breaking import breaking
from pt2wire.codegen.cli import main
from pt2wire.codegen.faults import Level, SchemaError
from pt2wire.codegen.lint import lint
from pt2wire.codegen.outputs import render_all
from pt2wire.codegen.resolve import load_schema

from .helpers.schemas import HEAD, MARK, indented, write_marked

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
    ONE: {value: 1, doc: O.}
"""


def field(text: str) -> str:
    """A schema whose struct A has the field x, and one more field."""
    return indented(ENUM + STRUCT + f"    {text}\n")


def in_head(old: str, new: str) -> str:
    assert old in HEAD
    return HEAD.replace(old, new, 1) + "".join(f"  {line}\n" for line in STRUCT.splitlines())


# name of the case -> (the schema with a mark where the fault is, the rule, a part of the message)
FAULTS: dict[str, tuple[str, str, str]] = {
    "an escape for no character": (
        f'name: "a"\nlog: "a\\U{MARK}FFFFFFFF"\n',
        "yaml-syntax",
        "not well-formed YAML",
    ),
    "a quote that is never closed": (
        f'name: a\nlog: {MARK}"b\ntypes: 1\n',
        "yaml-syntax",
        "while scanning a quoted scalar, found unexpected end of stream",
    ),
    "a bracket that is never closed": (
        f"name: a\nlog: {MARK}[b,\n  c\n",
        "yaml-syntax",
        "while parsing a flow sequence, expected ',' or ']', but got '<stream end>'",
    ),
    "a file nested too deeply": (
        f"name: {'[' * 31}{MARK}{'[' * 100_000}",
        "yaml-syntax",
        "nested too deeply",
    ),
    "what does not print": (
        in_head("name: sample", f'name: {MARK}"a\\e\\n"'),
        "invalid-identifier",
        "found `a\\x1b\\n`",
    ),
    "an empty file": (MARK, "yaml-syntax", "empty file"),
    "a list": (f"{MARK}- 1\n", "wrong-node", "expected the schema to be a mapping, found a list"),
    "a tab as indentation": (f"name: a\nx:\n{MARK}\ty: 1\n", "yaml-syntax", "found character '\\t'"),
    "an open bracket": (f"name: [a, b\nversion{MARK}: 1\n", "yaml-syntax", "expected ',' or ']'"),
    "two documents": (
        f"name: a\n{MARK}---\nname: b\n",
        "yaml-syntax",
        "a single document in the stream, but",
    ),
    "an anchor": (f"name: {MARK}&a sample\n", "yaml-syntax", "anchors and aliases"),
    "an alias": (f"name: {MARK}*a\n", "yaml-syntax", "anchors and aliases"),
    "a tag": (
        in_head("name: sample", f"name: {MARK}!!python/name:os.system x"),
        "yaml-syntax",
        "found the tag",
    ),
    "a tag of YAML's own": (
        in_head("revision: 1", f'revision: {MARK}!!int "1"'),
        "yaml-syntax",
        "found the tag 'tag:yaml.org,2002:int'",
    ),
    "a special word": (in_head("note: First.", f"note: {MARK}="), "yaml-syntax", "a special word of YAML's"),
    "a control character": (f"name: a{MARK}\x07\n", "yaml-syntax", "not allowed in YAML"),
    "an unknown key": (
        in_head("revision:", f"{MARK}revison: 2\nrevision:"),
        "unknown-key",
        "`revison` in the schema",
    ),
    "a missing key": (MARK + in_head("revision: 1\n", ""), "missing-key", "the schema has no `revision`"),
    "nothing": (
        in_head("name: sample", f"name:{MARK}"),
        "wrong-node",
        "expected `name` to be a string, found nothing. Put",
    ),
    "a type that is a long word": (
        field(f"y: {{id: 20, type: {MARK}{'Lens' * 99}, doc: Y.}}"),
        "undefined-type",
        "the type `LensLensLensLensLensLensLensLensLensLensLensLensLensLensL...` is not",
    ),
    "a duplicate key": (
        in_head("name: sample", f"name: sample\n{MARK}name: other"),
        "duplicate-key",
        "in line 1",
    ),
    "a duplicate type": (
        indented(STRUCT + MARK + STRUCT),
        "duplicate-key",
        "`A` was already given in line 9",
    ),
    "a duplicate field": (
        field(f"{MARK}x: {{id: 20, type: i64, doc: X.}}"),
        "duplicate-key",
        "`x` was already given",
    ),
    "a key that YAML reads as a boolean": (
        indented(ENUM + f"    {MARK}NO: {{value: 2, doc: N.}}\n"),
        "wrong-node",
        "`NO`, which YAML reads as a boolean",
    ),
    "a key that YAML reads as null": (
        field(f"{MARK}null: {{id: 20, type: i64, doc: X.}}"),
        "wrong-node",
        "`null`, which YAML reads as a null",
    ),
    "a key that is a list": (field(f"? {MARK}[a]\n    : 1"), "wrong-node", "expected a string as key"),
    "an unquoted version": (
        in_head('version: "8.20"', f"version: {MARK}8.20"),
        "unquoted-version",
        'Write "8.20"',
    ),
    "an unquoted since": (
        indented(STRUCT.replace('"8.2"', f"{MARK}8.2")),
        "unquoted-version",
        "`since` 8.2 is a number",
    ),
    "a version of three parts": (in_head('"8.20"\n', f'{MARK}"8.20.1"\n'), "wrong-value", '"MAJOR.MINOR"'),
    "a version with a leading zero": (in_head('"8.20"\n', f'{MARK}"8.02"\n'), "wrong-value", '"MAJOR.MINOR"'),
    "a version of thousands of digits": (
        in_head('"8.20"\n', f'{MARK}"8.{"9" * 5000}"\n'),
        "wrong-value",
        'as "MAJOR.MINOR", at most nine digits each, found "8.99999999999999999999999',
    ),
    "an unquoted version of thousands of digits": (
        in_head('"8.20"\n', f"{MARK}8.{'9' * 5000}\n"),
        "unquoted-version",
        "is a number to YAML",
    ),
    "a number of thousands of digits": (
        in_head("revision: 1", f"revision: {MARK}{'9' * 4000}"),
        "wrong-value",
        "expected `revision` as a decimal integer, found `9999",
    ),
    "half a surrogate pair in a doc": (
        indented(STRUCT.replace("doc: X.", f'doc: {MARK}"\\ud800"')),
        "yaml-syntax",
        "found an escape for half a surrogate pair. Write the character itself",
    ),
    "half a surrogate pair in a note": (
        in_head("note: First.", f'note: {MARK}"\\udfff"'),
        "yaml-syntax",
        "half a surrogate pair",
    ),
    "a surrogate pair in a default": (
        field(f'y: {{id: 20, type: string, doc: Y., default: {MARK}"\\ud83d\\ude00"}}'),
        "yaml-syntax",
        "half a surrogate pair",
    ),
    "no types": (HEAD.replace("types:", f"types: {MARK}{{}}"), "empty-type", "the schema has no types"),
    "a version that is a list": (in_head('"8.20"\n', f"{MARK}[8, 20]\n"), "wrong-node", "to be a string"),
    "a revision in quotes": (
        in_head("revision: 1", f'revision: {MARK}"1"'),
        "wrong-node",
        "to be an integer",
    ),
    "a negative revision": (in_head("revision: 1", f"revision: {MARK}-1"), "wrong-value", "from 0 to"),
    "an octal revision": (
        in_head("revision: 1", f"revision: {MARK}010"),
        "wrong-value",
        "as a decimal integer",
    ),
    "a log that is a mapping": (
        in_head('  - {version: "8.20", torch: "2.12.0", note: First.}', f"  {MARK}a: b"),
        "wrong-node",
        "expected `log` to be a list, found a mapping",
    ),
    "a log line without torch": (
        in_head(
            '{version: "8.20", torch: "2.12.0", note: First.}', f'{MARK}{{version: "8.20", note: First.}}'
        ),
        "missing-key",
        "a log line has no `torch`",
    ),
    "types that are a list": (HEAD + f"  {MARK}- a\n", "wrong-node", "expected `types` to be a mapping"),
    "a type that is a string": (
        indented(f"A: {MARK}struct\n"),
        "wrong-node",
        "expected type `A` to be a mapping",
    ),
    "a type without kind": (
        indented(STRUCT.replace("kind: struct\n  since", f"{MARK}since")),
        "missing-key",
        "type `A` has no `kind`",
    ),
    "an unknown kind": (
        indented(STRUCT.replace("kind: struct", f"kind: {MARK}message")),
        "wrong-value",
        "enum, struct or union, found `message`",
    ),
    "an enum whose kind is misspelled, but for which its users are fine": (
        indented(
            ENUM.replace("kind: enum", f"kind: {MARK}enumm")
            + STRUCT
            + "    e: {id: 20, type: E, default: ONE, doc: E.}\n"
        ),
        "wrong-value",
        "enum, struct or union, found `enumm`",
    ),
    "values in a struct": (
        indented(STRUCT + f"  {MARK}values: {{}}\n"),
        "unknown-key",
        "unknown key `values` in struct `A`",
    ),
    "a type without doc": (
        indented("A:\n  " + MARK + STRUCT.removeprefix("A:\n  ").replace("  doc: A.\n", "")),
        "missing-key",
        "struct `A` has no `doc`",
    ),
    "a doc that is a number": (
        indented(STRUCT.replace("doc: A.", f"doc: {MARK}1")),
        "wrong-node",
        "to be a string, found `1`, an integer",
    ),
    "a type without since": (
        indented(f"{MARK}" + STRUCT.replace('  since: "8.2"\n', "")),
        "missing-key",
        "neither `since` nor `since_revision`",
    ),
    "a type with both origins": (
        indented(STRUCT.replace("  doc: A.\n", f"  since_revision: {MARK}1\n  doc: A.\n")),
        "two-origins",
        "has both `since` and `since_revision`",
    ),
    "a type's name with a hyphen": (
        indented(MARK + STRUCT.replace("A:", "A-B:")),
        "invalid-identifier",
        "`A-B`",
    ),
    "a field's name with a space": (
        field(f"{MARK}y z: {{id: 20, type: i64, doc: Y.}}"),
        "invalid-identifier",
        "`y z`",
    ),
    "a field's name with an umlaut": (
        field(f"{MARK}fü: {{id: 20, type: i64, doc: Y.}}"),
        "invalid-identifier",
        "letters, digits and underscores",
    ),
    "a value's name with a dot": (
        indented(ENUM + f"    {MARK}a.b: {{value: 2, doc: Y.}}\n"),
        "invalid-identifier",
        "`a.b`",
    ),
    "a torch name that is none": (
        indented(ENUM + f"    TWO: {{value: 2, torch: {MARK}a.b, doc: Y.}}\n"),
        "invalid-identifier",
        "`a.b`",
    ),
    "a field without id": (
        field(f"y: {MARK}{{type: i64, doc: Y.}}"),
        "missing-key",
        "field `A.y` has no `id`",
    ),
    "a field without type": (
        field(f"y: {MARK}{{id: 20, doc: Y.}}"),
        "missing-key",
        "field `A.y` has no `type`",
    ),
    "a field's id 0": (
        field(f"y: {{id: {MARK}0, type: i64, doc: Y.}}"),
        "wrong-value",
        "from 1 to 32767, found 0",
    ),
    "a field's id over 16 bits": (
        field(f"y: {{id: {MARK}32768, type: i64, doc: Y.}}"),
        "wrong-value",
        "found 32768",
    ),
    "a field's id in hexadecimal": (
        field(f"y: {{id: {MARK}0x10, type: i64, doc: Y.}}"),
        "wrong-value",
        "decimal",
    ),
    "a field's id in base 60": (
        field(f"y: {{id: {MARK}1:30, type: i64, doc: Y.}}"),
        "wrong-value",
        "decimal",
    ),
    "an enum's value over 32 bits": (
        indented(ENUM + f"    TWO: {{value: {MARK}2147483648, doc: T.}}\n"),
        "wrong-value",
        "found 2147483648",
    ),
    "an id given twice": (
        field(f"{MARK}y: {{id: 10, type: i64, doc: Y.}}"),
        "duplicate-id",
        "has the id 10 of `x`",
    ),
    "a value given twice": (
        indented(ENUM + f"    {MARK}TWO: {{value: 1, doc: T.}}\n"),
        "duplicate-id",
        "has the value 1 of `ONE`",
    ),
    "a reserved id": (
        indented(STRUCT.replace("    x:", f"    {MARK}x:") + "  reserved: {ids: [10]}\n"),
        "reserved-id",
        "takes the reserved id 10",
    ),
    "a reserved name": (
        indented(STRUCT.replace("    x:", f"    {MARK}x:") + "  reserved: {names: [x]}\n"),
        "reserved-name",
        "the name `x` is reserved",
    ),
    "a reserved value": (
        indented(ENUM.replace("    ONE:", f"    {MARK}ONE:") + "  reserved: {ids: [1]}\n"),
        "reserved-id",
        "takes the reserved value 1",
    ),
    "a struct without fields": (
        indented(STRUCT[: STRUCT.index("fields:")] + f"fields: {MARK}{{}}\n"),
        "empty-type",
        "struct `A` has no fields",
    ),
    "an enum without values": (
        indented(ENUM[: ENUM.index("values:")] + f"values: {MARK}{{}}\n"),
        "empty-type",
        "enum `E` has no values",
    ),
    "a reserved id that no field can have": (
        indented(STRUCT + f"  reserved: {{ids: [{MARK}-1]}}\n"),
        "wrong-value",
        "expected a reserved id from 1 to 32767, found -1",
    ),
    "an id reserved twice": (
        indented(STRUCT + f"  reserved: {{ids: [20, 30, {MARK}20]}}\n"),
        "duplicate-reserved",
        "`20` is listed twice under `reserved`",
    ),
    "a member said to have returned twice": (
        indented(STRUCT + f"  reserved: {{names: [x], returned: [x, {MARK}x]}}\n"),
        "duplicate-reserved",
        "`x` is listed twice",
    ),
    "a name reserved twice": (
        indented(STRUCT + f"  reserved: {{names: [y, {MARK}y]}}\n"),
        "duplicate-reserved",
        "`y` is listed twice under `reserved`",
    ),
    "an unknown key in reserved": (
        indented(STRUCT + f"  reserved: {{{MARK}numbers: [1]}}\n"),
        "unknown-key",
        "unknown key `numbers`",
    ),
    "an undefined type": (
        field(f"y: {{id: 20, type: {MARK}Nope, doc: Y.}}"),
        "undefined-type",
        "`Nope` is not defined",
    ),
    "an undefined type in a list": (
        field(f"y: {{id: 20, type: list<{MARK}Nope>, doc: Y.}}"),
        "undefined-type",
        "`Nope`",
    ),
    "an undefined type in quotes": (
        field(f'y: {{id: 20, type: "map<string, {MARK}int>", doc: Y.}}'),
        "undefined-type",
        "or use bool, i64, double, string, binary, integer",
    ),
    "a map with integer keys": (
        field(f'y: {{id: 20, type: "map<{MARK}i64, A>", doc: Y.}}'),
        "bad-type",
        "expected `string`, found `i64`",
    ),
    "a map in braces without quotes": (
        field(f"y: {{id: 20, type: map<string{MARK}, doc: Y.}}"),
        "bad-type",
        "put it in quotes",
    ),
    "an optional element": (
        field(f"y: {{id: 20, type: list<{MARK}optional i64>, doc: Y.}}"),
        "bad-type",
        "only at the start of a type",
    ),
    "a list without end": (
        field(f"y: {{id: 20, type: list<i64{MARK}, doc: Y.}}"),
        "bad-type",
        "found the end",
    ),
    "text behind a type": (
        field(f"y: {{id: 20, type: i64 {MARK}i64, doc: Y.}}"),
        "bad-type",
        "expected the end",
    ),
    "a type too deep": (
        field(f"y: {{id: 20, type: {'list<' * 9}{MARK}i64{'>' * 9}, doc: Y.}}"),
        "bad-type",
        "at most 8 nested containers",
    ),
    "a type that is a list": (
        field(f"y: {{id: 20, type: {MARK}[i64], doc: Y.}}"),
        "wrong-node",
        "to be a string",
    ),
    "a union's member that is optional": (
        indented('U:\n  kind: union\n  since: "8.2"\n  doc: U.\n  fields:\n')
        + f"      y: {{id: 1, type: {MARK}optional i64, doc: Y.}}\n",
        "union-member",
        "neither `optional` nor a default",
    ),
    "a union's member with a default": (
        indented('U:\n  kind: union\n  since: "8.2"\n  doc: U.\n  fields:\n')
        + f"      y: {{id: 1, type: i64, default: {MARK}1, doc: Y.}}\n",
        "union-member",
        "neither `optional` nor a default",
    ),
}

# type -> (defaults that it takes, defaults that it does not)
DEFAULTS: dict[str, tuple[list[str], list[str]]] = {
    "bool": (["true", "false"], ["yes", "1", '"true"', "null", "[]"]),
    "i64": (["0", "-3", "9223372036854775807"], ["9223372036854775808", "1.0", '"1"', "010", "true", "null"]),
    "double": (
        ["0", "-0.0e9", "1.5", "-2e300", "1e5", "5e-324"],
        [".inf", ".nan", "1e999", "-1e400", "1e-400", "-0.01e-330", '"1.5"', "true", "null"],
    ),
    "string": (
        ["a", '""', '"8.20"', '"\\t\\n\\r\\U0001F600"'],
        ["8.20", "1", "true", "null", "[]", '"\\0"', '"\\x7f"', '"\\x85"', '"\\ufeff"'],
    ),
    "binary": (['""'], ["abc", "null"]),
    "list<i64>": (["[]"], ["[1]", "null", "{}"]),
    '"map<string, i64>"': (["{}"], ["{a: 1}", "null", "[]"]),
    "E": (["ZERO", "ONE"], ["TWO", "0", "null"]),
    "B": ([], ["{}", "null", "x"]),
    "optional i64": (["null"], ["0", "[]"]),
    "optional list<i64>": (["null"], ["[]"]),
}
GOOD_DEFAULTS = [(type_, default) for type_, (good, _) in DEFAULTS.items() for default in good]
BAD_DEFAULTS = [(type_, default) for type_, (_, bad) in DEFAULTS.items() for default in bad]
OTHER = STRUCT.replace("A", "B")


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_is_found_where_it_is(tmp_path: Path, case: str) -> None:
    text, rule, message = FAULTS[case]
    path, position = write_marked(tmp_path, text)
    with pytest.raises(SchemaError) as caught:
        load_schema(path)
    (finding,) = caught.value.findings
    assert (finding.rule, finding.position, finding.level) == (rule, position, Level.SCHEMA)
    assert message in finding.text()
    assert finding.text().startswith(f"{position}: ")
    assert finding.text().endswith(f" [{rule}]")


@pytest.mark.parametrize(("type_", "default"), BAD_DEFAULTS)
def test_a_default_that_does_not_fit_is_found(tmp_path: Path, type_: str, default: str) -> None:
    text = indented(
        ENUM + OTHER + STRUCT + f"    y: {{id: 20, type: {type_}, doc: Y., default: {MARK}{default}}}\n"
    )
    path, position = write_marked(tmp_path, text)
    with pytest.raises(SchemaError) as caught:
        load_schema(path)
    (finding,) = caught.value.findings
    assert (finding.rule, finding.position) == ("bad-default", position)
    assert "field `A.y`: expected the default" in finding.message


@pytest.mark.parametrize(("type_", "default"), GOOD_DEFAULTS)
def test_a_default_that_fits_is_taken(tmp_path: Path, type_: str, default: str) -> None:
    text = indented(
        ENUM + OTHER + STRUCT + f"    y: {{id: 20, type: {type_}, doc: Y., default: {default}}}\n"
    )
    path, _ = write_marked(tmp_path, text)
    assert load_schema(path).types["A"].fields[1].default is not None


def test_all_faults_are_reported_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = (
        field("y: {id: 0, type: Nope, doc: 1}")
        .replace('"8.20"\n', "8.20\n")
        .replace("ZERO: {", "ZERO: {extra: 1, ")
    )
    path, _ = write_marked(tmp_path, text)
    with pytest.raises(SchemaError) as caught:
        load_schema(path)
    rules = [finding.rule for finding in caught.value.findings]
    assert rules == ["unquoted-version", "unknown-key", "wrong-value", "undefined-type", "wrong-node"]
    assert str(caught.value).count("\n") == 4


@pytest.mark.parametrize(
    ("old", "new", "rule"), [("value: 1", "value: x", "wrong-node"), ("kind: enum", "kind: e", "wrong-value")]
)
def test_a_fault_in_a_type_does_not_make_its_users_faulty(
    tmp_path: Path, old: str, new: str, rule: str
) -> None:
    path, _ = write_marked(tmp_path, field("y: {id: 20, type: list<E>, doc: Y.}").replace(old, new))
    with pytest.raises(SchemaError) as caught:
        load_schema(path)
    assert [finding.rule for finding in caught.value.findings] == [rule]


def test_bytes_that_are_not_utf8_are_found(tmp_path: Path) -> None:
    path = tmp_path / "schema.yaml"
    path.write_bytes(b"name: a\nversion: \xff\n")
    with pytest.raises(SchemaError, match=r":2:10: expected UTF-8, found the byte 0xff\. \[yaml-syntax\]"):
        load_schema(path)


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_schema(tmp_path / "none.yaml")


#: Lines that stand for each kind of line of the schema, and one whole type of each kind.
SMALL = indented(ENUM + STRUCT + '    y: {id: 20, type: "map<string, list<E>>", default: {}, doc: Y.}\n')
TOKENS = [
    "null",
    "[]",
    "{}",
    "1",
    "-1",
    "8.20",
    '"8.2"',
    "true",
    "x",
    "enum",
    "list<A>",
    "? [a]",
    "&a",
    "*a",
    "!t x",
    '"\\0"',
    '"\\ud800"',
    "9" * 5000,
    "binary, default: ",
    "list<list<list<list<list<E>>>>>",
    "default: ",
    "__x",
    "_missing_",
    "dataclass",
    "e" * 100,
]


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_mutated_schema_resolves_or_gives_findings_with_positions(
    tmp_path: Path, data: st.DataObject
) -> None:
    words = re.split(r"(?<=[\s:{},])", SMALL)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(words) - 1))
        words[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.lists(st.sampled_from(TOKENS + words), max_size=2)
        )
    path = tmp_path / "schema.yaml"
    path.write_text("".join(words))
    lines = path.read_text().count("\n") + 1
    try:
        schema = load_schema(path)
    except SchemaError as error:
        assert error.findings
        assert all(1 <= finding.position.line <= lines + 1 for finding in error.findings)
    else:
        blocking = [finding for finding in lint(schema) if finding.level is not Level.STYLE]
        assert breaking(schema, schema) == []
        if not blocking:
            for name, content in render_all(schema, b"").items():
                if name.endswith(".py"):
                    compile(content, name, "exec")


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_mutated_bytes_resolve_or_give_findings(tmp_path: Path, data: st.DataObject) -> None:
    source = SMALL.encode()
    start = data.draw(st.integers(0, len(source)))
    end = data.draw(st.integers(start, min(len(source), start + 30)))
    path = tmp_path / "schema.yaml"
    path.write_bytes(source[:start] + data.draw(st.binary(max_size=20)) + source[end:])
    try:
        load_schema(path)
    except SchemaError as error:
        assert error.findings


@pytest.mark.parametrize("option", ["--schema", "--out", "--against", "--torch"])
def test_a_name_with_a_nul_is_a_failure(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = {"--out": "check", "--torch": "compare-torch"}.get(option, "breaking")
    arguments = [command, option, "a\0b", *(["--against", "x"] if option == "--schema" else [])]
    assert main(arguments) == 2
    said = f"argument {option}: expected a name without NUL characters, found 'a\\x00b' (see --help)"
    assert capsys.readouterr().err == f"pt2wire schema: {said}\n"
