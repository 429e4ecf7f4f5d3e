"""The table of docs/security.md: what becomes of the hostile set in PyTorch's hands and in ours.

`python -m tests.helpers.hostile_page` runs the set and writes the table and the page. With `torch` after it,
PyTorch's reader is measured on files that it was not measured on yet, with `torch again` on all; what came of
it is stored in `tests/data/hostile/torch.json`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import torch

from .hostile_runs import BAD, OUTCOMES, Outcome, run
from .hostile_set import HOSTILE, KINDS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/security.md"
STORED = ROOT / "tests/data/hostile/torch.json"

_STORED_AT_ONCE = 16
_BEGIN, _END = "<!-- table of the hostile set -->\n", "<!-- end of the table -->\n"


def stored_control() -> tuple[str, dict[str, str]]:
    """What became of cases in PyTorch's hands when they were measured: its version, outcome by case.

    Cases that are newer than the last measurement are not among them.
    """
    stored = json.loads(STORED.read_text())
    return stored["version"], stored["outcomes"]


def _version() -> str:
    return str(torch.__version__).partition("+")[0]


def store_control(outcomes: Mapping[str, Outcome]) -> None:
    found = {name: outcome.outcome for name, outcome in outcomes.items()}
    stored = {"version": _version(), "outcomes": found}
    STORED.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")


def table(ours: Mapping[str, str]) -> str:
    """The table for the outcomes of pt2wire by case."""
    version, theirs = stored_control()
    readers = f"PyTorch {version}", "pt2wire"
    head = ("kind", *(f"{reader}: {what}" for reader in readers for what in ("files", *BAD)))
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for kind, hope in KINDS.items():
        names = [name for name, case in HOSTILE.items() if case.kind == kind]
        lines.append(_row(f"{kind}: {hope}", names, theirs, ours))
    lines.append(_row("all", list(HOSTILE), theirs, ours))
    return "\n".join(lines) + "\n"


def _row(title: str, names: list[str], *readers: Mapping[str, str]) -> str:
    cells = [title]
    for outcomes in readers:
        counts = Counter(outcomes[name] for name in names if name in outcomes)
        cells += [str(counts.total()), *(str(counts[outcome]) for outcome in BAD)]
    return f"| {' | '.join(cells)} |"


def page(ours: Mapping[str, str]) -> str:
    """The page with the table as it should be."""
    before, _, rest = PAGE.read_text().partition(_BEGIN)
    return before + _BEGIN + "\n" + table(ours) + "\n" + _END + rest.partition(_END)[2]


def _measure_control(again: bool) -> None:
    version, stored = stored_control()
    if again or version != _version():
        stored = {}
    found = {name: Outcome(outcome, "") for name, outcome in stored.items() if name in HOSTILE}
    missing = [name for name in HOSTILE if name not in found]
    for start in range(0, len(missing), _STORED_AT_ONCE):  # some take long, and all are kept
        found |= run("torch", missing[start : start + _STORED_AT_ONCE])
        store_control(found)


def main(arguments: list[str]) -> None:
    if "torch" in arguments:
        _measure_control("again" in arguments)
    ours = run("pt2wire", HOSTILE)
    for name, outcome in ours.items():
        if outcome.outcome in BAD:
            print(f"{name}: {outcome.outcome}: {outcome.detail}")
    PAGE.write_text(page({name: outcome.outcome for name, outcome in ours.items()}))


if __name__ == "__main__":
    main(sys.argv[1:])

__all__ = ["OUTCOMES", "PAGE", "STORED", "main", "page", "store_control", "stored_control", "table"]
