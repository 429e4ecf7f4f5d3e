"""What nodes carry besides what they compute: texts in small formats of their own, which loading takes apart.

The rules are those of `importing.metadata`, which needs torch; a test holds the two together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import DeserializeError
from ..generated import types
from ..limits import DEFAULT_LIMITS, Limits, raising
from ..module_stacks import path_problem, split_module_stack
from .rules import Problem

_SEPARATOR = ";"

_SOURCE_TYPES: Mapping[str, type] = {
    "name": str,
    "target": str,
    "graph_id": int,
    "pass_name": str,
    "action": str,
}


@dataclass(slots=True)
class KnownMetadata:
    """What nodes that were checked before say.

    Attributes:
        entries: Entries of their metadata in which nothing was found. Texts repeat from node to node.
        modules: The path of each module, by its key. By keys `torch.export.unflatten` tells modules apart: of
            two with one key it would call the first in place of the second.
    """

    entries: set[tuple[str, str]] = field(default_factory=set)
    modules: dict[str, str] = field(default_factory=dict)


def metadata_problems(
    metadata: Mapping[str, str], known: KnownMetadata, limits: Limits = DEFAULT_LIMITS
) -> Iterator[tuple[str, Problem]]:
    """What is wrong with the metadata of one node: keys, each with a problem.

    Args:
        metadata: The metadata.
        known: What was found before; what this node says is added.
        limits: Bounds on the nesting of sources.

    Example:
        >>> list(metadata_problems({"custom": "{"}, KnownMetadata()))[0][0]
        'custom'
    """
    for entry in metadata.items():
        if entry in known.entries:
            continue
        key, text = entry
        # Empty texts say nothing, and keys that are not here are not read.
        check = _CHECKS.get(key)
        problem = check(text, known, limits) if check is not None and text else None
        if problem is None:
            known.entries.add(entry)
        else:
            yield key, problem


def _module_stack(text: str, known: KnownMetadata, limits: Limits) -> Problem | None:
    try:
        modules = split_module_stack(text)
    except DeserializeError as error:
        return Problem("metadata", error.message)
    return next(_module_problems([(key, path) for key, path, _ in modules], known), None)


def module_stack_problems(
    frames: Sequence[types.ModuleFrame], metadata: Mapping[str, str], known: KnownMetadata
) -> Iterator[Problem]:
    """What is wrong with the modules in which a node was made, next to the metadata that PyTorch reads.

    Example:
        >>> frames = [types.ModuleFrame("k", "a;b", "m.Model")]
        >>> list(module_stack_problems(frames, {"torch_fn": "f"}, KnownMetadata()))
        []
    """
    if metadata.get("nn_module_stack"):
        yield Problem("exact", "expected no metadata['nn_module_stack'] beside the exact one, found some")
    if len({frame.key for frame in frames}) != len(frames):
        yield Problem("exact", "expected each key once, found one again")
    yield from _module_problems([(frame.key, frame.path) for frame in frames], known)


def _module_problems(modules: Iterable[tuple[str, str]], known: KnownMetadata) -> Iterator[Problem]:
    for key, path in modules:
        if (problem := path_problem(path)) is not None:
            yield Problem("module-path", problem)
        if (other := known.modules.setdefault(key, path)) != path:
            yield Problem(
                "metadata",
                f"expected one path of the module {key[:80]!r}, found {other[:80]!r} and {path[:80]!r}",
            )


def _source_stack(text: str, known: KnownMetadata, limits: Limits) -> Problem | None:
    for entry in text.split(_SEPARATOR):
        if entry.count(",") != 1:
            return Problem(
                "metadata", f"expected a name and a function with a comma between, found {entry[:80]!r}"
            )
    return None


def check_json(text: str, limits: Limits) -> str | None:
    """What is wrong with the text of a note, or None."""
    try:
        return _json_depth(json.loads(text), limits)
    except (ValueError, RecursionError) as error:
        return f"expected JSON, found {text[:80]!r}: {error}"


def _json_depth(value: Any, limits: Limits) -> str | None:
    # What is nested too deeply cannot be copied, and torch copies metadata.
    level = [value]
    for _ in range(limits.nested_sources + 1):
        level = [inner for outer in level for inner in _inner(outer)]
        if not level:
            return None
    most, hint = limits.nested_sources, raising("nested_sources")
    return f"expected at most {most} nested values, found more. {hint}"


def _inner(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _custom(text: str, known: KnownMetadata, limits: Limits) -> Problem | None:
    message = check_json(text, limits)
    return None if message is None else Problem("metadata", message)


def _from_node(text: str, known: KnownMetadata, limits: Limits) -> Problem | None:
    message = _source_problem(text, limits)
    return None if message is None else Problem("metadata", message)


def _source_problem(text: str, limits: Limits) -> str | None:
    try:
        pending: list[tuple[Any, int]] = [(json.loads(text), 0)]
    except (ValueError, RecursionError) as error:
        return f"expected JSON, found {text[:80]!r}: {error}"
    while pending:
        sources, depth = pending.pop()
        if sources is None:
            continue
        if not isinstance(sources, list):
            return f"expected a list of sources, found {type(sources).__name__}"
        if depth == limits.nested_sources:
            most, hint = limits.nested_sources, raising("nested_sources")
            return f"expected at most {most} nested sources, found more. {hint}"
        for source in sources:
            if not isinstance(source, dict):
                return f"expected an object as source of a node, found {type(source).__name__}"
            for key, kind in _SOURCE_TYPES.items():
                if key in source and type(source[key]) is not kind:
                    return f"expected {kind.__name__} as {key} of a node's source, found {source[key]!r:.60}"
            pending.append((source.get("from_node"), depth + 1))
    return None


_CHECKS: Mapping[str, Callable[[str, KnownMetadata, Limits], Problem | None]] = {
    "nn_module_stack": _module_stack,
    "source_fn_stack": _source_stack,
    "custom": _custom,
    "from_node": _from_node,
}
