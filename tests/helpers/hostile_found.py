"""Hostile files that random changes found, as stored: `tests/data/hostile/README.md` describes them."""

from __future__ import annotations

from pathlib import Path

from .hostile import add

FOLDER = Path(__file__).resolve().parents[1] / "data/hostile"

#: By file: the kind, what it proves, and whether it must not load.
FOUND: dict[str, tuple[str, str, bool]] = {
    "forward-names-too-few.pt2": ("names", "each argument has its name", True),
}
for _file, (_kind, _proves, _refused) in FOUND.items():
    add(_kind, _file, _proves, (FOLDER / _file).read_bytes, refused=_refused)
