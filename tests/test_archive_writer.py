"""Writing archives: the bytes, and what stays when writing fails or is killed."""

from __future__ import annotations

import errno
import gzip
import io
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire import SerializeError
from pt2wire.archive import contents as contents_module
from pt2wire.archive import target as target_module
from pt2wire.archive import writer as writer_module
from pt2wire.archive.reader import ArchiveReader
from pt2wire.archive.records import FIXED_CONTENT
from pt2wire.archive.target import open_target
from pt2wire.archive.writer import ArchiveWriter

from .helpers.archives import INPUT, linear_archive, linear_program, linear_torch_archive, saved

OLD = b"the file that was there before"


def infos(data: bytes) -> Iterator[tuple[zipfile.ZipInfo, int]]:
    """Each record and the offset of its content."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            lengths = data[info.header_offset + 26 : info.header_offset + 30]
            name, extra = int.from_bytes(lengths[:2], "little"), int.from_bytes(lengths[2:], "little")
            yield info, info.header_offset + 30 + name + extra


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_same_program_gives_the_same_bytes_at_any_path(tmp_path: Path) -> None:
    for name in ("a.pt2", "quite_another_name.pt2"):
        pt2wire.save(linear_program(), tmp_path / name)
        assert (tmp_path / name).read_bytes() == linear_archive()


def test_nothing_is_compressed_so_well_that_it_looks_like_an_attack() -> None:
    file = io.BytesIO()
    contents = {"models/a.json": bytes(10 << 20), "models/b.json": bytes(10 << 20), "c": bytes(20 << 20)}
    with ArchiveWriter(file) as archive:
        for record, content in FIXED_CONTENT.items():
            archive.add(record, content)
        for record, content in contents.items():
            archive.add(record, content, deflate=True)
    reader = ArchiveReader(io.BytesIO(file.getvalue()))
    assert all(reader.record(record) == content for record, content in contents.items())
    packed = [reader.entries[record].packed_size for record in contents]
    # One alone may be small; readers add up what they are asked to inflate.
    assert packed[0] < 20_000 < packed[1] < packed[2] < 3_000_000


def test_saving_warns_of_documents_beyond_the_default_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = pt2wire.Limits(document_bytes=1_000)
    monkeypatch.setattr(contents_module, "check_size", partial(contents_module.check_size, limits=limits))
    file = io.BytesIO()
    with pytest.warns(UserWarning, match="model: loading needs higher limits than by default: .*1000 bytes"):
        pt2wire.save(linear_program(), file, formats=["thrift"])
    with pytest.raises(pt2wire.DeserializeError, match="expected at most 1000 bytes"):
        pt2wire.load(file, limits=limits)


def test_nothing_in_the_file_tells_time_place_or_system() -> None:
    for info, _ in infos(linear_archive()):
        assert info.date_time == (1980, 1, 1, 0, 0, 0)
        assert info.create_system == 3
        assert not info.extra
        assert info.filename.startswith("archive/")
    assert os.getcwd().encode() not in linear_archive()
    assert not any("serialization_id" in info.filename for info, _ in infos(linear_archive()))


@pytest.mark.parametrize("compress", [True, False])
def test_stored_records_are_aligned_to_64_bytes(compress: bool) -> None:
    stored = [
        (info.filename, offset)
        for info, offset in infos(saved(linear_program(), compress=compress))
        if info.compress_type == zipfile.ZIP_STORED
    ]
    assert len(stored) > 8
    assert [name for name, offset in stored if offset % 64] == []
    assert any(name == "archive/data/weights/weight_0" for name, _ in stored)


def test_programs_are_deflated_unless_told_otherwise() -> None:
    texts = ("models/model.json", "thrift/model.compact", "thrift/index.compact")
    for compress, method in ((True, zipfile.ZIP_DEFLATED), (False, zipfile.ZIP_STORED)):
        found = {
            info.filename: info.compress_type for info, _ in infos(saved(linear_program(), compress=compress))
        }
        assert {found[f"archive/{name}"] for name in texts} == {method}


def test_a_record_of_64_bit_size_is_aligned_and_read_by_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_LARGE", 0)  # as if every record were above 4 GiB
    data = saved(linear_program())
    assert [info.filename for info, offset in infos(data) if info.compress_type == 0 and offset % 64] == []
    expected = linear_program().module()(INPUT)
    assert torch.equal(torch.export.load(io.BytesIO(data)).module()(INPUT), expected)
    assert torch.equal(pt2wire.load(io.BytesIO(data)).module()(INPUT), expected)


def test_two_records_of_one_name_are_refused() -> None:
    with ArchiveWriter(io.BytesIO()) as archive:
        archive.add("models/model.json", b"{}")
        with pytest.raises(
            SerializeError, match=r"models/Model.json: expected a name that no other record has"
        ):
            archive.add("models/Model.json", b"{}")


def test_a_file_object_is_written_from_its_position_on_and_left_there() -> None:
    file = io.BytesIO(b"header")
    file.seek(6)
    pt2wire.save(linear_program(), file)
    assert file.tell() == 6
    assert file.getvalue() == b"header" + linear_archive()
    assert torch.equal(pt2wire.load(file).module()(INPUT), linear_program().module()(INPUT))


def test_an_unbuffered_file_and_a_pipe_get_every_byte(tmp_path: Path) -> None:
    with open(tmp_path / "m.pt2", "wb", buffering=0) as file:
        pt2wire.save(linear_program(), file)
    assert (tmp_path / "m.pt2").read_bytes() == linear_archive()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
        assert cat.stdin is not None and cat.stdout is not None
        pt2wire.save(linear_program(), cat.stdin)
        cat.stdin.close()
        assert cat.stdout.read() == linear_archive()


class _TakingParts:
    """A file object of no class of io's, that takes a part of what it is given."""

    def __init__(self, most: int) -> None:
        self.taken = bytearray()
        self._most = most

    def write(self, data: Any) -> int:
        taken = bytes(data)[: self._most]
        self.taken += taken
        return len(taken)


