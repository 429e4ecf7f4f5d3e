"""What writing demands of a program: that somebody can load it. Needs no torch, as writing does not."""

from __future__ import annotations

from ..findings import Finding
from ..generated import types
from ..limits import Limits
from ..permissions import permit
from .payloads import validate_payloads
from .trees import validate_tree


def writing_findings(
    tree: types.ExportedProgram,
    weights: types.PayloadConfig,
    constants: types.PayloadConfig,
    limits: Limits,
) -> list[Finding]:
    """Why the structure of a program would keep it from being loaded, whatever the caller of `load` permits.

    Args:
        tree: The program. Its types are taken to be right, as `validate_types` finds them.
        weights: The config of its weights.
        constants: The config of its constants.
        limits: What it may cost.

    Example:
        >>> import pt2wire, torch
        >>> from pt2wire.generated import PayloadConfig
        >>> tree = pt2wire.to_tree(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)))
        >>> tree.graph_module.graph.nodes[0].outputs.clear()
        >>> empty = PayloadConfig({})
        >>> [finding.rule for finding in writing_findings(tree, empty, empty, Limits())]
        ['undefined-name']
    """
    permissions = permit(allow_pickle=True, missing_weights="meta", limits=limits)
    # Any operator can be permitted, but not all at once.
    found = [finding for finding in validate_tree(tree, permissions) if finding.rule != "denied-operator"]
    return found or validate_payloads(tree, weights, constants, permissions)
