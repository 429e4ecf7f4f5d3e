"""Archives as data: read one without torch, look at it, change it, write it back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .archive import records
from .archive.contents import Content, NewProgram, programs_to_read, read_index, read_program, write_archive
from .archive.extents import check_payload
from .archive.extra_files import extra_records
from .archive.forms import DEFAULT_FORMATS, Form, FormName, check_form, check_formats
from .archive.index import documents
from .archive.payloads import Payload, alias_problem, config_of, each_payload, owners, same_bytes
from .archive.reader import ArchiveReader
from .archive.record_names import RecordNames, check_program_names
from .archive.sources import Source
from .archive.target import Target
from .arguments import check_flags, check_limits, described
from .called_with import inputs_digest
from .errors import Pt2WireError, SerializeError, joined
from .findings import Finding
from .format_versions import as_ours, with_writer
from .generated import CodecError, json_codec
from .generated.types import ExportedProgram, PayloadMeta
from .limits import DEFAULT_LIMITS, Limits
from .validation import validate_types
from .validation.writing import writing_findings
from .warning import warn_user


@dataclass(slots=True, repr=False)
class Archive:
    """The content of a `.pt2` archive.

    Everything may be changed, and `write` writes what is there then. Weights are views of the file's bytes:
    nothing is loaded before it is looked at. Pickles and deep copies take all bytes along.

    Example inputs are pickles, which stay closed in the file. `write` copies those that a tree was read with,
    under whatever name the tree has by then; another tree, such as a copy, gets those that were read under
    its name. A tree that is called with something else by then, of another dtype or size, is written without
    any, with a warning. A tree that is put into another archive leaves them behind: `load` and `save` carry
    them there.

    Attributes:
        programs: Name -> tree.
        weights: Name of the program -> name of the weight -> `Payload`: its metadata, and the bytes of the
            whole storage that it is a strided view of. Weights that share a storage have the same view.
        constants: Likewise constants and non-persistent buffers.
        extra_files: Name -> content.
        dropped: Name of the program -> paths of the fields that only a newer version knows. They are not in
            the tree.
        paths: Name of the program -> the record that its tree was read from, in messages.

    Example:
        >>> import io, pt2wire, torch
        >>> file = io.BytesIO()
        >>> pt2wire.save(torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),)), file)
        >>> archive = pt2wire.read(file)
        >>> [size.as_int for size in archive.weights["model"]["weight"].meta.tensor_meta.sizes]
        [1, 2]
    """

    programs: dict[str, ExportedProgram] = field(default_factory=dict)
    weights: dict[str, dict[str, Payload]] = field(default_factory=dict)
    constants: dict[str, dict[str, Payload]] = field(default_factory=dict)
    extra_files: dict[str, bytes] = field(default_factory=dict)
    dropped: dict[str, list[str]] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    _reader: ArchiveReader | None = field(default=None)
    _others: list[str] = field(default_factory=list)
    _read: dict[str, ExportedProgram] = field(default_factory=dict)
    _called_with: dict[str, bytes] = field(default_factory=dict)

    def __repr__(self) -> str:
        # Weights and trees in full would be thousands of lines.
        counts = {
            what: {name: len(held) for name, held in payloads.items()}
            for what, payloads in (("weights", self.weights), ("constants", self.constants))
        }
        listed = ", ".join(f"{what}={held}" for what, held in counts.items())
        return f"Archive(programs={list(self.programs)}, {listed}, extra_files={list(self.extra_files)})"

    @property
    def records(self) -> list[str]:
        """The names of all records in the file that this archive was read from."""
        return [] if self._reader is None else list(self._reader.entries)

    def record(self, name: str) -> memoryview:
        """The uncompressed bytes of a record, such as `models/model.json`, as they are in the file.

        Raises:
            KeyError: There is no such record.
            DeserializeError: It is damaged.
        """
        if self._reader is None or name not in self._reader:
            raise KeyError(name)
        return self._reader.record(name)

    def optional_record(self, name: str) -> memoryview | None:
        """The bytes of a record, or None if there is none of that name."""
        return self._reader.record(name) if self._reader is not None and name in self._reader else None


def read(
    f: Source, *, form: FormName | None = None, verify: bool = True, limits: Limits = DEFAULT_LIMITS
) -> Archive:
    """Read an archive as data. Needs no torch and runs nothing that the file brings.

    Args:
        f: A path, or a binary file object that is read from its position on, and left there.
        form: "json" or "thrift" demands one form of the programs; by default the archive's index decides.
        verify: Compare every record with its CRC. Without it only the programs are compared, not the weights.
        limits: What the file may cost at most; raise them for a file of your own that is refused.

    Raises:
        OSError: The file cannot be opened.
        TypeError: `f` is neither a path nor a binary file object, or `limits` are none.
        ValueError: `form` is another word, the path has a null character, or the file object is closed.
        DeserializeError: The file is no `.pt2` archive, is damaged, or has a version that cannot be read.

    Example:
        >>> import io, pt2wire, torch
        >>> file = io.BytesIO()
        >>> pt2wire.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), file)
        >>> [node.target for node in pt2wire.read(file).programs["model"].graph_module.graph.nodes]
        ['torch.ops.aten.relu.default']
    """
    return read_archive(f, None, form, verify, limits)


def read_archive(
    f: Source,
    names: Iterable[str] | None,
    form: FormName | None,
    verify: bool,
    limits: Limits,
    *,
    mapped: bool = True,
) -> Archive:
    """Read some programs of an archive, or all.

    Args:
        f: As for `read`.
        names: Which programs; None for all.
        form: As for `read`.
        verify: As for `read`.
        limits: As for `read`.
        mapped: Whether a file may be mapped, which then has to stay as long as the weights are in use.

    Raises:
        OSError: As for `read`.
        TypeError: As for `read`.
        ValueError: As for `read`.
        DeserializeError: As for `read`; or the archive has no such program.
    """
    demanded = check_form(form)
    check_flags(verify=verify)
    check_limits(limits)
    reader = ArchiveReader(f, limits=limits, mapped=mapped)
    index = read_index(reader)
    everything = list(reader.entries)
    known = {*records.FIXED_CONTENT, records.CONTAINER_ID, records.INDEX}
    archive = Archive(_reader=reader)
    views: dict[str, memoryview] = {}
    for name in programs_to_read(reader, names):
        program = read_program(reader, index, name, demanded, views)
        archive.programs[name] = archive._read[name] = program.tree
        archive._called_with[name] = inputs_digest(program.tree)
        archive.weights[name] = program.weights
        archive.constants[name] = program.constants
        archive.paths[name] = program.path
        if program.dropped:
            archive.dropped[name] = program.dropped
    for name in records.program_names(everything):
        known |= {*documents(name, Form.JSON), *documents(name, Form.THRIFT)}
        known |= {records.sample_inputs(name), records.flat_inputs(name)}
    for record in everything:
        if record.startswith(records.EXTRA):
            archive.extra_files[record.removeprefix(records.EXTRA)] = bytes(reader.record(record))
    # What the programs that were not read weigh is no part of this archive.
    told = (records.EXTRA, *(() if names is None else (records.WEIGHTS, records.CONSTANTS)))
    archive._others = [
        record
        for record in everything
        if record not in known and record not in views and not record.startswith(told)
    ]
    if verify:
        reader.verify()
    return archive


def write(
    archive: Archive,
    f: Target,
    *,
    formats: Sequence[FormName] = DEFAULT_FORMATS,
    compress: bool = True,
    durable: bool = True,
    drop_unknown: bool = False,
    allow_unsound: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> None:
    """Write an archive. Payloads that did not change are copied from the file they were read from.

    Programs that `load` would refuse, whatever it is permitted, are refused here, by their structure: whether
    operators are called as they want to be is left to `validate`, since that needs torch. A program that got
    fields of pt2wire's own is written with a `writer`, which they demand.

    Args:
        archive: What `read` returned, perhaps changed.
        f: A path, replaced as a whole when everything has been written, or a binary file object.
        formats: As for `save`.
        compress: As for `save`.
        durable: As for `save`.
        drop_unknown: Write programs of a newer version although fields that this version does not know have
            been dropped. They are written as programs of this version.
        allow_unsound: Write programs that `load` refuses, for other readers or to test some.
        limits: What a program may cost whoever loads it; raise them if `load` is to be given higher ones too.

    Raises:
        SerializeError: There is no program, a tree is not sound, cannot be encoded or does not fit its
            weights, or a name is one that reading would refuse.
        TypeError: Something in the archive, or another argument, has the wrong type.
        ValueError: `formats` lists another word or none, the path has a null character, or the file object is
            closed.
        OSError: Writing failed; the old file is whole.

    Example:
        >>> import io, pt2wire, torch
        >>> file, copy = io.BytesIO(), io.BytesIO()
        >>> pt2wire.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), file)
        >>> archive = pt2wire.read(file)
        >>> archive.extra_files["note.txt"] = b"checked"
        >>> pt2wire.write(archive, copy)
        >>> pt2wire.read(copy).extra_files
        {'note.txt': b'checked'}
    """
    forms = check_formats(formats)
    check_flags(compress=compress, durable=durable, drop_unknown=drop_unknown, allow_unsound=allow_unsound)
    if not isinstance(archive, Archive):
        raise TypeError(f"expected an Archive, found {type(archive).__name__}")
    check_limits(limits)
    _check_types(archive)
    names = _names_in_file(archive)
    payloads = RecordNames([*archive.weights.values(), *archive.constants.values()])
    programs: dict[str, NewProgram] = {}
    memories: dict[str, Payload] = {}
    for name, tree in archive.programs.items():
        weights = archive.weights.get(name, {})
        constants = archive.constants.get(name, {})
        _refuse(name, validate_types(tree))
        tree = with_writer(as_ours(tree, archive.dropped.get(names[name], []), drop_unknown, name))
        if not allow_unsound:
            found = writing_findings(tree, config_of(weights), config_of(constants), limits)
            _refuse(name, found, "pass allow_unsound=True if `load` need not take the program")
        _check_payloads(weights, {}, memories, f"{name}.weights")
        _check_payloads(constants, weights, memories, f"{name}.constants")
        sample_inputs, flat_inputs = _example_inputs(archive, name, names[name], tree)
        programs[name] = NewProgram(
            tree,
            payloads.assign(weights, records.WEIGHTS, records.WEIGHT_PREFIX, f"{name}.weights"),
            payloads.assign(constants, records.CONSTANTS, records.TENSOR_PREFIX, f"{name}.constants"),
            sample_inputs=sample_inputs,
            flat_inputs=flat_inputs,
        )
    others = {record: _reading(archive, record) for record in archive._others}
    others |= extra_records(archive.extra_files)
    write_archive(f, programs, payloads.contents, others, formats=forms, compress=compress, durable=durable)


def _names_in_file(archive: Archive) -> dict[str, str]:
    """What each program was called when it was read: its example inputs are in the file under that name."""
    names = {id(tree): name for name, tree in archive._read.items()}
    return {name: names.get(id(tree), name) for name, tree in archive.programs.items()}


def _example_inputs(
    archive: Archive, name: str, name_in_file: str, tree: ExportedProgram
) -> tuple[Content, Content | None]:
    """The records of a program's example inputs: those in the file, if the program still takes them."""
    sample = archive.optional_record(records.sample_inputs(name_in_file)) or b""
    flat = archive.optional_record(records.flat_inputs(name_in_file))
    if (sample or flat) and archive._called_with.get(name_in_file) != inputs_digest(tree):
        warn_user(
            f"{name}: written without example inputs, since those in the file are of a program "
            "that is called with something else. To have some, load the program and save it with others"
        )
        return b"", None
    return sample, flat


