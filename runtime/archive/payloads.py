"""A weight or constant as it lies in an archive: metadata, and the payload that it is a view of."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ..arguments import described
from ..errors import DeserializeError
from ..generated.types import PayloadConfig, PayloadMeta
from ..lazy_bits import flipped
from ..limits import MIB
from .extents import check_one_dtype
from .reader import ArchiveReader
from .views import carried


@dataclass(slots=True, eq=False)
class Payload:
    """One weight or constant. `pt2wire.from_tree` makes tensors of an archive's.

    Attributes:
        meta: Its dtype, sizes, strides and offset (both in elements), and the name of its payload.
        data: The bytes of the whole payload, which other tensors may share.
        inner: The tensors that it is made of, by name: the parts of a sparse one, and those of a pickled one
            that share memory with others.
    """

    meta: PayloadMeta
    data: memoryview
    inner: dict[str, Payload] = field(default_factory=dict)

    def in_memory(self) -> memoryview:
        """The bytes of the storage as a program has them: others if a conjugation or negation is pending."""
        meta = self.meta.tensor_meta
        return self.data if meta is None else flipped(self.data, meta)

    def __copy__(self) -> Payload:
        return replace(self)

    def __reduce__(self) -> tuple[object, ...]:
        return Payload, (self.meta, carried(self.data), self.inner)


def read_payloads(
    reader: ArchiveReader, config: PayloadConfig, folder: str, views: dict[str, memoryview], path: str
) -> dict[str, Payload]:
    """Find the payload of each tensor of a config.

    Args:
        reader: The archive.
        config: Which tensor lies in which payload.
        folder: Where the payloads lie, such as `data/weights/`.
        views: The payloads found so far, by record: tensors that share one must get the same view of it.
        path: The config in messages.

    Raises:
        DeserializeError: A payload is missing, or two tensors read one with different dtypes.
    """
    check_one_dtype(config, path)

    def read(meta: PayloadMeta, where: str) -> Payload:
        record = folder + meta.path_name
        if record not in views:
            if record not in reader:
                raise DeserializeError(
                    f"expected the record {record!r}, but the archive has none", path=where
                )
            views[record] = reader.record(record, verify=False)
        inner = {name: read(part, f"{where}.inner[{name!r}]") for name, part in (meta.inner or {}).items()}
        return Payload(meta, views[record], inner)

    return {fqn: read(meta, f"{path}:config[{fqn!r}]") for fqn, meta in config.config.items()}


def check_payloads(payloads: object, argument: str) -> None:
    """Refuse an argument that is not payloads by name, or None.

    Raises:
        TypeError: It names the argument.
    """
    if payloads is None:
        return
    expected = f"{argument} as payloads by name, such as archive.{argument}['model']"
    if not isinstance(payloads, Mapping):
        raise TypeError(f"expected {expected}, found {described(payloads)}")
    for name, payload in payloads.items():
        if not isinstance(name, str) or not isinstance(payload, Payload):
            raise TypeError(f"expected {expected}, found {name!r:.80}: {described(payload)}")


def each_payload(payloads: Mapping[str, Payload]) -> Iterator[tuple[str, Payload]]:
    """All payloads by name, each before those that it is made of, which are called `whole.part`."""
    for fqn, payload in payloads.items():
        yield fqn, payload
        for name, part in each_payload(payload.inner):
            yield f"{fqn}.{name}", part


_Owner = TypeVar("_Owner", Payload, PayloadMeta)


def owners(*named: Iterable[tuple[str, _Owner]]) -> dict[str, _Owner]:
    """What `alias_of` can name: of two that are called the same the first one."""
    found: dict[str, _Owner] = {}
    for name, owner in itertools.chain(*named):
        found.setdefault(name, owner)
    return found


def same_bytes(one: memoryview, two: memoryview) -> bool:
    """Whether two payloads are equal; comparing the views themselves takes Python ten times as long."""
    if one is two:
        return True
    steps = range(0, len(one), MIB)
    return len(one) == len(two) and all(bytes(one[s : s + MIB]) == bytes(two[s : s + MIB]) for s in steps)


def alias_problem(meta: PayloadMeta, owner: PayloadMeta | None) -> str | None:
    """What is wrong with the weight that a tensor is said to share the storage of, or None.

    Args:
        meta: The tensor, whose `alias_of` is set.
        owner: The weight of that name, or part of one, if there is one.
    """
    assert meta.alias_of is not None
    name = meta.alias_of[:80]
    if owner is None:
        return f"said to share the storage of {name!r}, which is not there"
    if owner.alias_of is not None:
        return f"said to share the storage of {name!r}, which itself shares that of {owner.alias_of[:80]!r}"
    return None


def config_of(payloads: Mapping[str, Payload]) -> PayloadConfig:
    """The config that lists these payloads."""
    return PayloadConfig(config={fqn: payload.meta for fqn, payload in payloads.items()})
