"""Python's garbage collector, and how the codecs keep it out of their way."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_off() -> Iterator[None]:
    """Keeps the garbage collector from running: codecs make many objects and no garbage.

    Each run would walk all that the process holds, which is a lot where torch is loaded.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
