"""Trees (the generated dataclasses) <-> bytes in both encodings."""

from __future__ import annotations

from typing import Protocol, TypeVar, overload

from .arguments import check_limits, check_tree, check_unknown
from .errors import DeserializeError, SerializeError, joined
from .format_versions import check_dropped, check_version, dropped_message, newer_than_ours
from .generated import CodecError, Struct, Union, json_codec, thrift_codec
from .generated.types import ExportedProgram, ExternKernelNodes
from .limits import DEFAULT_LIMITS, Limits, raising
from .peeking import peek_json, peek_thrift
from .warning import warn_user

Document = TypeVar("Document", bound=Struct | Union)
Tree = ExportedProgram | ExternKernelNodes
Encoded = bytes | memoryview


class Codec(Protocol):
    """What both generated codecs offer."""

    def encode(self, tree: Struct | Union) -> bytes: ...

    def decode(
        self, cls: type[Document], data: bytes | memoryview, *, unknown: list[str] | None = None
    ) -> Document: ...


def to_json(tree: Tree) -> bytes:
    """Write a tree as PyTorch's JSON.

    Args:
        tree: The tree, of `to_tree` for example; or the calls that a library compiled by AOTInductor hands
            back to PyTorch, `ExternKernelNodes` of `pt2wire.generated`.

    Returns:
        UTF-8 text with the keys and their order as PyTorch writes them.

    Raises:
        SerializeError: A value does not fit its field, or PyTorch's format cannot express the program.
        TypeError: `tree` is no tree.

    Example:
        >>> import pt2wire, torch
        >>> ep = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
        >>> to_json(pt2wire.to_tree(ep))[:25]
        b'{"graph_module":{"graph":'
    """
    _check_document(tree)
    if isinstance(tree, ExportedProgram) and tree.beyond:
        raise beyond_error(tree.beyond, "", "Write it in Thrift, which PyTorch does not read")
    return encode(json_codec, tree)


def beyond_error(reasons: list[str], path: str, hint: str) -> SerializeError:
    """What to raise instead of writing JSON that PyTorch would take for another program."""
    found = "; ".join(reasons)
    return SerializeError(
        f"expected a program that PyTorch's format can express, found {found:.300}",
        path=path or None,
        hint=hint,
    )


@overload
def from_json(
    data: Encoded | str,
    kind: type[ExportedProgram] = ...,
    *,
    unknown: list[str] | None = ...,
    limits: Limits = ...,
) -> ExportedProgram: ...


@overload
def from_json(
    data: Encoded | str,
    kind: type[ExternKernelNodes],
    *,
    unknown: list[str] | None = ...,
    limits: Limits = ...,
) -> ExternKernelNodes: ...


