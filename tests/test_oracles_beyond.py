"""The promises that hold without PyTorch's help, for every model where it gives up."""

from __future__ import annotations

import pytest

from .helpers.models import BEYOND
from .helpers.oracles import PROMISES_BEYOND_PYTORCH, Promise, grouped, trips_of


@pytest.mark.parametrize("promise", PROMISES_BEYOND_PYTORCH, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("name", grouped(BEYOND))
def test_model_beyond_pytorch(name: str, promise: Promise) -> None:
    promise(trips_of(name))
