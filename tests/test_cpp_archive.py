"""The C++ archive reader: the same records, programs and weights as Python's, the same damage refused."""

from __future__ import annotations

import hashlib
import io
import json
import random
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pt2wire
import pytest
import torch
from pt2wire import DeserializeError
from pt2wire.archive.reader import ArchiveReader
from pt2wire.generated import json_codec, thrift_codec, types
from pt2wire.sparse import parts_of

from .helpers import cpp
from .helpers.archives import (
    linear_archive,
    linear_program,
    linear_torch_archive,
    record,
    saved,
    torch_saved,
    with_records,
)
from .helpers.families import FAMILIES
from .helpers.models import BEYOND, MODELS
from .helpers.schema_versions import MAJOR, MINOR, OLDER, OLDEST, REVISION, dotted
from .test_archive_directory import DAMAGE, HONEST, small_zip, streamed_zip

# They share a program that takes long to compile: another process would only wait for it.
pytestmark = pytest.mark.xdist_group("cpp_archive")

#: What the C++ reader says about some of the damage of test_archive_directory; all of it must be refused.
MESSAGES = {
    "empty": "found an empty file",
    "text": "found something else",
    "cut short": "the file is cut short, or other bytes follow",
    "bytes behind": "the file is cut short, or other bytes follow",
    "bytes in front": "something was put in front of it",
    "comment": "announces a comment that is not there",
    "second disk": "split over several files",
    "too many records": "holds more records than the end record says",
    "no entry in the directory": "the zip directory is damaged",
    "no local header": "no local header where the directory says",
    "data outside": "reaches beyond the end of the data",
    "another local name": "models/model.json: the local header has another name",
    "another local CRC": "the local header contradicts the directory",
    "encrypted": "the record is encrypted",
    "compressed by bzip2": "neither stored nor deflated",
    "stored with two sizes": "a stored record with two sizes",
    "one name twice": "two records have the same name",
    "one name in two cases": "two records have the same name",
    "parent folder": "not a plain relative path",
    "absolute name": "not a plain relative path",
    "backslash": "not a plain relative path",
    "name that is no text": "is not UTF-8",
    "name that is not said to be UTF-8": "is not UTF-8, or is not said to be",
    "second root": "a second root folder",
    "no folder": "not inside the archive's one root folder",
    "front with true offsets": "bytes between records that are no padding",
    "hidden record": "bytes between records that are no padding",
    "bytes before the directory": "bytes between records that are no padding",
    "another name in Unicode": "models/model.json: an extra field gives a record another name or comment",
    "another name in the local header's Unicode": "an extra field gives a record another name",
    "comment in Unicode": "an extra field gives a record another name or comment",
    "overlap": "two records share bytes",
}

WEIGHTS = (
    "parameters_of_nested_modules",
    "parameters_frozen_scalar_empty_unused",
    "buffers_persistent_and_not",
    "constants_lifted",
    "weights_tied",
    "weights_aliased",
    "weights_strided",
    "weights_and_inputs_of_every_dtype",
    "weights_with_special_values",
)

LISTED = (
    "cond_nested",
    "many_layers",
    "symbolic_ints_as_outputs",
    "symbolic_floats_in_arguments",
    "list_outputs",
)


def _answer(kind: str, data: bytes) -> cpp.Outcome:
    return cpp.answers(cpp.archive_reader(), [(kind, data)])[0]


def _contents(data: bytes) -> str | None:
    """What the C++ reader prints for these records, made by Python's reader; None if that refuses them."""
    try:
        reader = ArchiveReader(io.BytesIO(data))
        return "".join(f"{name} {bytes(reader.record(name)).hex()}\n" for name in reader.entries)
    except DeserializeError:
        return None


@pytest.mark.parametrize("make", HONEST.values(), ids=HONEST)
def test_records_are_read_as_python_reads_them(make: Callable[[], bytes]) -> None:
    outcome = _answer("zip", make())
    assert outcome.ok
    assert outcome.text.decode() == _contents(make())


