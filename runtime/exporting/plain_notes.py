"""What users noted, as plain values: texts, numbers, lists, tuples and dicts without classes of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.utils import _pytree as pytree

from ..errors import SerializeError


def plain_note(note: Any, lost: dict[str, None] | None = None) -> Any:
    """A note without classes derived from plain ones, but for named tuples. Other values stay as they are.

    No method of such a class is called: they may take other arguments, or give something else than JSON has.

    Args:
        note: What a user left in `meta["custom"]`.
        lost: Gets the names of the classes that the result is without.

    Raises:
        SerializeError: For a list or dict as key, and for two keys that are one without their classes.

    Example:
        >>> from collections import OrderedDict
        >>> from torch import Size
        >>> lost = {}
        >>> plain_note(OrderedDict(shape=Size([2, 3])), lost), list(lost)
        ({'shape': (2, 3)}, ['OrderedDict', 'Size'])
    """
    kind = next((kind for kind in _KINDS if isinstance(note, kind)), None)
    if kind is None:
        return note
    own = type(note)
    named = kind is tuple and pytree.is_namedtuple_class(own)
    # The lists and dicts of FX are what it makes of plain ones.
    if lost is not None and own is not kind and not named and not own.__module__.startswith("torch.fx."):
        lost[own.__qualname__] = None
    if kind is dict:
        return _dict(note, lost)
    if kind in (list, tuple):
        items = [plain_note(item, lost) for item in kind.__iter__(note)]
        return tuple.__new__(own, items) if named else kind(items)
    return _CONSTANTS[kind](note)


def _dict(note: dict[Any, Any], lost: dict[str, None] | None) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for key, value in dict.items(note):
        plain = plain_note(key, lost)
        if isinstance(plain, (list, dict)):
            raise SerializeError(f"expected a constant or a tuple as key, found {type(key).__qualname__}")
        if plain in made:
            raise SerializeError(f"expected distinct keys, found {plain!r:.80} again, of another class")
        made[plain] = plain_note(value, lost)
    return made


def is_empty(note: Any) -> bool:
    """Whether there is no note, as PyTorch has it: some values, such as arrays, cannot say, and are one."""
    try:
        return not note
    except Exception:
        return False


_CONSTANTS: dict[type[Any], Callable[[Any], Any]] = {
    str: str.__str__,
    bool: bool,
    int: int.__int__,
    float: float.__float__,
}
_KINDS: tuple[type[Any], ...] = (dict, list, tuple, *_CONSTANTS)
