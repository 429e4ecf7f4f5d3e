"""The check that modules can hold weights of these names: needs torch, which knows what modules have."""

from __future__ import annotations

import torch

from ..findings import Finding
from ..generated import types
from .rules import Findings
from .signatures import weight_names

_TAKEN = frozenset(dir(torch.nn.Module()))


def validate_attributes(tree: types.ExportedProgram) -> list[Finding]:
    """Checks that no part of a weight's name is one that every module has already, such as `forward`.

    No module with such a weight was ever exported, and `module()` fails where it builds one.

    Args:
        tree: The program, in which `validate_tree` found nothing.

    Returns:
        What is wrong.
    """
    findings = Findings()
    for path, _, fqn in weight_names(tree.graph_module.signature):
        for taken in sorted(_TAKEN.intersection(fqn.split("."))):
            message = f"expected the name of a weight, found {fqn[:80]!r}: every module has {taken!r}"
            findings.add("attribute", path, message)
    return findings.found
