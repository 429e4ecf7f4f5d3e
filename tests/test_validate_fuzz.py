"""Whatever a tree holds, validation answers with findings; what it lets pass loads, or is refused clearly."""

from __future__ import annotations

import logging
import random
import warnings

import pt2wire
import pytest
import torch
from pt2wire.generated import CodecError, json_codec, types
from pt2wire.validation import validate_tree
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


@pytest.mark.parametrize(
    "start", [0, *(pytest.param(at, marks=pytest.mark.wide) for at in range(60, 1200, 60))]
)
def test_what_has_no_findings_loads_or_is_refused(start: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)  # torch formats graphs for its log
    for seed in range(start, start + 60):
        tree = mutated(seed)
        if tree is None or validate_tree(tree):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                pt2wire.from_tree(tree, _WEIGHTS, {})
            except pt2wire.DeserializeError as error:
                assert error.message, f"seed {seed}"
            except Exception as error:
                pytest.fail(f"seed {seed}: {type(error).__name__}: {error}")
