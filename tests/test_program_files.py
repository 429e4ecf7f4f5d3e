"""Files of programs in any format: every command tells by the first bytes what a file is."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pt2wire
import pytest
import torch
from pt2wire.cli import run
from pt2wire.generated import types

from .helpers.archives import linear_archive, linear_program, saved, torch_saved


def _tree() -> types.ExportedProgram:
    return pt2wire.to_tree(linear_program())


#: Content, whether weights are in it.
CONTENTS: dict[str, tuple[Callable[[], bytes], bool]] = {
    "pt2": (linear_archive, True),
    "PyTorch's pt2": (lambda: torch_saved(linear_program()), True),
    "JSON": (lambda: pt2wire.to_json(_tree()), False),
    "JSON behind blanks": (lambda: b" \r\n\t" + pt2wire.to_json(_tree()), False),
    "Thrift": (lambda: pt2wire.to_thrift(_tree()), False),
}


@pytest.fixture(params=CONTENTS)
def content(request: pytest.FixtureRequest) -> tuple[bytes, bool]:
    make, weights = CONTENTS[request.param]
    return make(), weights


@pytest.mark.parametrize("name", ["program", "m.pt2", "m.json", "m.compact"])
def test_every_command_reads_it_whatever_it_is_called(
    content: tuple[bytes, bool], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, same = tmp_path / name, tmp_path / "same.pt2"
    file.write_bytes(content[0])
    same.write_bytes(linear_archive())
    assert run(["inspect", str(file), "--json"]) == 0
    (summary,) = json.loads(capsys.readouterr().out)
    assert summary["operators"]["aten.linear.default"] == 1
    assert len(summary["weights"]) == (5 if content[1] else 0)
    assert run(["validate", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: 0 findings\n"
    assert run(["diff", str(same), str(file)]) == 0
    compared = "" if content[1] else ", weights not compared"
    assert capsys.readouterr().out == f"0 differences{compared}\n"
    assert run(["convert", str(file), str(tmp_path / "out.json")]) == 0
    assert pt2wire.from_json((tmp_path / "out.json").read_bytes()) == pt2wire.read(same).programs["model"]


def test_pipes_are_read_once(
    content: tuple[bytes, bool], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(content[0]))
    writer.start()
    assert run(["validate", str(pipe)]) == 0
    writer.join()
    assert capsys.readouterr().out == f"{pipe}: 0 findings\n"


@pytest.mark.parametrize("name", ["m", "m.pt2", "m.json", "m.compact"])
@pytest.mark.parametrize("content", [b"", b"junk", b"{]", b"PK\x03\x04", b"\0" * 20])
def test_what_is_no_program_is_a_finding_and_a_failure(
    content: bytes, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    assert run(["validate", str(file), "--json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)
    assert finding["rule"] == "file" and finding["path"].startswith(str(file))
    for words in (["inspect", file], ["diff", file, file], ["convert", file, tmp_path / "out.json"]):
        assert run(list(map(str, words))) == 2
        assert capsys.readouterr().err.startswith(f"pt2wire: {finding['path']}: {finding['message']}")


def test_what_begins_like_no_program_is_called_no_archive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "m.onnx"
    file.write_bytes(b"\x08\x01")
    assert run(["inspect", str(file)]) == 2
    assert capsys.readouterr().err == (
        f"pt2wire: {file}: expected a .pt2 archive (a zip file), found a file that begins with "
        "b'\\x08\\x01'. Is this the right file?\n"
    )


def test_a_file_without_an_end_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", "/dev/zero"]) == 2
    assert capsys.readouterr().err.startswith("pt2wire: /dev/zero")


@pytest.fixture
def several(tmp_path: Path) -> Path:
    path = tmp_path / "several.pt2"
    relu = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    path.write_bytes(saved({"linear": linear_program(), "relu": relu}))
    return path


def test_every_command_takes_one_program_of_several(
    several: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    relu = several.with_name("relu.json")
    assert run(["convert", str(several), str(relu), "--name", "relu"]) == 0
    assert run(["diff", str(several), str(relu), "--name", "relu"]) == 0
    assert run(["diff", str(several), str(relu), "--name", "linear"]) == 1
    assert run(["diff", str(several), str(relu)]) == 1
    capsys.readouterr()
    assert run(["inspect", str(relu), "--name", "relu", "--json"]) == 0
    assert [summary["name"] for summary in json.loads(capsys.readouterr().out)] == ["relu"]


def test_one_program_is_validated_and_no_other(several: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = pt2wire.read(several)
    archive.programs["linear"].graph_module.graph.nodes[0].target = "os.system"
    pt2wire.write(archive, several, allow_unsound=True)
    assert run(["validate", str(several), "--name", "relu"]) == 0
    assert run(["validate", str(several), "--name", "linear"]) == 1
    assert [finding.rule for finding in pt2wire.validate(several, name="linear")] == ["target"]
    assert pt2wire.validate(several, name="relu") == []
    with pytest.raises(TypeError, match="expected name as that of a program, found 3"):
        pt2wire.validate(several, name=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected no name beside a tree"):
        pt2wire.validate(archive.programs["relu"], name="relu")


def test_a_program_that_is_not_there_is_said_alike_by_every_command(
    several: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = f"{several}: expected a program 'other', found 'linear', 'relu'"
    hint = "Pass --name ... to take another one"
    out = several.with_name("out.pt2")
    for words in (["inspect", several], ["diff", several, several], ["convert", several, out]):
        assert run([*map(str, words), "--name", "other"]) == 2
        assert capsys.readouterr().err == f"pt2wire: {message}. {hint}.\n"
    assert run(["validate", str(several), "--name", "other"]) == 1
    assert capsys.readouterr().out == f"{message} [file] {hint}\n{several}: 1 finding\n"
    with pytest.raises(pt2wire.DeserializeError) as caught:
        pt2wire.load(several, name="other")
    assert str(caught.value) == f"{message}. Pass name=... to take another one."


def test_one_program_alone_is_written_without_what_the_others_weigh(several: Path) -> None:
    out = several.with_name("out.pt2")
    assert run(["convert", str(several), str(out), "--name", "relu"]) == 0
    found = pt2wire.read(out)
    assert list(found.programs) == ["relu"]
    assert not [record for record in found.records if "linear" in record or "weight_" in record]
    assert run(["convert", str(several), str(out), "--name", "linear"]) == 0
    assert torch.equal(
        pt2wire.load(out, name="linear").state_dict["linear.weight"],
        linear_program().state_dict["linear.weight"],
    )
