"""The modules in which a node was made, outermost first, as the one text that PyTorch's format has for them.

Each module is a key, a path and a class with commas between, modules are joined by semicolons, and brackets
protect commas. Nothing protects semicolons and single brackets, which names of submodules may hold.
"""

from __future__ import annotations

import functools
import re

from .errors import DeserializeError

_SEPARATOR = ";"

Module = tuple[str, str, str]  #: key, path and class

# torch.export.unflatten pastes paths into source, between double quotes. With a quote or a backslash in it a
# path ends there, or goes on behind the next one; then it may hold nothing that source can do much with.
_ENDING = re.compile(r"[\"\\\r\n\0]")
_HARMLESS = re.compile(r"[\w .'\"\[\]-]*")


def path_problem(path: str) -> str | None:
    """What is wrong with the path of a module, if unflattening may run it as source; else None.

    Example:
        >>> print(path_problem('a" + stop() + "'))
        expected a path that stays a text when source is made of it, found 'a" + stop() + "'
        >>> path_problem("L['self']._modules[\\"it's\\"].lin")
    """
    if _ENDING.search(path) is None or _HARMLESS.fullmatch(path) is not None:
        return None
    return f"expected a path that stays a text when source is made of it, found {path[:80]!r}"


@functools.lru_cache(maxsize=4_096)  # stacks repeat from node to node
def join_module_stack(modules: tuple[Module, ...]) -> str | None:
    """Write a stack as PyTorch does, or None where the text would be read as another stack, or not at all.

    Example:
        >>> join_module_stack((("L__self__", "", "m.Model"), ("L__self___lin", "lin", "torch.nn.Linear")))
        'L__self__,,m.Model;L__self___lin,lin,torch.nn.Linear'
        >>> join_module_stack((("k", "a;b", "m.Model"),))
    """
    text = _SEPARATOR.join([",".join(module) for module in modules])
    try:
        return text if split_module_stack(text) == list(modules) else None
    except DeserializeError:
        return None


def split_module_stack(text: str) -> list[Module]:
    """Read a stack.

    Raises:
        DeserializeError: A module is not three texts.

    Example:
        >>> split_module_stack("L__self__,,m.Model;k,layers[(1, 2)],m.Layer")
        [('L__self__', '', 'm.Model'), ('k', 'layers[(1, 2)]', 'm.Layer')]
    """
    return [_split_module(entry) for entry in text.split(_SEPARATOR)]


def _split_module(entry: str) -> Module:
    parts, depth, start = [], 0, 0
    for position, character in enumerate(entry):
        if character in "[(":
            depth += 1
        elif character in "])":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(entry[start:position])
            start = position + 1
    parts.append(entry[start:])
    if len(parts) != 3:
        raise DeserializeError(
            f"expected a key, a path and a class with commas between, found {entry[:80]!r}"
        )
    return parts[0], parts[1], parts[2]
