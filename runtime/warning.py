"""Warnings that point at the line of the user that called pt2wire."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: Whose frames are no lines of the user: this package's, and Python's own around what is decorated.
_PASSED_OVER = {__name__.partition(".")[0], "contextlib", "functools"}
_begins: ContextVar[str] = ContextVar("begins", default="")


@contextmanager
def warnings_about(program: str) -> Iterator[None]:
    """Let all warnings begin with the name of a program, which may be one of several."""
    token = _begins.set(f"{program}: ")
    try:
        yield
    finally:
        _begins.reset(token)


def warn_user(message: str) -> None:
    """Give a UserWarning at the first line outside this package, however deep in it the fault was seen.

    So `warnings.filterwarnings(..., module="their_module")` works, and a warning that is shown once a line
    is shown for each line of theirs.

    Args:
        message: What the user should know, and what they can do about it.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _PASSED_OVER:
        level, frame = level + 1, frame.f_back
    warnings.warn(_begins.get() + message, stacklevel=level)
