"""Every rule about trees rejects the lies that it is for, says where and what, and says nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pt2wire
import pytest
import torch
from pt2wire.errors import DeserializeError, SerializeError, UnsafeArtifactError
from pt2wire.generated import types
from pt2wire.validation import RULES, validate_tree
from torch import nn

from .helpers import (
    lies_calls,
    lies_exact,
    lies_graphs,
    lies_notes,
    lies_programs,
    lies_tensors,
    lies_treespecs,
)
from .helpers.lies import LIES, tree_of

# Each registers its lies.
assert lies_calls and lies_exact and lies_graphs and lies_notes and lies_programs and lies_tensors
assert lies_treespecs


@pytest.mark.parametrize("name", ["training", "inference", "autocast"])
def test_the_honest_trees_have_no_findings(name: str) -> None:
    assert validate_tree(tree_of(name)) == []


@pytest.mark.parametrize("name", LIES)
def test_lie_is_found(name: str) -> None:
    lie = LIES[name]
    tree = tree_of(lie.tree)
    lie.change(tree)
    found = validate_tree(tree)
    assert (found[0].rule, found[0].path, found[0].message) == (lie.rule, lie.path, lie.message)
    assert {finding.rule for finding in found} == {lie.rule}, "a lie is found once, by its rule"


@pytest.mark.parametrize("name", LIES)
def test_from_tree_raises_the_finding(name: str) -> None:
    lie = LIES[name]
    tree = tree_of(lie.tree)
    lie.change(tree)
    finding = pt2wire.validate(tree)[0]
    assert finding.rule == lie.rule
    with pytest.raises(DeserializeError) as raised:
        pt2wire.from_tree(tree, {}, {})
    assert (raised.value.path, raised.value.message) == (finding.path, finding.message)


@pytest.mark.parametrize(
    "change, path, found",
    [
        (lambda t: setattr(t.graph_module.graph.nodes[0], "target", 5), ".graph.nodes[0].target", "int 5"),
        (lambda t: setattr(t, "graph_module", None), "", "None"),
        (lambda t: t.graph_module.graph.inputs.insert(0, "x"), ".graph.inputs[0]", "str 'x'"),
        (lambda t: setattr(t.graph_module, "signature", {}), ".signature", "dict"),
        (lambda t: t.graph_module.signature.input_specs.insert(0, None), ".signature.input_specs[0]", "None"),
    ],
)
def test_a_value_of_a_wrong_type_is_the_only_finding(
    change: Callable[[types.ExportedProgram], object], path: str, found: str
) -> None:
    tree = tree_of("inference")
    change(tree)
    (finding,) = pt2wire.validate(tree)
    assert (finding.rule, finding.path) == ("type", f"graph_module{path}")
    assert f"found {found}" in finding.message
    with pytest.raises(DeserializeError) as raised:
        pt2wire.from_tree(tree, {}, {})
    assert (raised.value.path, raised.value.message) == (finding.path, finding.message)
    with pytest.raises(SerializeError) as refused:
        pt2wire.to_json(tree)
    assert (refused.value.path, refused.value.message) == (finding.path, finding.message)


def test_every_rule_about_trees_has_a_lie() -> None:
    about_trees = {rule.id for rule in RULES.values() if rule.checked == "tree"}
    assert about_trees == {lie.rule for lie in LIES.values()}


@pytest.mark.parametrize(
    "rule",
    [
        "target",
        "call-text",
        "denied-operator",
        "name",
        "fqn",
        "constant-text",
        "functorch-levels",
        "autocast-levels",
    ],
)
def test_what_could_run_code_is_an_unsafe_artifact(rule: str) -> None:
    lie = next(lie for lie in LIES.values() if lie.rule == rule)
    tree = tree_of(lie.tree)
    lie.change(tree)
    assert isinstance(validate_tree(tree)[0].error(), UnsafeArtifactError)


def test_all_lies_at_once_are_all_found() -> None:
    tree = tree_of("inference")
    for name in ("empty_range", "python_function_as_target", "metadata_that_is_no_json"):
        LIES[name].change(tree)
    assert {finding.rule for finding in validate_tree(tree)} == {"range", "target", "metadata"}


@pytest.mark.parametrize("region", [torch.no_grad, lambda: torch.autocast("cpu")], ids=["grad", "autocast"])
@pytest.mark.parametrize("more", [-1, 1])
def test_a_region_gives_as_many_outputs_as_its_call_takes_apart(
    region: Callable[[], contextlib.AbstractContextManager[object]], more: int
) -> None:
    class Region(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with region():
                y = x.sin()
                z = y + 1
            return y * z * x

    tree = pt2wire.to_tree(torch.export.export(Region(), (torch.ones(2, 2),)))
    assert validate_tree(tree) == []
    (call,) = (node for node in tree.graph_module.graph.nodes if "higher_order" in node.target)
    (graph,) = (named.arg.as_graph.graph for named in call.inputs if named.arg.type == "as_graph")
    graph.outputs = [graph.outputs[0]] * (2 + more)
    (finding,) = validate_tree(tree)
    assert finding.rule == "subgraph"
    assert f"expected 2 outputs of 'submod_1', found {2 + more}" in finding.message
