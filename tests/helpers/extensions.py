"""An extension: operators of a type of its own, its dialect, and a handler that both serializers take."""

from __future__ import annotations

from typing import Any

import pt2wire
import torch
from torch._export.serde import serialize as torch_serialize
from torch._export.verifier import Verifier
from torch.export import ExportedProgram

NAMESPACE = "wiretests.edge"


class EdgeOp:
    """An operator of the extension, which does what one of PyTorch's does."""

    def __init__(self, op: Any) -> None:
        self.op = op
        self.__name__ = op.name().replace("::", ".")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.op(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return type(other) is EdgeOp and other.op is self.op

    def __hash__(self) -> int:
        return hash(self.op)


OPS = {
    op.__name__: op
    for op in map(
        EdgeOp,
        (
            torch.ops.aten.add.Tensor,
            torch.ops.aten.sin.default,
            torch.ops.aten.cat.default,
            torch.ops.aten.max.dim,
            torch.ops.aten.split.Tensor,
            torch.ops.aten.clamp.default,
        ),
    )
}


class EdgeVerifier(Verifier):
    """Of programs in the dialect of the extension."""

    dialect = "WIRETESTS_EDGE"

    def allowed_op_types(self) -> tuple[type[Any], ...]:
        return (*super().allowed_op_types(), EdgeOp)


class EdgeHandler(torch_serialize.ExtensionHandler):
    @classmethod
    def namespace(cls) -> str:
        return NAMESPACE

    @classmethod
    def to_op_name(cls, op: Any) -> str:
        name: str = op.__name__
        return name

    @classmethod
    def from_op_name(cls, name: str) -> Any:
        return OPS[name]

    @classmethod
    def op_schema(cls, op: Any) -> Any:
        return op.op._schema


pt2wire.register_extension(EdgeOp, EdgeHandler)
torch_serialize.register_extension(EdgeOp, EdgeHandler)


def to_edge(ep: ExportedProgram) -> ExportedProgram:
    """The program with operators of the extension in place of those of PyTorch that it has."""
    edges = {op.op: op for op in OPS.values()}
    for node in ep.graph.nodes:
        node.target = edges.get(node.target, node.target)
    return in_dialect(ep, EdgeVerifier)


def in_dialect(ep: ExportedProgram, verifier: type[Verifier]) -> ExportedProgram:
    """The program, said to be of another dialect."""
    return ep._update(ep.graph_module, ep.graph_signature, verifiers=[verifier])
