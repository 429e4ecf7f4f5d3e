"""Archives changed at random give our error or a program, in bounded time and memory.

`FUZZ_COUNT` says how many the wide test tries, `FUZZ_SEED` which; `make fuzz-python` tries 20,000.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from .helpers.fuzzing_python import _LEVELS, make
from .helpers.hostile_runs import ROOT


def _fuzz(count: int, seed: int) -> str:
    """What a run prints. It has a process of its own, since it forks and bounds memory."""
    command = [
        sys.executable,
        "-m",
        "tests.helpers.fuzzing_python",
        "--count",
        str(count),
        "--seed",
        str(seed),
    ]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr[-2000:]
    return run.stdout


def test_random_changes_give_our_error_or_a_program() -> None:
    printed = _fuzz(150, seed=0)
    assert "seed 0, files 0 to 150" in printed
    assert "tried 150: " in printed


@pytest.mark.wide
def test_many_random_changes_give_our_error_or_a_program() -> None:
    _fuzz(int(os.environ.get("FUZZ_COUNT", 1000)), int(os.environ.get("FUZZ_SEED", 0)))


def test_every_level_is_changed_and_most_changes_change_something() -> None:
    files = [make(3, number) for number in range(200)]
    assert {level for level, _ in files} == _LEVELS.keys()
    assert len({data for _, data in files}) > 150


def test_a_fault_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: what is no error of ours is a finding, and so is a process that ends."""
    import pt2wire

    from .helpers import fuzzing_python

    def broken(*_: object, **__: object) -> None:
        raise KeyError("broken")

    monkeypatch.setattr(pt2wire, "load", broken)
    assert fuzzing_python.check(b"") == "load raised KeyError: 'broken'"
    monkeypatch.setattr(fuzzing_python, "check", lambda data: None if len(data) > 100_000 else os.abort())
    monkeypatch.setattr(fuzzing_python, "honest", lambda: bytes(200_000))
    found, _ = fuzzing_python.fuzz(2, seed=3)
    assert [finding.problem for finding in found] == ["the process ended: SIGABRT"] * 2


def test_a_check_that_is_missing_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of calls: without the check of guards, one of no input is an accident of Python."""
    import pt2wire

    from .helpers.archives import linear_program
    from .helpers.fuzzing_calls import accident

    ep = linear_program()
    tree = pt2wire.to_tree(ep)
    tree.guards_code.append("L['nope'].size()[0] == 3")
    monkeypatch.setattr("pt2wire.validation.trees.check_guards", lambda *_: None)
    inputs = ep.example_inputs
    assert inputs is not None
    program = pt2wire.from_tree(tree, dict(ep.state_dict), ep.constants, example_inputs=inputs)
    found = accident(program, *inputs, thorough=False)
    assert found == "the call raised NameError: name 'L' is not defined"
