"""What is wrong with a schema: records with a rule and a place, and the error that carries them."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .model import Position


class Level(enum.Enum):
    """What a finding endangers; all but STYLE keep `generate` from writing anything."""

    SCHEMA = "schema"  # the file cannot be resolved
    WIRE = "wire"  # bytes would be misread, by PyTorch or by another version
    JSON = "json"  # JSON would be misread, though Thrift's bytes would not
    SOURCE = "source"  # the generated code would not compile, or would hide a name
    STYLE = "style"  # a reader of the schema would be left alone, or one language of Apache's


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault in a schema: where, by which rule, what was expected and found, what to do.

    Message and hint are sentences without the period at the end.
    """

    position: Position
    rule: str
    level: Level
    message: str
    hint: str | None = None

    def text(self) -> str:
        """The finding as one line: `schema.yaml:12:5: message. Hint. [rule]`."""
        return f"{self.position}: {self._sentence()} [{self.rule}]"

    def github(self) -> str:
        """The finding as an annotation of GitHub Actions."""
        return annotation(
            self._sentence(),
            file=self.position.file,
            line=self.position.line,
            col=self.position.column,
            title=self.rule,
        )

    def _sentence(self) -> str:
        return f"{self.message}. {self.hint}." if self.hint else f"{self.message}."


def annotation(message: str, **properties: object) -> str:
    """A command to GitHub Actions that shows a message at a place, with what would end it early escaped."""
    if "file" in properties:
        properties["file"] = _in_repository(str(properties["file"]))
    place = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::error {place}::{_data(message)}"


def _in_repository(file: str) -> str:
    """A file as GitHub knows it, from the top of the repository, wherever the command runs."""
    top, place = os.environ.get("GITHUB_WORKSPACE"), os.path.abspath(file)
    return os.path.relpath(place, top) if top and Path(place).is_relative_to(top) else file


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Findings in the order of the file; at one place, in that of the rules' names."""
    return sorted(findings, key=lambda finding: (finding.position, finding.rule))


def with_article(noun: str) -> str:
    """A noun as messages speak of it for the first time: `an enum`, `a union`."""
    return f"an {noun}" if noun[0] in "aeio" else f"a {noun}"


class SchemaError(Exception):
    """A schema that nothing can be generated from: it cannot be resolved, or its code would be wrong.

    `findings` holds every fault found, in the order of the file.
    """

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = tuple(in_order(findings))
        super().__init__(self.findings)

    def __str__(self) -> str:
        return "\n".join(finding.text() for finding in self.findings)


class FaultList:
    """Collects faults, so that one run shows all of them rather than the first."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def add(self, rule: str, position: Position, message: str, hint: str | None = None) -> None:
        self.findings.append(Finding(position, rule, Level.SCHEMA, message, hint))

    def raise_if_any(self) -> None:
        """Raises SchemaError if any fault has been added."""
        if self.findings:
            raise SchemaError(self.findings)
