"""Where the parts of the installed package lie that are no Python code."""

from __future__ import annotations

import importlib.util
from pathlib import Path

#: The include folders: one of handwritten headers, one of the generated header.
INCLUDES = ("include", "generated include")


def paths() -> dict[str, str]:
    """The folders and files, by what they are.

    Example:
        >>> paths()["thrift"].endswith("schema.thrift")
        True
    """
    runtime = Path(__file__).parent
    generated, codegen = _folder("generated"), _folder("codegen")
    found = {
        "include": runtime / "include",
        "generated include": generated / "include",
        "cmake": runtime / "cmake",
        "thrift": generated / "schema.thrift",
        "schema": generated / "schema.yaml",
        "resolved schema": generated / "schema.json",
        "templates": codegen / "templates",
    }
    return {what: str(path) for what, path in found.items()}


def _folder(package: str) -> Path:
    # Finds a package without importing it.
    spec = importlib.util.find_spec(f"{__package__}.{package}")
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"pt2wire.{package} is not installed: install the package pt2wire again")
    return Path(spec.origin).parent
