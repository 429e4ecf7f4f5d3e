"""Which form of a program is read: the index, the JSON and the Thrift records may disagree."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire import DeserializeError
from pt2wire.generated import thrift_codec
from pt2wire.generated.types import ArchiveIndex, Argument

from .helpers.archives import INPUT, linear_archive, linear_program, linear_torch_archive, saved, with_records

JSON = "models/model.json"
THRIFT = "thrift/model.compact"
WEIGHTS_JSON = "data/weights/model_weights_config.json"
WEIGHTS_THRIFT = "thrift/model_weights.compact"
INDEX = "thrift/index.compact"


def read(data: bytes, **options: Any) -> pt2wire.Archive:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return pt2wire.read(io.BytesIO(data), **options)


def original(name: str) -> bytes:
    return bytes(read(linear_archive()).record(name))


def changed_json() -> bytes:
    """The program as another tool would write it that renames an input."""
    plain = json.loads(original(JSON))
    plain["graph_module"]["graph"]["nodes"][0]["metadata"]["changed"] = "yes"
    return json.dumps(plain).encode()


def changed_thrift() -> bytes:
    tree = pt2wire.from_json(changed_json())
    return pt2wire.to_thrift(tree)


def is_changed(archive: pt2wire.Archive) -> bool:
    return "changed" in archive.programs["model"].graph_module.graph.nodes[0].metadata


def source(archive: pt2wire.Archive) -> str:
    return archive.paths["model"].partition(":")[2]


def test_thrift_is_read_when_everything_agrees() -> None:
    assert source(read(linear_archive())) == THRIFT


def test_json_is_read_when_there_is_no_index() -> None:
    assert source(read(linear_torch_archive())) == JSON
    assert source(read(with_records(linear_archive(), {INDEX: None}))) == JSON


def test_json_that_another_tool_repacked_does_not_matter() -> None:
    assert source(read(with_records(linear_archive(), {"extra/note": b"repacked"}))) == THRIFT


def test_both_forms_give_the_same_tree() -> None:
    trees = [read(linear_archive(), form=form).programs["model"] for form in ("json", "thrift")]
    assert trees[0] == trees[1]


@pytest.mark.parametrize("compress", [True, False])
def test_json_that_another_tool_changed_is_the_truth_and_a_warning_says_so(compress: bool) -> None:
    data = with_records(saved(linear_program(), compress=compress), {JSON: changed_json()})
    with pytest.warns(UserWarning) as caught:
        archive = pt2wire.read(io.BytesIO(data))
    assert is_changed(archive)
    assert [str(warning.message) for warning in caught] == [
        f"<BytesIO>:{JSON} was changed after the archive had been written, by another tool: "
        "reading JSON, and ignoring the Thrift form of 'model'"
    ]


def test_a_changed_config_of_weights_counts_as_a_changed_program() -> None:
    config = original(WEIGHTS_JSON).replace(b'"requires_grad":true', b'"requires_grad":false')
    with pytest.warns(UserWarning, match=f"{WEIGHTS_JSON} was changed"):
        archive = pt2wire.read(io.BytesIO(with_records(linear_archive(), {WEIGHTS_JSON: config})))
    assert source(archive) == JSON
    meta = archive.weights["model"]["linear.weight"].meta.tensor_meta
    assert meta is not None and not meta.requires_grad


def test_json_that_the_index_does_not_know_is_the_truth() -> None:
    data = with_records(saved(linear_program(), formats=("thrift",)), {JSON: changed_json()})
    assert read_with_warning(data, f"{JSON} was changed")


def read_with_warning(data: bytes, message: str) -> bool:
    with pytest.warns(UserWarning, match=message):
        pt2wire.read(io.BytesIO(with_records(data, {n: original(n) for n in _JSON_CONFIGS})))
    return True


_JSON_CONFIGS = (WEIGHTS_JSON, "data/constants/model_constants_config.json")


@pytest.mark.parametrize("record", [THRIFT, WEIGHTS_THRIFT, "thrift/model_constants.compact"])
def test_changed_thrift_is_refused(record: str) -> None:
    content = changed_thrift() if record == THRIFT else original(WEIGHTS_THRIFT)[:-1] + b"\x00\x00"
    with pytest.raises(DeserializeError) as caught:
        read(with_records(linear_archive(), {record: content}))
    assert str(caught.value) == (
        f"<BytesIO>:{record}: expected the bytes that the archive's index was made for, found others. "
        'The file is damaged or was changed. form="json" reads the other form.'
    )


def test_a_missing_record_that_the_index_lists_is_refused() -> None:
    for record in (JSON, THRIFT):
        with pytest.raises(DeserializeError, match="expected this record, which the index lists, found none"):
            read(with_records(linear_archive(), {record: None}))


def test_a_damaged_index_is_refused() -> None:
    with pytest.raises(DeserializeError, match=INDEX):
        read(with_records(linear_archive(), {INDEX: b"\x00\x01\x02"}))


def test_an_index_that_lists_a_wrong_hash_is_refused() -> None:
    index = thrift_codec.decode(ArchiveIndex, original(INDEX))
    for entry in index.entries:
        entry.sha256 = "0" * 64
    with pytest.raises(DeserializeError, match="expected the bytes that the archive's index was made for"):
        read(with_records(linear_archive(), {INDEX: thrift_codec.encode(index)}))


def test_the_index_lists_every_document_of_a_program() -> None:
    index = thrift_codec.decode(ArchiveIndex, original(INDEX))
    assert [(entry.form, entry.record) for entry in index.entries] == [
        ("json", JSON),
        ("json", WEIGHTS_JSON),
        ("json", "data/constants/model_constants_config.json"),
        ("program", THRIFT),
        ("weights", WEIGHTS_THRIFT),
        ("constants", "thrift/model_constants.compact"),
    ]
    assert {entry.program for entry in index.entries} == {"model"}
    assert index.writer.name == "pt2wire"
    assert index.writer.version == pt2wire.__version__


def test_a_form_can_be_demanded() -> None:
    data = with_records(linear_archive(), {JSON: changed_json()})
    assert is_changed(read(data, form="json"))
    assert not is_changed(read(data, form="thrift"))
    assert source(read(with_records(linear_archive(), {THRIFT: b"x"}), form="json")) == JSON
    without_index = with_records(linear_archive(), {INDEX: None})
    assert source(read(without_index, form="thrift")) == THRIFT


def test_a_form_that_is_not_there_is_refused_with_the_one_that_is() -> None:
    with pytest.raises(
        DeserializeError, match=r"expected program 'model' as thrift.*Read it with form=\"json\""
    ):
        read(linear_torch_archive(), form="thrift")
    thrift_only = saved(linear_program(), formats=("thrift",))
    with pytest.raises(
        DeserializeError, match=r"expected program 'model' as json.*Read it with form=\"thrift\""
    ):
        read(thrift_only, form="json")


@pytest.mark.parametrize("formats", [("json",), ("thrift",), ("thrift", "json")])
def test_a_program_saved_in_any_choice_of_forms_loads(formats: Any) -> None:
    data = saved(linear_program(), formats=formats)
    records = read(data).records
    assert (JSON in records, THRIFT in records) == ("json" in formats, "thrift" in formats)
    expected = linear_program().module()(INPUT)
    assert torch.equal(pt2wire.load(io.BytesIO(data)).module()(INPUT), expected)
    if "json" in formats:
        assert torch.equal(torch.export.load(io.BytesIO(data)).module()(INPUT), expected)


def test_a_program_that_another_tool_added_is_read_from_its_json() -> None:
    added = {
        "models/second.json": original(JSON),
        "data/weights/second_weights_config.json": original(WEIGHTS_JSON),
        "data/constants/second_constants_config.json": original("data/constants/model_constants_config.json"),
    }
    archive = read(with_records(linear_archive(), added))
    assert list(archive.programs) == ["model", "second"]
    assert archive.paths["second"] == "<BytesIO>:models/second.json"


def test_integers_too_long_for_thrift_are_saved_as_json_with_a_warning() -> None:
    class Numbered(torch.nn.Module):
        def forward(self, x: torch.Tensor, number: int) -> torch.Tensor:
            return x + 1

    ep = torch.export.export(Numbered(), (torch.ones(3), 2**70))
    place = r"graph_module\.graph\.inputs\[1\]\.as_int"
    too_long = f"{place}: expected a 64-bit integer, as Thrift's are, found {2**70}"
    with pytest.warns(UserWarning, match=f"^model: saved as JSON only: {too_long}"):
        data = saved(ep)
    with pytest.raises(pt2wire.SerializeError, match=f"^{too_long}"):
        saved(ep, formats=("thrift",))
    archive = read(data)
    assert source(archive) == JSON
    assert archive.programs["model"].graph_module.graph.inputs[1] == Argument.of_int(2**70)
    assert pt2wire.digest(archive.programs["model"]) == pt2wire.digest(
        pt2wire.to_tree(pt2wire.load(io.BytesIO(data)))
    )


def nested_branches(depth: int) -> Callable[[torch.Tensor], torch.Tensor]:
    if depth == 0:
        return lambda x: x + 1
    inner = nested_branches(depth - 1)
    return lambda x: torch.cond(x.sum() > depth, inner, lambda x: x * 2, (x,))


def test_a_program_too_deep_for_thrift_is_saved_as_json_with_a_warning() -> None:
    class Nested(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nested_branches(13)(x)

    ep = torch.export.export(Nested(), (torch.ones(3),))
    branch = r"\.nodes\[2\]\.inputs\[1\]\.arg\.as_graph\.graph"
    too_deep = f"({branch}){{12}}.*: expected at most 64 structs and unions on a path"
    with pytest.warns(UserWarning, match=r"^model: saved as JSON only: graph_module\.graph" + too_deep):
        data = saved(ep)
    with pytest.raises(pt2wire.SerializeError, match=r"^graph_module\.graph" + too_deep):
        saved(ep, formats=("thrift",))
    assert source(read(data)) == JSON