def test_damaged_archives_are_refused_with_their_message() -> None:
    damaged = {name: damage(small_zip()) for name, (damage, _) in DAMAGE.items()}
    outcomes = cpp.answers(cpp.archive_reader(), [("zip", data) for data in damaged.values()])
    wrong = {
        name: outcome.text.decode()
        for name, outcome in zip(damaged, outcomes, strict=True)
        if outcome.ok or MESSAGES.get(name, "<memory>") not in outcome.text.decode()
    }
    assert not wrong


def test_no_prefix_of_an_archive_is_one() -> None:
    for data in (small_zip(8), streamed_zip(True)):
        outcomes = cpp.answers(cpp.archive_reader(), [("zip", data[:size]) for size in range(len(data))])
        assert not any(outcome.ok for outcome in outcomes)


def test_changed_archives_are_refused_or_read_as_python_reads_them() -> None:
    chance = random.Random(2)
    originals = [small_zip(), small_zip(8), streamed_zip(True), linear_torch_archive(), linear_archive()]
    cases = []
    for _ in range(3000):
        changed = bytearray(chance.choice(originals))
        for _ in range(chance.choice((1, 1, 2, 3))):
            # Mostly in the directory and the end records, which are the last few thousand bytes.
            at = (
                chance.randrange(len(changed))
                if chance.random() < 0.3
                else -chance.randrange(1, min(3000, len(changed)))
            )
            changed[at] = chance.choice((0, 1, 0xFF, chance.randrange(256)))
        cases.append(bytes(changed))
    outcomes = cpp.answers(cpp.archive_reader(), [("zip", data) for data in cases])
    for outcome, data in zip(outcomes, cases, strict=True):
        expected = _contents(data)
        if expected is not None:
            assert outcome.ok, outcome.text
            assert outcome.text.decode() == expected


WRITERS: dict[str, Callable[[torch.export.ExportedProgram], bytes]] = {
    "deflated": saved,
    "stored": lambda program: saved(program, compress=False),
    "PyTorch": torch_saved,
}


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_weights_and_constants_have_the_elements_of_the_tensors(
    name: str, write: Callable[[torch.export.ExportedProgram], bytes]
) -> None:
    program = MODELS[name].program()
    data = write(program)
    tensors = {
        "weights": program.state_dict,
        "constants": {
            key: value for key, value in program.constants.items() if isinstance(value, torch.Tensor)
        },
    }
    for kind, expected in tensors.items():
        outcome = _answer(kind, data)
        assert outcome.ok, outcome.text
        found = {line.split(" ")[0]: line for line in outcome.text.decode().splitlines()}
        assert found == {key: _tensor_line(key, value) for key, value in expected.items()}


def _tensor_line(name: str, tensor: torch.Tensor) -> str:
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    raw = bytes(plain.reshape(-1).view(torch.uint8).tolist()) if plain.numel() else b""
    sizes = "".join(f" {size}" for size in tensor.shape)
    return f"{name} {str(tensor.dtype).removeprefix('torch.')}{sizes} {raw.hex()}"


def test_mapped_weights_are_aligned_and_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(saved(linear_program(), compress=False))
    source = tmp_path / "aligned.cpp"
    source.write_text(
        '#include "pt2wire/archive.h"\n'
        "#include <cstdio>\n"
        "int main(int, char** argv) {\n"
        "  const auto archive = pt2wire::Archive::open(argv[1]);\n"
        "  const auto program = archive.program();\n"
        "  const auto weights = archive.weights();\n"
        "  for (const auto& weight : weights.list) {\n"
        "    const auto address = reinterpret_cast<std::uintptr_t>(weight.storage());\n"
        '    std::printf("%d", static_cast<int>(address % 64));\n'
        "  }\n"
        '  std::printf(" %d", weights.list[0].payload.data() == archive.weights().list[0].payload.data());\n'
        "}\n"
    )
    program = cpp.build(source, *cpp.WARNINGS)
    assert cpp.run([program, path]).decode() == "0" * len(linear_program().state_dict) + " 1"


