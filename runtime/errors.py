"""The exceptions of pt2wire: one family, each saying where, what was expected, what was there, what to do."""

from __future__ import annotations

import re
from functools import partial

_REPEATED = re.compile(r"((?:\.(\w+)\[\d+\])(?:\.\2\[\d+\]))((?:\.\2\[\d+\]){2,})(?=\.\2\[\d+\])")


def shown_path(path: str) -> str:
    """A path as texts show it: of what nests deep in its own kind, the two ends.

    Example:
        >>> shown_path("in_spec[1]" + 9 * ".children_spec[0]" + ".type")
        'in_spec[1].children_spec[0].children_spec[0] ... 6 more ... .children_spec[0].type'
    """
    return _REPEATED.sub(lambda deep: f"{deep[1]} ... {deep[3].count('[')} more ... ", path)


def plain(text: str) -> str:
    """Text from a file as one line without control characters, which could steer a terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


class Pt2WireError(Exception):
    """Base of every error about the content of a program or an artifact.

    Args:
        message: What was expected and what was there, as one sentence.
        path: Where: a file, a record in it, a path into the tree such as `graph_module.graph.nodes[3]`, or
            the name of a node.
        hint: What the reader can do about it, as a sentence without its period, or a question with its mark.

    Example:
        >>> str(Pt2WireError("expected 8.2 to 8.20, found 9.0", path="schema_version", hint="Upgrade"))
        'schema_version: expected 8.2 to 8.20, found 9.0. Upgrade.'
    """

    def __init__(self, message: str, *, path: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, path, hint)
        self.message = message
        self.path = path
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        # Python's own way passes all by position. What was added to an error on its way out comes along.
        return partial(type(self), path=self.path, hint=self.hint), (self.message,), self.__dict__

    def __str__(self) -> str:
        text = f"{shown_path(self.path)}: {self.message}" if self.path else self.message
        if not self.hint:
            return text
        return f"{text}. {self.hint}" if self.hint.endswith("?") else f"{text}. {self.hint.rstrip('.')}."


class SerializeError(Pt2WireError):
    """A program holds something that cannot be written, or not with the options given."""


class DeserializeError(Pt2WireError):
    """An artifact is damaged, or not what it claims to be."""


class UnsafeArtifactError(DeserializeError):
    """An artifact asks for something that loading never does: running code, or reaching outside of itself."""


def joined(path: str, inner: str) -> str:
    """A path into a document, behind that of the document.

    Example:
        >>> joined("m.pt2:models/model.json", "guards_code[0]")
        'm.pt2:models/model.json:guards_code[0]'
    """
    return f"{path}:{inner}" if path and inner else path or inner
