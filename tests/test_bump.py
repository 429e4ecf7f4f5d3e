"""A version bump as the keeper of the format does it: edit, one command, and every binding follows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pt2wire
import pytest
from pt2wire.codegen.cli import main
from pt2wire.codegen.model import Schema, Version

from .helpers.artifacts import (
    COMMAND,
    add_field,
    add_member,
    add_own_field,
    add_value,
    adopt_name,
    check_older,
    compendium_files,
    compendium_paths,
    complaint,
    current,
    decoded,
    folder,
    remove_field,
    small_program,
    use_adopted_name,
    use_field,
    use_member,
    use_nothing,
    use_own_field,
    use_value,
)
from .helpers.schema_edits import (
    Bindings,
    Edit,
    adoptable,
    free_id,
    import_generated,
    next_minor,
    removable,
)
from .helpers.schema_page import PAGE, apply_patch, blocks, is_of_schema, section
from .helpers.schemas import ROOT, SCHEMA

HEAD = current()
STORED = compendium_paths(folder(HEAD.schema))


def use_all(program: Any, schema: Schema, types: Any) -> None:
    """A text at the node, sizes as its first argument, a new dtype as its second."""
    use_field(program, schema, types)
    arguments = program.graph_module.graph.nodes[0].inputs
    arguments.append(types.NamedArgument("second", types.Argument.create(as_int=1)))
    use_value(program, schema, types)
    arguments.reverse()
    use_member(program, schema, types)


@dataclass(frozen=True)
class Bump:
    """A bump, a program that uses what is new, and how each language prints that.

    Attributes:
        edit: The change of the schema's text with everything that it demands.
        use: Puts what is new into a program, in the changed classes.
        line: What each language prints from the bytes of that program, behind the numbers of the version.
        python, apache, cpp: Code that makes the line of `program`.
    """

    edit: Callable[[Edit], Edit]
    use: Callable[[Any, Schema, Any], None]
    line: str
    python: str
    apache: str
    cpp: str


NOW, OLDEST, REVISION = HEAD.schema.version, HEAD.schema.oldest_version, HEAD.schema.revision
GONE = removable(HEAD.schema)  # by the major bump
GONE_ID = HEAD.package.ExportedProgram.FIELD_IDS[GONE]
ADOPTED = adoptable(HEAD.schema).name
MINOR, MAJOR = next_minor(HEAD.schema), Version(NOW.major + 1, 0)
BUMPS = {
    "own field": Bump(
        edit=lambda edit: add_own_field(edit.revision()),
        use=use_own_field,
        line=f"from the future by revision {REVISION + 1}",
        python="f'{program.from_future} by revision {program.writer.revision}'",
        apache="f'{program.from_future} by revision {program.writer.revision}'",
        cpp='std::cout << *program->from_future << " by revision " << program->writer->revision;',
    ),
    "minor": Bump(
        edit=lambda edit: add_value(add_member(add_field(edit.minor()))),
        use=use_all,
        line="from the future 7 FROM_FUTURE",
        python="f'{node.from_future} {first.as_from_future[0].as_int} {second.as_scalar_type.name}'",
        apache="f'{node.from_future} {first.as_from_future[0].as_int} {names[second.as_scalar_type]}'",
        cpp="""
  const auto& node = program->graph_module.graph.nodes[0];
  std::cout << *node.from_future << ' ' << node.inputs[0].arg.as_from_future()[0].as_int() << ' '
            << name(node.inputs[1].arg.as_scalar_type());""",
    ),
    "major": Bump(
        edit=lambda edit: remove_field(edit.major()),
        use=use_nothing,
        line=f"no {GONE}",
        python=f"'still there' if hasattr(program, '{GONE}') else 'no {GONE}'",
        apache=f"'still there' if hasattr(program, '{GONE}') else 'no {GONE}'",
        cpp=f'std::cout << (has_it(*program) ? "still there" : "no {GONE}");',
    ),
    "adopted name": Bump(
        edit=lambda edit: adopt_name(edit.minor().revision()),
        use=use_adopted_name,
        line="7 0",
        python=f"f'{{node.{ADOPTED}}} {{len(node.own_{ADOPTED})}}'",
        apache=f"f'{{node.{ADOPTED}}} {{len(node.own_{ADOPTED})}}'",
        cpp=f"""
  const auto& node = program->graph_module.graph.nodes[0];
  std::cout << *node.{ADOPTED} << ' ' << node.own_{ADOPTED}->size();""",
    ),
}


@dataclass
class Tree:
    """A source tree to make a bump in: schema.yaml, generated/, and the schema before in before.yaml."""

    name: str
    root: Path
    bump: Bump

    def command(self, *argv: str) -> int:
        options = [] if argv[0] == "lint" else ["--out", str(self.root / "generated")]
        if argv[0] == "breaking":
            options = ["--against", str(self.root / "before.yaml")]
        return main([*argv, "--schema", str(self.root / "schema.yaml"), *options])

    @cached_property
    def edit(self) -> Edit:
        return self.bump.edit(Edit())

    def line(self) -> str:
        """What every language has to print."""
        schema = self.edit.schema
        return f"{schema.version} {schema.oldest_version} {schema.revision} {self.bump.line}"


def source_tree(root: Path, name: str) -> Tree:
    """A tree as it is before the bump."""
    root.mkdir()
    shutil.copy(SCHEMA, root / "schema.yaml")
    shutil.copy(SCHEMA, root / "before.yaml")
    shutil.copytree(ROOT / "generated", root / "generated", ignore=shutil.ignore_patterns("__pycache__"))
    return Tree(name, root, BUMPS[name])


@pytest.fixture(scope="module", params=list(BUMPS))
def tree(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A tree after the bump: edited, and `generate` run once."""
    tree = source_tree(tmp_path_factory.mktemp("bump") / "tree", request.param)
    (tree.root / "schema.yaml").write_text(tree.edit.text, encoding="utf-8")
    assert tree.command("generate") == 0
    return tree


