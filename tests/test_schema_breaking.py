"""Each rule on breaking changes finds what it is for, where it is, and nothing once that is mended."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pt2wire.codegen import thrift
from pt2wire.codegen.breaking import RULES, breaking
from pt2wire.codegen.cli import main
from pt2wire.codegen.faults import Finding, Level, SchemaError
from pt2wire.codegen.lint import RULES as LINT_RULES
from pt2wire.codegen.model import Position, Schema
from pt2wire.codegen.resolve import parse_schema
from pt2wire.codegen.rule_list import FAULTS

from .helpers.schema_changes import (
    ADOPTED,
    BASE,
    CHOICE,
    FLAG,
    LOG,
    MAJOR,
    MENDED,
    MINE,
    MINOR,
    NOTE,
    OWN,
    PAIRS,
    RENAMED_TWINS,
    REVISION,
    THING,
    TWINS,
    Pair,
    changed,
)
from .helpers.schemas import HEAD, MARK, SCHEMA, of_one_schema, write_marked

IDS = [f"{pair.rule}: {pair.message}" for pair in PAIRS]
BY_ID = {rule.id: rule for rule in RULES}


@pytest.fixture(scope="module")
def before() -> Schema:
    return parse_schema(BASE.encode(), "before.yaml")


def after(changes: dict[str, str]) -> Schema:
    return parse_schema(changed(changes).replace(MARK, "").encode(), "after.yaml")


def marked(changes: dict[str, str]) -> Position:
    start, mark, _ = changed(changes).partition(MARK)
    assert mark, "the place of the finding is not marked"
    return Position("after.yaml", start.count("\n") + 1, len(start) - start.rfind("\n"))


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_a_rule_finds_its_case_and_nothing_afterwards(before: Schema, pair: Pair) -> None:
    rule = BY_ID[pair.rule]
    (report,) = rule.check(before, after(pair.bad))
    assert report.position == marked(pair.bad)
    assert pair.message in report.message
    assert report.hint
    assert list(rule.check(before, after(pair.good))) == []


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_the_finding_is_among_all_with_rule_level_and_place(before: Schema, pair: Pair) -> None:
    findings = breaking(before, after(pair.bad))
    found = [finding for finding in findings if finding.rule == pair.rule]
    assert [(f.level, f.position) for f in found] == [(BY_ID[pair.rule].level, marked(pair.bad))]
    assert findings == sorted(findings, key=lambda finding: finding.position)
    assert not any(of_one_schema(finding) for finding in findings)


def test_a_default_whose_number_changed_is_a_change_of_the_enum_alone(before: Schema) -> None:
    findings = breaking(before, after({"SIX: {value: 6": "SIX: {value: 7"}))
    assert {finding.rule for finding in findings} == {"value-changed", "version-low"}


def test_types_that_are_alike_are_not_taken_for_each_other() -> None:
    """Which of the two became which, only the keeper knows."""
    twins, moved = (BASE.replace(CHOICE, text) for text in (TWINS, RENAMED_TWINS))
    texts = (twins, moved.replace("list<Choice>", "list<Take>"))
    schemas = [parse_schema(text.encode(), "twins.yaml") for text in texts]
    messages = [f.message for f in breaking(*schemas) if f.rule in ("type-removed", "type-renamed")]
    assert messages == ["union `Choice` was removed", "union `Option` was removed"]
    one = parse_schema(twins.replace("  Option", "  Take").encode(), "twins.yaml")
    messages = [f.message for f in breaking(schemas[0], one)]
    assert messages[1:] == ["`Option` was renamed to `Take`"]


def test_a_field_that_keeps_the_name_of_an_adopted_type_means_another_one() -> None:
    field = "own: {id: 1001, type: optional Own, since_revision: 1, default: null, doc: O.}\n"
    texts = [changed(changes).replace(NOTE, f"{NOTE}      {field}") for changes in ({}, ADOPTED | REVISION)]
    (finding,) = breaking(*(parse_schema(text.encode(), "adopted.yaml") for text in texts))
    assert (finding.rule, finding.message) == ("type-changed", "the type of `Thing.own` was Ours and is Own")


#: Types of ours that hold each other, and a field that holds one of them.
_NESTED = """\
  Inner:
    kind: struct
    since_revision: 1
    doc: I.
    fields:
      x: {id: 10, type: i64, doc: X.}
      outer: {id: 20, type: list<Outer>, doc: O.}
  Outer:
    kind: struct
    since_revision: 1
    doc: O.
    fields:
      inner: {id: 10, type: "map<string, list<Inner>>", doc: I.}
