"""`pt2wire inspect`: what a program takes, gives, calls and weighs, for people and for programs."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pt2wire
import pytest
import torch
from pt2wire.cli import plain, run
from pt2wire.expression_parser import parse_expression
from pt2wire.generated import types
from pt2wire.inspecting import summarize, summarize_archive
from pt2wire.spelling import show_expression
from rich.console import Console
from torch import nn

from .helpers.schema_versions import VERSION


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("shift", torch.ones(4), persistent=False)

    def forward(
        self, x: torch.Tensor, scale: float, mode: str, *, skip: None = None
    ) -> tuple[torch.Tensor, int]:
        self.count.add_(1)
        y = torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (self.lin(x),))
        return y * scale + self.shift, x.shape[0] * 2 + 1


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shapes = {"x": {0: torch.export.Dim("n", min=2, max=64)}, "scale": None, "mode": None}
    ep = torch.export.export(Net(), (torch.ones(8, 4), 2.5, "fast"), dynamic_shapes=shapes)
    path = tmp_path_factory.mktemp("inspect") / "net.pt2"
    pt2wire.save(ep.run_decompositions(), path)
    return path


def test_json_agrees_with_the_exported_program(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", str(model), "--json"]) == 0
    (summary,) = json.loads(capsys.readouterr().out)
    ep = torch.export.load(model)
    assert [value["name"] for value in summary["inputs"]] == [
        spec.arg.name for spec in ep.graph_signature.input_specs
    ]
    assert {value["target"]: value["name"] for value in summary["inputs"] if value["target"]} == {
        **{target: name for name, target in ep.graph_signature.inputs_to_parameters.items()},
        **{target: name for name, target in ep.graph_signature.inputs_to_buffers.items()},
    }
    calls = [
        node
        for module in ep.graph_module.modules()
        for node in module.graph.nodes  # type: ignore[union-attr]
        if node.op == "call_function" and node.target is not __import__("operator").getitem
    ]
    assert sum(summary["operators"].values()) == summary["nodes"] == len(calls)
    assert summary["operators"]["higher_order.cond"] == 1
    assert summary["subgraphs"] == 2
    assert summary["torch_version"] == torch.__version__
    assert summary["format"] == VERSION
    assert {weight["name"]: weight["elements"] for weight in summary["weights"]} == {
        name: tensor.numel() for name, tensor in {**ep.state_dict, **ep.constants}.items()
    }
    assert [(symbol["minimum"], symbol["maximum"]) for symbol in summary["symbols"]] == [(2, 64)]


def test_inputs_and_outputs_are_described(model: Path) -> None:
    summary = summarize_archive(pt2wire.read(model))[0]
    symbol = summary.symbols[0].name
    described = {value.name: (value.role, value.type) for value in summary.inputs}
    assert described["x"] == ("user input", f"float32[{symbol}, 4] cpu")
    assert described["scale"] == ("constant input", "2.5")
    assert described["mode"] == ("constant input", "'fast'")
    assert [(value.role, value.target) for value in summary.outputs] == [
        ("buffer mutation", "count"),
        ("user output", None),
        ("user output", None),
    ]
    assert summary.outputs[2].type == "sym_int"
    assert {weight.name: weight.kind for weight in summary.weights} == {
        "lin.weight": "parameter",
        "lin.bias": "parameter",
        "count": "buffer",
        "shift": "constant",
    }


def test_shared_payloads_count_once(tmp_path: Path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(8, 8, bias=False)
            self.b = nn.Linear(8, 8, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.b(self.a(x))
            return result

    pt2wire.save(torch.export.export(Tied(), (torch.ones(2, 8),)), tmp_path / "tied.pt2")
    summary = summarize_archive(pt2wire.read(tmp_path / "tied.pt2"))[0]
    assert summary.stored_bytes == 8 * 8 * 4


def test_tables_have_no_frames_when_piped(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", str(model)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"model: format {VERSION}, torch ")
    assert "  x      user input      float32" in "\n".join(lines)
    assert any(line.split() == ["1", "higher_order.cond"] for line in lines)
    assert all(line.isprintable() and line.isascii() for line in lines)


def test_tables_have_frames_on_a_terminal(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr("pt2wire.cli._terminal", Console(file=out, force_terminal=True, width=100))
    assert run(["inspect", str(model), "--no-weights"]) == 0
    assert "Operators" in out.getvalue() and "│" in out.getvalue()
    assert "lin.weight" not in out.getvalue()


def test_several_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ep = torch.export.export(nn.ReLU(), (torch.ones(2),))
    pt2wire.save({"encoder": ep, "decoder": ep}, tmp_path / "two.pt2")
    assert run(["inspect", str(tmp_path / "two.pt2")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("encoder: format") and "\n\ndecoder: format" in out
    assert run(["inspect", str(tmp_path / "two.pt2"), "--name", "decoder"]) == 0
    assert capsys.readouterr().out == out.partition("\n\n")[2]
    assert run(["inspect", str(tmp_path / "two.pt2"), "--name", "other"]) == 2
    assert "two.pt2: expected a program 'other', found 'encoder', 'decoder'" in capsys.readouterr().err


def test_file_that_torch_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.export.save(torch.export.export(nn.ReLU(), (torch.ones(2),)), tmp_path / "m.pt2")
    assert run(["inspect", str(tmp_path / "m.pt2")]) == 0
    assert "aten.relu.default" in capsys.readouterr().out


def test_names_from_a_file_do_not_steer_the_terminal(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = pt2wire.read(model).programs["model"]
    tree.torch_version = "\x1b]0;owned\x07[red]"
    (model.parent / "bad.json").write_bytes(pt2wire.to_json(tree))
    assert run(["inspect", str(model.parent / "bad.json")]) == 0
    out = capsys.readouterr().out
    assert r"\x1b]0;owned\x07[red]" in out and "\x1b" not in out


def test_a_long_name_does_not_pad_every_row(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = pt2wire.read(model).programs["model"]
    tree.range_constraints |= {name: types.RangeConstraint(0, 5) for name in ("s" * 100_000, "short")}
    (model.parent / "long.json").write_bytes(pt2wire.to_json(tree))
    assert run(["inspect", str(model.parent / "long.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.endswith("s  0 to 5")] == ["  " + "s" * 100_000 + "  0 to 5"]
    (short,) = (line for line in lines if line.startswith("  short "))
    assert short.split() == ["short", "0", "to", "5"] and len(short) < 200


def test_sizes_that_no_tensor_has_are_bounded(model: Path) -> None:
    archive = pt2wire.read(model)
    for payload in archive.weights["model"].values():
        assert payload.meta.tensor_meta is not None
        payload.meta.tensor_meta.sizes = [types.SymInt.of_int((1 << 63) - 1)] * 1000
    (summary,) = summarize_archive(archive)
    assert {(weight.elements, weight.bytes) for weight in summary.weights if weight.kind != "constant"} == {
        ((1 << 63) - 1, (1 << 63) - 1)
    }


def test_many_inputs_that_are_one_large_tensor_are_described_in_short(model: Path) -> None:
    tree = pt2wire.read(model).programs["model"]
    tree.graph_module.graph.tensor_values["x"].sizes = [types.SymInt.of_int(7)] * 10_000
    specs = tree.graph_module.signature.input_specs
    specs += [spec for spec in specs if spec.type == "user_input"] * 1000
    described = {value.type for value in summarize(tree).inputs if value.name == "x"}
    assert [len(text) for text in described] == [503] and min(described).startswith("float32[7, 7")


def test_inspect_imports_no_torch(model: Path) -> None:
    code = (
        "import sys; from pt2wire.cli import run\n"
        "for command in ['inspect', 'inspect --json', 'paths', '--version', 'validate --rules']:\n"
        f"    words = command.split() + ([{str(model)!r}] if 'inspect' in command else [])\n"
        "    assert run(words) == 0\n"
        "assert 'torch' not in sys.modules and 'sympy' not in sys.modules, 'torch was imported'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Symbol('s0', integer=True)", "s0"),
        ("Add(Symbol('s0'), Integer(1))", "s0 + 1"),
        ("Mul(Integer(2), Add(Symbol('s0'), Integer(1)))", "2*(s0 + 1)"),
        ("FloorDiv(Mul(Integer(4), Symbol('s0')), Integer(3))", "(4*s0)//3"),
        ("Mod(Symbol('s0'), Integer(3))", "s0%3"),
        ("Max(Integer(1), FloorDiv(Symbol('s0'), Integer(2)))", "Max(1, s0//2)"),
        ("Mul(Rational(1, 2), Symbol('s0'))", "(1/2)*s0"),
    ],
)
def test_expressions_as_people_write_them(text: str, shown: str) -> None:
    assert show_expression(parse_expression(text)) == shown


def test_plain_text() -> None:
    assert plain("a\tb\x1b[31mé\n") == r"a\tb\x1b[31mé\n"


def test_summary_of_a_tree_without_weights(model: Path) -> None:
    assert summarize(pt2wire.read(model).programs["model"]).weights == []
