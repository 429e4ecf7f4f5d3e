"""Extra files as the records that they are in an archive."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..errors import SerializeError
from ..warning import warn_user
from . import records
from .contents import Content, giving
from .record_names import check_record


def extra_records(extra_files: Mapping[str, str | bytes]) -> dict[str, Callable[[], Content]]:
    """Records for extra files.

    Raises:
        TypeError: A name or content is neither text nor bytes.
        SerializeError: A name is no relative path or too long, or a text cannot be encoded.
    """
    if not isinstance(extra_files, Mapping):
        raise TypeError(f"expected extra files by name, found {type(extra_files).__name__}")
    made: dict[str, Callable[[], Content]] = {}
    alike: dict[bytes, str] = {}
    for name, content in extra_files.items():
        if not isinstance(name, str) or not isinstance(content, str | bytes | bytearray | memoryview):
            raise TypeError(
                f"expected extra files as text or bytes by name, found {name!r:.80}: {type(content).__name__}"
            )
        where = f"extra_files[{name[:80]!r}]"
        check_record(records.EXTRA + name, "an extra file", where)
        # PyTorch's reader compares ASCII letters without their case.
        other = alike.setdefault(name.encode().lower(), name)
        if other != name:
            warn_user(
                f"extra files {other!r} and {name!r} differ in case only: torch.export.load gives the "
                "content of one for both"
            )
        made[records.EXTRA + name] = giving(_as_bytes(content, where))
        if not _is_text(content):
            warn_user(
                f"{where}: torch.export.load will refuse the archive, as it reads all extra files as UTF-8; "
                "pt2wire reads it. Encode the file, for example with base64, for PyTorch"
            )
    return made


def _is_text(content: str | Content) -> bool:
    if isinstance(content, str):
        return True
    try:
        str(content, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _as_bytes(content: str | Content, where: str) -> Content:
    if not isinstance(content, str):
        return content
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise SerializeError(
            f"expected text that UTF-8 can hold, found the surrogate {content[error.start]!r} "
            f"at character {error.start}",
            path=where,
        ) from error
