"""Saving and loading exported programs: `ExportedProgram` <-> `.pt2` archive."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from torch.export import ExportedProgram

from .archive import records
from .archive.contents import NewProgram, write_archive
from .archive.extra_files import extra_records
from .archive.forms import DEFAULT_FORMATS, FormName, check_formats
from .archive.payloads import Payload, config_of
from .archive.record_names import check_program_names
from .archive.sources import Source
from .archive.target import Target
from .archives import Archive, read_archive
from .arguments import check_flags, check_name, check_versions, mistaken
from .comparing import check_digest, check_expected
from .errors import Pt2WireError, joined
from .exporting import export_program
from .exporting.example_inputs import DEFAULT_PICKLE_PROTOCOL, export_example_inputs
from .exporting.payloads import (
    PayloadRecords,
    export_constants,
    export_weights,
    shared_memory,
    with_objects,
)
from .format_versions import check_opset, dropped_message
from .generated.types import ExportedProgram as Tree
from .generated.types import PayloadConfig
from .importing import import_program
from .importing.devices import DeviceMap, Devices
from .importing.example_inputs import import_example_inputs
from .importing.payloads import PayloadStorages, import_constants, import_weights
from .limits import DEFAULT_LIMITS, Limits
from .permissions import ALLOW_PICKLE, MissingWeights, Permissions, permit
from .validation.containers import validate_containers
from .validation.loading import check_loadable, loading_findings
from .validation.payloads import unused_objects, validate_payloads
from .warning import warn_user, warnings_about

Programs: TypeAlias = ExportedProgram | Mapping[str, ExportedProgram]


def save(
    ep: Programs,
    f: Target,
    *,
    extra_files: Mapping[str, str | bytes] | None = None,
    opset_version: Mapping[str, int] | None = None,
    pickle_protocol: int = DEFAULT_PICKLE_PROTOCOL,
    formats: Sequence[FormName] = DEFAULT_FORMATS,
    compress: bool = True,
    durable: bool = True,
) -> None:
    """Save a program, or several, as a `.pt2` archive, which torch.export.load reads too.

    A path is replaced as a whole once everything has been written: whatever happens before, the old file
    stays. The same programs give the same bytes each time.

    Args:
        ep: An exported program, which is stored under the name "model", or programs by name. Programs that
            share weights share them in the file.
        f: A path, or a binary file object that is written from its position on, and cut off behind the
            archive if it was longer.
        extra_files: Further files by name, text or bytes. `load` gives them back. A warning tells of bytes
            that are no UTF-8, since PyTorch loads no archive that has some.
        opset_version: The version of each operator namespace that the program was written for.
        pickle_protocol: For the record of example inputs that PyTorch reads. The default is the only one of
            which PyTorch reads everything without running code.
        formats: "json" is the form that PyTorch reads; "thrift" is smaller, and read faster by pt2wire and
            by C++.
        compress: Deflate the programs (not the weights). Without it the programs are stored aligned to 64
            bytes, for readers that map the file.
        durable: Return only when the file is on the disk, so that a crash of the machine cannot lose it.

    Raises:
        SerializeError: A program holds something that cannot be written; the path names the node or weight.
        TypeError: An argument has the wrong type.
        ValueError: `formats` lists another word or none, there is no such pickle protocol, the path has a
            null character, or the file object is closed.
        OSError: Writing failed. The old file is whole, and no temporary file is left.

    Example:
        >>> import io, pt2wire, torch
        >>> ep = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),))
        >>> file = io.BytesIO()
        >>> save(ep, file)
        >>> torch.equal(pt2wire.load(file).module()(torch.ones(3, 2)), ep.module()(torch.ones(3, 2)))
        True
    """
    forms = check_formats(formats)
    check_flags(compress=compress, durable=durable)
    if isinstance(f, ExportedProgram):
        raise TypeError("expected the program first and the file second: save(ep, f)")
    programs = _named(ep)
    check_versions(opset_version, "opset_version")
    others = extra_records(extra_files or {})
    payloads = PayloadRecords(shared=shared_memory(programs))
    new = {
        name: _new_program(name, program, payloads, opset_version, pickle_protocol, several=len(programs) > 1)
        for name, program in programs.items()
    }
    if isinstance(f, str | os.PathLike) and not str(os.fspath(f)).endswith(".pt2"):
        warn_user(f"torch.export.load expects a name that ends in .pt2, found {os.fspath(f)!r}")
    write_archive(f, new, payloads.contents, others, formats=forms, compress=compress, durable=durable)


def load(
    f: Source,
    *,
    name: str = "model",
    extra_files: dict[str, Any] | None = None,
    expected_opset_version: Mapping[str, int] | None = None,
    mmap: bool = True,
    verify: bool = True,
    device: DeviceMap | None = None,
    form: FormName | None = None,
    types: Iterable[type] = (),
    allow_pickle: bool = False,
    allow_operators: Iterable[str] = (),
    missing_weights: MissingWeights = "error",
    changed_weights: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    expected_digest: str | None = None,
) -> ExportedProgram:
    """Load a program from a `.pt2` archive, of `save` or of torch.export.save.

    Nothing that the file brings is run, unless `allow_pickle` or `allow_operators` permit it.

    Args:
        f: A path, or a binary file object that is read from its position on, and left there.
        name: Which program; torch.export.save calls it "model".
        extra_files: A dict that is filled with the archive's extra files, as text (as bytes where a file is
            not UTF-8).
        expected_opset_version: Versions that operator namespaces must have, where the file names them.
        mmap: Let the weights be a private map of the file, which is read when they are used. Changing a
            weight never changes the file, but cutting the file short while the program is in use ends the
            process. False reads the file into memory at once.
        verify: Compare every record with its CRC. Without it only the program is compared, not the weights.
        device: Where the program is to live if not where it was saved: a device such as "cuda:1" for all of
            it, a mapping such as `{"cuda": "cpu"}` or `{"cuda:0": "cuda:1"}`, or a function that is given a
            `torch.device` and returns another one (None leaves it). Weights, constants, example inputs and
            the graph (values, and devices that operators are called with) follow. In a mapping "cuda" stands
            for each CUDA device that is not named itself.
        form: "json" or "thrift" demands one form of the program; by default the archive's index decides.
        types: Classes that the file may name although no imported module has them, such as enums that are
            keys in the structure of inputs; and classes that it may make and call, which are those of
            weights of subclasses of `torch.Tensor` and of modules among the example inputs, with the
            classes of what these hold.
        allow_pickle: Open what is pickled in the file, which can run any code. That is how PyTorch stores
            example inputs and weights of classes of their own.
        allow_operators: Operators that the program may call though they are refused otherwise, because they
            reach files or raw memory, such as "aten.from_file".
        missing_weights: "meta" gives stand-ins on the meta device for weights that were saved without data,
            those of a program that was exported with fake tensors. By default such a file is refused.
        changed_weights: Take weights of other sizes or dtypes than the graph says, as PyTorch does: some that
            were replaced after the export. The graph still says what it said, calls compute with the weights.
        limits: What the file may cost at most; raise them for a file of your own that is refused.
        expected_digest: What `pt2wire.digest` gives for the program with its weights and constants; another
            program is refused before it is made. Example inputs and extra files are no part of it.

    Returns:
        The program, with weights shared as they were when it was saved. Its example inputs are stand-ins on
        the meta device if the record of them is missing or cannot be opened safely, which a warning says. A
        program that was saved without any has stand-ins if it has guards, which PyTorch checks only in
        programs with example inputs, and else None.

    Raises:
        OSError: The file cannot be opened.
        TypeError: `f` is neither a path nor a binary file object, or another argument has the wrong type.
        ValueError: `device` names no device, `form` or `missing_weights` is another word, the path has a null
            character, or the file object is closed.
        DeserializeError: The file is no `.pt2` archive, is damaged or contradicts itself, has a version
            that cannot be read, or another digest than expected; or this machine lacks the device.
        UnsafeArtifactError: The file asks for something that could run code, and that is not permitted.

    Example:
        >>> import io, pt2wire, torch
        >>> file, ep = io.BytesIO(), torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),))
        >>> torch.export.save(ep, file)
        >>> torch.equal(pt2wire.load(file).module()(torch.ones(3, 2)), ep.module()(torch.ones(3, 2)))
        True
    """
    if extra_files is not None and not isinstance(extra_files, dict):
        raise TypeError(
            f"expected a dict that is filled with extra files, found {type(extra_files).__name__}"
        )
    check_name(name)
    permissions = permit(
        allow_pickle=allow_pickle,
        allow_operators=allow_operators,
        types=types,
        limits=limits,
        missing_weights=missing_weights,
        changed_weights=changed_weights,
    )
    archive, programs = _load(
        f, [name], expected_opset_version, mmap, verify, device, form, permissions, expected_digest
    )
    if extra_files is not None:
        extra_files.update((key, _text_if_possible(content)) for key, content in archive.extra_files.items())
    return programs[name]


def load_all(
    f: Source,
    *,
    expected_opset_version: Mapping[str, int] | None = None,
    mmap: bool = True,
    verify: bool = True,
    device: DeviceMap | None = None,
    form: FormName | None = None,
    types: Iterable[type] = (),
    allow_pickle: bool = False,
    allow_operators: Iterable[str] = (),
    missing_weights: MissingWeights = "error",
    changed_weights: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> dict[str, ExportedProgram]:
    """Load all programs of an archive; those that shared weights when they were saved do so again.

    Args:
        f: As for `load`.
        expected_opset_version: As for `load`.
        mmap: As for `load`.
        verify: As for `load`.
        device: As for `load`.
        form: As for `load`.
        types: As for `load`.
        allow_pickle: As for `load`.
        allow_operators: As for `load`.
        missing_weights: As for `load`.
        changed_weights: As for `load`.
        limits: As for `load`.

    Returns:
        The programs by name.

    Raises:
        OSError: The file cannot be opened.
        TypeError: As for `load`.
        ValueError: As for `load`.
        DeserializeError: As for `load`; the first program that cannot be read decides.
        UnsafeArtifactError: The file asks for something that could run code.

    Example:
        >>> import io, pt2wire, torch
        >>> ep = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
        >>> file = io.BytesIO()
        >>> pt2wire.save({"encoder": ep, "decoder": ep}, file)
        >>> list(load_all(file))
        ['encoder', 'decoder']
    """
    permissions = permit(
        allow_pickle=allow_pickle,
        allow_operators=allow_operators,
        types=types,
        limits=limits,
        missing_weights=missing_weights,
        changed_weights=changed_weights,
    )
    _, programs = _load(f, None, expected_opset_version, mmap, verify, device, form, permissions)
    return programs


def _named(ep: Programs) -> Mapping[str, ExportedProgram]:
    if isinstance(ep, ExportedProgram):
        return {"model": ep}
    if not isinstance(ep, Mapping):
        raise mistaken("an ExportedProgram of torch, or a dict of them by name", ep)
    if not ep:
        raise TypeError("expected at least one program, found an empty dict")
    check_program_names(ep)
    for name, program in ep.items():
        if not isinstance(program, ExportedProgram):
            raise mistaken(f"an ExportedProgram of torch as {name!r}", program)
    return ep


def _new_program(
    name: str,
    program: ExportedProgram,
    payloads: PayloadRecords,
    opset_version: Mapping[str, int] | None,
    pickle_protocol: int,
    *,
    several: bool,
) -> NewProgram:
    try:
        with warnings_about(name):
            sample_inputs, flat_inputs = export_example_inputs(program.example_inputs, pickle_protocol)
            objects: dict[str, Any] = {}
            tree = export_program(program, opset_version=opset_version, objects=objects)
            weights = export_weights(program.state_dict, payloads)
            constants = export_constants(
                with_objects(program.constants, objects), payloads, program.state_dict, pickle_protocol
            )
            _warn_of_refusal(tree, weights, constants)
            _warn_of_missing(weights, constants)
            return NewProgram(
                tree=tree,
                weights=weights,
                constants=constants,
                sample_inputs=sample_inputs,
                flat_inputs=flat_inputs,
            )
    except Pt2WireError as error:
        if several:
            error.path = joined(name, error.path or "")
        raise


def _warn_of_missing(*configs: PayloadConfig) -> None:
    missing = [fqn for config in configs for fqn, payload in config.config.items() if payload.absent]
    if missing:
        warn_user(
            f"saved without the data of {len(missing)} fake weights, such as {missing[0]!r}: "
            "torch.export.load will read zeros or fail, pt2wire.load will ask for missing_weights='meta'"
        )


def _warn_of_refusal(tree: Tree, weights: PayloadConfig, constants: PayloadConfig) -> None:
    """Say at once what `load` will say: it refuses a few things that PyTorch takes."""
    for reason in _refusals(tree, weights, constants):
        warn_user(f"PyTorch can load this file, pt2wire will not: {reason}")
        return


def _refusals(tree: Tree, weights: PayloadConfig, constants: PayloadConfig) -> Iterator[object]:
    """Why a program would not be loaded: what validation finds, then what importing alone knows.

    What the caller of `load` can permit is no refusal, but for changed weights.
    """
    yield from (finding.error() for finding in loading_findings(tree))
    permissions = permit(allow_pickle=True, missing_weights="meta")
    yield from (finding.error() for finding in validate_payloads(tree, weights, constants, permissions))
    yield from (finding.error() for finding in validate_containers(tree))


def _load(
    f: Source,
    names: Iterable[str] | None,
    expected_opset_version: Mapping[str, int] | None,
    mmap: bool,
    verify: bool,
    device: DeviceMap | None,
    form: FormName | None,
    permissions: Permissions,
    expected_digest: str | None = None,
) -> tuple[Archive, dict[str, ExportedProgram]]:
    """An archive, and some programs of it, or all, which share memory where they did."""
    check_flags(mmap=mmap, verify=verify)
    check_versions(expected_opset_version, "expected_opset_version")
    check_expected(expected_digest)
    devices = None if device is None else Devices(device)
    archive = read_archive(f, names, form, verify, permissions.limits, mapped=mmap)
    storages = PayloadStorages()
    return archive, {
        name: _import(archive, name, storages, devices, permissions, expected_opset_version, expected_digest)
        for name in archive.programs
    }


def _import(
    archive: Archive,
    name: str,
    storages: PayloadStorages,
    devices: Devices | None,
    permissions: Permissions,
    expected_opset_version: Mapping[str, int] | None,
    expected_digest: str | None,
) -> ExportedProgram:
    tree = archive.programs[name]
    path = archive.paths[name]
    sample_inputs = archive.optional_record(records.sample_inputs(name))
    flat_inputs = archive.optional_record(records.flat_inputs(name))
    dropped = archive.dropped.get(name)
    if dropped:
        warn_user(dropped_message(path, dropped, tree))
    try:
        weights, constants = archive.weights[name], archive.constants[name]
        check_loadable(tree, config_of(weights), config_of(constants), permissions)
        check_opset(tree, expected_opset_version or {})
        if expected_digest is not None:
            check_digest(tree, weights, constants, expected_digest)
        if devices is not None:
            devices.move_program(tree)
            devices.move_payloads(weights, "weights")
            devices.move_payloads(constants, "constants")
        if not permissions.allow_pickle:
            constants = _without_unused_objects(tree, constants, path)
        return import_program(
            tree,
            state_dict=import_weights(weights, storages, "weights", permissions),
            constants=import_constants(constants, weights, storages, "constants", permissions),
            example_inputs=import_example_inputs(
                tree, sample_inputs, flat_inputs, path, devices, permissions
            ),
            permissions=permissions,
        )
    except Pt2WireError as error:
        error.path = joined(path, error.path or "")
        raise


def _without_unused_objects(tree: Tree, constants: Mapping[str, Payload], path: str) -> dict[str, Payload]:
    """The constants but for pickles that nothing in the program needs: PyTorch adds objects that it takes."""
    unused = unused_objects(tree, config_of(constants))
    if unused:
        warn_user(
            f"{path}: loaded without {', '.join(map(repr, unused))} among its constants, with which the "
            f"program was traced and which it does not need. {ALLOW_PICKLE}"
        )
    return {fqn: payload for fqn, payload in constants.items() if fqn not in unused}


def _text_if_possible(content: bytes) -> str | bytes:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content
