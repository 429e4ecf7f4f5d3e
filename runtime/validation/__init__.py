"""Checks of artifacts: rules as a table, findings as records, nothing of a file ever run.

Structure needs no torch: `validate_types`, `validate_tree`, `validate_payloads`. Operators do:
`operators.validate_operators`, `sparse_flow.validate_sparse_flow`. `validate` does all of it, for a tree or
a file.
"""

from __future__ import annotations

from .files import validate
from .payloads import validate_payloads
from .rules import RULES, Rule
from .trees import validate_tree, validate_types

__all__ = ["RULES", "Rule", "validate", "validate_payloads", "validate_tree", "validate_types"]
