"""What an archive is read from: its bytes as private memory, and what it is called."""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import stat
import tempfile
from collections.abc import Iterator
from typing import IO, TypeAlias

from ..errors import DeserializeError, UnsafeArtifactError
from ..limits import MIB, Limits
from .directory import ZIP_START, not_a_zip

_PlainFile: TypeAlias = io.BufferedReader | io.BufferedRandom | io.FileIO
Source: TypeAlias = str | os.PathLike[str] | IO[bytes]

_PIECE = MIB
#: What `tempfile.NamedTemporaryFile` gives: a file with a name, and no class that is documented.
_TEMPORARY = tempfile._TemporaryFileWrapper


def describe(source: object) -> str:
    """What a source or target is called in messages.

    Example:
        >>> describe("model.pt2"), describe(io.BytesIO())
        ('model.pt2', '<BytesIO>')
    """
    if isinstance(source, str | os.PathLike):
        return str(os.fspath(source))
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else f"<{type(source).__name__}>"


def check_open(file: object) -> None:
    """Refuse what cannot be opened, or is open no more; Python's own message does not name it.

    Raises:
        ValueError: It is a path with a null character, or a file object that is closed.
    """
    if isinstance(file, str | os.PathLike):
        if "\0" in describe(file):
            raise ValueError(f"expected a path, found {describe(file)!r} with a null character")
    elif getattr(file, "closed", False):
        raise ValueError(f"expected an open file object, found {describe(file)}, which is closed")


def private_bytes(source: Source, name: str, limits: Limits, *, mapped: bool = True) -> memoryview:
    """The whole content of a source as writable memory that nobody else sees.

    Args:
        source: A path, or a binary file object that is read from its position on, and left there.
        name: What it is called in messages.
        limits: How much is read of what may have no end.
        mapped: Whether a file may be mapped: it is read when it is used, and must stay as long as it is.
    """
    check_open(source)
    if isinstance(source, str | os.PathLike):
        try:
            with open(source, "rb") as file:
                return private_bytes(file, name, limits, mapped=mapped)
        except OSError as error:
            if error.errno and error.filename is None:
                raise OSError(error.errno, error.strerror, name) from error
            raise
    if getattr(source, "read", None) is None:
        raise TypeError(f"expected a path or a binary file object, found {type(source).__name__}")
    if isinstance(source, io.TextIOBase):
        raise TypeError("expected a file object opened in binary mode, found one in text mode")
    plain = _regular_file(source)
    if plain is not None:
        return _map(plain) if mapped else _read_file(plain)
    if type(source) is io.BytesIO:
        return memoryview(bytearray(source.getbuffer()[source.tell() :]))
    with _position_kept(source):
        return memoryview(_read_all(source, name, limits))


def _read_all(file: IO[bytes], name: str, limits: Limits) -> bytearray:
    """What is left of a file that need not have an end, such as /dev/zero."""
    content = bytearray()
    while piece := file.read(_PIECE):
        if not isinstance(piece, bytes | bytearray | memoryview):
            break
        content += piece
        if len(content) > 1 and content[:2] != ZIP_START:
            raise not_a_zip(content, name)
        if len(content) > limits.streamed_bytes:
            raise DeserializeError(
                f"expected at most {limits.streamed_bytes} bytes of what is no regular file, found more",
                path=name,
                hint="Copy it to a file first, or raise `streamed_bytes` in the limits",
            )
    if not isinstance(piece, bytes | bytearray | memoryview):
        raise TypeError(f"expected a file object opened in binary mode, read() gave {type(piece).__name__}")
    return content


@contextlib.contextmanager
def position_named(source: Source) -> Iterator[None]:
    """Say of a file object that is not at its beginning where it is, if nothing can be read from there on."""
    try:
        yield
    except UnsafeArtifactError:
        raise
    except DeserializeError as error:
        at = None if isinstance(source, str | os.PathLike) else position(source)
        if at:
            where = (
                f"The file object is at byte {at}, perhaps where torch.export.load has left it: "
                "go to where the archive begins first, with file.seek(0)"
            )
            stop = "" if (error.hint or "?").endswith("?") else "."
            error.hint = f"{error.hint or ''}{stop} {where}".lstrip()
        raise


def position(file: IO[bytes]) -> int | None:
    """Where a file object is; a pipe is nowhere."""
    seekable = getattr(file, "seekable", None)
    return file.tell() if seekable is not None and seekable() else None


@contextlib.contextmanager
def _position_kept(file: IO[bytes]) -> Iterator[None]:
    """Leave a file object where it was, so that it can be read again; a pipe cannot."""
    at = position(file)
    try:
        yield
    finally:
        if at is not None:
            file.seek(at)


def _regular_file(file: IO[bytes]) -> _PlainFile | None:
    """A file whose size is known; None where there is no such thing."""
    plain = _plain_file(file)
    if plain is None or not stat.S_ISREG(os.fstat(plain.fileno()).st_mode):
        return None
    if plain.writable():
        plain.flush()
    # Files of procfs have a content nevertheless.
    return plain if os.fstat(plain.fileno()).st_size else None


def _map(file: _PlainFile) -> memoryview:
    """A private map of what is left of a file."""
    position = file.tell()
    if position >= os.fstat(file.fileno()).st_size:
        return memoryview(bytearray())
    return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))[position:]


def _read_file(file: _PlainFile) -> memoryview:
    """What is left of a file, however long it is by then."""
    content = bytearray(max(os.fstat(file.fileno()).st_size - file.tell(), 0))
    with _position_kept(file), memoryview(content) as left:
        filled = 0
        while filled < len(left) and (count := file.readinto(left[filled:])):
            filled += count
    return memoryview(content)[:filled]


def _plain_file(file: IO[bytes]) -> _PlainFile | None:
    """The file as `open` gives it, whose bytes are those of the file; of all else only `read` knows them.

    A GzipFile has a file number, a member of a tar file a file below, and a class of its own may decode.
    """
    if isinstance(file, _TEMPORARY):
        file = file.file
    if type(file) in (io.BufferedReader, io.BufferedRandom):
        return file if type(file.raw) is io.FileIO else None  # type: ignore[attr-defined, return-value]
    return file if type(file) is io.FileIO else None