def test_a_file_object_of_another_class_that_takes_parts_gets_every_byte() -> None:
    file = _TakingParts(1000)
    pt2wire.save(linear_program(), file)  # type: ignore[arg-type]
    assert bytes(file.taken) == linear_archive()
    with pytest.raises(OSError, match="takes no more bytes"):
        pt2wire.save(linear_program(), _TakingParts(0))  # type: ignore[arg-type]


@pytest.mark.parametrize("buffering", [-1, 0])
def test_a_file_opened_to_append_gets_the_archive_at_its_end(tmp_path: Path, buffering: int) -> None:
    """Seeks do not move where such a file is written, though it says that it is seekable."""
    path = tmp_path / "m.pt2"
    with open(path, "ab", buffering=buffering) as file:
        pt2wire.save(linear_program(), file)
    assert path.read_bytes() == linear_archive()
    with open(path, "a+b", buffering=buffering) as file:
        file.seek(0)
        pt2wire.save(linear_program(), file)
        assert file.tell() == len(linear_archive())
    assert path.read_bytes() == linear_archive() * 2


def test_a_file_object_that_compresses_gets_the_same_bytes(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "m.pt2.gz", "wb") as file:
        pt2wire.save(linear_program(), file)  # type: ignore[arg-type]
    assert gzip.decompress((tmp_path / "m.pt2.gz").read_bytes()) == linear_archive()


@pytest.mark.filterwarnings("ignore:torch.export.load expects")
def test_a_device_that_is_always_at_0_takes_an_archive() -> None:
    pt2wire.save(linear_program(), os.devnull)
    with open(os.devnull, "wb") as file:
        pt2wire.save(linear_program(), file)


@pytest.mark.filterwarnings("ignore:torch.export.load expects")
@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs /dev/fd")
def test_paths_that_stand_for_a_pipe_or_a_deleted_file_are_written_in_place(tmp_path: Path) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
        assert cat.stdin is not None and cat.stdout is not None
        pt2wire.save(linear_program(), f"/dev/fd/{cat.stdin.fileno()}")
        cat.stdin.close()
        assert cat.stdout.read() == linear_archive()
    with open(tmp_path / "gone", "w+b") as file:
        (tmp_path / "gone").unlink()
        pt2wire.save(linear_program(), f"/dev/fd/{file.fileno()}")
        assert file.read() == linear_archive()
    assert left_in(tmp_path) == []


