"""All cases of the hostile set, whose tables stand in modules by kind."""

from __future__ import annotations

from . import hostile_costs, hostile_files, hostile_found, hostile_own, hostile_programs, hostile_texts  # noqa: F401
from .hostile import HOSTILE, KINDS, Hostile

__all__ = ["HOSTILE", "KINDS", "Hostile"]
