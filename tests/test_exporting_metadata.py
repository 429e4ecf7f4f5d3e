"""Metadata of nodes, text for text as PyTorch writes it."""

from __future__ import annotations

import json

import pytest
import torch
from pt2wire.errors import SerializeError
from pt2wire.exporting import export_program
from pt2wire.exporting.metadata import export_metadata
from torch.fx.traceback import NodeSource, annotate

from .helpers.exporting import assert_json_is_pytorchs, exported, node_named


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        with annotate({"stage": 1, "tags": ["a", 2.5, None]}):
            return torch.relu(self.linear(x))


def _nested(**options):
    blocks = torch.nn.Sequential(Block(), Block())
    return exported(
        lambda self, x: self.blocks(x), torch.ones(2, 3), attributes={"blocks": blocks}, **options
    )


@pytest.mark.parametrize("strict", [False, True])
def test_provenance_of_nested_modules(strict):
    ep = _nested(strict=strict)
    (first, *_) = assert_json_is_pytorchs(ep).graph_module.graph.nodes
    assert {"stack_trace", "nn_module_stack", "torch_fn"} <= first.metadata.keys()
    assert ("custom" in first.metadata) is strict  # the other tracer of PyTorch keeps no annotations
    assert first.metadata["nn_module_stack"].count(";") == 3
    decomposed = assert_json_is_pytorchs(ep.run_decompositions())
    assert all(node.metadata["from_node"] for node in decomposed.graph_module.graph.nodes)


@pytest.mark.parametrize(
    "custom", [{1: 2}, {"t": (1, 2)}, {"x": float("inf")}, {"u": "é\u2028"}, {None: 1}, {}], ids=repr
)
def test_notes_of_users_on_nodes_and_the_graph(custom):
    ep = _nested()
    node_named(ep, "relu").meta["custom"] = custom
    ep.graph_module.meta["custom"] = custom
    assert_json_is_pytorchs(ep)


def _endless():
    note = []
    note.append(note)
    return note


@pytest.mark.parametrize(
    "custom", [{"s": {1, 2}}, (torch.nn.ReLU(),), _endless()], ids=("set", "module", "endless")
)
def test_notes_of_other_types_are_refused(custom):
    ep = _nested()
    node_named(ep, "relu").meta["custom"] = custom
    with pytest.raises(SerializeError, match="relu: expected custom metadata "):
        export_program(ep)


def test_nodes_without_metadata():
    ep = _nested()
    for node in ep.graph.nodes:
        node.meta = {"val": node.meta["val"]} if "val" in node.meta else {}
    (first, *_) = assert_json_is_pytorchs(ep).graph_module.graph.nodes
    assert first.metadata == {}


def test_texts_of_the_entries():
    node = torch.fx.Graph().placeholder("x")
    written = export_metadata(
        {
            "stack_trace": "",
            "nn_module_stack": {"a": ("a.b", "C"), "d": ("", "E")},
            "source_fn_stack": [("add", torch.ops.aten.add.Tensor), ("l", torch.nn.Linear), ("f", "name")],
            "torch_fn": ("add_1", "method_descriptor.add"),
            "from_node": [NodeSource(node, "a pass"), "something else"],
            "tensor_meta": "of no interest",
        }
    )
    assert json.loads(written.pop("from_node")) == [NodeSource(node, "a pass").to_dict()]
    assert written == {
        "nn_module_stack": "a,a.b,C;d,,E",
        "source_fn_stack": "add,torch.ops.aten.add.Tensor;l,torch.nn.modules.linear.Linear;f,name",
        "torch_fn": "add_1;method_descriptor.add",
    }
    assert export_metadata({"from_node": None}) == {"from_node": "null"}
