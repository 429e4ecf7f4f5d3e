"""Typed access to positioned YAML: each function returns the value, or records a fault and returns None."""

from __future__ import annotations

import re

from .faults import FaultList
from .model import Position, Version
from .source import Element, Entry, Mapping, Scalar, Sequence, shortened

#: An integer of up to 64 bits, or slightly more: the range is for the caller to check.
DECIMAL = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_VERSION = re.compile(r"(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})")  # bindings hold both in 32 bits
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Reader:
    """Takes values of the expected kinds out of elements; what is wrong goes into `faults`."""

    def __init__(self, faults: FaultList) -> None:
        self.faults = faults

    def keys(
        self, element: Element, what: str, required: tuple[str, ...], optional: tuple[str, ...] = ()
    ) -> dict[str, Element] | None:
        """The values of a mapping that has all required keys and none outside of required and optional."""
        mapping = self.mapping(element, what)
        if mapping is None:
            return None
        for key, entry in mapping.items():
            if key not in required and key not in optional:
                known = ", ".join((*required, *optional))
                self.faults.add(
                    "unknown-key",
                    entry.position,
                    f"unknown key `{shortened(key)}` in {what}",
                    f"Known: {known}",
                )
        for key in required:
            if key not in mapping:
                self.faults.add("missing-key", element.position, f"{what} has no `{key}`", "Add it")
        return {key: entry.value for key, entry in mapping.items() if key in (*required, *optional)}

    def mapping(self, element: Element, what: str) -> dict[str, Entry] | None:
        if isinstance(element, Mapping):
            return element.entries
        self._wrong(element, what, "a mapping")
        return None

    def items(self, element: Element, what: str) -> tuple[Element, ...] | None:
        if isinstance(element, Sequence):
            return element.items
        self._wrong(element, what, "a list")
        return None

    def string(self, element: Element, what: str) -> str | None:
        if isinstance(element, Scalar) and element.kind == "string":
            return element.text
        self._wrong(element, what, "a string")
        return None

    def identifier(self, element: Element, what: str) -> str | None:
        text = self.string(element, what)
        if text is not None and not _IDENTIFIER.fullmatch(text):
            self._invalid_identifier(element.position, what, text)
            return None
        return text

    def check_name(self, name: str, entry: Entry, what: str) -> None:
        """Records a fault if a key of a mapping cannot be a name."""
        if not _IDENTIFIER.fullmatch(name):
            self._invalid_identifier(entry.position, what, name)

    def integer(self, element: Element, what: str, low: int, high: int) -> int | None:
        """An integer in plain decimal: YAML would read `010` as 8 and `1:30` as 90."""
        if isinstance(element, Scalar) and element.kind == "integer":
            if not DECIMAL.fullmatch(element.text):
                message = f"expected {what} as a decimal integer, found `{shortened(element.text)}`"
                self.faults.add("wrong-value", element.position, message)
                return None
            value = int(element.text)
            if not low <= value <= high:
                message = f"expected {what} from {low} to {high}, found {value}"
                self.faults.add("wrong-value", element.position, message)
                return None
            return value
        self._wrong(element, what, "an integer")
        return None

    def version(self, element: Element, what: str) -> Version | None:
        """A version in quotes: without them YAML would read 8.20 as the number 8.2."""
        if isinstance(element, Scalar) and element.kind == "number":
            shown = shortened(element.text)
            message = f"{what} {shown} is a number to YAML, and 8.20 would equal 8.2"
            self.faults.add("unquoted-version", element.position, message, f'Write "{shown}"')
            return None
        text = self.string(element, what)
        if text is None:
            return None
        match = _VERSION.fullmatch(text)
        if match is None:
            message = f'expected {what} as "MAJOR.MINOR", at most nine digits each, found "{shortened(text)}"'
            self.faults.add("wrong-value", element.position, message)
            return None
        return Version(int(match[1]), int(match[2]))

    def _invalid_identifier(self, position: Position, what: str, text: str) -> None:
        message = f"expected {what} as letters, digits and underscores, found `{shortened(text)}`"
        self.faults.add("invalid-identifier", position, message)

    def _wrong(self, element: Element, what: str, expected: str) -> None:
        hint = "Put it in quotes" if isinstance(element, Scalar) and expected == "a string" else None
        message = f"expected {what} to be {expected}, found {element}"
        self.faults.add("wrong-node", element.position, message, hint)
