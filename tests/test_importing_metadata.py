"""Metadata of nodes: read as PyTorch reads it, with functions from a fixed table only."""

from __future__ import annotations

import json
import operator
from typing import Any

import pytest
import torch
from pt2wire.errors import DeserializeError
from pt2wire.importing.metadata import Metadata, import_source_function
from torch._export.serde.serialize import GraphModuleDeserializer
from torch.fx.traceback import NodeSource, NodeSourceAction
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

_SOURCE = {
    "name": "linear",
    "target": "aten.linear.default",
    "graph_id": 7,
    "pass_name": "pass",
    "action": "create+replace",
    "from_node": [
        {"name": "x", "target": "x", "graph_id": 3, "pass_name": "", "action": "", "from_node": []}
    ],
}
_HONEST: list[dict[str, str]] = [
    {},
    {"stack_trace": 'File "m.py", line 3, in forward\n    return x'},
    {"nn_module_stack": "L__self__,,m.Model;L__self___lin,lin,torch.nn.modules.linear.Linear"},
    {"nn_module_stack": "L['self'],,m.Model;L['self'].seq[0],seq.0,torch.nn.modules.linear.Linear"},
    {"nn_module_stack": "k,layers[(1, 2)],m.Model"},
    {"source_fn_stack": "linear_1,torch.nn.modules.linear.Linear;relu,torch.nn.functional.relu"},
    {"source_fn_stack": "add,_operator.add"},
    {"source_fn_stack": "cond,torch.ops.higher_order.cond"},
    {"source_fn_stack": "x,somebodys.module.Class"},
    {"torch_fn": "linear_1;builtin_function_or_method.linear"},
    {"custom": '{"note": [1, 2.5, null, {"a": true}]}'},
    {"from_node": json.dumps([_SOURCE, {"name": "y"}])},
    {"from_node": "null"},
    {"from_node": "[]"},
    {"a_key_of_the_future": "x"},
]


@pytest.mark.parametrize("metadata", _HONEST, ids=lambda metadata: "".join(metadata.values())[:30])
def test_metadata_is_read_as_pytorch_reads_it(metadata: dict[str, str]) -> None:
    expected = GraphModuleDeserializer().deserialize_metadata(metadata)
    assert Metadata().import_metadata(metadata) == expected


def test_sources_of_nodes_keep_everything() -> None:
    (source,) = Metadata().import_metadata({"from_node": json.dumps([_SOURCE])})["from_node"]
    assert isinstance(source, NodeSource)
    assert source.to_dict() == _SOURCE
    assert source.action == [NodeSourceAction.CREATE, NodeSourceAction.REPLACE]


@pytest.mark.parametrize("metadata", _HONEST, ids=lambda metadata: "".join(metadata.values())[:30])
def test_no_two_nodes_share_what_can_be_changed(metadata: dict[str, str]) -> None:
    reader = Metadata()
    first, second = reader.import_metadata(metadata), reader.import_metadata(metadata)
    for key, value in first.items():
        if isinstance(value, (dict, list)):
            assert value is not second[key]
            value.clear()
            assert second[key] == Metadata().import_metadata(metadata)[key]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("torch.nn.modules.linear.Linear", torch.nn.Linear),
        ("torch.nn.functional.relu", torch.nn.functional.relu),
        ("torch.nn.modules.activation.MultiheadAttention", torch.nn.MultiheadAttention),
        ("_operator.mul", operator.mul),
        ("torch.functional.einsum", torch.functional.einsum),
        ("torch.nn.modules.linear.NonDynamicallyQuantizableLinear", NonDynamicallyQuantizableLinear),
        ("torch._C._fft.fft_fft", torch.fft.fft),
        ("torch.ops.aten.mm.default", torch.ops.aten.mm.default),
        ("torch.ops.aten.relu", torch.ops.aten.relu),
        ("torch.ops.aten.set_.source_Tensor", torch.ops.aten.set_.source_Tensor),  # named, not called
        ("torch.ops.higher_order.print", torch.ops.higher_order.print),
    ],
)
def test_classes_functions_and_operators_come_back_as_pytorch_reads_them(name: str, expected: Any) -> None:
    """Quantizers look for them."""
    read = GraphModuleDeserializer().deserialize_metadata({"source_fn_stack": f"x,{name}"})
    assert read["source_fn_stack"] == [("x", expected)]
    assert import_source_function(name) is expected


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "torch.os.system",
        "torch.serialization.os.system",
        "torch.nn.modules.module.warnings",
        "torch.nn.Linear.__init__.__globals__",
        "torch.ops.load_library",
        "torch.ops.aten.load_library",
        "torch.ops._dir.append",
        "torch.nn.modules.linear.math.sqrt",
        "torch.nn.functional.boolean_dispatch.__call__",
        "torch.ops.nobodys.op.default",
        "builtins.eval",
        "",
    ],
)
def test_other_names_stay_text(name: str) -> None:
    assert import_source_function(name) == name


_REFUSED = [
    ({"custom": "{"}, "metadata['custom']: expected JSON, found '{'"),
    ({"custom": "[" * 100_000}, "metadata['custom']: expected JSON, found '[[["),
    ({"from_node": "{}"}, "metadata['from_node']: expected a list of sources, found dict"),
    ({"from_node": "[3]"}, "metadata['from_node']: expected an object as source of a node, found int"),
    (
        {"from_node": '[{"name": 3, "target": "t", "graph_id": 1}]'},
        "metadata['from_node']: expected str as name of a node's source, found 3",
    ),
    (
        {"nn_module_stack": "only,two"},
        "metadata['nn_module_stack']: expected a key, a path and a class with commas between, found "
        "'only,two'",
    ),
    (
        {"source_fn_stack": "nameonly"},
        "metadata['source_fn_stack']: expected a name and a function with a comma between, found 'nameonly'",
    ),
]


@pytest.mark.parametrize(("metadata", "message"), _REFUSED, ids=lambda value: str(value)[:40])
def test_broken_metadata_is_refused(metadata: dict[str, str], message: str) -> None:
    with pytest.raises(DeserializeError) as caught:
        Metadata().import_metadata(metadata)
    assert str(caught.value).startswith(message)
