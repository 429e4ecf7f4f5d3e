"""The wheel holds what the source tree holds: modules, headers, IDL, schema, templates, library."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

from .helpers.wheels import wheel

ROOT = Path(__file__).resolve().parents[1]
_FOLDERS = {"runtime": "pt2wire", "generated": "pt2wire/generated", "codegen": "pt2wire/codegen"}


def _expected() -> set[str]:
    return {
        f"{package}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, package in _FOLDERS.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_a_half_made_environment_is_completed(tmp_path: Path) -> None:
    """Where making it failed at pip, a python stays behind."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    whole = '#!/bin/sh\necho "$@" >> pip.log\n'
    half, maker = tmp_path / ".venv/bin/python", tmp_path / "maker"
    half.parent.mkdir(parents=True)
    half.write_text("#!/bin/sh\nexit 1\n")
    maker.write_text(f"#!/bin/sh\necho \"$@\" >> maker.log\ncat > .venv/bin/python << 'END'\n{whole}END\n")
    for program in (half, maker):
        program.chmod(0o755)
    command = ["make", "--silent", ".venv/.ready", "PYTHON=./maker"]
    for _ in range(2):
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert (tmp_path / "maker.log").read_text() == "-m venv .venv\n"
    (installed,) = (tmp_path / "pip.log").read_text().splitlines()
    assert installed.startswith("-m pip install ")
    assert done.stdout == ""  # nothing is set up twice
    (tmp_path / ".venv/.ready").unlink()
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "minutes" in done.stdout
    assert (tmp_path / "maker.log").read_text() == "-m venv .venv\n"


def test_the_wheel_holds_every_file_of_the_three_folders(tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel(tmp_path)) as file:
        names = {name for name in file.namelist() if ".dist-info/" not in name}
    assert names == _expected()