def _check_types(archive: Archive) -> None:
    """Refuse what is no program or no payload, and programs that could not be read back by their names."""
    for attribute in ("programs", "weights", "constants", "dropped"):
        _check_type(getattr(archive, attribute), Mapping, f"archive.{attribute}")
    if not archive.programs:
        raise SerializeError(
            "expected at least one program, found none", path="write", hint="Put one into archive.programs"
        )
    check_program_names(archive.programs)
    for name, tree in archive.programs.items():
        _check_type(tree, ExportedProgram, f"archive.programs[{name!r}]")
        for attribute, payloads in (("weights", archive.weights), ("constants", archive.constants)):
            _check_payload_types(payloads.get(name, {}), f"archive.{attribute}[{name!r}]")


def _check_payload_types(payloads: Mapping[str, Payload], where: str) -> None:
    _check_type(payloads, Mapping, where)
    for name, payload in payloads.items():
        path = f"{where}[{name!r}]"
        _check_type(name, str, f"the name in {path}")
        _check_type(payload, Payload, path)
        _check_type(payload.meta, PayloadMeta, f"{path}.meta")
        try:
            json_codec.check_types(payload.meta)
        except CodecError as error:
            raise SerializeError(error.message, path=f"{path}.meta.{error.path}") from error
        _check_bytes(payload.data, f"{path}.data")
        _check_payload_types(payload.inner, f"{path}.inner")


