"""Archives as data: read, changed, written back, copied and pickled."""

from __future__ import annotations

import array
import contextlib
import copy
import io
import pickle
from pathlib import Path
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire import DeserializeError, SerializeError, UnsafeArtifactError
from pt2wire.generated import types

from .helpers.archives import (
    INPUT,
    assert_computes_the_same,
    linear_archive,
    linear_program,
    linear_torch_archive,
    record,
    saved,
    with_records,
)
from .helpers.exporting import exported


@pytest.mark.parametrize("make", [linear_archive, linear_torch_archive])
def test_an_archive_that_was_not_changed_is_written_back_as_it_was(make: Any) -> None:
    archive = pt2wire.read(io.BytesIO(make()))
    file = io.BytesIO()
    pt2wire.write(archive, file)
    again = pt2wire.read(file)
    assert again.programs == archive.programs
    for name in again.records:
        if name in archive.records and not name.endswith(".json"):
            assert again.record(name) == archive.record(name), name
    assert set(archive.records) - set(again.records) <= {".data/serialization_id"}
    assert_computes_the_same(pt2wire.load(file))
    assert_computes_the_same(torch.export.load(file))


def test_our_own_archive_is_rewritten_byte_for_byte() -> None:
    file = io.BytesIO()
    pt2wire.write(pt2wire.read(io.BytesIO(linear_archive())), file)
    assert file.getvalue() == linear_archive()


def test_everything_in_an_archive_can_be_changed(tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    pt2wire.save({"model": linear_program(), "old": linear_program()}, path, extra_files={"a": "1", "b": "2"})
    archive = pt2wire.read(path)
    del archive.programs["old"]
    archive.programs["copy"] = copy.deepcopy(archive.programs["model"])
    archive.weights["copy"] = dict(archive.weights["model"])
    archive.constants["copy"] = archive.constants["model"]
    offset = archive.weights["copy"]["offset"]
    archive.weights["copy"]["offset"] = pt2wire.Payload(offset.meta, memoryview(bytes(12)))
    archive.extra_files = {"b": b"3"}
    pt2wire.write(archive, path)

    loaded = pt2wire.load_all(path)
    assert list(loaded) == ["model", "copy"]
    assert_computes_the_same(loaded["model"])
    difference = loaded["model"].module()(INPUT) - loaded["copy"].module()(INPUT)
    torch.testing.assert_close(difference.detach(), linear_program().state_dict["offset"].expand(2, 3))
    one, two = (loaded[name].state_dict["linear.weight"].untyped_storage() for name in loaded)
    assert one._cdata == two._cdata
    records = pt2wire.read(path).records
    assert "data/sample_inputs/old.pt" not in records
    assert [name for name in records if name.startswith("extra/")] == ["extra/b"]
    assert pt2wire.read(path).extra_files == {"b": b"3"}


def test_programs_take_their_example_inputs_along_when_they_get_another_name() -> None:
    programs = {
        name: torch.export.export(torch.nn.Linear(2, 1), (torch.full((3, 2), number),))
        for name, number in (("a", 1.0), ("b", 2.0))
    }
    archive = pt2wire.read(io.BytesIO(saved(programs)))
    for table in (archive.programs, archive.weights, archive.constants):
        table["a"], table["b"], table["c"] = table["b"], table["a"], table["a"]
    data = io.BytesIO()
    pt2wire.write(archive, data)
    numbers = {name: ep.example_inputs[0][0][0, 0].item() for name, ep in pt2wire.load_all(data).items()}
    assert numbers == {"a": 2.0, "b": 1.0, "c": 1.0}


def _narrow(tree: types.ExportedProgram) -> None:
    tree.graph_module.graph.tensor_values["x"].dtype = types.ScalarType.HALF


def _wide(size: int) -> types.ExportedProgram:
    return pt2wire.to_tree(exported(lambda self, x: x.relu(), torch.ones(size)))


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        (lambda archive: None, True),
        (lambda archive: archive.programs.update(model=copy.deepcopy(archive.programs["model"])), True),
        (
            lambda archive: archive.programs.update(model=pt2wire.canonicalize(archive.programs["model"])),
            True,
        ),
        (lambda archive: archive.programs.update(model=_wide(4)), True),
        (lambda archive: archive.programs.update(model=_wide(5)), False),
        (lambda archive: _narrow(archive.programs["model"]), False),
    ],
    ids=["itself", "a copy", "canonical", "another", "another with another size", "another dtype in place"],
)
def test_example_inputs_are_kept_as_long_as_they_are_what_the_program_takes(change: Any, kept: bool) -> None:
    ep = exported(lambda self, x: x + 1, torch.arange(4.0))
    archive, file = pt2wire.read(io.BytesIO(saved(ep))), io.BytesIO()
    change(archive)
    with contextlib.nullcontext() if kept else pytest.warns(UserWarning, match="model: written without ex"):
        pt2wire.write(archive, file)
    found = pt2wire.load(file).example_inputs
    assert found is None if not kept else torch.equal(found[0][0], torch.arange(4.0))


