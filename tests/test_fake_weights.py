"""Programs exported with fake weights: saved without data, loaded as stand-ins if that is wanted."""

from __future__ import annotations

import io
import json
import warnings
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire import DeserializeError
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram

from .helpers.archives import record, saved, torch_saved
from .helpers.programs import assert_no_differences, describe_program, differences


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.tied = self.linear.weight
        self.register_buffer("turned", self.linear.weight.data.t()[1:])
        self.register_buffer("hidden", torch.ones(3), persistent=False)
        self.constant = torch.ones(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x + self.hidden) + self.tied.sum() + self.constant + self.turned.sum()


@pytest.fixture(scope="module")
def program() -> ExportedProgram:
    with FakeTensorMode(allow_non_fake_inputs=True):
        return torch.export.export(Model(), (torch.ones(2, 3),))


def load(data: bytes, **options: Any) -> ExportedProgram:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # example inputs are fake, too
        return pt2wire.load(io.BytesIO(data), **options)


def save(ep: ExportedProgram) -> bytes:
    with pytest.warns(UserWarning, match=r"without the data of 6 fake weights, such as 'tied'"):
        return saved(ep)


def test_stand_ins_are_what_the_weights_were_but_for_data(program: ExportedProgram) -> None:
    loaded = load(save(program), missing_weights="meta")
    for tensors, originals in (
        (loaded.state_dict, program.state_dict),
        (loaded.constants, program.constants),
    ):
        assert list(tensors) == list(originals)
        for name, fake in originals.items():
            found = tensors[name]
            assert found.is_meta
            assert (found.shape, found.stride(), found.dtype) == (fake.shape, fake.stride(), fake.dtype)
            assert found.storage_offset() == fake.storage_offset()
            assert found.requires_grad == fake.requires_grad
            assert isinstance(found, nn.Parameter) == isinstance(fake, nn.Parameter)
    weights = loaded.state_dict
    assert weights["linear.weight"] is weights["tied"]
    storages = {weights[name].untyped_storage()._cdata for name in ("linear.weight", "turned")}
    assert len(storages) == 1


def test_an_archive_without_the_data_is_written_back(program: ExportedProgram) -> None:
    again = io.BytesIO()
    pt2wire.write(pt2wire.read(io.BytesIO(save(program))), again)
    assert again.getvalue() == save(program)


def test_the_graph_is_that_of_the_program(program: ExportedProgram) -> None:
    found = differences(
        describe_program(program), describe_program(load(save(program), missing_weights="meta"))
    )
    assert_no_differences([each for each in found if not each.path.startswith(("weights", "example_inputs"))])


def test_the_configs_are_pytorchs_with_a_mark(program: ExportedProgram) -> None:
    for kind in ("weights", "constants"):
        name = f"data/{kind}/model_{kind}_config.json"
        ours, its_own = (
            json.loads(record(data, name))["config"] for data in (save(program), torch_saved(program))
        )
        for payload in ours.values():
            assert payload.pop("absent") is True
            payload.pop("alias_of", None)
        for payload in (*ours.values(), *its_own.values()):
            del payload["path_name"]  # PyTorch takes all fake weights for views of one storage
        assert ours == its_own


def test_a_file_of_pytorch_is_read_likewise(program: ExportedProgram) -> None:
    data = torch_saved(program)
    with pytest.raises(DeserializeError, match="bytes, found an empty payload, as of a fake weight"):
        load(data)
    assert load(data, missing_weights="meta").state_dict["linear.bias"].is_meta


def test_by_default_it_is_refused(program: ExportedProgram) -> None:
    data = save(program)
    with pytest.raises(
        DeserializeError, match="expected the bytes of a tensor, found one saved without"
    ) as caught:
        load(data)
    assert "missing_weights='meta'" in caught.value.hint
    with pytest.raises(DeserializeError, match="saved without them"):
        pt2wire.load_all(io.BytesIO(data))
    loaded = pt2wire.load_all(io.BytesIO(data), missing_weights="meta")["model"]
    assert loaded.state_dict["linear.weight"].is_meta


def test_another_word_is_an_error(program: ExportedProgram) -> None:
    with pytest.raises(ValueError, match="expected missing_weights 'error' or 'meta', found 'zeros'"):
        load(save(program), missing_weights="zeros")
