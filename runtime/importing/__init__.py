"""From the tree of generated types to an exported program; `pt2wire.exporting` is the mirror image."""

from .program import import_program

__all__ = ["import_program"]
