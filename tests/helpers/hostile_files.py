"""Hostile bytes: damaged or ambiguous containers, JSON and Thrift; pickles; compiled libraries."""

from __future__ import annotations

import json
import pickle
import struct
import subprocess
import tempfile
import zlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.nested._internal.nested_tensor import NestedTensor

from .archives import pickled
from .hostile import (
    CODE,
    CONSTANTS,
    INDEX,
    INPUTS,
    MARKER,
    PROGRAM,
    SHELL,
    WEIGHTS,
    add,
    honest,
    honest_both,
    honest_records,
    plain,
    records,
    text,
    thrift,
)

# -- containers -------------------------------------------------------------------------------------------


@dataclass
class Entry:
    """One record of a zip file, each field of both headers as one likes."""

    name: bytes
    data: bytes
    method: int = 0
    flags: int = 0
    size: int | None = None
    packed_size: int | None = None
    crc: int | None = None
    offset: int = 0  # added to the true one
    local_name: bytes | None = None
    local_method: int | None = None
    local_flags: int | None = None
    local_size: int | None = None
    local_crc: int | None = None
    local_extra: bytes = b""
    extra: bytes = b""
    descriptor: bytes = b""
    listed: bool = True


def _entries() -> list[Entry]:
    return [Entry(f"archive/{name}".encode(), data) for name, data in honest_records().items()]


def _zip(entries: list[Entry], **end: Any) -> bytes:
    made, directory, count = bytearray(), bytearray(), 0
    for entry in entries:
        offset = len(made)
        crc = zlib.crc32(entry.data) if entry.crc is None else entry.crc
        size = len(entry.data) if entry.size is None else entry.size
        packed = len(entry.data) if entry.packed_size is None else entry.packed_size
        local_name = entry.name if entry.local_name is None else entry.local_name
        local_crc = crc if entry.local_crc is None else entry.local_crc
        local_size = packed if entry.local_size is None else entry.local_size
        made += struct.pack(
            "<4s5H3L2H",
            *(b"PK\x03\x04", 20, entry.flags if entry.local_flags is None else entry.local_flags),
            *(entry.method if entry.local_method is None else entry.local_method, 0, 33),
            *(local_crc, local_size, local_size if entry.local_size is not None else size),
            *(len(local_name), len(entry.local_extra)),
        )
        made += local_name + entry.local_extra + entry.data + entry.descriptor
        if not entry.listed:
            continue
        count += 1
        directory += struct.pack(
            "<4s6H3L5H2L",
            *(b"PK\x01\x02", 20, 20, entry.flags, entry.method, 0, 33, crc, packed, size),
            *(len(entry.name), len(entry.extra), 0, 0, 0, 0, offset + entry.offset),
        )
        directory += entry.name + entry.extra
    start = len(made) + end.get("start", 0)
    comment = end.get("comment", b"")
    made += end.get("gap", b"") + directory
    made += struct.pack(
        "<4s4H2LH",
        *(b"PK\x05\x06", end.get("disk", 0), 0, end.get("here", count), end.get("count", count)),
        *(len(directory) + end.get("directory_size", 0), start, end.get("comment_length", len(comment))),
    )
    return bytes(made) + comment


def _with(name: str, **fields: Any) -> Callable[[], bytes]:
    """The archive with one entry's fields changed."""

    def make() -> bytes:
        wanted = f"archive/{name}".encode()
        return _zip([replace(e, **fields) if e.name == wanted else e for e in _entries()])

    return make


def _also(*entries: Entry) -> Callable[[], bytes]:
    return lambda: _zip([*_entries(), *entries])


def _deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def _with_program_deflated(behind: bytes = b"", size: int | None = None) -> Callable[[], bytes]:
    """The archive with its program deflated, something behind that, and perhaps another size than it has."""

    def pack(entry: Entry) -> Entry:
        data, length = _deflated(entry.data) + behind, len(entry.data) if size is None else size
        return replace(entry, method=8, data=data, size=length, crc=zlib.crc32(entry.data))

    return lambda: _zip([pack(e) if e.name.endswith(PROGRAM.encode()) else e for e in _entries()])


_W = "data/weights/weight_0"


