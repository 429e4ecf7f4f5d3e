"""Digests: one for all spellings of a program, another one for any real change."""

from __future__ import annotations

import hashlib
import io
import json
import random
from pathlib import Path

import pt2wire
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pt2wire.archives import Archive
from pt2wire.errors import DeserializeError
from pt2wire.generated import types
from torch import nn

from .helpers.models import MODELS
from .helpers.oracles import grouped, trips_of
from .helpers.planting import change, leaves
from .helpers.scrambling import scrambled
from .helpers.synthetic import deep_program

# Different enough to hold most of what a program can hold.
SEEDS = st.integers(0, 10**9)
CHOSEN = (
    "cond_nested",
    "batch_norm_in_training",
    "symbolic_ints_in_arguments",
    "constant_inputs",
    "namedtuples",
)
# PyTorch's files do not say that a constant lies in the memory of a weight.
SHARING_LOST = {"weights_aliased", "weights_sharing_bytes_between_dtypes"}


def tree_of(name: str) -> types.ExportedProgram:
    return pt2wire.from_json(trips_of(name).our_json)


def digest_of(archive: Archive, name: str = "model") -> str:
    return pt2wire.digest(archive.programs[name], archive.weights[name], archive.constants[name])


def linear(value: float = 0.5) -> bytes:
    model = nn.Linear(4, 3)
    with torch.no_grad():
        model.weight.fill_(value)
        model.bias.fill_(1.0)
    file = io.BytesIO()
    pt2wire.save(torch.export.export(model, (torch.ones(2, 4),)), file)
    return file.getvalue()


def test_is_the_sha_256_of_the_canonical_thrift_bytes() -> None:
    tree = tree_of("cond")
    expected = hashlib.sha256(pt2wire.to_thrift(pt2wire.canonicalize(tree))).hexdigest()
    assert pt2wire.digest(tree) == expected


@pytest.mark.parametrize("name", grouped(CHOSEN))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=SEEDS)
def test_every_spelling_has_one_digest(name: str, seed: int) -> None:
    tree = tree_of(name)
    assert pt2wire.digest(scrambled(tree, random.Random(seed))) == pt2wire.digest(tree)


@pytest.mark.parametrize("name", grouped(CHOSEN))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), seed=SEEDS)
def test_any_change_changes_the_digest(name: str, data: st.DataObject, seed: int) -> None:
    tree = tree_of(name)
    plain = json.loads(pt2wire.to_json(tree))
    places = list(leaves(plain))
    change(*places[data.draw(st.integers(0, len(places) - 1))])
    try:
        other = pt2wire.from_json(json.dumps(plain))
    except DeserializeError:  # such as another major version
        assume(False)
    assert pt2wire.digest(scrambled(other, random.Random(seed))) != pt2wire.digest(tree)
    assert pt2wire.diff(tree, scrambled(other, random.Random(seed))) != []


@pytest.mark.parametrize("name", grouped(sorted(MODELS)))
def test_files_of_pytorch_and_ours_have_one_digest(name: str) -> None:
    trips = trips_of(name)
    if name == "weights_sharing_bytes_between_dtypes":
        pytest.skip("PyTorch cannot save it")
    theirs, ours = (pt2wire.read(io.BytesIO(file)) for file in (trips.pytorch_file, trips.our_file))
    tree = ours.programs["model"]
    # PyTorch's file has lost tuples among arguments, their order and so on: it holds another program.
    says_more = pt2wire.canonicalize(tree).writer is not None
    assert (pt2wire.digest(theirs.programs["model"]) == pt2wire.digest(tree)) is not says_more
    assert (digest_of(theirs) == digest_of(ours)) is (name not in SHARING_LOST and not says_more)


@pytest.mark.parametrize("name", ["guard_on_remainder", "dim_derived_by_factor"])
def test_loading_and_saving_again_keeps_the_digest(name: str) -> None:
    tree = pt2wire.to_tree(MODELS[name].program())
    assert tree.guards_code
    tree.guards_code = [f"{guard} " for guard in tree.guards_code]
    again = pt2wire.to_tree(pt2wire.from_tree(tree, {}, {}))
    assert again.guards_code != tree.guards_code  # loading spells them anew
    assert pt2wire.digest(again) == pt2wire.digest(tree)
    assert pt2wire.diff(tree, again) == []


