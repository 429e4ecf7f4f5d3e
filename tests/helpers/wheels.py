"""The package as its users get it: a wheel, and a folder that it is installed in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_PIP = (sys.executable, "-m", "pip")


def wheel(folder: Path) -> Path:
    """Builds the wheel of the working tree in a folder."""
    # From a copy, because setuptools builds beside the sources.
    source = folder / "source"
    source.mkdir()
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    command = [*_PIP, "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(source)], check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return made


def installed(folder: Path) -> Path:
    """Installs the wheel of the working tree, without what it needs; gives the folder to import it from."""
    site = folder / "site"
    command = [*_PIP, "install", "--quiet", "--no-deps", "--no-compile", "--target", str(site)]
    subprocess.run([*command, str(wheel(folder))], check=True, capture_output=True)
    return site
