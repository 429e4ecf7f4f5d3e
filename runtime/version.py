"""The version of pt2wire: pyproject.toml and the CMake package read it here."""

__version__ = "0.1.0"
