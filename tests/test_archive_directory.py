"""The walk of a zip directory: what honest writers write is read, what contradicts itself is refused."""

from __future__ import annotations

import io
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pt2wire import DeserializeError, Limits, UnsafeArtifactError
from pt2wire.archive.directory import read_directory
from pt2wire.archive.reader import ArchiveReader

from .helpers.archives import (
    central_header,
    directory_offset,
    linear_archive,
    linear_torch_archive,
    local_header,
    patched,
)

NAME = "archive/models/model.json"


def small_zip(method: int = zipfile.ZIP_STORED) -> bytes:
    """A PT2 archive of four records, as the standard library writes it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("archive/archive_format", b"pt2")
        archive.writestr("archive/archive_version", b"0")
        archive.writestr(NAME, b'{"graph_module": 1}' * 8)
        archive.writestr("archive/extra/note", b"hello")
    return file.getvalue()


class Unseekable(io.BytesIO):
    """A pipe: zipfile then writes descriptors behind the data, with 64-bit sizes where it must."""

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        raise OSError("not seekable")

    seek = tell  # type: ignore[assignment]


def streamed_zip(zip64: bool) -> bytes:
    file = Unseekable()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (("archive_format", b"pt2"), ("models/model.json", b"{}" * 99)):
            with archive.open(zipfile.ZipInfo(f"archive/{name}"), "w", force_zip64=zip64) as stream:
                stream.write(content)
    return file.getvalue()


def between(data: bytes, piece: bytes) -> bytes:
    """An archive with something before its directory, which is where that says."""
    at = directory_offset(data)
    moved = patched(data, len(data) - 6, struct.pack("<L", at + len(piece)))
    return moved[:at] + piece + moved[at:]


def in_front(data: bytes) -> bytes:
    """What `zip -A` makes of an archive with something in front of it: all offsets hold."""
    file = io.BytesIO(b"#!/bin/sh\n")
    with zipfile.ZipFile(file, "a") as archive, zipfile.ZipFile(io.BytesIO(data)) as old:
        for info in old.infolist():
            archive.writestr(info.filename, old.read(info))
    return file.getvalue()


def hidden(data: bytes) -> bytes:
    """An archive that has a record once more, which its directory does not list."""
    start = local_header(data, NAME)
    return between(data, data[start : local_header(data, "archive/extra/note")])


def with_extra(
    kind: int, said: bytes, *, comment: bytes = b"", version: int = 1, crc: int | None = None
) -> bytes:
    """An archive with a name or comment in an extra field of a record."""
    true_crc = zlib.crc32(comment if kind == 0x6375 else NAME.encode())
    content = struct.pack("<BL", version, true_crc if crc is None else crc) + said
    info = zipfile.ZipInfo(NAME)
    info.extra, info.comment = struct.pack("<2H", kind, len(content)) + content, comment
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/archive_format", b"pt2")
        archive.writestr(info, b"{}")
    return file.getvalue()


def only_local(data: bytes) -> bytes:
    """The same with an empty field in the directory: its kind is another one, which has no meaning."""
    return patched(data, central_header(data, NAME) + 46 + len(NAME), b"\xfe\xca")


HONEST: dict[str, Callable[[], bytes]] = {
    "torch": linear_torch_archive,
    "pt2wire": linear_archive,
    "stored": small_zip,
    "deflated": lambda: small_zip(zipfile.ZIP_DEFLATED),
    "streamed": lambda: streamed_zip(False),
    "streamed with 64-bit sizes": lambda: streamed_zip(True),
    "zeros before the directory": lambda: between(small_zip(), bytes(99)),
    "zeros as an extra field": lambda: with_extra(0, bytes(8)),
    "its own name as an extra field": lambda: with_extra(0x7075, NAME.encode()),
}


@pytest.mark.parametrize("make", HONEST.values(), ids=HONEST)
def test_every_record_reads_as_the_standard_library_reads_it(make: Callable[[], bytes]) -> None:
    data = make()
    reader = ArchiveReader(io.BytesIO(data))
    with zipfile.ZipFile(io.BytesIO(data)) as oracle:
        expected = {info.filename.partition("/")[2]: oracle.read(info) for info in oracle.infolist()}
    assert {name: bytes(reader.record(name)) for name in reader.entries} == expected


def test_every_record_reads_as_pytorch_reads_it() -> None:
    data = linear_archive()
    oracle = torch._C.PyTorchFileReader(io.BytesIO(data))
    reader = ArchiveReader(io.BytesIO(data))
    assert sorted(reader.entries) == sorted(oracle.get_all_records())
    for name in reader.entries:
        assert bytes(reader.record(name)) == oracle.get_record(name)


def test_records_whose_crc_was_never_computed_are_read() -> None:
    file = io.BytesIO()
    writer = torch._C.PyTorchFileWriter(file, False)
    for name, content in (("archive_format", b"pt2"), ("models/model.json", b"{}")):
        writer.write_record(name, content, len(content))
    writer.write_end_of_file()
    reader = ArchiveReader(io.BytesIO(file.getvalue()))
    assert reader.entries["models/model.json"].crc32 == 0
    reader.verify()
    assert bytes(reader.record("models/model.json")) == b"{}"


def test_entries_for_folders_are_skipped() -> None:
    file = io.BytesIO(small_zip())
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("archive/", b"")
        archive.writestr("archive/models/", b"")
    assert list(ArchiveReader(io.BytesIO(file.getvalue())).entries) == [
        "archive_format",
        "archive_version",
        "models/model.json",
        "extra/note",
    ]


def test_more_records_than_16_bits_count() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/archive_format", b"pt2")
        for number in range(0x10000):
            archive.writestr(f"archive/extra/{number}", b"")
    assert len(ArchiveReader(io.BytesIO(file.getvalue())).entries) == 0x10001


# Damage: name -> (change, what the message says).
def _descriptor(data: bytes) -> int:
    return data.index(b"PK\x07\x08")


def _end(data: bytes) -> int:
    return len(data) - 22


def _central(field: int, change: bytes, name: str = NAME) -> Callable[[bytes], bytes]:
    return lambda data: patched(data, central_header(data, name) + field, change)


def _local(field: int, change: bytes, name: str = NAME) -> Callable[[bytes], bytes]:
    return lambda data: patched(data, local_header(data, name) + field, change)


def _renamed(new: str) -> Callable[[bytes], bytes]:
    old = b"archive/extra/note"
    assert len(new.encode()) == len(old)
    return lambda data: data.replace(old, new.encode())


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda data: b"", "found an empty file"),
    "text": (lambda data: b"hello, I am no zip file at all", "found a file that begins with b'hello, I'"),
    "cut short": (lambda data: data[:-30], "a zip file whose end is missing"),
    "bytes behind": (lambda data: data + b"x", "a zip file whose end is missing or followed by other bytes"),
    "bytes in front": (lambda data: b"#!/bin/sh\n" + data, "expected the zip directory to end at byte"),
    "comment": (
        lambda data: patched(data, _end(data) + 20, b"\x05\x00"),
        "found a comment of 5 bytes announced",
    ),
    "second disk": (lambda data: patched(data, _end(data) + 4, b"\x01\x00"), "found one split over several"),
    "record on another disk": (_central(34, b"\x02\x00"), "found one split over several"),
    "too few records": (
        lambda data: patched(data, _end(data) + 8, b"\x05\x00\x05\x00"),
        "expected 5 records in the zip directory, found fewer",
    ),
    "too many records": (
        lambda data: patched(data, _end(data) + 8, b"\x03\x00\x03\x00"),
        "expected 3 records in the zip directory, found more",
    ),
    "directory elsewhere": (
        lambda data: patched(data, _end(data) + 16, b"\x01\x00\x00\x00"),
        "expected the zip directory to end at byte",
    ),
    "no entry in the directory": (
        _central(0, b"PK\x01\x09"),
        "expected an entry of the zip directory at byte",
    ),
    "no local header": (_local(0, b"PK\x03\x09"), "found b'PK\\x03\\t'"),
    "header outside": (_central(42, b"\xff\xff\xff\x7f"), "found one announced at 2147483647"),
    "data outside": (
        lambda data: _central(20, struct.pack("<2L", 99999, 99999))(data),
        "expected its end before the directory",
    ),
    "another local name": (_local(30, b"archive/models/MODEL"), "found b'archive/models/MODEL.json'"),
    "another local method": (_local(8, b"\x08\x00"), "found 8 and 0x0"),
    "local encryption": (_local(6, b"\x01\x00"), "found 0 and 0x1"),
    "another local CRC": (
        _local(14, b"\x01\x02\x03\x04"),
        "in the local header, as in the directory, found 67305985",
    ),
    "another local size": (_local(22, b"\x01\x00\x00\x00"), "expected the size 152 in the local header"),
    "encrypted": (
        lambda data: _central(8, b"\x01\x00")(_local(6, b"\x01\x00")(data)),
        "found an encrypted one",
    ),
    "strange flags": (_central(8, b"\x20\x00"), "expected flags of 0x80e, found 0x20"),
    "compressed by bzip2": (_central(10, b"\x0c\x00"), "found compression method 12"),
    "stored with two sizes": (
        _central(24, b"\x01\x00\x00\x00"),
        "expected one size of a stored record, found 152 and 1",
    ),
    "one name twice": (
        lambda data: small_named("archive/extra/note"),
        "found 'extra/note' and 'extra/note'",
    ),
    "one name in two cases": (
        lambda data: small_named("archive/models/MODEL.json"),
        "found 'models/model.json' and 'models/MODEL.json'",
    ),
    "parent folder": (_renamed("archive/ex/../note"), "expected a plain relative path"),
    "absolute name": (_renamed("/rchive/extra/note"), "expected a plain relative path"),
    "backslash": (_renamed("archive/ext\\a/note"), "expected a plain relative path"),
    "control character": (_renamed("archive/extra/n\nte"), "expected a plain relative path"),
    "name that is no text": (
        lambda data: data.replace(b"archive/extra/note", b"archive/extra/n\xffte"),
        "expected a record's name in UTF-8",
    ),
    "name that is not said to be UTF-8": (
        lambda data: data.replace(
            b"archive/extra/note", "archive/extra/n\N{LATIN SMALL LETTER O WITH DIAERESIS}e".encode()
        ),
        "expected a record's name in UTF-8",
    ),
    "second root": (
        _renamed("brchive/extra/note"),
        "expected one root folder, found 'archive' and 'brchive'",
    ),
    "no folder": (_renamed("archive_extra_note"), "found 'archive_extra_note' at the top"),
    "front with true offsets": (in_front, "expected zeros between records, found others from byte 0 to 10"),
    "hidden record": (hidden, "expected zeros between records, found others from byte"),
    "bytes before the directory": (
        lambda data: between(data, b"\0" * 9 + b"x"),
        "expected zeros between records",
    ),
    "another name in Unicode": (
        lambda data: with_extra(0x7075, b"archive/extra/old"),
        "expected one name of a record, found b'archive/extra/old' in an extra field and b'archive/models",
    ),
    "another name in the local header's Unicode": (
        lambda data: only_local(with_extra(0x7075, b"archive/extra/old")),
        "models/model.json: expected one name of a record, found b'archive/extra/old'",
    ),
    "another name in Unicode of another version": (
        lambda data: with_extra(0x7075, b"archive/extra/old", version=2, crc=0),
        "expected one name of a record",
    ),
    "comment in Unicode": (
        lambda data: with_extra(0x6375, b"another", comment=b"one"),
        "expected one comment of a record, found b'another' in an extra field and b'one'",
    ),
    "overlap": (lambda data: overlapping(data), "expected its end before <BytesIO>:extra/note begins"),
}


def small_named(name: str) -> bytes:
    file = io.BytesIO(small_zip())
    with zipfile.ZipFile(file, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile has its doubts about one name twice
        archive.writestr(name, b"again")
    return file.getvalue()


def overlapping(data: bytes) -> bytes:
    """Hide the last record inside of the one before: its header and data become part of that one's data."""
    start, stop = local_header(data, NAME), directory_offset(data)
    header = 30 + len(NAME)
    size = stop - start - header
    crc = zlib.crc32(data[start + header : stop])
    fields = struct.pack("<3L", crc, size, size)
    return _central(16, fields)(_local(14, fields)(data))


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_refused_by_name(damage: Callable[[bytes], bytes], message: str) -> None:
    data = damage(small_zip())
    with pytest.raises(DeserializeError) as caught:
        ArchiveReader(io.BytesIO(data))
    assert message in str(caught.value)
    assert str(caught.value).startswith("<BytesIO>")


