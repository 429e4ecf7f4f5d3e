"""No file of the hostile set runs code, ends or stops the process, or loads as something else.

A share of the set runs with every `make test`, all of it with the wide tests, and all of it through PyTorch's
reader, the control, with `make control`. docs/security.md has the table.
"""

from __future__ import annotations

import re

import pytest

from .helpers.hostile_found import FOLDER, FOUND
from .helpers.hostile_page import PAGE, page, stored_control
from .helpers.hostile_runs import BAD, run
from .helpers.hostile_set import HOSTILE, KINDS

_COMMAND = "run `python -m tests.helpers.hostile_page`"


def test_there_are_files_of_every_kind() -> None:
    kinds = [case.kind for case in HOSTILE.values()]
    assert set(kinds) == set(KINDS)
    assert min(map(kinds.count, KINDS)) >= 5 and len(HOSTILE) >= 150


#: The ways in of docs/security.md, with the kinds of files that try them. Each file that loads is called,
#: interpreted, decomposed, compiled and printed, and may leave nothing behind: see `hostile_runs`.
_WAYS_IN = {
    "symbolic sizes": {"expressions", "symbols"},
    "names of inputs, nodes, subgraphs, arguments and weights": {"names"},
    "constant texts and keys of dictionaries": {"texts"},
    "guards": {"guards"},
    "targets of nodes, operators among arguments": {"targets"},
    "operators that touch files or raw storage": {"operators"},
    "operators that nobody searched": {"operators"},
    "sparse tensors, whose indices operators of PyTorch believe": {"operators", "graphs"},
    "names of methods of custom objects": {"operators"},
    "formats of what a program prints": {"operators"},
    "tree specs": {"treespecs"},
    "pickles": {"pickles"},
    "compiled libraries": {"libraries"},
    "notes on nodes": {"metadata"},
    "notes, arguments and contexts": {"metadata", "treespecs"},
}


def test_each_way_in_that_the_page_names_is_tried() -> None:
    _, _, section = PAGE.read_text().partition("## How code would get in")
    rows = re.findall(r"^\| (?!way in|---)(.*?) \|", section.partition("\nExample inputs")[0], re.MULTILINE)
    assert {row.partition(":")[0] for row in rows} == _WAYS_IN.keys()
    assert set().union(*_WAYS_IN.values()) <= set(KINDS)


def test_each_stored_file_is_described() -> None:
    described = re.findall(r"^\| `(.*?\.pt2)` \|", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert sorted(described) == sorted(FOUND) == sorted(file.name for file in FOLDER.glob("*.pt2"))


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.wide) for part in range(1, 8))])
def test_the_set_does_no_harm(part: int) -> None:
    """One file in eight by default, others each time that the set grows."""
    names = list(HOSTILE)[part::8]
    outcomes = run("pt2wire", names)
    assert list(outcomes) == names
    assert {name: outcome for name, outcome in outcomes.items() if outcome.outcome in BAD} == {}


def test_the_page_has_the_table() -> None:
    """Zeros for pt2wire, as the tests above show, and what is stored of PyTorch's reader."""
    harmless = dict.fromkeys(HOSTILE, "harmless")
    assert page(harmless) == PAGE.read_text(), _COMMAND


def test_the_control_is_alive() -> None:
    """PyTorch's reader runs code of these files, so that code in them would show."""
    _, outcomes = stored_control()
    assert outcomes.keys() <= HOSTILE.keys(), f"{_COMMAND} with `torch`"
    assert len(outcomes) > len(HOSTILE) // 3, f"{_COMMAND} with `torch`"
    alive = [name for name, outcome in outcomes.items() if outcome == "code run"]
    assert len(alive) >= 20
    found = run("torch", alive[::6])
    assert {name: outcome.outcome for name, outcome in found.items()} == dict.fromkeys(alive[::6], "code run")


@pytest.mark.wide
@pytest.mark.control
def test_the_control_is_as_it_was() -> None:
    """PyTorch's reader as stored: of a new PyTorch, measure it again."""
    _, outcomes = stored_control()
    found = {name: outcome.outcome for name, outcome in run("torch", outcomes).items()}
    changed = {name: (outcomes[name], found[name]) for name in found if found[name] != outcomes[name]}
    # Time and memory decide a few of them.
    assert len(changed) <= len(HOSTILE) // 50, changed
