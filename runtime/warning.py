"""Warnings that point at the line of the user that called pt2wire."""

from __future__ import annotations

import sys
import warnings

_PACKAGE = __name__.partition(".")[0]


def warn_user(message: str) -> None:
    """Give a UserWarning at the first line outside this package, however deep in it the fault was seen.

    So `warnings.filterwarnings(..., module="their_module")` works, and a warning that is shown once a line
    is shown for each line of theirs.

    Args:
        message: What the user should know, and what they can do about it.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)
