"""`compare-torch` shows what a torch has that schema.yaml lacks; pasted, it makes the two equal."""

from __future__ import annotations

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pt2wire.codegen.cli import main
from pt2wire.codegen.compare_torch import compare_torch
from pt2wire.codegen.torch_schema import TorchSchemaError, find_torch, read_torch

from .helpers.artifacts import add_field, add_member, add_value, adopt_name
from .helpers.schema_edits import Edit, adoptable, free_id, next_minor, removable
from .helpers.schemas import ROOT, SCHEMA

FILES = ("version.py", "_export/serde/schema.yaml", "_export/serde/export_schema.thrift")
VERSION = importlib.metadata.version("torch")
RELEASE = VERSION.partition("+")[0]
NOW = Edit().schema.version
NEXT = next_minor(Edit().schema)
#: What is free for an addition.
FIELD, MEMBER = free_id(Edit().schema, "Node"), free_id(Edit().schema, "Argument")
VALUE = max(value.value for value in Edit().schema.types["ScalarType"].values) + 1


@pytest.fixture
def torch(tmp_path: Path) -> Path:
    """A folder with the installed torch's schema, to be doctored."""
    if read_torch(find_torch()).version != NOW:
        pytest.skip("the installed torch is of another version than schema.yaml")
    folder = tmp_path / "torch"
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(find_torch() / name, folder / name)
    return folder


def doctor(torch: Path, name: str, *changes: tuple[str, str]) -> None:
    path = next(torch / file for file in FILES if file.endswith(name))
    text = path.read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.write_text(text)


def extend(torch: Path, owner: str, idl: str, plain: str) -> None:
    """Adds a line at the end of a type in the IDL, and lines in the YAML beside it."""
    for name, end, added in (
        ("export_schema.thrift", rf"^\w+ {owner} \{{\n(  .*\n)+", f"  {idl}\n"),
        ("schema.yaml", rf"^{owner}:\n(  .*\n)+", "".join(f"    {line}\n" for line in plain.splitlines())),
    ):
        path = next(torch / file for file in FILES if file.endswith(name))
        (found,) = re.finditer(end, path.read_text(), re.M)
        doctor(torch, name, (found[0], found[0] + added))


def grow(torch: Path) -> None:
    """PyTorch's next minor version: a field, a member, a value, a type, with a default each kind has."""
    extend(torch, "ScalarType", f"REMARK = {VALUE},", f"REMARK: {VALUE}")
    extend(torch, "Argument", f"{MEMBER}: list<SymInt> as_remarks;", "as_remarks:\n  type: List[SymInt]")
    remark = "remark:\n  type: Optional[Remark]\n  default: None"
    extend(torch, "Node", f"{FIELD}: optional Remark remark;", remark)
    extend(torch, "Node", f"{FIELD + 10}: bool hot;", "hot:\n  type: bool\n  default: 'False'")
    doctor(
        torch,
        "export_schema.thrift",
        (
            "struct Node {",
            "struct Remark {\n  10: string text;\n  20: map<string, i64> at;\n}\n\nstruct Node {",
        ),
    )
    doctor(
        torch,
        "schema.yaml",
        (f"- {NOW.minor}\nTREESPEC", f"- {NEXT.minor}\nTREESPEC"),
        (
            "OptionalTensorArgument:\n",
            "Remark:\n  kind: struct\n  fields:\n    text:\n      type: str\n      default: <none>\n"
            "    at:\n      type: Dict[str, int]\n      default: '{}'\nOptionalTensorArgument:\n",
        ),
    )
    doctor(torch, "version.py", (f"'{VERSION}'", "'2.99.0+cpu'"))


def test_schema_yaml_says_what_the_installed_torch_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare-torch", "--schema", str(SCHEMA)]) == 0
    version = read_torch(find_torch()).version
    assert capsys.readouterr().out == f"{SCHEMA} says what torch {RELEASE} says, version {version}\n"


def test_torch_is_not_imported() -> None:
    script = (
        "import sys; from pt2wire.codegen.cli import main; code = main(['compare-torch']);"
        "assert 'torch' not in sys.modules; sys.exit(code)"
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True).returncode == 0


