"""What loading demands of a tree, and says by raising the first finding. Needs torch, as loading does."""

from __future__ import annotations

import dataclasses

from ..findings import Finding
from ..generated import types
from ..operators import allowed_by, allowing_packets
from ..permissions import NO_PERMISSIONS, Permissions
from .attributes import validate_attributes
from .operators import validate_operators
from .payloads import validate_payloads
from .sparse_flow import validate_sparse_flow
from .trees import validate_tree, validate_types

#: How often a tree is looked at with more operators allowed, for a hint that names all of them.
_ROUNDS = 2


def loading_findings(
    tree: types.ExportedProgram,
    weights: types.PayloadConfig | None = None,
    constants: types.PayloadConfig | None = None,
    permissions: Permissions = NO_PERMISSIONS,
) -> list[Finding]:
    """Why a tree, its calls, or the configs that belong to it would not be loaded.

    Operators that are not registered are left to importing, which looks them up and says what to do then.
    Where the first finding is that an operator is not allowed, its hint names all that have to be.

    Args:
        tree: The program.
        weights: The config of its weights, if there is one to compare with.
        constants: Likewise of its constants.
        permissions: What the caller permits.
    """
    findings = _findings(tree, weights, constants, permissions)
    if findings and allowed_by(findings[0].hint):
        hint = allowing_packets(_lacking(findings, tree, weights, constants, permissions))
        findings[0] = dataclasses.replace(findings[0], hint=hint)
    return findings


def _lacking(
    findings: list[Finding],
    tree: types.ExportedProgram,
    weights: types.PayloadConfig | None,
    constants: types.PayloadConfig | None,
    permissions: Permissions,
) -> list[str]:
    """The operators that are not allowed: some are found only where others are."""
    lacking = dict.fromkeys(_not_allowed(findings))
    for _ in range(_ROUNDS):
        more = dataclasses.replace(permissions, allow_operators=permissions.allow_operators | {*lacking})
        found = _not_allowed(_findings(tree, weights, constants, more))
        if not found:
            break
        lacking |= dict.fromkeys(found)
    return list(lacking)


def _not_allowed(findings: list[Finding]) -> list[str]:
    return [packet for finding in findings if (packet := allowed_by(finding.hint))]


def _findings(
    tree: types.ExportedProgram,
    weights: types.PayloadConfig | None,
    constants: types.PayloadConfig | None,
    permissions: Permissions,
) -> list[Finding]:
    findings = validate_tree(tree, permissions)
    if not findings and weights is not None and constants is not None:
        findings = validate_payloads(tree, weights, constants, permissions)
    if not findings:
        operators = [finding for finding in validate_operators(tree) if finding.rule != "unknown-operator"]
        findings = operators + validate_sparse_flow(tree, permissions) + validate_attributes(tree)
    return findings


def check_loadable(
    tree: types.ExportedProgram,
    weights: types.PayloadConfig | None = None,
    constants: types.PayloadConfig | None = None,
    permissions: Permissions = NO_PERMISSIONS,
) -> None:
    """Raise the first of `loading_findings`.

    Args:
        tree: As for `loading_findings`.
        weights: As for `loading_findings`.
        constants: As for `loading_findings`.
        permissions: As for `loading_findings`.

    Raises:
        DeserializeError: There is one.
        UnsafeArtifactError: There is one, and the tree could run code.
    """
    for finding in loading_findings(tree, weights, constants, permissions):
        raise finding.error()


def check_types(tree: types.ExportedProgram) -> None:
    """Raise what `validate_types` finds in a tree that no codec has seen.

    Args:
        tree: As for `loading_findings`.

    Raises:
        DeserializeError: A value is of another type than its field.
    """
    for finding in validate_types(tree):
        raise finding.error()
