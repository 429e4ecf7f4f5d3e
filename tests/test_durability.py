"""A save that is interrupted anywhere leaves the old file whole or the new one complete.

Writers here are processes of their own, killed at random moments or stopped by the operating system at a
random byte. Whoever reads meanwhile sees one whole file.
"""

from __future__ import annotations

import errno
import io
import os
import random
import resource
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pt2wire
import pytest
import torch
from pt2wire.programs import save
from torch.export import ExportedProgram

from .helpers.archives import saved

_SIZE = 300_000  # elements: large enough to be killed in the middle, small enough for many tries


class _Holding(torch.nn.Module):
    def __init__(self, value: float) -> None:
        super().__init__()
        self.register_buffer("held", torch.full((_SIZE,), value))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.held.sum() + x


@pytest.fixture(scope="module")
def programs() -> list[ExportedProgram]:
    """Three programs that differ in every byte of their weights."""
    return [torch.export.export(_Holding(float(number)), (torch.ones(1),)) for number in range(3)]


def _which(path: Path) -> float:
    """Which program a file holds, all of it."""
    archive = pt2wire.read(path)  # compares every CRC
    payload = archive.weights["model"]["held"]
    numbers = torch.frombuffer(payload.data, dtype=torch.float32)
    assert len(numbers) == _SIZE and bool((numbers == numbers[0]).all())
    return float(numbers[0])


@contextmanager
def _process(work: Callable[[], None]) -> Iterator[int]:
    """A forked process that works until it is done or killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 2)
            work()
            code = 0
        finally:
            os._exit(code)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _saving(
    path: Path, programs: list[ExportedProgram], durable: bool, told: int | None = None
) -> Callable[[], None]:
    """Saves one program over the other; a byte to `told` says that it begins, one more after each save."""

    def work() -> None:
        number = 1
        while True:
            if told is not None:
                os.write(told, b".")
            save(programs[number], path, durable=durable)
            number = 3 - number  # 1, 2, 1, ...

    return work


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("tries", [15, pytest.param(300, marks=pytest.mark.wide)])
def test_a_writer_killed_at_any_moment_leaves_a_whole_file(
    tries: int, durable: bool, programs: list[ExportedProgram], tmp_path: Path
) -> None:
    chance, path = random.Random(tries), tmp_path / "model.pt2"
    pt2wire.save(programs[0], path)
    begun = time.monotonic()
    pt2wire.save(programs[0], path, durable=durable)
    takes = time.monotonic() - begun
    # A busy machine may take longer to fork than to save: counted from what the writer says.
    for number in range(tries):
        before, saves = _which(path), number % 3
        hear, tell = os.pipe()
        with _process(_saving(path, programs, durable, tell)):
            for _ in range(saves + 1):
                assert os.read(hear, 1)
            time.sleep(chance.uniform(0.0, 1.5 * takes))
        os.close(hear)
        os.close(tell)
        assert _which(path) in ({1.0, 2.0} if saves else {before, 1.0, 2.0})
    # One that is killed between having a name and taking the target's place may stay; no other does.
    left = [name for name in os.listdir(tmp_path) if name != path.name]
    assert len(left) <= tries // 5, left


def test_readers_see_a_whole_file_while_writers_replace_it(
    programs: list[ExportedProgram], tmp_path: Path
) -> None:
    path = tmp_path / "model.pt2"
    pt2wire.save(programs[0], path)
    seen = set()
    end = time.monotonic() + 2
    with (
        _process(_saving(path, programs, False)),
        _process(_saving(path, [programs[0], programs[2], programs[1]], False)),
    ):
        while time.monotonic() < end or len(seen & {1.0, 2.0}) < 2:
            seen.add(_which(path))
            loaded = pt2wire.load(path)
            held = loaded.constants.get("held", loaded.state_dict.get("held"))
            # The map is of the file that was opened, whatever takes its place.
            assert bool((held == held[0]).all())
            assert time.monotonic() < end + 60
    assert seen <= {0.0, 1.0, 2.0}


def test_of_several_saves_to_one_path_one_is_there_at_the_end(
    programs: list[ExportedProgram], tmp_path: Path
) -> None:
    path = tmp_path / "model.pt2"
    for _ in range(5):
        children = []
        for program in programs:
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    save(program, path, durable=False)
                    code = 0
                finally:
                    os._exit(code)
            children.append(child)
        assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
        assert _which(path) in (0.0, 1.0, 2.0)
        assert os.listdir(tmp_path) == ["model.pt2"]


def _full_at(limit: int, program: ExportedProgram, path: Path) -> Callable[[], None]:
    """Saves to a disk that takes so many bytes of a file."""

    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            save(program, path, durable=False)
        except OSError as error:
            os._exit(40 if error.errno == errno.EFBIG and error.filename == str(path) else 41)

    return work


def test_a_disk_that_fills_up_at_any_byte_leaves_the_old_file(
    programs: list[ExportedProgram], tmp_path: Path
) -> None:
    chance, path = random.Random(5), tmp_path / "model.pt2"
    pt2wire.save(programs[0], path)
    size = path.stat().st_size
    for limit in (0, 1, 100, size - 1, *(chance.randrange(size) for _ in range(8))):
        child = os.fork()
        if child == 0:
            try:
                _full_at(limit, programs[1], path)()
            finally:
                os._exit(42)
        assert os.waitpid(child, 0)[1] >> 8 == 40, limit
        assert _which(path) == 0.0
        assert os.listdir(tmp_path) == ["model.pt2"]


class _Failing(io.BytesIO):
    """A file object on a disk that fails after so many bytes."""

    def __init__(self, limit: int, number: int) -> None:
        super().__init__()
        self._left, self._number = limit, number

    def write(self, data: object) -> int:
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        self._left -= len(view)
        if self._left < 0:
            raise OSError(self._number, os.strerror(self._number))
        return super().write(view)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_file_object_that_fails_anywhere_gives_its_own_error(number: int) -> None:
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    size = len(saved(program))
    for limit in (0, 1, 30, size // 3, size // 2, size - 30, size - 1):
        with pytest.raises(OSError) as caught, warnings.catch_warnings():
            warnings.simplefilter("error")
            pt2wire.save(program, _Failing(limit, number))
        assert caught.value.errno == number
    pt2wire.save(program, _Failing(size, number))


def test_a_closed_file_object_is_refused_before_anything_is_written() -> None:
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    file = io.BytesIO()
    file.close()
    with pytest.raises(ValueError, match="expected an open file object, found <BytesIO>, which is closed"):
        pt2wire.save(program, file)
