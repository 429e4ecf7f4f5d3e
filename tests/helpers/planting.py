"""Real changes of a program, each at one place. Works on JSON, not with pt2wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = Any

# What has no meaning, and what must fit something else to be a program at all.
_LEFT_OUT = ("metadata", "writer", "as_none", "name", "as_name", "user_input_name")


def leaves(part: Json) -> Iterator[tuple[Json, str | int]]:
    """Each number, flag and text of a program that means something: the container and the key."""
    items = part.items() if isinstance(part, dict) else enumerate(part)
    for key, value in list(items):
        if key == "name" and isinstance(value, str) and "arg" in part and value:
            yield part, key  # of an argument; other names mean nothing
        elif key in _LEFT_OUT or value is None:
            continue
        elif isinstance(value, dict | list):
            yield from leaves(value)
        else:
            yield part, key


def constants(part: Json) -> Iterator[tuple[Json, str | int]]:
    """The numbers and flags among the arguments of all nodes."""
    for holder, key in leaves(part):
        if key in ("as_int", "as_float", "as_bool") and set(holder) == {key}:
            yield holder, key


def change(holder: Json, key: str | int) -> None:
    """Changes one leaf to something else of its type."""
    value = holder[key]
    if isinstance(value, bool):
        holder[key] = not value
    elif isinstance(value, int):
        holder[key] = value - 1 if value > 1 else value + 1  # downwards: upwards an enum may end
    elif isinstance(value, float):
        holder[key] = value + 1.0
    else:
        holder[key] = f"{value}x"
