"""Tree specs and functions that a graph holds for calls of `flat_apply`."""

from __future__ import annotations

from typing import Any

import torch.export.custom_ops
from torch._higher_order_ops.flat_apply import func_to_graphable

from ..errors import DeserializeError
from ..generated import types
from ..operators import CALLEES
from .arguments import check_attribute
from .faults import each
from .treespecs import import_treespec
from .values import Values, check_name

#: By full name; the names are those of our own table, so that nothing from a file is looked up as attribute.
_FUNCTIONS: dict[str, Any] = {
    name: getattr(torch.export.custom_ops, name.rpartition(".")[2]) for name in CALLEES
}


def import_held_structures(values: Values) -> None:
    """Give the module of a graph its tree specs and functions, and make the nodes that stand for them.

    Raises:
        DeserializeError: A spec is none, a function is unknown, or a name is wrong.
    """
    each("structures", values.tree.structures or (), lambda structure: _import(structure, values))


def _import(structure: types.GraphStructure, values: Values) -> None:
    name, target = structure.name, structure.target
    check_attribute(target)
    if name in values.nodes:
        raise DeserializeError(f"expected a new name for a tree spec, found {name[:80]!r} again")
    check_name(name)
    if target not in values.held:  # else another node stands for the same
        if hasattr(values.module, target):
            raise DeserializeError(f"expected a name of its own for a tree spec, found {target!r}")
        values.held.add(target)
        setattr(values.module, target, _spec(structure, values))
    node = values.graph.create_node("get_attr", target, name=name)
    node.name = name
    values.nodes[name] = values.structures[name] = node


def _spec(structure: types.GraphStructure, values: Values) -> Any:
    if structure.callee is None:
        return import_treespec("", {}, values.program.permissions, structure.spec or ())
    if structure.callee not in _FUNCTIONS:
        raise DeserializeError(f"expected a known function, found {structure.callee[:80]!r}")
    return func_to_graphable(_FUNCTIONS[structure.callee])[1]
