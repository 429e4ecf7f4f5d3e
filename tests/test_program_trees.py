"""Programs as trees, without archives in between."""

from __future__ import annotations

import io

import pt2wire
import pytest
import torch
from pt2wire import DeserializeError, UnsafeArtifactError

from .helpers.archives import assert_computes_the_same, linear_archive, linear_program, saved
from .helpers.models import MODELS


def test_a_tree_and_its_tensors_make_the_program_again() -> None:
    ep = linear_program()
    tree = pt2wire.to_tree(ep)
    assert_computes_the_same(pt2wire.from_tree(tree, ep.state_dict, ep.constants))
    assert pt2wire.from_json(pt2wire.to_json(tree)) == tree
    assert pt2wire.from_json(pt2wire.to_json(tree).decode()) == tree
    assert pt2wire.from_thrift(pt2wire.to_thrift(tree)) == tree


@pytest.mark.parametrize(
    ("bias", "message"),
    [
        (torch.ones(5), r"expected 'linear.bias' of sizes \[3\], torch.float32 and .*, found sizes \[5\]"),
        (torch.ones(3).double(), r"expected 'linear.bias' of .*torch.float32.*, found .*torch.float64"),
        (torch.ones(3).to_sparse(), r"expected 'linear.bias' of .*strided, found .*sparse_coo"),
    ],
)
def test_weights_that_are_not_like_those_of_the_tree_make_no_program(
    bias: torch.Tensor, message: str
) -> None:
    ep = linear_program()
    with pytest.raises(DeserializeError, match=message) as caught:
        pt2wire.from_tree(
            pt2wire.to_tree(ep), {**ep.state_dict, "linear.bias": torch.nn.Parameter(bias)}, ep.constants
        )
    assert caught.value.path == "graph_module.signature.input_specs[1]"


def test_weights_that_the_tree_does_not_name_are_kept_as_torch_keeps_them() -> None:
    ep = linear_program()
    weights = {**ep.state_dict, "tied": ep.state_dict["linear.weight"]}
    made, theirs = pt2wire.from_tree(pt2wire.to_tree(ep), weights, ep.constants), io.BytesIO()
    torch.export.save(made, theirs)
    ours = pt2wire.load(io.BytesIO(saved(made)))
    for found in (made, ours, torch.export.load(theirs)):
        assert found.state_dict.keys() == weights.keys()
        assert torch.equal(found.state_dict["tied"], found.state_dict["linear.weight"])


def test_a_tree_that_is_not_sound_makes_no_program() -> None:
    ep = linear_program()
    tree = pt2wire.to_tree(ep)
    tree.graph_module.graph.nodes[0].target = "os.system"
    with pytest.raises(DeserializeError):
        pt2wire.from_tree(tree, ep.state_dict, ep.constants)


def test_a_value_that_does_not_fit_its_field_is_named() -> None:
    tree = pt2wire.to_tree(linear_program())
    tree.graph_module.graph.nodes[0].target = 3  # type: ignore[assignment]
    for write in (pt2wire.to_json, pt2wire.to_thrift):
        with pytest.raises(pt2wire.SerializeError) as caught:
            write(tree)
        assert caught.value.path == "graph_module.graph.nodes[0].target"


def test_payloads_of_an_archive_are_weights_and_constants() -> None:
    archive = pt2wire.read(io.BytesIO(linear_archive()))
    weights, constants = archive.weights["model"], archive.constants["model"]
    found = pt2wire.from_tree(archive.programs["model"], weights, constants)
    assert_computes_the_same(found)
    own = torch.nn.Parameter(torch.zeros(3, 4))
    mixed = pt2wire.from_tree(archive.programs["model"], {**weights, "linear.weight": own}, constants)
    assert mixed.state_dict["linear.weight"] is own
    assert torch.equal(mixed.state_dict["offset"], found.state_dict["offset"])


def test_payloads_that_share_memory_become_tensors_that_do() -> None:
    ep = MODELS["weights_tied"].program()
    archive = pt2wire.read(io.BytesIO(saved(ep)))
    (tree,) = archive.programs.values()
    found = pt2wire.from_tree(tree, archive.weights["model"], archive.constants["model"])
    memory = {name: tensor.untyped_storage().data_ptr() for name, tensor in ep.state_dict.items()}
    made = {name: tensor.untyped_storage().data_ptr() for name, tensor in found.state_dict.items()}
    assert len(set(memory.values())) == len(set(made.values())) < len(made)


def test_a_payload_that_is_a_pickle_stays_closed() -> None:
    archive = pt2wire.read(io.BytesIO(linear_archive()))
    weights = archive.weights["model"]
    weights["linear.bias"].meta.use_pickle = True
    with pytest.raises(UnsafeArtifactError, match=r"^weights\.linear\.bias: "):
        pt2wire.from_tree(archive.programs["model"], weights, archive.constants["model"])
