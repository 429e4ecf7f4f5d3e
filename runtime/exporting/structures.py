"""Tree specs and functions that a graph holds for calls of `flat_apply`."""

from __future__ import annotations

from typing import Any

from torch._higher_order_ops.flat_apply import _ConstantFunction
from torch.fx import Node
from torch.utils import _pytree as pytree

from ..errors import SerializeError
from ..generated import types
from ..operators import CALLEES
from .treespecs import export_nodes
from .values import Values, attribute_of


def held_structure(node: Node) -> pytree.TreeSpec | None:
    """The tree spec that a `get_attr` node stands for; None where it is something else."""
    value = attribute_of(node)
    return value if isinstance(value, pytree.TreeSpec) else None


def export_held_structure(node: Node, spec: pytree.TreeSpec, values: Values) -> types.GraphStructure:
    """Write a tree spec of a graph, or the function that PyTorch has wrapped in one.

    Args:
        node: The `get_attr` node.
        spec: What it stands for.
        values: The values of the graph, in which calls find the node.

    Raises:
        SerializeError: For a function that readers do not know, and a class that nobody would find again.
    """
    values.structures.add(node)
    values.program.beyond.append("calls of flat_apply")
    structure = types.GraphStructure(name=node.name, target=str(node.target))
    if pytree._is_constant_holder(spec):
        structure.callee = _callee(pytree._retrieve_constant(spec))
    else:
        structure.spec = list(export_nodes(spec))
    return structure


def _callee(constant: Any) -> str:
    function = constant.func if isinstance(constant, _ConstantFunction) else constant
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
    if name not in CALLEES:
        raise SerializeError(
            f"expected a function of {', '.join(CALLEES)}, found {name}",
            hint="Write it as an operator of torch.library",
        )
    return name
