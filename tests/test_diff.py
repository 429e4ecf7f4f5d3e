"""Differences: what was planted, and only that, wherever it is and however the rest is spelled."""

from __future__ import annotations

import copy
import io
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pt2wire
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pt2wire.cli import run
from pt2wire.errors import DeserializeError
from pt2wire.generated import types
from torch import nn

from .helpers.archives import saved as archive_of
from .helpers.models import MODELS
from .helpers.oracles import grouped, trips_of
from .helpers.planting import change, constants
from .helpers.scrambling import graphs_of, scrambled

SEEDS = st.integers(0, 10**9)
CHOSEN = ("cond_nested", "batch_norm_in_training", "views", "convolutional_network", "bert_static")


class Network(nn.Module):
    """Two layers of one kind, so that it is easy to mistake one for the other."""

    def __init__(
        self, between: Callable[[Any], Any] = lambda x: x, first: Callable[[Any], Any] = lambda x: x
    ) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)
        self.between, self.first = between, first

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        inner = self.between(self.one(self.first(x)).relu())
        return self.two(inner).relu() + 1, inner


def network(**parts: Callable[[Any], Any]) -> types.ExportedProgram:
    shapes = {"x": {0: torch.export.Dim("n", min=2, max=64)}}
    return pt2wire.to_tree(torch.export.export(Network(**parts), (torch.ones(2, 4),), dynamic_shapes=shapes))


def texts(a: types.ExportedProgram, b: types.ExportedProgram) -> list[str]:
    return [str(difference) for difference in pt2wire.diff(a, b)]


def tree_of(name: str) -> types.ExportedProgram:
    return pt2wire.from_json(trips_of(name).our_json)


@pytest.mark.wide  # as equal as their canonical forms, which `make test` compares
@pytest.mark.parametrize("name", grouped(MODELS))
def test_spellings_do_not_differ(name: str) -> None:
    tree = tree_of(name)
    assert pt2wire.diff(tree, scrambled(tree, random.Random(0))) == []


def _edit_target(tree: types.ExportedProgram) -> None:
    tree.graph_module.graph.nodes[1].target = "torch.ops.aten.gelu.default"


def _edit_argument(tree: types.ExportedProgram) -> None:
    tree.graph_module.graph.nodes[4].inputs[1].arg = types.Argument.create(as_float=1.0)


def _edit_source(tree: types.ExportedProgram) -> None:
    tree.graph_module.graph.nodes[3].inputs[0].arg.as_tensor.name = "linear"


def _drop_argument(tree: types.ExportedProgram) -> None:
    del tree.graph_module.graph.nodes[2].inputs[2]


def _edit_dtype(tree: types.ExportedProgram) -> None:
    tree.graph_module.graph.tensor_values["linear_1"].dtype = types.ScalarType.HALF


def _edit_size(tree: types.ExportedProgram) -> None:
    tree.graph_module.graph.tensor_values["x"].sizes[1] = types.SymInt.create(as_int=5)


def _edit_device(tree: types.ExportedProgram) -> None:
    tree.graph_module.graph.tensor_values["p_one_bias"].device = types.Device("cuda", 1)


def _edit_range(tree: types.ExportedProgram) -> None:
    next(iter(tree.range_constraints.values())).max_val = 32


def _add_guard(tree: types.ExportedProgram) -> None:
    tree.guards_code.append("L['x'].size()[0] != 7")


def _edit_weight_name(tree: types.ExportedProgram) -> None:
    tree.graph_module.signature.input_specs[0].parameter.parameter_name = "one.mass"


def _swap_outputs(tree: types.ExportedProgram) -> None:
    tree.graph_module.graph.outputs.reverse()
    tree.graph_module.signature.output_specs.reverse()


def _edit_opset(tree: types.ExportedProgram) -> None:
    tree.opset_version["aten"] = 11


def _edit_treespec(tree: types.ExportedProgram) -> None:
    signature = tree.graph_module.module_call_graph[0].signature
    assert signature is not None
    signature.out_spec = "[1]"


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (
            _edit_target,
            ["graph.nodes['relu'].target: torch.ops.aten.relu.default -> torch.ops.aten.gelu.default"],
        ),
        (_edit_argument, ["graph.nodes['add'].inputs['other']: 1 -> 1.0"]),
        (_edit_source, ["graph.nodes['relu_1'].inputs['self']: %linear_1 -> %linear"]),
        (_drop_argument, ["graph.nodes['linear_1'].inputs['bias']: removed: %p_two_bias"]),
        (_edit_dtype, ["graph.nodes['linear_1'].output.dtype: float32 -> float16"]),
        (_edit_size, ["signature.inputs['x'].sizes[1]: 4 -> 5"]),
        (_edit_device, ["signature.inputs['one.bias'].device: cpu -> cuda:1"]),
        (_edit_range, ["range_constraints['s77'].max_val: 64 -> 32"]),
        (_add_guard, ["guards_code: added: L['x'].size()[0] != 7"]),
        (
            _swap_outputs,
            ["signature.outputs[0]: %add -> %relu", "signature.outputs[1]: %relu -> %add"],
        ),
        (_edit_opset, ["opset_version['aten']: 10 -> 11"]),
    ],
)
def test_an_edit_is_found_and_only_it(
    edit: Callable[[types.ExportedProgram], None], expected: list[str]
) -> None:
    tree = network()
    tree.opset_version = {"aten": 10}
    other = copy.deepcopy(tree)
    edit(other)
    assert texts(tree, other) == expected
    assert texts(tree, scrambled(other, random.Random(1))) == expected