def test_a_deflated_record_that_claims_too_much_is_refused_before_memory_is_taken() -> None:
    data = bytearray(small_zip(8))
    name = b"archive/models/model.json"
    at = data.rindex(name)
    for field in (data.index(name) - 30 + 22, at - 46 + 24):
        data[field : field + 4] = (12 << 20).to_bytes(4, "little")
    outcome = _answer("zip", bytes(data))
    assert not outcome.ok
    assert b"bytes claim to hold 12582912, more than deflate or the limits allow" in outcome.text


def test_several_programs_in_one_archive() -> None:
    data = saved({"first": linear_program(), "second": MODELS["cond"].program()})
    outcome = _answer("program", data)
    archive = pt2wire.read(io.BytesIO(data))
    expected = "".join(
        f"{name} thrift {len(record(data, f'thrift/{name}.compact'))} {len(tree.graph_module.graph.nodes)}\n"
        for name, tree in archive.programs.items()
    )
    assert outcome == cpp.Outcome(True, expected.encode())


def test_a_deflated_record_without_zlib_names_the_option() -> None:
    reader = cpp.build(cpp.SOURCES / "archive.cpp", *cpp.WARNINGS)
    (outcome,) = cpp.answers(reader, [("program", linear_archive())])
    assert not outcome.ok
    assert b"<memory>:thrift/" in outcome.text
    assert b"-DPT2WIRE_WITH_ZLIB=1" in outcome.text
    (outcome,) = cpp.answers(reader, [("program", saved(linear_program(), compress=False))])
    assert outcome.ok


def _weights_config(change: Callable[[types.PayloadMeta], None]) -> dict[str, bytes]:
    """The weights' table with its first entry changed, and an index that knows of the change."""
    name = "thrift/model_weights.compact"
    config = thrift_codec.decode(types.PayloadConfig, record(linear_archive(), name))
    change(next(iter(config.config.values())))
    return _reindexed({name: thrift_codec.encode(config)})


def _reindexed(changes: dict[str, bytes]) -> dict[str, bytes]:
    index = thrift_codec.decode(types.ArchiveIndex, record(linear_archive(), "thrift/index.compact"))
    for entry in index.entries:
        if entry.record in changes:
            content = changes[entry.record]
            entry.crc32, entry.size = zlib.crc32(content), len(content)
            entry.sha256 = hashlib.sha256(content).hexdigest()
    return {**changes, "thrift/index.compact": thrift_codec.encode(index)}


def _set_sizes(meta: types.PayloadMeta, *sizes: int) -> None:
    assert meta.tensor_meta is not None
    meta.tensor_meta.sizes = [types.SymInt.create(as_int=size) for size in sizes]


def _set_expression(meta: types.PayloadMeta) -> None:
    assert meta.tensor_meta is not None
    meta.tensor_meta.sizes[0] = types.SymInt.create(as_expr=types.SymExpr(expr_str="s0"))


def _set_offset(meta: types.PayloadMeta) -> None:
    assert meta.tensor_meta is not None
    meta.tensor_meta.storage_offset = types.SymInt.create(as_int=1)


def _set_dtype(meta: types.PayloadMeta) -> None:
    assert meta.tensor_meta is not None
    meta.tensor_meta.dtype = types.ScalarType.UNKNOWN


def _set_double(meta: types.PayloadMeta) -> None:
    assert meta.tensor_meta is not None
    meta.tensor_meta.dtype = types.ScalarType.DOUBLE


def _set_layout(meta: types.PayloadMeta) -> None:
    assert meta.tensor_meta is not None
    meta.tensor_meta.layout = types.Layout.Unknown


def _set_path(meta: types.PayloadMeta) -> None:
    meta.path_name = "../weight_0"


def _unset_meta(meta: types.PayloadMeta) -> None:
    meta.tensor_meta = None