def _check_type(value: object, expected: type, where: str) -> None:
    if not isinstance(value, expected):
        found = f"{type(value).__name__} of {type(value).__module__}"
        raise TypeError(f"{where}: expected {expected.__name__} of {expected.__module__}, found {found}")


def _check_bytes(data: object, where: str) -> None:
    """Refuse what has other items than bytes, so that its length would not be its size."""
    try:
        view = memoryview(data)  # type: ignore[arg-type]  # that is the question
    except TypeError:
        raise TypeError(f"{where}: expected a memoryview of bytes, found {described(data)}") from None
    if view.nbytes != len(view) or view.ndim != 1:
        raise TypeError(
            f"{where}: expected a memoryview of bytes, found {described(data)} with items of {view.itemsize} "
            f"bytes in {view.ndim} dimensions. Pass memoryview(...).cast('B') of it"
        )


def _refuse(name: str, findings: Iterable[Finding], escape: str = "") -> None:
    """Refuse a program for what is wrong with it first, and say how to have it written regardless."""
    for finding in findings:
        mending = ", or ".join(filter(None, ("Mend it in the archive", escape)))
        raise SerializeError(
            finding.message,
            path=joined(name, finding.path),
            hint=f"{finding.hint}. {mending}" if finding.hint else mending,
        )


