"""Programs in an archive: the records that one consists of, read in either form and written in both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..errors import DeserializeError, SerializeError
from ..format_versions import check_dropped
from ..generated import DepthError, WidthError, json_codec, thrift_codec
from ..generated.types import (
    REVISION,
    SCHEMA_VERSION,
    ArchiveIndex,
    ExportedProgram,
    IndexEntry,
    PayloadConfig,
    SchemaVersion,
    Writer,
)
from ..trees import Codec, beyond_error, check_size, decode, decode_program, encode
from ..version import __version__
from ..warning import warn_user
from . import records
from .forms import Form
from .index import Index, check_hash, choose_form, documents, index_entries
from .payloads import Payload, read_payloads
from .reader import ArchiveReader
from .target import Target, open_target
from .writer import ArchiveWriter

CODECS: dict[Form, Codec] = {Form.JSON: json_codec, Form.THRIFT: thrift_codec}

Content = bytes | bytearray | memoryview


def giving(content: Content) -> Callable[[], Content]:
    """What gives a record's content, of one that is there already."""
    return lambda: content


@dataclass(slots=True)
class StoredProgram:
    """One program as it was read from an archive.

    Attributes:
        tree: The program without its weights.
        weights: Parameters and persistent buffers, by name.
        constants: Constants and non-persistent buffers, by name.
        dropped: Paths of fields that a newer version wrote and that reading has dropped.
        path: The record that the tree was read from, in messages.
    """

    tree: ExportedProgram
    weights: dict[str, Payload]
    constants: dict[str, Payload]
    dropped: list[str]
    path: str


@dataclass(slots=True)
class NewProgram:
    """One program to be written.

    Attributes:
        tree: The program without its weights.
        weights: Which weight lies in which payload.
        constants: Which constant lies in which payload.
        sample_inputs: Example inputs as PyTorch pickles them; empty if there are none.
        flat_inputs: Their leaves alone, where the pickle cannot be opened without running code.
    """

    tree: ExportedProgram
    weights: PayloadConfig
    constants: PayloadConfig
    sample_inputs: Content = b""
    flat_inputs: Content | None = None


def read_index(reader: ArchiveReader) -> Index | None:
    """The archive's index, if it has one.

    Raises:
        DeserializeError: It is damaged.
    """
    if records.INDEX not in reader:
        return None
    path = reader.path(records.INDEX)
    index, dropped = decode(thrift_codec, ArchiveIndex, reader.record(records.INDEX), path, reader.limits)
    check_dropped(dropped, SchemaVersion(*SCHEMA_VERSION), index.writer, path)
    return Index.of(index)


def programs_to_read(reader: ArchiveReader, names: Iterable[str] | None) -> list[str]:
    """Which programs of an archive to read.

    Args:
        reader: The archive.
        names: The programs that a caller wants; None for all.

    Raises:
        DeserializeError: There is no program at all, or not one of these.
    """
    stored = records.program_names(list(reader.entries))
    if not stored:
        raise DeserializeError(
            "expected at least one program (models/NAME.json), found none",
            path=reader.name,
            hint="The archive may hold compiled code only",
        )
    if names is None:
        return stored
    wanted = list(names)
    for name in wanted:
        if name not in stored:
            raise DeserializeError(
                f"expected a program {name!r:.80}, found {', '.join(map(repr, stored))}",
                path=reader.name,
                hint="Pass name=... to take another one",
            )
    return wanted


def read_program(
    reader: ArchiveReader,
    index: Index | None,
    name: str,
    form: Form | None,
    views: dict[str, memoryview],
) -> StoredProgram:
    """Read one program and find its payloads.

    Args:
        reader: The archive.
        index: Its index.
        name: The program.
        form: The form to read, or None to let the index decide.
        views: Payloads found so far, by record.

    Raises:
        DeserializeError: A record is missing or damaged.
    """
    chosen = choose_form(reader, index, name, form)
    codec = CODECS[chosen]
    names = documents(name, chosen)
    contents = [_document(reader, index, record, chosen, name) for record in names]
    paths = [reader.path(record) for record in names]
    dropped: list[str] = []
    tree = decode_program(codec, contents[0], paths[0], dropped, reader.limits)
    writer = tree.writer if index is None else index.writer
    configs = []
    for content, path in zip(contents[1:], paths[1:], strict=True):
        config, unknown = decode(codec, PayloadConfig, content, path, reader.limits)
        check_dropped(unknown, tree.schema_version, writer, path)
        dropped += unknown
        configs.append(config)
    return StoredProgram(
        tree=tree,
        weights=read_payloads(reader, configs[0], records.WEIGHTS, views, paths[1]),
        constants=read_payloads(reader, configs[1], records.CONSTANTS, views, paths[2]),
        dropped=dropped,
        path=paths[0],
    )


