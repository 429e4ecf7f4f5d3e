"""Every promise, for every hand-made model."""

from __future__ import annotations

import pytest

from .helpers.models import MODELS
from .helpers.oracles import PROMISES, Promise, grouped, trips_of


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("name", grouped(MODELS))
def test_model(name: str, promise: Promise) -> None:
    promise(trips_of(name))
