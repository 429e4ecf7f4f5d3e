"""Weights and constants: every dtype and stride, shared as before, in the records that PyTorch writes."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pt2wire
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pt2wire import DeserializeError, SerializeError
from pt2wire.archive.extents import check_payload, tensor_extent
from pt2wire.exporting.payloads import storage_bytes
from pt2wire.exporting.symbols import Symbols
from pt2wire.exporting.values import export_tensor_meta
from pt2wire.generated import BITS, TORCH_NAMES, ExtraScalarType, PayloadMeta, ScalarType, SymInt
from pt2wire.layouts import ITEM_SIZES
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.testing._internal.two_tensor import TwoTensor

from .helpers.archives import linear_program, record, saved, torch_saved, with_records


class Holder(torch.nn.Module):
    """A model that has tensors and does nothing with them: they stay in its state all the same."""

    def __init__(self, fill: Callable[[Any], None]) -> None:
        super().__init__()
        fill(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


def holding(fill: Callable[[Any], None]) -> ExportedProgram:
    return torch.export.export(Holder(fill), (torch.ones(2),))


def reloaded(ep: ExportedProgram, **options: Any) -> ExportedProgram:
    return pt2wire.load(io.BytesIO(saved(ep)), **options)


def assert_same_tensor(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.stride() == expected.stride()
    assert found.storage_offset() == expected.storage_offset()
    assert found.requires_grad == expected.requires_grad
    assert found.device == expected.device
    assert bytes(storage_bytes(found.untyped_storage())) == bytes(storage_bytes(expected.untyped_storage()))


DTYPES = [getattr(torch, name) for name in TORCH_NAMES[ScalarType].values()]


def test_item_sizes_are_those_of_torch() -> None:
    names = TORCH_NAMES[ScalarType] | TORCH_NAMES[ExtraScalarType]
    bits = BITS[ScalarType] | BITS[ExtraScalarType]
    assert {dtype: size * 8 for dtype, size in ITEM_SIZES.items()} == bits
    assert {dtype: getattr(torch, names[dtype]).itemsize for dtype in names} == ITEM_SIZES


def _all_dtypes(module: Any) -> None:
    for dtype in DTYPES:
        content = torch.arange(1, 1 + 6 * dtype.itemsize, dtype=torch.uint8) % 2
        module.register_buffer(str(dtype).replace(".", "_"), content.view(dtype).view(2, 3))


def _strides(module: Any) -> None:
    base = torch.arange(24.0)
    module.register_buffer("offset", base[5:9])
    module.register_buffer("step", base[1:20:3])
    module.register_buffer("transposed", base.view(4, 6).t())
    module.register_buffer("expanded", torch.ones(1, 3).expand(5, 3))
    module.register_buffer("overlapping", torch.arange(9.0).as_strided((4, 3), (2, 1)))
    module.register_buffer("scalar", torch.tensor(3))
    module.register_buffer("scalar_inside", base[7])
    module.register_buffer("huge_stride", torch.arange(3.0).as_strided((1, 3), (1 << 40, 1)))
    module.register_buffer("channels_last", torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last))


def _empty(module: Any) -> None:
    module.register_buffer("none", torch.empty(0))
    module.register_buffer("wide", torch.empty(0, 3))
    module.register_buffer("deep", torch.empty(2, 0, 4, dtype=torch.int16))
    module.parameter = torch.nn.Parameter(torch.empty(3, 0))


def _kinds(module: Any) -> None:
    module.trained = torch.nn.Parameter(torch.randn(2))
    module.frozen = torch.nn.Parameter(torch.randn(2), requires_grad=False)
    module.integers = torch.nn.Parameter(torch.arange(3), requires_grad=False)
    module.register_buffer("buffer", torch.randn(2))
    module.register_buffer("hidden", torch.randn(2), persistent=False)
    module.register_buffer("with_gradient", torch.randn(2, requires_grad=True))


STATES: dict[str, Callable[[Any], None]] = {
    "all dtypes": _all_dtypes,
    "strides and offsets": _strides,
    "nothing inside": _empty,
    "parameters and buffers": _kinds,
}


@pytest.mark.parametrize("options", [{}, {"mmap": False}, {"form": "json"}], ids=str)
@pytest.mark.parametrize("fill", STATES.values(), ids=STATES)
def test_tensors_come_back_as_they_were(fill: Callable[[Any], None], options: dict[str, Any]) -> None:
    ep = holding(fill)
    loaded = reloaded(ep, **options)
    for found, expected in ((loaded.state_dict, ep.state_dict), (loaded.constants, ep.constants)):
        assert list(found) == list(expected)
        for name, tensor in expected.items():
            assert_same_tensor(found[name], tensor)


def content(tensor: torch.Tensor) -> torch.Tensor:
    """The elements as bytes, in the order of the indices."""
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


@pytest.mark.parametrize("fill", STATES.values(), ids=STATES)
def test_pytorch_gets_from_our_file_what_it_gets_from_its_own(fill: Callable[[Any], None]) -> None:
    ep = holding(fill)
    found = torch.export.load(io.BytesIO(saved(ep)))
    expected = torch.export.load(io.BytesIO(torch_saved(ep)))
    for ours, its_own in ((found.state_dict, expected.state_dict), (found.constants, expected.constants)):
        assert ours.keys() == its_own.keys()
        for name, tensor in its_own.items():
            assert ours[name].stride() == tensor.stride()
            assert torch.equal(content(ours[name]), content(tensor))


@pytest.mark.parametrize("fill", STATES.values(), ids=STATES)
def test_configs_and_records_are_those_that_pytorch_writes(fill: Callable[[Any], None]) -> None:
    ep = holding(fill)
    ours, its_own = saved(ep), torch_saved(ep)
    for kind in ("weights", "constants"):
        name = f"data/{kind}/model_{kind}_config.json"
        configs = [json.loads(record(data, name))["config"] for data in (ours, its_own)]
        assert configs[0] == configs[1]
        for payload in configs[1].values():
            path = f"data/{kind}/{payload['path_name']}"
            # PyTorch writes nothing for a storage of which it sees an empty view first.
            assert record(ours, path) == record(its_own, path) or record(its_own, path) == b""


def test_an_empty_view_of_a_storage_that_is_not_empty_comes_back() -> None:
    ep = holding(lambda module: module.register_buffer("inside", torch.arange(4.0)[2:2]))
    with pytest.raises(RuntimeError, match="overflow"):
        torch_saved(ep)  # PyTorch cannot save it
    assert_same_tensor(reloaded(ep).state_dict["inside"], ep.state_dict["inside"])


def _shared(module: Any) -> None:
    base = torch.arange(12.0)
    module.weight = torch.nn.Parameter(base.view(3, 4))
    module.tied = module.weight
    module.register_buffer("row", base.view(3, 4)[1])
    module.register_buffer("integers", base.view(torch.int32)[2:4])
    module.register_buffer("hidden", base[4:], persistent=False)


def storages(*tensors: torch.Tensor) -> set[int]:
    return {tensor.untyped_storage()._cdata for tensor in tensors}


def test_one_storage_stays_one_under_all_names_dtypes_and_kinds() -> None:
    ep = holding(_shared)
    for loaded in (reloaded(ep), reloaded(ep, mmap=False)):
        assert loaded.state_dict["weight"] is loaded.state_dict["tied"]
        assert len(storages(*loaded.state_dict.values(), *loaded.constants.values())) == 1
        with torch.no_grad():
            loaded.state_dict["row"].fill_(7.0)
        assert loaded.state_dict["weight"][1].tolist() == [7.0] * 4
        assert loaded.constants["hidden"].tolist() == [7.0] * 4 + [8.0, 9.0, 10.0, 11.0]


def test_parameters_that_only_share_memory_stay_two() -> None:
    def fill(module: Any) -> None:
        module.weight = torch.nn.Parameter(torch.ones(2, 2))
        module.transposed = torch.nn.Parameter(module.weight.data.t())

    loaded = reloaded(holding(fill)).state_dict
    assert loaded["weight"] is not loaded["transposed"]
    assert len(storages(*loaded.values())) == 1


def test_a_shared_storage_is_stored_once_per_dtype_and_kind() -> None:
    data = saved(holding(_shared))
    archive = pt2wire.read(io.BytesIO(data))
    weights, constants = archive.weights["model"], archive.constants["model"]
    found = {name: (payload.meta.path_name, payload.meta.alias_of) for name, payload in weights.items()}
    assert found == {
        "weight": ("weight_0", None),
        "tied": ("weight_0", None),
        "row": ("weight_0", None),
        "integers": ("weight_1", "weight"),
    }
    assert [(p.meta.path_name, p.meta.alias_of) for p in constants.values()] == [("tensor_0", "weight")]
    assert [name for name in archive.records if name.startswith("data/weights/weight_")] == [
        "data/weights/weight_0",
        "data/weights/weight_1",
    ]


def test_programs_share_weights_in_the_file_and_after_loading() -> None:
    module = torch.nn.Linear(3, 3)
    one = torch.export.export(module, (torch.ones(1, 3),))
    two = torch.export.export(module, (torch.ones(5, 3),))
    data = saved({"one": one, "two": two})
    names = pt2wire.read(io.BytesIO(data)).records
    assert sum(name.startswith("data/weights/weight_") for name in names) == 2
    loaded = pt2wire.load_all(io.BytesIO(data))
    assert len(storages(loaded["one"].state_dict["weight"], loaded["two"].state_dict["weight"])) == 1
    read = torch.export.pt2_archive._package.load_pt2(io.BytesIO(data)).exported_programs
    assert read.keys() == {"one", "two"}
    assert torch.equal(read["two"].module()(torch.ones(5, 3)), module(torch.ones(5, 3)))


def test_changing_a_loaded_weight_never_reaches_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    pt2wire.save(linear_program(), path)
    before = path.read_bytes()
    loaded = pt2wire.load(path)
    with torch.no_grad():
        for tensor in (*loaded.state_dict.values(), *loaded.constants.values()):
            tensor.fill_(7.0)
    del loaded
    assert path.read_bytes() == before
    assert torch.equal(pt2wire.load(path).state_dict["offset"], linear_program().state_dict["offset"])


def test_copied_weights_outlive_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    pt2wire.save(linear_program(), path)
    loaded = pt2wire.load(path, mmap=False)
    path.write_bytes(b"")
    for name, tensor in linear_program().state_dict.items():
        assert torch.equal(loaded.state_dict[name], tensor)


def test_records_that_another_tool_deflated_or_moved_are_read() -> None:
    loaded = pt2wire.load(io.BytesIO(with_records(saved(linear_program()), {"extra/x": b"1"})))
    for name, tensor in linear_program().state_dict.items():
        assert torch.equal(loaded.state_dict[name], tensor)
        assert loaded.state_dict[name].data_ptr() % 16 == 0


def test_weights_on_the_meta_device_stay_there() -> None:
    with torch.device("meta"):
        module = torch.nn.Linear(3, 2)
    module.tied = module.weight
    ep = torch.export.export(module, (torch.ones(1, 3, device="meta"),))
    loaded = reloaded(ep).state_dict
    assert loaded["weight"].is_meta
    assert loaded["weight"].shape == (2, 3)
    assert loaded["weight"] is loaded["tied"]
    assert loaded["bias"].requires_grad
    assert torch.export.load(io.BytesIO(saved(ep))).state_dict["weight"].is_meta


# What is refused.


def _fake() -> torch.Tensor:
    with FakeTensorMode():
        return TwoTensor(torch.ones(2), torch.ones(2))


def _resized() -> torch.Tensor:
    tensor = torch.ones(8)
    tensor.untyped_storage().resize_(4)
    return tensor


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "fake": (_fake, "cannot save a fake tensor of a subclass (TwoTensor)"),
    "resized": (_resized, "found 4 in the payload 'weight_0'"),
    "of oneDNN": (
        lambda: torch.ones(2, 2).to_mkldnn(),
        "cannot save a tensor in a layout of oneDNN's own (Tensor)",
    ),
    "object": (
        lambda: object(),
        "cannot save a constant that is neither a tensor nor an object of PyTorch's (object)",
    ),
}


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_written_is_refused_by_name(make: Callable[[], Any], message: str) -> None:
    ep = holding(lambda module: module.register_buffer("odd", torch.ones(2)))
    ep.state_dict["odd"] = make()
    with pytest.raises(SerializeError) as caught:
        saved(ep)
    assert message in str(caught.value)
    assert caught.value.path == "odd"


# Metadata that lie.


def payload(sizes: list[int], strides: list[int], offset: int) -> PayloadMeta:
    meta = export_tensor_meta(torch.empty(0), Symbols())
    meta.sizes = [SymInt.create(as_int=size) for size in sizes]
    meta.strides = [SymInt.create(as_int=stride) for stride in strides]
    meta.storage_offset = SymInt.create(as_int=offset)
    return PayloadMeta("weight_0", False, False, meta)


def test_extents_are_those_of_torch() -> None:
    for tensor in (torch.empty(()), torch.empty(3, 0), torch.ones(4, 6).t(), torch.arange(24.0)[5:20:3]):
        extent = tensor_extent(export_tensor_meta(tensor, Symbols()), "x")
        last = tensor.storage_offset() + sum(
            (n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True)
        )
        assert extent.nbytes == (0 if tensor.numel() == 0 else (last + 1) * tensor.element_size())


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), max_size=4),
    st.integers(0, 9),
    st.integers(0, 200),
)
def test_a_view_is_accepted_exactly_if_its_last_element_is_inside(
    dims: list[tuple[int, int]], offset: int, available: int
) -> None:
    sizes, strides = [size for size, _ in dims], [stride for _, stride in dims]
    reached = [offset + sum(index) for index in _indices(dims)]
    fits = not reached or (max(reached) + 1) * 4 <= available
    try:
        check_payload(payload(sizes, strides, offset), available, "x")
    except DeserializeError:
        assert not fits
    else:
        assert fits


def _indices(dims: list[tuple[int, int]]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for size, stride in dims:
        found = [(*index, step * stride) for index in found for step in range(size)]
    return found


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        (
            payload([2], [1], 0),
            "expected 8 bytes for sizes (2,), strides (1,) and offset 0, found 4 in the payload",
        ),
        (payload([-1], [1], 0), "expected sizes of at least 0, found -1"),
        (payload([1], [-1], 0), "expected strides of at least 0, found -1"),
        (payload([1], [1], -1), "expected storage_offset of at least 0, found -1"),
        (payload([1], [1, 1], 0), "expected as many strides as sizes, 1, found 2"),
        (payload([1] * 65, [1] * 65, 0), "expected at most 64 dimensions, found 65"),
        (payload([2, 2], [1 << 62, 1 << 62], 0), "expected a tensor within 64 bits"),
        (payload([1 << 32, 1 << 32], [0, 0], 0), "expected a tensor within 64 bits"),
        (payload([1], [1], 1 << 62), "expected a tensor within 64 bits"),
    ],
)
def test_impossible_views_are_refused(meta: PayloadMeta, message: str) -> None:
    with pytest.raises(DeserializeError) as caught:
        check_payload(meta, 4, "weights.w")
    assert message in str(caught.value)
    assert caught.value.path == "weights.w"


def edited(change: Callable[[dict[str, Any]], None], kind: str = "weights") -> bytes:
    """PyTorch's archive of a small program with another payload config."""
    data = torch_saved(linear_program())
    name = f"data/{kind}/model_{kind}_config.json"
    config = json.loads(record(data, name))
    change(config["config"])
    return with_records(data, {name: json.dumps(config).encode()})


