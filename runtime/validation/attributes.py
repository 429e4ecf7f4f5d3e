"""The check that modules can hold weights of these names: needs torch, which knows what modules have."""

from __future__ import annotations

import torch

from ..findings import Finding
from ..generated import types
from .rules import Findings
from .signatures import weight_names

#: What every module has.
_OF_MODULES = frozenset(dir(torch.nn.Module()))
#: What the modules of graphs have besides, so that a weight cannot.
_OF_GRAPHS = frozenset(dir(torch.fx.GraphModule(torch.nn.Module(), torch.fx.Graph()))) - _OF_MODULES
#: What `ExportedProgram.module()` sets on the module of the program.
_OF_PROGRAMS = frozenset({"_guards_fn", "_in_spec", "_out_spec", "range_constraints", "validate_inputs"})


def validate_attributes(tree: types.ExportedProgram) -> list[Finding]:
    """Checks that no part of a weight's name is one that its module has already, such as `forward`.

    `module()` fails where it builds one. Of the names that only modules of graphs have, such as `code`,
    PyTorch exports and writes honest weights, with which nothing can be done but to write them again.

    Args:
        tree: The program, in which `validate_tree` found nothing.

    Returns:
        What is wrong.
    """
    findings = Findings()
    for path, _, fqn in weight_names(tree.graph_module.signature):
        graph: types.Graph | None = tree.graph_module.graph
        taken, owner = _OF_PROGRAMS | _OF_GRAPHS, "the module of a program"
        for part in fqn.split("."):
            if part in _OF_MODULES:
                taken, owner = _OF_MODULES, "every module"
            if part in taken:
                message = f"expected the name of a weight, found {fqn[:80]!r}: {owner} has {part!r}"
                findings.add("attribute", path, message)
                break
            graph = None if graph is None else _subgraph(graph, part)
            taken, owner = (frozenset(), "") if graph is None else (_OF_GRAPHS, "the module of a subgraph")
    return findings.found


def _subgraph(graph: types.Graph, name: str) -> types.Graph | None:
    """The graph of a name that a graph calls, whose module weights may lie in, too."""
    for node in graph.nodes:
        for argument in node.inputs:
            if argument.arg.type == "as_graph" and argument.arg.as_graph.name == name:
                return argument.arg.as_graph.graph
    return None
