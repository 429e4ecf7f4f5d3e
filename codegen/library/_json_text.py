"""JSON text -> plain values by the json module, without what it lets pass: keys twice, NaN."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from .base import CodecError

#: What `parse` returns if a key comes twice: it is fast, and does not know where.
REPEATED = object()


class Repeated(dict[str, Any]):
    """An object in which a key came twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        keys = [key for key, _ in pairs]
        self.key = next(key for key in keys if keys.count(key) > 1)


def decoded(data: bytes | memoryview) -> str:
    """The text of JSON in UTF-8."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise CodecError(f"expected UTF-8, found {error.reason} at byte {error.start}") from None


def parse(text: str) -> Any:
    """The plain values of a JSON text, or REPEATED."""
    try:
        return _parse(_DECODER, text)
    except _RepeatedKey:
        return REPEATED


def parse_marking(text: str) -> Any:
    """The plain values of a JSON text, in which an object with a key twice is a Repeated."""
    return _parse(_MARKING, text)


def has_lone_surrogate(text: str, plain: Any = None) -> bool:
    """Whether a JSON text has an escaped surrogate without the other half.

    Args:
        text: JSON.
        plain: What it stands for, where that is known.
    """
    if "\\ud" not in text and "\\uD" not in text:
        return False
    try:
        json.dumps(json.loads(text) if plain is None else plain, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _parse(decoder: json.JSONDecoder, text: str) -> Any:
    try:
        return decoder.decode(text)
    except RecursionError:
        raise CodecError("expected JSON that is not nested too deeply for Python, found deeper") from None
    except ValueError as error:
        raise CodecError(f"expected JSON, found something else: {error}") from None


class _RepeatedKey(Exception):
    pass


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _RepeatedKey
    return made


def _marked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else Repeated(pairs)


def _constant(name: str) -> NoReturn:
    raise ValueError(f'{name} as a number; it is written as "{name}"')


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_constant)
_MARKING = json.JSONDecoder(object_pairs_hook=_marked, parse_constant=_constant)