def _set(name: str, **fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda config: config[name]["tensor_meta"].update(fields)


LIES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "too long": (
        _set("offset", sizes=[{"as_int": 99}]),
        r"of sizes \[3\] as in the graph, found \[99\]",
    ),
    "another dtype": (_set("offset", dtype=5), "dtype"),
    "unknown dtype": (_set("offset", dtype=0), "dtype"),
    "number of no dtype": (_set("offset", dtype=99), "dtype"),
    "sparse": (_set("offset", layout=1), "expected indices, values, found nothing"),
    "symbolic": (_set("offset", sizes=[{"as_expr": {"expr_str": "s0", "hint": None}}]), "symbolic"),
    "negative": (_set("offset", sizes=[{"as_int": -3}]), "at least 0"),
    "negated truth values": (_set("offset", dtype=12, neg=True), "a dtype that can be negated"),
    "no metadata": (lambda config: config["offset"].update(tensor_meta=None), "metadata of a tensor"),
    "no such record": (lambda config: config["offset"].update(path_name="weight_99"), "weight_99"),
    "another folder": (
        lambda config: config["offset"].update(path_name="../constants/tensor_0"),
        "expected the record 'data/weights/../constants/tensor_0', but the archive has none",
    ),
    "two dtypes": (
        lambda config: config["offset"].update(
            path_name=config["linear.weight"]["path_name"],
            tensor_meta={**config["offset"]["tensor_meta"], "dtype": 5},
        ),
        r"payload 'weight_0' is FLOAT for 'linear.weight', but LONG for 'offset'",
    ),
    "missing": (lambda config: config.pop("offset"), "offset"),
    "pickled": (lambda config: config["offset"].update(use_pickle=True), "pickle"),
    "unknown device": (_set("offset", device={"type": "moon", "index": None}), "moon"),
}