WEIGHT_LIES: dict[str, tuple[Callable[[types.PayloadMeta], None], str]] = {
    "larger": (lambda meta: _set_sizes(meta, 4, 4), "needs 64 bytes of the payload"),
    "negative": (lambda meta: _set_sizes(meta, -1, 4), "expected sizes of at least 0, found -1"),
    "overflow": (lambda meta: _set_sizes(meta, 2**62, 4), "exceed 64 bits"),
    "fewer sizes": (lambda meta: _set_sizes(meta, 3), "not as many sizes as strides"),
    "symbolic": (_set_expression, "expected integers as sizes, found a symbolic expression"),
    "offset": (_set_offset, "needs 52 bytes of the payload"),
    "no dtype": (_set_dtype, "expected a dtype, found none"),
    "no layout": (_set_layout, "expected a layout, found none"),
    "other record": (_set_path, "expected this record, but the archive has none"),
    "no metadata": (_unset_meta, "expected metadata of a tensor, found none"),
}


@pytest.mark.parametrize(("change", "message"), WEIGHT_LIES.values(), ids=WEIGHT_LIES)
def test_metadata_that_lie_about_a_weight_are_refused(
    change: Callable[[types.PayloadMeta], None], message: str
) -> None:
    outcome = _answer("weights", with_records(linear_archive(), _weights_config(change)))
    assert not outcome.ok
    assert message in outcome.text.decode()
    assert "<memory>:data/weights/" in outcome.text.decode()


def _major(version: int, minor: int) -> dict[str, bytes]:
    name = "thrift/model.compact"
    program = thrift_codec.decode(types.ExportedProgram, record(linear_archive(), name))
    program.schema_version = types.SchemaVersion(version, minor)
    return _reindexed({name: thrift_codec.encode(program)})


def _other_hash() -> dict[str, bytes]:
    index = thrift_codec.decode(types.ArchiveIndex, record(linear_archive(), "thrift/index.compact"))
    (entry,) = (entry for entry in index.entries if entry.record == "thrift/model.compact")
    entry.sha256 = "0" * 64
    return {"thrift/index.compact": thrift_codec.encode(index)}


_NOT_THOSE = "thrift/model.compact: the bytes are not those that the archive's index was made for"

RECORDS: dict[str, tuple[Callable[[], dict[str, bytes | None]], str]] = {
    "JSON changed": (
        lambda: {"models/model.json": b"{}"},
        "models/model.json: the struct ExportedProgram lacks graph_module, ",
    ),
    "weights' JSON changed": (lambda: {"data/weights/model_weights_config.json": b"{}"}, ""),
    "Thrift changed": (
        lambda: {"thrift/model.compact": record(linear_archive(), "thrift/model.compact") + b"\0"},
        _NOT_THOSE,
    ),
    "other hash": (lambda: dict(_other_hash()), _NOT_THOSE),
    "no index": (lambda: {"thrift/index.compact": None}, ""),
    "no Thrift": (
        lambda: {"thrift/model.compact": None},
        "thrift/model.compact: the archive's index lists this record, but the archive has none",
    ),
    "JSON missing": (
        lambda: {"models/model.json": None},
        "models/model.json: the archive's index lists this record, but the archive has none",
    ),
    "no format": (lambda: {"archive_format": None}, "archive_format: expected a .pt2 archive"),
    "other format": (lambda: {"archive_format": b"pt1"}, "archive_format: expected a .pt2 archive"),
    "no version of archives": (lambda: {"archive_version": None}, ""),
    "other version of archives": (
        lambda: {"archive_version": b"1"},
        'archive_version: expected version 0 of the archive, found "1"',
    ),
    "big-endian": (lambda: {"byteorder": b"big"}, "byteorder: expected little-endian weights"),
    "next major version": (
        lambda: dict(_major(MAJOR + 1, 0)),
        f"the format version is {MAJOR + 1}.0, this header reads {OLDEST} to {MAJOR}.x",
    ),
    "old version": (
        lambda: dict(_major(*OLDER)),
        f"the format version is {dotted(OLDER)}, this header reads {OLDEST} to {MAJOR}.x",
    ),
    "newer minor version": (lambda: dict(_major(MAJOR, 99)), ""),
}


