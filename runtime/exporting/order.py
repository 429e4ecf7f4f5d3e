"""The order of FX nodes that the format has no room for: `getitem` and `get_attr` nodes."""

from __future__ import annotations

from torch.fx import Graph, Node

from .delegates import is_lowered
from .values import Values


def add_to_order(node: Node, values: Values) -> None:
    """Note which FX nodes reading makes of a call: those of subgraphs and tensors, then itself.

    Those of its results follow when they are written.
    """
    attributes = [
        argument
        for argument in node.all_input_nodes
        if argument.op == "get_attr" and next(iter(argument.users)) is node and not is_lowered(argument)
    ]
    # Subgraphs, then tensors and tree specs.
    values.order += [argument.name for argument in sorted(attributes, key=lambda each: is_held(each, values))]
    values.order.append(node.name)


def is_held(node: Node, values: Values) -> bool:
    """Whether a `get_attr` node stands for a tensor or a tree spec rather than for a subgraph."""
    return node.op == "get_attr" and (node in values.references or node in values.structures)


def export_order(graph: Graph, values: Values) -> list[str] | None:
    """Write the names of all FX nodes in order, or None where reading makes them in that order anyway."""
    names = [node.name for node in graph.nodes if not is_lowered(node)]
    # Unused nodes that get a subgraph are not written.
    if names == values.order or sorted(names) != sorted(values.order):
        return None
    return names
