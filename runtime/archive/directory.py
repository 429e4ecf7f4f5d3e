"""The strict walk of a zip file's directory: which records there are, and where their bytes lie.

A zip file says most things twice, and readers differ in which half they believe. Here both halves must agree,
so that what was checked is what every other reader sees too: one directory that ends where the file ends, one
root folder, no name twice, no name that leaves the root, local headers equal to the directory, no second name
in an extra field, no two records over the same bytes, and nothing but zeros between them, for readers that go
from record to record.

PyTorch's writer leaves CRC and sizes of each local header zero, puts them into a descriptor behind the data,
pads with an extra field `FB`, and always writes the zip64 end records.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import DeserializeError, UnsafeArtifactError
from ..limits import DEFAULT_LIMITS, Limits, raising
from .records import EXTRA

STORED, DEFLATED = 0, 8
ZIP_START = b"PK"

_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64 = struct.Struct("<4sLQL")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")

_ZIP64_EXTRA = 1
#: Of Info-ZIP: the name or comment once more, in UTF-8, for which readers drop the one in the header.
_UNICODE_PATH, _UNICODE_COMMENT = 0x7075, 0x6375
_BEFORE_UNICODE = 5  # bytes: a version, and the CRC of what it stands for
_ALL_ONES = {2: 0xFFFF, 4: 0xFFFFFFFF}

_ENCRYPTED, _DESCRIPTOR, _UTF8 = 1 << 0, 1 << 3, 1 << 11
_DEFLATE_HINTS = 0b110
_KNOWN_FLAGS = _DESCRIPTOR | _UTF8 | _DEFLATE_HINTS


#: Bytes that are looked at together.
_AT_ONCE = 1 << 20

_DAMAGED = "The file is damaged: copy or download it again"


@dataclass(frozen=True, slots=True)
class Entry:
    """One record of the archive.

    Attributes:
        name: Its name below the root folder, such as `models/model.json`.
        method: `STORED` or `DEFLATED`.
        crc32: Of the uncompressed bytes; 0 on a stored record may also mean that nobody computed it.
        offset: Where its (perhaps compressed) bytes begin in the file.
        packed_size: How many bytes it takes in the file.
        size: Its uncompressed size in bytes.
    """

    name: str
    method: int
    crc32: int
    offset: int
    packed_size: int
    size: int


@dataclass(frozen=True, slots=True)
class _Header:
    """One entry of the directory, before its local header has been looked at."""

    raw_name: bytes
    flags: int
    method: int
    crc32: int
    packed_size: int
    size: int
    header_offset: int


def read_directory(data: memoryview, source: str, limits: Limits = DEFAULT_LIMITS) -> list[Entry]:
    """Walk the directory of a zip file and check it against the rest of the file.

    Args:
        data: The whole file.
        source: What the file is called in messages.
        limits: Bounds on number and length of names.

    Returns:
        The records in the directory's order, entries for folders left out.

    Raises:
        DeserializeError: The file is no zip file, is cut short, or contradicts itself.
        UnsafeArtifactError: A name would leave the archive's folder, or a record is encrypted.
    """
    try:
        start, size, count = _find_directory(data, source)
        if count > limits.archive_entries:
            raise DeserializeError(
                f"expected at most {limits.archive_entries} records, found {count}",
                path=source,
                hint=raising("archive_entries"),
            )
        headers = list(_central_headers(data, start, size, count, source))
    except struct.error as error:
        raise DeserializeError(
            "expected a whole zip directory, found one that is cut short",
            path=source,
            hint=_DAMAGED,
        ) from error
    return _check(data, headers, start, source, limits)


def not_a_zip(data: memoryview | bytearray, source: str) -> DeserializeError:
    """The error for a file that has no zip directory at its end, by what is at its beginning."""
    if len(data) == 0:
        found, hint = "an empty file", "Was saving interrupted? Save the program again"
    elif bytes(data[:4]) == b"PK\x03\x04":
        found = "a zip file whose end is missing or followed by other bytes"
        hint = (
            "The file is probably cut short: copy or download it again. "
            "If it was written over a longer file, save to an empty one"
        )
    else:
        found, hint = f"a file that begins with {bytes(data[:8])!r}", "Is this the right file?"
    return DeserializeError(f"expected a .pt2 archive (a zip file), found {found}", path=source, hint=hint)


def _find_directory(data: memoryview, source: str) -> tuple[int, int, int]:
    """Offset, size in bytes and number of entries of the directory."""
    end = len(data) - _END.size
    if end < 0 or bytes(data[end : end + 4]) != b"PK\x05\x06":
        raise not_a_zip(data, source)
    _, disk, first_disk, count_here, count, size, start, comment = _END.unpack_from(data, end)
    if comment:
        raise DeserializeError(
            f"expected nothing behind the zip end record, found a comment of {comment} bytes announced",
            path=source,
            hint=_DAMAGED,
        )
    stop = end
    locator = end - _LOCATOR64.size
    if locator >= 0 and bytes(data[locator : locator + 4]) == b"PK\x06\x07":
        _, _, stop, disks = _LOCATOR64.unpack_from(data, locator)
        misplaced = DeserializeError(
            f"expected a zip64 end record from byte {stop} to its locator at {locator}, found none",
            path=source,
            hint=_DAMAGED,
        )
        if stop + _END64.size > locator:
            raise misplaced
        signature, rest, _, _, disk64, first_disk64, here64, count64, size64, start64 = _END64.unpack_from(
            data, stop
        )
        if signature != b"PK\x06\x06" or stop + 12 + rest != locator:
            raise misplaced
        short = ((disk, 2), (first_disk, 2), (count_here, 2), (count, 2), (size, 4), (start, 4))
        long = (disk64, first_disk64, here64, count64, size64, start64)
        if any(a not in (b, _ALL_ONES[width]) for (a, width), b in zip(short, long, strict=True)):
            raise DeserializeError(
                f"expected {long} in the zip end record, as in the zip64 one, "
                f"found {tuple(value for value, _ in short)}",
                path=source,
                hint=_DAMAGED,
            )
        if disks not in (0, 1):
            raise _split(source)
        disk, first_disk, count_here, count, size, start = long
    if disk or first_disk or count_here != count:
        raise _split(source)
    if start + size != stop:
        raise DeserializeError(
            f"expected the zip directory to end at byte {stop}, found its end at {start + size}",
            path=source,
            hint="The file is cut short, or something was put in front of it",
        )
    return start, size, count


def _split(source: str) -> DeserializeError:
    return DeserializeError("expected an archive in one file, found one split over several", path=source)


def _central_headers(data: memoryview, start: int, size: int, count: int, source: str) -> Iterator[_Header]:
    """The `count` entries that must fill the directory exactly."""
    at, stop = start, start + size
    for _ in range(count):
        if at + _CENTRAL.size > stop:
            raise DeserializeError(f"expected {count} records in the zip directory, found fewer", path=source)
        (
            signature, _, _, flags, method, _, _, crc32, packed, unpacked, name_length, extra_length,
            comment_length, disk, _, _, offset,
        ) = _CENTRAL.unpack_from(data, at)  # fmt: skip
        name_at = at + _CENTRAL.size
        extra_at = name_at + name_length
        at = extra_at + extra_length + comment_length
        if signature != b"PK\x01\x02" or at > stop:
            raise DeserializeError(
                f"expected an entry of the zip directory at byte {name_at - _CENTRAL.size}, found none",
                path=source,
                hint=_DAMAGED,
            )
        extra = data[extra_at : extra_at + extra_length]
        _check_unicode(extra, data[name_at:extra_at], data[extra_at + extra_length : at], source)
        unpacked, packed, offset = _widened(extra, (unpacked, packed, offset), source)
        if disk not in (0, 0xFFFF):
            raise _split(source)
        yield _Header(bytes(data[name_at:extra_at]), flags, method, crc32, packed, unpacked, offset)
    if at != stop:
        raise DeserializeError(f"expected {count} records in the zip directory, found more", path=source)


def _widened(extra: memoryview, fields: tuple[int, ...], source: str) -> tuple[int, ...]:
    """Replace each 32-bit field of all ones by its 64-bit value in the zip64 extra field, in order."""
    if 0xFFFFFFFF not in fields:
        return fields
    for kind, content in _extra_fields(extra):
        if kind == _ZIP64_EXTRA:
            wide = struct.unpack_from(f"<{len(content) // 8}Q", content)
            needed = fields.count(0xFFFFFFFF)
            if len(wide) < needed:
                message = f"expected {needed} numbers in a zip64 extra field, found {len(wide)}"
                raise DeserializeError(message, path=source, hint=_DAMAGED)
            rest = iter(wide)
            return tuple(next(rest) if field == 0xFFFFFFFF else field for field in fields)
    return fields


def _extra_fields(extra: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Kind and content of each; the last ends where they all do, however long it says that it is."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        yield kind, extra[at + 4 : at + 4 + length]
        at += 4 + length


def _check_unicode(extra: memoryview, name: memoryview, comment: memoryview | bytes, path: str) -> None:
    said = {_UNICODE_PATH: name, _UNICODE_COMMENT: comment}
    for kind, content in _extra_fields(extra):
        if kind in said and content[_BEFORE_UNICODE:] != said[kind]:
            what = "name" if kind == _UNICODE_PATH else "comment"
            raise DeserializeError(
                f"expected one {what} of a record, found {bytes(content[_BEFORE_UNICODE:][:80])!r} in an "
                f"extra field and {bytes(said[kind][:80])!r} in the header",
                path=path,
            )


def _check(
    data: memoryview, headers: list[_Header], directory: int, source: str, limits: Limits
) -> list[Entry]:
    entries: list[Entry] = []
    extents: list[tuple[int, int, str]] = []
    seen: dict[str, str] = {}
    root: str | None = None
    for header in headers:
        full_name = _checked_name(header, source, limits)
        first, _, name = full_name.partition("/")
        if not name and not full_name.endswith("/"):
            raise DeserializeError(
                f"expected every record inside one folder, found {full_name!r} at the top",
                path=source,
                hint="This is no .pt2 archive, or one of torch 2.7 or older: load and save it there",
            )
        if root is None:
            root = first
        elif first != root:
            raise DeserializeError(f"expected one root folder, found {root!r} and {first!r}", path=source)
        key = name if name.startswith(EXTRA) else name.casefold()
        if key in seen:
            raise DeserializeError(
                f"expected records of different names, found {seen[key]!r} and {name!r}",
                path=source,
            )
        seen[key] = name
        path = f"{source}:{name}"
        offset, stop = _data_extent(data, header, directory, path)
        extents.append((header.header_offset, stop, path))
        if name and not name.endswith("/"):
            entries.append(Entry(name, header.method, header.crc32, offset, header.packed_size, header.size))
        elif header.size:
            raise DeserializeError(f"expected an empty folder, found one of {header.size} bytes", path=path)
    extents.sort()
    borders = [(0, 0, source), *extents, (directory, directory, f"{source}: the directory")]
    for (_, stop, path), (start, _, following) in itertools.pairwise(borders):
        if start < stop:
            raise DeserializeError(
                f"expected its end before {following} begins at byte {start}, found it at {stop}", path=path
            )
        _check_padding(data, stop, start, source)
    return entries


def _check_padding(data: memoryview, start: int, stop: int, source: str) -> None:
    """Refuse what no record holds. PyTorch pads within extra fields, others with zeros."""
    for at in range(start, stop, _AT_ONCE):
        gap = bytes(data[at : min(at + _AT_ONCE, stop)])
        if gap.count(0) != len(gap):
            raise DeserializeError(
                f"expected zeros between records, found others from byte {start} to {stop}",
                path=source,
                hint="Something was put into the file or in front of it, or a tool left an old record there",
            )


def _checked_name(header: _Header, source: str, limits: Limits) -> str:
    raw = header.raw_name
    try:
        name = raw.decode("utf-8" if header.flags & _UTF8 else "ascii")
    except UnicodeDecodeError as error:
        raise DeserializeError(
            f"expected a record's name in UTF-8, found {raw[:80]!r}", path=source
        ) from error
    if len(name) > limits.record_name_length:
        raise DeserializeError(
            f"expected a record's name of at most {limits.record_name_length} characters, found {len(name)}",
            path=source,
            hint=raising("record_name_length"),
        )
    if not is_plain_path(name.removesuffix("/")):
        raise UnsafeArtifactError(
            f"expected a plain relative path as a record's name, found {name!r}", path=source
        )
    path = f"{source}:{name}"
    if header.flags & _ENCRYPTED:
        raise UnsafeArtifactError("expected a record in the clear, found an encrypted one", path=path)
    if header.flags & ~_KNOWN_FLAGS:
        raise DeserializeError(f"expected flags of {_KNOWN_FLAGS:#x}, found {header.flags:#x}", path=path)
    if header.method not in (STORED, DEFLATED):
        raise DeserializeError(
            f"expected a stored or deflated record, found compression method {header.method}", path=path
        )
    if header.method == STORED and header.packed_size != header.size:
        raise DeserializeError(
            f"expected one size of a stored record, found {header.packed_size} and {header.size}", path=path
        )
    return name


def is_plain_path(name: str) -> bool:
    """Whether a record's name is a relative path that stays in its folder, on any system.

    Example:
        >>> is_plain_path("models/model.json"), is_plain_path("models/../x"), is_plain_path("/x")
        (True, False, False)
    """
    parts = name.split("/")
    return "\\" not in name and name.isprintable() and not any(part in ("", ".", "..") for part in parts)


def _data_extent(data: memoryview, header: _Header, directory: int, path: str) -> tuple[int, int]:
    """Where the record's bytes begin, and where the record ends, after comparing its local header."""
    at = header.header_offset
    if at + _LOCAL.size > directory:
        raise DeserializeError(
            f"expected a local header before the directory at byte {directory}, found one announced at {at}",
            path=path,
            hint="The file may be cut short",
        )
    (
        signature, _, flags, method, _, _, crc32, packed, unpacked, name_length, extra_length,
    ) = _LOCAL.unpack_from(data, at)  # fmt: skip
    name_at = at + _LOCAL.size
    extra_at = name_at + name_length
    offset = extra_at + extra_length
    stop = offset + header.packed_size
    if signature != b"PK\x03\x04":
        raise DeserializeError(
            f"expected a local header at byte {at}, found {signature!r}", path=path, hint=_DAMAGED
        )
    if stop > directory:
        raise DeserializeError(
            f"expected its end before the directory at byte {directory}, found it at {stop}", path=path
        )
    local_name, extra = bytes(data[name_at:extra_at]), data[extra_at:offset]
    if local_name != header.raw_name:
        raise DeserializeError(
            f"expected its name in the local header too, found {local_name[:80]!r}", path=path
        )
    if method != header.method or (flags ^ header.flags) & (_ENCRYPTED | _DESCRIPTOR):
        raise DeserializeError(
            f"expected method {header.method} and flags {header.flags:#x} in the local header, as in the "
            f"directory, found {method} and {flags:#x}",
            path=path,
        )
    _check_unicode(extra, data[name_at:extra_at], b"", path)
    unpacked, packed = _widened(extra, (unpacked, packed), path)
    may_be_zero = bool(flags & _DESCRIPTOR)
    for what, local, central in (
        ("CRC", crc32, header.crc32),
        ("compressed size", packed, header.packed_size),
        ("size", unpacked, header.size),
    ):
        if local != central and not (may_be_zero and local == 0):
            raise DeserializeError(
                f"expected the {what} {central} in the local header, as in the directory, found {local}",
                path=path,
            )
    if may_be_zero:
        stop = _descriptor_end(data, header, stop, directory, path)
    return offset, stop


def _descriptor_end(data: memoryview, header: _Header, at: int, directory: int, path: str) -> int:
    """The end of the descriptor behind the data, whose sizes take 4 bytes each or 8."""
    for layout in ("<4s3L", "<4sL2Q"):
        stop = at + struct.calcsize(layout)
        if stop <= directory and struct.unpack_from(layout, data, at) == (
            b"PK\x07\x08",
            header.crc32,
            header.packed_size,
            header.size,
        ):
            return stop
    raise DeserializeError(
        f"expected CRC {header.crc32} and sizes {header.packed_size} and {header.size} behind the data, "
        "as in the directory, found others",
        path=path,
    )
