"""Every promise, for the examples that torch.export ships."""

from __future__ import annotations

import pytest

from .helpers.examples import EXAMPLES
from .helpers.oracles import PROMISES, Promise, grouped, trips_of

pytestmark = pytest.mark.wide


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("name", grouped(EXAMPLES))
def test_example(name: str, promise: Promise) -> None:
    promise(trips_of(name))
