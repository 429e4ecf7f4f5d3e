"""What a pickle uses as keys, found without opening it: PyTorch's reader of plain data takes any.

Keys of one hash take the square of their number: see `keys`. The pickle's stack is followed, with what is
known of each object in place of it.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Iterator
from typing import Any

from ..keys import MAX_COMPOUND_KEYS, TOO_MANY, is_plain

_PLAIN, _DICT, _COLLECTION, _EMPTY, _OTHER = "plain", "dict", "collection", "empty", "other"
_STATE = "state"  # of an object: its attributes, and those that lie in slots
_LIST, _ITEMS = "list", "items"  # a list of plain values, and a tuple of one
_STORAGE = "storage"  # five values that name one, by a key that is plain

_KINDS = {
    **dict.fromkeys("NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 BINFLOAT".split(), _PLAIN),
    **dict.fromkeys("BINUNICODE SHORT_BINSTRING".split(), _PLAIN),
    "EMPTY_DICT": _DICT,
    "EMPTY_LIST": _LIST,
    "EMPTY_TUPLE": _EMPTY,
}
#: Classes of the standard library that make keys of what they are called with.
_COLLECTIONS = frozenset(
    {"collections OrderedDict", "collections Counter", "builtins set", "__builtin__ set"}
)
#: Pickles in a file of torch.save that is no zip file: number, version, system, object, storages.
_MOST_PICKLES = 5


def compound_keys_problem(data: bytes | memoryview) -> str | None:
    """What keeps pickles from being opened as plain data, or None: too many keys that may share a hash.

    Args:
        data: The pickle, or several behind each other.

    Raises:
        ValueError: They are damaged.

    Example:
        >>> import pickle
        >>> compound_keys_problem(pickle.dumps({"a": 1, (2, 3): 4}, protocol=2))
        >>> problem = compound_keys_problem(pickle.dumps({(n,): n for n in range(300)}, protocol=2))
        >>> problem.partition(",")[0]
        'expected at most 256 keys that are tuples'
    """
    file, found = io.BytesIO(data), 0
    for _ in range(_MOST_PICKLES):
        if file.tell() == len(data):
            break
        for compound in _keys(file):
            found += compound
            if found > MAX_COMPOUND_KEYS:
                return f"{TOO_MANY}, found more, or objects that may hold more"
    return None


def _keys(file: io.BytesIO) -> Iterator[int]:
    """How many compound keys, or integers beyond 64 bits, each operation of the next pickle makes."""
    stack: list[str] = []
    marks: list[int] = []
    memo: dict[Any, str] = {}

    def pop(count: int) -> list[str]:
        if count > len(stack):
            raise ValueError("an operation without what it works on")
        taken = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        return taken

    for operation, argument, _ in pickletools.genops(file):
        name, before = operation.name, operation.stack_before
        if name == "MARK":
            marks.append(len(stack))
        elif "PUT" in name:
            memo[argument] = stack[-1] if stack else _OTHER
        elif "GET" in name:
            kind = memo.get(argument, _OTHER)
            if kind in (_LIST, _ITEMS):  # it may grow under this name from here on
                stack[:] = [_OTHER if each in (_LIST, _ITEMS) else each for each in stack]
                kind = _OTHER
            stack.append(kind)
        elif pickletools.markobject in before:
            if not marks:
                raise ValueError("a slice without its mark")
            items = pop(len(stack) - marks.pop())
            if name in _SLICES:
                yield sum(key is not _PLAIN for key in items[:: _SLICES[name]])
            if name == "APPENDS" and stack and any(item is not _PLAIN for item in items):
                stack[-1] = _OTHER
            if before.index(pickletools.markobject) == 0:
                stack.append(_STORAGE if len(items) == 5 and items[2] is _PLAIN else _OTHER)
        else:
            kind, compound = _made(name, argument, pop(len(before)))
            yield compound
            stack += [kind] * len(operation.stack_after)


#: Operations that make keys of a slice of the stack: of the first in each so many.
_SLICES = {"SETITEMS": 2, "DICT": 2, "ADDITEMS": 1, "FROZENSET": 1}


def _made(name: str, argument: Any, items: list[str]) -> tuple[str, int]:
    """What an operation leaves on the stack, and how many compound keys it makes."""
    match name, items:
        case "LONG1" | "LONG4" | "LONG" | "INT", _:
            return (_PLAIN, 0) if is_plain(argument) else (_OTHER, 1)
        case "GLOBAL", _ if argument in _COLLECTIONS:
            return _COLLECTION, 0
        case "REDUCE", ["collection", arguments]:
            return _OTHER, 0 if arguments in (_EMPTY, _ITEMS) else MAX_COMPOUND_KEYS + 1
        case "BUILD", [_, state]:
            return items[0], 0 if state in (_DICT, _STATE, _PLAIN) else MAX_COMPOUND_KEYS + 1
        case "SETITEM", [made, key, _]:
            return made, int(key is not _PLAIN)
        case "BINPERSID", [storage]:
            return _OTHER, int(storage is not _STORAGE)
        case "APPEND", ["list", "plain"]:
            return _LIST, 0
        case "TUPLE1", ["list"]:
            return _ITEMS, 0
        case "TUPLE2", [("dict" | "plain"), _]:
            return _STATE, 0
    return _KINDS.get(name, _OTHER), 0