def test_records_that_nobody_knows_are_kept() -> None:
    data = with_records(
        linear_archive(), {"data/aotinductor/model/x.so": b"\x7fELF", "data/weights/other": b"w"}
    )
    file = io.BytesIO()
    pt2wire.write(pt2wire.read(io.BytesIO(data)), file)
    assert record(file.getvalue(), "data/aotinductor/model/x.so") == b"\x7fELF"
    assert record(file.getvalue(), "data/weights/other") == b"w"


def test_an_archive_is_shown_by_what_it_has() -> None:
    archive = pt2wire.read(io.BytesIO(linear_archive()))
    assert repr(archive) == (
        "Archive(programs=['model'], weights={'model': 3}, constants={'model': 2}, extra_files=[])"
    )


def test_a_record_that_is_not_there_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        pt2wire.read(io.BytesIO(linear_archive())).record("nothing")
    assert pt2wire.read(io.BytesIO(linear_archive())).optional_record("nothing") is None


def test_an_archive_can_be_made_from_nothing() -> None:
    source = pt2wire.read(io.BytesIO(linear_archive()))
    archive = pt2wire.Archive(source.programs, source.weights, source.constants)
    file = io.BytesIO()
    pt2wire.write(archive, file)
    assert_computes_the_same(pt2wire.load(file))


def test_verifying_can_be_left_out_for_weights_but_not_for_programs() -> None:
    bias = linear_program().state_dict["linear.bias"].detach().numpy().tobytes()
    damaged = linear_archive().replace(bias, bytes(11) + b"\x41")
    with pytest.raises(DeserializeError, match="expected bytes with CRC"):
        pt2wire.load(io.BytesIO(damaged))
    loaded = pt2wire.load(io.BytesIO(damaged), verify=False)
    assert loaded.state_dict["linear.bias"].tolist() == [0.0, 0.0, 8.0]
    stored = saved(linear_program(), compress=False)
    program = record(stored, "thrift/model.compact")
    with pytest.raises(DeserializeError, match=r"thrift/model.compact: expected bytes with CRC"):
        pt2wire.read(io.BytesIO(stored.replace(program, program[:-2] + b"\x01\x00")), verify=False)


# What `load` refuses.


def _target(tree: types.ExportedProgram, target: Any) -> None:
    tree.graph_module.graph.nodes[0].target = target


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tree: _target(tree, "os.system"), "nodes[0].target: expected an operator or a symbolic"),
        (lambda tree: tree.graph_module.graph.nodes.pop(0), "nodes[0].inputs[0].arg: "),
        (lambda tree: tree.graph_module.signature.input_specs.pop(), "signature.input_specs: expected "),
        (
            lambda tree: setattr(tree.schema_version, "major", 7),
            "schema_version: expected format 8.2 or a later 8, found 7.",
        ),
    ],
)
def test_a_program_that_is_not_sound_is_written_only_on_demand(change: Any, message: str) -> None:
    archive, file = pt2wire.read(io.BytesIO(linear_archive())), io.BytesIO()
    change(archive.programs["model"])
    with pytest.raises(SerializeError) as caught:
        pt2wire.write(archive, file)
    assert str(caught.value).startswith("model:") and message in str(caught.value)
    assert str(caught.value.hint).endswith("or pass allow_unsound=True if `load` need not take the program")
    assert file.getvalue() == b""
    pt2wire.write(archive, file, allow_unsound=True)
    with pytest.raises(DeserializeError) as refused:
        pt2wire.load(file)
    assert refused.value.message == caught.value.message


def _graph(archive: pt2wire.Archive) -> types.Graph:
    return archive.programs["model"].graph_module.graph


def _weight(archive: pt2wire.Archive) -> pt2wire.Payload:
    return archive.weights["model"]["linear.weight"]