def test_names_that_leave_the_archive_and_encryption_are_called_unsafe() -> None:
    for name in ("parent folder", "absolute name", "backslash", "encrypted"):
        with pytest.raises(UnsafeArtifactError):
            ArchiveReader(io.BytesIO(DAMAGE[name][0](small_zip())))


@pytest.mark.parametrize("field", [4, 8, 12])
def test_a_descriptor_that_contradicts_the_directory_is_refused(field: int) -> None:
    data = linear_torch_archive()
    with pytest.raises(DeserializeError, match="behind the data, as in the directory, found others"):
        ArchiveReader(io.BytesIO(patched(data, _descriptor(data) + field, b"\x77")))


def test_end_records_that_disagree_are_refused() -> None:
    data = linear_torch_archive()  # PyTorch always writes both
    with pytest.raises(DeserializeError, match="in the zip end record, as in the zip64 one, found"):
        ArchiveReader(io.BytesIO(patched(data, _end(data) + 10, b"\x01")))


def test_limits_are_kept() -> None:
    data = memoryview(small_zip())
    with pytest.raises(DeserializeError, match="expected at most 3 records, found 4"):
        read_directory(data, "x", Limits(archive_entries=3))
    with pytest.raises(DeserializeError, match="name of at most 18 characters, found 22"):
        read_directory(data, "x", Limits(record_name_length=18))


