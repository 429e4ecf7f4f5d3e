"""The check that modules can hold weights of these names: needs torch, which knows what modules have."""

from __future__ import annotations

import torch
from torch.fx import Graph, GraphModule

from ..findings import Finding
from ..generated import types
from .rules import Findings
from .signatures import weight_names

_TAKEN = frozenset(dir(torch.nn.Module()))
#: What the module of a program has besides, on the outside.
_TAKEN_OUTSIDE = frozenset(dir(GraphModule(torch.nn.Module(), Graph()))).union(
    ("_in_spec", "_out_spec", "validate_inputs", "_guards_fn")
)


def validate_attributes(tree: types.ExportedProgram) -> list[Finding]:
    """Checks that no part of a weight's name is one that every module has already, such as `forward`, and the
    first none that the module of a program has, such as `graph`.

    `module()` fails where it builds one, that of the exported program, too.

    Args:
        tree: The program, in which `validate_tree` found nothing.

    Returns:
        What is wrong.
    """
    findings = Findings()
    for path, _, fqn in weight_names(tree.graph_module.signature):
        parts = fqn.split(".")
        for taken in sorted(_TAKEN.intersection(parts) | _TAKEN_OUTSIDE.intersection(parts[:1])):
            whose = "every module" if taken in _TAKEN else "the module of a program"
            message = f"expected the name of a weight, found {fqn[:80]!r}: {whose} has {taken!r}"
            findings.add("attribute", path, message)
    return findings.found
