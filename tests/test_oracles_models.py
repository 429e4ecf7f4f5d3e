"""Every promise, for every hand-made model."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .helpers.models import MODELS
from .helpers.oracles import PROMISES, Trips, grouped, trips_of


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("name", grouped(MODELS))
def test_model(name: str, promise: Callable[[Trips], None]) -> None:
    promise(trips_of(name))
