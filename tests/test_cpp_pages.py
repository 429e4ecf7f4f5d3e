"""Reading a program and one element of a mapped archive touches the pages that have them, and no others."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import pt2wire
import torch

from .helpers import cpp

_PAGE = 4096
#: What has to be read to know the archive, the program and where its weights lie.
_READ = ("archive_format", "archive_version", "byteorder", "thrift/index.compact", "thrift/model.compact")
_READ_FOR_WEIGHTS = "thrift/model_weights.compact"


class Heavy(torch.nn.Module):
    """64 MiB of weights, in four records."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4096, 1024, bias=False) for _ in range(4))

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [layer(x) for layer in self.layers]


def _pages(start: int, size: int) -> set[int]:
    return set(range(start // _PAGE, (start + size - 1) // _PAGE + 1))


def test_only_the_pages_of_what_is_read_are_touched(tmp_path: Path) -> None:
    with torch.device("meta"):
        model = Heavy()
    program = torch.export.export(model.to_empty(device="cpu"), (torch.zeros(1, 4096),))
    path = tmp_path / "model.pt2"
    pt2wire.save(program, path, compress=False, durable=False)
    pages = cpp.build(cpp.ROOT / "benchmarks" / "cpp" / "pages.cpp", *cpp.WARNINGS)
    lines = [line.split() for line in cpp.run([pages, path, "model"]).decode().splitlines()]
    steps = {line[0]: int(line[1]) for line in lines if len(line) == 2}
    touched = [int(line[0]) for line in lines if len(line) == 1]

    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        root = archive.namelist()[0].split("/")[0]
        records = {info.filename.removeprefix(f"{root}/"): info for info in archive.infolist()}
        directory = _pages(archive.start_dir, len(data) - archive.start_dir)
    headers, contents = set(), {}
    for name, info in records.items():
        size = 30 + sum(struct.unpack_from("<HH", data, info.header_offset + 26))
        headers |= _pages(info.header_offset, size)
        contents[name] = (info.header_offset + size, info.file_size)

    weight = min(start for name, (start, _) in contents.items() if name.startswith("data/weights/weight_"))
    expected = directory.union(headers, *(_pages(*contents[name]) for name in (*_READ, _READ_FOR_WEIGHTS)))
    assert set(touched[: steps["weights"]]) <= expected
    assert set(touched[steps["weights"] :]) == {weight // _PAGE} - set(touched[: steps["weights"]])
    assert len(touched) == len(set(touched)) == steps["first-element"]
    assert len(touched) < 40 < 16_000 < len(data) // _PAGE
