"""Whole programs: saved, loaded, read as data, changed and written back."""

from __future__ import annotations

import collections
import contextlib
import copy
import io
import logging
import pickle
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire import DeserializeError, SerializedArtifact, SerializeError, UnsafeArtifactError
from torch._export.serde import serialize as torch_serialize
from torch.export import Dim, ExportedProgram

from .helpers.archives import (
    INPUT,
    linear_archive,
    linear_program,
    linear_torch_archive,
    record,
    saved,
    torch_saved,
    with_records,
)
from .helpers.exporting import exported
from .helpers.models import MODELS
from .helpers.oracles import pytorch_load


def assert_computes_the_same(found: ExportedProgram) -> None:
    assert torch.equal(found.module()(INPUT), linear_program().module()(INPUT))
    assert found.graph_signature == linear_program().graph_signature


def test_warnings_point_at_the_line_that_called(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pt2wire.save(linear_program(), tmp_path / "name", extra_files={"a": "", "A": ""})  # this line
    assert len(caught) == 2
    for warning in caught:
        assert warning.filename == __file__
        assert "# this line" in Path(__file__).read_text().splitlines()[warning.lineno - 1]


def test_warnings_from_below_what_python_decorates_point_there_too() -> None:
    ep = exported(lambda self, x: (x.shape[0] > 3, x), torch.ones(4), shapes=({0: Dim.AUTO},))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pt2wire.save({"one": ep, "two": ep}, io.BytesIO())  # this line
        pt2wire.save(ep, io.BytesIO())  # this line
        pt2wire.serialize(ep)  # this line
        pt2wire.to_tree(ep)  # this line
        with contextlib.ExitStack() as stack:
            stack.callback(pt2wire.to_tree, ep)
            stack.close()  # this line
    texts = [
        str(warning.message).partition("torch.export.load will refuse this program") for warning in caught
    ]
    assert [begin for begin, found, _ in texts if found] == ["one: ", "two: ", "model: ", "", "", ""]
    for warning in caught:
        assert warning.filename == __file__
        assert "# this line" in Path(__file__).read_text().splitlines()[warning.lineno - 1]


# Paths and file objects.


def test_paths_of_all_kinds_and_file_objects_of_all_kinds_load(tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    pt2wire.save(linear_program(), path)
    assert_computes_the_same(pt2wire.load(path))
    assert_computes_the_same(pt2wire.load(str(path)))
    with open(path, "rb") as file:
        assert_computes_the_same(pt2wire.load(file))
    with open(path, "rb", buffering=0) as file:
        assert_computes_the_same(pt2wire.load(file))
    with tempfile.NamedTemporaryFile(suffix=".pt2") as wrapped:
        pt2wire.save(linear_program(), wrapped)
        assert_computes_the_same(pt2wire.load(wrapped))
        assert_computes_the_same(torch.export.load(wrapped.name))


def test_a_file_object_is_read_from_its_position_on(tmp_path: Path) -> None:
    path = tmp_path / "two"
    path.write_bytes(b"header" + linear_archive())
    for file in (open(path, "rb"), io.BytesIO(b"header" + linear_archive())):  # noqa: SIM115
        with file:
            file.seek(6)
            assert_computes_the_same(pt2wire.load(file))


def test_what_a_longer_file_object_held_behind_the_archive_is_cut_off(tmp_path: Path) -> None:
    buffer = io.BytesIO(b"z" * 50_000)
    buffer.seek(10)
    pt2wire.save(linear_program(), buffer)
    assert buffer.getvalue() == b"z" * 10 + linear_archive()
    assert_computes_the_same(pt2wire.load(buffer))
    path = tmp_path / "m.pt2"
    path.write_bytes(b"z" * 50_000)
    with open(path, "r+b") as file:
        pt2wire.save(linear_program(), file)
    assert path.read_bytes() == linear_archive()
    longer = bytearray(50_000)
    longer[: len(linear_archive())] = linear_archive()
    with pytest.raises(DeserializeError, match="If it was written over a longer file, save to an empty one"):
        pt2wire.load(io.BytesIO(longer))


def test_a_file_object_that_cannot_be_mapped_is_read(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "m.pt2.gz"
    path.write_bytes(gzip.compress(linear_archive()))
    with gzip.open(path) as file:
        assert_computes_the_same(pt2wire.load(file))  # type: ignore[arg-type]


def test_saving_over_the_file_that_is_mapped_keeps_the_loaded_program(tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    pt2wire.save(linear_program(), path)
    loaded = pt2wire.load(path)
    for _ in range(2):
        pt2wire.save(loaded, path)
        loaded = pt2wire.load(path)
    assert_computes_the_same(loaded)
    assert path.read_bytes() == linear_archive()


# Extra files, as torch.export.save and load treat them.


def test_extra_files_go_both_ways_and_fill_the_callers_dict() -> None:
    extra = {"a.txt": "text", "folder/b.json": '{"ä": 1}'}
    for data in (
        saved(linear_program(), extra_files=extra),
        torch_saved(linear_program(), extra_files=extra),
    ):
        for load in (pt2wire.load, torch.export.load):
            found = {"a.txt": "", "untouched": "mine"}
            load(io.BytesIO(data), extra_files=found)
            assert found == {**extra, "untouched": "mine"}
    assert pt2wire.read(io.BytesIO(data)).extra_files["folder/b.json"] == '{"ä": 1}'.encode()


def test_extra_files_whose_names_differ_in_case_only_are_kept_apart() -> None:
    found: dict[str, Any] = {}
    pt2wire.load(io.BytesIO(saved(linear_program(), extra_files={"a": "1", "A": "2"})), extra_files=found)
    assert found == {"a": "1", "A": "2"}


def test_extra_files_that_are_no_text_come_back_as_bytes() -> None:
    found: dict[str, Any] = {}
    data = with_records(linear_archive(), {"extra/raw": b"\xff\x00"})
    pt2wire.load(io.BytesIO(data), extra_files=found)
    assert found == {"raw": b"\xff\x00"}


# Several programs.


def test_several_programs_load_one_by_one_or_all() -> None:
    programs = {"b": MODELS["keyword_arguments"].program(), "a": linear_program()}
    data = saved(programs)
    assert list(pt2wire.load_all(io.BytesIO(data))) == ["b", "a"]
    assert_computes_the_same(pt2wire.load(io.BytesIO(data), name="a"))
    args, kwargs = MODELS["keyword_arguments"].make_inputs()
    found = pt2wire.load(io.BytesIO(data), name="b").module()(*args, **kwargs)
    assert torch.equal(found, programs["b"].module()(*args, **kwargs))


class Applied(torch.nn.Module):
    def forward(self, x: torch.Tensor, module: torch.nn.Module) -> torch.Tensor:
        return module(x) + 1


@pytest.mark.parametrize("module", [torch.nn.ReLU(), torch.nn.Linear(2, 2)], ids=["empty", "weights"])
def test_modules_among_inputs_come_with_the_pickled_example_inputs(module: torch.nn.Module) -> None:
    inputs = torch.ones(2), module
    ep = torch.export.export(Applied(), inputs)
    with pytest.warns(UserWarning, match=r"^model: PyTorch can load .*, pt2wire will not: .*a class that"):
        data = saved(ep)
    for file in (data, torch_saved(ep)):
        message = (
            f"expected a class that is registered .*Pass types=.{type(module).__name__}. .* allow_pickle"
        )
        with pytest.raises(pt2wire.DeserializeError, match=message):
            pt2wire.load(io.BytesIO(file))
        for options in ({"types": [type(module)]}, {"allow_pickle": True}):
            loaded = pt2wire.load(io.BytesIO(file), **options)  # type: ignore[arg-type]
            assert torch.equal(loaded.module()(*inputs), ep.module()(*inputs))
        with pytest.warns(UserWarning, match="pt2wire will not"):
            assert pt2wire.to_tree(loaded) == pt2wire.to_tree(ep) and saved(loaded)
    again = pt2wire.from_tree(pt2wire.to_tree(ep), {}, {}, example_inputs=(inputs, {}))
    assert torch.equal(again.module()(*inputs), ep.module()(*inputs))
    # Outside of all that, a module is a leaf to pytree as before.
    assert torch.utils._pytree.tree_leaves(module) == [module]
    logging.disable()  # PyTorch's warning about pickles of classes has a broken format, which pytest reports
    try:
        assert torch.equal(torch.export.load(io.BytesIO(data)).module()(*inputs), ep.module()(*inputs))
    finally:
        logging.disable(logging.NOTSET)


def test_an_error_in_one_of_several_programs_names_it() -> None:
    broken = torch.export.export(torch.nn.Linear(4, 3), (INPUT,))
    broken.constants["odd"] = object()
    with pytest.raises(pt2wire.SerializeError, match="second:odd: cannot save a constant that is neither"):
        saved({"first": linear_program(), "second": broken})


# Archives as data.


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


def test_records_that_nobody_knows_are_kept() -> None:
    data = with_records(
        linear_archive(), {"data/aotinductor/model/x.so": b"\x7fELF", "data/weights/other": b"w"}
    )
    file = io.BytesIO()
    pt2wire.write(pt2wire.read(io.BytesIO(data)), file)
    assert record(file.getvalue(), "data/aotinductor/model/x.so") == b"\x7fELF"
    assert record(file.getvalue(), "data/weights/other") == b"w"


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


# Trees.


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


# Artifacts.


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
        (["whole"], "expected the names of constants and weights, found"),
        ({"whole": []}, "expected the names of constants and weights, found"),
        ({"whole": "nothing"}, "expected a tensor that shares the memory of another, found 'whole'"),
        ({"nothing": "end"}, "expected a tensor that shares the memory of another, found 'nothing'"),
        ({"whole": "end"}, "said to share the storage of 'end', but the bytes differ"),
    ],
)
def test_constants_that_cannot_share_memory_as_said_are_refused(shared: Any, message: str) -> None:
    artifact = torch_serialize.serialize(torch.export.export(_Sharing(), (torch.zeros(3),)))
    constants = collections.OrderedDict(whole=torch.zeros(3))
    constants._pt2wire_shared = shared  # type: ignore[attr-defined]
    file = io.BytesIO()
    torch.save(constants, file)
    artifact.constants = file.getvalue()
    with pytest.raises(DeserializeError, match=message):
        pt2wire.deserialize(artifact)


class Marker:
    """Pickled, it writes a file when it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.write_text, (self.path, "code has run")


def test_pickles_of_others_are_never_opened(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    file = io.BytesIO()
    torch.save({"a": Marker(marker)}, file)
    ours = pt2wire.serialize(linear_program())
    for field in ("state_dict", "constants"):
        hostile = torch_serialize.serialize(linear_program())
        setattr(hostile, field, file.getvalue())
        with pytest.raises(UnsafeArtifactError, match=f"{field}: cannot be opened without running code"):
            pt2wire.deserialize(hostile)
        # The mark of an artifact that was made here does not cover bytes that were put into it.
        changed = pt2wire.serialize(linear_program())
        setattr(changed, field, file.getvalue())
        with pytest.raises(UnsafeArtifactError):
            pt2wire.deserialize(changed)
    hostile = torch_serialize.serialize(linear_program())
    hostile.example_inputs = file.getvalue()
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
    file = io.BytesIO()
    torch.save({**linear_program().state_dict, "linear.weight": torch.nn.Parameter(torch.zeros(7))}, file)
    artifact.state_dict = file.getvalue()
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
    file = io.BytesIO()
    torch.save([1], file)
    with pytest.raises(DeserializeError, match="state_dict: expected a dict of tensors, found list"):
        pt2wire.deserialize(SerializedArtifact(ours.exported_program, file.getvalue(), ours.constants, b""))


# Example inputs.


def example_inputs_of(ep: ExportedProgram, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return pt2wire.load(io.BytesIO(saved(ep, **options))).example_inputs


def test_example_inputs_come_back() -> None:
    for name in ("keyword_arguments", "nested_containers", "dataclasses", "namedtuples", "constant_inputs"):
        ep = MODELS[name].program()
        assert ep.example_inputs is not None
        expected, spec = torch.utils._pytree.tree_flatten(ep.example_inputs)
        found, found_spec = torch.utils._pytree.tree_flatten(example_inputs_of(ep))
        assert found_spec == spec
        for one, two in zip(found, expected, strict=True):
            assert torch.equal(one, two) if isinstance(one, torch.Tensor) else one == two


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_any_pickle_protocol_can_be_chosen(protocol: int) -> None:
    (args, kwargs) = example_inputs_of(linear_program(), pickle_protocol=protocol)
    assert torch.equal(args[0], INPUT)
    assert kwargs == {}
    data = saved(linear_program(), pickle_protocol=protocol)
    assert_computes_the_same(pytorch_load(data))


def without_inputs(ep: ExportedProgram) -> bytes:
    return with_records(torch_saved(ep), {"data/sample_inputs/model.pt": None})


def test_guards_stay_on_when_example_inputs_are_missing_empty_or_refused(tmp_path: Path) -> None:
    case = MODELS["guard_on_remainder"]
    ep = case.program()
    file = io.BytesIO()
    torch.save(((Marker(tmp_path / "marker"),), {}), file)
    for content in (None, b"", b"no pickle", file.getvalue()):
        data = with_records(torch_saved(ep), {"data/sample_inputs/model.pt": content})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            module = pt2wire.load(io.BytesIO(data)).module()
        assert len([each for each in caught if "stand-ins" in str(each.message)]) == (content != b"")
        args, kwargs = case.make_inputs()
        assert torch.equal(module(*args, **kwargs), ep.module()(*args, **kwargs))
        for sizes in case.refused:
            args, kwargs = case.make_inputs(**sizes)
            with pytest.raises((AssertionError, RuntimeError), match=r"Guard failed|Expected input"):
                module(*args, **kwargs)
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("written_by", [saved, torch_saved], ids=["pt2wire", "PyTorch"])
def test_a_program_without_example_inputs_comes_back_without(
    written_by: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ep = linear_program()
    monkeypatch.setattr(ep, "_example_inputs", None)  # other tests have the same program
    loaded = pt2wire.load(io.BytesIO(written_by(ep)))
    assert loaded.example_inputs is pytorch_load(written_by(ep)).example_inputs is None
    assert pt2wire.deserialize(pt2wire.serialize(ep)).example_inputs is None
    for program in (ep, loaded):
        with pytest.raises((RuntimeError, AssertionError), match=r"Expected input|Guard failed"):
            program.module()(torch.ones(5, 7))


@pytest.mark.parametrize("written_by", [saved, torch_saved], ids=["pt2wire", "PyTorch"])
def test_a_size_among_example_inputs_stays_one(written_by: Any) -> None:
    class View(torch.nn.Module):
        def forward(self, size: torch.Size, x: torch.Tensor) -> torch.Tensor:
            return x.view(size)

    ep = torch.export.export(View(), (torch.Size([2, 3]), torch.arange(6)))
    args, kwargs = pt2wire.load(io.BytesIO(written_by(ep))).example_inputs or ((), {})
    assert type(args[0]) is torch.Size and args[0] == (2, 3) and kwargs == {}
    assert torch.equal(args[1], torch.arange(6))


ODD_TEXTS = [
    "a\nb",
    "\\",
    "\0",
    "\u2028",
    "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}",
    "%s{x}\\N{DIGIT ONE}",
]


@pytest.mark.parametrize("key", ODD_TEXTS, ids=ascii)
@pytest.mark.parametrize("written_by", [saved, torch_saved], ids=["pt2wire", "PyTorch"])
def test_any_key_without_quotes_works_among_inputs(key: str, written_by: Any) -> None:
    class Keyed(torch.nn.Module):
        def forward(self, x: dict[str, torch.Tensor]) -> torch.Tensor:
            return x[key].view(-1, 3)

    rows = {key: {0: torch.export.Dim.DYNAMIC}}
    ep = torch.export.export(Keyed(), ({key: torch.ones(6)},), dynamic_shapes=(rows,))
    assert ep._guards_code
    loaded = pt2wire.load(io.BytesIO(written_by(ep)))
    for program in (ep, loaded):
        module = program.module()
        assert module({key: torch.ones(9)}).shape == (3, 3)
        with pytest.raises((AssertionError, RuntimeError)):
            module({key: torch.ones(7)})


@pytest.mark.parametrize("key", [*ODD_TEXTS, "it's", '"'], ids=ascii)
def test_any_key_works_among_outputs(key: str) -> None:
    class Keyed(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {key: x + 1}

    ep = torch.export.export(Keyed(), (torch.ones(2),))
    for data in (saved(ep), torch_saved(ep)):
        found = pt2wire.load(io.BytesIO(data)).module()(torch.ones(2))
        assert list(found) == [key] and torch.equal(found[key], torch.full((2,), 2.0))


@pytest.mark.parametrize(
    "text", ["\u2028", "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}", r"\d+\s{2}"], ids=ascii
)
def test_text_inputs_may_hold_what_does_not_print(text: str) -> None:
    ep = torch.export.export(Named(), (torch.ones(2), text))
    for data in (saved(ep), torch_saved(ep)):
        module = pt2wire.load(io.BytesIO(data)).module()
        assert torch.equal(module(torch.ones(2), text), ep.module()(torch.ones(2), text))
        with pytest.raises(AssertionError, match="Guard failed"):
            module(torch.ones(2), "other")


class Named(torch.nn.Module):
    def forward(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return x + len(name)


class Keyed(torch.nn.Module):
    def forward(self, x: torch.Tensor, tree: dict[Any, torch.Tensor]) -> Any:
        (value,) = tree.values()
        return {("it's", 'a"b\\\n'): x + value}  # among outputs, any key will do


class Weighted(torch.nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.register_buffer(name, torch.ones(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + next(self.buffers())


class Parted(torch.nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleDict({name: torch.nn.Linear(2, 2)})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        (part,) = self.parts.values()
        return part(x)  # type: ignore[no-any-return]


_PASTED = [
    (Named(), ("it's",), "graph signature, user_input `name`: expected a constant input"),
    (Named(), ('a"b',), "graph signature, user_input `name`: expected a constant input"),
    (Named(), ("two\nlines",), "graph signature, user_input `name`: expected a constant input"),
    (Named(), ("a\\back",), "graph signature, user_input `name`: expected a constant input"),
    (Keyed(), ({"it's": torch.ones(2)},), "signature of module ``: expected a key of the inputs"),
    (Keyed(), ({(1, 'a"b'): torch.ones(2)},), "signature of module ``: expected a key of the inputs"),
    (Weighted('a"b'), (), "graph signature, buffer `b_a_b`: expected the name of a weight"),
    (Weighted("a\nb"), (), "graph signature, buffer `b_a_b`: expected the name of a weight"),
    (Weighted("a\\b"), (), "graph signature, buffer `b_a_b`: expected the name of a weight"),
    (Parted('a"b'), (), "expected the name of a module"),
]


@pytest.mark.parametrize(("module", "args", "message"), _PASTED, ids=range(len(_PASTED)))
def test_texts_that_end_the_source_that_pytorch_pastes_them_into_are_refused_both_ways(
    module: torch.nn.Module, args: tuple[Any, ...], message: str
) -> None:
    args = (torch.ones(2), *args)
    ep = torch.export.export(module, args)
    with pytest.raises((SyntaxError, AttributeError, AssertionError)):
        ep.module()(*args)  # PyTorch has no use for the program
    with pytest.raises(pt2wire.SerializeError, match=f"{message} that PyTorch can paste into source, found"):
        saved(ep)
    with pytest.raises(UnsafeArtifactError):
        pt2wire.load(io.BytesIO(torch_saved(ep)))


def test_damaged_leaves_are_named_before_the_class_that_makes_them_needed() -> None:
    data = saved(MODELS["dataclasses"].program())
    for content in (b"no pickle", b"\x80\x02]q\x00."):
        changed = with_records(data, {"thrift/model_inputs.pt": content})
        with pytest.warns(
            UserWarning, match="stand-ins on the meta device: of their leaves, .*; they cannot be opened"
        ):
            pt2wire.load(io.BytesIO(changed))


def test_refused_example_inputs_are_named_with_their_class() -> None:
    data = torch_saved(MODELS["dataclasses"].program())
    with pytest.warns(
        UserWarning, match="without running code of tests.helpers.models_inputs.Box. Pass allow_pickle=True"
    ):
        pt2wire.load(io.BytesIO(data))


def test_stand_ins_have_the_structure_and_sizes_of_the_program() -> None:
    for name in ("nested_containers_dynamic", "constant_inputs", "keyword_arguments_only", "dataclasses"):
        ep = MODELS[name].program()
        assert ep.example_inputs is not None
        found = pt2wire.load(io.BytesIO(without_inputs(ep))).example_inputs
        expected, spec = torch.utils._pytree.tree_flatten(ep.example_inputs)
        leaves, found_spec = torch.utils._pytree.tree_flatten(found)
        assert found_spec == spec
        for one, two in zip(leaves, expected, strict=True):
            if isinstance(two, torch.Tensor):
                assert (one.shape, one.stride(), one.dtype) == (two.shape, two.stride(), two.dtype)
                assert one.is_meta
            else:
                assert one == two


def test_inputs_that_cannot_be_pickled_are_saved_as_their_leaves_with_a_warning() -> None:
    from collections import namedtuple

    local = namedtuple("local", "x y")
    local.__qualname__ = "nowhere.local"

    class Adding(torch.nn.Module):
        def forward(self, point: Any) -> torch.Tensor:
            return point.x + point.y

    torch.utils._pytree._register_namedtuple(local, serialized_type_name="tests.local")
    ep = torch.export.export(Adding(), (local(torch.ones(2), torch.ones(2)),))
    with pytest.warns(UserWarning, match="the example inputs cannot be pickled"):
        data = saved(ep)
    assert record(data, "data/sample_inputs/model.pt") == b""
    found = pt2wire.load(io.BytesIO(data)).example_inputs
    assert found is not None and torch.equal(found[0][0].x, torch.ones(2))
    assert torch.export.load(io.BytesIO(data)).example_inputs in (None, {})


def test_a_program_without_example_inputs_is_saved_as_pytorch_saves_it() -> None:
    ep = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    ep.example_inputs = None
    data = saved(ep)
    assert record(data, "data/sample_inputs/model.pt") == record(
        torch_saved(ep), "data/sample_inputs/model.pt"
    )
    assert pt2wire.load(io.BytesIO(data)).module()(torch.ones(2)).tolist() == [1.0, 1.0]


def test_guards_and_ranges_come_back_as_they_were() -> None:
    def split(self: object, x: torch.Tensor, at: torch.Tensor) -> object:
        return torch.tensor_split(x, at)

    ep = exported(split, torch.ones(6, 2), torch.tensor([2, 4]))
    ep._guards_code = ["((-1) + L['x'].size()[0]) == 5", "(10*L['x'].size()[0]) == (30*L['x'].size()[1])"]
    first, second = io.BytesIO(), io.BytesIO()
    pt2wire.save(ep, first)
    again = pt2wire.load(first)
    pt2wire.save(again, second)
    assert again._guards_code == ep._guards_code
    assert again.range_constraints == ep.range_constraints
    assert len(ep.range_constraints) > 3  # of which the graph uses some
    assert second.getvalue() == first.getvalue()
    assert len(again.module()(torch.ones(6, 2), torch.tensor([2, 4]))) == 3


def test_ranges_of_floats_that_no_node_uses_come_back() -> None:
    def scaled(self: object, x: torch.Tensor) -> object:
        return x * x.sum().item()

    ep = exported(scaled, torch.ones(6), strict=True)
    file = io.BytesIO()
    pt2wire.save(ep, file)
    assert [symbol.name for symbol in ep.range_constraints] == ["zuf0", "zuf1"]
    assert pt2wire.load(file).range_constraints == ep.range_constraints


def test_what_serialize_cannot_write_is_sent_to_save() -> None:
    class Sparse(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("w", torch.eye(2).to_sparse())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sparse.mm(self.w, x)  # type: ignore[no-any-return]

    ep = torch.export.export(Sparse(), (torch.ones(2, 2),))
    with pytest.raises(
        SerializeError, match=r"found weights of layout torch\.sparse_coo\. Use pt2wire\.save"
    ):
        pt2wire.serialize(ep)


# Archives that are copied and pickled.


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
