"""The fuzzers of tests/cpp/fuzz find nothing, and do find faults that are put into the headers."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from .helpers import cpp, fuzzing

SECONDS = 20
SEED = 1

pytestmark = pytest.mark.wide


@pytest.mark.parametrize("name", fuzzing.TARGETS)
def test_nothing_is_found(name: str, tmp_path: Path) -> None:
    """From the seeds and from all that was ever found. More time: make fuzz MINUTES=60."""
    run = fuzzing.fuzz(name, tmp_path, seconds=SECONDS, seed=SEED)
    print(f"fuzzed {name}: {run.inputs} inputs in {run.seconds} s, seed {SEED}", file=sys.__stderr__)
    assert run.failed is None, f"{run.report}\n{run.failed.hex()}"
    assert run.inputs > len(list(tmp_path.iterdir())) > 10


class Fault(NamedTuple):
    """A check that is taken out of a header: its line, the condition in it, and what that is without it."""

    target: str
    header: str
    line: str
    condition: str
    without: str = "!without({number}) && {condition}"


FAULTS = {
    "text beyond the end": Fault(
        "weights", "compact.h", "if (size > remaining()) refuse_size(size);", "size > remaining()"
    ),
    "varints of any width": Fault("weights", "compact.h", "if (shift >= bits ||", "shift >= bits"),
    "tensors of any size": Fault(
        "weights",
        "weights.h",
        "static_cast<std::uint64_t>(needed) > payload.size()",
        "static_cast<std::uint64_t>(needed) > payload.size()",
    ),
    "sizes that overflow": Fault(
        "weights", "weights.h", "a > (INT64_MAX - c) / b", "a > (INT64_MAX - c) / b"
    ),
    "records beyond the end": Fault(
        "archive",
        "zip.h",
        "require(limit - data >= numbers.packed_size,",
        "limit - data >= numbers.packed_size",
        # A record of more than the memory there is would end the fuzzer at once.
        "(without({number}) && numbers.packed_size < 1u << 17) || {condition}",
    ),
}

# One program of a target has all the faults, as it takes a minute to compile: the environment says
# which one is real.
_CHOICE = """#pragma once
#include <cstdlib>
inline bool without(int fault) {
  static const int chosen = std::atoi(std::getenv("FAULT"));
  return fault == chosen;
}
"""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of headers with the faults."""
    include = tmp_path_factory.mktemp("faulty") / "include"
    for folder in cpp.INCLUDES:
        shutil.copytree(folder, include, dirs_exist_ok=True)
    (include / "pt2wire" / "choice.h").write_text(_CHOICE)
    for number, fault in enumerate(FAULTS.values(), 1):
        path = include / "pt2wire" / fault.header
        text = path.read_text()
        assert text.count(fault.line) == fault.line.count(fault.condition) == 1
        without = fault.without.format(number=number, condition=fault.condition)
        faulty = fault.line.replace(fault.condition, f"({without})")
        first = "" if "choice.h" in text else '#include "choice.h"\n'
        path.write_text(first + text.replace(fault.line, faulty))
    return include


@pytest.mark.xdist_group("faults of the headers")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_check_that_is_taken_out_is_missed(fault: str, faulty: Path, tmp_path: Path) -> None:
    number = 1 + list(FAULTS).index(fault)
    environment = {"FAULT": str(number)}
    target = FAULTS[fault].target
    run = fuzzing.fuzz(target, tmp_path, seconds=60, seed=SEED, includes=(faulty,), environment=environment)
    assert run.failed


@pytest.mark.xdist_group("faults of the headers")
@pytest.mark.parametrize("target", sorted({fault.target for fault in FAULTS.values()}))
def test_with_all_checks_in_their_places_nothing_is_found(target: str, faulty: Path, tmp_path: Path) -> None:
    run = fuzzing.fuzz(target, tmp_path, seconds=5, seed=SEED, includes=(faulty,), environment={"FAULT": "0"})
    assert run.failed is None, run.report