@pytest.mark.parametrize(("changes", "message"), RECORDS.values(), ids=RECORDS)
def test_records_that_do_not_belong_together_are_refused(
    changes: Callable[[], dict[str, bytes | None]], message: str
) -> None:
    outcome = _answer("program", with_records(linear_archive(), changes()))
    assert outcome.ok == (message == "")
    assert message in outcome.text.decode()


def _set_version(tree: types.ExportedProgram, minor: int) -> None:
    tree.schema_version = types.SchemaVersion(MAJOR, minor)


def _set_revision(tree: types.ExportedProgram, revision: int) -> None:
    tree.writer = types.Writer("other", "1", revision)


#: What a program says of its writer, and whether that may know more fields than the header.
WRITERS: dict[str, tuple[Callable[[types.ExportedProgram], None], bool]] = {
    "this version": (lambda tree: _set_version(tree, MINOR), False),
    "oldest version": (lambda tree: _set_version(tree, types.OLDEST_VERSION[1]), False),
    "newer version": (lambda tree: _set_version(tree, MINOR + 1), True),
    "this revision": (lambda tree: _set_revision(tree, REVISION), False),
    "newer revision": (lambda tree: _set_revision(tree, REVISION + 1), True),
}


def _with_unknown_field(form: str, change: Callable[[types.ExportedProgram], None]) -> bytes:
    """An archive whose program has one field that no schema has."""
    tree = thrift_codec.decode(types.ExportedProgram, record(linear_archive(), "thrift/model.compact"))
    change(tree)
    if form == "json":
        text = json.dumps(json.loads(json_codec.encode(tree)) | {"future": 1})
        return with_records(linear_archive(), {"models/model.json": text.encode()})
    field = b"\x06\x88\x0e\x02"  # 900, i64, value 1
    content = thrift_codec.encode(tree)[:-1] + field + b"\0"
    return with_records(linear_archive(), _reindexed({"thrift/model.compact": content}))


@pytest.mark.parametrize("form", ["thrift", "json"])
@pytest.mark.parametrize(("change", "is_newer"), WRITERS.values(), ids=WRITERS)
def test_an_unknown_field_is_damage_unless_the_writer_is_newer(
    change: Callable[[types.ExportedProgram], None], is_newer: bool, form: str
) -> None:
    data = _with_unknown_field(form, change)
    outcome = _answer("program", data)
    refusal = _refusal(data)
    assert (outcome.ok, refusal == "") == (is_newer, is_newer)
    assert is_newer or "found one that it does not have" in refusal
    path = "models/model.json" if form == "json" else "thrift/model.compact"
    expected = f"model {form} " if is_newer else f"<memory>:{path}: expected fields of format {MAJOR}."
    assert outcome.text.decode().startswith(expected)


def _refusal(data: bytes) -> str:
    """What Python says of an archive that it refuses."""
    try:
        with warnings.catch_warnings(record=True):
            pt2wire.read(io.BytesIO(data))
    except DeserializeError as error:
        return str(error)
    return ""


def _indented() -> bytes:
    return json.dumps(json.loads(record(linear_archive(), "models/model.json")), indent=1).encode()


#: What becomes of an archive, as what it is read, and which form of the program that gives.
FORMS: dict[str, tuple[Callable[[], dict[str, bytes | None]], str, str]] = {
    "as it is": (dict, "program", "thrift"),
    "no index": (lambda: {"thrift/index.compact": None}, "program", "json"),
    "JSON changed": (lambda: {"models/model.json": _indented()}, "program", "json"),
    "weights' JSON changed": (
        lambda: {"data/weights/model_weights_config.json": b'{"config":{}}'},
        "program",
        "json",
    ),
    "JSON demanded": (dict, "json", "json"),
    "Thrift demanded": (lambda: {"models/model.json": _indented()}, "thrift", "thrift"),
    "Thrift demanded without index": (lambda: {"thrift/index.compact": None}, "thrift", "thrift"),
    "other hash, not compared": (lambda: dict(_other_hash()), "crc", "thrift"),
}


