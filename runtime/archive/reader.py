"""Reading the records of a PT2 archive."""

from __future__ import annotations

import zlib

from ..errors import DeserializeError
from ..limits import DEFAULT_LIMITS, Limits, inflates_much, raising
from .checksums import crc32
from .directory import STORED, Entry, read_directory
from .records import ARCHIVE_FORMAT, ARCHIVE_VERSION, BYTEORDER, FIXED_CONTENT, MODELS
from .sources import Source, describe, position_named, private_bytes
from .views import carried


class ArchiveReader:
    """The records of one archive, by name.

    Stored records are writable views of private memory: nothing is copied, and writing to them never reaches
    the file. Deflated records are read-only copies.

    Args:
        source: A path, or a binary file object that is read from its position on, and left there.
        limits: Bounds on what the file may ask for.
        mapped: Whether a file may be mapped, which then has to stay as long as the records are in use.

    Raises:
        OSError: The file cannot be opened.
        TypeError: The source is neither a path nor a binary file object.
        ValueError: The path has a null character, or the file object is closed.
        DeserializeError: The file is not a sound PT2 archive.
    """

    def __init__(self, source: Source, *, limits: Limits = DEFAULT_LIMITS, mapped: bool = True) -> None:
        self.name = describe(source)
        self.limits = limits
        with position_named(source):
            self._data = private_bytes(source, self.name, limits, mapped=mapped)
            entries = read_directory(self._data, self.name, limits)
        self.entries: dict[str, Entry] = {entry.name: entry for entry in entries}
        self._verified: set[str] = set()
        self._views: dict[str, memoryview] = {}
        self._check_inflation()
        self._check_format()

    def __contains__(self, record: str) -> bool:
        return record in self.entries

    def path(self, record: str) -> str:
        """The record as it is called in messages."""
        return f"{self.name}:{record}"

    def record(self, record: str, *, verify: bool = True) -> memoryview:
        """The uncompressed bytes of a record, its CRC checked unless told otherwise.

        Raises:
            DeserializeError: There is no such record, or it is damaged.
        """
        entry = self.entries.get(record)
        if entry is None:
            raise DeserializeError("expected this record, but the archive has none", path=self.path(record))
        packed = self._packed(entry)
        if entry.method == STORED:
            # PyTorch can be told not to compute CRCs; it then writes 0.
            if verify and entry.crc32 and record not in self._verified:
                self._check_crc(entry, packed)
            return packed
        content = memoryview(self._inflate(entry, packed))
        self._check_crc(entry, content)
        return content

    def __getstate__(self) -> dict[str, object]:
        # Records, not the file: the views that weights have of them are not to be there twice.
        packed = {entry.name: carried(self._packed(entry)) for entry in self.entries.values()}
        return {**self.__dict__, "_views": packed, "_data": carried(memoryview(b""))}

    def _packed(self, entry: Entry) -> memoryview:
        """A record as it lies in the file; the same view each time."""
        view = self._views.get(entry.name)
        if view is None:
            view = self._data[entry.offset : entry.offset + entry.packed_size]
            self._views[entry.name] = view
        return view

    def verify(self) -> None:
        """Compare every record with its CRC, but for those that have been read and so compared before.

        Raises:
            DeserializeError: Names the first damaged record.
        """
        for record in self.entries:
            if record not in self._verified:
                self.record(record)

    def _check_crc(self, entry: Entry, content: memoryview) -> None:
        found = crc32(content)
        if found != entry.crc32:
            raise DeserializeError(
                f"expected bytes with CRC {entry.crc32:08x}, found {found:08x}",
                path=self.path(entry.name),
                hint="The file is damaged: copy or download it again",
            )
        self._verified.add(entry.name)

    def _check_inflation(self) -> None:
        """Many small records may hold together what one may not."""
        deflated = [entry for entry in self.entries.values() if entry.method != STORED]
        size, packed = sum(entry.size for entry in deflated), sum(entry.packed_size for entry in deflated)
        if inflates_much(size, packed, self.limits):
            raise self._bomb(size, packed, self.name)

    def _bomb(self, size: int, packed: int, path: str) -> DeserializeError:
        return DeserializeError(
            f"expected records that grow within the limits, found {packed} bytes that claim to hold {size}",
            path=path,
            hint=raising("inflated_bytes", "inflation_ratio", "inflation_floor"),
        )

    def _inflate(self, entry: Entry, packed: memoryview) -> bytes:
        much = inflates_much(entry.size, entry.packed_size, self.limits)
        if much or entry.size > self.limits.inflated_bytes:
            raise self._bomb(entry.size, entry.packed_size, self.path(entry.name))
        stream = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            content = stream.decompress(packed, entry.size + 1)
        except zlib.error as error:
            raise DeserializeError(
                f"expected {entry.size} bytes compressed by deflate, found damaged ones",
                path=self.path(entry.name),
                hint="The file is damaged: copy or download it again",
            ) from error
        if not stream.eof or stream.unused_data or len(content) != entry.size:
            raise DeserializeError(
                f"expected {entry.size} bytes after decompression, found another number",
                path=self.path(entry.name),
            )
        return content

    def _check_format(self) -> None:
        if ARCHIVE_FORMAT not in self.entries:
            raise DeserializeError(
                f"expected a .pt2 archive, found a zip file without the record {ARCHIVE_FORMAT!r}",
                path=self.name,
                hint=_other_format(self.entries),
            )
        for record in (ARCHIVE_FORMAT, ARCHIVE_VERSION, BYTEORDER):
            if record not in self.entries:
                continue
            found = bytes(self.record(record)[:64])
            if found != FIXED_CONTENT[record]:
                raise DeserializeError(
                    f"expected {FIXED_CONTENT[record]!r}, found {found!r}", path=self.path(record)
                )


def _other_format(entries: dict[str, Entry]) -> str:
    """What a zip file that is no PT2 archive probably is."""
    if "data.pkl" in entries and "constants.pkl" in entries:
        return "This is TorchScript: load it with torch.jit.load"
    if "data.pkl" in entries:
        return "This was written by torch.save: load it with torch.load"
    if any(record.startswith(MODELS) for record in entries):
        return "Records are missing: write the file again"
    return "Is this the right file?"