def _overlapping() -> bytes:
    """Two records of the same bytes: what the directory calls the second lies within the first."""
    inner = _zip([Entry(b"archive/extra/b", b"12345678")]).partition(b"PK\x01\x02")[0]
    outer, last = Entry(b"archive/extra/a", inner), Entry(b"archive/extra/b", b"12345678")
    whole = _zip([*_entries(), outer, last])
    return _zip([*_entries(), outer, replace(last, offset=whole.index(inner) - whole.rindex(inner))])


def _second_directory() -> bytes:
    """Two end records: which directory holds depends on who reads."""
    one = honest()
    other = _zip([*_entries()[:-1]])
    return one + other


def _flipped(name: str) -> bytes:
    """One bit of a record turned, and the CRC as it was."""
    data, content = bytearray(_zip(_entries())), honest_records()[name]
    data[data.index(content) + len(content) // 2] ^= 0x10
    return bytes(data)


def _other_program() -> bytes:
    """Another text than that of the program, for those who look at the file with another reader."""
    return honest_records()[PROGRAM].replace(b"linear", b"LINEAR")


def _renamed_in_unicode(*, both: bool) -> Callable[[], bytes]:
    """The program and another record have each other's name in the field that Info-ZIP believes."""

    def field(name: bytes, shown: bytes) -> bytes:
        content = struct.pack("<BL", 1, zlib.crc32(name)) + shown
        return struct.pack("<2H", 0x7075, len(content)) + content

    def make() -> bytes:
        entries = [*_entries(), Entry(_EXTRA, _other_program())]
        shown = {_EXTRA: f"archive/{PROGRAM}".encode(), f"archive/{PROGRAM}".encode(): _EXTRA}
        for entry in entries:
            if entry.name in shown:
                entry.local_extra = field(entry.name, shown[entry.name])
                entry.extra = entry.local_extra if both else b""
        return _zip(entries)

    return make


_EXTRA = b"archive/extra/a"
_CONTAINERS: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "an empty file is no archive"),
    "a few bytes": (lambda: b"PK\x03\x04", "a beginning is no archive"),
    "an end record alone": (lambda: b"PK\x05\x06" + bytes(18), "an archive has records"),
    "no zip file": (lambda: b"\x80\x02" + honest()[2:], "the first bytes say what a file is"),
    "half a file": (lambda: honest()[: len(honest()) // 2], "a cut file is no archive"),
    "the last byte missing": (lambda: honest()[:-1], "a cut file is no archive"),
    "bytes before": (lambda: b"#!/bin/sh\n" + honest(), "nothing stands before an archive"),
    "bytes behind": (lambda: honest() + b"\0" * 100, "nothing stands behind an archive"),
    "two archives": (_second_directory, "an archive has one directory"),
    "a comment with a directory": (
        lambda: _zip(_entries(), comment=_zip(_entries()[:3])),
        "an archive has one end record",
    ),
    "a comment beyond the end": (lambda: _zip(_entries(), comment_length=500), "lengths are true"),
    "more records than listed": (lambda: _zip(_entries(), count=3, here=3), "counts are true"),
    "fewer records than counted": (lambda: _zip(_entries(), count=60000, here=60000), "counts are true"),
    "a directory elsewhere": (lambda: _zip(_entries(), start=-4), "offsets are true"),
    "a directory beyond the end": (lambda: _zip(_entries(), start=1 << 30), "offsets stay in the file"),
    "a directory that is too long": (lambda: _zip(_entries(), directory_size=1 << 20), "sizes are true"),
    "another disk": (lambda: _zip(_entries(), disk=1), "an archive is one file"),
    "a gap before the directory": (lambda: _zip(_entries(), gap=b"x" * 100), "no bytes beside records"),
    "a record twice": (_also(Entry(f"archive/{PROGRAM}".encode(), b"{}")), "each name once"),
    "a weight twice": (_also(Entry(f"archive/{_W}".encode(), bytes(36))), "each name once"),
    "a record in other case": (
        _also(Entry(b"archive/Models/model.json", b"{}")),
        "each name once, on every disk",
    ),
    "a second root": (_also(Entry(b"other/models/model.json", b"{}")), "one root folder"),
    "no root": (_also(Entry(b"models/model.json", b"{}")), "one root folder"),
    "a path upwards": (_also(Entry(b"archive/extra/../../../evil", b"x")), "no paths out of the archive"),
    "a path from the root": (_also(Entry(b"/etc/evil", b"x")), "no absolute paths"),
    "a path with backslashes": (_also(Entry(b"archive/extra\\..\\..\\evil", b"x")), "no paths of Windows"),
    "a path with a drive": (_also(Entry(b"C:/archive/extra/evil", b"x")), "no paths of Windows"),
    "a path with a null": (_also(Entry(b"archive/extra/a\0.txt", b"x")), "no control characters"),
    "a path with a dot": (_also(Entry(b"archive/./models/model.json", b"{}")), "one name for one record"),
    "an empty folder name": (_also(Entry(b"archive//models/model.json", b"{}")), "one name for one record"),
    "a name that is no UTF-8": (
        _also(Entry(b"archive/extra/\xff\xfe", b"x", flags=0x800)),
        "names are UTF-8",
    ),
    "a name without end": (_also(Entry(b"archive/extra/" + b"a" * 60000, b"x")), "names are bounded"),
    "a local header with another name": (
        _with(_W, local_name=b"archive/data/weights/weight_1"),
        "headers agree",
    ),
    "a local header with another method": (_with(_W, local_method=8), "headers agree"),
    "a local header with encryption": (_with(_W, local_flags=1), "headers agree"),
    "a local header with another size": (_with(_W, local_size=8), "headers agree"),
    "a local header with another CRC": (_with(_W, local_crc=1), "headers agree"),
    "an encrypted record": (_with(_W, flags=1), "nothing is encrypted"),
    "an unknown method": (_with(_W, method=12), "stored or deflated"),
    "a damaged weight": (lambda: _flipped(_W), "CRCs are compared"),
    "a damaged program": (lambda: _flipped(PROGRAM), "CRCs are compared"),
    "a wrong CRC": (_with(PROGRAM, crc=12345), "CRCs are compared"),
    "a record beyond the end": (_with(_W, size=1 << 30, packed_size=1 << 30), "extents stay in the file"),
    "a record that is too short": (_with(_W, size=4, packed_size=4), "extents are true"),
    "an offset beyond the end": (_with(_W, offset=1 << 30), "extents stay in the file"),
    "an offset into another record": (_with(_W, offset=-60), "extents do not overlap"),
    "stored with two sizes": (_with(_W, size=1000), "a stored record has one size"),
    "deflated nonsense": (_with(PROGRAM, method=8), "what is deflated inflates"),
    "a deflated record with a tail": (
        _with_program_deflated(behind=b"tail"),
        "nothing follows what is deflated",
    ),
    "a deflated record with a false size": (
        _with_program_deflated(size=100),
        "sizes are true",
    ),
    "a wrong 64-bit extra": (
        _with(_W, extra=struct.pack("<2H3Q", 1, 24, 36, 36, 1 << 40)),
        "extras say nothing that the headers say",
    ),
    "an extra beyond its field": (
        _with(_W, extra=struct.pack("<2H", 1, 500)),
        "extras say nothing that the headers say",
    ),
    "an unlisted record": (
        _also(replace(Entry(_EXTRA, b"hidden"), listed=False)),
        "a directory lists all records",
    ),
    "an unlisted program": (
        lambda: _zip([Entry(f"archive/{PROGRAM}".encode(), _other_program(), listed=False), *_entries()]),
        "readers that go from record to record see the same",
    ),
    "bytes before with true offsets": (
        lambda: _zip([Entry(b"", b"", local_name=b"", listed=False), *_entries()]),
        "nothing stands before an archive",
    ),
    "another name in Unicode": (_renamed_in_unicode(both=True), "each record has one name"),
    "another name in Unicode in the local header": (
        _renamed_in_unicode(both=False),
        "each record has one name",
    ),
    "overlapping records": (_overlapping, "extents do not overlap"),
    "no program": (lambda: records({PROGRAM: None}), "an archive has a program"),
    "no weights": (lambda: records({WEIGHTS: None}), "a program has its weights"),
    "no constants": (lambda: records({CONSTANTS: None}), "a program has its constants"),
    "a missing weight": (lambda: records({_W: None}), "payloads exist"),
    "another format": (lambda: records({"archive_format": b"pt3"}), "the format is known"),
    "another version": (lambda: records({"archive_version": b"99"}), "the version is known"),
    "another byte order": (lambda: records({"byteorder": b"big"}), "the byte order is known"),
    "no format": (lambda: records({"archive_format": None}), "a zip file is no archive yet"),
}
#: Oddities that change nothing for a reader that goes by the directory.
_ODD = ("a wrong 64-bit extra", "an extra beyond its field")
for _name, (_make, _proves) in _CONTAINERS.items():
    add("container", _name, _proves, _make, refused=_name not in _ODD)


# -- JSON -------------------------------------------------------------------------------------------------


def _set(*path: Any) -> Callable[[Any], None]:
    """Sets a value in plain JSON: keys, then the value."""

    def change(value: Any) -> None:
        *keys, last, new = path
        for key in keys:
            value = value[key]
        value[last] = new

    return change


def _replaced(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        assert old in data, old
        return data.replace(old, new, 1)

    return change


_GRAPH = ("graph_module", "graph")
_JSON: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (text(lambda data: b""), "a program is JSON"),
    "no JSON": (text(lambda data: CODE.encode()), "a program is JSON"),
    "half of it": (text(lambda data: data[: len(data) // 2]), "a program is whole"),
    "two documents": (text(lambda data: data + data), "a record is one document"),
    "text behind": (text(lambda data: data + b" x"), "a record is one document"),
    "a list": (text(lambda data: b"[" + data + b"]"), "a program is an object"),
    "null": (text(lambda data: b"null"), "a program is an object"),
    "UTF-16": (text(lambda data: data.decode().encode("utf-16")), "JSON is UTF-8"),
    "a byte order mark": (text(lambda data: b"\xef\xbb\xbf" + data), "JSON has no mark before it"),
    "bytes that are no UTF-8": (text(_replaced(b'"linear', b'"\xff\xfe')), "JSON is UTF-8"),
    "a lone surrogate": (text(_replaced(b'"linear', b'"\\ud800')), "texts are Unicode"),
    "a key twice": (
        text(_replaced(b'"guards_code"', b'"guards_code": ["1 == 2"], "guards_code"')),
        "each key once",
    ),
    "a version twice": (
        text(_replaced(b'"schema_version"', b'"schema_version": {"major": 9, "minor": 0}, "schema_version"')),
        "each key once",
    ),
    "a number beyond 64 bits": (plain(_set("opset_version", "aten", 1 << 70)), "integers have 64 bits"),
    "a number of many digits": (
        text(_replaced(b'"opset_version":{', b'"opset_version":{"x": ' + b"9" * 5000 + b", ")),
        "integers have 64 bits",
    ),
    "a float for an integer": (plain(_set("opset_version", "aten", 1.5)), "types are exact"),
    "a flag for an integer": (plain(_set("opset_version", "aten", True)), "a flag is no number"),
    "a text for an integer": (plain(_set("opset_version", "aten", "10")), "types are exact"),
    "NaN for an integer": (
        text(_replaced(b'"opset_version":{', b'"opset_version":{"x": NaN, ')),
        "JSON has no NaN",
    ),
    "a text for a list": (plain(_set("guards_code", "abc")), "types are exact"),
    "a list for an object": (plain(_set(*_GRAPH, [])), "types are exact"),
    "null for a text": (plain(_set(*_GRAPH, "nodes", 0, "target", None)), "what is required is there"),
    "a missing field": (
        plain(lambda v: v["graph_module"]["graph"].pop("nodes")),
        "what is required is there",
    ),
    "an unknown field": (plain(_set("evil", 1)), "unknown fields are of newer files only"),
    "an unknown field of pt2wire's": (plain(_set(*_GRAPH, "exact_magic", 1)), "likewise"),
    "an unknown member": (plain(_set(*_GRAPH, "inputs", 0, {"as_evil": 1})), "members of unions are known"),
    "two members": (
        plain(lambda v: v["graph_module"]["graph"]["inputs"][0].update(as_int=1)),
        "a union has one member",
    ),
    "no member": (plain(_set(*_GRAPH, "inputs", 0, {})), "a union has one member"),
    "an unknown dtype": (
        plain(lambda v: next(iter(v["graph_module"]["graph"]["tensor_values"].values())).update(dtype=9999)),
        "values of enums are known",
    ),
    "another major version": (plain(_set("schema_version", {"major": 9, "minor": 1})), "versions are known"),
    "a version of yore": (plain(_set("schema_version", {"major": 8, "minor": 0})), "versions are known"),
    "a negative version": (plain(_set("schema_version", {"major": -8, "minor": 20})), "versions are known"),
    "weights that are no JSON": (text(lambda data: CODE.encode(), WEIGHTS), "payload configs are JSON"),
    "weights twice": (
        text(_replaced(b'"linear.bias"', b'"linear.weight"'), WEIGHTS),
        "each weight once",
    ),
    "a payload elsewhere": (
        plain(_set("config", "linear.weight", "path_name", "../../models/model.json"), WEIGHTS),
        "a payload's record is a plain name",
    ),
    "a payload from the root": (
        plain(_set("config", "linear.weight", "path_name", "/etc/passwd"), WEIGHTS),
        "a payload's record is a plain name",
    ),
    "a payload of no name": (
        plain(_set("config", "linear.weight", "path_name", ""), WEIGHTS),
        "a payload's record is a plain name",
    ),
    "a comment": (text(_replaced(b'{"', b'{/* */"')), "JSON has no comments"),
    "a trailing comma": (text(lambda data: data[:-1] + b",}"), "JSON has no trailing commas"),
    "a control character": (text(_replaced(b'"linear', b'"\x01linear')), "control characters are escaped"),
}
for _name, (_make, _proves) in _JSON.items():
    add("json", _name, _proves, _make)


# -- Thrift -----------------------------------------------------------------------------------------------


def _index_kept(changes: dict[str, bytes | None]) -> bytes:
    from .archives import with_records

    return with_records(honest_both(), changes)


def _cut(share: float) -> Callable[[bytes], bytes]:
    return lambda data: data[: int(len(data) * share)]


def _at(place: float, change: bytes) -> Callable[[bytes], bytes]:
    def make(data: bytes) -> bytes:
        at = int(len(data) * place)
        return data[:at] + change + data[at + len(change) :]

    return make


_WEIGHTS_THRIFT = "thrift/model_weights.compact"
_THRIFT: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (thrift(lambda data: b""), "a program is a struct"),
    "a stop": (thrift(lambda data: b"\0"), "what is required is there"),
    "zeros": (thrift(lambda data: bytes(len(data))), "nothing follows a struct"),
    "ones": (thrift(lambda data: b"\xff" * len(data)), "types exist"),
    "half of it": (thrift(_cut(0.5)), "a program is whole"),
    "all but a byte": (thrift(lambda data: data[:-1]), "a program is whole"),
    "bytes behind": (thrift(lambda data: data + b"\0"), "nothing follows a struct"),
    "twice": (thrift(lambda data: data + data), "a record is one struct"),
    "JSON": (thrift(lambda data: honest_records()[PROGRAM]), "a form is what its name says"),
    "an unknown field": (thrift(lambda data: b"\x15\x00" + data), "unknown fields are of newer files only"),
    "a list of many": (thrift(_at(0.1, b"\xfc\xff\xff\xff\x7f")), "counts are bounded by bytes"),
    "a map of many": (thrift(_at(0.3, b"\xff\xff\xff\xff\x7f\x8b")), "counts are bounded by bytes"),
    "a text of many": (thrift(_at(0.5, b"\x18\xff\xff\xff\xff\x07")), "lengths are bounded by bytes"),
    "a negative length": (thrift(_at(0.5, b"\x18\xff\xff\xff\xff\x0f")), "lengths are not negative"),
    "an endless number": (thrift(_at(0.5, b"\x16" + b"\x80" * 40)), "numbers have ten bytes at most"),
    "a text that is no UTF-8": (thrift(_replaced(b"linear", b"\xff\xfe\xfdear")), "texts are UTF-8"),
    "a surrogate": (thrift(_replaced(b"linear", b"\xed\xa0\x80ear")), "texts are Unicode"),
    "another type of a field": (thrift(lambda data: bytes([data[0] ^ 0x0F]) + data[1:]), "types are exact"),
    "a field twice": (thrift(lambda data: data[:-1] + b"\x15\x00\x00"), "each field once"),
    "weights cut short": (thrift(_cut(0.7), _WEIGHTS_THRIFT), "payload configs are whole"),
    "weights of nothing": (
        thrift(lambda data: b"\x1b\x00\x00", _WEIGHTS_THRIFT),
        "a program has its weights",
    ),
    "an index of nothing": (lambda: _index_kept({INDEX: b""}), "an index is a struct"),
    "an index that is damaged": (lambda: _index_kept({INDEX: b"\xff" * 50}), "an index is a struct"),
    "Thrift that the index does not know": (
        lambda: _index_kept({"thrift/model.compact": b"\0"}),
        "what the index says of Thrift holds",
    ),
    "Thrift changed by a bit": (
        lambda: _index_kept({"thrift/model.compact": _changed_thrift()}),
        "what the index says of Thrift holds",
    ),
}
for _name, (_make, _proves) in _THRIFT.items():
    add("thrift", _name, _proves, _make)


def _changed_thrift() -> bytes:
    from .archives import record

    data = record(honest_both(), "thrift/model.compact")
    return data.replace(b"aten.add.Tensor", b"aten.sub.Tensor", 1)


# -- pickles ----------------------------------------------------------------------------------------------


class _Opens:
    """Leaves the marker when it is unpickled."""

    def __reduce__(self) -> Any:
        return (open, (MARKER, "w"))


class _Evals:
    def __reduce__(self) -> Any:
        return (eval, (CODE,))


class _Shell:
    def __reduce__(self) -> Any:
        import os

        return (os.system, (SHELL,))


class _Sparse:
    def __reduce__(self) -> Any:
        parts = torch.tensor([[1 << 40], [0]]), torch.ones(1), (4, 3), True
        return torch._utils._rebuild_sparse_tensor, (torch.sparse_coo, parts)


def _pickled_weight(content: bytes, record: str = WEIGHTS, fqn: str = "linear.weight") -> bytes:
    config = json.loads(honest_records()[record])
    folder = record.rpartition("/")[0]
    entry = config["config"].setdefault(fqn, dict(next(iter(config["config"].values()), {})))
    entry |= {"use_pickle": True, "path_name": "weight_9", "is_param": fqn != "constant"}
    return records({record: json.dumps(config).encode(), f"{folder}/weight_9": content})


def _constant(path_name: str, content: bytes) -> bytes:
    entry = {"path_name": path_name, "is_param": False, "use_pickle": True, "tensor_meta": None}
    config = {"config": {"constant": entry}}
    return records({CONSTANTS: json.dumps(config).encode(), f"data/constants/{path_name}": content})


class _Call:
    def __init__(self, function: Any, *arguments: Any) -> None:
        self._call = function, arguments

    def __reduce__(self) -> Any:
        return self._call


def _without_memory() -> _Call:
    options = torch.float32, (4, 3), (3, 1), 0, torch.strided, torch.device("cpu"), False
    return _Call(torch._utils._rebuild_wrapper_subclass, NestedTensor, *options)


def _with_state(state: Any) -> bytes:
    """Example inputs of which one is a parameter with attributes."""
    made = torch._utils._rebuild_parameter_with_state, torch.ones(4, 3), True, OrderedDict(), state
    return pickled(((_Call(*made),), {"options": {"by": torch.ones(3)}, "mode": "sum"}))


_INPUT_PICKLES: dict[str, Callable[[], bytes]] = {
    "open": lambda: pickled(((_Opens(),), {})),
    "eval": lambda: pickled(((_Evals(),), {})),
    "a shell": lambda: pickled(((_Shell(),), {})),
    "the old format": lambda: pickled(((_Opens(),), {}), _use_new_zipfile_serialization=False),
    "a bare pickle": lambda: pickle.dumps(_Opens()),
    "a bare pickle of protocol 0": lambda: pickle.dumps(_Opens(), 0),
    "TorchScript": lambda: pickled({"constants.pkl": _Opens()}),
    "code behind tensors": lambda: pickled(((torch.ones(4, 3), _Opens()), {})),
    "nonsense": lambda: b"\x80\x04nonsense",
    "another structure": lambda: pickled((1, 2, 3)),
    "indices of nowhere": lambda: pickled(((_Sparse(),), {"options": {"by": torch.ones(3)}, "mode": "sum"})),
    "a long bytearray": lambda: pickled(((_Call(bytearray, 1 << 40),), {})),
    "a storage of any size": lambda: pickled(((_Call(torch.UntypedStorage, 1 << 36),), {})),
    "a list in many tuples": lambda: pickled(
        (([short := [0] * 100_000, *(_Call(torch.Size, short) for _ in range(100_000))],), {})
    ),
    "a tensor without memory": lambda: pickled(
        ((_without_memory(),), {"options": {"by": torch.ones(3)}, "mode": "sum"})
    ),
    "a tensor whose memory is an attribute": lambda: _with_state({"data": _without_memory()}),
    "a tensor whose class is an attribute": lambda: _with_state({"__class__": NestedTensor}),
    "a tensor whose methods are attributes": lambda: _with_state({"size": 3, "dim": 3, "detach": 3}),
    "a tensor with a hook": lambda: _with_state({"_backward_hooks": {1: torch.Size}}),
    "an endless list": lambda: pickle.dumps([])[:-1] + b"(" * 100_000 + b".",
    "nothing": lambda: b"",
}
for _name, _make in _INPUT_PICKLES.items():
    add(
        "pickles",
        f"{_name} as example inputs",
        "example inputs are opened without code, or rebuilt",
        lambda m=_make: records({INPUTS: m()}),
        refused=False,
    )
add(
    "pickles",
    "no example inputs",
    "without them they are rebuilt",
    lambda: records({INPUTS: None}),
    refused=False,
)
_PICKLES: dict[str, tuple[Callable[[], bytes], str]] = {
    "open as a weight": (lambda: _pickled_weight(pickled(_Opens())), "weights are no pickles"),
    "a bare pickle as a weight": (lambda: _pickled_weight(pickle.dumps(_Opens())), "weights are no pickles"),
    "a tensor as a weight": (lambda: _pickled_weight(pickled(torch.ones(3, 3))), "not even harmless ones"),
    "open as a constant": (lambda: _constant("tensor_0", pickled(_Opens())), "constants are no pickles"),
    "weights of old": (
        lambda: records({"data/weights/model.pt": pickled({"linear.weight": _Opens()}), WEIGHTS: None}),
        "records of old versions are not opened",
    ),
    "constants of old": (
        lambda: records({"data/constants/model.pt": pickled(_Opens()), CONSTANTS: None}),
        "records of old versions are not opened",
    ),
}
for _name, (_make, _proves) in _PICKLES.items():
    add("pickles", _name, _proves, _make)
for _name, _record in {"a custom object": "custom_obj_0", "an opaque object": "opaque_obj_0"}.items():
    add(
        "pickles",
        f"open as {_name}",
        "objects that the program does not need are left out",
        lambda r=_record: _constant(r, pickle.dumps(_Opens())),
        refused=False,
    )
for _name, _record in {
    "weights of old beside new ones": "data/weights/model.pt",
    "constants of old beside new ones": "data/constants/model.pt",
    "leaves of example inputs": "thrift/model_inputs.pt",
    "a pickle as an extra file": "extra/data.pkl",
    "a pickle as TorchScript": "data.pkl",
}.items():
    add(
        "pickles",
        _name,
        "pickles that nobody asked for are not opened",
        lambda r=_record: records({r: pickled(_Opens())}),
        refused=False,
    )


# -- libraries --------------------------------------------------------------------------------------------

_CONSTRUCTOR = f"""
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void run(void) {{ close(open("{MARKER}", O_CREAT | O_WRONLY, 0600)); }}
"""


@cache
def _library() -> bytes:
    """A shared library that leaves the marker when it is opened."""
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "evil.c"), Path(folder, "evil.so")
        source.write_text(_CONSTRUCTOR)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", made, source], check=True)
        return made.read_bytes()


def _aoti(folder: str, **others: bytes) -> Callable[[], bytes]:
    def make() -> bytes:
        name = f"{folder}/evil"
        files: dict[str, bytes | None] = {
            f"{name}.wrapper.so": _library(),
            f"{name}.wrapper_metadata.json": b'{"AOTI_DEVICE_KEY": "cpu"}',
            f"{name}_metadata.json": b'{"AOTI_DEVICE_KEY": "cpu"}',
        }
        return records({**files, **{f"{folder}/{other}": data for other, data in others.items()}})

    return make


_LIBRARIES = {
    "a library for AOTInductor": _aoti("data/aotinductor/model"),
    "a library of another model": _aoti("data/aotinductor/other"),
    "a library as an extra file": lambda: records({"extra/evil.so": _library()}),
    "a library among the weights": lambda: records({"data/weights/evil.so": _library()}),
    "a library with a path": lambda: records({f"data/aotinductor/model/{MARKER}.so": _library()}),
    "a library for ExecuTorch": lambda: records({"data/executorch/model.pte": _library()}),
}
for _name, _make in _LIBRARIES.items():
    add("libraries", _name, "libraries are never unpacked and never opened", _make, refused=False)
