"""Every rule about trees rejects the lies that it is for, says where and what, and says nothing else."""

from __future__ import annotations

import pt2wire
import pytest
from pt2wire.errors import DeserializeError, UnsafeArtifactError
from pt2wire.validation import RULES, validate_tree

from .helpers import lies_exact, lies_graphs, lies_programs
from .helpers.lies import LIES, tree_of

assert lies_exact and lies_graphs and lies_programs  # each registers its lies


@pytest.mark.parametrize("name", ["training", "inference"])
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
    with pytest.raises(DeserializeError) as raised:
        pt2wire.from_tree(tree, {}, {})
    assert (raised.value.path, raised.value.message) == (lie.path, lie.message)


def test_every_rule_about_trees_has_a_lie() -> None:
    about_trees = {rule.id for rule in RULES.values() if rule.checked == "tree"}
    assert about_trees == {lie.rule for lie in LIES.values()}


@pytest.mark.parametrize(
    "rule", ["target", "denied-operator", "name", "fqn", "constant-text", "functorch-levels"]
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
