"""generated/ is what the compiler writes, and any difference is found, with the command that mends it."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pt2wire.codegen.cli import main
from pt2wire.codegen.model import Kind, ListType, NamedType
from pt2wire.codegen.order import by_value_order
from pt2wire.codegen.outputs import compare_files, render_all, write_files
from pt2wire.codegen.python_code import nesting
from pt2wire.codegen.render import MARK
from pt2wire.codegen.resolve import load_schema, parse_schema

from .helpers.schemas import ROOT, SCHEMA, indented

GENERATED = ROOT / "generated"


#: What is written and compared does not depend on how much there is of it.
SMALL = indented("""\
Complex:
  kind: struct
  since: "8.2"
  doc: A number.
  fields:
    real: {id: 10, type: double, doc: Real part.}
    imaginary: {id: 20, type: double, doc: Imaginary part.}
""").encode()


@pytest.fixture(scope="module")
def committed() -> dict[str, bytes]:
    """What is generated from our schema."""
    return render_all(load_schema(SCHEMA), SCHEMA.read_bytes())


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    """What is generated from the small one."""
    return render_all(parse_schema(SMALL, "schema.yaml"), SMALL)


@pytest.fixture
def tree(tmp_path: Path, files: dict[str, bytes]) -> Path:
    """A source tree with only the small schema and what is generated from it."""
    (tmp_path / "schema.yaml").write_bytes(SMALL)
    for path, content in files.items():
        (tmp_path / "generated" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "generated" / path).write_bytes(content)
    return tmp_path


def run(command: str, tree: Path) -> int:
    return main([command, "--schema", str(tree / "schema.yaml")])


def test_what_is_committed_is_what_generate_writes() -> None:
    assert run("check", ROOT) == 0


def test_all_bindings_are_there(committed: dict[str, bytes]) -> None:
    expected = {
        "schema.yaml",
        "schema.json",
        "schema.thrift",
        "types.py",
        "__init__.py",
        "include/pt2wire/schema.h",
    }
    assert expected <= set(committed)


def test_the_copy_of_the_schema_is_equal_byte_for_byte(committed: dict[str, bytes]) -> None:
    assert committed["schema.yaml"] == SCHEMA.read_bytes()


def test_every_file_says_that_it_is_generated(committed: dict[str, bytes]) -> None:
    schema = load_schema(SCHEMA)
    for path, content in committed.items():
        if path in ("schema.yaml", "schema.json"):
            continue
        head = content.decode().splitlines()[:6]
        text = "\n".join(head)
        for expected in (
            MARK,
            "do not edit",
            "pt2wire schema generate",
            f"Schema {schema.version}, revision {schema.revision}",
            schema.digest[:16],
        ):
            assert expected in text, path
        assert str(ROOT) not in content.decode(), path


def test_output_does_not_depend_on_process_or_place(tmp_path: Path, committed: dict[str, bytes]) -> None:
    shutil.copy(SCHEMA, tmp_path / "schema.yaml")
    for seed in ("1", "2"):
        out = tmp_path / seed
        command = [sys.executable, "-m", "pt2wire.codegen", "generate", "--out", str(out)]
        environment = {**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C", "PYTHONUTF8": "0"}
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, stdout=subprocess.DEVNULL)
        assert compare_files(committed, out) == []


def test_layout_and_comments_of_the_yaml_do_not_change_the_digest(tmp_path: Path) -> None:
    text = SCHEMA.read_text()
    path = tmp_path / "schema.yaml"
    path.write_text("# Another comment.\n\n" + text.replace("\nlog:", "\n\n\nlog:"))
    assert load_schema(path).digest == load_schema(SCHEMA).digest
    path.write_text(text.replace("revision: 1\n", "revision: 2\n", 1))
    assert load_schema(path).digest != load_schema(SCHEMA).digest


def test_the_compiler_runs_without_torch_and_without_the_generated_code(tree: Path) -> None:
    blocked = "('torch', 'sympy', 'thrift', 'pt2wire.generated', 'pt2wire.programs')"
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({blocked}))\n"
        "from pt2wire.codegen.cli import main\n"
        f"sys.exit(main(['check', '--schema', {str(tree / 'schema.yaml')!r}]))"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL).returncode == 0


def test_generate_then_check_is_fine_and_generate_again_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, bytes]
) -> None:
    (tmp_path / "schema.yaml").write_bytes(SMALL)
    assert run("generate", tmp_path) == 0
    assert f"(files changed: {len(files)})" in capsys.readouterr().out
    times = {path: (tmp_path / "generated" / path).stat().st_mtime_ns for path in files}
    assert run("check", tmp_path) == 0
    assert "is up to date with" in capsys.readouterr().out
    assert run("generate", tmp_path) == 0
    out = f"{tmp_path / 'generated'} is up to date with {tmp_path / 'schema.yaml'} (files changed: 0)\n"
    assert capsys.readouterr().out == out
    assert times == {path: (tmp_path / "generated" / path).stat().st_mtime_ns for path in files}


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_one_byte_edit_anywhere_is_found(tree: Path, files: dict[str, bytes], data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(files)))
    content = files[path]
    offset = data.draw(st.integers(0, len(content) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != content[offset]))
    target = tree / "generated" / path
    target.write_bytes(content[:offset] + bytes([byte]) + content[offset + 1 :])
    try:
        (difference,) = compare_files(files, tree / "generated")
        assert (difference.path, difference.state) == (path, "stale")
        assert difference.diff
    finally:
        target.write_bytes(content)


@pytest.mark.parametrize("junk", [b"\xff", b"# edited\n", b""], ids=["binary", "text", "cut"])
def test_check_fails_on_an_edit_and_prints_the_diff_and_the_command(
    tree: Path, capsys: pytest.CaptureFixture[str], junk: bytes
) -> None:
    target = tree / "generated/types.py"
    content = target.read_bytes()
    target.write_bytes(content + junk if junk else content[:-1])
    assert run("check", tree) == 1
    out = capsys.readouterr().out
    assert f"{target}: stale" in out
    shown = {
        b"\xff": f"differs from byte {len(content)} on",
        b"# edited\n": "-# edited",
        b"": "differs from byte",
    }
    assert shown[junk] in out
    assert out.endswith(f"Run: pt2wire schema generate --schema {tree / 'schema.yaml'}\n")
    assert run("generate", tree) == 0
    assert run("check", tree) == 0
    assert target.read_bytes() == content


def test_check_finds_a_missing_file(
    tree: Path, files: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    for path in files:
        (tree / "generated" / path).unlink()
        (difference,) = compare_files(files, tree / "generated")
        assert (difference.path, difference.state) == (path, "missing")
        (tree / "generated" / path).write_bytes(files[path])
    (tree / "generated/types.py").unlink()
    assert run("check", tree) == 1
    assert "types.py: missing: generate writes it" in capsys.readouterr().out


def test_check_finds_a_missing_folder(tmp_path: Path, files: dict[str, bytes]) -> None:
    differences = compare_files(files, tmp_path / "none")
    assert [(difference.path, difference.state) for difference in differences] == [
        (path, "missing") for path in files
    ]


def test_an_orphan_is_found_and_removed_only_if_it_was_generated(tree: Path, files: dict[str, bytes]) -> None:
    generated, foreign = tree / "generated/old.py", tree / "generated/include/notes.txt"
    generated.write_text(f"# {MARK}: do not edit.\n")
    foreign.write_text("mine\n")
    cache = tree / "generated/__pycache__/types.cpython-311.pyc"
    cache.parent.mkdir()
    cache.write_bytes(b"")
    differences = compare_files(files, tree / "generated")
    assert [(d.path, d.state) for d in differences] == [("include/notes.txt", "orphan"), ("old.py", "orphan")]
    assert run("check", tree) == 1
    assert run("generate", tree) == 0
    assert not generated.exists()
    assert foreign.exists()
    assert run("check", tree) == 1


@pytest.mark.parametrize("path", ["types.py", "schema.thrift", "schema.yaml", "include/pt2wire/schema.h"])
def test_somebodys_own_file_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    """Code of the same name, or another schema, in a folder that nothing was ever generated into."""
    mine = tmp_path / "out" / path
    mine.parent.mkdir(parents=True)
    mine.write_text("# Mine.\n")
    (tmp_path / "schema.yaml").write_bytes(SMALL)
    arguments = ["generate", "--schema", str(tmp_path / "schema.yaml"), "--out", str(tmp_path / "out")]
    assert main(arguments) == 2
    assert f"{mine} is in the way, and was not generated. Move it elsewhere" in capsys.readouterr().err
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == [mine]
    mine.write_text("\n")  # an empty module, made to be filled
    assert main(arguments) == 0


def snapshot(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_others_generated_further_down_is_left_alone(tree: Path) -> None:
    """Another package may lie below that of a schema."""
    (tree / "generated").rename(tree / "inner")
    assert run("generate", tree) == 0
    (tree / "inner").rename(tree / "generated/inner")
    before = snapshot(tree)
    assert run("generate", tree) == 0
    assert snapshot(tree) == before


@pytest.mark.parametrize("place", [".", "..", "link"])
def test_the_folder_of_the_schema_takes_no_generated_code(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """What was generated there once has a `schema.yaml` that is no copy, but somebody's source."""
    shutil.copytree(tree / "generated", tree, dirs_exist_ok=True)
    (tree / "mine.yaml").write_bytes(SMALL.replace(b"name: sample", b"name: mine"))
    (tree / "link").symlink_to(tree)
    monkeypatch.chdir(tree)
    before = snapshot(tree)
    assert main(["generate", "--schema", "mine.yaml", "--out", place]) == 2
    said = f"pt2wire schema: {place} holds mine.yaml: name a folder for generated code alone with --out\n"
    assert capsys.readouterr().err == said
    assert snapshot(tree) == before


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("thrift", "the installed"),
        ("pt2wire", "the installed"),
        ("yaml", "the installed"),
        ("jinja2", "the installed"),
        ("types", "Python's own"),
        ("json", "Python's own"),
    ],
)
def test_a_folder_that_would_hide_a_package_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, hidden: str
) -> None:
    (tmp_path / "schema.yaml").write_bytes(SMALL)
    arguments = ["generate", "--schema", str(tmp_path / "schema.yaml"), "--out", str(tmp_path / name)]
    assert main(arguments) == 2
    assert f"{tmp_path / name} would hide {hidden} `{name}` from all code" in capsys.readouterr().err
    assert not (tmp_path / name).exists()
    (tmp_path / "__init__.py").touch()  # within a package it has another name
    assert main(arguments) == 0


