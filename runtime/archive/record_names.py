"""What the records of programs and payloads are called when an archive is written, and what they may be."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping

from ..errors import SerializeError
from ..generated.types import PayloadConfig, PayloadMeta
from ..limits import DEFAULT_LIMITS
from . import records
from .contents import Content, giving
from .directory import is_plain_path
from .payloads import Payload, each_payload


class RecordNames:
    """Names of the records of an archive's payloads: those they had, but one name for one content.

    Args:
        every: The weights and the constants of all programs.

    Attributes:
        contents: Gives the content of each record that was named.
    """

    def __init__(self, every: Iterable[Mapping[str, Payload]]) -> None:
        self.contents: dict[str, Callable[[], Content]] = {}
        self._taken: dict[str, memoryview] = {}
        self._moved: dict[tuple[str, int], str] = {}
        self._reserved = {payload.meta.path_name for one in every for _, payload in each_payload(one)}
        self._number = 0

    def assign(self, payloads: Mapping[str, Payload], folder: str, prefix: str, path: str) -> PayloadConfig:
        """The config that lists these payloads under the names of their records.

        Args:
            payloads: Weights or constants of one program.
            folder: Of their records.
            prefix: What names of records begin with that have to be new.
            path: Where the payloads are, in messages.

        Raises:
            SerializeError: A payload names a record that reading would refuse.
        """
        return PayloadConfig(
            config={
                fqn: self._meta(payload, folder, prefix, f"{path}.{fqn}") for fqn, payload in payloads.items()
            }
        )

    def _meta(self, payload: Payload, folder: str, prefix: str, path: str) -> PayloadMeta:
        inner = {
            name: self._meta(part, folder, prefix, f"{path}.{name}") for name, part in payload.inner.items()
        }
        check_record(folder + payload.meta.path_name, "a payload's record", f"{path}.meta.path_name")
        path_name = self._name(payload, folder, prefix)
        return dataclasses.replace(payload.meta, path_name=path_name, inner=inner or None)

    def _name(self, payload: Payload, folder: str, prefix: str) -> str:
        path_name = payload.meta.path_name
        if self._taken.setdefault(folder + path_name, payload.data) is not payload.data:
            key = (folder, id(payload.data))
            prefix = next(filter(path_name.startswith, records.OBJECT_PREFIXES), prefix)
            if key not in self._moved:
                self._moved[key] = self._free_name(prefix)
            path_name = self._moved[key]
            self._taken[folder + path_name] = payload.data
        self.contents[folder + path_name] = giving(payload.data)
        return path_name

    def _free_name(self, prefix: str) -> str:
        while (name := f"{prefix}{self._number}") in self._reserved:
            self._number += 1
        self._reserved.add(name)
        return name


def check_program_names(names: Iterable[str]) -> None:
    """Refuse names of programs that reading would refuse, or that readers do not tell apart.

    Raises:
        TypeError: One is no string.
        SerializeError: One would leave its folder, is too long, or has characters that do not print; or two
            differ in case only.
    """
    alike: dict[str, str] = {}
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"expected the name of a program as a string, found {type(name).__name__}")
        check_record(records.constants_json(name), "a program", f"programs[{name[:80]!r}]")
        other = alike.setdefault(name.casefold(), name)
        if other != name:
            raise SerializeError(
                f"expected names of programs that differ in more than case, found {other!r} and {name!r}",
                path="programs",
                hint="Rename one: PyTorch's reader does not tell them apart",
            )


def check_record(record: str, what: str, path: str) -> None:
    """Refuse what is called so that reading would refuse the name of its record."""
    if not is_plain_path(record):
        raise SerializeError(f"expected a relative path as name of {what}", path=path, hint="Rename it")
    length, limit = len(f"{records.ROOT}/{record}"), DEFAULT_LIMITS.record_name_length
    if length > limit:
        raise SerializeError(
            f"expected the name of a record of at most {limit} characters, found one of {length}",
            path=path,
            hint="Give it a shorter name",
        )
