"""Fields of our own in trees of any shape, and who wrote them."""

from __future__ import annotations

import io
from typing import Any

import pt2wire
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pt2wire.generated import thrift_codec, types
from pt2wire.generated.own_fields import first_own_field
from torch._export.serde import schema

from .helpers.archives import linear_archive
from .helpers.oracles import forget_own_fields
from .helpers.strategies import COMPOSITES, trees

PYTORCHS = [cls for cls in COMPOSITES if hasattr(schema, cls.__name__)]
OWN_NAMES = {name for cls in PYTORCHS for name, number in cls.FIELD_IDS.items() if number >= 1000}
OURS = types.Writer(name="pt2wire", version=pt2wire.__version__, revision=types.REVISION)
THEIRS = types.Writer(name="acme", version="3", revision=types.REVISION)


@given(st.sampled_from(PYTORCHS).flatmap(trees))
def test_the_first_field_of_our_own_is_found_if_there_is_one(tree: Any) -> None:
    before = thrift_codec.encode(tree)
    path = first_own_field(tree)
    if path is not None:
        assert eval(f"tree.{path}", {"tree": tree}) is not None
        assert path.rpartition(".")[2] in OWN_NAMES
    forget_own_fields(tree)
    assert (path is None) == (thrift_codec.encode(tree) == before)


@pytest.mark.parametrize(
    ("said", "written"),
    [(None, OURS), (THEIRS, THEIRS), (types.Writer("acme", "3", types.REVISION - 1), THEIRS)],
)
def test_write_says_who_wrote_fields_of_our_own(said: Any, written: types.Writer) -> None:
    archive, file = pt2wire.read(io.BytesIO(linear_archive())), io.BytesIO()
    tree = archive.programs["model"]
    assert tree.writer is None
    tree.range_constraints["s0"] = types.RangeConstraint(1, 2, min_float=0.5)
    tree.writer = said
    pt2wire.write(archive, file)
    assert pt2wire.read(file).programs["model"].writer == written
    assert tree.writer == said
    assert pt2wire.load(file) is not None


@pytest.mark.parametrize("said", [None, THEIRS])
def test_who_wrote_no_fields_of_our_own_is_left_as_it_is(said: types.Writer | None) -> None:
    archive, file = pt2wire.read(io.BytesIO(linear_archive())), io.BytesIO()
    archive.programs["model"].writer = said
    pt2wire.write(archive, file)
    assert pt2wire.read(file).programs["model"].writer == said


def test_a_digest_does_not_depend_on_who_wrote_fields_of_our_own() -> None:
    tree = pt2wire.read(io.BytesIO(linear_archive())).programs["model"]
    plain = pt2wire.digest(tree)
    tree.range_constraints["s0"] = types.RangeConstraint(1, 2, min_float=0.5)
    unsigned = pt2wire.digest(tree)
    tree.writer = THEIRS
    assert pt2wire.digest(tree) == unsigned != plain
