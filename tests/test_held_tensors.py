"""Tensors that subgraphs hold: as they lie in memory, by several names, unused, as outputs, refused."""

from __future__ import annotations

import hashlib
import io
import struct
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire.errors import SerializeError
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.fx import GraphModule

from .helpers.programs import assert_same_program


class Model(nn.Module):
    def __init__(self, value: float = 1.0) -> None:
        super().__init__()
        self.value = value

    def forward(self, x: Tensor) -> Any:
        def yes(y: Tensor) -> Tensor:
            return y + torch.tensor([self.value, 2.0])

        return torch.cond(x.sum() > 0, yes, lambda y: y * torch.tensor([3.0, 4.0]), (x,))


def _program(value: float = 1.0) -> ExportedProgram:
    return torch.export.export(Model(value), (torch.ones(2),))


def _branch(ep: ExportedProgram) -> GraphModule:
    return ep.graph_module.true_graph_0


def _held(graph_module: GraphModule) -> Any:
    return next(node for node in graph_module.graph.nodes if node.op == "get_attr")


def _save(ep: ExportedProgram) -> io.BytesIO:
    file = io.BytesIO()
    with pytest.warns(UserWarning, match="tensors that subgraphs hold"):
        pt2wire.save(ep, file)
    return file


def _strided(ep: ExportedProgram) -> None:
    _branch(ep)._tensor_constant0 = torch.arange(12.0).reshape(3, 4)[1:, 2]


def _expanded(ep: ExportedProgram) -> None:
    _branch(ep)._tensor_constant0 = torch.tensor(7.0).expand(2)


def _by_two_names(ep: ExportedProgram) -> None:
    graph = _branch(ep).graph
    node = _held(_branch(ep))
    with graph.inserting_before(node.next.next):
        again = graph.get_attr("_tensor_constant0")
    again.meta["val"] = node.meta["val"]
    add = next(user for user in graph.nodes if user.target is torch.ops.aten.add.Tensor)
    add.args = (add.args[0], again)


def _unused(ep: ExportedProgram) -> None:
    graph = _branch(ep).graph
    node = _held(_branch(ep))
    with graph.inserting_before(node):
        graph.get_attr("_tensor_constant0").meta["val"] = node.meta["val"]


def _among_outputs(ep: ExportedProgram) -> None:
    for branch in (_branch(ep), ep.graph_module.false_graph_0):
        node = _held(branch)
        output = branch.graph.output_node()
        output.args = ((node,),)
        output.meta.pop("val", None)
        branch.graph.eliminate_dead_code()


def _with_notes(ep: ExportedProgram) -> None:
    _held(_branch(ep)).meta["custom"] = {"key": ("a", 1)}


@pytest.mark.parametrize("change", [_strided, _expanded, _by_two_names, _unused, _among_outputs, _with_notes])
def test_a_subgraph_keeps_the_tensors_that_it_holds(change):
    ep = _program()
    change(ep)
    if change in (_strided, _expanded):
        node = _held(_branch(ep))
        node.meta["val"] = node.meta["val"].fake_mode.from_tensor(
            _branch(ep)._tensor_constant0, static_shapes=True
        )
    for module in (_branch(ep), ep.graph_module.false_graph_0):
        module.recompile()
    loaded = pt2wire.load(_save(ep))
    moved = _branch(loaded)._tensor_constant0
    assert moved.storage_offset() == 0 and moved.stride() == _branch(ep)._tensor_constant0.stride()
    with torch.no_grad():
        _branch(ep)._tensor_constant0 = _branch(ep)._tensor_constant0.as_strided(moved.shape, moved.stride())
    for x in (torch.ones(2), -torch.ones(2)):
        assert torch.equal(loaded.module()(x)[0], ep.module()(x)[0])
    if change is _strided:  # a copy of the part in use
        assert moved.tolist() == [6.0, 10.0] and moved.untyped_storage().nbytes() == 20
    else:
        assert_same_program(ep, loaded)


def test_names_of_held_tensors_mean_nothing_and_their_bytes_do() -> None:
    with pytest.warns(UserWarning, match="tensors that subgraphs hold"):
        one, other, third = (pt2wire.to_tree(_program(value)) for value in (1.0, 1.0, 5.0))
    (call,) = (node for node in other.graph_module.graph.nodes if node.name == "cond")
    graph = call.inputs[1].arg.as_graph.graph
    (constant,) = graph.constants
    graph.tensor_values["another"] = graph.tensor_values.pop(constant.name)
    (user,) = (node for node in graph.nodes if node.inputs[0].arg.as_tensor.name == constant.name)
    user.inputs[0].arg.as_tensor.name = constant.name = "another"
    constant.target = "elsewhere"
    graph.get_attr_metadata = None
    assert pt2wire.validate(other) == []
    assert pt2wire.digest(one) == pt2wire.digest(other) != pt2wire.digest(third)
    assert pt2wire.diff(one, other) == []
    (found,) = pt2wire.diff(one, third)
    assert found.path.endswith(".constants['_tensor_constant0'].data")
    assert (found.before, found.after) == tuple(
        f"8 bytes of SHA-256 {hashlib.sha256(struct.pack('<2f', value, 2.0)).hexdigest()[:16]}..."
        for value in (1.0, 5.0)
    )


def test_a_held_tensor_more_is_one_difference() -> None:
    def program(extra: bool) -> ExportedProgram:
        class Other(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                def yes(y: Tensor) -> Tensor:
                    y = y + torch.tensor([1.0, 2.0])
                    return y * torch.tensor([5.0, 6.0]) if extra else y

                return torch.cond(x.sum() > 0, yes, lambda y: y - 1, (x,))

        return torch.export.export(Other(), (torch.ones(2),))

    with pytest.warns(UserWarning, match="tensors that subgraphs hold"):
        one, other = (pt2wire.to_tree(program(extra)) for extra in (False, True))
    found = [each for each in pt2wire.diff(one, other) if ".constants[" in each.path]
    assert [each.kind for each in found] == ["added"]


REFUSED = {
    "a parameter": (
        nn.Parameter(torch.ones(2)),
        "expected a plain tensor in a subgraph, found .*, a Parameter",
    ),
    "a sparse tensor": (torch.eye(2).to_sparse(), "expected a strided tensor"),
    "a conjugated one": (
        torch.ones(2, dtype=torch.complex64).conj(),
        "expected a plain tensor in a subgraph",
    ),
    "another dtype": (torch.ones(2, dtype=torch.int32), "expected dtype of .* as the graph says"),
    "another size": (torch.ones(3), "expected sizes of .* as the graph says"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_other_tensors_are_refused(what: str) -> None:
    tensor, message = REFUSED[what]
    ep = _program()
    branch = _branch(ep)
    del branch._tensor_constant0
    branch._tensor_constant0 = tensor
    with pytest.raises(SerializeError, match=rf"^cond\.true_graph_0\._tensor_constant0: .*({message})"):
        pt2wire.to_tree(ep)
