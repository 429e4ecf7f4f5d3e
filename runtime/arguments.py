"""Arguments of a wrong type: refused where the user calls, by name. Needs no torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .generated.types import ExportedProgram
from .limits import Limits


def described(value: object) -> str:
    """What a value is, with the package of its type: two classes are called `ExportedProgram`.

    Example:
        >>> described(Limits())
        'Limits of pt2wire'
    """
    kind = type(value)
    return f"{kind.__qualname__} of {kind.__module__.partition('.')[0]}"


def mistaken(expected: str, value: object) -> TypeError:
    """The error for what is no tree or program; for one in place of the other, with what makes it that.

    Args:
        expected: What was expected.
        value: What was there.

    Example:
        >>> str(mistaken("a tree", 3))
        'expected a tree, found int of builtins'
    """
    hint = ""
    if isinstance(value, ExportedProgram):
        hint = ". pt2wire.from_tree makes a program of a tree"
    elif type(value).__name__ == ExportedProgram.__name__:
        hint = ". pt2wire.to_tree makes a tree of a program"
    return TypeError(f"expected {expected}, found {described(value)}{hint}")


def check_tree(tree: object) -> None:
    """Refuse what is no tree, with its type: most often it is PyTorch's program of the same name.

    Raises:
        TypeError: It is no tree of a program.
    """
    if not isinstance(tree, ExportedProgram):
        raise mistaken("a tree, an ExportedProgram of pt2wire.generated", tree)


def check_limits(limits: object) -> None:
    """Refuse what are no limits.

    Raises:
        TypeError: It is no `Limits`.
    """
    if not isinstance(limits, Limits):
        raise TypeError(f"expected limits as pt2wire.Limits, found {type(limits).__name__}")


def check_flags(**flags: object) -> None:
    """Refuse what is neither True nor False: any other text or number would be taken for one of them.

    Raises:
        TypeError: It names the argument.

    Example:
        >>> check_flags(mmap=True, verify="no")
        Traceback (most recent call last):
        ...
        TypeError: expected verify as True or False, found 'no'
    """
    for argument, value in flags.items():
        if not isinstance(value, bool):
            raise TypeError(f"expected {argument} as True or False, found {value!r:.80}")


def check_list(value: Iterable[Any], argument: str, of: str) -> list[Any]:
    """The items of an argument that lists some.

    Args:
        value: The argument.
        argument: What it is called.
        of: What is in it, for the message.

    Raises:
        TypeError: It is text, or nothing that can be walked.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Iterable) or isinstance(value, type):
        raise TypeError(f"expected {argument} as a list of {of}, found {value!r:.80}")
    return list(value)


def check_unknown(unknown: object) -> None:
    """Refuse what names of dropped fields cannot be appended to.

    Raises:
        TypeError: It is neither a list nor None.
    """
    if unknown is not None and not isinstance(unknown, list):
        raise TypeError(
            f"expected unknown as a list that is filled with paths of fields, found {type(unknown).__name__}"
        )


def check_name(name: object) -> None:
    """Refuse what no program is called.

    Raises:
        TypeError: It is no text.
    """
    if not isinstance(name, str):
        raise TypeError(f"expected name as that of a program, found {name!r:.80}")


def check_versions(versions: object, argument: str) -> None:
    """Refuse an argument that is not versions by operator namespace, or None.

    Raises:
        TypeError: It names the argument.
    """
    if versions is None:
        return
    if not isinstance(versions, Mapping):
        raise TypeError(f"expected {argument} as a dict of versions, found {type(versions).__name__}")
    for namespace, version in versions.items():
        if not isinstance(namespace, str) or not isinstance(version, int):
            raise TypeError(
                f"expected {argument} as numbers by namespace, such as {{'aten': 10}}, "
                f"found {namespace!r:.80}: {version!r:.80}"
            )