def test_a_closed_file_and_a_path_with_a_null_character_are_named(tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    with open(path, "wb") as file:
        pass
    with pytest.raises(ValueError, match=r"found .*m\.pt2, which is closed"):
        pt2wire.save(linear_program(), file)
    with pytest.raises(ValueError, match=r"'a\\x00\.pt2' with a null character"):
        pt2wire.save(linear_program(), "a\0.pt2")


# Replacing a file.


def test_the_mode_of_the_old_file_stays_and_a_new_one_follows_the_umask(tmp_path: Path) -> None:
    old, new, plain = (tmp_path / name for name in ("old.pt2", "new.pt2", "plain"))
    old.write_bytes(OLD)
    old.chmod(0o640)
    plain.write_bytes(b"")
    for path in (old, new):
        pt2wire.save(linear_program(), path)
    assert old.stat().st_mode & 0o777 == 0o640
    assert new.stat().st_mode == plain.stat().st_mode


def test_a_symbolic_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    link = tmp_path / "link.pt2"
    link.symlink_to(Path("store") / "real.pt2")
    (tmp_path / "store" / "real.pt2").write_bytes(OLD)
    pt2wire.save(linear_program(), link)
    assert link.is_symlink()
    assert (tmp_path / "store" / "real.pt2").read_bytes() == linear_archive()
    assert left_in(tmp_path / "store") == ["real.pt2"]


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), MemoryError(), OSError(errno.EIO, "Input/output error")]
)
@pytest.mark.parametrize("unnamed", [True, False])
def test_any_error_leaves_the_old_file_and_no_other(
    tmp_path: Path, error: BaseException, unnamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE")
    path = tmp_path / "m.pt2"
    path.write_bytes(OLD)
    with pytest.raises(type(error)), open_target(path) as file:
        file.write(b"half of the new one")
        assert len(left_in(tmp_path)) == (1 if unnamed else 2)
        raise error
    assert left_in(tmp_path) == ["m.pt2"]
    assert path.read_bytes() == OLD


def test_an_error_while_writing_names_the_target_and_what_became_of_it(tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    with pytest.raises(OSError, match="Input/output error") as caught, open_target(path):
        raise OSError(errno.EIO, "Input/output error")
    assert caught.value.filename == str(path)
    assert caught.value.__notes__ == ["Nothing was saved. If there was a file before, it is unchanged."]


def test_a_program_that_cannot_be_saved_touches_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    path.write_bytes(OLD)
    with pytest.raises(SerializeError):
        pt2wire.save({"index": linear_program()}, path)
    assert left_in(tmp_path) == ["m.pt2"]
    assert path.read_bytes() == OLD


# The scripts below need no torch: they start at once.
REWRITE = """
import sys, pt2wire
archive = pt2wire.read(sys.argv[1])
while True:
    pt2wire.write(archive, sys.argv[2], durable=False)
"""


def big_archive(path: Path, fill: float) -> None:
    module = torch.nn.Linear(700, 700)
    torch.nn.init.constant_(module.weight, fill)
    pt2wire.save(torch.export.export(module, (torch.ones(1, 700),)), path)


def test_a_writer_that_is_killed_leaves_one_whole_file(tmp_path: Path) -> None:
    source, target = tmp_path / "source.pt2", tmp_path / "target.pt2"
    big_archive(source, 1.0)
    big_archive(target, 2.0)
    whole = {source.read_bytes(), target.read_bytes()}
    for delay in range(12):
        with subprocess.Popen([sys.executable, "-c", REWRITE, source, target]) as process:
            before = target.stat().st_mtime_ns
            while target.stat().st_mtime_ns == before and process.poll() is None:
                time.sleep(0.001)
            time.sleep(0.003 * delay)
            process.send_signal(signal.SIGKILL)
        assert target.read_bytes() in whole


KILLED = """
import os, signal, sys
from pt2wire.archive.target import open_target
with open_target(sys.argv[1]) as file:
    file.write(b"half of the new one")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_nothing_is_left_of_a_file_whose_writer_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    path.write_bytes(OLD)
    done = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert left_in(tmp_path) == ["m.pt2"]
    assert path.read_bytes() == OLD


@pytest.mark.parametrize("unnamed", [True, False])
def test_a_file_without_a_name_becomes_one_as_any_other(
    tmp_path: Path, unnamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE")
    expected = tmp_path / "expected"
    expected.touch()
    for content in (b"one", b"two"):
        with open_target(tmp_path / "m.pt2") as file:
            file.write(content)
        assert (tmp_path / "m.pt2").read_bytes() == content
        assert (tmp_path / "m.pt2").stat().st_mode == expected.stat().st_mode
    assert left_in(tmp_path) == ["expected", "m.pt2"]


def test_a_file_that_cannot_get_a_name_names_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: str, path: str, **_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", source, None, path)

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(PermissionError) as caught, open_target(tmp_path / "m.pt2") as file:
        file.write(b"one")
    assert caught.value.filename == str(tmp_path / "m.pt2")
    assert left_in(tmp_path) == []


def test_what_a_shell_opened_is_written_in_place(tmp_path: Path) -> None:
    """Another file in its place would not be the one that the shell goes on to write to."""
    source, target = tmp_path / "source.pt2", tmp_path / "target.pt2"
    big_archive(source, 1.0)
    script = "import sys, pt2wire; pt2wire.write(pt2wire.read(sys.argv[1]), '/dev/stdout')"
    with open(target, "wb") as stdout:
        subprocess.run([sys.executable, "-c", script, source], stdout=stdout, check=True)
        assert os.path.samestat(os.stat(target), os.fstat(stdout.fileno()))
    assert target.read_bytes() == source.read_bytes()
    assert left_in(tmp_path) == ["source.pt2", "target.pt2"]


def test_links_in_a_row_stay_and_their_end_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source.pt2"
    big_archive(source, 1.0)
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "newest.pt2").symlink_to("real.pt2")
    (tmp_path / "first.pt2").symlink_to(Path("store", "newest.pt2"))
    monkeypatch.chdir(tmp_path)
    for old in (None, OLD):
        if old is not None:
            Path("store", "real.pt2").write_bytes(old)
        pt2wire.write(pt2wire.read(source), "first.pt2")
        assert Path("store", "real.pt2").read_bytes() == source.read_bytes()
    assert Path("first.pt2").is_symlink() and Path("store", "newest.pt2").is_symlink()
    assert left_in(tmp_path / "store") == ["newest.pt2", "real.pt2"]


def test_readers_and_writers_of_one_path_never_meet_a_part(tmp_path: Path) -> None:
    sources, target = [tmp_path / "a.pt2", tmp_path / "b.pt2"], tmp_path / "target.pt2"
    for fill, source in enumerate(sources):
        big_archive(source, float(fill))
    whole = {source.read_bytes() for source in sources}
    target.write_bytes(sources[0].read_bytes())
    writers = [subprocess.Popen([sys.executable, "-c", REWRITE, source, target]) for source in sources]
    try:
        end = time.monotonic() + 2
        while time.monotonic() < end:
            # Between reads, as many looks as fit: a file written in place is empty for a moment only.
            assert all(os.stat(target).st_size for _ in range(2000))
            pt2wire.read(target)
            assert target.read_bytes() in whole
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    assert target.read_bytes() in whole


FULL_DISK = """
import resource, signal, sys, pt2wire
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    pt2wire.write(pt2wire.read(sys.argv[1]), sys.argv[2])
except OSError as error:
    print(type(error).__name__, error.errno, error.filename)
"""


def test_a_file_that_may_not_grow_leaves_the_old_one_and_no_other(tmp_path: Path) -> None:
    source, target = tmp_path / "source.pt2", tmp_path / "target.pt2"
    big_archive(source, 1.0)
    target.write_bytes(OLD)
    process = subprocess.run(
        [sys.executable, "-c", FULL_DISK, source, target], capture_output=True, text=True, check=True
    )
    assert process.stdout == f"OSError {errno.EFBIG} {target}\n"
    assert process.stderr == ""
    assert target.read_bytes() == OLD
    assert left_in(tmp_path) == ["source.pt2", "target.pt2"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_device_is_reported_as_it_is() -> None:
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"), pytest.warns(UserWarning):
        pt2wire.save(linear_program(), "/dev/full")


def test_a_folder_that_cannot_be_synced_is_reported_with_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(folder: str) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(target_module, "_sync_folder", fail)
    with pytest.raises(OSError, match=r"Input/output error: '.*m\.pt2'") as caught:
        pt2wire.save(linear_program(), tmp_path / "m.pt2")
    assert caught.value.__notes__ == [
        "The file was saved, but a crash of the machine right now could undo it."
    ]
    assert (tmp_path / "m.pt2").read_bytes() == linear_archive()


class Failing(io.BytesIO):
    """A file object on a disk that fills up."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room
        self.failed = False

    def write(self, data: bytes) -> int:  # type: ignore[override]
        if self.failed or self.tell() + len(data) > self.room:
            self.failed = True
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


@pytest.mark.parametrize("room", [0, 100, 3000, 5000, len(linear_torch_archive()) // 2])
def test_a_file_object_that_fails_is_not_written_to_again(room: int) -> None:
    file = Failing(room)
    with pytest.raises(OSError, match="No space left on device"):
        pt2wire.save(linear_program(), file)
    written = len(file.getvalue())
    file.failed, file.room = False, 1 << 30
    import gc

    gc.collect()  # the zip file's finalizer must not write a directory now
    assert len(file.getvalue()) == written
