"""Whatever a tree holds, validation answers with findings; what it lets pass loads, or else is listed."""

from __future__ import annotations

import logging
import random
import warnings

import pt2wire
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from pt2wire.generated import CodecError, json_codec, types
from pt2wire.importing.metadata import Metadata
from pt2wire.validation import validate_tree
from pt2wire.validation.metadata import KnownMetadata, metadata_problems
from pt2wire.validation.operators import validate_operators

from .helpers.lies import tree_of
from .helpers.mutations import mutate

_PLAIN = {name: json_codec.to_plain(tree_of(name)) for name in ("training", "inference")}
_WEIGHTS = {
    "lin.weight": torch.nn.Parameter(torch.ones(4, 4)),
    "lin.bias": torch.nn.Parameter(torch.ones(4)),
    "count": torch.zeros(4),
}


def mutated(seed: int) -> types.ExportedProgram | None:
    """A changed tree, or None where the change was one that decoding refuses."""
    chance = random.Random(seed)
    plain = mutate(_PLAIN[chance.choice(list(_PLAIN))], chance, chance.choice([1, 1, 2, 5]))
    try:
        return json_codec.from_plain(types.ExportedProgram, plain)
    except CodecError:
        return None


@pytest.mark.parametrize("start", range(0, 400, 100))
def test_validation_never_raises(start: int) -> None:
    for seed in range(start, start + 100):
        tree = mutated(seed)
        if tree is None:
            continue
        for finding in [*validate_tree(tree), *validate_operators(tree)]:
            assert str(finding.error()), f"seed {seed}"


_PIECES = ("a", ",", ";", "(", ")", "[", "]", "{", "}", '"', "null", '"name":', '"from_node":', "1", " ")


@given(
    st.sampled_from(["nn_module_stack", "source_fn_stack", "torch_fn", "custom", "from_node", "stack_trace"]),
    st.lists(st.sampled_from(_PIECES), max_size=12).map("".join),
)
@example("nn_module_stack", "a,b,c;d,(e,f),g")
@example("source_fn_stack", "a,b;c,d")
@example("from_node", '[{"name": "a", "from_node": [{"name": 1}]}]')
@example("from_node", '[{"name": "a", "from_node": [{"from_node": null}]}]')
def test_metadata_is_found_wrong_where_loading_refuses_it(key: str, text: str) -> None:
    try:
        Metadata().import_metadata({key: text})
        refused = []
    except pt2wire.DeserializeError:
        refused = [key]
    assert [wrong for wrong, _ in metadata_problems({key: text}, KnownMetadata())] == refused


#: Why a tree without findings may be refused: what validation does not look for.
_REASONS = {
    # This process's: what is registered.
    "expected a device that torch knows": "backends register device types",
    "expected a dialect whose verifier is registered": "libraries register dialects",
    "expected a class that is registered with pytree": "libraries register classes",
    "is not in the state dict": "validation of a tree does not see its weights",
    "Give the weights of the program": "likewise",
    "pass changed_weights=True": "likewise",
    "Non-persistent buffer count is in the state dict": "likewise",
    # pt2wire's: what it does not read yet.
    "cannot be read yet": "each says what",
    # torch's and sympy's: what only they can compute.
    "is not functional": "the dialect's verifier",
    "sympy cannot build the expression": "folding constants, such as a divisor to zero, needs sympy",
}


def _refused_without_reason(seed: int) -> str | None:
    """How a changed tree without findings is refused; None if it loads, or for one of the reasons."""
    tree = mutated(seed)
    if tree is None or pt2wire.validate(tree):
        return None
    try:
        pt2wire.from_tree(tree, _WEIGHTS, {})
    except pt2wire.DeserializeError as error:
        message = f"{error.message}. {error.hint}"
        return None if any(reason in message for reason in _REASONS) else f"seed {seed}: {error}"
    except Exception as error:
        return f"seed {seed}: {type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize(
    "start", [0, *(pytest.param(at, marks=pytest.mark.wide) for at in range(100, 3000, 100))]
)
def test_what_has_no_findings_loads(start: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)  # torch formats graphs for its log
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refused = [_refused_without_reason(seed) for seed in range(start, start + 100)]
    assert [message for message in refused if message is not None] == []
