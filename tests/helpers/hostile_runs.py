"""What becomes of hostile files: each is loaded and used in a process of its own, in bounded time and memory.

A server imports everything once and forks a child for each file: `python -m tests.helpers.hostile_runs
SUBJECT FOLDER` reads `manifest.json` there, and prints a line of JSON for each file.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pt2wire
import torch
from pt2wire import Pt2WireError
from torch.export import ExportedProgram

from .hostile import MARKER, TRAP, honest, inputs
from .hostile_set import HOSTILE

ROOT = Path(__file__).resolve().parents[2]

#: What may become of a file, the worst first. `harmless` is a file that may load and computes what the honest
#: one does.
OUTCOMES = ("code run", "crash", "hang", "wrong", "unclear error", "clear error", "harmless")
BAD = OUTCOMES[:5]

_CPU_SECONDS = 20
_WALL_SECONDS = 240
_MEMORY = 4 << 30  # bytes beyond what the server takes

_Load = Callable[[str], ExportedProgram]
SUBJECTS: dict[str, _Load] = {"pt2wire": pt2wire.load, "torch": torch.export.load}

#: Exceptions of Python that say that something went wrong in the code that reads, not in the file.
_ACCIDENTS = (
    *(AssertionError, AttributeError, ImportError, LookupError, NameError, NotImplementedError),
    *(RecursionError, SyntaxError, TypeError, UnicodeError, ArithmeticError, StopIteration),
)


class Outcome(NamedTuple):
    """What became of one file: one of `OUTCOMES`, and how that was seen."""

    outcome: str
    detail: str


def run(subject: str, names: Iterable[str]) -> dict[str, Outcome]:
    """Run cases of the hostile set.

    Args:
        subject: One of `SUBJECTS`.
        names: Which cases of `HOSTILE`.
    """
    with tempfile.TemporaryDirectory() as folder:
        manifest = []
        for number, name in enumerate(names):
            file = Path(folder, f"{number}.pt2")
            file.write_bytes(HOSTILE[name].make())
            manifest.append({"name": name, "file": str(file), "refused": HOSTILE[name].refused})
        Path(folder, "manifest.json").write_text(json.dumps(manifest))
        command = [sys.executable, "-m", "tests.helpers.hostile_runs", subject, folder]
        served = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if served.returncode:
        raise RuntimeError(served.stderr[-2000:])
    lines = [json.loads(line) for line in served.stdout.splitlines() if line.startswith('{"name"')]
    return {line["name"]: Outcome(line["outcome"], line["detail"]) for line in lines}


# -- the server -------------------------------------------------------------------------------------------


def _serve(subject: str, folder: str) -> None:
    # What a child computes first would be computed by each.
    with tempfile.NamedTemporaryFile(suffix=".pt2") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file.write(honest())
        file.flush()
        expected = _use(SUBJECTS[subject](file.name))
        pt2wire.validate(file.name)
    torch._dynamo.reset()
    gc.collect()
    gc.freeze()
    for case in json.loads(Path(folder, "manifest.json").read_text()):
        outcome = _judge(subject, case["file"], case["refused"], expected)
        print(json.dumps({"name": case["name"], **outcome._asdict()}), flush=True)


def _judge(subject: str, file: str, refused: bool, expected: list[torch.Tensor]) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _confine(folder)
            try:
                report = _attempt(subject, file, refused, expected)
            except BaseException as error:
                report = Outcome("unclear error", f"{type(error).__name__}: {error}")
            with contextlib.suppress(BaseException):
                os.write(writing, json.dumps(report).encode()[:4000])
            os._exit(0)
        os.close(writing)
        status = _wait(child)
        with os.fdopen(reading, "rb") as pipe:
            said = pipe.read()
        left = set(os.listdir(folder)) - {f"{TRAP}.py", "__pycache__"}
        if left:
            return Outcome("code run", f"left {', '.join(sorted(left))}")
    if status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        return Outcome("hang", f"more than {_CPU_SECONDS} seconds")
    if os.WIFSIGNALED(status):
        return Outcome("crash", signal.Signals(os.WTERMSIG(status)).name)
    if not said:
        return Outcome("crash", f"exit {os.WEXITSTATUS(status)}")
    return Outcome(*json.loads(said))


def _confine(folder: str) -> None:
    """Bound what the child may use, and take its terminal away."""
    os.chdir(folder)
    Path(f"{TRAP}.py").write_text(f"open({MARKER!r}, 'w').close()\n")
    sys.path.insert(0, folder)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, used + _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.disable()
    warnings.simplefilter("ignore")


def _wait(child: int) -> int | None:
    """The child's status, or None if it had to be ended."""
    end = time.monotonic() + _WALL_SECONDS
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


# -- the child --------------------------------------------------------------------------------------------


def _attempt(subject: str, file: str, refused: bool, expected: list[torch.Tensor]) -> Outcome:
    try:
        if subject == "pt2wire":
            pt2wire.validate(file)
        program = SUBJECTS[subject](file)
    except MemoryError:
        return Outcome("crash", "out of memory")
    except Exception as error:
        clear = _is_clear(subject, error)
        said = f"{type(error).__name__}: {error}"
        if not refused:
            return Outcome("unclear error", f"refused though it is harmless: {said}")
        return Outcome("clear error" if clear else "unclear error", said[:500])
    stages: list[str] = []
    try:
        found = _use(program, stages.append)
    except MemoryError:
        return Outcome("crash", "out of memory")
    except Exception as error:
        found, said = None, f"{type(error).__name__}: {error}"[:300]
    if refused:
        return Outcome("wrong", "loaded, and had to be refused")
    if found is None:
        return Outcome("unclear error", f"loaded, then in {stages[-1]}: {said}")
    if not all(map(torch.equal, found, expected)):
        return Outcome("wrong", "loaded, and computes something else")
    return Outcome("harmless", "")


def _is_clear(subject: str, error: Exception) -> bool:
    """Whether an error says that something is wrong with the file. Of pt2wire, also where and what."""
    if subject == "pt2wire":
        return isinstance(error, Pt2WireError) and bool(error.path) and bool(error.message)
    return bool(str(error).strip()) and not isinstance(error, _ACCIDENTS)


def _use(program: ExportedProgram, begin: Callable[[str], object] = str) -> list[torch.Tensor]:
    """All that one does with a program: the outputs of each way to run it."""
    args, kwargs = inputs()
    begin("module()")
    module = program.module()
    begin("the call")
    outputs = [module(*args, **kwargs)]
    begin("the interpreter")
    names = (*program.graph_signature.parameters, *program.graph_signature.buffers)
    weights = [program.state_dict[name] for name in names]
    flat = torch.utils._pytree.tree_leaves((args, kwargs))
    outputs += torch.fx.Interpreter(program.graph_module).run(*weights, *flat)
    begin("run_decompositions")
    outputs.append(program.run_decompositions().module()(*args, **kwargs))
    begin("torch.compile")
    outputs.append(torch.compile(module, backend="eager")(*args, **kwargs))
    begin("printing")
    program.graph_module.print_readable(print_output=False)
    str(program)
    return outputs


if __name__ == "__main__":
    _serve(*sys.argv[1:])
