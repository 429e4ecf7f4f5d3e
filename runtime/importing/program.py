"""The whole program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch._export.verifier import Verifier, load_verifier
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec
from torch.utils import _pytree as pytree

from ..collector import collector_off
from ..errors import DeserializeError
from ..generated import types
from ..guard_inputs import program_inputs
from ..guards import check_guard
from ..permissions import CHANGED_WEIGHTS, NO_PERMISSIONS, Permissions
from .exact import import_plain_value
from .example_inputs import modules_among
from .faults import each, within
from .frames import check_module_calls
from .graph import import_graph
from .guards import learn_guards
from .items import show_items
from .metadata import import_graph_metadata
from .module_calls import import_module_call_graph
from .objects import Objects
from .signature import import_signature
from .subclasses import Subclasses
from .symbols import Symbols, import_range_constraints, import_ranges
from .values import Program


def import_program(
    tree: types.ExportedProgram,
    *,
    state_dict: Mapping[str, torch.Tensor],
    constants: Mapping[str, Any],
    example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None,
    permissions: Permissions = NO_PERMISSIONS,
) -> ExportedProgram:
    """Read an exported program from its tree and its weights. Nothing in the tree is evaluated or imported.

    Args:
        tree: The program, checked by `validate`.
        state_dict: Parameters and persistent buffers, by name.
        constants: Other buffers, constant tensors and custom objects, by name.
        example_inputs: Positional and keyword arguments of one call, or None.
        permissions: What the caller permits the program.

    Returns:
        The program, equal to what PyTorch's deserializer makes of the same tree.

    Raises:
        DeserializeError: For what is not a program, or cannot be read yet. Its path is the place in the tree.

    Example:
        >>> from pt2wire.exporting import export_program
        >>> tree = export_program(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)))
        >>> ep = import_program(tree, state_dict={}, constants={}, example_inputs=((torch.ones(2),), {}))
        >>> ep.module()(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    with collector_off():
        with within("range_constraints"):
            ranges = import_ranges(tree.range_constraints)
        with within("verifiers"):
            verifiers = each("", dict.fromkeys(tree.verifiers), _import_verifier)
        with within("guards_code"):
            guards = each("", tree.guards_code, lambda guard: check_guard(guard, permissions.limits))
        symbols = Symbols(ranges, permissions.limits)
        module = tree.graph_module
        objects = Objects(constants, module.signature, pytree.tree_leaves(example_inputs))
        program = Program(symbols, permissions, Subclasses(permissions.types).make, objects)
        with within("graph_module"):
            with within("graph"):
                values = import_graph(module.graph, program, _constant_inputs(module.signature))
            with within("signature"):
                signature = import_signature(module.signature, values)
            with within("module_call_graph"), modules_among(example_inputs):
                calls = import_module_call_graph(
                    module.module_call_graph, values, module.treespec_namedtuple_fields
                )
            check_module_calls(values.graph, signature, calls)
            meta = import_graph_metadata(module)
            if module.custom is not None:
                with within("custom"):
                    meta["custom"] = import_plain_value(module.custom, permissions.types)
            ep = ExportedProgram(
                root=values.module,
                graph=values.graph,
                graph_signature=signature,
                state_dict=dict(state_dict),
                range_constraints=import_range_constraints(ranges, symbols),
                module_call_graph=calls,
                example_inputs=example_inputs,
                constants=objects.kept(),
                verifiers=verifiers,
            )
            if ep.graph.owning_module is not ep.graph_module:
                # torch goes on with an empty module then
                raise DeserializeError(
                    "expected a graph with valid names, found one whose source does not compile"
                )
            show_items(program)
            ep.graph_module.meta.update(meta)
            passed = _passed(ep)
            inputs = program_inputs(module, passed, permissions.limits)
        ep._guards_code = guards
        symbols.forget_guesses()
        symbols.take_for_special(passed)
        symbols.shape_env.learn_later(lambda: learn_guards(guards, inputs, symbols))
        return ep


def check_weights(ep: ExportedProgram, permissions: Permissions = NO_PERMISSIONS) -> None:
    """Refuse weights that are not as the graph has them: calls would fail, or compute something else.

    Args:
        ep: The program.
        permissions: Whether they may have other sizes and dtypes.

    Raises:
        DeserializeError: One is missing, or has other sizes, another dtype or another layout.
    """
    weights = {**ep.constants, **ep.state_dict}
    for index, (node, spec) in enumerate(_inputs(ep)):
        if spec.kind not in _WEIGHTS:
            continue
        value, weight = node.meta["val"], weights.get(spec.target)
        expected, found = _described(value), _described(weight)
        may_change = isinstance(weight, torch.Tensor) and weight.layout is value.layout
        if found != expected and not (may_change and permissions.changed_weights):
            raise DeserializeError(
                f"expected {spec.target!r:.80} of {expected}, found {found}",
                path=f"graph_module.signature.input_specs[{index}]",
                hint=CHANGED_WEIGHTS if may_change else _GIVEN,
            )


_GIVEN = "Give the weights of the program that the tree was made of, or others like them"


_WEIGHTS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def _described(weight: Any) -> str:
    if not isinstance(weight, torch.Tensor):
        return "none" if weight is None else type(weight).__name__
    return f"sizes {list(weight.shape)}, {weight.dtype} and {weight.layout}"


def _passed(ep: ExportedProgram) -> list[Any]:
    """The values of what a caller passes, in the order of the graph's inputs."""
    return [node.meta["val"] for node, spec in _inputs(ep) if spec.kind is InputKind.USER_INPUT]


def _inputs(ep: ExportedProgram) -> Iterator[tuple[torch.fx.Node, InputSpec]]:
    """Each input of the graph, and what it is to the program."""
    return zip(ep.graph.find_nodes(op="placeholder"), ep.graph_signature.input_specs, strict=True)


def _constant_inputs(signature: types.GraphSignature) -> dict[int, types.InputToConstantInputSpec]:
    return {
        index: spec.constant_input
        for index, spec in enumerate(signature.input_specs)
        if spec.type == "constant_input"
    }


def _import_verifier(dialect: str) -> type[Verifier]:
    try:
        return load_verifier(dialect)
    except KeyError:
        raise DeserializeError(
            f"expected a dialect whose verifier is registered, found {dialect[:80]!r}",
            hint="Import the library that defines the dialect before loading",
        ) from None