@pytest.fixture(scope="module")
def bound(tree: Tree) -> Bindings:
    return Bindings(tree.edit.schema, import_generated(tree.root / "generated"))


@pytest.fixture(scope="module")
def program(tree: Tree, bound: Bindings) -> Any:
    """A program in the new classes that uses what is new."""
    program = small_program(bound.schema, bound.types)
    tree.bump.use(program, bound.schema, bound.types)
    return program


@pytest.fixture(scope="module")
def encoded(tree: Tree, bound: Bindings, program: Any) -> Path:
    path = tree.root / "program.compact"
    path.write_bytes(bound.codec("thrift_codec").encode(program))
    path.with_suffix(".json").write_bytes(bound.codec("json_codec").encode(program))
    return path


@pytest.mark.parametrize("command", ["check", "lint", "breaking"])
def test_after_generate_all_checks_are_content(tree: Tree, command: str) -> None:
    assert tree.command(command) == 0


#: One bump stands for all where another one would only show the same again.
ONE = ["minor", *(pytest.param(name, marks=pytest.mark.wide) for name in BUMPS if name != "minor")]


@pytest.mark.parametrize("name", ONE)
def test_before_generate_check_says_what_to_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    tree = source_tree(tmp_path / "tree", name)
    assert tree.command("check") == 0
    (tree.root / "schema.yaml").write_text(tree.edit.text, encoding="utf-8")
    capsys.readouterr()
    assert tree.command("check") == 1
    out = capsys.readouterr().out
    assert f"{tree.root}/generated/types.py: stale: not what generate writes" in out
    last = out.splitlines()[-1]
    options = f" --schema {tree.root}/schema.yaml --out {tree.root}/generated"
    assert last.endswith(f"Run: pt2wire schema generate{options}")
    assert main(last.partition("Run: pt2wire schema ")[2].split()) == 0
    assert tree.command("check") == 0


@pytest.mark.parametrize("suffix", [".compact", ".json"])
def test_python_carries_the_change(
    tree: Tree, bound: Bindings, program: Any, encoded: Path, suffix: str
) -> None:
    codec = bound.codec({".compact": "thrift_codec", ".json": "json_codec"}[suffix])
    assert codec.decode(bound.types.ExportedProgram, encoded.with_suffix(suffix).read_bytes()) == program


