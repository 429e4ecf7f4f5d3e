"""Archives of a few kilobytes that inflate to much: what reading all of one takes stays below 64 MiB."""

from __future__ import annotations

import hashlib
import io
import json
import random
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pt2wire.generated import json_codec, thrift_codec, types

from .helpers import cpp
from .helpers.archives import linear_archive, record, saved
from .helpers.models import MODELS

_MIB = 1 << 20
_INDEX = "thrift/index.compact"
_CONFIG = "thrift/model_weights.compact"
_CLAIM = "bytes claim to hold"
_BUDGET = "the document needs more memory than its size allows"


def _deflated(changes: dict[str, bytes | None]) -> bytes:
    """The small archive with other records, all of them deflated."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(linear_archive())) as old, zipfile.ZipFile(made, "w", 8) as new:
        root = old.namelist()[0].split("/")[0]
        names = [name.removeprefix(f"{root}/") for name in old.namelist()]
        for name in dict.fromkeys((*names, *changes)):
            content = changes[name] if name in changes else old.read(f"{root}/{name}")
            if content is not None:
                new.writestr(f"{root}/{name}", content)
    return made.getvalue()


def _indexed(changes: dict[str, bytes]) -> dict[str, bytes | None]:
    """The changes, and an index that knows of them."""
    index = thrift_codec.decode(types.ArchiveIndex, record(linear_archive(), _INDEX))
    for entry in index.entries:
        if (content := changes.get(entry.record)) is not None:
            entry.crc32, entry.size = zlib.crc32(content), len(content)
            entry.sha256 = hashlib.sha256(content).hexdigest()
    return {**changes, _INDEX: thrift_codec.encode(index)}


def _varint(number: int) -> bytes:
    return bytes([number & 0x7F | 0x80, number >> 7 & 0x7F | 0x80, number >> 14 & 0x7F | 0x80, number >> 21])


def _thrift(size: int) -> dict[str, bytes | None]:
    """A program whose inputs are nothing but `as_none`: two bytes each, 40 in memory."""
    flood = b"\xac\xac\xa9\xfc" + _varint(size // 2) + b"\xa1\0" * (size // 2)
    return _indexed({"thrift/model.compact": flood})


def _json(size: int) -> dict[str, bytes | None]:
    """The small program with as many inputs, which are found to be too many once all of it has been read."""
    program = json.loads(record(linear_archive(), "models/model.json"))
    program["graph_module"]["graph"]["inputs"] = [{"as_none": True}] * (size // 17)
    return {_INDEX: None, "models/model.json": json.dumps(program, separators=(",", ":")).encode()}


def _unknown_keys(size: int) -> dict[str, bytes | None]:
    """A program of unknown fields only, whose keys are kept until all of them are seen to be different."""
    keys = b",".join([b'"k":0'] * (size // 6))
    return {_INDEX: None, "models/model.json": b"{" + keys + b"}"}


def _weights(count: int) -> types.PayloadConfig:
    """So many scalars in one record."""
    config = thrift_codec.decode(types.PayloadConfig, record(linear_archive(), _CONFIG))
    meta = next(iter(config.config.values()))
    assert meta.tensor_meta is not None
    scalar = replace(meta, tensor_meta=replace(meta.tensor_meta, sizes=[], strides=[]))
    return types.PayloadConfig({f"weight.{number}": scalar for number in range(count)})


def _weights_json(count: int) -> dict[str, bytes | None]:
    config = json_codec.encode(_weights(count))
    return {_INDEX: None, "data/weights/model_weights_config.json": config}


def _index(count: int) -> dict[str, bytes | None]:
    """An index with so many empty entries, beside many weights."""
    changes = _indexed({_CONFIG: thrift_codec.encode(_weights(40_000))})
    index = thrift_codec.decode(types.ArchiveIndex, changes[_INDEX] or b"")
    empty = replace(index.entries[0], record="", program="", sha256="", crc32=0, size=0)
    index.entries += [empty] * count
    return {**changes, _INDEX: thrift_codec.encode(index)}


#: What is deflated, and the part of the error that it has to give; "" where all of it is read.
BOMBS: dict[str, tuple[Callable[[], dict[str, bytes | None]], str]] = {
    "Thrift over the limit": (lambda: _thrift(17 * _MIB), _CLAIM),
    "Thrift": (lambda: _thrift(15 * _MIB), _BUDGET),
    "JSON over the limit": (lambda: _json(17 * _MIB), _CLAIM),
    "JSON": (lambda: _json(15 * _MIB), _BUDGET),
    "unknown keys in JSON": (lambda: _unknown_keys(15 * _MIB), _BUDGET),
    "weights": (lambda: _indexed({_CONFIG: thrift_codec.encode(_weights(40_000))}), ""),
    "weights in JSON": (lambda: _weights_json(60_000), ""),
    "an index, and weights": (lambda: _index(100_000), ""),
    "one record": (lambda: {"extra/zeros": bytes(15 * _MIB)}, ""),
    "records that together are too much": (
        lambda: {f"extra/{number}": bytes(2 * _MIB) for number in range(9)},
        _CLAIM,
    ),
}


@pytest.mark.parametrize(("make", "message"), BOMBS.values(), ids=BOMBS)
def test_what_a_few_kilobytes_inflate_to_takes_less_than_64_mib(
    make: Callable[[], dict[str, bytes | None]], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "bomb.pt2"
    path.write_bytes(_deflated(make()))
    assert path.stat().st_size < 256 << 10
    cost = cpp.costs(path, "archive")
    assert message in cost.get("error", "")
    assert ("error" in cost) == (message != "")
    assert int(cost["peak"]) < 64 * _MIB


def _large(changes: dict[str, bytes | None]) -> dict[str, bytes | None]:
    """The changes in an archive that is large, so that much of it may inflate."""
    return {**changes, "extra/noise": random.Random(0).randbytes(2 * _MIB)}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: _large(_thrift(15 * _MIB)), _CLAIM),
        (lambda: _large(_thrift(10 * _MIB)), _BUDGET),
        (lambda: _large(_json(10 * _MIB)), _BUDGET),
        (lambda: _large(_unknown_keys(10 * _MIB)), _BUDGET),
        (lambda: _large(_index(100_000)), _BUDGET),
        (lambda: _large(_weights_json(12_000)), ""),
    ],
    ids=["record", "Thrift", "JSON", "unknown keys in JSON", "an index", "weights in JSON"],
)
def test_options_keep_archives_of_any_size_below_64_mib(
    make: Callable[[], dict[str, bytes | None]], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "bomb.pt2"
    path.write_bytes(_deflated(make()))
    assert path.stat().st_size > 2 * _MIB
    cost = cpp.costs(path, "archive-within-64-MiB")
    assert message in cost.get("error", "")
    assert ("error" in cost) == (message != "")
    assert int(cost["peak"]) < 64 * _MIB


def test_honest_programs_stay_far_below_the_limits(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(saved(MODELS["many_layers"].program()))
    assert "error" not in cpp.costs(path, "archive")


def test_sizes_that_overflow_together_are_too_much(tmp_path: Path) -> None:
    """The limit counts what the directory says, which nobody has inflated by then."""
    data = bytearray(_deflated({"extra/a": bytes(100), "extra/b": bytes(100)}))
    for name in (b"archive/extra/a", b"archive/extra/b"):
        for at in (data.index(name) - 30 + 22, data.rindex(name) - 46 + 24):
            data[at : at + 4] = (2**32 - 2).to_bytes(4, "little")
    path = tmp_path / "model.pt2"
    path.write_bytes(data)
    assert _CLAIM in cpp.costs(path, "archive")["error"]
