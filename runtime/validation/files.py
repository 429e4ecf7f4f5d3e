"""The check of a whole archive, or of one program: everything at once, without loading or running it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from typing import Any

from ..archive import records
from ..archive.contents import CODECS, StoredProgram, programs_to_read, read_index, read_program
from ..archive.directory import read_directory
from ..archive.extents import check_payload
from ..archive.forms import Form
from ..archive.index import documents
from ..archive.payloads import config_of, each_payload
from ..archive.reader import ArchiveReader
from ..archive.sources import Source
from ..arguments import check_name, mistaken
from ..errors import DeserializeError, joined
from ..findings import Finding
from ..generated import Struct, Union, types
from ..limits import DEFAULT_LIMITS, Limits
from ..permissions import Permissions, permit
from ..warning import warn_user
from .payloads import validate_payloads
from .rules import Findings
from .trees import validate_texts, validate_tree, validate_types


def validate(
    artifact: types.ExportedProgram | Source, *, name: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> list[Finding]:
    """Checks a program or an archive, and runs nothing of it.

    The structure is checked everywhere. That operators exist and are called as they want to be, and that
    classes of inputs and outputs are registered, is checked where torch is installed; elsewhere a warning
    says that it was not.

    Args:
        artifact: A tree, or a `.pt2` archive: its path, or a binary file object. Of an archive, every record
            is compared with its CRC, both forms of every program are decoded and compared, and payloads are
            compared with what the program says about them.
        name: The one program of an archive to check; by default all. Records are compared in either case. A
            tree takes none.
        limits: What it may cost at most; raise them for an artifact of your own that is refused.

    Returns:
        What is wrong; empty for a sound artifact. `finding.error()` is the error that `load` would raise.

    Raises:
        OSError: The file cannot be opened.
        TypeError: The argument is neither a tree nor a file, or another argument has the wrong type.
        ValueError: The path has a null character, or the file object is closed.

    Example:
        >>> import io, pt2wire, torch
        >>> file = io.BytesIO()
        >>> pt2wire.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), file)
        >>> validate(file)
        []
        >>> [finding.rule for finding in validate(io.BytesIO(file.getvalue()[:100]))]
        ['file']
    """
    if isinstance(artifact, types.ExportedProgram):
        if name is not None:
            raise TypeError("expected no name beside a tree, which is one program")
        unwritable = validate_types(artifact) or validate_texts(artifact)
        return unwritable or _validate_program(artifact, permit(limits=limits))
    if not isinstance(artifact, str | os.PathLike) and not hasattr(artifact, "read"):
        raise mistaken("a tree, a path or a binary file object", artifact)
    if name is not None:
        check_name(name)
    permissions, findings = permit(limits=limits), Findings()
    try:
        reader = ArchiveReader(artifact, limits=limits)
        reader.verify()
        index = read_index(reader)
        programs = programs_to_read(reader, None if name is None else [name])
    except DeserializeError as error:
        _add(findings, error)
        return findings.found
    views: dict[str, memoryview] = {}
    for program in programs:
        stored: dict[Form, StoredProgram] = {}
        for form in Form:
            if not any(record in reader for record in documents(program, form)):
                continue
            try:
                stored[form] = read_program(reader, index, program, form, views)
            except DeserializeError as error:
                _add(findings, error)
        _check_stored(list(stored.values()), findings, permissions)
        _check_example_inputs(reader, program, findings)
    return findings.found


def _check_example_inputs(reader: ArchiveReader, name: str, findings: Findings) -> None:
    """Whether example inputs are there, and whole. They are not opened: that needs torch."""
    for record in (records.sample_inputs(name), records.flat_inputs(name)):
        where = reader.path(record)
        if record in reader:
            try:
                # A program without example inputs has an empty record.
                if content := reader.record(record):
                    read_directory(content, where)
            except DeserializeError as error:
                message = f"expected example inputs as torch.save writes them: {error.message}"
                findings.add("example-inputs", where, message)
        elif record == records.sample_inputs(name):
            findings.add("example-inputs", where, "expected this record, but the archive has none")


def _check_stored(stored: list[StoredProgram], findings: Findings, permissions: Permissions) -> None:
    # Usually both forms are one program, which is then checked once.
    distinct = stored[:1]
    for other in stored[1:]:
        where = _first_difference(distinct[0], other)
        if where is not None:
            distinct.append(other)
            message = f"expected the same program as in {distinct[0].path}, found a difference"
            findings.add("forms-differ", joined(other.path, where), message)
    for program in distinct:
        configs = _configs(program)
        found = _validate_program(program.tree, permissions)
        found += validate_payloads(program.tree, *configs, permissions)
        findings.found += (
            dataclasses.replace(finding, path=joined(program.path, finding.path)) for finding in found
        )
        for field, payloads in (("weights", program.weights), ("constants", program.constants)):
            for fqn, payload in each_payload(payloads):
                meta = payload.meta
                if meta.use_pickle or meta.absent or meta.tensor_meta is None or payload.inner:
                    continue
                try:
                    check_payload(meta, len(payload.data), f"{field}[{fqn[:80]!r}]", permissions.limits)
                except DeserializeError as error:
                    _add(findings, error, "payload-size", program.path)


def _validate_program(tree: types.ExportedProgram, permissions: Permissions) -> list[Finding]:
    found = validate_tree(tree, permissions)
    try:
        from .attributes import validate_attributes
        from .containers import validate_containers
        from .operators import validate_operators
        from .sparse_flow import validate_sparse_flow
    except ImportError as error:
        if error.name != "torch":
            raise
        warn_user("torch is not installed, so operators and classes of inputs were not checked")
        return found
    # What is not sound cannot be compared with schemas.
    return found or [
        *validate_operators(tree),
        *validate_sparse_flow(tree, permissions),
        *validate_attributes(tree),
        *validate_containers(tree, permissions),
    ]


def _configs(program: StoredProgram) -> tuple[types.PayloadConfig, types.PayloadConfig]:
    return config_of(program.weights), config_of(program.constants)


def _first_difference(one: StoredProgram, other: StoredProgram) -> str | None:
    # By encoding, since NaN is not equal to itself.
    encode = CODECS[Form.THRIFT].encode
    lefts, rights = (one.tree, *_configs(one)), (other.tree, *_configs(other))
    for left, right, path in zip(lefts, rights, ("", "weights", "constants"), strict=True):
        if encode(left) != encode(right):
            return next(_differences(left, right, path), path)
    return None


def _differences(left: Any, right: Any, path: str) -> Iterator[str]:
    if type(left) is not type(right):
        yield path
    elif isinstance(left, list):
        if len(left) != len(right):
            yield path
        for index, (mine, theirs) in enumerate(zip(left, right, strict=False)):
            yield from _differences(mine, theirs, f"{path}[{index}]")
    elif isinstance(left, dict):
        if list(left) != list(right):
            yield path
        for key in left:
            if key in right:
                yield from _differences(left[key], right[key], f"{path}[{key!r}]")
    elif isinstance(left, Union):
        if left.type != right.type:
            yield path
        else:
            yield from _differences(left.value, right.value, f"{path}.{left.type}")
    elif isinstance(left, Struct):
        for field in left.FIELD_IDS:
            inner = f"{path}.{field}" if path else field
            yield from _differences(getattr(left, field), getattr(right, field), inner)
    elif left != right and not (left != left and right != right):
        yield path


def _add(findings: Findings, error: DeserializeError, rule: str = "file", path: str = "") -> None:
    findings.add(rule, joined(path, error.path or ""), error.message, error.hint)
