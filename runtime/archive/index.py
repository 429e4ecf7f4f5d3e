"""`thrift/index.compact`: which bytes belong together, to notice when another tool has changed some.

Each program is stored in up to two forms, JSON and Thrift. The index lists the records of both with CRC, size
and SHA-256 of their uncompressed bytes. Thrift is read first. Where another tool has changed the JSON, which
is the form that PyTorch reads, the JSON is the truth and a warning says so. Changed Thrift is refused, since
nothing but pt2wire writes it.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import DeserializeError
from ..generated.types import ArchiveIndex, IndexEntry, Writer
from ..warning import warn_user
from . import records
from .forms import Form
from .reader import ArchiveReader


class Documents(NamedTuple):
    """The records of one program in one form."""

    program: str
    weights: str
    constants: str


def documents(name: str, form: Form) -> Documents:
    """What the records of a program are called.

    Example:
        >>> documents("model", Form.THRIFT).weights
        'thrift/model_weights.compact'
    """
    if form is Form.JSON:
        return Documents(records.program_json(name), records.weights_json(name), records.constants_json(name))
    return Documents(
        records.program_thrift(name), records.weights_thrift(name), records.constants_thrift(name)
    )


# The `form` of an entry says what its record holds; the three JSON documents share one value.
_ENTRY_FORMS = {
    Form.JSON: ("json", "json", "json"),
    Form.THRIFT: ("program", "weights", "constants"),
}


def index_entries(name: str, form: Form, contents: tuple[bytes, bytes, bytes]) -> list[IndexEntry]:
    """Entries for the three documents of a program, given their bytes."""
    return [
        IndexEntry(
            program=name,
            form=kind,
            record=record,
            crc32=zlib.crc32(content),
            size=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
        )
        for kind, record, content in zip(_ENTRY_FORMS[form], documents(name, form), contents, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Index:
    """The entries of an archive's index, as they are looked up.

    Attributes:
        writer: Who wrote the archive.
        by_program: Name of the program -> record -> entry.
        by_record: Record -> entry.
    """

    writer: Writer
    by_program: dict[str, dict[str, IndexEntry]]
    by_record: dict[str, IndexEntry]

    @classmethod
    def of(cls, index: ArchiveIndex) -> Index:
        """The index by program and record, made once: an archive may have many of both.

        Example:
            >>> entry = IndexEntry(program="model", form="json", record="a", crc32=0, size=0, sha256="")
            >>> writer = Writer(name="pt2wire", version="1", revision=1)
            >>> list(Index.of(ArchiveIndex(writer=writer, entries=[entry])).by_program)
            ['model']
        """
        by_program: dict[str, dict[str, IndexEntry]] = {}
        by_record: dict[str, IndexEntry] = {}
        for entry in index.entries:
            by_program.setdefault(entry.program, {}).setdefault(entry.record, entry)
            by_record.setdefault(entry.record, entry)
        return cls(index.writer, by_program, by_record)


def choose_form(reader: ArchiveReader, index: Index | None, name: str, form: Form | None) -> Form:
    """Which form of a program to read.

    Args:
        reader: The archive.
        index: Its index, if it has one.
        name: The program.
        form: The form that the caller demands, or None for the policy of this module.

    Raises:
        DeserializeError: A record that the index lists is missing, and no form is demanded.
    """
    if form is not None:
        return form
    listed = {} if index is None else index.by_program.get(name, {})
    json = documents(name, Form.JSON)
    if not listed:
        return Form.JSON
    missing = [record for record in listed if record not in reader]
    if missing:
        raise DeserializeError(
            "expected this record, which the index lists, found none",
            path=reader.path(missing[0]),
            hint='Read what is left with form="json" or form="thrift"',
        )
    changed = [record for record in json if record in reader and _differs(reader, listed.get(record), record)]
    if changed:
        warn_user(
            f"{reader.path(changed[0])} was changed after the archive had been written, by another tool: "
            f"reading JSON, and ignoring the Thrift form of {name!r}"
        )
        return Form.JSON
    return Form.THRIFT if documents(name, Form.THRIFT).program in listed else Form.JSON


def check_hash(reader: ArchiveReader, index: Index | None, record: str, content: memoryview) -> None:
    """Compare a Thrift document with what the index says about it.

    Raises:
        DeserializeError: The document is not what the index was made for.
    """
    if index is None:
        return
    entry = index.by_record.get(record)
    if entry is None:
        raise DeserializeError(
            "expected a record that the archive's index lists, found one that it does not",
            path=reader.path(record),
            hint='form="json" reads the other form',
        )
    if entry.size != len(content) or entry.sha256 != hashlib.sha256(content).hexdigest():
        raise DeserializeError(
            "expected the bytes that the archive's index was made for, found others",
            path=reader.path(record),
            hint='The file is damaged or was changed. form="json" reads the other form',
        )


def _differs(reader: ArchiveReader, listed: IndexEntry | None, record: str) -> bool:
    entry = reader.entries[record]
    if listed is None or entry.size != listed.size:
        return True
    return entry.crc32 != listed.crc32 and entry.crc32 != 0
