"""Loading onto other devices. PyTorch's own pass is the oracle for whole models, see `helpers.oracles`."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire import DeserializeError
from pt2wire.generated import types
from pt2wire.importing.devices import DeviceMap, Devices
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram

from .helpers.archives import linear_program, saved
from .helpers.lies import Autocast
from .helpers.programs import assert_no_differences, describe_program, differences

ABSENT = f"cuda:{torch.cuda.device_count()}"


class OnOneDevice(nn.Module):
    """Everything that can name a device: factories, casts, checks, autocast, subgraphs, dicts of tensors."""

    def forward(self, x: torch.Tensor, named: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        counted = torch.arange(3, device=x.device)
        with torch.autocast(x.device.type, dtype=torch.bfloat16, enabled=False):
            product = x @ x + counted
        branch = torch.cond(x.sum() > 0, self._double, lambda x: x.to(torch.float64), (x,))
        return product.to(torch.int16), branch, named["a"].to(x.device, torch.float32)

    def _double(self, x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float64) + torch.ones(3, device=x.device)


def exported(device: str) -> ExportedProgram:
    """A program without weights; PyTorch exports it for devices that this machine lacks."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        inputs = torch.empty(3, 3, device=device), {"a": torch.empty(2, device=device)}
        return torch.export.export(OnOneDevice(), inputs)


@pytest.mark.parametrize(
    ("source", "target", "device"),
    [
        ("cuda", "cpu", "cpu"),
        ("cuda", "cpu", torch.device("cpu")),
        ("cuda", "cpu", {"cuda": "cpu"}),
        ("cuda:0", "cpu", {torch.device("cuda:0"): torch.device("cpu")}),
        ("cuda:1", "cuda:0", {"cuda:1": "cuda:0"}),
        ("cuda:1", "cuda:0", lambda old: torch.device("cuda", old.index - 1) if old.index else None),
        ("cpu", "cuda", "cuda"),
        ("cpu", "cuda:0", "cuda"),
        ("cpu", "cuda:1", lambda old: "cuda:1"),
        ("xpu:2", "cuda:1", "cuda:1"),
        ("cuda", "cuda", {"cpu": "meta"}),
    ],
)
def test_a_program_is_as_if_exported_for_the_device(source: str, target: str, device: DeviceMap) -> None:
    found = describe_program(pt2wire.load(io.BytesIO(saved(exported(source))), device=device))
    expected = describe_program(pt2wire.load(io.BytesIO(saved(exported(target)))))
    # Traces quote source that PyTorch generated for the old device.
    unequal = [each for each in differences(expected, found) if not each.path.endswith("stack_trace")]
    assert_no_differences(unequal)
    assert f"torch.float64 {torch.device(target).type}" in found["graph.true_graph_0.to value"]
    assert f"str '{torch.device(target).type}'" in str(found)  # autocast


@pytest.mark.parametrize(("device", "expected"), [("cuda:1", "cuda"), ("meta", "cpu")])
def test_autocast_around_control_flow_is_of_the_device(device: str, expected: str) -> None:
    around = torch.export.export(Autocast(), (torch.ones(3, 3),))
    loaded = pt2wire.load(io.BytesIO(saved(around)), device=device)
    entered = [n.args[0] for n in loaded.graph.nodes if n.target is torch.amp.autocast_mode._enter_autocast]
    assert entered == [expected, expected]


def test_autocast_keeps_its_device_on_the_meta_device() -> None:
    loaded = pt2wire.load(io.BytesIO(saved(exported("cpu"))), device="meta")
    node = next(n for n in loaded.graph.nodes if n.target is torch.ops.higher_order.wrap_with_autocast)
    assert node.args[0] == "cpu"


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("cpu", "cpu cpu cpu cpu cpu"),
        ("cuda", "cuda:0 cuda:0 cuda:0 cuda:0 cuda:0"),
        ({"cuda": "cpu", "cuda:1": "cuda:0"}, "cpu cuda:0 cpu cpu meta"),
        ({"cuda:0": "xpu:3"}, "xpu:3 cuda:1 xpu:3 cpu meta"),
        ({"cpu": "cuda:0", "cuda:0": "cpu"}, "cpu cuda:1 cpu cuda:0 meta"),
        ({}, "cuda:0 cuda:1 cuda cpu meta"),
        ("cpu:3", "cpu cpu cpu cpu cpu"),
        (lambda old: None, "cuda:0 cuda:1 cuda cpu meta"),
        (lambda old: "cuda:4" if old.type == "cuda" else old, "cuda:4 cuda:4 cuda:4 cpu meta"),
    ],
)
def test_mappings(device: Any, expected: str) -> None:
    old = [torch.device(name) for name in ("cuda:0", "cuda:1", "cuda", "cpu", "meta")]
    assert " ".join(map(str, map(Devices(device), old))) == expected


class Weighted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        base = torch.arange(12.0)
        self.weight = nn.Parameter(base.view(3, 4))
        self.tied = self.weight
        self.register_buffer("turned", base.view(3, 4).t())
        self.register_buffer("hidden", base[4:], persistent=False)
        self.register_buffer("conjugated", torch.ones(2, dtype=torch.complex64).conj())
        self.constant = torch.tensor([1, 2])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight + self.tied.sum() + self.hidden[:4] + self.constant.sum()