def test_texts_and_names_of_weights() -> None:
    tree = network()
    other = copy.deepcopy(tree)
    _edit_treespec(other)
    (found,) = pt2wire.diff(tree, other)
    assert found.path == "module_call_graph[''].signature.out_spec"
    other = copy.deepcopy(tree)
    _edit_weight_name(other)
    inputs = [found for found in pt2wire.diff(tree, other) if found.path.startswith("signature")]
    assert [(found.path, found.kind) for found in inputs] == [
        ("signature.inputs['one.weight']", "removed"),
        ("signature.inputs['one.mass']", "added"),
    ]


def test_one_node_more_shifts_nothing() -> None:
    tree = network()
    assert texts(tree, network(between=torch.sigmoid)) == [
        "graph.nodes['linear_1'].inputs['input']: %relu -> %sigmoid",
        "graph.nodes['sigmoid']: added: torch.ops.aten.sigmoid.default(self=%relu)",
        "signature.outputs[1]: %relu -> %sigmoid",
    ]
    # PyTorch calls the new node relu, and the old ones relu_1 and relu_2.
    assert texts(tree, network(first=torch.relu)) == [
        "graph.nodes['linear'].inputs['input']: %x -> %relu'",
        "graph.nodes['relu']: added: torch.ops.aten.relu.default(self=%x)",
    ]


@pytest.mark.parametrize("name", grouped(CHOSEN))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), seed=SEEDS)
def test_one_constant_is_one_difference(name: str, data: st.DataObject, seed: int) -> None:
    tree = tree_of(name)
    plain = json.loads(pt2wire.to_json(tree))
    places = [
        (node, holder, key)
        for graph in graphs_of(plain["graph_module"]["graph"])
        for node in graph["nodes"]
        for named in node["inputs"]
        if "as_graph" not in named["arg"]
        for holder, key in constants([named["arg"]])
    ]
    node, holder, key = places[data.draw(st.integers(0, len(places) - 1))]
    before = holder[key]
    change(holder, key)
    found = pt2wire.diff(tree, scrambled(pt2wire.from_json(json.dumps(plain)), random.Random(seed)))
    assert [(each.kind, each.before, each.after) for each in found] == [
        ("changed", repr(before), repr(holder[key]))
    ]
    assert f".nodes[{node['name']!r}].inputs[" in found[0].path


def test_values_that_look_alike_are_told_apart() -> None:
    tree = network()
    other = copy.deepcopy(tree)
    other.graph_module.graph.nodes[0].inputs[0].arg = types.Argument.create(as_ints=[])
    first = copy.deepcopy(tree)
    first.graph_module.graph.nodes[0].inputs[0].arg = types.Argument.create(as_tensors=[])
    assert texts(first, other) == ["graph.nodes['linear'].inputs['input']: [] (tensors) -> [] (ints)"]


def test_the_order_of_changes_in_place_is_a_difference() -> None:
    class Changes(nn.Module):
        def __init__(self, early: bool) -> None:
            super().__init__()
            self.early = early

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x.clone()
            result = y.relu() if self.early else None
            y.add_(1)
            return y.relu() if result is None else result

    trees = [
        pt2wire.to_tree(torch.export.export(Changes(early), (torch.ones(2),))) for early in (True, False)
    ]
    assert any("in their order" in text or "relu" in text for text in texts(*trees))


def saved(path: Path, model: nn.Module) -> str:
    pt2wire.save(torch.export.export(model, (torch.ones(2, 4),)), path)
    return str(path)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    one = saved(tmp_path / "a.pt2", model)
    with torch.no_grad():
        model.bias[1] += 1
    return one, saved(tmp_path / "b.pt2", model)


def test_archives_differ_in_weights(files: tuple[str, str]) -> None:
    (found,) = pt2wire.diff(*map(pt2wire.read, files))
    assert found.path == "weights['bias'], its payload"
    assert pt2wire.diff(pt2wire.read(files[0]), pt2wire.read(files[0])) == []
    one, other = map(pt2wire.read, files)
    del other.weights["model"]["bias"]
    other.weights["model"]["weight"].meta.is_param = False
    assert [str(found) for found in pt2wire.diff(one, other)] == [
        "weights['bias']: removed: float32[3] cpu",
        "weights['weight'].is_param: True -> False",
    ]


