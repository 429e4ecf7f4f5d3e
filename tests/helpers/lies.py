"""Lies: changes of honest trees that validation must find, each with the finding that it must give."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import pt2wire
import torch
from pt2wire.generated import types
from torch import nn
from torch._export.serde.serialize import serialize

Tree = types.ExportedProgram
Value = types.Value


class Net(nn.Module):
    """A little of everything: weights, a mutated buffer, a subgraph, symbols, vmap, a string input."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(4))

    def forward(self, x: torch.Tensor, mode: str) -> tuple[torch.Tensor, int]:
        self.count.add_(1)
        y = torch.cond(x.shape[0] > 5, lambda y: y + 1, lambda y: y - 1, (self.lin(x),))
        return torch.vmap(torch.sin)(y) + self.count, x.shape[0] * 2


class Autocast(nn.Module):
    """Autocast around control flow."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            with torch.autocast("cpu", enabled=False):
                y = x @ x
            return torch.cond(x.sum() > 0, lambda x: x @ x, lambda x: x.sin() @ x, (y,))


@lru_cache(maxsize=1)
def _trees() -> dict[str, Tree]:
    shapes = ({0: torch.export.Dim("n", min=2, max=64)}, None)
    training = torch.export.export(Net(), (torch.ones(8, 4), "fast"), dynamic_shapes=shapes)
    programs = {"training": training, "inference": training.run_decompositions()}
    trees = {name: pt2wire.from_json(serialize(ep).exported_program) for name, ep in programs.items()}
    autocast = torch.export.export(Autocast(), (torch.ones(3, 3),))
    return {**trees, "autocast": pt2wire.to_tree(autocast)}  # which PyTorch does not write


def tree_of(name: str) -> Tree:
    return copy.deepcopy(_trees()[name])


def node_of(tree: Tree, name: str) -> types.Node:
    return next(node for node in tree.graph_module.graph.nodes if node.name == name)


def index_of(tree: Tree, name: str) -> int:
    return tree.graph_module.graph.nodes.index(node_of(tree, name))


@dataclass(frozen=True)
class Lie:
    """A change of an honest tree, the rule that it breaks, and the finding."""

    rule: str
    change: Callable[[Tree], object]
    path: str
    message: str
    tree: str = "inference"


LIES: dict[str, Lie] = {}


def lie(
    rule: str, path: str, message: str, tree: str = "inference"
) -> Callable[[Callable[[Tree], object]], None]:
    def register(change: Callable[[Tree], object]) -> None:
        assert change.__name__ not in LIES
        LIES[change.__name__] = Lie(rule, change, path, message, tree)

    return register


def sign(tree: Tree) -> None:
    """Has the program say who wrote the fields of our own."""
    tree.writer = types.Writer("pt2wire", "0.1.0", 1)


#: A member of an enum that no module has.
ENUM = Value.of_enum(types.EnumMember("signal:Signals", "SIGINT"))

GRAPH = "graph_module.graph"
SIGNATURE = "graph_module.signature"
CALLS = "graph_module.module_call_graph"
NODE = f"{GRAPH}.nodes[5]"  # the call of cond, in the decomposed program

IN_SIN = ", in node 'sin' (torch.ops.aten.sin.default)"
IN_COND = ", in node 'cond' (torch.ops.higher_order.cond)"
