"""What is promised where torch is not installed: types, reading, the command line, the schema compiler."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pt2wire
import pytest
import torch
from torch import nn

ROOT = Path(__file__).parents[1]

# What the package needs beside torch and sympy.
_REQUIREMENTS = ("thrift", "pyyaml", "jinja2", "typer", "rich")

_BLOCK_TORCH = """
import sys


class _NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "sympy"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.partition(".")[0])


sys.meta_path.insert(0, _NoTorch())
"""

# Run with the path of an archive as argument.
_PROMISES = """
import os, sys, warnings
import pt2wire, pt2wire.codegen, pt2wire.codegen.cli, pt2wire.generated, pt2wire.validation
from pt2wire.cli import run
from pt2wire.locating import paths

path = sys.argv[1]
archive = pt2wire.read(path)
tree = archive.programs["model"]
assert [node.target for node in tree.graph_module.graph.nodes] == ["torch.ops.aten.linear.default"]
assert archive.weights["model"]["weight"].data[:4] is not None
assert pt2wire.from_json(pt2wire.to_json(tree)) == tree == pt2wire.from_thrift(pt2wire.to_thrift(tree))
pt2wire.write(archive, path + ".copy")
assert pt2wire.read(path + ".copy").programs == archive.programs
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert pt2wire.validate(path) == []
(warning,) = caught
assert str(warning.message).startswith("torch is not installed, so operators and classes of inputs")
assert pt2wire.digest(tree) == pt2wire.digest(pt2wire.canonicalize(tree))
assert {"save", "load", "validate"} <= set(dir(pt2wire))
for words, code in {
    ("inspect", path): 0,
    ("inspect", path, "--json"): 0,
    ("validate", path): 0,
    ("diff", path, path): 0,
    ("paths",): 0,
    ("convert", path, path + ".json"): 0,
    ("validate", path + ".json"): 0,
    ("convert", path + ".json", path + ".compact"): 0,
    ("--version",): 0,
    ("validate", sys.argv[0]): 1,
}.items():
    assert run(words) == code, words
schema = paths()["schema"]
assert run(["schema", "check", "--schema", schema, "--out", os.path.dirname(schema)]) == 0
try:
    pt2wire.load
except ModuleNotFoundError as error:
    assert error.name == "torch", error
    assert str(error).startswith("pt2wire.load makes or takes programs of PyTorch, and torch is not")
else:
    raise AssertionError("load was found without torch")
assert not {"torch", "sympy"} & set(sys.modules)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("no_torch") / "m.pt2"
    pt2wire.save(torch.export.export(nn.Linear(4, 2), (torch.ones(3, 4),)), path)
    return path


def test_the_readme_lists_what_is_needed_without_torch() -> None:
    command = f"$ pip install --no-deps . && pip install {' '.join(_REQUIREMENTS)}\n"
    assert command in (ROOT / "README.md").read_text()


def test_a_command_without_what_it_needs_says_so(model: Path) -> None:
    code = _BLOCK_TORCH.replace('"torch", "sympy"', '"yaml"')
    code += "from pt2wire.cli import run\nassert run(['schema', 'lint']) == 2\n"
    script = model.with_name("no_yaml.py")
    script.write_text(code)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        0,
        "pt2wire: this needs the Python package of yaml, which is not installed: see README.md\n",
    )


def run_promises(python: Path | str, code: str, model: Path) -> None:
    script = model.with_name("promises.py")
    script.write_text(code)
    command = [str(python), str(script), str(model)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=model.parent)
    assert done.returncode == 0, done.stderr[-3000:]


def test_promises_with_torch_made_unimportable(model: Path) -> None:
    run_promises(sys.executable, _BLOCK_TORCH + _PROMISES, model)


@pytest.mark.wide
def test_promises_in_a_bare_environment(model: Path, tmp_path: Path) -> None:
    """The package as a user gets it: a wheel, in an environment that has never seen torch."""
    venv.create(tmp_path / "bare", with_pip=True)
    python = tmp_path / "bare" / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *_REQUIREMENTS, "setuptools>=77"], check=True)
    sources = tmp_path / "sources"  # setuptools builds in the tree that it is given
    for folder in ("runtime", "generated", "codegen"):
        shutil.copytree(ROOT / folder, sources / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, sources / file)
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", str(sources)], check=True)
    run_promises(python, _PROMISES, model)
    command = python.with_name("pt2wire")
    done = subprocess.run([str(command), "inspect", str(model)], capture_output=True, text=True, check=True)
    assert "aten.linear.default" in done.stdout