def test_python_needs_nothing_but_the_folder(tree: Tree, encoded: Path) -> None:
    script = f"""
import sys
from fresh import types as t, thrift_codec
program = thrift_codec.decode(t.ExportedProgram, open({str(encoded)!r}, "rb").read())
node = program.graph_module.graph.nodes[0]
first, second = (node.inputs[index].arg for index in (0, -1))
numbers = "{{}}.{{}} {{}}.{{}} {{}}".format(*t.SCHEMA_VERSION, *t.OLDEST_VERSION, t.REVISION)
assert not [name for name in sys.modules if name.partition(".")[0] in ("torch", "pt2wire", "yaml")]
print(numbers, {tree.bump.python})
"""
    place = tree.root / "python"
    shutil.copytree(tree.root / "generated", place / "fresh", dirs_exist_ok=True)
    assert run_python(script, place) == tree.line()


def test_the_idl_carries_the_change(tree: Tree, encoded: Path) -> None:
    out = tree.root / "apache"
    out.mkdir(exist_ok=True)
    idl = tree.root / "generated/schema.thrift"
    subprocess.run(["thrift", "-strict", "--gen", "py", "-out", str(out), str(idl)], check=True)
    script = f"""
from pt2wire_idl import constants as c, ttypes as t
from thrift.TSerialization import deserialize
from thrift.protocol.TCompactProtocol import TCompactProtocolFactory
data = open({str(encoded)!r}, "rb").read()
program = deserialize(t.ExportedProgram(), data, protocol_factory=TCompactProtocolFactory())
node = program.graph_module.graph.nodes[0]
first, second = (node.inputs[index].arg for index in (0, -1))
names = t.ScalarType._VALUES_TO_NAMES
numbers = f"{{c.VERSION_MAJOR}}.{{c.VERSION_MINOR}} {{c.OLDEST_VERSION_MAJOR}}.{{c.OLDEST_VERSION_MINOR}}"
print(numbers, c.REVISION, {tree.bump.apache})
"""
    assert run_python(script, out) == tree.line()


@pytest.mark.parametrize("tree", ONE, indirect=True)
def test_the_cpp_header_carries_the_change(tree: Tree, encoded: Path) -> None:
    source = tree.root / "main.cpp"
    source.write_text(f"""
#include <fstream>
#include <iostream>
#include <iterator>
#include "pt2wire/schema.h"
using namespace pt2wire;
template <class T, class = decltype(T::{GONE})> constexpr bool has(int) {{ return true; }}
template <class T> constexpr bool has(...) {{ return false; }}
template <class T> constexpr bool has_it(const T&) {{ return has<T>(0); }}
int main(int, char** argv) {{
  std::ifstream file(argv[1], std::ios::binary);
  std::string data((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto program = decode_compact<ExportedProgram>(Bytes::own(std::move(data)));
  std::cout << schema_version_major << '.' << schema_version_minor << ' ' << oldest_version_major << '.'
            << oldest_version_minor << ' ' << schema_revision << ' ';
  {tree.bump.cpp}
  return program.skipped_fields() != 0;
}}
""")
    includes = [f"-I{tree.root / 'generated/include'}", f"-I{ROOT / 'runtime/include'}"]
    executable = tree.root / "main"
    built = ["g++", "-std=c++17", "-O0", "-Wall", "-Werror", *includes, str(source), "-o", str(executable)]
    done = subprocess.run(built, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert subprocess.check_output([executable, encoded], text=True) == tree.line()


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.name)
def test_files_of_the_old_version_load(tree: Tree, bound: Bindings, path: Path) -> None:
    refusal = refused(tree, path)
    if refusal is not None:
        with pytest.raises(bound.package.CodecError, match=refusal):
            decoded(path, bound)
    elif refused(tree, path.with_suffix(".json")) is not None:
        tree_in_thrift = decoded(path, bound)
        again = bound.codec("json_codec").encode(tree_in_thrift)
        assert bound.codec("json_codec").decode(type(tree_in_thrift), again) == tree_in_thrift
        assert bound.codec("thrift_codec").encode(tree_in_thrift) == path.read_bytes()
        assert again.count(f'"own_{ADOPTED}":'.encode()) == holds(path.with_suffix(".json"))
    else:
        check_older(path, bound)


