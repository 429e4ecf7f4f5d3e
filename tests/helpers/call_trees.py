"""Programs as trees, of calls that need not work: no exporter would write most of them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pt2wire
import torch
from pt2wire.generated import types
from torch import Tensor, nn
from torch._ops import OpOverload
from torch.fx import Graph, Node, Proxy
from torch.fx.proxy import GraphAppendingTracer

A, V = types.Argument, types.Value
Kind = types.ArgumentKind


def tree_with(*examples: Any) -> types.ExportedProgram:
    """A program that calls nothing yet, with inputs `x_0`, `x_1` and so on."""
    model = type("Model", (nn.Module,), {"forward": lambda self, *x: ()})()
    return pt2wire.to_tree(torch.export.export(model, examples))


def call(target: str, results: Any, /, *args: A, name: str | None = None, **kwargs: A) -> types.Node:
    """A call; `results` are the names of tensors, in a list where the call gives a list."""
    inputs = [types.NamedArgument("", value, Kind.POSITIONAL) for value in args]
    inputs += [types.NamedArgument(key, value, Kind.KEYWORD) for key, value in kwargs.items()]
    several = [A.of_tensors(list(map(types.TensorArgument, results)))] if isinstance(results, list) else []
    outputs = several or [A.of_tensor(types.TensorArgument(each)) for each in results.split()]
    return types.Node(target, inputs, outputs, {}, name=name or "_".join(["call", *results]))


def tensor_named(name: str) -> A:
    return A.of_tensor(types.TensorArgument(name))


def graph_named(name: str, graph: types.Graph) -> A:
    return A.of_graph(types.GraphArgument(name, graph))


def graph_of(inputs: str, outputs: str, *nodes: types.Node) -> types.Graph:
    """A subgraph of tensors."""
    named = [[tensor_named(name) for name in names.split()] for names in (inputs, outputs)]
    return types.Graph(*named, list(nodes), {}, {}, {})


def traced(forward: Callable[..., Any], *examples: Tensor) -> types.ExportedProgram:
    """The program of a function's calls of operators, of which none is run."""
    tree = tree_with(*examples)
    graph = Graph()
    tracer = GraphAppendingTracer(graph)
    result = forward(*(Proxy(graph.placeholder(f"x_{number}"), tracer) for number in range(len(examples))))
    nodes = [node for node in graph.nodes if isinstance(node.target, OpOverload)]
    tree.graph_module.graph.nodes = list(map(_node, nodes))
    tree.graph_module.graph.outputs = [tensor_named(result.node.name)]
    return tree


def _node(node: Node) -> types.Node:
    schema = node.target._schema  # type: ignore[union-attr]
    named = {argument.name: value for argument, value in zip(schema.arguments, node.args, strict=False)}
    inputs = [
        types.NamedArgument(name, _argument(value), Kind.KEYWORD)
        for name, value in (named | node.kwargs).items()
    ]
    taken = {user.args[1]: user.name for user in node.users if user.target is operator.getitem}
    made_up = [f"{node.name}_unused_{index}" for index in range(max(taken, default=-1) + 1)]  # type: ignore
    names = [taken.get(index, name) for index, name in enumerate(made_up)]
    output = A.of_tensors(list(map(types.TensorArgument, names))) if taken else tensor_named(node.name)
    return types.Node(f"torch.ops.{node.target}", inputs, [output], {}, name=node.name)


_LAYOUTS = {torch.sparse_coo: types.Layout.SparseCoo}


def _argument(value: Any) -> A:
    match value:
        case None:
            return A.of_none(True)
        case Node():
            return tensor_named(value.name)
        case bool():
            return A.of_bool(value)
        case int():
            return A.of_int(value)
        case float():
            return A.of_float(value)
        case str():
            return A.of_string(value)
        case torch.layout():
            return A.of_layout(_LAYOUTS[value])
        case torch.dtype():
            return A.of_scalar_type(types.ScalarType.DOUBLE)
        case list() | tuple() if any(isinstance(item, Node) for item in value):
            return A.of_tensors([types.TensorArgument(item.name) for item in value])
    return A.of_ints(list(value))
