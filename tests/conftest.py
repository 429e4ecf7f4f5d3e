"""Settings of the test run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Commands are run as in an activated environment: `pt2wire` and `python` are those of this run.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

# How long an example takes says how busy the machine is, and nothing of what is tested.
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")

# So that a failing assert of a shared helper shows its values.
pytest.register_assert_rewrite("tests.helpers.oracles", "tests.helpers.programs")
