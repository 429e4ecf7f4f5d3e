"""What a rule is: an id to find it by, what it protects, an example of what it finds, and a pure function.

Messages and hints call the two sides of a schema the format and its extensions, which have `since_revision`:
in schema.yaml the one is PyTorch's and the others are ours, and a schema of one's own has nothing of either.
Purposes and examples speak of schema.yaml.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from .faults import Finding, Level, in_order
from .model import Position, Schema


@dataclass(frozen=True, slots=True)
class Report:
    """What a rule has found: where, what, and what to do; sentences without the period at the end."""

    position: Position
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Break:
    """A change that breaks: where, what, and whether in pt2wire's part of the schema (`own`) or PyTorch's."""

    position: Position
    message: str
    own: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as a user sees it.

    Attributes:
        id: The name that stands behind each finding.
        level: What a finding endangers.
        purpose: What the rule keeps true.
        example: What it finds, in the notation of schema.yaml where that is short.
    """

    id: str
    level: Level
    purpose: str
    example: str


@dataclass(frozen=True, slots=True)
class LintRule(Rule):
    """A judgement on one schema."""

    check: Callable[[Schema], Iterator[Report]]


@dataclass(frozen=True, slots=True)
class BreakingRule(Rule):
    """A judgement on two schemas, before and after a change; reports name places in the one after."""

    check: Callable[[Schema, Schema], Iterator[Report]]


def findings(reported: Iterable[tuple[Rule, Report]]) -> list[Finding]:
    """What rules have reported, as findings in the order of the file."""
    return in_order(
        Finding(report.position, rule.id, rule.level, report.message, report.hint)
        for rule, report in reported
    )
