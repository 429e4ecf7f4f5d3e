"""`getitem` nodes: an output of a call has the name of one; what else there is of them, fields of our own."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from torch.fx import Node

from ..errors import SerializeError
from ..generated import types
from ..items import MADE_UP
from .values import Values


def parts_of(owners: Sequence[Node], count: int) -> list[list[Node]]:
    """The `getitem` nodes that take a value of so many items apart, by index.

    Args:
        owners: The nodes that stand for the value.
        count: How many items it has.

    Raises:
        SerializeError: Something else uses the value.
    """
    parts: list[list[Node]] = [[] for _ in range(count)]
    for owner in owners:
        for user in owner.users:
            if user.target is not operator.getitem or type(user.args[1]) is not int:
                raise SerializeError(
                    f"expected only `getitem` nodes with an int to use several outputs, found `{user.name}`"
                )
            if not -count <= user.args[1] < count:
                raise SerializeError(f"expected one of {count} outputs, found another as `{user.name}`")
            parts[user.args[1]].append(user)
    return parts


def add_items(items: Sequence[Node], owner: Node, index: int, named: bool, values: Values) -> None:
    """Note the `getitem` nodes of one output, those among them that reading would not make as they are.

    Args:
        items: The nodes.
        owner: The first of the nodes that stand for what they take apart.
        index: Which item they take.
        named: Whether the output has a name: that of the first of them.
        values: The values of the graph.
    """
    for number, item in enumerate(items):
        values.order.append(item.name)
        dropped = not item.users and MADE_UP.fullmatch(item.name)
        if number or not named or dropped or item.args != (owner, index):
            taken, at = item.args
            values.items[item] = types.GetItem(name=item.name, of=taken.name, index=at)  # type: ignore