"""
_HOLDING = "own: {id: 1001, type: optional Outer, since_revision: 1, default: null, doc: O.}\n"
_GROWN = "      z: {id: 30, type: optional i64, since_revision: 2, default: null, doc: Z.}\n"


def _with_nested(changes: dict[str, str], *, renamed: bool = False, grown: bool = False) -> Schema:
    text = changed(changes).replace(NOTE, f"{NOTE}      {_HOLDING}") + _NESTED
    if grown:
        text = text.replace("type: list<Outer>, doc: O.}\n", f"type: list<Outer>, doc: O.}}\n{_GROWN}")
    if renamed:
        text = text.replace("Inner", "OwnInner").replace("Outer", "OwnOuter")
        text += _NESTED.replace("since_revision: 1", 'since: "8.21"')
    return parse_schema(text.encode(), "nested.yaml")


def test_types_of_ours_whose_names_pytorch_adopts_may_hold_each_other() -> None:
    assert breaking(_with_nested({}), _with_nested(MINOR, renamed=True)) == []


def test_and_may_have_grown_since() -> None:
    grown = _with_nested(MINOR | REVISION, renamed=True, grown=True)
    assert breaking(_with_nested({}), grown) == []
    (finding,) = breaking(_with_nested({}), _with_nested(MINOR, renamed=True, grown=True))
    assert finding.rule == "revision-low"


#: The version after a new major one, which a release wrote.
_SECOND = MAJOR | {
    'version: "8.20"\n': 'version: "9.1"\n',
    LOG: LOG + LOG.replace("8.20", "9.0") + LOG.replace("8.20", "9.1"),
}


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("required-added", {OWN: f"{OWN}      z: {{id: 20, type: i64, since_revision: 2, doc: Z.}}\n"}),
        ("type-changed", {"y: {id: 10, type: i64": "y: {id: 10, type: string"}),
        ("made-optional", {"y: {id: 10, type: i64": "y: {id: 10, type: optional i64"}),
        ("type-removed", {OWN: ""}),
    ],
)
def test_what_ours_came_to_be_after_a_major_version_is_not_what_its_files_have(
    before: Schema, rule: str, change: dict[str, str]
) -> None:
    def found(version: dict[str, str]) -> list[Finding]:
        return [f for f in breaking(before, after(REVISION | change | version)) if f.rule == rule]

    (finding,) = found(_SECOND)
    assert finding.hint == "Undo it, or, where it came with 9.0, compare with a schema of that version"
    assert found(MAJOR) == []
    unwritten = {LOG: _SECOND[LOG].replace('"9.0", torch: "2.12.0"', '"9.0", torch: "none"')}
    assert found(_SECOND | unwritten) == []
    assert found(_SECOND | {'oldest_version: "8.2"': 'oldest_version: "9.1"'}) == []


def test_fields_of_ours_keep_their_order_wherever_they_stand_among_pytorchs() -> None:
    """JSON writes ours behind PyTorch's, and digests of programs too deep for Thrift are of JSON."""
    other = MINE.replace("mine", "other").replace("1000", "1001")
    orders = [f"{MINE}      {other}", f"{other}      {MINE}", MINE]
    texts = [BASE.replace(MINE, order) for order in orders]
    texts[2] = texts[2].replace(FLAG, f"      {other}{FLAG}")
    before, swapped, apart = (parse_schema(text.encode(), "ours.yaml") for text in texts)
    (finding,) = breaking(before, swapped)
    assert finding.rule == "order-changed"
    assert finding.message == "`Thing.mine` moved behind fields that it stood before"
    assert breaking(swapped, apart) == []


def test_an_i64_may_become_an_integer_as_readers_refuse_what_is_longer_and_not_the_reverse() -> None:
    narrow, wide = (
        after({"choices: {id: 30, type: list<Choice>": f"choices: {{id: 30, type: list<{name}>"})
        for name in ("i64", "integer")
    )
    (finding,) = breaking(narrow, wide)
    assert finding.rule == "version-low"
    assert finding.message.endswith("too low for additions to the format: `Thing.choices`")
    (finding,) = (finding for finding in breaking(wide, narrow) if finding.rule == "type-changed")
    assert finding.message == "the type of `Thing.choices` was integer and is i64: JSON may hold more"


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_a_schema_breaks_nothing_of_itself(pair: Pair) -> None:
    schema = after(pair.bad)
    assert breaking(schema, schema) == []


def test_every_rule_has_a_pair() -> None:
    assert {rule.id for rule in RULES} == {pair.rule for pair in PAIRS}


def test_ids_are_unique_over_all_rules() -> None:
    ids = [rule.id for rule in (*FAULTS, *LINT_RULES, *RULES)]
    assert sorted(ids) == sorted(set(ids))
    assert all(rule.purpose and rule.example for rule in (*FAULTS, *LINT_RULES, *RULES))


