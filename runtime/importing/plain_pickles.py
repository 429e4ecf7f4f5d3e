"""Whether a pickle is plain data that costs no more than its bytes, found without opening it.

PyTorch's reader of plain data calls what it knows as harmless with any arguments: `bytearray(1 << 40)`, or
the copy of one list a million times. It takes any keys, and keys of one hash take the square of their number:
see `keys`. So the pickle's stack is followed here, with what is known of each object in place of it.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Collection, Iterator
from typing import Any

from ..keys import MAX_COMPOUND_KEYS, TOO_MANY, is_plain

_PLAIN, _DICT, _EMPTY, _OTHER = "plain", "dict", "empty", "other"
_STATE = "state"  # of an object: its attributes, and those that lie in slots
_LIST, _ITEMS = "list", "items"  # a list of plain values, and a tuple of one
_STORAGE = "storage"  # five values that name one, by a key that is plain
_FEW, _NESTED = "few", "nested"  # a short tuple, and a tuple of one
_TYPED = "typed"  # a short tuple that begins with what makes a tensor
_SMALL, _TENSOR = "small", "tensor"  # made of little; a tensor
_COLLECTION = "collection"  # one that was made by a call
_SHARED = "shared"  # may be large, and lies elsewhere, too
_GLOBAL = "global "  # before the name of a class or function

_KINDS = {
    **dict.fromkeys("NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 BINFLOAT".split(), _PLAIN),
    **dict.fromkeys("BINUNICODE SHORT_BINSTRING".split(), _PLAIN),
    "EMPTY_DICT": _DICT,
    "EMPTY_LIST": _LIST,
    "EMPTY_TUPLE": _EMPTY,
    "DUP": _SHARED,
}
#: What stays what it is under another name.
_SAME_AGAIN = frozenset({_PLAIN, _EMPTY, _STORAGE, _SMALL, _TENSOR, _SHARED})
#: Tuples that were made for one call.
_FRESH = frozenset({_EMPTY, _STATE, _ITEMS, _STORAGE, _FEW, _NESTED, _TYPED})
_MOST_OF_FEW = 64

_MAKING_TENSORS = frozenset(
    f"torch._utils _rebuild_{name}"
    for name in (
        "tensor tensor_v2 tensor_v3 parameter parameter_with_state sparse_tensor meta_tensor_no_storage"
        " wrapper_subclass"
    ).split()
)
#: What torch.save lets a reader call, with the tuples of arguments that it may be called with, and what that
#: makes.
_CALLS: dict[str, tuple[frozenset[str], str]] = {
    # They make keys of what they are called with.
    **dict.fromkeys(
        ("collections OrderedDict", "collections Counter", "builtins set", "__builtin__ set"),
        (frozenset({_EMPTY, _ITEMS}), _COLLECTION),
    ),
    **dict.fromkeys(("builtins complex", "__builtin__ complex"), (frozenset({_STATE}), _SMALL)),
    **dict.fromkeys(("torch device", "torch.serialization _get_layout"), (_FRESH, _SMALL)),
    "torch Size": (frozenset({_NESTED}), _SMALL),
    **dict.fromkeys(_MAKING_TENSORS, (_FRESH, _TENSOR)),
    "torch._tensor _rebuild_from_type_v2": (frozenset({_TYPED}), _TENSOR),
}


class _RefusedError(Exception):
    """What the message says is asked for."""


def plain_data_problem(data: bytes | memoryview, known: Collection[str] = ()) -> str | None:
    """What keeps a pickle from being opened as plain data, or None.

    That is a call of what torch.save has nobody call, or one that costs more than its bytes, and too many
    keys that may share a hash.

    Args:
        data: The pickle.
        known: Classes that it may call all the same, as `module name`.

    Raises:
        ValueError: It is damaged.

    Example:
        >>> import pickle
        >>> plain_data_problem(pickle.dumps({"a": 1, (2, 3): 4}, protocol=2))
        >>> problem = plain_data_problem(pickle.dumps({(n,): n for n in range(300)}, protocol=2))
        >>> problem.partition(",")[0]
        'expected at most 256 keys that are tuples'
        >>> plain_data_problem(pickle.dumps(bytearray(), protocol=2))
        'cannot be opened without running code of __builtin__.bytearray'
    """
    found = 0
    try:
        for compound in _keys(io.BytesIO(data), known):
            found += compound
            if found > MAX_COMPOUND_KEYS:
                return f"{TOO_MANY}, found more, or objects that may hold more"
    except _RefusedError as error:
        return str(error)
    return None


def _keys(file: io.BytesIO, known: Collection[str]) -> Iterator[int]:
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
            stack.append(kind if kind in _SAME_AGAIN or kind.startswith(_GLOBAL) else _SHARED)
        elif pickletools.markobject in before:
            if not marks:
                raise ValueError("a slice without its mark")
            items = pop(len(stack) - marks.pop())
            if name in _SLICES:
                yield sum(key is not _PLAIN for key in items[:: _SLICES[name]])
            if name == "APPENDS" and stack and any(item is not _PLAIN for item in items):
                stack[-1] = _OTHER
            if before.index(pickletools.markobject) == 0:
                stack.append(_tuple(items) if name == "TUPLE" else _OTHER)
        else:
            kind, compound = _made(name, argument, pop(len(before)), known)
            yield compound
            stack += [kind] * len(operation.stack_after)


#: Operations that make keys of a slice of the stack: of the first in each so many.
_SLICES = {"SETITEMS": 2, "DICT": 2, "ADDITEMS": 1, "FROZENSET": 1}


def _made(name: str, argument: Any, items: list[str], known: Collection[str]) -> tuple[str, int]:
    """What an operation leaves on the stack, and how many compound keys it makes."""
    match name, items:
        case "LONG1" | "LONG4" | "LONG" | "INT", _:
            return (_PLAIN, 0) if is_plain(argument) else (_OTHER, 1)
        case "GLOBAL", _:
            return f"{_GLOBAL}{argument}", 0
        case "REDUCE" | "NEWOBJ", [called, arguments]:
            return _called(name, called.removeprefix(_GLOBAL), arguments, known)
        case "BUILD", ["tensor", _]:
            raise _RefusedError("expected tensors to stay as they were made, found one that gets a state")
        case "BUILD", [_, state]:
            return items[0], 0 if state in (_DICT, _STATE, _PLAIN) else MAX_COMPOUND_KEYS + 1
        case "SETITEM", [made, key, _]:
            return made, int(key is not _PLAIN)
        case "BINPERSID", [storage]:
            return _OTHER, int(storage is not _STORAGE)
        case "APPEND", ["list", "plain"]:
            return _LIST, 0
        case "TUPLE1" | "TUPLE2" | "TUPLE3", _:
            return _tuple(items), 0
    return _KINDS.get(name, _OTHER), 0


def _called(operation: str, called: str, arguments: str, known: Collection[str]) -> tuple[str, int]:
    """What a call makes, and how many compound keys."""
    if called in known:
        return _OTHER, 0
    if operation == "NEWOBJ" or called not in _CALLS:
        raise _RefusedError(f"cannot be opened without running code of {called.replace(' ', '.')[:200]}")
    expected, made = _CALLS[called]
    if arguments in expected:
        return made, 0
    if made is _COLLECTION:
        return made, MAX_COMPOUND_KEYS + 1
    raise _RefusedError(
        f"expected {called.replace(' ', '.')} as torch.save has it called, found other arguments"
    )


def _tuple(items: list[str]) -> str:
    """What is known of a tuple."""
    match items:
        case _ if _SHARED in items or len(items) > _MOST_OF_FEW:
            return _SHARED
        case ["list"]:
            return _ITEMS
        case [("empty" | "few" | "state" | "storage" | "nested")]:
            return _NESTED
        case [("dict" | "plain"), _]:
            return _STATE
        case [_, _, "plain", _, _]:
            return _STORAGE
        case [first, *_] if first.removeprefix(_GLOBAL) in _MAKING_TENSORS:
            return _TYPED
    return _FEW