@pytest.mark.parametrize(("changes", "kind", "form"), FORMS.values(), ids=FORMS)
def test_the_form_that_counts_is_read(
    changes: Callable[[], dict[str, bytes | None]], kind: str, form: str
) -> None:
    """As Python does: what another tool changed in JSON is the truth."""
    data = with_records(linear_archive(), changes())
    size = len(record(data, "models/model.json" if form == "json" else "thrift/model.compact"))
    nodes = len(pt2wire.to_tree(linear_program()).graph_module.graph.nodes)
    assert _answer(kind, data) == (True, f"model {form} {size} {nodes}\n".encode())
    if kind == "program":
        with warnings.catch_warnings(record=True):
            assert pt2wire.read(io.BytesIO(data)).paths["model"].endswith(".json") == (form == "json")


def test_changed_bytes_are_noticed_by_their_crc_as_well() -> None:
    changed = {"thrift/model.compact": record(linear_archive(), "thrift/model.compact") + b"\0"}
    outcome = _answer("crc", with_records(linear_archive(), changed))
    assert not outcome.ok
    assert _NOT_THOSE in outcome.text.decode()


def test_archives_of_pytorch_are_read() -> None:
    for name in ("cond_nested", "many_layers", "constants_lifted"):
        data = torch_saved(MODELS[name].program())
        size, tree = len(record(data, "models/model.json")), pt2wire.read(io.BytesIO(data)).programs["model"]
        expected = f"model json {size} {len(tree.graph_module.graph.nodes)}\n"
        assert _answer("program", data) == (True, expected.encode())


def test_pickles_in_archives_of_pytorch_are_named_not_opened() -> None:
    meta = types.PayloadMeta("custom_obj_0", False, True, None)
    config = json_codec.encode(types.PayloadConfig({"handle": meta}))
    for kind in ("weights", "constants"):
        records = {f"data/{kind}/model_{kind}_config.json": config, f"data/{kind}/custom_obj_0": b"PK"}
        outcome = _answer(kind, with_records(linear_torch_archive(), records))
        assert outcome == (True, b"handle is a pickle, which only Python can open\n")


def _lines(fqn: str, tensor: torch.Tensor) -> Iterator[str]:
    """What tests/cpp/archive.cpp prints of a weight that it lists, or that is left out."""
    if tensor.layout is not torch.strided:
        yield f"{fqn} is a tensor of a sparse or another layout"
        for name, part in parts_of(tensor).items():
            yield _tensor_line(f"{fqn}.{name}", part)
    elif str(tensor.dtype)[6:] in types.TORCH_NAMES[types.ExtraScalarType].values():
        yield f"{fqn} is a tensor of a dtype that only extra_dtype tells"
    else:
        yield _tensor_line(fqn, tensor)


@pytest.mark.parametrize("name", ["sparse_coo_weights", "float4_weights_and_inputs"])
def test_weights_that_are_no_strided_tensors_of_known_dtypes_are_named(name: str) -> None:
    """The parts of sparse ones can be read."""
    program = BEYOND[name].program()
    program.state_dict["strided"] = torch.ones(2)
    data = saved(program)
    for kind, tensors in (("weights", program.state_dict), ("constants", program.constants)):
        outcome = _answer(kind, data)
        expected = [line for fqn, tensor in tensors.items() for line in _lines(fqn, tensor)]
        assert outcome.ok, outcome.text
        assert sorted(outcome.text.decode().splitlines()) == sorted(expected)