def refused(tree: Tree, path: Path) -> str | None:
    """What new bindings say of a file of the old version, where they cannot read it."""
    if tree.name == "major" and path.stem == "ExportedProgram":
        return f"ExportedProgram has no field ({GONE_ID}|'{GONE}') "
    if tree.name == "adopted name" and path.suffix == ".json" and holds(path):
        return f"{ADOPTED}: expected a 64-bit integer, found list"
    return None


def holds(path: Path) -> int:
    """How often JSON holds our field, whose name PyTorch adopts: by it alone does JSON know a field."""
    return path.read_text().count(f'"{ADOPTED}":')


# The whole package around the changed bindings, as it would be released after the bump.
NEW_PACKAGE = """
import json, sys, pathlib, pt2wire
assert pt2wire.__file__.startswith({view!r}), pt2wire.__file__
said = {{}}
for path in map(pathlib.Path, sys.argv[1:]):
    read = pt2wire.from_json if path.suffix == ".json" else pt2wire.from_thrift
    try:
        said[path.name] = str(read(path.read_bytes()).schema_version)
    except pt2wire.DeserializeError as error:
        said[path.name] = str(error)
print(json.dumps(said))
"""


@pytest.mark.parametrize("tree", ["major"], indirect=True)
def test_after_a_major_version_programs_are_saved_and_loaded_as_the_page_says(tree: Tree) -> None:
    part = section(PAGE.read_text(), "### A major version")
    (patch,) = (text for language, text in blocks(part) if language == "diff" and not is_of_schema(text))
    (script,) = (text for language, text in blocks(part) if language == "python")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "runtime", tree.root / "runtime", ignore=ignored)
    apply_patch(tree.root, patch)
    assert run_python(script, package_view(tree, tree.root / "runtime")) == ""


def package_view(tree: Tree, runtime: Path) -> Path:
    """A place to import the package from, with the changed bindings."""
    view = tree.root / f"view_{runtime.parent.name}"
    package = view / "pt2wire"
    package.mkdir(parents=True)
    for path in (*runtime.iterdir(), ROOT / "codegen", tree.root / "generated"):
        if path.name != "__pycache__":
            (package / path.name).symlink_to(path)
    return view


def test_the_new_package_reads_old_files_or_refuses_them_by_version(tree: Tree, encoded: Path) -> None:
    view = package_view(tree, ROOT / "runtime")
    paths = [path for path in STORED if path.stem == "ExportedProgram"] + [encoded]
    said = json.loads(run_python(NEW_PACKAGE.format(view=str(view)), view, *map(str, paths)))
    old, new = HEAD.schema.version, tree.edit.schema.version
    assert said.pop(encoded.name) == f"SchemaVersion(major={new.major}, minor={new.minor})"
    if tree.name == "major":
        expected = f"expected format {new} or a later {new.major}, found {old}. Load it with the PyTorch that"
        assert all(expected in text for text in said.values())
    elif tree.name == "adopted name":
        assert f".{ADOPTED}: expected a 64-bit integer, found list" in said.pop("ExportedProgram.json")
        assert set(said.values()) == {f"SchemaVersion(major={old.major}, minor={old.minor})"}
    else:
        assert set(said.values()) == {f"SchemaVersion(major={old.major}, minor={old.minor})"}


OLD_READERS: dict[str, tuple[list[str] | str, list[str] | str]] = {
    # What skips, and what refuses, from Thrift and from JSON.
    "own field": ([f"#{free_id(HEAD.schema, 'ExportedProgram', own=True)}"], ["from_future"]),
    "minor": (
        f"inputs[0].arg: Argument has no member {free_id(HEAD.schema, 'Argument')}",
        "inputs[0].arg: Argument has no member 'as_from_future'",
    ),
    "adopted name": (
        [f"graph_module.graph.nodes[0].#{free_id(HEAD.schema, 'Node')}"],
        f"nodes[0].{ADOPTED}: expected an array, found int 7",
    ),
    "major": (
        f"schema_version: expected format {OLDEST} or a later {NOW.major}, found {MAJOR}. Upgrade pt2wire",
    )
    * 2,
}


