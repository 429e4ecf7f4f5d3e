"""Tensors that a subgraph holds itself, such as those that `torch.tensor` makes in a branch."""

from __future__ import annotations

import torch
from torch.fx import Node

from ..archive.extents import from_the_start
from ..archive.payloads import Payload
from ..errors import DeserializeError
from ..generated import types
from .arguments import check_attribute
from .faults import each
from .payloads import PayloadStorages, import_constants
from .values import Values


def import_held_tensors(values: Values) -> None:
    """Give the module of a subgraph its tensors, and make the nodes that stand for them.

    Raises:
        DeserializeError: The bytes are not those of the tensor that the graph describes, or a name is wrong.
    """
    each("constants", values.tree.constants or (), lambda constant: _import(constant, values))


def _import(constant: types.GraphConstant, values: Values) -> None:
    target = constant.target
    check_attribute(target)
    if target not in values.held:  # else another node stands for the same tensor
        values.held.add(target)
        values.module.register_buffer(target, _tensor(constant, values))
    values.define(constant.name, values.graph.create_node("get_attr", target, name=constant.name))


def _tensor(constant: types.GraphConstant, values: Values) -> torch.Tensor:
    described = values.tree.tensor_values.get(constant.name)
    if described is None:
        raise DeserializeError(
            f"expected {constant.name[:80]!r} among the tensors of the graph, found nothing"
        )
    meta = from_the_start(described)
    meta.requires_grad = constant.requires_grad
    payload = types.PayloadMeta(path_name="", is_param=False, use_pickle=False, tensor_meta=meta)
    named = {constant.name: Payload(payload, memoryview(constant.data))}
    storages = PayloadStorages()
    constants = import_constants(named, {}, storages, "data", values.program.permissions)
    tensor: torch.Tensor = constants[constant.name]
    return tensor


def place_held_tensors(values: Values, output: Node) -> None:
    """Put the nodes of tensors that no call has placed before itself at the end of the graph."""
    for held in (*(values.tree.constants or ()), *(values.tree.structures or ())):
        node = values.nodes[held.name]
        if next(iter(node.users), output) is output:
            output.prepend(node)
