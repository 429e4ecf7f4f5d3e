"""Whether a pickle is plain data that costs no more than its bytes, found without opening it.

PyTorch's reader of plain data calls what it knows as harmless with any arguments: `bytearray(1 << 40)`, or
the copy of one list a million times. It takes any keys, and keys of one hash take the square of their number:
see `keys`. So the pickle's stack is followed here, with what is known of each object in place of it.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from ..keys import MAX_COMPOUND_KEYS, TOO_MANY, is_plain


class _Known(Enum):
    """What is known of an object on the stack of a pickle."""

    PLAIN = auto()  # a number, a text, a truth value or None
    DICT = auto()
    LIST = auto()  # of plain values
    EMPTY = auto()  # a tuple
    STATE = auto()  # of an object: its attributes, and those that lie in slots
    ITEMS = auto()  # a tuple of one list of plain values
    STORAGE = auto()  # five values that name one, by a key that is plain
    FEW = auto()  # a short tuple
    NESTED = auto()  # a tuple of one tuple
    TYPED = auto()  # a short tuple that begins with what makes a tensor
    SMALL = auto()  # made of little
    TENSOR = auto()
    COLLECTION = auto()  # one that was made by a call
    SHARED = auto()  # may be large, and lies elsewhere, too
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class _Global:
    """A class or function on the stack."""

    name: str


_Kind = _Known | _Global

_KINDS = {
    **dict.fromkeys("NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 BINFLOAT".split(), _Known.PLAIN),
    **dict.fromkeys("BINUNICODE SHORT_BINSTRING".split(), _Known.PLAIN),
    "EMPTY_DICT": _Known.DICT,
    "EMPTY_LIST": _Known.LIST,
    "EMPTY_TUPLE": _Known.EMPTY,
    "DUP": _Known.SHARED,
}
#: What stays what it is under another name.
_SAME_AGAIN = frozenset(
    {_Known.PLAIN, _Known.EMPTY, _Known.STORAGE, _Known.SMALL, _Known.TENSOR, _Known.SHARED}
)
#: Tuples that were made for one call.
_FRESH = frozenset(
    {_Known.EMPTY, _Known.STATE, _Known.ITEMS, _Known.STORAGE, _Known.FEW, _Known.NESTED, _Known.TYPED}
)
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
_CALLS: dict[str, tuple[frozenset[_Kind], _Kind]] = {
    # They make keys of what they are called with.
    **dict.fromkeys(
        ("collections OrderedDict", "collections Counter", "builtins set", "__builtin__ set"),
        (frozenset({_Known.EMPTY, _Known.ITEMS}), _Known.COLLECTION),
    ),
    **dict.fromkeys(("builtins complex", "__builtin__ complex"), (frozenset({_Known.STATE}), _Known.SMALL)),
    **dict.fromkeys(("torch device", "torch.serialization _get_layout"), (_FRESH, _Known.SMALL)),
    "torch Size": (frozenset({_Known.NESTED}), _Known.SMALL),
    **dict.fromkeys(_MAKING_TENSORS, (_FRESH, _Known.TENSOR)),
    "torch._tensor _rebuild_from_type_v2": (frozenset({_Known.TYPED}), _Known.TENSOR),
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
    stack: list[_Kind] = []
    marks: list[int] = []
    memo: dict[Any, _Kind] = {}

    def pop(count: int) -> list[_Kind]:
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
            memo[argument] = stack[-1] if stack else _Known.OTHER
        elif "GET" in name:
            kind = memo.get(argument, _Known.OTHER)
            if kind in (_Known.LIST, _Known.ITEMS):  # it may grow under this name from here on
                stack[:] = [_Known.OTHER if each in (_Known.LIST, _Known.ITEMS) else each for each in stack]
            stack.append(kind if kind in _SAME_AGAIN or isinstance(kind, _Global) else _Known.SHARED)
        elif pickletools.markobject in before:
            if not marks:
                raise ValueError("a slice without its mark")
            items = pop(len(stack) - marks.pop())
            if name in _SLICES:
                yield sum(key is not _Known.PLAIN for key in items[:: _SLICES[name]])
            if name == "APPENDS" and stack and any(item is not _Known.PLAIN for item in items):
                stack[-1] = _Known.OTHER
            if before.index(pickletools.markobject) == 0:
                stack.append(_tuple(items) if name == "TUPLE" else _Known.OTHER)
        else:
            kind, compound = _made(name, argument, pop(len(before)), known)
            yield compound
            stack += [kind] * len(operation.stack_after)


#: Operations that make keys of a slice of the stack: of the first in each so many.
_SLICES = {"SETITEMS": 2, "DICT": 2, "ADDITEMS": 1, "FROZENSET": 1}


def _made(name: str, argument: Any, items: list[_Kind], known: Collection[str]) -> tuple[_Kind, int]:
    """What an operation leaves on the stack, and how many compound keys it makes."""
    match name, items:
        case "LONG1" | "LONG4" | "LONG" | "INT", _:
            return (_Known.PLAIN, 0) if is_plain(argument) else (_Known.OTHER, 1)
        case "GLOBAL", _:
            return _Global(argument), 0
        case "REDUCE" | "NEWOBJ", [called, arguments]:
            return _called(name, called, arguments, known)
        case "BUILD", [_Known.TENSOR, _]:
            raise _RefusedError("expected tensors to stay as they were made, found one that gets a state")
        case "BUILD", [_, state]:
            return items[0], 0 if state in (
                _Known.DICT,
                _Known.STATE,
                _Known.PLAIN,
            ) else MAX_COMPOUND_KEYS + 1
        case "SETITEM", [made, key, _]:
            return made, int(key is not _Known.PLAIN)
        case "BINPERSID", [storage]:
            return _Known.OTHER, int(storage is not _Known.STORAGE)
        case "APPEND", [_Known.LIST, _Known.PLAIN]:
            return _Known.LIST, 0
        case "TUPLE1" | "TUPLE2" | "TUPLE3", _:
            return _tuple(items), 0
    return _KINDS.get(name, _Known.OTHER), 0


def _called(operation: str, called: _Kind, arguments: _Kind, known: Collection[str]) -> tuple[_Kind, int]:
    """What a call makes, and how many compound keys."""
    if not isinstance(called, _Global):
        raise _RefusedError("cannot be opened without calling what is no class or function")
    if called.name in known:
        return _Known.OTHER, 0
    shown = called.name.replace(" ", ".")[:200]
    if operation == "NEWOBJ" or called.name not in _CALLS:
        raise _RefusedError(f"cannot be opened without running code of {shown}")
    expected, made = _CALLS[called.name]
    if arguments in expected:
        return made, 0
    if made is _Known.COLLECTION:
        return made, MAX_COMPOUND_KEYS + 1
    raise _RefusedError(f"expected {shown} as torch.save has it called, found other arguments")


def _tuple(items: list[_Kind]) -> _Kind:
    """What is known of a tuple."""
    match items:
        case _ if _Known.SHARED in items or len(items) > _MOST_OF_FEW:
            return _Known.SHARED
        case [_Known.LIST]:
            return _Known.ITEMS
        case [_Known.EMPTY | _Known.FEW | _Known.STATE | _Known.STORAGE | _Known.NESTED]:
            return _Known.NESTED
        case [_Known.DICT | _Known.PLAIN, _]:
            return _Known.STATE
        case [_, _, _Known.PLAIN, _, _]:
            return _Known.STORAGE
        case [_Global(name), *_] if name in _MAKING_TENSORS:
            return _Known.TYPED
    return _Known.FEW
