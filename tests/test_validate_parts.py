"""Operators that take a tensor apart make as many parts as the graph names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire.generated import types
from pt2wire.validation.operators import validate_operators
from torch import Tensor, nn, ones
from torch.export import Dim

_ops = torch.ops.aten
_Split = Callable[[Tensor], "list[Tensor] | tuple[Tensor, ...]"]

#: Calls by what they call.
_CALLS: dict[str, _Split] = {
    "tensor_split.sections": lambda x: x.tensor_split(4, 1),
    "tensor_split.sections of few": lambda x: x.tensor_split(9, 1),
    "hsplit.int": lambda x: x.hsplit(2),
    "vsplit.int": lambda x: x.vsplit(3),
    "dsplit.int": lambda x: x.unsqueeze(-1).dsplit(1),
    "chunk.default": lambda x: x.chunk(4, -1),
    "chunk.default of few": lambda x: x.chunk(1_000, 1),
    "chunk.default of nothing": lambda x: x[:, :0].chunk(3, 1),
    "unsafe_chunk.default": lambda x: x.unsafe_chunk(2, 1),
    "split.Tensor": lambda x: x.split(4, 1),
    "split.Tensor of nothing": lambda x: x[:, :0].split(4, 1),
    "unsafe_split.Tensor": lambda x: x.unsafe_split(4, 1),
    "split_copy.Tensor": lambda x: _ops.split_copy.Tensor(x, 2, 1),
    "unbind.int": lambda x: x.unbind(1),
    "unbind_copy.int": lambda x: _ops.unbind_copy.int(x, -1),
}


def _tree(split: _Split, rows: Any = Dim.STATIC) -> types.ExportedProgram:
    class Model(nn.Module):
        def forward(self, x: Tensor) -> list[Tensor]:
            return list(split(x))

    return pt2wire.to_tree(torch.export.export(Model(), (ones(6, 6),), dynamic_shapes=({0: rows},)))


def _call(tree: types.ExportedProgram, name: str) -> types.Node:
    target = f"torch.ops.aten.{name.partition(' ')[0]}"
    return next(node for node in tree.graph_module.graph.nodes if node.target == target)


def _found(tree: types.ExportedProgram) -> list[str]:
    return [finding.message for finding in validate_operators(tree)]


@pytest.mark.parametrize("name", _CALLS)
def test_the_graph_names_each_part(name: str) -> None:
    tree = _tree(_CALLS[name])
    assert _found(tree) == []
    call = _call(tree, name)
    parts = call.outputs[0].as_tensors
    count = len(parts)
    parts.append(parts[-1])
    (message,) = _found(tree)
    assert re.match(rf"expected {count} parts as [a-z_ ]+ says, found {count + 1}, in node ", message)


@pytest.mark.parametrize("name", ["tensor_split.sections", "hsplit.int", "chunk.default of nothing"])
def test_a_number_of_parts_is_the_number_of_those_that_the_graph_names(name: str) -> None:
    tree = _tree(_CALLS[name])
    call = _call(tree, name)
    parts = len(call.outputs[0].as_tensors)
    number = next(named for named in call.inputs if named.name in ("sections", "chunks"))
    number.arg = types.Argument.of_int(1 << 28)
    (message,) = _found(tree)
    assert message.startswith(f"expected 268435456 parts as {number.name} says, found {parts}, in node ")


def test_numbers_and_sizes_may_be_symbolic() -> None:
    tree = _tree(lambda x: [*x.split(2), *x.chunk(2), *x.tensor_split(x.shape[0] // 3)], Dim.AUTO)
    assert _found(tree) == []
    chunks = next(named for named in _call(tree, "chunk.default").inputs if named.name == "chunks")
    chunks.arg = types.Argument.of_int(1 << 16)
    assert _found(tree) == []
    chunks.arg = types.Argument.of_int(1 << 28)
    (message,) = _found(tree)
    assert message.startswith("expected at most 65536 chunks of a symbolic size, found 268435456")


def test_a_number_that_the_graph_describes_is_known() -> None:
    class Model(nn.Module):
        def forward(self, x: Tensor, parts: int) -> list[Tensor]:
            return list(x.tensor_split(parts))

    ep = torch.export.export(Model(), (ones(6, 6), 3), dynamic_shapes=({0: Dim.AUTO}, Dim.AUTO))
    tree = pt2wire.to_tree(ep)
    assert _found(tree) == []
    tree.graph_module.graph.sym_int_values["parts"] = types.SymInt.of_int(1 << 28)
    (message,) = _found(tree)
    assert message.startswith("expected 268435456 parts as sections says, found 3, in node ")
