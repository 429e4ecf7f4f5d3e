"""Names of weights next to each other: PyTorch makes modules of them, in which each has to find its place."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping

from .scopes import Scope

# Of a module that is called several times, `torch.export.unflatten` calls the second call `name@1`. Whatever
# it gives to `name`, it gives to all of its calls that there are by then, and so does `module()`.
_CALL = re.compile(r"@[0-9]+\Z")
_MOST_CALLS = 8


def clashes(names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Weights that would take each other's place, with what is wrong.

    Args:
        names: Kind of each weight by its qualified name, in the order of the program's inputs.

    Example:
        >>> list(clashes({"a": "buffer", "a.b": "buffer"}))
        [('a.b', "expected modules around it, found the weight 'a'")]
        >>> list(clashes({"b@1.w": "parameter", "b.w": "parameter"}))
        [('b@1.w', "expected it behind 'b.w', which else takes its place in modules")]
    """
    for name, outer in _within(names):
        yield name, f"expected modules around it, found the weight {outer[:80]!r}"
    order = {name: number for number, name in enumerate(names)}
    for name, kind in names.items():
        if "@" not in name:
            continue
        *prefix, field = name.split(".")
        if sum(_CALL.search(part) is not None for part in prefix) > _MOST_CALLS:
            yield name, f"expected at most {_MOST_CALLS} calls such as `name@1` in it, found more"
            continue
        for other in _called(prefix, field):
            if other in names and (names[other] != kind or order[other] > order[name]):
                yield name, f"expected it behind {other[:80]!r}, which else takes its place in modules"


def clashes_with_subgraphs(names: Iterable[str], scope: Scope) -> Iterator[tuple[str, str]]:
    """Weights that would take the place of a subgraph, or of what one holds, with what is wrong.

    Subgraphs are modules as well, and a module of the user's may be called like one: then PyTorch puts its
    weights into the module of the subgraph, beside what that holds itself.

    Args:
        names: The qualified name of each weight.
        scope: The graph of the program.
    """
    held: dict[int, set[str]] = {}  # of each scope, found once for all names
    for name in names:
        inner = scope
        parts = name.split(".")
        for position, part in enumerate(parts):
            if id(inner) not in held:
                held[id(inner)] = inner.held_attributes()
            if part in held[id(inner)]:
                yield name, f"expected another name than {_shown(parts, position)}, which a subgraph holds"
            graph = inner.subgraphs.get(part)
            if graph is not None and position == len(parts) - 1:
                yield name, f"expected another name than {_shown(parts, position)}, which is a subgraph"
            if graph is None or id(graph) not in scope.program.modules:  # a module of the weight's own
                break
            inner = scope.program.modules[id(graph)]


def _shown(parts: list[str], position: int) -> str:
    return repr(".".join(parts[: position + 1])[:80])


def _within(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Names that lie in others, with those. In order, they follow them."""
    outer = ""
    for name in sorted(f"{name}." for name in names):
        if outer and name.startswith(outer):
            yield name[:-1], outer[:-1]
        else:
            outer = name


def _called(prefix: list[str], field: str) -> Iterable[str]:
    """The names that stand for a name, too, if the modules around it are calls of others."""
    choices = [dict.fromkeys((part, _CALL.sub("", part))) for part in prefix]
    found = (".".join((*choice, field)) for choice in itertools.product(*choices))
    return itertools.islice(found, 1, None)  # the first one is the name itself
