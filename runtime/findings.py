"""What `validate` reports: a list of records rather than an exception, so that one run shows all faults."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import DeserializeError, UnsafeArtifactError, shown_path


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault in an artifact.

    Attributes:
        rule: A stable short name, such as `undefined-name`.
        path: Where, for example `graph_module.graph.nodes[3].inputs[1].arg`.
        message: What was expected and what was there.
        hint: What to do about it, where something can be done.
        unsafe: Whether the fault would let an artifact run code or reach outside of itself.
    """

    rule: str
    path: str
    message: str
    hint: str | None = None
    unsafe: bool = False

    def error(self) -> DeserializeError:
        """The exception that `load` raises for this finding."""
        kind = UnsafeArtifactError if self.unsafe else DeserializeError
        return kind(self.message, path=self.path, hint=self.hint)

    def __str__(self) -> str:
        return f"{shown_path(self.path)}: {self.message} [{self.rule}]"
