"""Trees (the generated dataclasses) <-> exported programs, without archives in between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from .archive.payloads import Payload
from .arguments import check_tree, check_versions, described, mistaken
from .exporting import export_program
from .generated.types import ExportedProgram
from .importing import check_weights, import_program
from .importing.example_inputs import check_example_inputs, rebuild_example_inputs
from .importing.payloads import PayloadStorages, import_constants, import_weights
from .limits import DEFAULT_LIMITS, Limits
from .permissions import Permissions, permit
from .validation.loading import check_loadable, check_types


def to_tree(
    ep: torch.export.ExportedProgram, *, opset_version: Mapping[str, int] | None = None
) -> ExportedProgram:
    """The tree of a program, without its weights. The program is left untouched.

    Args:
        ep: What `torch.export.export` returned.
        opset_version: The version of each operator namespace that the program was written for.

    Raises:
        SerializeError: The program holds something that cannot be written; the path names the node.
        TypeError: `ep` is no exported program, or `opset_version` has the wrong type.

    Example:
        >>> import torch
        >>> ep = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
        >>> to_tree(ep).graph_module.graph.nodes[0].target
        'torch.ops.aten.relu.default'
    """
    if not isinstance(ep, torch.export.ExportedProgram):
        raise mistaken("an ExportedProgram of torch", ep)
    check_versions(opset_version, "opset_version")
    return export_program(ep, opset_version=opset_version)


def from_tree(
    tree: ExportedProgram,
    weights: Mapping[str, torch.Tensor | Payload],
    constants: Mapping[str, Any],
    *,
    example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None,
    types: Iterable[type] = (),
    allow_operators: Iterable[str] = (),
    changed_weights: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> torch.export.ExportedProgram:
    """Make a program of a tree.

    Args:
        tree: The tree, of `to_tree` or `pt2wire.read` for example. It is checked first.
        weights: Parameters and persistent buffers by name: tensors, or payloads of an `Archive`. They are
            used as they are, not copied. Those that the tree does not name are kept, as PyTorch and `load`
            keep them: strict exports have the second names of tied weights among them.
        constants: Constants, non-persistent buffers and custom objects by name, also of the objects that
            stand in arguments of nodes: the tree names them. Payloads of tensors, too.
        example_inputs: Positional and keyword arguments as for `torch.export.export`. Without them, stand-ins
            on the meta device are made from the tree, because PyTorch checks inputs against guards only in
            programs that have example inputs.
        types: As for `load`.
        allow_operators: As for `load`.
        changed_weights: As for `load`.
        limits: As for `load`.

    Raises:
        DeserializeError: The tree is not sound, or does not fit the weights or example inputs.
        UnsafeArtifactError: A payload is a pickle, which `load` alone may be permitted to open.
        TypeError: An argument has the wrong type.

    Example:
        >>> import torch
        >>> ep = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),))
        >>> again = from_tree(to_tree(ep), ep.state_dict, ep.constants)
        >>> torch.equal(again.module()(torch.ones(3, 2)), ep.module()(torch.ones(3, 2)))
        True

        The tensors of an archive, without the program's example inputs:

        >>> import io, pt2wire
        >>> file = io.BytesIO()
        >>> pt2wire.save(ep, file)
        >>> stored = pt2wire.read(file)
        >>> made = from_tree(stored.programs["model"], stored.weights["model"], stored.constants["model"])
        >>> torch.equal(made.state_dict["weight"], ep.state_dict["weight"])
        True
    """
    check_tree(tree)
    for name, tensors in (("weights", weights), ("constants", constants)):
        if not isinstance(tensors, Mapping):
            raise TypeError(f"expected {name} as tensors by name, found {type(tensors).__name__}")
    for fqn, weight in weights.items():
        if not isinstance(weight, torch.Tensor | Payload):
            raise TypeError(
                f"expected weights[{fqn!r:.80}] as a tensor or payload, found {described(weight)}"
            )
    permissions = permit(
        allow_operators=allow_operators, types=types, limits=limits, changed_weights=changed_weights
    )
    check_types(tree)
    check_loadable(tree, permissions=permissions)
    state_dict, objects = _without_payloads(weights, constants, permissions)
    if example_inputs is None:
        example_inputs = rebuild_example_inputs(tree, permissions=permissions)
    else:
        check_example_inputs(tree, example_inputs, permissions)
    ep = import_program(
        tree,
        state_dict=state_dict,
        constants=objects,
        example_inputs=example_inputs,
        permissions=permissions,
    )
    check_weights(ep, permissions)
    return ep


def _without_payloads(
    weights: Mapping[str, Any], constants: Mapping[str, Any], permissions: Permissions
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Weights and constants with tensors in place of payloads, which share memory as in the archive."""
    storages, stored_weights = PayloadStorages(), _payloads(weights)
    made = import_weights(stored_weights, storages, "weights", permissions)
    made_constants = import_constants(
        _payloads(constants), stored_weights, storages, "constants", permissions
    )
    return {**weights, **made}, {**constants, **made_constants}


def _payloads(values: Mapping[str, Any]) -> dict[str, Payload]:
    return {name: value for name, value in values.items() if isinstance(value, Payload)}
