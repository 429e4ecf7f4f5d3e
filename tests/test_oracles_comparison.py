"""The comparison of programs, on which every other oracle rests, finds each kind of difference."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.export import ExportedProgram

from .helpers.models import MODELS
from .helpers.oracles import pytorch_load, trips_of
from .helpers.programs import assert_same_program, describe_program, differences


def _node(ep: ExportedProgram, op: str = "call_function") -> torch.fx.Node:
    return next(node for node in ep.graph.nodes if node.op == op)


def _flip_a_bit_of_a_weight(ep: ExportedProgram) -> None:
    weight = next(iter(ep.state_dict.values()))
    with torch.no_grad():
        weight.view(torch.int32)[0] ^= 1


def _negate_a_zero(ep: ExportedProgram) -> None:
    with torch.no_grad():
        ep.state_dict["linear.bias"][0] = -0.0


def _restride_a_weight(ep: ExportedProgram) -> None:
    weight = ep.state_dict["linear.weight"]
    ep.state_dict["linear.weight"] = torch.nn.Parameter(weight.detach().t().contiguous().t())


def _unshare(ep: ExportedProgram) -> None:
    ep.state_dict["linear.weight"] = torch.nn.Parameter(ep.state_dict["linear.weight"].detach().clone())


def _freeze_a_weight(ep: ExportedProgram) -> None:
    ep.state_dict["linear.weight"].requires_grad_(False)


def _rename_a_node(ep: ExportedProgram) -> None:
    _node(ep).name = "renamed"


def _change_a_target(ep: ExportedProgram) -> None:
    next(node for node in ep.graph.nodes if "relu" in node.name).target = torch.ops.aten.sigmoid.default


def _change_a_number(ep: ExportedProgram) -> None:
    node = next(node for node in ep.graph.nodes if "mul" in node.name)
    node.args = (node.args[0], 2)


def _change_the_type_of_a_number(ep: ExportedProgram) -> None:
    node = next(node for node in ep.graph.nodes if "mul" in node.name)
    node.args = (node.args[0], 3.0)


def _change_a_value(ep: ExportedProgram) -> None:
    node = _node(ep)
    node.meta["val"] = node.meta["val"].to(torch.float64)


def _forget_a_symbol(ep: ExportedProgram) -> None:
    node = _node(ep)
    node.meta["val"] = node.meta["val"].fake_mode.from_tensor(torch.empty(6, 3))


def _change_a_note(ep: ExportedProgram) -> None:
    _node(ep).meta["custom"] = {"a": 1}


def _forget_modules(ep: ExportedProgram) -> None:
    del _node(ep).meta["nn_module_stack"]


def _change_a_range(ep: ExportedProgram) -> None:
    symbol, bounds = next(iter(ep.range_constraints.items()))
    ep._range_constraints[symbol] = type(bounds)(bounds.lower, bounds.upper - 1)


def _drop_a_guard(ep: ExportedProgram) -> None:
    ep._guards_code.append("L['x'].size()[0] > 2")


def _swap_inputs_of_the_signature(ep: ExportedProgram) -> None:
    ep.graph_signature.input_specs.reverse()


def _forget_a_module_call(ep: ExportedProgram) -> None:
    ep._module_call_graph.pop()


def _change_an_example_input(ep: ExportedProgram) -> None:
    (x,), kwargs = ep.example_inputs
    ep._example_inputs = ((x + 1,), kwargs)


_CHANGES: list[Callable[[ExportedProgram], None]] = [
    _flip_a_bit_of_a_weight,
    _negate_a_zero,
    _restride_a_weight,
    _unshare,
    _freeze_a_weight,
    _rename_a_node,
    _change_a_target,
    _change_a_number,
    _change_the_type_of_a_number,
    _change_a_value,
    _forget_a_symbol,
    _change_a_note,
    _forget_modules,
    _change_a_range,
    _drop_a_guard,
    _swap_inputs_of_the_signature,
    _forget_a_module_call,
    _change_an_example_input,
]


class _Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.register_buffer("view", self.linear.weight.detach()[1:])
        torch.nn.init.zeros_(self.linear.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).relu() * 3 + self.view.sum()


def _program() -> ExportedProgram:
    torch.manual_seed(0)
    rows = torch.export.Dim("rows", min=2, max=32)
    return torch.export.export(_Model(), (torch.ones(6, 4),), dynamic_shapes={"x": {0: rows}})


@pytest.mark.parametrize("change", _CHANGES, ids=lambda change: change.__name__.strip("_"))
def test_each_change_is_found(change: Callable[[ExportedProgram], None]) -> None:
    original, changed = describe_program(_program()), _program()
    assert differences(original, describe_program(changed)) == []
    change(changed)
    assert differences(original, describe_program(changed)) != []
    with pytest.raises(AssertionError, match=r"(?s)expected .*, found "):
        assert_same_program(_program(), changed)


def test_what_pytorch_loses_is_seen() -> None:
    """The losses listed for PyTorch's format are those that its own save and load show."""
    trips = trips_of("weights_tied")
    found = differences(trips.description, describe_program(pytorch_load(trips.pytorch_file)))
    assert [difference.path for difference in found] == ["weights that are one object"]


def test_models_have_distinct_names_and_every_feature_a_model() -> None:
    assert len(MODELS) >= 90
    features = (
        "dim_",
        "unbacked_",
        "guard_",
        "input_mutation",
        "buffer_mutation",
        "weights_",
        "cond",
        "metadata_",
    )
    assert all(any(name.startswith(feature) for name in MODELS) for feature in features)