def from_json(
    data: Encoded | str,
    kind: type[Tree] = ExportedProgram,
    *,
    unknown: list[str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Tree:
    """Read a tree from PyTorch's JSON.

    Args:
        data: UTF-8 text of a program whose format version is 8.2 or a later 8.
        kind: What it is: a program, or `ExternKernelNodes` of `pt2wire.generated`, the text in
            `data/aotinductor` of what calls a compiled library hands back. The latter has no version.
        unknown: A file from a newer minor version may have fields that this one lacks. They are dropped and
            their paths appended here; without a list a warning names them.
        limits: How large it may be.

    Raises:
        DeserializeError: The text is no program in JSON, or of a version that cannot be read.
        TypeError: It is neither text nor bytes, or `kind` is another type.

    Example:
        >>> import pt2wire, torch
        >>> ep = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
        >>> tree = pt2wire.to_tree(ep)
        >>> from_json(to_json(tree)) == tree
        True
    """
    if isinstance(data, str):
        try:
            data = data.encode()
        except UnicodeEncodeError as error:
            raise DeserializeError(
                f"expected text that UTF-8 can hold, found the surrogate {data[error.start]!r} "
                f"at character {error.start}"
            ) from None
    _check_bytes(data, "text or bytes")
    return _decode_document(json_codec, kind, data, unknown, limits)


def to_thrift(tree: Tree) -> bytes:
    """Write a tree in Thrift's compact encoding.

    Args:
        tree: As for `to_json`.

    Returns:
        The bytes of one plain struct, without any header.

    Raises:
        SerializeError: A value does not fit its field, or the tree is nested deeper than Thrift's readers go.
        TypeError: `tree` is no tree.

    Example:
        >>> import pt2wire, torch
        >>> ep = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
        >>> tree = pt2wire.to_tree(ep)
        >>> len(to_thrift(tree)) < len(to_json(tree))
        True
    """
    _check_document(tree)
    return encode(thrift_codec, tree)


@overload
def from_thrift(
    data: Encoded,
    kind: type[ExportedProgram] = ...,
    *,
    unknown: list[str] | None = ...,
    limits: Limits = ...,
) -> ExportedProgram: ...


@overload
def from_thrift(
    data: Encoded, kind: type[ExternKernelNodes], *, unknown: list[str] | None = ..., limits: Limits = ...
) -> ExternKernelNodes: ...


def from_thrift(
    data: Encoded,
    kind: type[Tree] = ExportedProgram,
    *,
    unknown: list[str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Tree:
    """Read a tree from Thrift's compact encoding, strictly.

    Args:
        data: The bytes of one plain struct, with nothing before or behind it.
        kind: As for `from_json`.
        unknown: As for `from_json`.
        limits: As for `from_json`.

    Raises:
        DeserializeError: The bytes are no program in Thrift, or of a version that cannot be read.
        TypeError: They are no bytes, or `kind` is another type.

    Example:
        >>> import pt2wire, torch
        >>> ep = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
        >>> tree = pt2wire.to_tree(ep)
        >>> from_thrift(to_thrift(tree)) == tree
        True
    """
    _check_bytes(data, "bytes")
    return _decode_document(thrift_codec, kind, data, unknown, limits)


def _decode_document(
    codec: Codec, kind: type[Tree], data: Encoded, unknown: list[str] | None, limits: Limits
) -> Tree:
    check_unknown(unknown)
    check_limits(limits)
    if kind is ExportedProgram:
        return decode_program(codec, data, "program", unknown, limits)
    if kind is not ExternKernelNodes:
        raise TypeError(f"expected ExportedProgram or ExternKernelNodes as kind, found {kind!r:.80}")
    kernels, dropped = decode(codec, kind, data, "kernels", limits)
    if unknown is not None:
        unknown += dropped
    elif dropped:
        warn_user(f"kernels: written by a newer version; dropped {', '.join(dropped[:3])}")
    return kernels


def _check_document(tree: object) -> None:
    if not isinstance(tree, ExternKernelNodes):
        check_tree(tree)


def _check_bytes(data: object, expected: str) -> None:
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"expected a program as {expected}, found {type(data).__name__}")


def encode(codec: Codec, tree: Struct | Union, path: str = "") -> bytes:
    """Encode a generated object; CodecError becomes SerializeError."""
    try:
        return codec.encode(tree)
    except CodecError as error:
        raise SerializeError(error.message, path=joined(path, error.path)) from error


def decode(
    codec: Codec, cls: type[Document], data: Encoded, path: str, limits: Limits = DEFAULT_LIMITS
) -> tuple[Document, list[str]]:
    """Decode an object, and list the fields that were dropped; CodecError becomes DeserializeError."""
    check_size(codec, data, path, limits)
    dropped: list[str] = []
    try:
        return codec.decode(cls, data, unknown=dropped), dropped
    except CodecError as error:
        raise DeserializeError(error.message, path=joined(path, error.path)) from error


#: What each object of a document has in its bytes: brackets open it, a zero byte ends a struct.
_OBJECT_MARKS: dict[Codec, tuple[bytes, ...]] = {json_codec: (b"{", b"["), thrift_codec: (b"\0",)}


def check_size(codec: Codec, data: Encoded, path: str, limits: Limits = DEFAULT_LIMITS) -> None:
    """Refuse a document that would take too much memory, before any of it is decoded.

    Raises:
        DeserializeError: It is too large.
    """
    if len(data) > limits.document_bytes:
        raise DeserializeError(
            f"expected at most {limits.document_bytes} bytes, found {len(data)}",
            path=path,
            hint=raising("document_bytes"),
        )
    if len(data) <= limits.document_objects:  # each object takes a byte or more
        return
    content = bytes(data)
    found = sum(content.count(mark) for mark in _OBJECT_MARKS[codec])
    if found > limits.document_objects:
        raise DeserializeError(
            f"expected at most {limits.document_objects} objects, found {found}",
            path=path,
            hint=raising("document_objects"),
        )


def decode_program(
    codec: Codec,
    data: Encoded,
    path: str,
    unknown: list[str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> ExportedProgram:
    """Decode a program and check its version.

    Without a list to put them in, a warning names fields that had to be dropped.
    """
    try:
        tree, dropped = decode(codec, ExportedProgram, data, path, limits)
    except DeserializeError as error:
        if error.hint is not None:  # of a limit
            raise
        version = (peek_json if codec == json_codec else peek_thrift)(bytes(data))
        if version is not None:
            check_version(version, path)
            error.hint = newer_than_ours(version)
        raise
    check_version(tree.schema_version, path)
    check_dropped(dropped, tree.schema_version, tree.writer, path)
    if unknown is not None:
        unknown += dropped
    elif dropped:
        warn_user(dropped_message(path, dropped, tree))
    return tree
