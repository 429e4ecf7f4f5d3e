"""Every promise, for models of transformers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .helpers.families import FAMILIES
from .helpers.oracles import PROMISES, Trips, grouped, trips_of


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("name", grouped(FAMILIES))
def test_family(name: str, promise: Callable[[Trips], None]) -> None:
    promise(trips_of(name))