@pytest.mark.parametrize(
    "make", [small_zip, lambda: small_zip(zipfile.ZIP_DEFLATED), lambda: streamed_zip(True)]
)
def test_no_prefix_of_an_archive_is_one(make: Callable[[], bytes]) -> None:
    data = make()
    for length in range(len(data)):
        with pytest.raises(DeserializeError):
            ArchiveReader(io.BytesIO(data[:length])).verify()


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_changed_bytes_give_our_error_or_the_same_records(data: st.DataObject) -> None:
    original = data.draw(
        st.sampled_from([small_zip(), small_zip(8), streamed_zip(True), linear_torch_archive()])
    )
    expected = _contents(original)
    changed = bytearray(original)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed) - 1))
        changed[at] = data.draw(st.integers(0, 255))
    try:
        found = _contents(bytes(changed))
    except DeserializeError:
        return
    # Names, and records whose CRC is 0, are all that may differ unnoticed.
    assert sorted(found.values()) == sorted(expected.values())


def _contents(data: bytes) -> dict[str, bytes]:
    reader = ArchiveReader(io.BytesIO(data))
    return {name: bytes(reader.record(name)) for name in reader.entries}


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
@example(b"PK\x05\x06" + bytes(18))
@example(b"PK\x06\x07" + bytes(16) + b"PK\x05\x06" + bytes(18))
def test_arbitrary_bytes_give_our_error(data: bytes) -> None:
    with pytest.raises(DeserializeError):
        ArchiveReader(io.BytesIO(data))