def _check_payloads(
    payloads: Mapping[str, Payload], weights: Mapping[str, Payload], memories: dict[str, Payload], path: str
) -> None:
    """Refuse payloads that could not be read back.

    Args:
        payloads: Those of one program.
        weights: Whose storage they may share.
        memories: The first payload of each memory that programs share; more are added.
        path: Where they are, in messages.
    """
    named = owners(each_payload(weights), each_payload(payloads))
    for fqn, payload in each_payload(payloads):
        where = f"{path}.{fqn}"
        _check_alias(payload, named, where)
        if (name := payload.meta.memory) is not None:
            first = memories.setdefault(name, payload)
            if not same_bytes(first.in_memory(), payload.in_memory()):
                message = f"expected the bytes of the memory {name!r:.80}, in which it is said to lie"
                hint = "Change all that lie in it, or set `meta.memory` to None"
                raise SerializeError(f"{message}, found others", path=where, hint=hint)
        if payload.meta.use_pickle or payload.meta.absent or payload.inner:
            continue
        try:
            check_payload(payload.meta, len(payload.data), where)
        except Pt2WireError as error:
            raise SerializeError(error.message, path=where) from error


def _check_alias(payload: Payload, named: Mapping[str, Payload], where: str) -> None:
    """Refuse a payload that does not share the storage that it is said to share."""
    alias = payload.meta.alias_of
    if alias is None:
        return
    owner = named.get(alias)
    if problem := alias_problem(payload.meta, None if owner is None else owner.meta):
        raise SerializeError(problem, path=where, hint="Set `meta.alias_of` to None")
    assert owner is not None  # that is a problem
    if not same_bytes(owner.in_memory(), payload.in_memory()):
        raise SerializeError(
            f"expected the bytes of {alias!r}, whose storage it is said to share, found others",
            path=where,
            hint="Change both, or set `meta.alias_of` to None",
        )


def _reading(archive: Archive, record: str) -> Callable[[], Content]:
    return lambda: archive.record(record)
