"""Whether a pickle is plain data that costs no more than its bytes, found without opening it.

PyTorch's reader of plain data calls what it knows as harmless with any arguments: `bytearray(1 << 40)`, or
the copy of one list a million times. It takes any keys, and keys of one hash take the square of their number:
see `keys`. So the pickle's stack is followed here, with what is known of each object in place of it.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import torch

from ..keys import MAX_COMPOUND_KEYS, TOO_MANY, is_plain
from . import tracing_marks


class _Known(Enum):
    """What is known of an object on the stack of a pickle."""

    PLAIN = auto()  # a number, a text, a truth value or None
    METHOD = auto()  # a text that names what all tensors have
    SETTER = auto()  # a text that names what changes a tensor when it is set
    LIST = auto()  # of plain values
    ATTRIBUTES = auto()  # a dict of what anybody may set on a tensor
    PARTS = auto()  # a dict of what tensors of a class of their own may have set on them
    DICT = auto()  # another
    HOOKS = auto()  # a new OrderedDict
    SMALL = auto()  # made of little
    TENSOR = auto()
    COLLECTION = auto()  # one that was made by a call
    SHARED = auto()  # may be large, and lies elsewhere, too
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class _Global:
    """A class or function on the stack."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class _Tuple:
    """A short tuple that was made for one use. It is compared by identity: they nest."""

    items: tuple[_Kind, ...]


_Kind = _Known | _Global | _Tuple

_TEXTS = "BINUNICODE SHORT_BINSTRING".split()
_KINDS: dict[str, _Kind] = {
    **dict.fromkeys("NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 BINFLOAT".split(), _Known.PLAIN),
    "EMPTY_DICT": _Known.ATTRIBUTES,
    "EMPTY_LIST": _Known.LIST,
    "EMPTY_TUPLE": _Tuple(()),
    "DUP": _Known.SHARED,
}
_PLAIN = frozenset({_Known.PLAIN, _Known.METHOD, _Known.SETTER})
_STATES = frozenset({_Known.ATTRIBUTES, _Known.PARTS})
#: What stays what it is under another name.
_SAME_AGAIN = _PLAIN | {_Known.SMALL, _Known.TENSOR, _Known.SHARED}
_MOST_OF_FEW = 64

_OF_TENSORS = {
    name: getattr(kind, name, None) for kind in (torch.nn.Parameter, torch.Tensor) for name in dir(kind)
}
#: Beginnings of names that Python and PyTorch give a meaning.
_MEANT = "__", tracing_marks.PREFIX
_DTYPES = frozenset(f"torch {name}" for name, value in vars(torch).items() if isinstance(value, torch.dtype))


def _text(text: str) -> _Known:
    """What a text is as the name of an attribute."""
    if text in tracing_marks.NAMES:
        return _Known.PLAIN  # what it is set to is judged on the tensor
    if text.startswith(_MEANT) or hasattr(_OF_TENSORS.get(text), "__set__"):
        return _Known.SETTER
    return _Known.METHOD if text in _OF_TENSORS else _Known.PLAIN


_TENSOR = "torch Tensor"
_Items = tuple[_Kind, ...]
_Classes = Collection[str]


def _hooks_at(place: int) -> Callable[[_Items, _Classes], bool]:
    """Arguments of which one is hooks, which torch.save writes none of: they are called with gradients."""
    return lambda items, _: len(items) > place and items[place] in (_Known.HOOKS, _Known.PLAIN)


def _with_state(items: _Items, known: _Classes) -> bool:
    return len(items) == 4 and _hooks_at(2)(items, known) and items[3] in (_Known.ATTRIBUTES, _Known.PLAIN)


def _of_class(items: _Items, known: _Classes) -> bool:
    return bool(items) and isinstance(items[0], _Global) and items[0].name in known


