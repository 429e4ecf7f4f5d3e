"""Errors that say where: a path of names, put together on the way out."""

from __future__ import annotations

from ..errors import SerializeError


def located(error: SerializeError, step: str) -> SerializeError:
    """The error to raise for one that occurred in `step`: a node, the subgraph that it holds, a module.

    Example:
        >>> print(located(SerializeError("expected a tensor, found None", path="mul"), "cond"))
        cond.mul: expected a tensor, found None
    """
    path = f"{step}.{error.path}" if error.path else step
    return SerializeError(error.message, path=path, hint=error.hint)
