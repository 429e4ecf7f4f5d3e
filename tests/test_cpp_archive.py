"""The C++ archive reader: the same records, programs and weights as Python's, the same damage refused."""

from __future__ import annotations

import io
import random
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pt2wire
import pytest
import torch
from pt2wire import DeserializeError
from pt2wire.archive.reader import ArchiveReader
from pt2wire.generated import thrift_codec, types

from .helpers import cpp
from .helpers.archives import linear_archive, linear_program, linear_torch_archive, saved, with_records
from .helpers.families import FAMILIES
from .helpers.models import MODELS
from .helpers.schema_versions import MAJOR, OLDER, OLDEST, dotted
from .test_archive_directory import DAMAGE, HONEST, small_zip, streamed_zip

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
    "second root": "a second root folder",
    "no folder": "not inside the archive's one root folder",
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


def _reader() -> Path:
    flags = (*cpp.SANITIZED, *cpp.WARNINGS, *cpp.ZLIB)
    return cpp.build(cpp.SOURCES / "archive.cpp", *flags, compiler="clang++")


def _answer(kind: str, data: bytes) -> cpp.Outcome:
    return cpp.answers(_reader(), [(kind, data)])[0]


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
    outcomes = cpp.answers(_reader(), [("zip", data) for data in damaged.values()])
    wrong = {
        name: outcome.text.decode()
        for name, outcome in zip(damaged, outcomes, strict=True)
        if outcome.ok or MESSAGES.get(name, "<memory>") not in outcome.text.decode()
    }
    assert not wrong


def test_no_prefix_of_an_archive_is_one() -> None:
    for data in (small_zip(8), streamed_zip(True)):
        outcomes = cpp.answers(_reader(), [("zip", data[:size]) for size in range(len(data))])
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
    outcomes = cpp.answers(_reader(), [("zip", data) for data in cases])
    for outcome, data in zip(outcomes, cases, strict=True):
        expected = _contents(data)
        if expected is not None:
            assert outcome.ok, outcome.text
            assert outcome.text.decode() == expected


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("compress", [True, False])
def test_weights_and_constants_have_the_elements_of_the_tensors(name: str, compress: bool) -> None:
    program = MODELS[name].program()
    data = saved(program, compress=compress)
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
        data[field : field + 4] = (60 << 20).to_bytes(4, "little")
    outcome = _answer("zip", bytes(data))
    assert not outcome.ok
    assert b"bytes claim to hold 62914560, more than deflate or the limits allow" in outcome.text


