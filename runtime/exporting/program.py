"""The whole program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._export.non_strict_utils import _enable_graph_inputs_of_type_nn_module
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument

from ..collector import collector_off
from ..errors import SerializeError
from ..format_versions import with_writer
from ..generated import types
from ..warning import warn_user
from .exact import export_note
from .graph import export_graph
from .metadata import export_graph_metadata
from .module_calls import export_module_call_graph
from .signature import export_signature
from .symbols import export_range_constraints
from .values import Program, Values


@collector_off()
def export_program(
    ep: ExportedProgram,
    *,
    opset_version: Mapping[str, int] | None = None,
    objects: dict[str, Any] | None = None,
) -> types.ExportedProgram:
    """Write an exported program as a tree, without its weights; the program is left untouched.

    Args:
        ep: What `torch.export.export` returned, or what its `run_decompositions` made of that.
        opset_version: The version of each operator namespace that the program was written for. That of `aten`
            defaults to the installed one.
        objects: Filled with the custom objects that stand in arguments, by the names that the tree has for
            them; they belong to the constants of the file.

    Returns:
        The tree, equal to what PyTorch's serializer makes of the same program. It shares nothing with the
        program that could be changed through it.

    Raises:
        SerializeError: For what the format cannot hold, or pt2wire does not write yet; its path names the
            node.

    Example:
        >>> ep = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
        >>> export_program(ep).graph_module.graph.nodes[0].target
        'torch.ops.aten.relu.default'
    """
    try:
        ep.validate()  # type: ignore[no-untyped-call]
    except Exception as cause:  # also of the graph's own check, and of getattr for a module that is not there
        # The texts of PyTorch's errors go on with the whole graph.
        reason = f"{cause!s:.300}".partition("\n")[0].rstrip(".") or type(cause).__name__
        raise SerializeError(
            f"expected a valid program: {reason}",
            hint="It was changed after torch.export; mend it, or export again",
        ) from cause
    program = Program(objects={} if objects is None else objects)
    values = Values(program)
    graph = export_graph(ep.graph_module, values)
    _name_constants(graph, ep)
    namedtuples: dict[str, types.NamedTupleDef] = {}
    # Modules among the inputs are nodes to pytree while a program is exported and written, not otherwise.
    with _enable_graph_inputs_of_type_nn_module(ep.example_inputs):
        module_calls = export_module_call_graph(ep.module_call_graph, values, namedtuples)
    tree = types.ExportedProgram(
        graph_module=types.GraphModule(
            graph=graph,
            signature=export_signature(ep.graph_signature, values),
            module_call_graph=module_calls,
            metadata=export_graph_metadata(ep.graph_module.meta),
            treespec_namedtuple_fields=namedtuples,
            custom=export_note(ep.graph_module.meta.get("custom")),
        ),
        opset_version={**(opset_version or {}), **_default_opset(opset_version)},
        range_constraints=export_range_constraints(ep.range_constraints),
        schema_version=types.SchemaVersion(major=types.SCHEMA_VERSION[0], minor=types.SCHEMA_VERSION[1]),
        verifiers=[verifier.dialect for verifier in ep.verifiers],
        torch_version=str(torch.__version__),  # a subclass of str, which codecs take the slow path for
        guards_code=list(ep._guards_code),
    )
    program.beyond += _sparse_weights(tree.graph_module)
    if program.beyond:
        tree.beyond = list(dict.fromkeys(program.beyond))
    if program.left_out:
        names = ", ".join(dict.fromkeys(program.left_out))
        warn_user(
            "lowered modules are written as their names, so that the program runs only where they are "
            f"packaged beside it: {names}"
        )
    if program.refused or program.beyond:
        found = "; ".join(dict.fromkeys(program.refused + program.beyond))
        warn_user(f"torch.export.load will refuse this program, pt2wire reads it: {found}")
    return with_writer(tree)


def _name_constants(graph: types.Graph, ep: ExportedProgram) -> None:
    """Give inputs that are constants the names that they have in the signature: PyTorch's reader alters those
    of the nodes, as of one called `type`.
    """
    inputs = zip(ep.graph.find_nodes(op="placeholder"), ep.graph_signature.input_specs, strict=True)
    names = {node.name: spec.arg.name for node, spec in inputs if isinstance(spec.arg, ConstantArgument)}
    if graph.order is not None:
        graph.order = [names.get(name, name) for name in graph.order]
    if graph.placeholder_metadata is not None:
        notes = graph.placeholder_metadata
        graph.placeholder_metadata = {names.get(name, name): note for name, note in notes.items()}


def _sparse_weights(module: types.GraphModule) -> list[str]:
    """What PyTorch cannot store of sparse weights; of sparse values it loses the layout alone."""
    weights = [spec.value.arg for spec in module.signature.input_specs if spec.type in _WEIGHTS]
    layouts = {module.graph.tensor_values[weight.name].layout for weight in weights}
    return ["weights of layout torch.sparse_coo"] if types.Layout.SparseCoo in layouts else []


_WEIGHTS = ("parameter", "buffer", "tensor_constant")


def _default_opset(opset_version: Mapping[str, int] | None) -> dict[str, int]:
    return {} if opset_version and "aten" in opset_version else {"aten": torch._C._get_max_operator_version()}
