"""Searches PyTorch's operators for those that use what they are given unchecked.

`python -m tests.helpers.operator_search [OPERATOR...]` takes valid calls of each operator, makes arguments
bad, and calls the operator with these in a child process, under an allocator that ends the process when
memory is used beyond what was asked for. What ended a child is printed. It is stored in
`tests/data/operators.json`, with the number of valid calls and of tries of each operator: what was tried
without a valid call to begin with is as good as unknown.

It needs a C compiler and the package expecttest, and takes more than an hour.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import logging
import mmap
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves

from .operator_calls import Call, borrowed, made_up, overloads, sampled
from .operator_calls_by_hand import by_hand
from .operator_faults import faults, in_place_of_none

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "tests" / "data" / "operators.json"
SOURCE = ROOT / "tests" / "cpp" / "guarded_malloc.c"

_SINGLES = 250  # tries with one bad argument, for each operator
_PAIRS = 60  # tries with two or three bad arguments, for each operator
_MADE_UP = 100  # tries of arguments that are made up
_KNOWN = 5  # valid calls of each operator
_SECONDS = 2  # of the processor that a try may take
_WAITING = 60  # seconds until a try is ended that computes nothing
_ENOUGH = 2  # tries that end a process, and no more are made
_BEGUN, _DONE = b"b", b"d"  # how far a call got
_OFTEN = 50  # operators, after which what was found is stored


class Found(NamedTuple):
    """What ended a process.

    Attributes:
        end: The signal, or `hang`.
        call: What was bad of the call.
    """

    end: str
    call: str


class Try(NamedTuple):
    """A call with what is bad of it."""

    label: str
    call: Call
    changes: Sequence[tuple[str, Any]]

    def arguments(self) -> dict[str, Any]:
        arguments = self.call.copy()
        for name, change in self.changes:
            arguments[name] = change(arguments[name])
        return arguments


def tries(name: str, operator: OpOverload, known: Sequence[Call]) -> Iterator[Try]:
    """All tries of an operator, the same ones each time."""
    chance = random.Random(zlib.crc32(name.encode()))
    torch.manual_seed(0)
    for number, call in enumerate(itertools.islice(made_up(operator, chance), _MADE_UP)):
        yield Try(f"made up {number}", call, ())
    kinds = {argument.name: str(argument.real_type) for argument in operator._schema.arguments}
    singles: list[tuple[Call, str, str, Any]] = []
    for call in known:
        yield Try("as it is", call, ())
        for argument, value in call.arguments.items():
            singles += [(call, argument, label, change) for label, change in faults(value)]
        for argument, kind in kinds.items():
            if call.arguments.get(argument) is None and kind.startswith("Optional["):
                given = in_place_of_none(kind, chance)
                if given is not None:
                    singles.append((call, argument, f"{given!r:.40}", lambda _, given=given: given))
    for call, argument, label, change in chance.sample(singles, min(_SINGLES, len(singles))):
        yield Try(f"{argument}: {label}", _with(call, argument), [(argument, change)])
    for _ in range(_PAIRS if singles else 0):
        call = chance.choice(singles)[0]
        fitting = [single for single in singles if single[0] is call]
        chosen = {single[1]: single for single in chance.choices(fitting, k=chance.choice((2, 2, 3)))}
        extended = call
        for argument in chosen:
            extended = _with(extended, argument)
        yield Try(
            "; ".join(f"{argument}: {single[2]}" for argument, single in chosen.items()),
            extended,
            [(argument, single[3]) for argument, single in chosen.items()],
        )


def _with(call: Call, argument: str) -> Call:
    return call if argument in call.arguments else Call({**call.arguments, argument: None})


def valid(name: str, operators: Mapping[str, OpOverload], calls: Mapping[str, Sequence[Call]]) -> list[Call]:
    """A few calls that an operator takes: of tests or written by hand, else of its kin, else made up."""
    operator, chance = operators[name], random.Random(zlib.crc32(name.encode()))
    return (
        _taken(operator, calls.get(name, ()))
        or _taken(operator, borrowed(name, operators, calls))
        or _taken(operator, list(itertools.islice(made_up(operator, chance), _MADE_UP)))
    )[:_KNOWN]


def _taken(operator: OpOverload, calls: Sequence[Call]) -> list[Call]:
    """Those calls that end as they should, each tried in a child."""
    outcomes = mmap.mmap(-1, len(calls) + 1)
    while (at := outcomes[:].count(_BEGUN) + outcomes[:].count(_DONE)) < len(calls):
        child = os.fork()
        if child == 0:
            _confine()
            for number in range(at, len(calls)):
                outcomes[number] = ord(_BEGUN)
                signal.setitimer(signal.ITIMER_PROF, _SECONDS)
                with contextlib.suppress(Exception):
                    operator(**calls[number].copy())
                    outcomes[number] = ord(_DONE)
            os._exit(0)
        os.waitpid(child, 0)
    return [call for number, call in enumerate(calls) if outcomes[number] == ord(_DONE)]


# -- children ---------------------------------------------------------------------------------------------


def search(name: str, operator: OpOverload, known: Sequence[Call]) -> tuple[list[Found], int]:
    """What ends a process that calls the operator: a few calls, at most `_ENOUGH`; after how many tries."""
    found: list[Found] = []
    shared = mmap.mmap(-1, mmap.PAGESIZE)
    at = 0
    while len(found) < _ENOUGH:
        child = os.fork()
        if child == 0:
            _confine()
            with contextlib.suppress(BaseException):
                _attempt(name, operator, known, at, shared)
            os._exit(0)
        end = _wait(child)
        number, length = struct.unpack_from("<QQ", shared)
        if end is None:
            break
        found.append(Found(end, shared[16 : 16 + length].decode(errors="replace")))
        at = number + 1
    return found, number + 1


def _confine() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.chdir(tempfile.gettempdir())
    logging.disable()
    warnings.simplefilter("ignore")


def _attempt(name: str, operator: OpOverload, known: Sequence[Call], start: int, shared: mmap.mmap) -> None:
    guarded = ctypes.c_int.in_dll(ctypes.CDLL(None), "guarded_malloc_on")
    for number, attempt in enumerate(tries(name, operator, known)):
        if number < start:
            continue
        label = attempt.label.encode()[: mmap.PAGESIZE - 16]
        struct.pack_into("<QQ", shared, 0, number, len(label))
        shared[16 : 16 + len(label)] = label
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
        signal.setitimer(signal.ITIMER_REAL, _WAITING)
        try:
            guarded.value = 1
            arguments = attempt.arguments()
            for output in tree_leaves(operator(**arguments)):
                if isinstance(output, Tensor):
                    output.clone()  # a view is only unsafe to read
            del output, arguments
        except Exception:  # refused, as it should be
            pass
        finally:
            guarded.value = 0


_HANGS = (signal.SIGPROF, signal.SIGALRM)


def _wait(child: int) -> str | None:
    """How the child ended: None if by itself."""
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        return None
    by = signal.Signals(os.WTERMSIG(status))
    return "hang" if by in _HANGS else by.name


def import_late() -> None:
    """Import what PyTorch imports when one first calls an operator on meta: else each child would."""
    meta = torch.ones(2, 2, device="meta")
    (meta + meta).sum(), meta @ meta, torch.add(meta, 1, out=meta), meta.clone().add_(1)


# -- the command ------------------------------------------------------------------------------------------


def main(names: Sequence[str]) -> None:
    if "guarded_malloc" not in os.environ.get("LD_PRELOAD", ""):
        library = Path(tempfile.mkdtemp(), "guarded_malloc.so")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", SOURCE, "-o", library, "-ldl"], check=True)
        command = [sys.executable, "-m", "tests.helpers.operator_search", *names]
        os.execve(sys.executable, command, {**os.environ, "LD_PRELOAD": str(library)})
    torch.set_num_threads(1)
    import_late()
    torch.autograd.forward_ad.enter_dual_level()  # without which nothing makes a dual tensor
    operators, calls = overloads(), sampled()
    calls |= {name: [call, *calls.get(name, ())] for name, call in by_hand().items()}
    stored = json.loads(STORED.read_text())
    for number, name in enumerate(names or operators, 1):
        known = valid(name, operators, calls)
        found, tried = search(name, operators[name], known)
        packet, _, overload = name.rpartition(".")
        stored["searched"].setdefault(packet, {})[overload] = [len(known), tried]
        stored["operators"].pop(name, None)
        if found:
            stored["operators"][name] = found
        for one in found:
            print(f"{name}: {one.end}: {one.call}", flush=True)
        if number % _OFTEN == 0:
            _store(stored)
    _store(stored)


def _store(stored: dict[str, Any]) -> None:
    """The file, with an operator a line."""
    tables = (
        f'"{title}": {{\n'
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(stored[title].items()))
        + "\n}"
        for title in ("operators", "searched")
    )
    STORED.write_text(f'{{"torch": "{torch.__version__}",\n' + ",\n".join(tables) + "}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
