"""Calls of modules lowered to a backend: written as PyTorch writes them, read only when they are allowed."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire import SerializeError, UnsafeArtifactError
from pt2wire.exporting import export_program
from torch import Tensor, nn
from torch._export.serde import serialize as torch_serialize
from torch._higher_order_ops import aoti_call_delegate
from torch.export import ExportedProgram
from torch.nativert.backends._lowered_aoti_module import LoweredBackendModule

from .helpers.oracles import json_differences, pytorch_load, without_own_fields

SAVED = "lowered modules are written as their names, so that the program runs only where .*: "


class Both(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Any:
        return x + y, x.sin()


class Sum(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Any:
        return x + y


def _executorch(kind: type[nn.Module], name: str | None = "toy") -> ExportedProgram:
    """A program that calls a module lowered by what PyTorch ships of ExecuTorch's means."""
    inputs = torch.ones(2, 3), torch.ones(2, 3)

    class Program(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lowered = LoweredBackendModule(torch.export.export(kind(), inputs), "aoti", module_name=name)

        def forward(self, x: Tensor, y: Tensor) -> Any:
            result = self.lowered(x, y)
            return result * 2 if kind is Sum else (result[0] * 2, result[1])

    return torch.export.export(Program(), inputs)


class AOTInductorRunnerWrapper(nn.Module):
    """PyTorch knows these by the name of the class alone."""

    def __init__(self, path: Any) -> None:
        super().__init__()
        self.aoti_path = path


class Affine(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, 3))

    def forward(self, x: Tensor) -> Any:
        first, second = torch.split(x @ self.weight, 1)
        return first + 1, second


def _aoti(*, path: Any = "data/aotinductor/toy", unused: bool = False) -> ExportedProgram:
    """A program in which a call of AOTInductor's delegate stands for the product and the split."""
    ep = torch.export.export(Affine(), (torch.ones(2, 3),))
    module = ep.graph_module
    module.add_module("lowered_module", AOTInductorRunnerWrapper(path))
    original = torch.export.export(Both(), (torch.ones(3, 3), torch.ones(3, 3))).graph_module
    module.add_module("original_gm", original)
    split = next(iter(ep.graph.find_nodes(op="call_function", target=torch.ops.aten.split.Tensor)))
    weight, x = ep.graph.find_nodes(op="placeholder")
    with ep.graph.inserting_before(split):
        lowered, original = (ep.graph.get_attr(name) for name in ("lowered_module", "original_gm"))
        call = ep.graph.call_function(aoti_call_delegate, (lowered, original, [weight], [x]))
    call.meta = {**split.meta, "nn_module_stack": {}}
    product = split.args[0]
    split.replace_all_uses_with(call)
    ep.graph.erase_node(split)
    ep.graph.erase_node(product)
    if unused:
        output = ep.graph.output_node()
        second = ep.graph.find_nodes(op="call_function", target=torch.ops.aten.add.Tensor)
        output.args = ((second[0], second[0]),)
        ep.graph.eliminate_dead_code()
        ep.graph_signature.output_specs[1].arg.name = second[0].name
    module.recompile()
    return ep


PROGRAMS: dict[str, Callable[[], ExportedProgram]] = {
    "executorch, a tuple": lambda: _executorch(Both),
    "executorch, a tensor": lambda: _executorch(Sum),
    "aoti": _aoti,
    "aoti, a result unused": lambda: _aoti(unused=True),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_calls_are_written_as_pytorch_writes_them(name: str) -> None:
    ep = PROGRAMS[name]()
    with pytest.warns(UserWarning, match=SAVED + "(toy-aoti|data/aotinductor/toy)$"):
        tree = export_program(ep)
    theirs = json.loads(torch_serialize.serialize(ep).exported_program)
    assert list(json_differences("", theirs, without_own_fields(json.loads(pt2wire.to_json(tree))))) == []


def _saved(ep: ExportedProgram) -> io.BytesIO:
    file = io.BytesIO()
    with pytest.warns(UserWarning, match=SAVED):
        pt2wire.save(ep, file)
    return file


@pytest.mark.parametrize("name", PROGRAMS)
def test_calls_are_read_only_when_allowed(name: str) -> None:
    ep = PROGRAMS[name]()
    operator = "aoti_call_delegate" if name.startswith("aoti") else "executorch_call_delegate"
    file = _saved(ep)
    with pytest.raises(
        UnsafeArtifactError,
        match=rf"it calls a compiled .* that the file names.*allow_operators=\['higher_order\.{operator}'\]",
    ):
        pt2wire.load(file)
    loaded = pt2wire.load(file, allow_operators=[f"higher_order.{operator}"])
    (call,) = loaded.graph.find_nodes(op="call_function", target=getattr(torch.ops.higher_order, operator))
    assert call.args[0] in ("toy-aoti", "data/aotinductor/toy")
    names = [node.name for node in ep.graph.nodes if node.op != "get_attr"]
    assert [node.name for node in loaded.graph.nodes] == names
    (expected,) = ep.graph.find_nodes(op="call_function", target=call.target)
    assert type(call.meta["val"]) is type(expected.meta["val"])
    with pytest.raises((RuntimeError, AttributeError)):  # nothing of that name is looked for, or opened
        loaded.module()(*ep.example_inputs[0])
    # What was read is written as it was.
    again = io.BytesIO()
    pt2wire.save(loaded, again)
    first, second = (
        json.loads(pt2wire.to_json(pt2wire.read(each).programs["model"])) for each in (file, again)
    )
    assert list(json_differences("", first, second)) == []


def test_pytorch_reads_those_of_executorch_as_we_do() -> None:
    for kind in (Both, Sum):
        file = _saved(_executorch(kind))
        theirs = pytorch_load(file.getvalue())
        ours = pt2wire.load(file, allow_operators=["higher_order.executorch_call_delegate"])
        assert str(ours.graph) == str(theirs.graph)


def test_modules_without_a_name_are_refused() -> None:
    with pytest.raises(
        SerializeError, match=r"^executorch_call_delegate: .* a name and a backend, found None and 'aoti'"
    ):
        export_program(_executorch(Both, name=None))
    with pytest.raises(SerializeError, match=r"^aoti_call_delegate: .* with an `aoti_path`, found 7"):
        export_program(_aoti(path=7))