@pytest.mark.parametrize(
    "change",
    [
        lambda archive: _target(archive.programs["model"], 5),
        lambda archive: setattr(_graph(archive).nodes[0].inputs[0], "arg", 3),
        lambda archive: setattr(_graph(archive).nodes[0], "inputs", ["relu"]),
        lambda archive: _graph(archive).nodes.insert(0, None),
        lambda archive: setattr(archive.programs["model"], "graph_module", None),
        lambda archive: setattr(archive.programs["model"], "writer", "me"),
    ],
)
def test_a_tree_with_a_wrong_type_in_it_is_not_written_at_all(change: Any) -> None:
    archive = pt2wire.read(io.BytesIO(linear_archive()))
    change(archive)
    (finding,) = pt2wire.validate(archive.programs["model"])
    for options in ({}, {"allow_unsound": True}):
        with pytest.raises(SerializeError) as caught:
            pt2wire.write(archive, io.BytesIO(), **options)  # type: ignore[arg-type]
        assert (caught.value.path, caught.value.message) == (f"model:{finding.path}", finding.message)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (lambda archive: setattr(archive, "programs", [1]), TypeError, ".programs: expected Mapping"),
        (lambda archive: setattr(archive, "weights", 3), TypeError, ".weights: expected Mapping"),
        (
            lambda archive: archive.weights.update(model=[1]),
            TypeError,
            ".weights['model']: expected Mapping",
        ),
        (
            lambda archive: archive.weights["model"].update({3: _weight(archive)}),
            TypeError,
            "the name in archive.weights['model'][3]: expected str",
        ),
        (
            lambda archive: _weight(archive).inner.update(values=3),
            TypeError,
            ".weights['model']['linear.weight'].inner['values']: expected Payload",
        ),
        (lambda archive: setattr(_weight(archive), "meta", 3), TypeError, ".meta: expected PayloadMeta"),
        (
            lambda archive: setattr(_weight(archive).meta.tensor_meta, "sizes", 3),
            SerializeError,
            ".weights['model']['linear.weight'].meta.tensor_meta.sizes: expected a list<SymInt>, found int 3",
        ),
        (lambda archive: setattr(_weight(archive), "data", 3), TypeError, ".data: expected a memoryview"),
        (
            lambda archive: setattr(_weight(archive), "data", array.array("f", [1, 2])),
            TypeError,
            ".data: expected a memoryview of bytes, found array of array with items of 4 bytes "
            "in 1 dimensions. Pass memoryview(...).cast('B') of it",
        ),
    ],
)
def test_what_is_no_archive_is_refused_by_name(change: Any, kind: type[Exception], message: str) -> None:
    archive, file = pt2wire.read(io.BytesIO(linear_archive())), io.BytesIO()
    change(archive)
    with pytest.raises(kind) as caught:
        pt2wire.write(archive, file)
    assert message in str(caught.value)
    assert file.getvalue() == b""


@pytest.mark.parametrize("name", ["a b", "x/y", ".x", "ö", "a" * 256])
def test_records_of_weights_that_loading_refuses_are_not_written(name: str) -> None:
    archive, file = pt2wire.read(io.BytesIO(linear_archive())), io.BytesIO()
    archive.weights["model"]["linear.bias"].meta.path_name = name
    where = r"^model:weights\['linear\.bias'\]\.path_name: expected a plain file name, found '"
    with pytest.raises(SerializeError, match=where):
        pt2wire.write(archive, file)
    pt2wire.write(archive, file, allow_unsound=True)
    with pytest.raises(DeserializeError, match="expected a plain file name"):
        pt2wire.load(file)


def test_what_the_caller_of_load_can_permit_is_written() -> None:
    ep = exported(lambda self, x: x + 1, torch.ones(4))
    archive, file = pt2wire.read(io.BytesIO(saved(ep))), io.BytesIO()
    (node,) = archive.programs["model"].graph_module.graph.nodes
    node.target = "torch.ops.aten.set_.source_Tensor"
    node.inputs[1].name = "source"
    node.inputs[1].arg = node.inputs[0].arg
    pt2wire.write(archive, file)
    with pytest.raises(UnsafeArtifactError, match=r"allow_operators=\['aten\.set_'\]"):
        pt2wire.load(file)
    assert pt2wire.load(file, allow_operators=["aten.set_"]).graph_signature == ep.graph_signature


# Copied and pickled.


class _Tied(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = torch.nn.Linear(200, 200), torch.nn.Linear(200, 200)
        self.two.weight = self.one.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.two(self.one(x))  # type: ignore[no-any-return]


@pytest.mark.parametrize("carry", [copy.deepcopy, lambda archive: pickle.loads(pickle.dumps(archive, 5))])
def test_archives_are_copied_and_pickled_whole(carry: Any, tmp_path: Path) -> None:
    path, ep = tmp_path / "m.pt2", torch.export.export(_Tied(), (torch.ones(1, 200),))
    pt2wire.save(ep, path, extra_files={"note.txt": "checked"})
    archive = pt2wire.read(path)
    assert len(pickle.dumps(archive)) < path.stat().st_size * 1.2  # weights once
    again = carry(archive)
    assert again.records == archive.records
    assert again.record("models/model.json") == archive.record("models/model.json")
    weights, old = again.weights["model"], archive.weights["model"]
    assert weights["one.weight"].data is weights["two.weight"].data
    files = io.BytesIO(), io.BytesIO()
    pt2wire.write(archive, files[0])
    pt2wire.write(again, files[1])
    assert files[0].getvalue() == files[1].getvalue()
    before = bytes(old["one.weight"].data)
    weights["one.weight"].data[:4] = b"\xff" * 4  # memory of its own
    assert bytes(old["one.weight"].data) == before
    shallow = copy.copy(old["one.weight"])
    assert shallow.data is old["one.weight"].data
    assert copy.copy(archive).weights is archive.weights


@pytest.mark.parametrize("flag", ["compress", "durable", "drop_unknown", "allow_unsound"])
def test_flags_are_true_or_false(flag: str) -> None:
    archive = pt2wire.read(io.BytesIO(linear_archive()))
    flags: dict[str, Any] = {flag: "False"}
    with pytest.raises(TypeError, match=f"expected {flag} as True or False, found 'False'"):
        pt2wire.write(archive, io.BytesIO(), **flags)
    if flag in ("compress", "durable"):
        with pytest.raises(TypeError, match=f"expected {flag} as True or False, found 'False'"):
            pt2wire.save(linear_program(), io.BytesIO(), **flags)