#: What makes a tensor of PyTorch's own class, with what it may be called with.
_MAKING_PLAIN_TENSORS: dict[str, Callable[[_Items, _Classes], bool]] = {
    "torch._utils _rebuild_tensor": lambda items, _: True,
    "torch._utils _rebuild_tensor_v2": _hooks_at(5),
    "torch._utils _rebuild_tensor_v3": _hooks_at(5),
    "torch._utils _rebuild_sparse_tensor": lambda items, _: True,
    "torch._utils _rebuild_meta_tensor_no_storage": lambda items, _: True,
}
_MAKING_TENSORS = {
    **_MAKING_PLAIN_TENSORS,
    "torch._utils _rebuild_parameter": _hooks_at(2),
    "torch._utils _rebuild_parameter_with_state": _with_state,
}
#: What makes a tensor that gets a class of its own.
_MAKING_OWN = {**_MAKING_TENSORS, "torch._utils _rebuild_wrapper_subclass": _of_class}


def _typed(items: _Items, known: _Classes) -> bool:
    """The arguments of a call that makes a tensor, gives it a class, and sets its state."""
    match items:
        case (_Global(made_by), _Global(kind), _Tuple(arguments), state):
            own = kind in known
            making = _MAKING_OWN if own else _MAKING_PLAIN_TENSORS
            if made_by not in making or not making[made_by](arguments, known):
                return False
            if own:
                return state in (*_STATES, _Known.PLAIN) or _in_slots(state)
            return kind == _TENSOR and state in (_Known.ATTRIBUTES, _Known.PLAIN)
    return False


def _in_slots(state: _Kind) -> bool:
    """Whether this is a state with attributes in slots."""
    return isinstance(state, _Tuple) and all(part in (*_STATES, _Known.PLAIN) for part in state.items)


def _all_plain(items: _Items, _: _Classes) -> bool:
    return _PLAIN.issuperset(items)


def _two_plain(items: _Items, _: _Classes) -> bool:
    return len(items) == 2 and _PLAIN.issuperset(items)


def _one_tuple(items: _Items, _: _Classes) -> bool:
    return len(items) == 1 and isinstance(items[0], _Tuple)


def _one_list(items: _Items, _: _Classes) -> bool:
    return items in ((), (_Known.LIST,))


