"""`validate` on files: damage, forms that disagree, payloads that are too short; nothing is ever raised."""

from __future__ import annotations

import io
import json
import random
import re
import warnings
from collections.abc import Mapping
from pathlib import Path

import pt2wire
import pytest
import torch
from pt2wire.validation import RULES, validate
from torch import nn

from .helpers.archives import linear_program, record, saved, with_records

WEIGHT = "data/weights/weight_0"


@pytest.fixture(scope="module")
def file() -> bytes:
    return saved(torch.export.export(nn.Linear(4, 2), (torch.ones(3, 4),)))


def changed(file: bytes, changes: Mapping[str, bytes | None]) -> io.BytesIO:
    return io.BytesIO(with_records(file, changes))


def replaced(file: bytes, name: str, old: bytes, new: bytes) -> io.BytesIO:
    return changed(file, {name: record(file, name).replace(old, new)})


def test_sound_file_as_path_and_as_file_object(file: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    path.write_bytes(file)
    assert validate(path) == validate(str(path)) == validate(io.BytesIO(file)) == []


@pytest.mark.parametrize(
    "content",
    [b"", b"PK", b"no archive at all", b"\x00" * 5000],
    ids=["empty", "two bytes", "text", "zeros"],
)
def test_what_is_no_archive(content: bytes) -> None:
    assert [finding.rule for finding in validate(io.BytesIO(content))] == ["file"]


def test_archive_without_a_program(file: bytes) -> None:
    gone = set(pt2wire.read(io.BytesIO(file)).records) - {"archive_format", "version"}
    found = validate(changed(file, dict.fromkeys(gone)))
    assert [(finding.rule, finding.message) for finding in found] == [
        ("file", "expected at least one program (models/NAME.json), found none")
    ]


def test_archive_cut_anywhere(file: bytes) -> None:
    places = random.Random(0).sample(range(len(file)), 40)
    for place in places:
        assert [finding.rule for finding in validate(io.BytesIO(file[:place]))] == ["file"], place


def test_json_that_differs_from_thrift_names_the_first_difference(file: bytes) -> None:
    found = validate(replaced(file, "models/model.json", b"aten.linear", b"aten.conv2d"))
    assert [finding.rule for finding in found].count("forms-differ") == 1
    finding = next(finding for finding in found if finding.rule == "forms-differ")
    assert finding.path.endswith(".compact:graph_module.graph.nodes[0].target")
    assert (
        finding.message == "expected the same program as in <BytesIO>:models/model.json, found a difference"
    )


def test_config_that_differs_from_thrift(file: bytes) -> None:
    found = validate(replaced(file, "data/weights/model_weights_config.json", b'"as_int":2', b'"as_int":1'))
    assert [finding.path.rpartition(":")[2] for finding in found if finding.rule == "forms-differ"] == [
        "weights.config['weight'].tensor_meta.sizes[0].as_int"
    ]


def test_both_forms_are_checked_where_they_differ(file: bytes) -> None:
    found = validate(replaced(file, "models/model.json", b"torch.ops.aten.linear.default", b"os.system"))
    unsafe = [finding for finding in found if finding.unsafe]
    assert [(finding.rule, finding.path) for finding in unsafe] == [
        ("target", "<BytesIO>:models/model.json:graph_module.graph.nodes[0].target")
    ]


def test_changed_thrift_is_a_finding(file: bytes) -> None:
    found = validate(replaced(file, "thrift/model.compact", b"aten.linear", b"aten.conv2d"))
    assert [finding.rule for finding in found] == ["file"]
    assert "the bytes that the archive's index was made for, found others" in found[0].message


def test_payload_that_is_too_short(file: bytes) -> None:
    cut = changed(file, {WEIGHT: record(file, WEIGHT)[:-4]})
    assert [(finding.rule, finding.message) for finding in validate(cut)] == [
        (
            "payload-size",
            "expected 32 bytes for sizes (2, 4), strides (4, 1) and offset 0, "
            "found 28 in the payload 'weight_0'",
        )
    ]


def test_payload_that_is_missing(file: bytes) -> None:
    gone = changed(file, {WEIGHT: None})
    assert {finding.rule for finding in validate(gone)} == {"file"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "expected this record, but the archive has none"),
        (b"no pickle", "expected example inputs as torch.save writes them: "),
        (b"", None),
    ],
    ids=["missing", "damaged", "none"],
)
def test_example_inputs(file: bytes, content: bytes | None, message: str | None) -> None:
    found = validate(changed(file, {"data/sample_inputs/model.pt": content}))
    assert [finding.rule for finding in found] == ["example-inputs"] * (message is not None)
    for finding in found:
        assert finding.message.startswith(message or "")


def test_every_rule_about_files_is_tested_here() -> None:
    assert {rule.id for rule in RULES.values() if rule.checked == "file"} == {
        "example-inputs",
        "more",
        "file",
        "forms-differ",
        "payload-size",
    }


def test_any_flipped_byte_gives_findings_or_an_archive_that_loads_alike(file: bytes) -> None:
    chance = random.Random(1)
    for _ in range(150):
        place = chance.randrange(len(file))
        mutated = bytearray(file)
        mutated[place] ^= 1 << chance.randrange(8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = validate(io.BytesIO(bytes(mutated)))
            if not found:
                # Padding and times of the container carry nothing.
                assert (
                    pt2wire.read(io.BytesIO(bytes(mutated))).programs
                    == pt2wire.read(io.BytesIO(file)).programs
                )


def test_missing_file_is_an_os_error() -> None:
    with pytest.raises(FileNotFoundError):
        validate("nowhere.pt2")


def test_wrong_argument_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        validate(3)  # type: ignore[arg-type]


def test_findings_are_listed_up_to_a_number_and_each_in_a_few_words(file: bytes) -> None:
    name = "models/model.json"
    program = json.loads(record(file, name))
    nodes = program["graph_module"]["graph"]["nodes"]
    nodes[0]["name"] = "x" * 5_000
    nodes += [{**nodes[0], "target": "evil"} for _ in range(2_000)]
    found = validate(changed(file, {name: json.dumps(program).encode()}))
    assert 1_000 < len(found) < 1_100
    assert "more" in {finding.rule for finding in found}
    assert max(len(str(finding)) for finding in found) < 5_000


def test_text_that_no_file_can_hold_is_found() -> None:
    tree = pt2wire.to_tree(linear_program())
    tree.graph_module.graph.nodes[0].metadata["note"] = "a\ud800"
    (finding,) = pt2wire.validate(tree)
    assert finding.path == "graph_module.graph.nodes[0].metadata['note']"
    with pytest.raises(pt2wire.SerializeError, match=re.escape(f"{finding.path}: {finding.message}")):
        pt2wire.to_json(tree)
