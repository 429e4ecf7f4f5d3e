"""The blocks of docs/cpp.md, in order: Python runs, C++ is compiled, commands print what is shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from .helpers.cpp import ROOT

PAGE = ROOT / "docs" / "cpp.md"


class Block(NamedTuple):
    language: str
    text: str


def _blocks() -> list[Block]:
    return [
        Block(*found)
        for found in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    ]


#: Stands in for g++ where a minute of compiling is too long: clang++ takes a third, not optimizing.
_FAST_COMPILER = """#!/bin/bash
exec clang++ "${@/-O2/-O0}"
"""


@pytest.mark.parametrize("compiler", ["fast", pytest.param("as shown", marks=pytest.mark.wide)])
def test_every_block_of_the_page_runs_as_shown(tmp_path: Path, compiler: str) -> None:
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    environment = {"PATH": path, "HOME": str(tmp_path)}
    if compiler == "fast":
        shim = tmp_path / "bin" / "g++"
        shim.parent.mkdir()
        shim.write_text(_FAST_COMPILER)
        shim.chmod(0o755)
        environment |= {"PATH": f"{shim.parent}{os.pathsep}{path}", "CXX": str(shim)}
    output = ""
    ran = {"python": 0, "cpp": 0, "cmake": 0, "sh": 0, "text": 0}
    for language, text in _blocks():
        ran[language] += 1
        if language in ("cpp", "cmake"):
            name = re.match(r"(?://|#) (\w+\.\w+)\n", text)
            assert name, text
            (tmp_path / name[1]).write_text(text)
        elif language == "text":
            # The example of a message is not what a command prints; the museum has its kind.
            if "(at byte " not in text:
                assert output == text
        else:
            command = [sys.executable, "-c", text] if language == "python" else ["bash", "-ec", text]
            done = subprocess.run(
                command,
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=False,
                env=environment,
            )
            assert done.returncode == 0, f"{text}\n{done.stderr[-4000:]}"
            output = done.stdout
    assert all(ran.values())
    _survive_other_files(tmp_path, environment)


#: Exports a program with a node that yields nothing and one that yields a number, under two names.
_UNUSUAL = """
import pt2wire, torch

class Unusual(torch.nn.Module):
    def forward(self, x):
        count = x.nonzero().shape[0]
        return x.to(torch.float32) * count, count

ep = torch.export.export(Unusual(), (torch.ones(3),))
targets = {str(node.target): node.meta["val"] for node in ep.graph.nodes if node.op == "call_function"}
assert targets["aten._assert_tensor_metadata.default"] is None
assert any(isinstance(value, torch.SymInt) for value in targets.values())
pt2wire.save(ep, "unusual.pt2", compress=False)
pt2wire.save({"other": ep}, "other.pt2", compress=False)
"""


def _survive_other_files(folder: Path, environment: dict[str, str]) -> None:
    """What the page shows is tried on files of others, on none: it works, or says what is wrong."""
    subprocess.run([sys.executable, "-c", _UNUSUAL], cwd=folder, env=environment, check=True)
    programs = [path.stem for path in folder.glob("*.cpp") if "argv" in path.read_text()]
    assert len(programs) == 6
    for program in programs:
        for arguments, code in (([], 0), (["unusual.pt2"], 0), (["other.pt2"], 1), (["none.pt2"], 1)):
            command = [f"./{program}", *arguments]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            assert done.returncode == code, command
            assert done.stderr.startswith("".join(arguments)) if code else done.stderr == ""


def test_the_sizes_that_the_page_names_are_those_of_the_header() -> None:
    text = PAGE.read_text()
    limits = (ROOT / "runtime" / "include" / "pt2wire" / "limits.h").read_text()
    assert "16 times its bytes, and 1 MiB" in text
    assert "expansion = 16;" in limits
    assert "allowance = 1 << 20;" in limits