def test_several_programs_in_one_archive() -> None:
    data = saved({"first": linear_program(), "second": MODELS["cond"].program()})
    outcome = _answer("program", data)
    archive = pt2wire.read(io.BytesIO(data))
    expected = "".join(
        f"{name} {len(tree.graph_module.graph.nodes)}\n" for name, tree in archive.programs.items()
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


def _thrift_record(data: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read(f"{archive.namelist()[0].split('/')[0]}/{name}")


def _weights_config(change: Callable[[types.PayloadMeta], None]) -> dict[str, bytes]:
    """The weights' table with its first entry changed, and an index that knows of the change."""
    record = "thrift/model_weights.compact"
    config = thrift_codec.decode(types.PayloadConfig, _thrift_record(linear_archive(), record))
    change(next(iter(config.config.values())))
    return _reindexed({record: thrift_codec.encode(config)})


def _reindexed(changes: dict[str, bytes]) -> dict[str, bytes]:
    index = thrift_codec.decode(types.ArchiveIndex, _thrift_record(linear_archive(), "thrift/index.compact"))
    for entry in index.entries:
        if entry.record in changes:
            content = changes[entry.record]
            entry.crc32, entry.size = zlib.crc32(content), len(content)
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


def _set_layout(meta: types.PayloadMeta) -> None:
    assert meta.tensor_meta is not None
    meta.tensor_meta.layout = types.Layout.SparseCoo


def _set_path(meta: types.PayloadMeta) -> None:
    meta.path_name = "../weight_0"


def _set_pickle(meta: types.PayloadMeta) -> None:
    meta.use_pickle = True


def _unset_meta(meta: types.PayloadMeta) -> None:
    meta.tensor_meta = None


WEIGHT_LIES: dict[str, tuple[Callable[[types.PayloadMeta], None], str]] = {
    "larger": (lambda meta: _set_sizes(meta, 4, 4), "needs 64 bytes of the payload"),
    "negative": (lambda meta: _set_sizes(meta, -1, 4), "expected sizes of at least 0, found -1"),
    "overflow": (lambda meta: _set_sizes(meta, 2**62, 4), "exceed 64 bits"),
    "fewer sizes": (lambda meta: _set_sizes(meta, 3), "not as many sizes as strides"),
    "symbolic": (_set_expression, "expected integers as sizes, found a symbolic expression"),
    "offset": (_set_offset, "needs 52 bytes of the payload"),
    "no dtype": (_set_dtype, "expected a dtype that this header knows, found number 0"),
    "sparse": (_set_layout, "expected a strided tensor"),
    "other record": (_set_path, "expected this record, but the archive has none"),
    "pickle": (_set_pickle, "the payload is a pickle, which only Python can read"),
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
    record = "thrift/model.compact"
    program = thrift_codec.decode(types.ExportedProgram, _thrift_record(linear_archive(), record))
    program.schema_version = types.SchemaVersion(version, minor)
    return _reindexed({record: thrift_codec.encode(program)})


RECORDS: dict[str, tuple[Callable[[], dict[str, bytes | None]], str]] = {
    "JSON changed": (lambda: {"models/model.json": b"{}"}, "models/model.json: the record was changed after"),
    "weights' JSON changed": (
        lambda: {"data/weights/model_weights_config.json": b"{}"},
        "model_weights_config.json: the record was changed after",
    ),
    "Thrift changed": (
        lambda: {"thrift/model.compact": _thrift_record(linear_archive(), "thrift/model.compact") + b"\0"},
        "thrift/model.compact: the record was changed after",
    ),
    "no index": (lambda: {"thrift/index.compact": None}, "thrift/index.compact: expected this record"),
    "no Thrift": (lambda: {"thrift/model.compact": None}, "stored as JSON only: convert the file"),
    "JSON missing": (
        lambda: {"models/model.json": None},
        "models/model.json: the archive's index lists this record, but the archive has none",
    ),
    "no format": (lambda: {"archive_format": None}, "archive_format: expected a .pt2 archive"),
    "other format": (lambda: {"archive_format": b"pt1"}, "archive_format: expected a .pt2 archive"),
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


@pytest.mark.parametrize("name", LISTED)
def test_listing_of_the_example_equals_pythons(name: str, tmp_path: Path) -> None:
    _compare_listings(tmp_path / "model.pt2", saved(MODELS[name].program()))


def test_listing_of_a_transformer_equals_pythons(tmp_path: Path) -> None:
    _compare_listings(tmp_path / "model.pt2", saved(FAMILIES["bert_dynamic"].program()))


def _compare_listings(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    inspect = cpp.build(cpp.ROOT / "examples" / "cpp" / "inspect.cpp", "-O1", *cpp.WARNINGS, *cpp.ZLIB)
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
    inspect = cpp.build(cpp.ROOT / "examples" / "cpp" / "inspect.cpp", "-O1", *cpp.WARNINGS, *cpp.ZLIB)
    path = tmp_path if what == "folder" else tmp_path / "none.pt2"
    done = subprocess.run([inspect, path], capture_output=True, check=False)
    assert done.returncode == 1
    assert done.stdout == b""
    assert done.stderr.startswith(f"{path}: ".encode())


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
@pytest.mark.parametrize("zlib_option", ["ON", "OFF"])
def test_the_example_builds_with_cmake(zlib_option: str, tmp_path: Path) -> None:
    source = cpp.ROOT / "examples" / "cpp"
    cpp.run(["cmake", "-S", source, "-B", tmp_path, f"-DPT2WIRE_WITH_ZLIB={zlib_option}"])
    cpp.run(["cmake", "--build", tmp_path])
    path = tmp_path / "model.pt2"
    path.write_bytes(linear_archive())
    done = subprocess.run([tmp_path / "inspect", path], capture_output=True, check=False)
    assert (done.returncode == 0) == (zlib_option == "ON")
