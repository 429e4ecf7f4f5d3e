"""The fuzzers of tests/cpp/fuzz find nothing, and do find faults that are put into the headers."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from .helpers import cpp, fuzzing

SECONDS = 60
SEED = 1

pytestmark = pytest.mark.wide


@pytest.mark.parametrize("name", fuzzing.TARGETS)
def test_nothing_is_found_in_a_minute(name: str, tmp_path: Path) -> None:
    """From the seeds and from all that was ever found. More time: make fuzz MINUTES=60"""
    run = fuzzing.fuzz(name, tmp_path, seconds=SECONDS, seed=SEED)
    print(f"fuzzed {name}: {run.inputs} inputs in {run.seconds} s, seed {SEED}", file=sys.__stderr__)
    assert run.failed is None, f"{run.report}\n{run.failed.hex()}"
    assert run.inputs > len(list(tmp_path.iterdir())) > 10


#: Checks that are taken out of a header: the line, what stands there instead.
FAULTS = {
    "text beyond the end": ("compact.h", "if (size > remaining()) refuse_size(size);", ""),
    "varints of any width": ("compact.h", "if (shift >= bits ||", "if (false && shift >= bits ||"),
    "tensors of any size": ("weights.h", "static_cast<std::uint64_t>(needed) > payload.size()", "false"),
    "sizes that overflow": ("weights.h", "a > (INT64_MAX - c) / b", "false"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_check_that_is_taken_out_is_missed(fault: str, tmp_path: Path) -> None:
    header, check, instead = FAULTS[fault]
    include = tmp_path / "include"
    for folder in cpp.INCLUDES:
        shutil.copytree(folder, include, dirs_exist_ok=True)
    path = include / "pt2wire" / header
    assert path.read_text().count(check) == 1
    path.write_text(path.read_text().replace(check, instead))
    run = fuzzing.fuzz("weights", tmp_path / "corpus", seconds=SECONDS, seed=SEED, includes=(include,))
    assert run.failed is not None
