"""Where an archive is written to: beside the target first, then in its place."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import stat
from collections.abc import Iterator
from typing import IO, Any, TypeAlias, cast

from .sources import check_open, position

Target: TypeAlias = str | os.PathLike[str] | IO[bytes]


@contextlib.contextmanager
def open_target(target: Target, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the target's place when the block ends without an exception.

    A path is replaced as a whole: its mode and a symbolic link to it stay, and until the very end everybody
    sees the old content. An exception of any kind leaves the old file and no temporary file. Devices
    and pipes are written in place, and so are file objects, from their position on; what a file object held
    behind that is cut off, if it can be.

    Args:
        target: A path, or a binary file object.
        durable: Wait until the bytes are on the disk, so that a crash of the machine right after saving
            cannot lose both files.

    Raises:
        OSError: As the operating system reports it, with the target's name.
        TypeError: The target is neither a path nor a writable binary file object.
        ValueError: The path has a null character, or the file object is closed.
    """
    check_open(target)
    if not isinstance(target, str | os.PathLike):
        if not hasattr(target, "write"):
            raise TypeError(f"expected a path or a binary file object, found {type(target).__name__}")
        if isinstance(target, io.TextIOBase):
            raise TypeError("expected a file object opened in binary mode, found one in text mode")
        yield from _write_through(target)
        return
    path = os.fspath(target)
    if not path:  # which would resolve to the current folder
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    mode = _mode(path)
    real = _end_of_links(path)
    if mode is None or (stat.S_ISREG(mode) and not os.path.islink(real)):
        yield from _replace(real, path, mode, durable)
        return
    try:
        with open(path, "wb") as device:  # says so if it is a folder
            yield from _write_through(device)
    except OSError as error:
        if error.errno and error.filename is None:
            raise OSError(error.errno, error.strerror, path) from error
        raise


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _end_of_links(path: str) -> str:
    """Follow a path that is a symbolic link, but for the links of procfs, which stand for open files.

    What these resolve to need not be a path, and replacing the file would leave the open one as it is.
    Whether it is the same file cannot be asked: meanwhile somebody else may put a new file in its place.
    """
    open_files = os.stat("/proc").st_dev if os.path.exists("/proc") else None
    for _ in range(_LINKS):
        if not os.path.islink(path) or os.lstat(path).st_dev == open_files:
            break
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return path


#: More links in a row no system follows.
_LINKS = 40


def _replace(path: str, shown: str, mode: int | None, durable: bool) -> Iterator[IO[bytes]]:
    """Write beside `path` and rename; errors speak of the target as the caller wrote it, `shown`."""
    effective = os.access in os.supports_effective_ids
    if mode is not None and not os.access(path, os.W_OK, effective_ids=effective):  # renaming would not ask
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), shown)
    folder, name = os.path.split(path)
    folder = folder or os.curdir
    temporary = os.path.join(folder, f".{name[:40]}.{secrets.token_hex(8)}.tmp")
    named = False
    try:
        with _unnamed(folder) or open(temporary, "xb") as file:
            named = file.name == temporary
            if mode is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
            if not named:
                named = True
                _name(file, temporary)
        os.replace(temporary, path)
    except BaseException as error:
        if named:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        if isinstance(error, OSError) and error.errno and _is_about(error, temporary):
            told = OSError(error.errno, error.strerror, shown)
            told.add_note("Nothing was saved. If there was a file before, it is unchanged.")
            raise told from error
        raise
    if durable:
        try:
            _sync_folder(folder)
        except OSError as error:
            told = OSError(error.errno, error.strerror, shown)
            told.add_note("The file was saved, but a crash of the machine right now could undo it.")
            raise told from error


def _is_about(error: OSError, path: str) -> bool:
    return error.filename is None or path in (error.filename, error.filename2)


def _unnamed(folder: str) -> IO[bytes] | None:
    """A new file in a folder, without a name, so that nothing is left of it if the process is killed.

    None where the system has no such files: not all file systems of Linux do, and macOS has none.
    """
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None:
        return None
    try:
        descriptor = os.open(folder, flag | os.O_RDWR | os.O_CLOEXEC, 0o666)
    except OSError:  # opening one with a name says why, if that fails too
        return None
    if not os.path.exists(_PROCESS_FILE.format(descriptor)):  # it could not get a name
        os.close(descriptor)
        return None
    return open(descriptor, "wb")


_PROCESS_FILE = "/proc/self/fd/{}"


def _name(file: IO[bytes], path: str) -> None:
    """Give a file a name. Where another file has it, only renaming can replace that."""
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        # Only with a folder does Python follow the link that stands for the open file.
        os.link(_PROCESS_FILE.format(file.fileno()), path, src_dir_fd=folder)
    finally:
        os.close(folder)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # file systems that have no such thing
            raise
    finally:
        os.close(descriptor)


def _write_through(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """Write from the file object's position to its end, and go back as torch.export.save does."""
    sequential = _Sequential(file)
    yield cast(IO[bytes], sequential)
    sequential.flush()
    end = position(file)
    if end is None:
        return
    # Where the archive begins by what the file says now: a file opened to append had another position before.
    start = end - sequential.tell()
    if start < 0:  # /dev/null is always at 0
        return
    # An archive ends where its file does. What is too simple to be cut keeps its rest.
    with contextlib.suppress(OSError, AttributeError):
        file.truncate()
    with contextlib.suppress(OSError):  # what compresses on the way cannot go back
        file.seek(start)


class _Sequential:
    """A file object that takes bytes one after another, counts them and never seeks.

    Whether seeking works cannot be asked: a file opened to append says that it is seekable, and puts what is
    written after a seek at its end. So nothing is written out of order.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._count = 0

    def write(self, data: Any) -> int:
        _write_all(self._file, data)
        self._count += len(data)
        return len(data)

    def tell(self) -> int:
        return self._count

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        raise io.UnsupportedOperation("an archive is written in order")

    def flush(self) -> None:
        flush = getattr(self._file, "flush", None)
        if flush is not None:
            flush()


def _write_all(file: IO[bytes], data: Any) -> None:
    """Write everything: an unbuffered file may take a part only, on a disk that fills up it always does."""
    written: object = file.write(data)
    view = memoryview(data).cast("B")
    # A simple object of one's own that returns nothing has taken all.
    while type(written) is int and written < len(view):
        if written <= 0:
            raise OSError("the file object takes no more bytes")
        view = view[written:]
        written = file.write(view)
    if written is None and isinstance(file, io.RawIOBase):
        raise BlockingIOError("the file object would block")