@pytest.mark.parametrize(("change", "message"), LIES.values(), ids=LIES)
def test_configs_that_lie_are_refused(change: Callable[[dict[str, Any]], None], message: str) -> None:
    with pytest.raises(DeserializeError, match=message) as caught:
        pt2wire.load(io.BytesIO(edited(change)))
    assert str(caught.value).startswith("<BytesIO>:")


def test_an_empty_payload_of_a_fake_weight_is_not_taken_for_zeros() -> None:
    name = pt2wire.read(io.BytesIO(torch_saved(linear_program()))).weights["model"]["offset"].meta.path_name
    data = with_records(torch_saved(linear_program()), {f"data/weights/{name}": b""})
    with pytest.raises(DeserializeError, match="expected 12 bytes, found an empty payload"):
        pt2wire.load(io.BytesIO(data))


def test_sharing_that_is_no_longer_true_is_refused() -> None:
    archive = pt2wire.read(io.BytesIO(saved(holding(_shared))))
    archive.constants["model"]["hidden"].data = memoryview(bytes(48))
    with pytest.raises(
        SerializeError,
        match="expected the bytes of 'weight', whose storage it is said to share, found others",
    ):
        pt2wire.write(archive, io.BytesIO())


def test_big_payloads_are_views_not_copies() -> None:
    big = torch.zeros(1 << 16)
    assert storage_bytes(big.untyped_storage()).nbytes == 4 << 16
    view = storage_bytes(big.untyped_storage())
    big[0] = 1.0
    assert bytes(view[:4]) == b"\x00\x00\x80\x3f"
    assert math.isclose(torch.frombuffer(view, dtype=torch.float32)[0].item(), 1.0)
