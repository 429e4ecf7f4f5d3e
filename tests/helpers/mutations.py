"""Random changes of a tree in its plain form: most give lies that are still of the right types."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

# Text that has broken readers of this format, or could.
NASTY_TEXTS = (
    "",
    "self",
    "inf",
    "a b",
    "a" * 5_000,
    "é",
    "\x00",
    "'",
    "torch.ops.aten.add.Tensor",
    "torch.ops.aten.from_file.default",
    "torch.ops.higher_order.cond",
    "os.system",
    "_operator.add",
    "Symbol('s0', integer=True)",
    "Symbol('u9999999999', integer=True)",
    "Pow(Integer(10), Integer(64))",
    "Max(Integer(3), 'x')",
    "FloorDiv(Integer(1), Integer(0))",
    '[1, {"type": null, "context": null, "children_spec": []}]',
    '[1, {"type": "builtins.dict", "context": "[]", "children_spec": []}]',
    "[" * 200,
    "L['x'].size()[0] == 3",
)

NASTY_NUMBERS = (0, 1, -1, 2, 3, 7, 64, 255, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63))


def mutate(plain: dict[str, Any], chance: random.Random, changes: int = 1) -> dict[str, Any]:
    """A copy with some random changes."""
    plain = copy.deepcopy(plain)
    for _ in range(changes):
        found = list(places(plain))
        if not found:  # the change before this one has left nothing
            break
        holder, key = chance.choice(found)
        _CHANGES[chance.randrange(len(_CHANGES))](plain, holder, key, chance)
    return plain


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every value within one, as the container that holds it and its key there."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield value, key
        yield from places(inner)


def _replace(plain: Any, holder: Any, key: Any, chance: random.Random) -> None:
    value = holder[key]
    if isinstance(value, bool):
        holder[key] = not value
    elif isinstance(value, int):
        holder[key] = chance.choice(NASTY_NUMBERS)
    elif isinstance(value, str):
        holder[key] = chance.choice(NASTY_TEXTS)


def _borrow(plain: Any, holder: Any, key: Any, chance: random.Random) -> None:
    # A value from another place of the same kind.
    others = [where[at] for where, at in places(plain) if at == key and where is not holder]
    if others:
        holder[key] = copy.deepcopy(chance.choice(others))


def _drop(plain: Any, holder: Any, key: Any, chance: random.Random) -> None:
    del holder[key]


def _repeat(plain: Any, holder: Any, key: Any, chance: random.Random) -> None:
    if isinstance(holder, list):
        holder.insert(chance.randrange(len(holder) + 1), copy.deepcopy(holder[key]))


_CHANGES = (_replace, _replace, _borrow, _borrow, _drop, _repeat)
