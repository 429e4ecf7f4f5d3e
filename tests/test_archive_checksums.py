"""The CRC over many threads is zlib's."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pt2wire.archive import checksums

MIB = 1 << 20
NOISE = os.urandom(6 * MIB)


@pytest.mark.parametrize("length", [0, 1, 4 * MIB - 1, 4 * MIB, 4 * MIB + 1, 5 * MIB + 12345, 6 * MIB])
@pytest.mark.parametrize("processors", [1, 2, 5])
def test_long_and_short_data_have_zlibs_crc(
    length: int, processors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checksums, "_processors", lambda: processors)
    assert checksums.crc32(NOISE[:length]) == zlib.crc32(NOISE[:length])


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 0xFFFFFFFF))
def test_a_part_of_zeros_behind_any_crc_is_zlibs(crc: int) -> None:
    zeros = bytes(MIB)
    assert checksums._behind(crc) ^ zlib.crc32(zeros) == zlib.crc32(zeros, crc)


FORK = """
import os, zlib
from pt2wire.archive import checksums
checksums._processors = lambda: 2
data = os.urandom(5 << 20)
assert checksums.crc32(data) == zlib.crc32(data)
child = os.fork()
if child == 0:
    os._exit(0 if checksums.crc32(data) == zlib.crc32(data) else 1)
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_forked_process_has_threads_of_its_own() -> None:
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=60)


def test_several_can_be_computed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksums, "_processors", lambda: 2)
    contents = [NOISE[:length] for length in (5 * MIB, 10, 6 * MIB, 4 * MIB + 1)]
    waiting = [checksums.start_crc32(content) for content in contents]
    assert [wait() for wait in reversed(waiting)] == [zlib.crc32(each) for each in reversed(contents)]