@pytest.mark.parametrize(
    "load",
    [
        lambda ep: pt2wire.load(io.BytesIO(saved(ep)), device="meta"),
        lambda ep: pt2wire.load_all(io.BytesIO(saved({"one": ep})), device="meta")["one"],
        lambda ep: pt2wire.deserialize(pt2wire.serialize(ep), device={"cpu": "meta"}),
    ],
    ids=["load", "load_all", "deserialize"],
)
def test_weights_constants_and_inputs_follow(load: Callable[[ExportedProgram], ExportedProgram]) -> None:
    ep = torch.export.export(Weighted(), (torch.ones(2, 3),))
    loaded = load(ep)
    tensors = {**loaded.state_dict, **loaded.constants}
    for name, tensor in {**ep.state_dict, **ep.constants}.items():
        moved = tensors[name]
        assert moved.is_meta
        assert (moved.shape, moved.stride(), moved.dtype) == (tensor.shape, tensor.stride(), tensor.dtype)
        assert moved.storage_offset() == tensor.storage_offset()
        assert (moved.requires_grad, moved.is_conj()) == (tensor.requires_grad, tensor.is_conj())
        assert type(moved) is type(tensor)
    assert tensors["weight"] is tensors["tied"]
    (args, _) = loaded.example_inputs
    assert args[0].is_meta and args[0].shape == (2, 3)
    assert loaded.module()(torch.empty(2, 3, device="meta")).is_meta


def test_memory_that_was_shared_is_shared_there() -> None:
    ep = torch.export.export(Weighted(), (torch.ones(2, 3),))
    loaded = pt2wire.load(io.BytesIO(saved(ep)), device="meta")
    shared = [loaded.state_dict["weight"], loaded.state_dict["turned"], loaded.constants["hidden"]]
    assert len({tensor.untyped_storage()._cdata for tensor in shared}) == 1


def test_what_another_device_is_given_is_saved_for_it() -> None:
    moved = pt2wire.load(io.BytesIO(saved(linear_program())), device="meta")
    again = pt2wire.load(io.BytesIO(saved(moved)))
    assert_no_differences(differences(describe_program(moved), describe_program(again)))


@pytest.mark.parametrize("number", [0, 1])
def test_a_digest_is_that_of_the_file(number: int) -> None:
    data = saved(linear_program())
    archive = pt2wire.read(io.BytesIO(data))
    digest = pt2wire.digest(archive.programs["model"], archive.weights["model"], archive.constants["model"])
    device = [None, "meta"][number]
    assert pt2wire.load(io.BytesIO(data), device=device, expected_digest=digest)


def test_a_device_that_is_not_there_is_named() -> None:
    with pytest.raises(DeserializeError, match="cannot make this tensor") as caught:
        pt2wire.load(io.BytesIO(saved(linear_program())), device=ABSENT)
    assert caught.value.hint == f"This machine lacks {ABSENT}: load with another `device`"


@pytest.mark.parametrize("kind", ["hpu", "privateuseone"])
def test_a_device_that_this_build_of_torch_lacks_is_named(kind: str) -> None:
    archive = pt2wire.read(io.BytesIO(saved(linear_program())))
    for payload in archive.weights["model"].values():
        assert payload.meta.tensor_meta is not None
        payload.meta.tensor_meta.device = types.Device(kind)
    file = io.BytesIO()
    pt2wire.write(archive, file)
    assert pt2wire.load(file, device={kind: "cpu"})
    file.seek(0)
    with pytest.raises(DeserializeError, match="cannot make this tensor") as caught:
        pt2wire.load(file)
    assert caught.value.hint == f"This machine lacks {kind}: load with another `device`"


def _moon() -> types.Device:
    return types.Device("moon", 0)


def _value_on_the_moon(archive: pt2wire.Archive) -> None:
    archive.programs["model"].graph_module.graph.tensor_values["linear"].device = _moon()


def _weight_on_the_moon(archive: pt2wire.Archive) -> None:
    meta = archive.weights["model"]["linear.weight"].meta.tensor_meta
    assert meta is not None
    meta.device = _moon()


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (_value_on_the_moon, "graph_module.graph.tensor_values['linear']"),
        (_weight_on_the_moon, "weights.linear.weight"),
    ],
)
def test_a_device_that_no_torch_knows_is_an_error_of_the_file(
    change: Callable[[pt2wire.Archive], None], place: str
) -> None:
    archive = pt2wire.read(io.BytesIO(saved(linear_program())))
    change(archive)
    file = io.BytesIO()
    pt2wire.write(archive, file)
    with pytest.raises(DeserializeError, match="expected a device that torch knows, found 'moon'") as caught:
        pt2wire.load(file, device="cpu")
    assert caught.value.path is not None and caught.value.path.endswith(f":{place}")


def test_data_that_was_not_saved_cannot_be_moved() -> None:
    with torch.device("meta"):
        ep = torch.export.export(nn.Linear(3, 2), (torch.ones(1, 3),))
    with pytest.raises(DeserializeError, match="expected 24 bytes, found an empty payload"):
        pt2wire.load(io.BytesIO(saved(ep)), device="cpu")
    with pytest.raises(DeserializeError, match="a tensor that can be put on cpu, found one on the meta"):
        pt2wire.deserialize(pt2wire.serialize(ep), device="cpu")


@pytest.mark.parametrize(
    ("device", "error", "message"),
    [
        ("moon", ValueError, "expected a device such as 'cuda:1', found 'moon'"),
        ({"cpu": "moon"}, ValueError, "found 'moon'"),
        ("privateuseone", ValueError, "expected a device that this PyTorch has, found 'privateuseone'"),
        (3, TypeError, "expected a device, a mapping of devices or a function .* found int"),
        ({"cpu": 3}, TypeError, "expected a device such as 'cuda:1', found int"),
        (lambda old: 3, TypeError, "expected a device such as 'cuda:1', found int"),
        (lambda old: 1 // 0, ZeroDivisionError, "division"),
    ],
)
def test_wrong_devices_are_errors(device: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pt2wire.load(io.BytesIO(saved(linear_program())), device=device)
