"""`pt2wire convert`: every way between the three formats, what is left out, what cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pt2wire
import pytest
import torch
from pt2wire.cli import run
from pt2wire.generated import types
from torch import nn
from torch._export.serde.serialize import SerializedArtifact, serialize
from torch._export.serde.serialize import deserialize as torch_deserialize


@pytest.fixture(scope="module")
def program() -> torch.export.ExportedProgram:
    return torch.export.export(nn.Linear(4, 2), (torch.ones(3, 4),))


@pytest.fixture
def model(program: torch.export.ExportedProgram, tmp_path: Path) -> Path:
    path = tmp_path / "m.pt2"
    pt2wire.save(program, path, extra_files={"note": "kept"})
    return path


def convert(*words: object) -> int:
    return run(["convert", *map(str, words)])


def test_json_is_that_of_torch(model: Path, program: torch.export.ExportedProgram) -> None:
    assert convert(model, model.with_suffix(".json")) == 0
    found = json.loads(model.with_suffix(".json").read_bytes())
    assert found == json.loads(serialize(program).exported_program)


def test_torch_reads_the_json(model: Path, program: torch.export.ExportedProgram) -> None:
    assert convert(model, model.with_suffix(".json")) == 0
    theirs = serialize(program)
    content = model.with_suffix(".json").read_bytes()
    again = torch_deserialize(
        SerializedArtifact(content, theirs.state_dict, theirs.constants, theirs.example_inputs)
    )
    assert torch.equal(again.module()(torch.ones(3, 4)), program.module()(torch.ones(3, 4)))


def test_json_and_thrift_there_and_back(model: Path) -> None:
    assert convert(model, model.with_suffix(".json")) == 0
    assert convert(model.with_suffix(".json"), model.with_suffix(".compact")) == 0
    assert convert(model.with_suffix(".compact"), model.with_name("again.json")) == 0
    assert model.with_name("again.json").read_bytes() == model.with_suffix(".json").read_bytes()
    tree = pt2wire.read(model).programs["model"]
    assert pt2wire.from_thrift(model.with_suffix(".compact").read_bytes()) == tree


def test_archive_of_torch_becomes_ours(tmp_path: Path, program: torch.export.ExportedProgram) -> None:
    torch.export.save(program, tmp_path / "theirs.pt2")
    assert convert(tmp_path / "theirs.pt2", tmp_path / "ours.pt2") == 0
    assert "thrift/model.compact" in pt2wire.read(tmp_path / "ours.pt2").records
    for load in (torch.export.load, pt2wire.load):
        again = load(tmp_path / "ours.pt2")
        assert torch.equal(again.module()(torch.ones(3, 4)), program.module()(torch.ones(3, 4)))
    assert pt2wire.validate(tmp_path / "ours.pt2") == []


def test_what_is_left_out_is_said(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = model.with_suffix(".json")
    assert convert(model, target) == 0
    assert (
        capsys.readouterr().err
        == f"pt2wire: {target} leaves out 2 weights, 1 extra file, the example inputs\n"
    )


def test_archive_without_the_weights_it_needs(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = model.with_suffix(".json"), model.with_name("new.pt2")
    assert convert(model, source) == 0
    capsys.readouterr()
    assert convert(source, target) == 2
    assert capsys.readouterr().err == (
        f"pt2wire: {source}: expected the program's weights for an archive, found 2 of 2 missing, "
        "the first is 'weight'. JSON and Thrift files hold no weights: "
        "convert the .pt2 archive that the program came from.\n"
    )
    assert not target.exists()


def test_archive_of_a_program_that_needs_no_weights(tmp_path: Path) -> None:
    ep = torch.export.export(nn.ReLU(), (torch.ones(2),))
    (tmp_path / "relu.json").write_bytes(serialize(ep).exported_program)
    assert convert(tmp_path / "relu.json", tmp_path / "relu.pt2") == 0
    for load in (torch.export.load, pt2wire.load):
        again = load(tmp_path / "relu.pt2")
        assert torch.equal(again.module()(torch.tensor([-1.0, 1.0])), torch.tensor([0.0, 1.0]))


def test_format_by_option(model: Path) -> None:
    target = model.with_name("program")
    assert convert(model, target, "--to", "json") == 0
    assert pt2wire.from_json(target.read_bytes()) == pt2wire.read(model).programs["model"]


def test_a_dash_is_no_file(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model.parent)
    assert convert(model, "-", "--to", "json") == 2
    assert "OUT: expected a file, found '-'" in capsys.readouterr().err
    assert not Path("-").exists()
    assert convert(model, "./-", "--to", "json") == 0
    assert pt2wire.from_json(Path("-").read_bytes()) == pt2wire.read(model).programs["model"]


def test_unknown_suffix(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert convert(model, model.with_suffix(".onnx")) == 2
    message = capsys.readouterr().err
    assert "expected a file that ends in .pt2, .json, .compact, .thrift" in message
    assert "Name the format: --to pt2, json or thrift" in message


def test_several_programs_need_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ep = torch.export.export(nn.ReLU(), (torch.ones(2),))
    pt2wire.save({"a": ep, "b": ep}, tmp_path / "two.pt2")
    assert convert(tmp_path / "two.pt2", tmp_path / "one.json") == 2
    assert capsys.readouterr().err == (
        f"pt2wire: {tmp_path / 'two.pt2'}: expected one program, found 'a', 'b'. Pick one with --name NAME.\n"
    )
    assert convert(tmp_path / "two.pt2", tmp_path / "one.json", "--name", "c") == 2
    assert convert(tmp_path / "two.pt2", tmp_path / "one.json", "--name", "b") == 0
    assert convert(tmp_path / "two.pt2", tmp_path / "one.pt2", "--name", "b") == 0
    assert list(pt2wire.read(tmp_path / "one.pt2").programs) == ["b"]
    assert convert(tmp_path / "two.pt2", tmp_path / "both.pt2") == 0
    assert list(pt2wire.read(tmp_path / "both.pt2").programs) == ["a", "b"]


def test_newer_program_is_converted_only_on_demand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = json.loads(serialize(torch.export.export(nn.ReLU(), (torch.ones(2),))).exported_program)
    plain["schema_version"]["minor"] = types.SCHEMA_VERSION[1] + 1
    plain["of_the_future"] = 1
    source = tmp_path / "newer.json"
    source.write_text(json.dumps(plain))
    assert convert(source, tmp_path / "newer.compact") == 2
    message = capsys.readouterr().err
    assert "found 1 that would be lost, the first is of_the_future" in message
    assert "Pass --drop-unknown to write the program" in message
    with pytest.raises(pt2wire.SerializeError, match=r"Pass drop_unknown=True to write"):
        pt2wire.converting.convert(str(source), str(tmp_path / "newer.compact"))
    assert convert(source, tmp_path / "newer.compact", "--drop-unknown") == 0
    tree = pt2wire.from_thrift((tmp_path / "newer.compact").read_bytes())
    assert (tree.schema_version.major, tree.schema_version.minor) == types.SCHEMA_VERSION


def test_an_unsound_program_becomes_an_archive_only_on_demand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = json.loads(serialize(torch.export.export(nn.ReLU(), (torch.ones(2),))).exported_program)
    plain["graph_module"]["graph"]["nodes"][0]["target"] = "os.system"
    source, target = tmp_path / "unsound.json", tmp_path / "unsound.pt2"
    source.write_text(json.dumps(plain))
    assert convert(source, target) == 2
    message = capsys.readouterr().err
    assert "nodes[0].target: expected an operator" in message and "or pass --allow-unsound if" in message
    assert not target.exists()
    assert convert(source, target, "--allow-unsound") == 0
    assert [finding.rule for finding in pt2wire.validate(target)] == ["target"]


@pytest.mark.parametrize("suffix", [".json", ".compact", ".pt2"])
def test_damaged_source(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / f"bad{suffix}"
    source.write_bytes(b"{]")
    assert convert(source, tmp_path / "out.json") == 2
    error = capsys.readouterr().err
    assert error.startswith(f"pt2wire: {source}") and error.count("\n") == 1
    assert not (tmp_path / "out.json").exists()


def test_old_target_stays_whole_when_the_source_is_damaged(model: Path, tmp_path: Path) -> None:
    before = model.read_bytes()
    (tmp_path / "bad.pt2").write_bytes(before[:100])
    assert convert(tmp_path / "bad.pt2", model) == 2
    assert model.read_bytes() == before