@pytest.mark.parametrize("name", ["class", "1abc", "a-b", "a.b"])
def test_a_folder_that_python_cannot_import_is_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "schema.yaml").write_bytes(SMALL)
    arguments = ["generate", "--schema", str(tmp_path / "schema.yaml"), "--out", str(tmp_path / name)]
    assert main(arguments) == 0
    assert f"no statement of Python can import a folder called {name}: " in capsys.readouterr().err


def test_a_link_to_itself_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "schema.yaml").write_bytes(SMALL)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert main(["generate", "--schema", str(tmp_path / "schema.yaml"), "--out", str(loop)]) == 2
    said = f"pt2wire schema: {loop}: {os.strerror(errno.ELOOP)}\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("option", ["--out", "--schema"])
def test_an_empty_path_is_no_path(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.chdir(tree)
    before = snapshot(tree)
    assert main(["generate", option, ""]) == 2
    assert f"argument {option}: expected a path, found ''" in capsys.readouterr().err
    assert snapshot(tree) == before


def test_a_folder_that_others_use_takes_no_generated_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "schema.yaml").write_bytes(SMALL)
    mine = tmp_path / "project/README.md"
    mine.parent.mkdir()
    mine.write_text("Mine.\n")
    arguments = ["generate", "--schema", str(tmp_path / "schema.yaml"), "--out", str(mine.parent)]
    assert main(arguments) == 2
    assert f"{mine} is in the way, and was not generated. Move it elsewhere" in capsys.readouterr().err
    assert snapshot(mine.parent) == {mine: b"Mine.\n"}
    mine.unlink()
    assert main(arguments) == 0
    (mine.parent / "schema.thrift").rename(mine.parent / "old.thrift")  # of an earlier version, perhaps
    assert main(arguments) == 0
    assert not (mine.parent / "old.thrift").exists()


