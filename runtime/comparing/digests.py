"""Digests of programs: equal for equal programs, whatever wrote them. Needs no torch."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping

from ..archive.payloads import Payload, check_payloads, each_payload
from ..errors import DeserializeError
from ..generated import types
from .canonical import canonical_copy
from .encoding import encoded


def digest(
    tree: types.ExportedProgram,
    weights: Mapping[str, Payload] | None = None,
    constants: Mapping[str, Payload] | None = None,
) -> str:
    """The SHA-256 of a program.

    It is that of the canonical form's Thrift bytes, so that two programs have one digest exactly if
    `canonicalize` makes them equal. With weights also the order counts in which nodes see those that share
    memory and change one of them in place.

    Args:
        tree: A sound tree, of `to_tree` or `read` for example.
        weights: Parameters and persistent buffers, as an `Archive` has them, to be part of the digest: what
            they are, which share memory, and the bytes of their payloads.
        constants: Likewise constants and non-persistent buffers.

    Returns:
        64 hexadecimal digits. With weights and constants of an archive they are what `load` takes as
        `expected_digest`.

    Raises:
        TypeError: `weights` or `constants` are no payloads by name.
        Exception: As for `canonicalize`.

    Example:
        >>> import io, pt2wire, torch
        >>> file = io.BytesIO()
        >>> pt2wire.save(torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),)), file)
        >>> archive = pt2wire.read(file)
        >>> found = digest(archive.programs["model"], archive.weights["model"], archive.constants["model"])
        >>> pt2wire.load(file, expected_digest=found).module()(torch.ones(3, 2)).shape
        torch.Size([3, 1])
    """
    check_payloads(weights, "weights")
    check_payloads(constants, "constants")
    form = canonical_copy(tree, _sharing({**(weights or {}), **(constants or {})}))
    hashed = hashlib.sha256(encoded(form))
    if weights is not None or constants is not None:
        for payloads in (weights or {}, constants or {}):
            for part in _canonical_payloads(payloads):
                hashed.update(part)
    return hashed.hexdigest()


def check_expected(expected: str | None) -> None:
    """Refuse an `expected_digest` that is no digest, nor None.

    Raises:
        TypeError: It is no text.
        ValueError: It is another text.
    """
    if expected is None:
        return
    if not isinstance(expected, str):
        raise TypeError(f"expected expected_digest as text, found {type(expected).__name__}")
    if not re.fullmatch("[0-9a-fA-F]{64}", expected):
        raise ValueError(f"expected expected_digest as 64 hexadecimal digits, found {expected[:80]!r}")


def check_digest(
    tree: types.ExportedProgram,
    weights: Mapping[str, Payload],
    constants: Mapping[str, Payload],
    expected: str,
) -> None:
    """Refuse a program that is not the one expected.

    Raises:
        DeserializeError: Its digest, weights and constants included, is another.
    """
    found = digest(tree, weights, constants)
    if found != expected.lower():
        raise DeserializeError(
            f"expected a program of digest {expected}, found {found}",
            hint="The program or its weights are not those that the digest was made of",
        )


def _sharing(payloads: Mapping[str, Payload]) -> set[str]:
    """The names of the weights that share memory with another one."""
    by_memory: dict[int, set[str]] = {}
    together: set[str] = set()
    parts = [(fqn, *part) for fqn, payload in payloads.items() for part in each_payload({fqn: payload})]
    wholes = {name: fqn for fqn, name, _ in parts} | {fqn: fqn for fqn in payloads}
    for fqn, _, part in parts:
        by_memory.setdefault(id(part.data), set()).add(fqn)
        if part.meta.alias_of is not None:
            together |= {fqn, wholes.get(part.meta.alias_of, part.meta.alias_of)}
    return together.union(*(names for names in by_memory.values() if len(names) > 1))


def _canonical_payloads(payloads: Mapping[str, Payload]) -> list[bytes | memoryview]:
    """The metadata of weights, sorted by name, then each payload once, with its size before it."""
    records: dict[str, str] = {}
    data: list[bytes | memoryview] = []

    def canonical(payload: Payload) -> types.PayloadMeta:
        record = payload.meta.path_name
        if record not in records:
            records[record] = str(len(records))
            data.extend((len(payload.data).to_bytes(8, "little"), payload.data))
        inner = {name: canonical(part) for name, part in sorted(payload.inner.items())}
        # What it shares with other programs is no part of it.
        return dataclasses.replace(payload.meta, path_name=records[record], inner=inner or None, memory=None)

    metas = {fqn: canonical(payload) for fqn, payload in sorted(payloads.items())}
    return [encoded(types.PayloadConfig(config=metas)), *data]