GROWN = f"""\
# schema.yaml describes version {NOW}, torch 2.99.0 writes {NEXT}.

# At the top:
version: "{NEXT}"
# At the end of `log`:
  - version: "{NEXT}"
    torch: "2.99.0"
    note: Adds Remark, ScalarType.REMARK, Argument.as_remarks, Node.remark, Node.hot.

# Under `types`:
  Remark:
    kind: struct
    since: "{NEXT}"
    doc: TODO.
    fields:
      text:
        id: 10
        type: string
        default: "<none>"
        doc: TODO.
      at:
        id: 20
        type: map<string, i64>
        default: {{}}
        doc: TODO.

# At the end of `values` of enum ScalarType, before fields of ours:
# What stands for something in PyTorch gets torch, c10, bits, as others have them.
      REMARK:
        value: {VALUE}
        since: "{NEXT}"
        doc: TODO.

# At the end of `fields` of union Argument, before fields of ours:
      as_remarks:
        id: {MEMBER}
        type: list<SymInt>
        since: "{NEXT}"
        doc: TODO.

# At the end of `fields` of struct Node, before fields of ours:
      remark:
        id: {FIELD}
        type: optional Remark
        since: "{NEXT}"
        default: null
        doc: TODO.
      hot:
        id: {FIELD + 10}
        type: bool
        since: "{NEXT}"
        default: false
        doc: TODO.
"""