def test_a_run_that_is_killed_leaves_whole_files(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tree / "generated/types.py"
    target.write_text(f"# {MARK}: an older one.\n")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "replace", killed)
        run("generate", tree)
    assert target.read_text() == f"# {MARK}: an older one.\n"
    assert [path for path in target.parent.rglob("*") if path.suffix == ".unfinished"] == []
    # Where nothing could be done any more, the next run finds and removes what is left.
    left = target.with_name("schema.yaml.unfinished")
    left.write_bytes(b"")
    assert run("generate", tree) == 0
    assert run("check", tree) == 0
    assert not left.exists()


class Killed(BaseException):
    """What a process that is killed does from then on: nothing."""


def write_until_killed(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes], out: Path, step: int, part: float
) -> bool:
    """Generates until so many files were written, and a part of the next; whether there was a next."""
    write, steps = Path.write_bytes, iter(range(step))

    def written(path: Path, content: bytes) -> int:
        if next(steps, None) is not None:
            return write(path, content)
        write(path, content[: int(part * len(content))])
        raise Killed

    def killed(path: Path, missing_ok: bool = False) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", written)
        patched.setattr(Path, "unlink", killed)
        try:
            write_files(files, out)
        except Killed:
            return True
    return False


@pytest.mark.parametrize("part", [0.0, 0.5, 1.0])
def test_a_run_that_is_killed_anywhere_can_be_repeated_also_after_an_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes], part: float
) -> None:
    edited = SMALL.replace(b"Real part", b"First part").replace(b"Complex", b"Pair")
    after, step = render_all(parse_schema(edited, "schema.yaml"), edited), 0
    while write_until_killed(monkeypatch, files, out := tmp_path / str(step), step, part):
        if step % 2:  # and the next one, too
            write_until_killed(monkeypatch, after, out, step // 2, part)
        write_files(after, out)
        assert compare_files(after, out) == []
        step += 1
    assert step == len(files)


def test_only_what_a_killed_run_may_have_left_is_removed(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tree / "generated/chapter.unfinished"
    mine.write_text("A novel.\n")
    assert run("generate", tree) == 0
    assert mine.read_text() == "A novel.\n"
    (tree / "generated/types.py").unlink()
    (tree / "generated/types.py.unfinished").symlink_to(mine)
    assert run("generate", tree) == 2
    assert "types.py.unfinished is in the way, and is a symbolic link" in capsys.readouterr().err
    assert mine.read_text() == "A novel.\n"


def test_runs_at_once_wait_for_each_other(tree: Path) -> None:
    (tree / "generated/types.py").unlink()
    folder = os.open(tree / "generated", os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    other = threading.Thread(target=run, args=("generate", tree))
    other.start()
    other.join(0.5)
    assert other.is_alive() and not (tree / "generated/types.py").exists()
    os.close(folder)
    other.join()
    assert run("check", tree) == 0


@pytest.mark.parametrize(
    "path",
    ["__pycache__/stray.py", "__pycache__/notes.txt", "__pycache__/more/types.pyc", "include/empty.py"],
)
def test_files_among_compiled_modules_that_do_not_belong_there_are_found(
    tree: Path, files: dict[str, bytes], path: str
) -> None:
    compiled = tree / "generated/__pycache__/types.cpython-311.pyc"
    compiled.parent.mkdir()
    for place in (compiled, compiled.with_suffix(".pyc.140234")):
        place.write_bytes(b"")
    assert compare_files(files, tree / "generated") == []
    stray = tree / "generated" / path
    stray.parent.mkdir(exist_ok=True)
    stray.write_bytes(b"")
    (difference,) = compare_files(files, tree / "generated")
    assert (difference.path, difference.state) == (path, "orphan")


@pytest.mark.parametrize("path", ["include", "more", "types.py", "dangling.py"])
def test_links_are_found_and_not_followed(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    """A folder or file that lies elsewhere would not be committed."""
    place, elsewhere = tree / "generated" / path, tmp_path / "elsewhere"
    if place.exists():
        place.rename(elsewhere)
    elif path == "more":
        elsewhere.mkdir()
        (elsewhere / "old.py").write_text(f"# {MARK}\n")
    place.symlink_to(elsewhere)
    assert run("check", tree) == 1
    said = "a symbolic link, which others cannot follow; remove it, then generate"
    assert f"{place}: link: {said}\n" in capsys.readouterr().out
    if path in ("include", "types.py"):
        assert run("generate", tree) == 2
        said = f"{place} is in the way, and is a symbolic link, which others cannot follow. Move it elsewhere"
        assert said in capsys.readouterr().err
    if path == "more":
        assert run("generate", tree) == 0
        assert (elsewhere / "old.py").exists()
    place.unlink()
    assert run("generate", tree) == 0
    assert run("check", tree) == 0


def test_a_folder_where_a_file_belongs_is_named(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tree / "generated/types.py"
    place.unlink()
    place.mkdir()
    assert run("check", tree) == 1
    assert f"{place}: folder: a folder, where a file belongs; move it elsewhere" in capsys.readouterr().out
    assert run("generate", tree) == 2
    assert f"{place} is in the way, and is a folder, where a file belongs." in capsys.readouterr().err
    place.rmdir()
    assert run("generate", tree) == 0
    assert run("check", tree) == 0


@pytest.mark.parametrize("path", ["more", "include/more/most"])
def test_an_empty_folder_is_found_but_where_python_made_it(
    tree: Path, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    (tree / "generated/__pycache__").mkdir()
    assert run("check", tree) == 0
    place = tree / "generated" / path
    place.mkdir(parents=True)
    assert run("check", tree) == 1
    said = "an empty folder, which no target makes and git does not keep; remove it"
    assert f"{place}: empty: {said}\n" in capsys.readouterr().out
    (place / "__pycache__").mkdir()
    assert run("check", tree) == 0
    (place / "__pycache__").rmdir()
    place.rmdir()
    assert run("check", tree) == (0 if path == "more" else 1)


def test_check_prints_annotations_for_github(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "generated/a,b:c").touch()
    assert main(["check", "--schema", str(tree / "schema.yaml"), "--format", "github"]) == 1
    assert capsys.readouterr().out.startswith(f"::error file={tree / 'generated/a%2Cb%3Ac'}::orphan: ")


def test_annotations_name_files_from_the_top_of_the_repository_and_diffs_are_no_commands(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """GitHub's runner takes a line for a command also behind blanks, as a diff has them."""
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tree.parent))
    monkeypatch.chdir(tree)
    folded = SMALL.replace(b"doc: A number.", b"doc: >-\n      ::notice::y")
    (tree / "schema.yaml").write_bytes(folded)
    assert run("generate", tree) == 0
    copied = tree / "generated/schema.yaml"
    copied.write_bytes(folded.replace(b"fields:", b"fields: # edited"))
    capsys.readouterr()
    assert main(["check", "--format", "github"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.endswith(" ::notice::y") for line in lines)
    (command,) = [line for line in lines if line.lstrip(" ").startswith("::")]
    assert command.startswith(f"::error file={tree.name}/generated/schema.yaml::stale")


def test_a_pipe_in_the_folder_is_found_and_left_alone(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tree / "generated/pipe"
    os.mkfifo(pipe)
    assert run("check", tree) == 1
    assert run("generate", tree) == 0
    assert pipe.is_fifo()
    pipe.rename(tree / "generated/types.py")
    assert run("generate", tree) == 2
    place = tree / "generated/types.py"
    assert f"{place} is in the way, and is a pipe or device, where a file" in capsys.readouterr().err
    assert place.is_fifo()


def test_an_edit_of_the_schema_is_found_in_every_binding(tree: Path) -> None:
    path = tree / "schema.yaml"
    path.write_text(path.read_text().replace("doc: Real part.", "doc: The real part."))
    changed = render_all(load_schema(path), path.read_bytes())
    stale = {difference.path for difference in compare_files(changed, tree / "generated")}
    assert {"schema.yaml", "schema.json", "schema.thrift", "types.py", "include/pt2wire/schema.h"} <= stale
    for name in ("schema.thrift", "types.py", "include/pt2wire/schema.h"):
        assert b"The real part." in changed[name], name


def test_generate_into_a_place_that_cannot_be_written_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    assert main(["generate", "--schema", str(SCHEMA), "--out", str(blocker)]) == 2
    assert str(blocker) in capsys.readouterr().err


COMMANDS = ("generate", "check", "lint", "breaking --against v0.1.0", "compare-torch")


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_name_the_schema_is_that_of_the_working_directory_and_no_other(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Not that of pt2wire itself, though its own source tree has one: a hook would judge that instead."""
    monkeypatch.chdir(tree / "generated/include")
    assert main(command.split()) == 2
    assert capsys.readouterr() == (
        "",
        "pt2wire schema: schema.yaml: no schema here; name one with --schema\n",
    )


def test_check_takes_the_schema_of_the_working_directory(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    assert main(["check"]) == 0
    (tree / "generated/types.py").unlink()
    assert main(["check"]) == 1


def test_many_types_that_lead_to_each_other_take_no_time() -> None:
    """In a ring every type leads to all, in a chain to all behind it: no recursion, no cube of the number."""
    small = parse_schema(SMALL, "schema.yaml")
    (sample,) = small.types.values()
    for count, ring in ((500, True), (600, False)):
        types = {}
        for number in range(count):
            held = NamedType(f"T{(number + 1) % count}", Kind.STRUCT)
            inner = sample.fields[0] if number == count - 1 and not ring else None
            field = inner or replace(sample.fields[0], type=ListType(held) if ring else held)
            types[f"T{number}"] = replace(sample, name=f"T{number}", fields=(field,))
        started = time.process_time()
        ordered = by_value_order(types)
        found = nesting(replace(small, types=types, ordered=ordered))
        assert time.process_time() - started < 4  # by way of cubes, minutes
        assert len(ordered) == count
        assert (len(found.deep), found.height.get("T0", 0)) == ((count, 0) if ring else (0, count))
