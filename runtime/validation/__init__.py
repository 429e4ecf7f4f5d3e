"""Checks of artifacts: rules as a table, findings as records, nothing of a file ever run.

Structure needs no torch: `validate_tree`, `validate_payloads`. Operators do: `validate_operators`.
"""

from __future__ import annotations

from .payloads import validate_payloads
from .rules import RULES, Rule
from .trees import validate_tree

__all__ = ["RULES", "Rule", "validate_payloads", "validate_tree"]
