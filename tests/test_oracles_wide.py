"""Every promise, for programs that take long: examples, further families, models of other libraries."""

from __future__ import annotations

import pytest

from .helpers.examples import EXAMPLES
from .helpers.families_more import MORE_FAMILIES
from .helpers.libraries import LIBRARIES
from .helpers.oracles import (
    PROMISES,
    Promise,
    devices_are_exchanged_as_pytorch_does,
    grouped,
    trips_of,
    what_we_loaded_can_be_worked_on,
)

pytestmark = pytest.mark.wide


# Decomposing and moving such models takes longer than all other promises together.
_QUICKER = [
    promise
    for promise in PROMISES
    if promise not in (what_we_loaded_can_be_worked_on, devices_are_exchanged_as_pytorch_does)
]


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("name", grouped(EXAMPLES))
def test_example(name: str, promise: Promise) -> None:
    promise(trips_of(name))


@pytest.mark.parametrize("promise", _QUICKER, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("name", grouped([*MORE_FAMILIES, *LIBRARIES]))
def test_model(name: str, promise: Promise) -> None:
    promise(trips_of(name))
