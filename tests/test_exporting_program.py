"""Whole programs: PyTorch's own examples, what is around the graph, and that a program is left untouched."""

from __future__ import annotations

import gc
import io

import pytest
import torch
from pt2wire.errors import SerializeError
from pt2wire.exporting import export_program
from torch._export.db.examples import all_examples
from torch.export import Dim

from .helpers.examples import EXAMPLES
from .helpers.exporting import assert_json_is_pytorchs, exported, node_named, pytorch_json
from .helpers.programs import assert_no_differences, describe_program, differences


@pytest.mark.parametrize("name", EXAMPLES)
def test_pytorchs_own_examples(name):
    case = all_examples()[name]
    ep = torch.export.export(
        case.model, case.example_args, case.example_kwargs, dynamic_shapes=case.dynamic_shapes, strict=False
    )
    assert_json_is_pytorchs(ep)
    assert_json_is_pytorchs(ep.run_decompositions())


@pytest.mark.parametrize("opset", [None, {}, {"mine": 3}, {"mine": 3, "aten": 5}], ids=repr)
def test_opset_versions(opset):
    ep = exported(lambda self, x: x + 1, torch.ones(2))
    tree = export_program(ep, opset_version=opset)
    assert list(tree.opset_version.items()) == list(pytorch_json(ep, opset)["opset_version"].items())


def test_a_loaded_program_is_written_as_it_was_loaded():
    ep = exported(lambda self, x: x.nonzero() + x.shape[0], torch.ones(4), shapes=({0: Dim.AUTO},))
    buffer = io.BytesIO()
    torch.export.save(ep, buffer)
    buffer.seek(0)
    assert_json_is_pytorchs(torch.export.load(buffer))


def test_the_program_is_left_untouched():
    def forward(self, x):
        x.add_(1)
        branches = torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x.sin(), (x,))
        return branches, self.linear(x).split(2)

    attributes = {"linear": torch.nn.Linear(3, 3)}
    ep = exported(forward, torch.randn(5, 3), shapes=({0: Dim.AUTO},), attributes=attributes)
    ep = ep.run_decompositions()
    before = describe_program(ep)
    held = {node: {key: id(value) for key, value in node.meta.items()} for node in ep.graph.nodes}
    tree = export_program(ep)
    assert held == {node: {key: id(value) for key, value in node.meta.items()} for node in ep.graph.nodes}
    assert_no_differences(differences(before, describe_program(ep)))
    tree.guards_code.append("False")
    tree.graph_module.signature.input_specs.clear()
    assert_no_differences(differences(before, describe_program(ep)))


def _delete_a_value(ep):
    del node_named(ep, "relu").meta["val"]


def _use_before_definition(ep):
    add = node_named(ep, "add")
    node_named(ep, "relu").args = (add,)


def _rename_an_input(ep):
    ep.graph_signature.input_specs[0].arg.name = "y"


@pytest.mark.parametrize("damage", [_delete_a_value, _use_before_definition, _rename_an_input])
def test_a_program_that_was_broken_after_export_is_refused(damage):
    ep = exported(lambda self, x: x.relu() + 1, torch.ones(2))
    damage(ep)
    with pytest.raises(SerializeError, match=r"^expected a valid program: .*export again\.$"):
        export_program(ep)
    assert gc.isenabled()