def test_old_bindings_skip_what_is_new_or_refuse_it_by_name(tree: Tree, encoded: Path) -> None:
    read = (pt2wire.from_thrift, encoded), (pt2wire.from_json, encoded.with_suffix(".json"))
    for (reader, path), expected in zip(read, OLD_READERS[tree.name], strict=True):
        unknown: list[str] = []
        if isinstance(expected, list):
            reader(path.read_bytes(), unknown=unknown)
            assert unknown == expected
            continue
        with pytest.raises(pt2wire.DeserializeError) as raised:
            reader(path.read_bytes(), unknown=unknown)
        assert expected in str(raised.value)
        assert "pgrade pt2wire" in str(raised.value)


def test_the_bump_asks_for_its_stored_files(tree: Tree, bound: Bindings) -> None:
    problem = complaint(bound.schema, compendium_files(bound))
    numbers = f"version {bound.schema.version}, revision {bound.schema.revision}"
    assert problem == f"There are no stored artifacts of {numbers}. Make and commit them: {COMMAND}"


def forgotten(kind: str) -> Edit:
    """An edit in which something was forgotten."""
    edit = Edit()
    match kind:
        case "the revision":
            return add_own_field(edit)
        case "the version":
            return add_value(add_member(add_field(edit)))
        case "version and since":
            edit = add_field(edit)
            edit.text = edit.text.replace(f'optional string, since: "{MINOR}", ', "optional string, ")
            return edit
        case "the major version":
            return remove_field(edit.minor())
    raise AssertionError(kind)


@pytest.mark.parametrize(
    ("kind", "rules", "hint"),
    [
        ("the revision", ["revision-low", "since-future"], f"Set it to {REVISION + 1}"),
        ("the version", ["since-future"] * 3 + ["version-low"], f'Set `version` to "{MINOR}"'),
        ("version and since", ["since-backdated", "version-low"], f'Give it `since: "{MINOR}"`'),
        ("the major version", ["field-removed", "version-low"], f'Set `version` to "{MAJOR}"'),
    ],
)
def test_what_was_forgotten_is_found_and_the_message_says_what_to_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, rules: list[str], hint: str
) -> None:
    tree = source_tree(tmp_path / "tree", "minor")
    (tree.root / "schema.yaml").write_text(forgotten(kind).text, encoding="utf-8")
    assert tree.command("breaking") == 1
    out = capsys.readouterr().out
    assert sorted(line.rpartition("[")[2].rstrip("]") for line in out.splitlines()) == rules
    assert hint in out
    if "since-future" in rules:
        before = (tree.root / "generated/types.py").read_bytes()
        assert tree.command("generate") == 1
        assert "[since-future]" in capsys.readouterr().out
        assert (tree.root / "generated/types.py").read_bytes() == before


def test_an_edit_of_generated_code_is_found_and_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = source_tree(tmp_path / "tree", "minor")
    names = ("types.py", "schema.thrift", "include/pt2wire/schema.h", "schema.json")
    before = {path: path.read_text() for path in (tree.root / "generated" / name for name in names)}
    for path, text in before.items():
        path.write_text(text.replace("torch_version", "pytorch_version"))
    assert tree.command("check") == 1
    out = capsys.readouterr().out
    for path in before:
        assert f"{path}: stale: not what generate writes" in out
    assert out.count("pytorch_version") >= len(before)
    assert "Run: pt2wire schema generate" in out.splitlines()[-1]
    assert tree.command("generate") == 0
    assert {path: path.read_text() for path in before} == before


def run_python(script: str, place: Path, *arguments: str) -> str:
    """Runs a script in a process of its own, in which `place` is searched first."""
    environment = {**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=place)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
