"""Trees as PyTorch writes them, to be read by ours and by PyTorch's reader."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from pt2wire.generated import json_codec, types
from pt2wire.importing import import_program
from pt2wire.permissions import Permissions
from torch._export.serde import schema
from torch._export.serde.serialize import (
    ExportedProgramDeserializer,
    ExportedProgramSerializer,
    _dict_to_dataclass,
)
from torch.export import ExportedProgram


def torch_tree(ep: ExportedProgram) -> types.ExportedProgram:
    """What PyTorch's serializer makes of a program, as our types."""
    from torch._export.serde.serialize import _to_json_bytes

    json_bytes = _to_json_bytes(ExportedProgramSerializer().serialize(ep).exported_program)
    return json_codec.decode(types.ExportedProgram, json_bytes)


def read(
    tree: types.ExportedProgram, ep: ExportedProgram | None = None, operators: Sequence[str] = ()
) -> ExportedProgram:
    """The program that we read from a tree, with copies of the weights and example inputs of `ep`."""
    state_dict, constants, example_inputs = _payloads(ep)
    return import_program(
        tree,
        state_dict=state_dict,
        constants=constants,
        example_inputs=example_inputs,
        permissions=Permissions(allow_operators=frozenset(operators)),
    )


def torch_read(tree: types.ExportedProgram, ep: ExportedProgram | None = None) -> ExportedProgram:
    """The program that PyTorch reads from the same tree."""
    plain = json_codec.to_plain(tree)
    plain.pop("writer", None)
    return ExportedProgramDeserializer().deserialize(
        _dict_to_dataclass(schema.ExportedProgram, plain), *_payloads(ep)
    )


def _payloads(ep: ExportedProgram | None) -> tuple[Any, Any, Any]:
    if ep is None:
        return {}, {}, None
    memo: dict[int, Any] = {}  # of one copy, so that tensors which share storage go on to do so
    with torch.no_grad():
        state_dict = copy.deepcopy(dict(ep.state_dict), memo)
        constants = copy.deepcopy(dict(ep.constants), memo)
    return state_dict, constants, copy.deepcopy(ep.example_inputs, memo)