def test_one_byte_of_a_weight_changes_the_digest_with_weights_only() -> None:
    one, other = (pt2wire.read(io.BytesIO(linear(value))) for value in (0.5, 0.25))
    assert pt2wire.digest(one.programs["model"]) == pt2wire.digest(other.programs["model"])
    assert digest_of(one) != digest_of(other)


def test_metadata_of_weights_counts_and_names_of_records_do_not() -> None:
    archive = pt2wire.read(io.BytesIO(linear()))
    before = digest_of(archive)
    meta = archive.weights["model"]["weight"].meta
    meta.path_name = "another"
    assert digest_of(archive) == before
    assert meta.tensor_meta is not None
    meta.tensor_meta.strides.reverse()
    assert digest_of(archive) != before


def test_weights_in_one_memory_are_not_two_equal_weights() -> None:
    class Two(nn.Module):
        def __init__(self, shared: bool) -> None:
            super().__init__()
            self.one = nn.Parameter(torch.ones(3))
            self.other = self.one if shared else nn.Parameter(torch.ones(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.one + self.other

    digests = []
    for shared in (True, False):
        file = io.BytesIO()
        pt2wire.save(torch.export.export(Two(shared), (torch.ones(3),)), file)
        archive = pt2wire.read(file)
        digests.append(pt2wire.digest(tree_of("static"), archive.weights["model"]))
    assert digests[0] != digests[1]


class _Overlapping(nn.Module):
    """Two buffers, in one memory or in two; one is changed, then the other is read."""

    def __init__(self, shared: bool) -> None:
        super().__init__()
        base = torch.arange(4.0)
        self.register_buffer("one", base[:3])
        self.register_buffer("two", base[1:] if shared else base[1:].clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.one.add_(1)
        return x + self.two * 2


@pytest.mark.parametrize("shared", [True, False])
def test_the_order_of_changes_counts_where_weights_share_memory(shared: bool) -> None:
    """A tree alone does not say which do: only a digest with weights tells."""
    file = io.BytesIO()
    pt2wire.save(torch.export.export(_Overlapping(shared), (torch.ones(3),)), file)
    archive = pt2wire.read(file)
    tree, weights, constants = (
        part["model"] for part in (archive.programs, archive.weights, archive.constants)
    )
    nodes = tree.graph_module.graph.nodes
    assert [node.target for node in nodes[:2]] == ["torch.ops.aten.add_.Tensor", "torch.ops.aten.mul.Tensor"]
    before = pt2wire.digest(tree), pt2wire.digest(tree, weights, constants)
    nodes[:2] = nodes[1::-1]
    after = pt2wire.digest(tree), pt2wire.digest(tree, weights, constants)
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, not shared]


def test_a_program_too_deep_for_thrift_has_a_digest() -> None:
    tree = deep_program(20)
    expected = hashlib.sha256(pt2wire.to_json(pt2wire.canonicalize(tree))).hexdigest()
    assert pt2wire.digest(tree) == expected


def test_load_refuses_another_program_than_expected(tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    path.write_bytes(linear())
    expected = digest_of(pt2wire.read(path))
    assert pt2wire.load(path, expected_digest=expected.upper()).module()(torch.ones(2, 4)).shape == (2, 3)
    path.write_bytes(linear(0.25))
    found = digest_of(pt2wire.read(path))
    with pytest.raises(DeserializeError, match=f"expected a program of digest {expected}, found {found}"):
        pt2wire.load(path, expected_digest=expected)
    with pytest.raises(DeserializeError, match="expected a program of digest"):
        pt2wire.load(path, expected_digest=pt2wire.digest(pt2wire.read(path).programs["model"]))
    with pytest.raises(ValueError, match="expected expected_digest as 64 hexadecimal digits, found 'abc'"):
        pt2wire.load(path, expected_digest="abc")
