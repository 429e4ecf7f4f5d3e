"""Names of weights next to each other: PyTorch makes modules of them, in which each has to find its place."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

# Of a module that is called several times, `torch.export.unflatten` calls the second call `name@1`. Whatever
# it gives to `name`, it gives to all of its calls that there are by then, and so does `module()`.
_CALL = re.compile(r"@[0-9]+\Z")
_MOST_CALLS = 8


def clashes(names: Mapping[str, str], subgraphs: Collection[str]) -> Iterator[tuple[str, str]]:
    """Weights that would take each other's place, with what is wrong.

    Args:
        names: Kind of each weight by its qualified name, in the order of the program's inputs.
        subgraphs: The names of the graph's own subgraphs, which are modules as well.

    Example:
        >>> list(clashes({"a": "buffer", "a.b": "buffer"}, ()))
        [('a.b', "expected modules around it, found the weight 'a'")]
        >>> list(clashes({"b@1.w": "parameter", "b.w": "parameter"}, ()))
        [('b@1.w', "expected it behind 'b.w', which else takes its place in modules")]
    """
    order = {name: number for number, name in enumerate(names)}
    for name, kind in names.items():
        *prefix, _ = parts = name.split(".")
        if parts[0] in subgraphs:
            yield name, f"expected another name than {parts[0][:80]!r}, which is a subgraph"
        for end in itertools.accumulate(prefix, "{}.{}".format):
            if end in names:
                yield name, f"expected modules around it, found the weight {end[:80]!r}"
        if sum(_CALL.search(part) is not None for part in prefix) > _MOST_CALLS:
            yield name, f"expected at most {_MOST_CALLS} calls such as `name@1` in it, found more"
            continue
        for other in _called(parts):
            if other in names and (names[other] != kind or order[other] > order[name]):
                yield (
                    name,
                    f"expected it behind {other[:80]!r}, which else takes its place in modules",
                )


def _called(parts: list[str]) -> Iterable[str]:
    """The names that stand for a name, too, if the modules around it are calls of others."""
    *prefix, field = parts
    choices = [dict.fromkeys((part, _CALL.sub("", part))) for part in prefix]
    if all(len(choice) == 1 for choice in choices):
        return ()
    found = (".".join((*choice, field)) for choice in itertools.product(*choices))
    return itertools.islice(found, 1, None)  # the first one is the name itself
