"""Small programs for the tests of exporting, and PyTorch's JSON to compare with."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch
from pt2wire.exporting import export_program
from pt2wire.exporting.values import Values
from pt2wire.generated import json_codec, types
from torch._export.serde import serialize
from torch.export import ExportedProgram

from .oracles import json_differences, without_own_fields


class Module(torch.nn.Module):
    """A module made of its `forward`, with parameters, buffers and submodules given as attributes."""

    def __init__(self, forward: Callable[..., Any], **attributes: Any) -> None:
        super().__init__()
        for name, value in attributes.items():
            setattr(self, name, value)
        # An instance attribute would take part in the module's state, and torch.export wants the signature.
        self.__class__ = type("Module", (Module,), {"forward": forward})


def exported(forward: Callable[..., Any], *args: Any, shapes: Any = None, **options: Any) -> ExportedProgram:
    """Export a `forward(self, ...)`; `options` go to torch.export.export, but for `attributes`."""
    module = Module(forward, **options.pop("attributes", {})).eval()
    return torch.export.export(module, args, options.pop("kwargs", {}), dynamic_shapes=shapes, **options)


def pytorch_json(ep: ExportedProgram, opset_version: dict[str, int] | None = None) -> Any:
    """The JSON that PyTorch writes for a program."""
    artifact = serialize.serialize(
        ep,
        opset_version,
        serialize_state_dict=False,
        serialize_constants=False,
        serialize_example_inputs=False,
    )
    return json.loads(artifact.exported_program)


def assert_json_is_pytorchs(ep: ExportedProgram) -> types.ExportedProgram:
    """Compare our JSON with PyTorch's, keys and their order included; returns the tree."""
    expected = pytorch_json(ep)
    tree = export_program(ep)
    found = list(json_differences("", expected, without_own_fields(json.loads(json_codec.encode(tree)))))
    assert not found, "\n".join(found[:20])
    return tree


def node_named(ep: ExportedProgram, name: str) -> torch.fx.Node:
    """The node of a program's outermost graph."""
    return next(node for node in ep.graph.nodes if node.name == name)


def members_of(tree: types.ExportedProgram, target: str) -> list[dict[str, str]]:
    """For each call of a target, the member of each argument by its name."""
    return [
        {named.name: named.arg.type for named in node.inputs}
        for node in tree.graph_module.graph.nodes
        if node.target == target
    ]


def pytorch_argument(argument: Any, values: Values) -> Any:
    """The JSON that PyTorch writes for an argument, in a graph that defined `values`."""
    serializer = serialize.GraphModuleSerializer(None, [])
    tables = {
        "as_sym_int": serializer.graph_state.sym_int_values,
        "as_sym_float": serializer.graph_state.sym_float_values,
        "as_sym_bool": serializer.graph_state.sym_bool_values,
    }
    for node, (member, name) in values.references.items():
        node.meta.setdefault("val", None)
        if member in tables:
            tables[member][name] = None
    return json.loads(serialize._to_json_bytes(serializer.serialize_input(argument)))