@pytest.mark.parametrize("name", MENDED)
def test_a_compatible_change_with_its_bump_has_no_finding(before: Schema, name: str) -> None:
    assert breaking(before, after(MENDED[name])) == []


_LINES = BASE.splitlines(keepends=True)


@given(
    st.lists(
        st.tuples(st.integers(0, len(_LINES) - 1), st.sampled_from(_LINES) | st.just("")),
        min_size=1,
        max_size=4,
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_two_schemas_can_be_compared_both_ways(before: Schema, edits: list[tuple[int, str]]) -> None:
    lines = list(_LINES)
    for number, line in edits:
        lines[number] = line
    try:
        schema = parse_schema("".join(lines).encode(), "after.yaml")
    except SchemaError:
        return
    for first, second in ((before, schema), (schema, before), (schema, schema)):
        for finding in breaking(first, second):
            assert finding.position.file == second.places["name"].file
            assert finding.message and finding.hint
    assert breaking(schema, schema) == []
    if schema.digest == before.digest:
        assert breaking(before, schema) == []


# Apache's compiler compares two IDLs as well: what it says, and which of our rules say the same.
AUDIT = {
    r"Enum value \d+ missing in": {"value-removed", "value-changed"},
    r"Struct Field removed for": {"field-removed", "member-removed", "id-changed"},
    r"Struct Field Type Changed for": {"type-changed", "id-reused", "type-renamed", "id-changed"},
    r"Struct Field Requiredness Changed for": {"made-required", "made-optional"},
    r"Default value changed for": {"made-required", "made-optional", "default-changed", "id-reused"},
    r"Struct field name changed for": {"field-renamed", "id-reused", "revision-low"},
    r"Name of the value \d+ changed in": {"value-renamed"},
    r"Namespace \S+ changed in": {"namespace-changed"},
    r"Struct \w+ not found in": {"type-removed", "type-renamed", "kind-changed"},
}
# An id between two others, which the compact protocol takes; versions, which rules of ours judge.
HARMLESS = r"Struct field is added in the middle with|Constant \w+ has different value"
SEEN = {"field-removed", "member-removed", "value-removed", "id-changed", "value-changed", "type-changed"}


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_apaches_compiler_agrees_where_it_can_see(tmp_path: Path, before: Schema, pair: Pair) -> None:
    # It knows no versions: so a major one excuses nothing here.
    changed_schema = replace(after(pair.bad), version=before.version)
    spoken = {finding.rule for finding in breaking(before, changed_schema)}
    said = audit(tmp_path, before, changed_schema)
    for line in said:
        assert any(re.match(pattern, line) and rules & spoken for pattern, rules in AUDIT.items()), line
    if pair.rule in SEEN:
        assert said


@pytest.mark.parametrize("name", [name for name in MENDED if "major" not in name])
def test_apaches_compiler_agrees_that_a_compatible_change_is_one(
    tmp_path: Path, before: Schema, name: str
) -> None:
    said = audit(tmp_path, before, after(MENDED[name]))
    # It does not know why a name gave way: only JSON goes by it, as the higher revision tells.
    assert said == (["Struct field name changed for Id = 1000 in Thing"] if "adopts" in name else [])


def audit(folder: Path, before: Schema, after: Schema) -> list[str]:
    paths = [folder / "before.thrift", folder / "after.thrift"]
    for path, schema in zip(paths, (before, after), strict=True):
        path.write_text(thrift.outputs(schema)["schema.thrift"])
    done = subprocess.run(["thrift", "--audit", *map(str, paths)], capture_output=True, text=True)
    text = done.stdout + done.stderr
    assert (done.returncode == 0) is ("Audit Failure" not in text), text
    lines = re.findall(r"Audit (?:Failure|Warning):[^\]]*\] ?(.*)", text)
    return [line for line in lines if not re.match(HARMLESS, line)]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository whose schema lies in a folder, committed and tagged, then changed."""
    folder = tmp_path / "repository/format"
    folder.mkdir(parents=True)
    (folder / "schema.yaml").write_text(BASE)
    git = ["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "First"], ["tag", "v1"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    (folder / "schema.yaml").write_text(changed({FLAG: ""}))
    return folder


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = main(["breaking", *argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("revision", ["v1", "HEAD"])
def test_the_command_compares_with_a_git_revision(
    repository: Path, capsys: pytest.CaptureFixture[str], revision: str
) -> None:
    path = repository / "schema.yaml"
    code, out, err = run(capsys, "--schema", str(path), "--against", revision)
    assert (code, err) == (1, "")
    assert f"{path}:24:3: field `Thing.flag` (id 40) was removed. Undo it, or, where" in out
    assert out.count("\n") == 3
    assert {line.rpartition("[")[2] for line in out.splitlines()} == {
        "field-removed]",
        "removed-unreserved]",
        "version-low]",
    }


def test_the_command_works_from_within_the_folder(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    code, out, err = run(capsys, "--against", "v1")
    assert (code, err) == (1, "")
    assert out.startswith("schema.yaml:2:1: `version` is 8.20 as before")


def test_git_looks_where_the_schema_is_whatever_a_hook_or_a_link_says(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path / "another"], check=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "another/.git"))
    (tmp_path / "link.yaml").symlink_to(repository / "schema.yaml")
    for path in (repository / "schema.yaml", tmp_path / "link.yaml"):
        code, out, err = run(capsys, "--schema", str(path), "--against", "v1")
        assert (code, err) == (1, "")
        assert "field `Thing.flag` (id 40) was removed" in out


def test_a_renamed_schema_and_a_shallow_clone_are_explained(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clone = tmp_path / "shallow"
    command = ["git", "clone", "-q", "--depth", "1", "--no-tags", repository.as_uri(), clone]
    subprocess.run(command, check=True)
    code, _, err = run(capsys, "--schema", str(clone / "schema.yaml"), "--against", "v1")
    assert code == 2
    assert err.endswith("The clone is shallow, and may lack it: git fetch --unshallow --tags\n")
    (repository / "schema.yaml").rename(repository / "renamed.yaml")
    code, _, err = run(capsys, "--schema", str(repository / "renamed.yaml"), "--against", "v1")
    assert code == 2
    assert err.endswith("write that one to a file first: git show v1:OLD-NAME > before.yaml\n")


def test_the_command_compares_with_a_file_and_annotates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "old.yaml"
    old.write_text(BASE)
    path, place = write_marked(tmp_path, changed(PAIRS[7].bad))
    code, out, _ = run(capsys, "--schema", str(path), "--against", str(old), "--format", "github")
    assert code == 1
    assert f"::error file={path},line={place.line},col={place.column},title=id-changed::the id of" in out


def test_the_command_says_what_it_compared_when_all_is_fine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = write_marked(tmp_path, BASE)
    old = tmp_path / "old.yaml"
    old.write_text(BASE)
    code, out, err = run(capsys, "--schema", str(path), "--against", str(old))
    assert (code, err) == (0, "")
    expected = f"{path}, version 8.20 revision 1, breaks nothing of {old}, version 8.20 revision 1\n"
    assert out == expected


def test_a_change_to_what_lint_finds_endangers_the_wire_is_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "old.yaml"
    old.write_text(BASE)
    as_member = "      as_mine: {id: 1000, type: bool, since_revision: 2, doc: M.}\n"
    path, _ = write_marked(tmp_path, changed(REVISION | {THING: as_member + THING}))
    code, out, _ = run(capsys, "--schema", str(path), "--against", str(old))
    assert code == 1
    assert [line.rpartition("[")[2] for line in out.splitlines()] == ["own-member]"], out


@pytest.mark.parametrize(
    ("against", "message"),
    [
        ("--output=x", "expected a file or a git revision to compare with, found '--output=x'"),
        ("", "found ''. Where there is no release yet, name a branch, such as origin/main"),
        ("nowhere", "nowhere is neither a file nor a git revision that has"),
        ("v1:../..", "neither a file nor a git revision"),
        ("v1..", "v1.. is neither a file nor a git revision that has"),
        ("HEAD^!", "HEAD^! is neither a file nor a git revision that has"),
    ],
)
def test_what_cannot_be_compared_with_is_a_failure(
    repository: Path, capsys: pytest.CaptureFixture[str], against: str, message: str
) -> None:
    code, out, err = run(capsys, "--schema", str(repository / "schema.yaml"), f"--against={against}")
    assert (code, out) == (2, "")
    assert message in err


def test_a_schema_before_with_faults_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = tmp_path / "old.yaml"
    old.write_text(HEAD)
    code, out, err = run(capsys, "--schema", str(SCHEMA), "--against", str(old))
    assert (code, out) == (2, "")
    assert f"pt2wire schema: what to compare with is not a schema itself: {old}:8:7:" in err


def test_a_folder_outside_git_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = write_marked(tmp_path, BASE)
    code, _, err = run(capsys, "--schema", str(path), "--against", "HEAD")
    assert code == 2
    assert "not a git repository" in err


def test_rules_lists_all_with_level_purpose_and_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules"]) == 0
    out = capsys.readouterr().out
    for rule in (*FAULTS, *LINT_RULES, *RULES):
        assert f"  {rule.id} ({rule.level.value}): {rule.purpose}\n      finds {rule.example}\n" in out


def test_findings_of_all_levels_can_be_printed() -> None:
    for level in Level:
        assert Finding(Position("a", 1, 1), "rule", level, "What").text() == "a:1:1: What. [rule]"
