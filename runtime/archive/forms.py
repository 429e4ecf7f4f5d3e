"""The two forms that documents are in, and how a caller names them."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import Literal

FormName = Literal["json", "thrift"]

DEFAULT_FORMATS: tuple[FormName, ...] = ("json", "thrift")


class Form(enum.StrEnum):
    """The two encodings of a program and its payload configs."""

    JSON = "json"
    THRIFT = "thrift"


def check_form(form: str | None) -> Form | None:
    """The form that a caller names; ValueError for any other word."""
    if form is None:
        return None
    if form not in DEFAULT_FORMATS:
        raise ValueError(f"expected form 'json' or 'thrift', found {form!r:.80}")
    return Form(form)


def check_formats(formats: Sequence[str]) -> tuple[Form, ...]:
    """The forms that a caller lists; ValueError for any other word, and for none at all."""
    listed = isinstance(formats, Iterable) and not isinstance(formats, str | bytes)
    if not listed or not formats or not all(form in DEFAULT_FORMATS for form in formats):
        raise ValueError(f"expected formats such as ('json', 'thrift'), found {formats!r:.80}")
    return tuple(form for form in Form if form in formats)