def test_a_dtype_of_a_newer_writer_leaves_out_its_weight_alone() -> None:
    name = "thrift/model_weights.compact"
    tables = [record(linear_archive(), name), _weights_config(_set_double)[name]]
    (place,) = (at for at, (one, other) in enumerate(zip(*tables, strict=True)) if one != other)
    newer = bytearray(tables[0])
    newer[place] = 2 * 63  # the number 63 in zigzag
    outcome = _answer("weights", with_records(linear_archive(), _reindexed({name: bytes(newer)})))
    first, *others = pt2wire.read(io.BytesIO(linear_archive())).weights["model"]
    *lines, last = outcome.text.decode().splitlines()
    assert [line.split(" ")[0] for line in lines] == others
    assert last == f"{first} is a tensor of a dtype that this header does not know"


def test_weights_of_older_versions_of_pytorch_are_refused_by_name() -> None:
    changes = {"data/weights/model_weights_config.json": None, "data/weights/model.pt": b"PK"}
    outcome = _answer("weights", with_records(linear_torch_archive(), changes))
    assert not outcome.ok
    assert b"the weights are one pickle, as torch 2.8 wrote them: load the file with torch" in outcome.text


def test_a_program_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    source, path = tmp_path / "other.cpp", tmp_path / "model.pt2"
    source.write_text(
        '#include <iostream>\n#include "pt2wire/archive.h"\nint main(int, char** argv) try {\n'
        '  pt2wire::Archive::open(argv[1]).program("encoder");\n'
        "} catch (const pt2wire::Error& error) { std::cout << error.what(); }\n"
    )
    path.write_bytes(linear_torch_archive())
    message = "expected this record, but the archive has none; it has the programs: model"
    found = cpp.run([cpp.build(source, *cpp.ZLIB), path]).decode()
    assert found == f"{path}:models/encoder.json: {message}"


_SHA256 = r"""
#include <iostream>
#include <iterator>
#include "pt2wire/sha256.h"
int main() {
  std::string data((std::istreambuf_iterator<char>(std::cin)), {});
  for (std::size_t size = 0; size <= data.size(); size += size < 200 ? 1 : 997) {
    std::cout << pt2wire::sha256(reinterpret_cast<const std::uint8_t*>(data.data()), size) << "\n";
  }
}
"""


def test_hashes_are_those_of_the_standard(tmp_path: Path) -> None:
    source = tmp_path / "hash.cpp"
    source.write_text(_SHA256)
    data = random.Random(1).randbytes(20_000)
    sizes = [*range(200), *range(200, len(data) + 1, 997)]
    found = cpp.run([cpp.build(source, *cpp.SANITIZED, *cpp.WARNINGS)], data).decode().split()
    assert found == [hashlib.sha256(data[:size]).hexdigest() for size in sizes]


@pytest.mark.parametrize("name", LISTED)
def test_listing_of_the_example_equals_pythons(name: str, tmp_path: Path) -> None:
    for write in (saved, torch_saved):
        _compare_listings(tmp_path / "model.pt2", write(MODELS[name].program()))


def test_listing_of_a_transformer_equals_pythons(tmp_path: Path) -> None:
    _compare_listings(tmp_path / "model.pt2", saved(FAMILIES["bert_dynamic"].program()))


def _compare_listings(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    inspect = cpp.build(cpp.ROOT / "examples" / "cpp" / "inspect.cpp", *cpp.WARNINGS, *cpp.ZLIB)
    listing = subprocess.run(
        [sys.executable, cpp.ROOT / "examples" / "listing.py", path],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = cpp.run([inspect, path]).decode()
    assert found == listing
    assert found.count("\nnode ") > 0
    assert found.count("\nweight ") == len(pt2wire.read(path).weights["model"])


@pytest.mark.parametrize("what", ["missing", "folder"])
def test_the_example_says_what_is_wrong_with_a_path(what: str, tmp_path: Path) -> None:
    inspect = cpp.build(cpp.ROOT / "examples" / "cpp" / "inspect.cpp", *cpp.WARNINGS, *cpp.ZLIB)
    path = tmp_path if what == "folder" else tmp_path / "none.pt2"
    done = subprocess.run([inspect, path], capture_output=True, check=False)
    assert done.returncode == 1
    assert done.stdout == b""
    assert done.stderr.startswith(f"{path}: ".encode())
