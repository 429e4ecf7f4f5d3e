"""Settings of the test run."""

from __future__ import annotations

import pytest

# So that a failing assert of a shared helper shows its values.
pytest.register_assert_rewrite("tests.helpers.oracles", "tests.helpers.programs")
