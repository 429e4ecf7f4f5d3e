"""Tensors that a subgraph holds itself, such as those that `torch.tensor` makes in a branch."""

from __future__ import annotations

import torch
from torch.fx import Node

from ..archive.extents import tensor_extent
from ..errors import SerializeError
from ..generated import types
from ..tensor_memory import storage_bytes
from .values import Values, attribute_of, export_tensor_meta, export_value

#: What of its description a tensor and its stand-in in the graph share; the offset says nothing of a copy.
_SHARED = ("dtype", "extra_dtype", "sizes", "strides", "device", "layout", "conj", "neg")


def held_tensor(node: Node) -> torch.Tensor | None:
    """The tensor that a `get_attr` node stands for; None where it is a subgraph or something else."""
    value = attribute_of(node)
    return value if isinstance(value, torch.Tensor) else None


def export_held_tensor(node: Node, tensor: torch.Tensor, values: Values) -> types.GraphConstant:
    """Write a tensor of a subgraph with its bytes, and define the value that it is.

    Args:
        node: The `get_attr` node.
        tensor: What it stands for.
        values: The values of the subgraph.

    Raises:
        SerializeError: For a tensor of a subclass, a parameter, one that is sparse or fake, and one that is
            not what the graph takes it for.
    """
    if type(tensor) is not torch.Tensor or tensor.is_quantized or tensor.is_conj() or tensor.is_neg():
        raise SerializeError(
            f"expected a plain tensor in a subgraph, found `{node.target}`, a {type(tensor).__name__}",
            hint=_HINT,
        )
    export_value(node.name, node.meta.get("val", tensor), (node,), values)
    found = export_tensor_meta(tensor, values.program.symbols)
    if found.layout is not types.Layout.Strided:
        raise SerializeError(f"expected a strided tensor in a subgraph, found {tensor.layout}", hint=_HINT)
    described = values.tensors.get(node.name)
    for field in _SHARED:
        if described is None or getattr(described, field) != getattr(found, field):
            raise SerializeError(f"expected {field} of `{node.target}` as the graph says, found others")
    found.storage_offset = types.SymInt.of_int(0)
    values.program.beyond.append("tensors that subgraphs hold")
    start = tensor.storage_offset() * tensor.element_size()
    length = tensor_extent(found, node.name).nbytes
    return types.GraphConstant(
        name=node.name,
        target=str(node.target),
        data=bytes(storage_bytes(tensor.untyped_storage())[start : start + length]),
        requires_grad=tensor.requires_grad,
    )


_HINT = "Make it outside of the branch or loop and pass it in"


def placed_by(node: Node) -> Node | None:
    """The call before which reading puts the node of such a tensor; None for the end of the graph."""
    user = next(iter(node.users), None)
    return None if user is None or user.op == "output" else user
