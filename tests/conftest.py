"""Settings of the test run."""

from __future__ import annotations

import os
import sys
import time
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


_BEGUN = time.monotonic()
_TIME_IS_UP = "not begun in time"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--wide-minutes",
        type=float,
        default=float("inf"),
        help="wide tests that have not begun so many minutes after the start are left out, and listed",
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    minutes = item.config.getoption("--wide-minutes")
    if item.get_closest_marker("wide") and time.monotonic() - _BEGUN > minutes * 60:
        pytest.skip(_TIME_IS_UP)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which tests a time limit left out: they have not passed."""
    left_out = [
        report.nodeid
        for report in terminalreporter.stats.get("skipped", ())
        if isinstance(report.longrepr, tuple) and _TIME_IS_UP in report.longrepr[2]
    ]
    minutes = config.getoption("--wide-minutes")
    if minutes < float("inf"):
        terminalreporter.section(f"{len(left_out)} wide tests were not begun within {minutes:g} minutes")
        for nodeid in left_out:
            terminalreporter.line(nodeid)