def _document(reader: ArchiveReader, index: Index | None, record: str, form: Form, name: str) -> memoryview:
    if record not in reader:
        raise DeserializeError(
            f"expected program {name!r} as {form}, but the archive has no such record",
            path=reader.path(record),
            hint=_missing_hint(reader, form, name),
        )
    content = reader.record(record)
    if form is Form.THRIFT:
        check_hash(reader, index, record, content)
    return content


def _missing_hint(reader: ArchiveReader, form: Form, name: str) -> str:
    other = Form.JSON if form is Form.THRIFT else Form.THRIFT
    if all(record in reader for record in documents(name, other)):
        return f'Read it with form="{other}"'
    if records.legacy_weights(name) in reader:
        return "Weights in one pickle, as torch 2.8 wrote them: load it with torch and save it again"
    return "Save the program again"


def write_archive(
    target: Target,
    programs: Mapping[str, NewProgram],
    payloads: Mapping[str, Callable[[], Content]],
    others: Mapping[str, Callable[[], Content]],
    *,
    formats: Sequence[Form],
    compress: bool,
    durable: bool,
) -> None:
    """Write an archive as a whole.

    Args:
        target: Where to.
        programs: By name.
        payloads: Content of the payloads that the programs' configs name, by record.
        others: Further records.
        formats: The forms to write each program in.
        compress: Deflate the programs; otherwise they are stored aligned, so that readers can map them.
        durable: Wait until the bytes are on the disk.

    Raises:
        SerializeError: A program cannot be encoded, or two records have one name.
        OSError: Writing failed; the old file is whole.
    """
    entries: list[IndexEntry] = []
    encoded: dict[str, bytes] = {}
    for name, program in programs.items():
        for form, contents in _encoded(name, program, formats, path=name if len(programs) > 1 else ""):
            for record, content in zip(documents(name, form), contents, strict=True):
                if record in encoded or record == records.INDEX:
                    raise SerializeError(
                        f"expected a record {record!r} for program {name!r}, found one which is taken",
                        path=name,
                        hint="Give the program another name",
                    )
                try:
                    check_size(CODECS[form], content, record)
                except DeserializeError as error:
                    warn_user(f"{name}: loading needs higher limits than by default: {error}")
                encoded[record] = content
            entries += index_entries(name, form, contents)
    writer = Writer(name="pt2wire", version=__version__, revision=REVISION)
    encoded[records.INDEX] = encode(thrift_codec, ArchiveIndex(writer=writer, entries=entries))
    with open_target(target, durable=durable) as file, ArchiveWriter(file, compress=compress) as archive:
        for record, content in records.FIXED_CONTENT.items():
            archive.add(record, content)
        for record, content in encoded.items():
            archive.add(record, content, deflate=True)
        for name, program in programs.items():
            archive.add(records.sample_inputs(name), program.sample_inputs)
            if program.flat_inputs is not None:
                archive.add(records.flat_inputs(name), program.flat_inputs)
        archive.add_all((*payloads.items(), *others.items()))


def _encoded(
    name: str, program: NewProgram, formats: Sequence[Form], path: str
) -> Iterator[tuple[Form, tuple[bytes, bytes, bytes]]]:
    """The three documents of a program in each form."""
    parts = (program.tree, program.weights, program.constants)
    if program.tree.beyond:
        # PyTorch must not misread what it cannot express.
        if Form.THRIFT not in formats:
            raise beyond_error(program.tree.beyond, path, 'Add "thrift" to the formats')
        formats = (Form.THRIFT,)
    for form in formats:
        try:
            tree, weights, constants = (encode(CODECS[form], part, path) for part in parts)
        except SerializeError as error:
            # Thrift goes less deep than JSON and holds 64 bits; all else that is wrong is wrong in JSON too.
            json_holds_it = isinstance(error.__cause__, (DepthError, WidthError))
            if json_holds_it and form is Form.THRIFT and Form.JSON in formats:
                warn_user(f"{name}: saved as JSON only: {error}")
                continue
            raise
        yield form, (tree, weights, constants)
