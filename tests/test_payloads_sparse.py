"""Sparse weights in archives: shared, changed, moved to other devices, and lied about."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire import DeserializeError, SerializeError
from pt2wire.generated import Layout, PayloadMeta, SymInt
from torch import nn
from torch.export import ExportedProgram

from .helpers.programs import assert_same_program

LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "coo": lambda dense: dense.to_sparse(),
    "csr": lambda dense: dense.to_sparse_csr(),
    "csc": lambda dense: dense.to_sparse_csc(),
    "bsr": lambda dense: dense.to_sparse_bsr((1, 2)),
    "bsc": lambda dense: dense.to_sparse_bsc((2, 1)),
}


class Sparse(nn.Module):
    def __init__(self, to_sparse: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.weight = nn.Parameter(to_sparse(torch.eye(4)), requires_grad=False)
        self.tied = self.weight
        self.register_buffer("hidden", to_sparse(torch.ones(4, 4)), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.weight.to_dense() + self.tied.to_dense() + self.hidden.to_dense()


def program(layout: str = "csr") -> ExportedProgram:
    return torch.export.export(Sparse(LAYOUTS[layout]), (torch.ones(4, 4),))


def written(ep: ExportedProgram, **options: Any) -> io.BytesIO:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that PyTorch will refuse the file is tested elsewhere
        pt2wire.save(ep, buffer, **options)
    return buffer


def values_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor._values() if tensor.layout is torch.sparse_coo else tensor.values()


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_change_of_one_is_seen_in_the_other(layout: str, mmap: bool) -> None:
    loaded = pt2wire.load(written(program(layout)), mmap=mmap)
    weights = loaded.state_dict
    assert weights["weight"] is weights["tied"]
    values_of(weights["weight"]).fill_(3.0)
    changed = weights["tied"].to_dense()
    assert changed.diagonal().tolist() == [3.0] * 4
    assert torch.equal(loaded.module()(torch.zeros(4, 4)), changed * 2 + 1)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_it_needs_a_gradient_as_before(layout: str) -> None:
    ep = program(layout)
    ep.state_dict["weight"].requires_grad_(True)
    found = pt2wire.load(written(ep)).state_dict["weight"]
    assert isinstance(found, nn.Parameter)
    assert found.requires_grad and found.is_leaf


def test_archives_are_read_changed_and_written() -> None:
    file = written(program())
    archive = pt2wire.read(file)
    payload = archive.weights["model"]["weight"]
    assert list(payload.inner) == ["crow_indices", "col_indices", "values"]
    assert bytes(payload.inner["values"].data) == torch.ones(4).numpy().tobytes()
    copy = io.BytesIO()
    pt2wire.write(archive, copy)
    assert_same_program(pt2wire.load(file), pt2wire.load(copy))
    for tied in ("weight", "tied"):
        values = archive.weights["model"][tied].inner["values"]
        values.data = memoryview((torch.ones(4) * 7).numpy().tobytes())
    pt2wire.write(archive, copy := io.BytesIO())
    assert torch.equal(pt2wire.load(copy).state_dict["weight"].to_dense(), torch.eye(4) * 7)


def test_the_digest_covers_the_parts() -> None:
    def digest(ep: ExportedProgram) -> str:
        archive = pt2wire.read(written(ep))
        return pt2wire.digest(archive.programs["model"], archive.weights["model"], archive.constants["model"])

    one, other = program(), program()
    assert digest(one) == digest(other)
    values_of(other.constants["hidden"])[3] = 0.5
    assert digest(one) != digest(other)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_they_follow_to_another_device(layout: str) -> None:
    loaded = pt2wire.load(written(program(layout)), device="meta")
    assert loaded.state_dict["weight"].is_meta
    assert loaded.state_dict["weight"].layout is program(layout).state_dict["weight"].layout
    assert values_of(loaded.constants["hidden"]).is_meta


class Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.to_dense() * 2


def test_sizes_may_be_symbolic() -> None:
    rows = torch.export.Dim("rows")
    ep = torch.export.export(Doubled(), (torch.eye(4, 3).to_sparse(),), dynamic_shapes=({0: rows},))
    loaded = pt2wire.load(written(ep))
    assert_same_program(ep, loaded)
    assert isinstance(next(iter(loaded.graph.nodes)).meta["val"].shape[0], torch.SymInt)
    assert loaded.module()(torch.eye(7, 3).to_sparse()).shape == (7, 3)


def test_json_alone_is_refused() -> None:
    with pytest.raises(SerializeError, match=r"tensors of layout torch\.sparse_csr"):
        written(program(), formats=("json",))
    assert "models/model.json" not in pt2wire.read(written(program())).records


def test_validate_finds_nothing(tmp_path: Any) -> None:
    path = tmp_path / "m.pt2"
    path.write_bytes(written(program()).getvalue())
    assert pt2wire.validate(path) == []


# What lies.


def _without(meta: PayloadMeta, name: str) -> None:
    del meta.inner[name]


def _sized(meta: PayloadMeta, size: int) -> None:
    meta.tensor_meta.sizes = [SymInt.create(as_int=size)] * 2


def _pickled(meta: PayloadMeta) -> None:
    meta.inner["values"].use_pickle = True


def _compressed(meta: PayloadMeta) -> None:
    meta.tensor_meta.layout = Layout.SparseCsc


def _another_part(meta: PayloadMeta) -> None:
    meta.inner["values"].tensor_meta.sizes = [SymInt.create(as_int=3)]


LIES: dict[str, tuple[Callable[[PayloadMeta], None], str]] = {
    "a part is missing": (lambda meta: _without(meta, "values"), "expected crow_indices, col_indices"),
    "no parts": (lambda meta: meta.inner.clear(), "expected crow_indices, col_indices, values"),
    "another size": (lambda meta: _sized(meta, 5), "of sizes [4, 4] as in the graph, found [5, 5]"),
    "a negative size": (lambda meta: _sized(meta, -4), "expected numbers from 0 up"),
    "another layout": (_compressed, "expected ccol_indices, row_indices, values"),
    "a pickle inside": (_pickled, "expected the bytes of a tensor, found the pickle"),
    "another part": (_another_part, "expected the part that the whole names, found another"),
}


@pytest.mark.parametrize(("change", "message"), LIES.values(), ids=LIES)
def test_metadata_that_lie_are_found(change: Callable[[PayloadMeta], None], message: str) -> None:
    archive = pt2wire.read(written(program()))
    configs = [
        pt2wire.generated.PayloadConfig({name: payload.meta for name, payload in payloads["model"].items()})
        for payloads in (archive.weights, archive.constants)
    ]
    change(configs[0].config["weight"])
    from pt2wire.validation import validate_payloads

    found = validate_payloads(archive.programs["model"], *configs)
    assert any(message in finding.message for finding in found), found


@pytest.mark.parametrize(
    ("layout", "name", "content", "message"),
    [
        ("csr", "col_indices", [0, 1, 2, 99], "cannot make this tensor"),
        ("csr", "crow_indices", [0, 1, 2, 3, 99], "cannot make this tensor"),
        ("csc", "row_indices", [0, -1, 2, 3], "cannot make this tensor"),
        ("coo", "indices", [0, 1, 2, 99, 0, 1, 2, 3], "size is 4 but found index 99"),
        ("coo", "indices", [0, 0, 2, 3, 0, 0, 2, 3], "uncoalesced"),
    ],
)
def test_indices_that_lie_are_refused(layout: str, name: str, content: list[int], message: str) -> None:
    archive = pt2wire.read(written(program(layout)))
    for tied in ("weight", "tied"):
        part = archive.weights["model"][tied].inner[name]
        lie = torch.tensor(content).numpy().tobytes()
        part.data = memoryview(bytes(part.data)[: -len(lie)] + lie)
    file = io.BytesIO()
    pt2wire.write(archive, file)
    with pytest.raises(DeserializeError, match=message) as caught:
        pt2wire.load(file)
    assert caught.value.path.endswith("weights.weight")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_sparse_buffer_that_requires_grad_is_what_gets_it(layout: str) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("matrix", LAYOUTS[layout](torch.eye(4)).requires_grad_())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.matrix.to_dense()

    file = io.BytesIO()
    pt2wire.save(torch.export.export(Model(), (torch.ones(4, 4),)), file)
    loaded = pt2wire.load(file)
    matrix = loaded.state_dict["matrix"]
    assert matrix.is_leaf and matrix.requires_grad
    if layout in ("coo", "csr"):  # PyTorch gathers no gradients of the others
        loaded.module()(torch.ones(4, 4)).sum().backward()
        assert matrix.grad is not None
    assert not matrix.requires_grad_(False).requires_grad