#: What torch.save lets a reader call, with what it may be called with, and what that makes.
_CALLS: dict[str, tuple[Callable[[_Items, _Classes], bool], _Kind]] = {
    # They make keys of what they are called with.
    **dict.fromkeys(
        ("collections OrderedDict", "collections Counter", "builtins set", "__builtin__ set"),
        (_one_list, _Known.COLLECTION),
    ),
    **dict.fromkeys(("builtins complex", "__builtin__ complex"), (_two_plain, _Known.SMALL)),
    **dict.fromkeys(("torch device", "torch.serialization _get_layout"), (_all_plain, _Known.SMALL)),
    "torch Size": (_one_tuple, _Known.SMALL),
    **{name: (fits, _Known.TENSOR) for name, fits in _MAKING_TENSORS.items()},
    "torch._tensor _rebuild_from_type_v2": (_typed, _Known.TENSOR),
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
            stack.append(kind if _is_same_again(kind) else _Known.SHARED)
        elif pickletools.markobject in before:
            if not marks:
                raise ValueError("a slice without its mark")
            items = pop(len(stack) - marks.pop())
            if name in _SLICES:
                yield sum(key not in _PLAIN for key in items[:: _SLICES[name]])
            if before.index(pickletools.markobject) == 0:
                stack.append(_tuple(items) if name == "TUPLE" else _Known.OTHER)
            elif stack:
                stack[-1] = _filled(name, stack[-1], items)
        else:
            kind, compound = _made(name, argument, pop(len(before)), known)
            yield compound
            stack += [kind] * len(operation.stack_after)


#: Operations that make keys of a slice of the stack: of the first in each so many.
_SLICES = {"SETITEMS": 2, "DICT": 2, "ADDITEMS": 1, "FROZENSET": 1}


def _is_same_again(kind: _Kind) -> bool:
    if isinstance(kind, _Tuple):
        return not kind.items or _names_storage(kind)
    return isinstance(kind, _Global) or kind in _SAME_AGAIN


def _names_storage(kind: _Kind) -> bool:
    """Whether these are the five values that name one: a text, a class, a key, a device and a length."""
    match kind:
        case _Tuple((said, _Global(), *rest)):
            return len(rest) == 3 and _PLAIN.issuperset((said, *rest))
    return False


def _filled(name: str, container: _Kind, items: list[_Kind]) -> _Kind:
    """What a container is once it got items, or keys and values."""
    if container is _Known.SHARED:
        raise _RefusedError("expected what is there once to be filled where it is made, found another place")
    if name.startswith("APPEND"):
        return container if _PLAIN.issuperset(items) else _Known.OTHER
    if container not in (_Known.ATTRIBUTES, _Known.PARTS):
        return _Known.COLLECTION if container is _Known.HOOKS else container
    keys, values = items[::2], items[1::2]
    if _Known.SETTER in keys or not _PLAIN.issuperset(keys):
        return _Known.DICT
    if _Known.METHOD in keys or any(isinstance(value, _Global) for value in values):
        return _Known.PARTS
    return container


def _made(name: str, argument: Any, items: list[_Kind], known: Collection[str]) -> tuple[_Kind, int]:
    """What an operation leaves on the stack, and how many compound keys it makes."""
    match name, items:
        case "LONG1" | "LONG4" | "LONG" | "INT", _:
            return (_Known.PLAIN, 0) if is_plain(argument) else (_Known.OTHER, 1)
        case "GLOBAL", _:
            return (_Known.SMALL, 0) if argument in _DTYPES else (_Global(argument), 0)
        case "REDUCE" | "NEWOBJ", [called, arguments]:
            return _called(name, called, arguments, known)
        case "BUILD", [_Known.TENSOR, _]:
            raise _RefusedError("expected tensors to stay as they were made, found one that gets a state")
        case "BUILD", [_Known.PLAIN as made, _Known.LIST]:
            return made, 0  # a range
        case "BUILD", [made, state]:
            made = _filled(name, made, [])
            return made, 0 if _is_state(state) else MAX_COMPOUND_KEYS + 1
        case "SETITEM" | "APPEND", [made, *filling]:
            return _filled(name, made, filling), int(name == "SETITEM" and filling[0] not in _PLAIN)
        case "BINPERSID", [storage]:
            return _Known.OTHER, int(not _names_storage(storage))
        case "TUPLE1" | "TUPLE2" | "TUPLE3", _:
            return _tuple(items), 0
    if name in _TEXTS:
        return _text(argument), 0
    return _KINDS.get(name, _Known.OTHER), 0


def _is_state(state: _Kind) -> bool:
    """Whether this is the state of an object: its attributes, and perhaps those that lie in slots."""
    if isinstance(state, _Tuple):
        return len(state.items) == 2 and (state.items[0] in _STATES | _PLAIN or state.items[0] is _Known.DICT)
    return state in _STATES | _PLAIN or state is _Known.DICT


def _called(operation: str, called: _Kind, arguments: _Kind, known: Collection[str]) -> tuple[_Kind, int]:
    """What a call makes, and how many compound keys."""
    if not isinstance(called, _Global):
        raise _RefusedError("cannot be opened without calling what is no class or function")
    if called.name in known:
        return _Known.OTHER, 0
    made_of = arguments.items if isinstance(arguments, _Tuple) else None
    if (operation, called.name, made_of) == ("NEWOBJ", tracing_marks.RANGE, ()):
        return _Known.PLAIN, 1  # it has the hash of the tuple of its state
    shown = called.name.replace(" ", ".")[:200]
    if operation == "NEWOBJ" or called.name not in _CALLS:
        raise _RefusedError(f"cannot be opened without running code of {shown}")
    match called.name, arguments:
        case "torch._tensor _rebuild_from_type_v2", _Tuple((_Global(), _Global(kind), *_)):
            if kind not in (_TENSOR, *known):
                shown = kind.replace(" ", ".")[:200]
                raise _RefusedError(f"cannot be opened without running code of {shown}")
    fits, made = _CALLS[called.name]
    if isinstance(arguments, _Tuple) and fits(arguments.items, known):
        is_new = called.name == "collections OrderedDict" and not arguments.items
        return _Known.HOOKS if is_new else made, 0
    if made is _Known.COLLECTION:
        return made, MAX_COMPOUND_KEYS + 1
    raise _RefusedError(f"expected {shown} as torch.save has it called, found other arguments")


def _tuple(items: list[_Kind]) -> _Kind:
    """What is known of a tuple."""
    few = _Known.SHARED not in items and len(items) <= _MOST_OF_FEW
    return _Tuple(tuple(items)) if few else _Known.SHARED