def test_what_a_newer_torch_adds_is_shown_as_yaml(torch: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grow(torch)
    assert main(["compare-torch", "--schema", str(SCHEMA), "--torch", str(torch)]) == 1
    assert capsys.readouterr().out == GROWN


def pasted(printed: str) -> Edit:
    """The schema with the YAML where it says."""
    blocks = printed.split("\n\n")
    edit = Edit()
    top, log = re.fullmatch(r"# At the top:\n(.*)\n# At the end of `log`:\n(.*)", blocks[1], re.S).groups()
    edit.replace(f'version: "{NOW}"\noldest', f"{top}\noldest").replace("\ntypes:\n", f"{log}\n\ntypes:\n")
    for block in blocks[2:]:
        heading, _, yaml = block.rstrip("\n").partition("\n")
        if heading == "# Under `types`:":
            edit.replace("\n  ExternKernelNodes:\n", f"\n{yaml}\n\n  ExternKernelNodes:\n")
        else:
            owner = re.fullmatch(r"# At the end of `\w+` of \w+ (\w+), before fields of ours:", heading)[1]
            edit.append(owner, "\n".join(line.removeprefix("      ") for line in yaml.splitlines()))
    return edit


def test_the_yaml_pasted_where_it_says_makes_both_equal(
    torch: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grow(torch)
    main(["compare-torch", "--schema", str(SCHEMA), "--torch", str(torch)])
    edit = pasted(capsys.readouterr().out)
    path = tmp_path / "schema.yaml"
    path.write_text(edit.text, encoding="utf-8")
    assert main(["compare-torch", "--schema", str(path), "--torch", str(torch)]) == 0
    assert main(["breaking", "--schema", str(path), "--against", str(SCHEMA)]) == 0
    # All that is left to do is what no machine can: say what it is for.
    capsys.readouterr()
    assert main(["lint", "--schema", str(path)]) == 1
    assert {line.rpartition("[")[2] for line in capsys.readouterr().out.splitlines()} == {"missing-doc]"}


#: A default of each kind, as PyTorch prints it: `str` of the value.
DEFAULTS = {
    ("i64", "int"): "-7",
    ("bool", "bool"): "True",
    ("double", "float"): "1e-05",
    ("string", "str"): 'a \\ "text": 5',
    ("list<i64>", "List[int]"): "[]",
    ("map<string, Device>", "Dict[str, Device]"): "{}",
    ("ScalarType", "ScalarType"): "5",
    ("optional ScalarType", "Optional[ScalarType]"): "None",
}


def test_defaults_of_every_kind_are_the_same_once_pasted(
    torch: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, ((idl, plain), default) in enumerate(DEFAULTS.items()):
        line = f"new_{number}:\n  type: {plain}\n  default: {json.dumps(default)}"
        extend(torch, "Node", f"{FIELD + number}: {idl} new_{number};", line)
    doctor(torch, "schema.yaml", (f"- {NOW.minor}\nTREESPEC", f"- {NEXT.minor}\nTREESPEC"))
    assert main(["compare-torch", "--schema", str(SCHEMA), "--torch", str(torch)]) == 1
    edit, path = pasted(capsys.readouterr().out), tmp_path / "schema.yaml"
    path.write_text(edit.text)
    assert main(["compare-torch", "--schema", str(path), "--torch", str(torch)]) == 0
    five = next(value.name for value in edit.schema.types["ScalarType"].values if value.value == 5)
    fields = {field.name: field.default for field in edit.schema.types["Node"].fields}
    assert fields["new_6"].value == five


def test_names_that_yaml_takes_for_something_else_are_quoted_and_a_major_version_reads_no_older_files(
    torch: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    major = NOW.major + 1
    extend(torch, "ScalarType", f"off = {VALUE},", f"'off': {VALUE}")
    extend(torch, "Node", f"{FIELD}: ScalarType yes;", f"'yes':\n  type: ScalarType\n  default: '{VALUE}'")
    doctor(torch, "schema.yaml", (f"- {NOW.major}\n- {NOW.minor}\nTREESPEC", f"- {major}\n- 0\nTREESPEC"))
    assert main(["compare-torch", "--schema", str(SCHEMA), "--torch", str(torch)]) == 1
    printed = capsys.readouterr().out
    (oldest,) = re.findall(r"^oldest_version: .*\n", printed, re.M)
    edit, path = pasted(printed.replace(oldest, "")), tmp_path / "schema.yaml"
    path.write_text(re.sub(r"^oldest_version: .*\n", oldest, edit.text, flags=re.M))
    assert main(["compare-torch", "--schema", str(path), "--torch", str(torch)]) == 0
    assert f'oldest_version: "{major}.0"' in path.read_text()


@pytest.mark.parametrize("added", [True, False])
def test_versions_that_no_release_writes_get_their_lines_in_the_log(
    torch: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], added: bool
) -> None:
    if added:
        extend(torch, "Node", f"{FIELD}: optional i64 cost;", "cost:\n  type: Optional[int]\n  default: None")
    doctor(
        torch,
        "schema.yaml",
        (f"- {NOW.minor}\nTREESPEC", f"- {NOW.minor + 3}\nTREESPEC"),
    )
    doctor(torch, "version.py", (f"'{VERSION}'", "'2.99.0+cpu'"))
    assert main(["compare-torch", "--schema", str(SCHEMA), "--torch", str(torch)]) == 1
    edit, path = pasted(capsys.readouterr().out), tmp_path / "schema.yaml"
    path.write_text(edit.text.replace("doc: TODO.", "doc: What is new."))
    assert [line.torch for line in edit.schema.log[-3:]] == ["none", "none", "2.99.0"]
    for words in (["compare-torch", "--torch", str(torch)], ["breaking", "--against", str(SCHEMA)], ["lint"]):
        assert main([*words, "--schema", str(path)]) == 0, capsys.readouterr().out


OURS = adoptable(Edit().schema)
GIVES_WAY = f"""
# These names are ours so far. Rename ours first, in the schema and in the runtime:
#   the type Writer
#   Node.{OURS.name}, which keeps the id {OURS.id}
# JSON knows fields by name alone, so this is a revision of ours. At the top:
revision: {Edit().schema.revision + 1}
"""


def test_names_of_ours_that_pytorch_adopts_are_shown_to_give_way(
    torch: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = f"{OURS.name}:\n  type: Optional[int]\n  default: None"
    extend(torch, "Node", f"{FIELD}: optional i64 {OURS.name};", line)
    doctor(
        torch, "export_schema.thrift", ("struct Node {", "struct Writer {\n  10: i64 x;\n}\n\nstruct Node {")
    )
    writer = "Writer:\n  kind: struct\n  fields:\n    x:\n      type: int\n"
    doctor(torch, "schema.yaml", ("OptionalTensorArgument:\n", f"{writer}OptionalTensorArgument:\n"))
    assert main(["compare-torch", "--schema", str(SCHEMA), "--torch", str(torch)]) == 1
    assert GIVES_WAY in capsys.readouterr().out
    path = tmp_path / "schema.yaml"
    edit = adopt_name(Edit().minor().revision())
    edit.text = re.sub(r"^(  |.* type: .*)\bWriter\b", r"\1OurWriter", edit.text, flags=re.M)
    theirs = "    doc: W.\n    fields:\n      x: {id: 10, type: i64, doc: X.}\n"
    path.write_text(f'{edit.text}\n  Writer:\n    kind: struct\n    since: "{NEXT}"\n{theirs}')
    doctor(torch, "schema.yaml", (f"- {NOW.minor}\nTREESPEC", f"- {NEXT.minor}\nTREESPEC"))
    assert main(["compare-torch", "--schema", str(path), "--torch", str(torch)]) == 0
    assert main(["breaking", "--schema", str(path), "--against", str(SCHEMA)]) == 0


def test_what_comes_back_is_shown_to_be_reserved(
    torch: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "schema.yaml"
    path.write_text(Edit().remove("ExportedProgram", removable(Edit().schema)).text)
    assert main(["compare-torch", "--schema", str(path), "--torch", str(torch)]) == 1
    assert (
        "# These come back, under ids or names that are reserved. Say so beside `ids` and `names`:\n"
        f"#   ExportedProgram: `returned: [{removable(Edit().schema)}]`\n"
    ) in capsys.readouterr().out


INDEX = "    index:\n      type: Optional[int]\n      default: None\n"
#: Changes of the IDL, of the YAML beside it, and what is said then.
CONTRADICTIONS: dict[str, tuple[list[tuple[str, str]], list[tuple[str, str]], str]] = {
    "an id": (
        [("  20: optional i64 index;", "  30: optional i64 index;")],
        [],
        "the id of Device.index is `30` in PyTorch, here `20`",
    ),
    "a type": (
        [("  20: optional i64 index;", "  20: optional string index;")],
        [(INDEX, INDEX.replace("int", "str"))],
        "the type of Device.index is `optional string` in PyTorch, here `optional i64`",
    ),
    "a field that has gone": (
        [("  20: optional i64 index;\n", "")],
        [(INDEX, "")],
        "Device.index is not in PyTorch",
    ),
    "a value": (
        [("UINT64 = 35", "UINT64 = 36")],
        [("UINT64: 35", "UINT64: 36")],
        "the value of ScalarType.UINT64 is `36` in PyTorch, here `35`",
    ),
    "a kind": (
        [("union SymBool {", "struct SymBool {")],
        [("SymBool:\n  kind: union", "SymBool:\n  kind: struct")],
        "SymBool is a struct in PyTorch, here a union",
    ),
    "a default": (
        [],
        [("default: 'False'", "default: 'True'")],
        "the default of Graph.is_single_tensor_return is `true` in PyTorch, here `false`",
    ),
    "a default that has come": (
        [],
        [("    minor:\n      type: int\n", "    minor:\n      type: int\n      default: '0'\n")],
        "the default of SchemaVersion.minor is `0` in PyTorch, here none",
    ),
    "the treespec version": (
        [],
        [("TREESPEC_VERSION: 1", "TREESPEC_VERSION: 2")],
        "treespec_version is 2 in PyTorch, here 1",
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_contradiction_is_named(torch: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    idl, plain, message = CONTRADICTIONS[name]
    doctor(torch, "export_schema.thrift", *idl)
    doctor(torch, "schema.yaml", *plain)
    assert main(["compare-torch", "--schema", str(SCHEMA), "--torch", str(torch)]) == 1
    assert capsys.readouterr().out.splitlines()[2:] == [
        "# These contradict; a change of PyTorch's here is one for a new major version:",
        f"#   {message}",
    ]


@pytest.mark.parametrize(
    ("idl", "plain", "said"),
    [
        (
            "70: double new;",
            "new:\n  type: float\n  default: 'inf'",
            "Node.new has the default inf, and ours are",
        ),
        (
            "70: ScalarType new;",
            "new:\n  type: ScalarType\n  default: '500'",
            "Node.new has the default 500, no value of ScalarType",
        ),
        ("1900: i64 new;", "new:\n  type: int", "Node.new has the id 1900, and those from 1000 up are of"),
    ],
)
def test_what_schema_yaml_cannot_say_is_told(
    torch: Path, capsys: pytest.CaptureFixture[str], idl: str, plain: str, said: str
) -> None:
    extend(torch, "Node", idl, plain)
    assert main(["compare-torch", "--torch", str(torch)]) == 1
    text = capsys.readouterr().out
    assert "# These cannot be pasted as they are:\n" in text
    assert said in text


def test_a_type_that_has_gone_is_a_contradiction(torch: Path) -> None:
    doctor(torch, "export_schema.thrift", ("struct ComplexValue {", "struct Complex {"))
    doctor(torch, "schema.yaml", ("ComplexValue:\n  kind", "Complex:\n  kind"))
    comparison = compare_torch(Edit().schema, read_torch(torch))
    assert comparison.additions == ("Complex",)
    assert comparison.contradictions == ("struct ComplexValue is not in PyTorch",)


def test_fields_of_ours_do_not_count(torch: Path) -> None:
    comparison = compare_torch(Edit().schema, read_torch(torch))
    assert (comparison.additions, comparison.contradictions) == ((), ())


def test_a_schema_ahead_of_the_installed_torch_is_fine(
    torch: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "schema.yaml"
    edit = add_value(add_member(add_field(Edit().minor())))
    path.write_text(edit.text)
    assert main(["compare-torch", "--schema", str(path), "--torch", str(torch)]) == 0
    newer = edit.schema.version
    assert capsys.readouterr().out == (
        f"{path}, version {newer}, is ahead of torch {RELEASE}, version {NOW}, and lacks nothing of it\n"
    )
    doctor(torch, "export_schema.thrift", ("  20: optional i64 index;\n", ""))
    doctor(torch, "schema.yaml", (INDEX, ""))
    assert main(["compare-torch", "--schema", str(path), "--torch", str(torch)]) == 1


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (
            "export_schema.thrift",
            ("struct Device {", "struct Device extends X {"),
            ": expected a type, a field or a value, found `struct Device extends X {`",
        ),
        (
            "export_schema.thrift",
            ("20: optional i64 index;", "20: required i64 index = 3;"),
            "found `20: required i64",
        ),
        ("schema.yaml", ("TREESPEC_VERSION", "TREE_VERSION"), "expected SCHEMA_VERSION and TREESPEC_VERSION"),
        ("schema.yaml", ("TREESPEC_VERSION: 1", "TREESPEC_VERSION: [1"), "expected SCHEMA_VERSION"),
        ("version.py", ("__version__ =", "version ="), "expected a line `__version__ = ...`"),
    ],
)
def test_a_torch_of_another_form_is_a_failure(
    torch: Path, capsys: pytest.CaptureFixture[str], name: str, change: tuple[str, str], message: str
) -> None:
    doctor(torch, name, change)
    assert main(["compare-torch", "--schema", str(SCHEMA), "--torch", str(torch)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (
            "export_schema.thrift",
            ("UINT64 = 35", "UINT64 = 36"),
            "`ScalarType.UINT64` is 36 in the first, 35 in the second",
        ),
        (
            "schema.yaml",
            ("    UINT64: 35\n", ""),
            "`ScalarType.UINT64` is 35 in the first, None in the second",
        ),
        (
            "schema.yaml",
            ("SymBool:\n  kind: union", "SymBool:\n  kind: struct"),
            "`SymBool` is union in the first, struct in",
        ),
        (
            "schema.yaml",
            (INDEX, INDEX.replace("int", "float")),
            "`Device.index` is Optional[int] in the first, Optional[float]",
        ),
        ("schema.yaml", ("ComplexValue:\n  kind", "Complex:\n  kind"), "only the second has `Complex`"),
    ],
)
def test_files_of_pytorchs_that_disagree_are_a_failure(
    torch: Path, capsys: pytest.CaptureFixture[str], name: str, change: tuple[str, str], message: str
) -> None:
    doctor(torch, name, change)
    assert main(["compare-torch", "--schema", str(SCHEMA), "--torch", str(torch)]) == 2
    err = capsys.readouterr().err
    assert "export_schema.thrift and schema.yaml beside it disagree: " in err
    assert message in err


def test_an_empty_file_of_pytorchs_is_a_failure(torch: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (torch / "_export/serde/export_schema.thrift").write_text("")
    assert main(["compare-torch", "--schema", str(SCHEMA), "--torch", str(torch)]) == 2
    assert "disagree: the first has no types\n" in capsys.readouterr().err


def test_no_torch_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["compare-torch", "--schema", str(SCHEMA), "--torch", str(tmp_path)]) == 2
    assert f"pt2wire schema: {tmp_path} is no torch with a schema: " in capsys.readouterr().err
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TorchSchemaError, match="torch is not installed; name the folder of one with --torch"):
        find_torch()
