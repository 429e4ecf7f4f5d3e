"""YAML with positions: mappings, sequences and scalars that know their line and column.

Only the plain data subset of YAML is taken. Anchors, aliases, merge keys and tags would let one line mean
something far away from it, and are faults; so is a key given twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from .faults import FaultList, with_article
from .model import Position

_KINDS = {
    "tag:yaml.org,2002:str": "string",
    "tag:yaml.org,2002:int": "integer",
    "tag:yaml.org,2002:float": "number",
    "tag:yaml.org,2002:bool": "boolean",
    "tag:yaml.org,2002:null": "null",
    "tag:yaml.org,2002:timestamp": "date",
}


#: How deeply a schema nests, down to what is reserved: more than that is none.
_MAX_DEPTH = 32


def shortened(text: str) -> str:
    """A text from the file as messages show it: what does not print as an escape, and cut."""
    line = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)
    return line if len(line) <= 60 else line[:57] + "..."


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar: its text as written, what YAML takes it for, and whether it stands in quotes."""

    position: Position
    text: str
    kind: str
    quoted: bool

    def __str__(self) -> str:
        given = self.text or self.quoted
        return f"`{shortened(self.text)}`, {with_article(self.kind)}" if given else "nothing"


@dataclass(frozen=True, slots=True)
class Sequence:
    """A YAML list."""

    position: Position
    items: tuple[Element, ...]

    def __str__(self) -> str:
        return "a list"


@dataclass(frozen=True, slots=True)
class Entry:
    """A key's value, and where the key stands."""

    position: Position
    value: Element


@dataclass(frozen=True, slots=True)
class Mapping:
    """A YAML mapping; its keys are text and unique."""

    position: Position
    entries: dict[str, Entry]

    def __str__(self) -> str:
        return "a mapping"


Element = Scalar | Sequence | Mapping


class _PlainLoader(yaml.SafeLoader):
    """Composes nodes without anchors and aliases, so that the result is a tree, and without tags."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise yaml.MarkedYAMLError(
                problem="anchors and aliases are not part of the schema language",
                problem_mark=event.start_mark,
            )
        if event.tag is not None:
            raise yaml.MarkedYAMLError(
                problem=f"expected plain data, found the tag {event.tag!r}", problem_mark=event.start_mark
            )
        if self.depth == _MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem="nested too deeply", problem_mark=event.start_mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def read_source(data: bytes, file: str, faults: FaultList) -> Element | None:
    """Reads YAML into elements with positions.

    Args:
        data: The file's content.
        file: Its name, for positions.
        faults: Receives what is wrong with the YAML itself.

    Returns:
        The root element, or None where there is nothing to go on with.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = _place(file, data[: error.start].decode("utf-8", "replace"))
        faults.add("yaml-syntax", place, f"expected UTF-8, found the byte 0x{data[error.start]:02x}")
        return None
    loader: _PlainLoader | None = None
    try:
        loader = _PlainLoader(text)
        node = loader.get_single_node()
        if node is None:
            faults.add("yaml-syntax", Position(file, 1, 1), "expected a mapping, found an empty file")
            return None
        return _Converter(file, faults).element(node)
    except yaml.reader.ReaderError as error:
        place = _place(file, text[: error.position])
        faults.add("yaml-syntax", place, f"the character {chr(error.character)!a} is not allowed in YAML")
    except yaml.MarkedYAMLError as error:
        mark, problem = _located(error, len(text))
        faults.add("yaml-syntax", _marked(file, mark), problem)
    except (ValueError, OverflowError) as error:
        # PyYAML lets a malformed escape such as "\UFFFFFFFF" escape as it is, where its loader stands.
        assert loader is not None, "PyYAML reads no escapes before it is asked for a node"
        faults.add("yaml-syntax", _marked(file, loader.get_mark()), f"not well-formed YAML: {error}")
    return None


def _marked(file: str, mark: yaml.Mark) -> Position:
    return Position(file, mark.line + 1, mark.column + 1)


def _located(error: yaml.MarkedYAMLError, end: int) -> tuple[yaml.Mark, str]:
    """Where PyYAML finds a fault, and what it says."""
    mark, problem = error.problem_mark or error.context_mark, error.problem or "not well-formed YAML"
    assert mark is not None, "PyYAML says of each such error where it is"
    # What is still open at the end of a file is at fault where it begins.
    opening = error.context_mark if mark.index >= end else None
    if error.context and (opening or problem.startswith("but ")):
        problem = f"{error.context}, {problem}"
    return opening or mark, problem


def _place(file: str, before: str) -> Position:
    """The position behind the text `before`."""
    return Position(file, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


class _Converter:
    """Turns PyYAML's nodes into elements."""

    def __init__(self, file: str, faults: FaultList) -> None:
        self._file = file
        self._faults = faults

    def element(self, node: yaml.Node) -> Element:
        position = self._position(node)
        if isinstance(node, yaml.MappingNode):
            return Mapping(position, self._entries(node))
        if isinstance(node, yaml.SequenceNode):
            return Sequence(position, tuple(self.element(item) for item in node.value))
        assert isinstance(node, yaml.ScalarNode), "YAML has no fourth kind of node"
        kind = _KINDS.get(node.tag)
        if kind is None:
            message = "expected plain data, found a special word of YAML's"
            self._faults.add("yaml-syntax", position, message, "Put it in quotes")
        return Scalar(position, self._text(node), kind or "string", node.style is not None)

    def _entries(self, node: yaml.MappingNode) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        for key_node, value_node in node.value:
            position = self._position(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                self._faults.add("wrong-node", position, "expected a string as key, found a list or mapping")
                continue
            key = self._text(key_node)
            if key_node.tag != "tag:yaml.org,2002:str":
                kind = with_article(_KINDS.get(key_node.tag, "special word"))
                message = f"expected a string as key, found `{shortened(key)}`, which YAML reads as {kind}"
                self._faults.add("wrong-node", position, message, "Put it in quotes")
            value = self.element(value_node)
            if key in entries:
                first = entries[key].position
                message = f"the key `{shortened(key)}` was already given in line {first.line}"
                self._faults.add("duplicate-key", position, message, "Remove or rename one of them")
                continue
            entries[key] = Entry(position, value)
        return entries

    def _text(self, node: yaml.ScalarNode) -> str:
        """A scalar's text, in which escapes such as "\\ud800" may have left what no file can hold."""
        text: str = node.value
        if any(0xD800 <= ord(sign) <= 0xDFFF for sign in text):
            message = "expected text that UTF-8 can hold, found an escape for half a surrogate pair"
            self._faults.add("yaml-syntax", self._position(node), message, "Write the character itself")
            return text.encode("utf-8", "replace").decode()
        return text

    def _position(self, node: yaml.Node) -> Position:
        return _marked(self._file, node.start_mark)
