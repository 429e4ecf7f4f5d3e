"""Programs and archives for the tests of saving and loading."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pt2wire
import torch
from torch.export import ExportedProgram


class Linear(torch.nn.Module):
    """A parameter of each kind, buffers of both kinds, a constant."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(4, 3)
        self.register_buffer("offset", torch.arange(3.0))
        self.register_buffer("factor", torch.tensor(2.0), persistent=False)
        self.constant = torch.tensor([1.0, 2.0, 3.0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * self.factor + self.offset + self.constant


INPUT = torch.arange(8.0).reshape(2, 4)


@cache
def linear_program() -> ExportedProgram:
    """A small program, exported once."""
    return torch.export.export(Linear(), (INPUT,))


def saved(ep: ExportedProgram | Mapping[str, ExportedProgram], **options: object) -> bytes:
    """What pt2wire writes."""
    file = io.BytesIO()
    pt2wire.save(ep, file, **options)  # type: ignore[arg-type]
    return file.getvalue()


def torch_saved(ep: ExportedProgram, **options: object) -> bytes:
    """What PyTorch writes."""
    file = io.BytesIO()
    torch.export.save(ep, file, **options)  # type: ignore[arg-type]
    return file.getvalue()


def pickled(value: object, **options: Any) -> bytes:
    """What torch.save writes."""
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


@cache
def linear_archive() -> bytes:
    """`linear_program` as pt2wire writes it."""
    return saved(linear_program())


@cache
def linear_torch_archive() -> bytes:
    """`linear_program` as PyTorch writes it."""
    return torch_saved(linear_program())


def assert_computes_the_same(found: ExportedProgram) -> None:
    """A program is `linear_program`, and computes what it does."""
    assert torch.equal(found.module()(INPUT), linear_program().module()(INPUT))
    assert found.graph_signature == linear_program().graph_signature


class Marker:
    """Pickled, it writes a file when it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.write_text, (self.path, "code has run")


def with_records(data: bytes, changes: Mapping[str, bytes | None]) -> bytes:
    """The archive as another tool writes it that changes some records, adds some, drops those given None.

    Names are without the root folder.
    """
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
        root = old.namelist()[0].split("/")[0]
        left = dict(changes)
        for info in old.infolist():
            name = info.filename.removeprefix(f"{root}/")
            content = left.pop(name, b"") if name in changes else old.read(info)
            if content is not None:
                new.writestr(f"{root}/{name}", content)
        for name, content in left.items():
            if content is not None:
                new.writestr(f"{root}/{name}", content)
    return made.getvalue()


def record(data: bytes, name: str) -> bytes:
    """One record, read by the standard library."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        root = file.namelist()[0].split("/")[0]
        return file.read(f"{root}/{name}")


def directory_offset(data: bytes) -> int:
    """Where the zip directory begins."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return file.start_dir


def central_header(data: bytes, name: str) -> int:
    """Where the directory's entry for a record (its full name) begins."""
    at = directory_offset(data)
    while data[at : at + 4] == b"PK\x01\x02":
        lengths = struct.unpack_from("<3H", data, at + 28)
        if data[at + 46 : at + 46 + lengths[0]] == name.encode():
            return at
        at += 46 + sum(lengths)
    raise KeyError(name)


def local_header(data: bytes, name: str) -> int:
    """Where the local header of a record (its full name) begins."""
    offset: int = struct.unpack_from("<L", data, central_header(data, name) + 42)[0]
    return offset


def patched(data: bytes, at: int, change: bytes) -> bytes:
    """The bytes with some of them replaced."""
    return data[:at] + change + data[at + len(change) :]
