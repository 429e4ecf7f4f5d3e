"""From an exported program to the tree of generated types; `pt2wire.importing` is the mirror image."""

from .program import export_program

__all__ = ["export_program"]
