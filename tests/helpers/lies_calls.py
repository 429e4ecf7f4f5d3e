"""Lies about calls: of subgraphs, and of the program by its module call graph."""

from __future__ import annotations

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
