"""Writing the records of a PT2 archive: the same bytes for the same content, straight from tensor memory."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import IO, Any, Self

from ..errors import SerializeError
from ..limits import DEFAULT_LIMITS, MIB, inflates_much
from .checksums import start_crc32
from .records import ALIGNMENT, EXTRA, ROOT

_LOCAL_HEADER_SIZE = 30
_ZIP64_EXTRA_SIZE = 20
_PADDING_HEADER = struct.Struct("<2sH")
#: From this size on a record gets 64-bit sizes; deflating may add a little.
_LARGE = 0xFFFFFFFF - 64 * MIB


class ArchiveWriter:
    """A zip file with one root folder, fixed times, and stored records aligned as PyTorch aligns them.

    Args:
        file: Where to write. Bytes are written in order and nothing is written twice; `tell` must count them
            from where the archive begins.
        compress: Whether records added with `deflate=True` really are; if not, they are stored and aligned.
    """

    def __init__(self, file: IO[bytes], *, compress: bool = True) -> None:
        self._zip = zipfile.ZipFile(file, "w")
        self._file = file
        self._compress = compress
        self._names: set[str] = set()
        self._unpacked = self._packed = 0  # bytes of deflated records

    def add(
        self,
        record: str,
        content: bytes | bytearray | memoryview,
        *,
        deflate: bool = False,
        crc: Callable[[], int] | None = None,
    ) -> None:
        """Append one record.

        Args:
            record: Its name below the root folder.
            content: Its bytes.
            deflate: Compress it, if the archive is to be compressed.
            crc: Gives its CRC-32, if somebody has begun to compute that.

        Raises:
            SerializeError: There is a record of that name already.
            OSError: Writing failed.
        """
        key = record if record.startswith(EXTRA) else record.casefold()
        if key in self._names:
            raise SerializeError(
                "expected a name that no other record has, found a second one of it",
                path=record,
                hint="Rename a program or a file",
            )
        self._names.add(key)
        crc = crc or start_crc32(content)
        view = memoryview(content).cast("B")
        info = zipfile.ZipInfo(f"{ROOT}/{record}", date_time=(1980, 1, 1, 0, 0, 0))
        info.create_system = 3  # else it tells the operating system
        info.file_size = len(view)
        if deflate and self._compress and len(view) > 0:
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o600 << 16
            self._append(info, view, self._deflated(view), crc)
        else:
            self._append(info, view, (view,), crc)

    def _deflated(self, view: memoryview) -> tuple[bytes, bytes]:
        """The bytes of a record, compressed, but not as well as readers take for an attack.

        Coding letters alone, without repetitions, saves seven eighths at most.
        """
        for strategy in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY):
            packer = zlib.compressobj(
                zlib.Z_DEFAULT_COMPRESSION,
                zlib.DEFLATED,
                -zlib.MAX_WBITS,
                zlib.DEF_MEM_LEVEL,
                strategy,
            )
            parts = packer.compress(view), packer.flush()
            packed = sum(map(len, parts))
            # Readers look at each record, and at all together.
            alone, together = (len(view), packed), (self._unpacked + len(view), self._packed + packed)
            if not any(inflates_much(*sizes, DEFAULT_LIMITS) for sizes in (alone, together)):
                break
        self._unpacked, self._packed = together
        return parts

    def add_all(self, contents: Iterable[tuple[str, Callable[[], bytes | bytearray | memoryview]]]) -> None:
        """Append records, and compute the CRC of each while the one before is being written.

        Args:
            contents: Names, and what gives the bytes. Not more than two contents are held at a time.
        """
        before: tuple[str, Any, Callable[[], int]] | None = None
        for record, get in contents:
            content = get()
            following = record, content, start_crc32(content)
            if before is not None:
                self.add(before[0], before[1], crc=before[2])
            before = following
        if before is not None:
            self.add(before[0], before[1], crc=before[2])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write the directory, or after an error let go of the file."""
        if kind is not None:
            self._zip.fp = None  # else the zip file's finalizer would write a directory some time later
        self._zip.close()

    def _append(
        self,
        info: zipfile.ZipInfo,
        view: memoryview,
        packed: Sequence[bytes | memoryview],
        crc: Callable[[], int],
    ) -> None:
        """Write a record behind its final header. `ZipFile.open` would go back to fill in the header, which
        not every file can, and compute the CRC on one processor."""
        zip64 = len(view) > _LARGE
        info.CRC = crc()
        info.compress_size = sum(len(part) for part in packed)
        info.header_offset = self._file.tell()
        if info.compress_type == zipfile.ZIP_STORED:
            info.extra = self._padding(info.filename, zip64)
        self._file.write(info.FileHeader(zip64))
        for part in packed:
            self._file.write(part)
        info.extra = b""  # the padding belongs to the local header only
        self._zip.filelist.append(info)
        self._zip.NameToInfo[info.filename] = info
        self._zip.start_dir = self._file.tell()

    def _padding(self, filename: str, zip64: bool) -> bytes:
        """An extra field that moves the data which follow the local header to an aligned offset."""
        header = _LOCAL_HEADER_SIZE + len(filename.encode()) + (_ZIP64_EXTRA_SIZE if zip64 else 0)
        length = -(self._file.tell() + header + _PADDING_HEADER.size) % ALIGNMENT
        return _PADDING_HEADER.pack(b"FB", length) + b"Z" * length
