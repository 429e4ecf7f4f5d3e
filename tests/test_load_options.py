"""Options of `load` and `load_all`, one by one: each does in both what it is for."""

from __future__ import annotations

import copy
import inspect
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire import DeserializeError, UnsafeArtifactError
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.testing._internal.two_tensor import TwoTensor

from .helpers.archives import linear_archive, linear_program, saved
from .helpers.exporting import exported

Load = Callable[..., ExportedProgram]
LOADERS: dict[str, Load] = {
    "load": pt2wire.load,
    "load_all": lambda f, **options: pt2wire.load_all(f, **options)["model"],
}


@pytest.fixture(params=LOADERS.values(), ids=LOADERS)
def load(request: pytest.FixtureRequest) -> Load:
    return request.param  # type: ignore[no-any-return]


def _damaged() -> bytes:
    bias = linear_program().state_dict["linear.bias"].detach().numpy().tobytes()
    return linear_archive().replace(bias, bytes(len(bias)))


def _pair() -> bytes:
    weight = torch.nn.Parameter(TwoTensor(torch.ones(2), torch.ones(2)))
    return saved(exported(lambda self, x: x + self.weight, torch.ones(2), attributes={"weight": weight}))


def _printing() -> bytes:
    class Printing(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            torch._higher_order_ops.print("{x}", x=x)
            return x + 1

    return saved(torch.export.export(Printing(), (torch.ones(1),)))


def _fake() -> bytes:
    with FakeTensorMode(allow_non_fake_inputs=True):
        ep = torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
    with pytest.warns(UserWarning, match="saved without the data of 2 fake weights"):
        return saved(ep)


def _changed() -> bytes:
    ep = linear_program()
    changed = copy.copy(ep)
    bias = torch.nn.Parameter(ep.state_dict["linear.bias"].detach().double())
    changed._state_dict = {**ep.state_dict, "linear.bias": bias}
    with pytest.warns(UserWarning, match="of dtype FLOAT as in the graph, found DOUBLE"):
        return saved(changed)


#: What lets a file through: the file, the option, the error without it.
PERMITTING: dict[str, tuple[Callable[[], bytes], Any, type[Exception], str]] = {
    "verify": (_damaged, False, DeserializeError, "expected bytes with CRC"),
    "types": (_pair, [TwoTensor], UnsafeArtifactError, r"Pass types=\[TwoTensor\]"),
    "allow_pickle": (_pair, True, UnsafeArtifactError, r"Pass types=\[TwoTensor\]"),
    "allow_operators": (_printing, ["higher_order.print"], UnsafeArtifactError, r"allow_operators=\['higher"),
    "missing_weights": (_fake, "meta", DeserializeError, "missing_weights='meta'"),
    "changed_weights": (_changed, True, DeserializeError, "changed_weights=True"),
}

#: What keeps a file out: the file, the option, the error with it.
DEMANDING: dict[str, tuple[Callable[[], bytes], Any, str]] = {
    "form": (
        lambda: saved(linear_program(), formats=("thrift",)),
        "json",
        "expected program 'model' as json",
    ),
    "limits": (linear_archive, pt2wire.Limits(archive_entries=3), "expected at most 3 records"),
    "expected_opset_version": (
        lambda: saved(linear_program(), opset_version={"mine": 3}),
        {"mine": 4},
        "expected version 4 of the operators 'mine', found 3",
    ),
}

#: What changes where the program lies, by the tests below.
PLACING = {"mmap", "device"}

#: What only `load` has, tested elsewhere: it is of one program, or of the archive.
OF_ONE = {"name", "extra_files", "expected_digest"}


@pytest.mark.parametrize("option", PERMITTING)
def test_it_lets_through_what_is_refused_by_default(option: str, load: Load, tmp_path: Path) -> None:
    make, value, error, message = PERMITTING[option]
    path = tmp_path / "m.pt2"
    path.write_bytes(make())
    with pytest.raises(error, match=message):
        load(path)
    assert load(path, **{option: value}).graph.nodes


@pytest.mark.parametrize("option", DEMANDING)
def test_it_refuses_what_is_let_through_by_default(option: str, load: Load, tmp_path: Path) -> None:
    make, value, message = DEMANDING[option]
    path = tmp_path / "m.pt2"
    path.write_bytes(make())
    assert load(path).graph.nodes
    with pytest.raises(DeserializeError, match=message):
        load(path, **{option: value})


def test_weights_are_a_map_of_the_file_or_a_copy(load: Load, tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    path.write_bytes(linear_archive())
    mapped, copied = load(path), load(path, mmap=False)
    assert _is_mapped(path, mapped.state_dict["linear.weight"])
    assert not _is_mapped(path, copied.state_dict["linear.weight"])


def test_a_file_that_is_not_to_be_mapped_never_is(load: Load, tmp_path: Path, monkeypatch: Any) -> None:
    """Not even while it is loaded: another process may write it anew."""
    path = tmp_path / "m.pt2"
    path.write_bytes(b"header" + linear_archive())
    monkeypatch.setattr("pt2wire.archive.sources.mmap.mmap", None)
    with open(path, "rb") as file:
        file.seek(6)
        assert load(file, mmap=False).state_dict.keys() == {"linear.weight", "linear.bias", "offset"}
        assert file.tell() == 6
        with pytest.raises(TypeError):
            load(file)


def _is_mapped(path: Path, tensor: torch.Tensor) -> bool:
    ranges = [
        [int(end, 16) for end in line.split()[0].split("-")]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if line.endswith(str(path))
    ]
    return any(begin <= tensor.data_ptr() < end for begin, end in ranges)


def test_a_program_is_put_on_a_device(load: Load, tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    path.write_bytes(linear_archive())
    assert not load(path).state_dict["linear.weight"].is_meta
    assert load(path, device="meta").state_dict["linear.weight"].is_meta


def test_every_option_is_tried() -> None:
    tried = {*PERMITTING, *DEMANDING, *PLACING}
    assert set(inspect.signature(pt2wire.load_all).parameters) == {"f", *tried}
    assert set(inspect.signature(pt2wire.load).parameters) == {"f", *tried, *OF_ONE}


@pytest.mark.parametrize("flag", ["mmap", "verify"])
@pytest.mark.parametrize("value", [None, "no", torch.ones(2)], ids=str)
def test_flags_are_true_or_false(flag: str, value: Any) -> None:
    flags = {flag: value}
    for load in (pt2wire.load, pt2wire.load_all):
        with pytest.raises(TypeError, match=f"expected {flag} as True or False, found"):
            load(io.BytesIO(linear_archive()), **flags)
