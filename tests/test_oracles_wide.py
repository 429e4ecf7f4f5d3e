"""Every promise, for programs that take long: examples, further families, models of other libraries."""

from __future__ import annotations

import pytest

from .helpers.examples import EXAMPLES
from .helpers.families_more import MORE_FAMILIES
from .helpers.libraries import LIBRARIES
from .helpers.oracles import PROMISES, Promise, grouped, trips_of

pytestmark = pytest.mark.wide


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("name", grouped([*EXAMPLES, *MORE_FAMILIES, *LIBRARIES]))
def test_program(name: str, promise: Promise) -> None:
    promise(trips_of(name))
