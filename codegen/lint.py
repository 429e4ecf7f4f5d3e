"""Judgements on a schema that resolves: a table of rules, each one small function."""

from __future__ import annotations

from .faults import Finding
from .model import Schema


def lint(schema: Schema) -> list[Finding]:
    """All findings, in the order of the file."""
    return []
