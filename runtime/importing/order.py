"""The order of FX nodes that the format has no room for: `getitem` and `get_attr` nodes."""

from __future__ import annotations

import operator

from torch.fx import Node

from ..errors import DeserializeError
from .values import Values


def import_order(values: Values) -> None:
    """Put the FX nodes of a graph in the order in which they were.

    Raises:
        DeserializeError: The order is not that of the graph's nodes, each once, or turns calls around, or has
            a node before another that it uses.
    """
    order = values.tree.order
    if order is None:
        return
    nodes = {node.name: node for node in values.graph.nodes}
    if sorted(nodes) != sorted(order):
        odd = sorted(nodes.keys() ^ set(order)) or [name for name in order if order.count(name) > 1]
        raise DeserializeError(
            f"expected the name of each node of the graph once, found {odd[0][:80]!r} amiss",
            path="order",
        )
    fixed = [name for name, node in nodes.items() if not _moves(node)]
    if fixed != [name for name in order if not _moves(nodes[name])]:
        raise DeserializeError("expected inputs and calls in their order, found another", path="order")
    done: set[Node] = set()
    last = values.graph._root
    for name in order:
        node = nodes[name]
        if not done.issuperset(node.all_input_nodes):
            raise DeserializeError(
                f"expected nodes behind those that they use, found {name!r} before them", path="order"
            )
        done.add(node)
        last.append(node)
        last = node


def _moves(node: Node) -> bool:
    return node.op == "get_attr" or node.target is operator.getitem
