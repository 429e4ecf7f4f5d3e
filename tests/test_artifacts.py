"""Programs as PyTorch's four byte strings, with `serialize` and `deserialize`."""

from __future__ import annotations

import collections
import copy
import io
import pickle
from pathlib import Path
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire import DeserializeError, SerializedArtifact, SerializeError, UnsafeArtifactError
from torch._export.serde import serialize as torch_serialize
from torch.testing._internal.two_tensor import TwoTensor

from .helpers.archives import Marker, assert_computes_the_same, linear_program, pickled


def test_artifacts_go_both_ways() -> None:
    ours = pt2wire.serialize(linear_program())
    its_own = torch_serialize.serialize(linear_program())
    for artifact in (ours, its_own):
        assert_computes_the_same(pt2wire.deserialize(artifact))
    assert_computes_the_same(
        torch_serialize.deserialize(
            torch_serialize.SerializedArtifact(
                ours.exported_program, ours.state_dict, ours.constants, ours.example_inputs
            )
        )
    )


class _Sharing(torch.nn.Module):
    """A non-persistent buffer, which is a constant, shares memory with a weight, and both are changed."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("whole", torch.ones(3), persistent=False)
        self.register_buffer("end", self.whole[1:])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.whole.mul_(2)
        self.end.add_(1)
        return x + self.whole


def test_constants_share_memory_with_weights_in_artifacts_too() -> None:
    ours = pt2wire.serialize(torch.export.export(_Sharing(), (torch.zeros(3),)))
    fields = (ours.exported_program, ours.state_dict, ours.constants, ours.example_inputs)
    rebuilt = torch_serialize.SerializedArtifact(*fields)
    for artifact in (ours, rebuilt):
        assert pt2wire.deserialize(artifact).module()(torch.zeros(3)).tolist() == [2, 3, 3]
    torch_serialize.deserialize(rebuilt)  # PyTorch reads it, and lets them be apart


@pytest.mark.parametrize(
    ("shared", "message"),
    [
        (["whole"], "expected the names of tensors, found"),
        ({"whole": []}, "expected the names of tensors, found"),
        ({"whole": "nothing"}, "expected a tensor that shares the memory of another, found 'whole'"),
        ({"nothing": "end"}, "expected a tensor that shares the memory of another, found 'nothing'"),
        ({"whole": "end"}, "expected the bytes of 'end', whose storage it is said to share, found others"),
    ],
)
def test_constants_that_cannot_share_memory_as_said_are_refused(shared: Any, message: str) -> None:
    artifact = torch_serialize.serialize(torch.export.export(_Sharing(), (torch.zeros(3),)))
    constants = collections.OrderedDict(whole=torch.zeros(3))
    constants._pt2wire_shared = shared  # type: ignore[attr-defined]
    artifact.constants = pickled(constants)
    with pytest.raises(DeserializeError, match=message):
        pt2wire.deserialize(artifact)


def test_indices_in_memory_that_a_program_changes_are_refused() -> None:
    indices = torch.tensor([[0, 1]])
    tensors = {"indices": indices, "sparse": torch.sparse_coo_tensor(indices, torch.ones(2), (4,))}

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        self.indices.add_(2**40)
        return x + self.sparse.to_dense()

    model = torch.nn.Module()
    for name, tensor in tensors.items():
        model.register_buffer(name, tensor.clone())
    model.__class__ = type("Model", (torch.nn.Module,), {"forward": forward})
    with pytest.warns(UserWarning, match="weights of layout torch.sparse_coo"):
        tree = pt2wire.to_tree(torch.export.export(model, (torch.ones(4),)))
    tree.beyond = None
    text = pt2wire.to_json(tree)
    nothing = pickled({})
    fields = (pickled(tensors), nothing, nothing)
    with pytest.raises(UnsafeArtifactError, match="indices of a sparse tensor share memory with numbers"):
        pt2wire.deserialize(torch_serialize.SerializedArtifact(text, *fields))


def test_what_cannot_be_pickled_is_refused_by_name() -> None:
    module = torch.nn.Module()
    halves = torch.ones(4).chunk(2)
    module.weight = torch.nn.Parameter(
        TwoTensor(halves[1], halves[1])
    )  # torch.save takes none with an offset
    module.__class__ = type("Model", (torch.nn.Module,), {"forward": lambda self, x: x + self.weight})
    ep = torch.export.export(module, (torch.ones(2),))
    with pytest.raises(SerializeError, match=r"^state_dict: cannot pickle what the program holds \(Runtime"):
        pt2wire.serialize(ep)
    with pytest.raises(SerializeError, match=r"^weight: cannot pickle a tensor of the class TwoTensor"):
        pt2wire.save(ep, io.BytesIO())


def test_weights_of_classes_that_are_handed_in_are_opened() -> None:
    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(TwoTensor(torch.ones(2), torch.ones(2)))
    module.__class__ = type("Model", (torch.nn.Module,), {"forward": lambda self, x: x + self.weight})
    ep = torch.export.export(module, (torch.ones(2),))
    rebuilt = copy.copy(pt2wire.serialize(ep))
    with pytest.raises(UnsafeArtifactError, match="TwoTensor"):
        pt2wire.deserialize(rebuilt)
    assert isinstance(pt2wire.deserialize(rebuilt, types=[TwoTensor]).state_dict["weight"], TwoTensor)


def test_pickles_of_others_are_never_opened(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    pickle = pickled({"a": Marker(marker)})
    ours = pt2wire.serialize(linear_program())
    for field in ("state_dict", "constants"):
        hostile = torch_serialize.serialize(linear_program())
        setattr(hostile, field, pickle)
        with pytest.raises(UnsafeArtifactError, match=f"{field}: cannot be opened without running code"):
            pt2wire.deserialize(hostile)
        # The mark of an artifact that was made here does not cover bytes that were put into it.
        changed = pt2wire.serialize(linear_program())
        setattr(changed, field, pickle)
        with pytest.raises(UnsafeArtifactError):
            pt2wire.deserialize(changed)
    hostile = torch_serialize.serialize(linear_program())
    hostile.example_inputs = pickle
    with pytest.warns(UserWarning, match="example inputs are replaced by stand-ins"):
        pt2wire.deserialize(hostile)
    assert not marker.exists()
    assert ours.is_made_here()


@pytest.mark.parametrize("cut", [None, 0, 100, -40], ids=["garbage", "nothing", "beginning", "no end"])
@pytest.mark.parametrize("trusted", [False, True])
def test_a_damaged_pickle_is_no_unsafe_one(cut: int | None, trusted: bool) -> None:
    """Nothing tells that it would run code, so no advice to trust its author."""
    artifact = pt2wire.serialize(linear_program())
    damaged = b"garbage" if cut is None else artifact.state_dict[:cut] or b"\0"
    artifact.state_dict = damaged
    if trusted:
        artifact._made_here = (damaged, artifact.constants, artifact.example_inputs)
    with pytest.raises(
        DeserializeError, match=r"^state_dict: expected what torch.save writes, found other or damaged bytes"
    ) as caught:
        pt2wire.deserialize(artifact)
    assert not isinstance(caught.value, UnsafeArtifactError)
    assert "weights_only" not in str(caught.value)


def test_the_mark_of_an_artifact_is_lost_when_it_is_pickled_copied_or_rebuilt() -> None:
    ours = pt2wire.serialize(linear_program())
    rebuilt = SerializedArtifact(ours.exported_program, ours.state_dict, ours.constants, ours.example_inputs)
    assert ours.is_made_here()
    for artifact in (pickle.loads(pickle.dumps(ours)), copy.copy(ours), copy.deepcopy(ours), rebuilt):
        assert artifact == ours
        assert not artifact.is_made_here()
        assert_computes_the_same(pt2wire.deserialize(artifact))


def test_artifacts_with_weights_of_other_sizes_are_refused() -> None:
    artifact = pt2wire.serialize(linear_program())
    weight = torch.nn.Parameter(torch.zeros(7))
    artifact.state_dict = pickled({**linear_program().state_dict, "linear.weight": weight})
    with pytest.raises(
        pt2wire.DeserializeError, match=r"weight' of sizes .*, found sizes \[7\], torch.float32"
    ):
        pt2wire.deserialize(artifact)


def test_damaged_artifacts_are_refused() -> None:
    ours = pt2wire.serialize(linear_program())
    with pytest.raises(DeserializeError, match="program:"):
        pt2wire.deserialize(SerializedArtifact(b"{}", ours.state_dict, ours.constants, b""))
    with pytest.raises(DeserializeError, match="state_dict"):
        pt2wire.deserialize(SerializedArtifact(ours.exported_program, b"x", ours.constants, b""))
    with pytest.raises(DeserializeError, match="state_dict: expected a dict of tensors, found list"):
        pt2wire.deserialize(SerializedArtifact(ours.exported_program, pickled([1]), ours.constants, b""))
