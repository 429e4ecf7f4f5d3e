"""Every promise, for models of transformers."""

from __future__ import annotations

import pytest

from .helpers.families import FAMILIES, USUAL_FAMILIES
from .helpers.oracles import PROMISES, Promise, grouped, trips_of, what_we_loaded_can_be_worked_on

# Decomposing a model takes longer than everything else together.
_PROMISES = [
    pytest.param(promise, marks=pytest.mark.wide) if promise is what_we_loaded_can_be_worked_on else promise
    for promise in PROMISES
]


@pytest.mark.parametrize("promise", _PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("name", grouped(USUAL_FAMILIES))
def test_family(name: str, promise: Promise) -> None:
    promise(trips_of(name))


@pytest.mark.wide
@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("name", grouped(name for name in FAMILIES if name not in USUAL_FAMILIES))
def test_further_family(name: str, promise: Promise) -> None:
    promise(trips_of(name))
