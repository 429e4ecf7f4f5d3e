"""Errors that say where: a path into the tree, put together on the way out.

Building the path beforehand would cost a formatted text for each of a program's objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ..errors import DeserializeError, Pt2WireError

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def within(step: str) -> Iterator[None]:
    """Puts a step in front of the path of every error raised inside.

    Errors of torch and sympy become a DeserializeError that has them as its cause: what they refuse came from
    the artifact.

    Example:
        >>> try:
        ...     with within("graph_module"), within("graph.nodes[3]"):
        ...         raise DeserializeError("expected a name, found ''")
        ... except DeserializeError as error:
        ...     print(error)
        graph_module.graph.nodes[3]: expected a name, found ''
    """
    try:
        yield
    except Exception as error:
        raise located(error, step) from cause_of(error)


def located(error: Exception, step: str) -> DeserializeError:
    """The error to raise for `error`, which occurred in `step` of wherever the caller is."""
    if not isinstance(error, DeserializeError):
        # The texts of torch's errors can hold whole graphs
        text = str(error).strip()
        text = f": {text[:300]}" if text else ""
        return DeserializeError(f"refused by {_origin(error)} with {type(error).__name__}{text}", path=step)
    return type(error)(error.message, path=join(step, error.path), hint=error.hint)


def join(step: str, path: str | None) -> str:
    """A step and the path below it.

    Example:
        >>> join("nodes[3]", "inputs[1]"), join("inputs", "[1]"), join("expr_str", "column 5")
        ('nodes[3].inputs[1]', 'inputs[1]', 'expr_str, column 5')
    """
    if not path:
        return step
    if path.startswith("["):
        return step + path
    return f"{step}, {path}" if path.startswith("column ") else f"{step}.{path}"


def each(step: str, items: Iterable[Item], make: Callable[[Item], Result]) -> list[Result]:
    """`make` of each item; the error of one says which: `step[7]`."""
    made: list[Result] = []
    try:
        for item in items:
            made.append(make(item))
    except Exception as error:
        raise located(error, f"{step}[{len(made)}]") from cause_of(error)
    return made


def each_value(step: str, items: dict[str, Any], make: Callable[[Any], Result]) -> dict[str, Result]:
    """`make` of each value of a dictionary; the error of one says which: `step['key']`."""
    made: dict[str, Result] = {}
    for key, item in items.items():
        try:
            made[key] = make(item)
        except Exception as error:
            raise located(error, f"{step}[{key!r}]") from cause_of(error)
    return made


def cause_of(error: Exception) -> BaseException | None:
    """What the error that `located` makes of this one comes from: errors of ours only pass the cause on."""
    return error.__cause__ if isinstance(error, Pt2WireError) else error


def _origin(error: Exception) -> str:
    """The library whose code raised an error."""
    module = ""
    traceback = error.__traceback__
    while traceback is not None:
        module = traceback.tb_frame.f_globals.get("__name__", "")
        traceback = traceback.tb_next
    library = module.partition(".")[0]
    return library if library in ("torch", "sympy") else "Python"
