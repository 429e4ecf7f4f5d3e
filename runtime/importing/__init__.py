"""From the tree of generated types to an exported program; `pt2wire.exporting` is the mirror image."""

from .program import check_weights, import_program

__all__ = ["check_weights", "import_program"]