def test_archives_of_several_programs_are_compared_by_name(tmp_path: Path) -> None:
    ep = torch.export.export(nn.ReLU(), (torch.ones(2),))
    other = torch.export.export(nn.LeakyReLU(0.1), (torch.ones(2),))
    changed = torch.export.export(nn.LeakyReLU(0.2), (torch.ones(2),))
    pt2wire.save({"a": ep, "b": other}, tmp_path / "one.pt2")
    pt2wire.save({"b": changed, "c": ep}, tmp_path / "two.pt2")
    found = pt2wire.diff(pt2wire.read(tmp_path / "one.pt2"), pt2wire.read(tmp_path / "two.pt2"))
    assert [str(difference) for difference in found] == [
        "programs['a']: removed: a program",
        "b: graph.nodes['leaky_relu'].inputs['negative_slope']: 0.1 -> 0.2",
        "programs['c']: added: a program",
    ]


class Holding(nn.Module):
    def __init__(self, held: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("held", held)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.held.sum()


def _holding(held: torch.Tensor) -> pt2wire.Archive:
    return pt2wire.read(io.BytesIO(archive_of(torch.export.export(Holding(held), (torch.ones(2),)))))


NUMBERS = [
    (torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.5, 1.0]), "2 of 3 elements, by at most 2"),
    (torch.tensor([1, 2.0]).bfloat16(), torch.tensor([1, 2.5]).bfloat16(), "1 of 2 elements, by at most 0.5"),
    (torch.tensor([1.0, 2.0]).half(), torch.tensor([4.0, 2.5]).half(), "2 of 2 elements, by at most 3"),
    (torch.tensor([1, 2]), torch.tensor([1, -2]), "1 of 2 elements, by at most 4"),
    (torch.tensor([True, False]), torch.tensor([True, True]), "1 of 2 elements, by at most 1"),
    (torch.tensor([3 + 4j, 1]), torch.tensor([0j, 1]), "1 of 2 elements, by at most 5"),
    (torch.tensor([1.0, torch.nan]), torch.tensor([1.5, torch.nan]), "1 of 2 elements, by at most 0.5"),
    (torch.ones(2, 3).t(), torch.tensor([[1.0, 1, 1], [1, 4, 1]]).t(), "1 of 6 elements, by at most 3"),
    (torch.tensor([1.0, 2, 3])[::2], torch.tensor([1.0, 0, 3])[::2], None),  # what lies between
]


@pytest.mark.parametrize(("before", "after", "distance"), NUMBERS)
def test_weights_that_differ_are_said_to_lie_apart(
    before: torch.Tensor, after: torch.Tensor, distance: str | None
) -> None:
    (found,) = pt2wire.diff(_holding(before), _holding(after))
    assert found.path == "weights['held'], its payload"
    assert (found.after or "").partition("... ")[2] == ("" if distance is None else f"({distance})")


def test_wrong_arguments() -> None:
    tree = network()
    with pytest.raises(TypeError, match="expected two trees or two archives, found str of builtins"):
        pt2wire.diff(tree, "model.pt2")  # type: ignore[arg-type]
    other = copy.deepcopy(tree)
    other.graph_module.graph.nodes.reverse()
    with pytest.raises(DeserializeError, match="expected a value that is defined before"):
        pt2wire.diff(tree, other)


def test_command(files: tuple[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["diff", files[0], files[0]]) == 0
    assert capsys.readouterr().out == "0 differences\n"
    assert run(["diff", *files]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert (
        lines[0].startswith("weights['bias'], its payload: bytes of SHA-256 ")
        and re.search(r"\.\.\. \(\d of \d elements, by at most [\d.]+\)$", lines[0])
        and lines[1] == "1 difference"
    )
    assert run(["diff", *files, "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["path"], found["kind"]) == ("weights['bias'], its payload", "changed")
    program = str(tmp_path / "a.json")
    assert run(["convert", files[0], program]) == 0
    capsys.readouterr()
    assert run(["diff", program, files[1]]) == 0
    assert capsys.readouterr().out == "0 differences, weights not compared\n"
    assert run(["diff", files[0], "nowhere.pt2"]) == 2
    assert run(["diff", files[0]]) == 2


def test_reading_a_file_object_again_gives_no_difference() -> None:
    file = io.BytesIO()
    pt2wire.save(torch.export.export(nn.ReLU(), (torch.ones(2),)), file)
    assert pt2wire.diff(pt2wire.read(file), pt2wire.read(file)) == []
