"""`getitem` nodes: made of the outputs of calls, and where there were others, as the graph lists them."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from torch.fx import Node

from ..errors import DeserializeError
from ..generated import types
from ..items import Listed
from .values import Program, Values, check_name


def make_items(
    owners: Sequence[Node], index: int, count: int, name: str | None, default: str | None, values: Values
) -> list[Node]:
    """Make the nodes that take one of several outputs; the first one stands for it.

    Args:
        owners: The nodes that stand for what is taken apart.
        index: Which output it is.
        count: How many there are.
        name: The name of the output; None where it has none.
        default: What FX may call the node of an output without a name, if nothing else is known.
        values: The graph, which gets the nodes. The first one has no name yet if the output has one.
    """
    listed = [
        item
        for owner in (owners if values.items else ())
        for item in _pop(owner.name, (index, index - count), values.items)
    ]
    first = next((item for item in listed if name is None or item.name == name), None)
    if first is None:
        nodes = [_make(owners[0], index, name or default, values)]
        values.unnamed.update(dict.fromkeys(nodes if name is None else ()))
    else:
        listed.remove(first)
        listed.insert(0, first)
        nodes = []
    by_name = {owner.name: owner for owner in owners}
    for item in listed:
        node = _make(by_name[item.of], item.index, item.name, values)
        if any(node.args == other.args for other in nodes):
            _hide(node, values)
        nodes.append(node)
        values.kept.add(node)
        if item.name != name:
            _give_name(node, item.name, values)
    return nodes


def _pop(owner: str, indices: tuple[int, int], items: Listed) -> list[types.GetItem]:
    """The items of an owner with one of the indices, in order; they are removed."""
    listed = items.get(owner, ())
    found = [item for _, item in listed if item.index in indices]
    if rest := [each for each in listed if each[1].index not in indices]:
        items[owner] = rest
    else:
        items.pop(owner, None)
    return found


def _make(owner: Node, index: int, name: str | None, values: Values) -> Node:
    return values.graph.create_node("call_function", operator.getitem, (owner, index), name=name)


def _give_name(node: Node, name: str, values: Values) -> None:
    check_name(name)
    if name in values.nodes:
        raise DeserializeError(f"expected a new name for a value, found {name!r} again")
    node.name = name  # FX alters one that it finds unfit
    values.nodes[name] = node


def _hide(node: Node, values: Values) -> None:
    """Make a node that repeats another one look different until `show_items`.

    PyTorch lets the users of one take the other while it makes an `ExportedProgram`.
    """
    values.program.hidden.append((node, node.args))
    node.args = (node.args[0], f"{node.args[1]} for {node.name}")


def show_items(program: Program) -> None:
    """Let the nodes that repeat others take what they take."""
    modules = set()
    for node, args in program.hidden:
        node.args = args
        modules.add(node.graph.owning_module)
    for module in modules:
        if module is not None:
            module.recompile()


def check_all_made(values: Values) -> None:
    """Refuse nodes that take nothing of what the calls of the graph yield.

    Raises:
        DeserializeError: There is one.
    """
    for listed in values.items.values():
        position, item = listed[0]
        raise DeserializeError(
            f"expected one of several outputs, found none of {item.of[:80]!r} at {item.index}",
            path=f"getitems[{position}]",
        )
