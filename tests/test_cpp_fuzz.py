"""The fuzzers of tests/cpp/fuzz find nothing, and do find faults that are put into the headers."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

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


#: Checks that are taken out of a header: where, the line, and the condition in it that then does not count.
FAULTS = {
    "text beyond the end": ("compact.h", "if (size > remaining()) refuse_size(size);", "size > remaining()"),
    "varints of any width": ("compact.h", "if (shift >= bits ||", "shift >= bits"),
    "tensors of any size": (
        "weights.h",
        "static_cast<std::uint64_t>(needed) > payload.size()",
        "static_cast<std::uint64_t>(needed) > payload.size()",
    ),
    "sizes that overflow": ("weights.h", "a > (INT64_MAX - c) / b", "a > (INT64_MAX - c) / b"),
}

# One program has all the faults, as it takes a minute to compile; the environment says which one is real.
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
    for number, (header, line, condition) in enumerate(FAULTS.values(), 1):
        path = include / "pt2wire" / header
        text = path.read_text()
        assert text.count(line) == line.count(condition) == 1
        faulty = line.replace(condition, f"(!without({number}) && {condition})")
        first = "" if "choice.h" in text else '#include "choice.h"\n'
        path.write_text(first + text.replace(line, faulty))
    return include


@pytest.mark.xdist_group("faults of the headers")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_check_that_is_taken_out_is_missed(fault: str, faulty: Path, tmp_path: Path) -> None:
    number = 1 + list(FAULTS).index(fault)
    environment = {"FAULT": str(number)}
    run = fuzzing.fuzz(
        "weights", tmp_path, seconds=60, seed=SEED, includes=(faulty,), environment=environment
    )
    assert run.failed


@pytest.mark.xdist_group("faults of the headers")
def test_with_all_checks_in_their_places_nothing_is_found(faulty: Path, tmp_path: Path) -> None:
    run = fuzzing.fuzz(
        "weights", tmp_path, seconds=5, seed=SEED, includes=(faulty,), environment={"FAULT": "0"}
    )
    assert run.failed is None, run.report
