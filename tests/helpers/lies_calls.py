"""Lies about calls: of subgraphs, and of the program by its module call graph."""

from __future__ import annotations

from pt2wire.generated import types

from .lies import CALLS, GRAPH, IN_COND, Tree, lie, node_of


@lie(
    "module-calls",
    f"{CALLS}[0].signature.forward_arg_names[1]",
    "expected distinct names of arguments, found 'x' again",
)
def forward_arguments_of_one_name(tree: Tree) -> None:
    entry = tree.graph_module.module_call_graph[0].signature
    assert entry is not None and entry.forward_arg_names is not None
    entry.forward_arg_names[1] = entry.forward_arg_names[0]


@lie("subgraph", f"{GRAPH}.nodes[5].inputs", "expected 1 outputs of 'true_graph_0', found 0" + IN_COND)
def branches_without_outputs(tree: Tree) -> None:
    for branch in node_of(tree, "cond").inputs[1:3]:
        branch.arg.as_graph.graph.outputs.clear()


@lie(
    "method",
    f"{GRAPH}.nodes[6].inputs",
    "expected a custom object and the name of a method, found as_tensor, as_string, "
    "in node 'sin' (torch.ops.higher_order.call_torchbind)",
)
def method_of_a_tensor(tree: Tree) -> None:
    node = node_of(tree, "sin")
    node.target = "torch.ops.higher_order.call_torchbind"
    node.is_hop_single_tensor_return = True
    node.inputs[0].name = ""
    node.inputs.append(
        types.NamedArgument("", types.Argument.of_string("sin"), types.ArgumentKind.POSITIONAL)
    )
