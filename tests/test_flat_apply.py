"""Calls of `flat_apply`: canonical form, names that mean nothing, functions that are refused."""

from __future__ import annotations

import copy
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire.errors import SerializeError
from torch._higher_order_ops.flat_apply import func_to_graphable
from torch.export import ExportedProgram
from torch.nn.attention.flex_attention import flex_attention

from .helpers.models import BEYOND


@pytest.fixture(scope="module")
def program() -> ExportedProgram:
    return BEYOND["flex_attention_with_a_bias"].program()


def _tree(program: ExportedProgram) -> Any:
    with pytest.warns(UserWarning, match="calls of flat_apply"):
        return pt2wire.to_tree(program)


def _score(tree: Any) -> Any:
    """The graph of the score function, which holds the tree spec."""
    (call,) = (node for node in tree.graph_module.graph.nodes if node.target.endswith(".flex_attention"))
    return call.inputs[3].arg.as_graph.graph


def test_the_canonical_form_computes_the_same_and_has_no_names(program: ExportedProgram) -> None:
    tree, other = _tree(program), _tree(program)
    form = pt2wire.canonicalize(tree)
    assert pt2wire.validate(form) == [] and pt2wire.canonicalize(form) == form
    again = pt2wire.from_tree(form, *copy.deepcopy((program.state_dict, program.constants)))
    args, kwargs = BEYOND["flex_attention_with_a_bias"].make_inputs()
    assert torch.equal(again.module()(*args, **kwargs), program.module()(*args, **kwargs))
    graph = _score(other)
    (call,) = (node for node in graph.nodes if node.target.endswith(".flat_apply"))
    for number, structure in enumerate(graph.structures):
        structure.name, structure.target = f"name_{number}", f"target_{number}"
        call.exact_inputs[1 - number].value.as_structure = structure.name
    graph.get_attr_metadata = graph.order = None
    assert pt2wire.validate(other) == []
    assert pt2wire.digest(other) == pt2wire.digest(tree)
    assert pt2wire.diff(other, tree) == []


def test_another_function_is_refused(program: ExportedProgram) -> None:
    changed = copy.deepcopy(program)
    score = next(module for name, module in changed.graph_module.named_modules() if "score" in name)
    score.function_const_func_spec0 = func_to_graphable(flex_attention)[1]
    with pytest.raises(
        SerializeError, match=r"expected a function of torch\.export\.custom_ops\..*, found torch"
    ):
        pt2wire.to_tree(changed)
