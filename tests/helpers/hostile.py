"""The hostile set: files that lie, are damaged, or try to run code, each made from one honest archive.

A case is a row: a name, the kind of attack, what it proves, and a function from the honest archive to the
bytes of the file. Code in a file makes the file `MARKER` in the current folder; importing the module `TRAP`,
which the runner puts there, does so too. `hostile_runs` runs the cases, `hostile_page` writes what came of
it.
"""

from __future__ import annotations

import copy
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from pt2wire.archive.forms import Form
from pt2wire.archive.index import documents, index_entries
from pt2wire.generated import json_codec, thrift_codec, types
from torch import Tensor

from .archives import saved, with_records

Tree = types.ExportedProgram
Records = dict[str, bytes]

MARKER = "hostile_marker"
TRAP = "hostile_trap"
CODE = f"open({MARKER!r}, 'w').close()"
"""An expression of Python that leaves the marker."""
SHELL = f"touch {MARKER}"

#: The kinds, in the order of the page, with what an attacker hopes for.
KINDS: dict[str, str] = {
    "container": "damaged or ambiguous zip files, paths out of the archive",
    "json": "damaged or ambiguous JSON",
    "thrift": "damaged or ambiguous Thrift, forms that disagree",
    "expressions": "code in symbolic sizes",
    "names": "code in names that are pasted into generated Python",
    "texts": "code in constant strings and dictionary keys",
    "targets": "functions of Python in place of operators",
    "operators": "operators that reach files, devices or raw memory",
    "treespecs": "modules that are imported for a container or an enum",
    "guards": "code in guards",
    "pickles": "pickles, wherever one may lie",
    "libraries": "compiled code in the archive",
    "metadata": "code and nonsense in notes on nodes",
    "graphs": "values used before they exist or as what they are not, wrong signatures",
    "symbols": "contradicting symbols, ranges and hints",
    "weights": "tensors that reach beyond their bytes",
    "costs": "small files that ask for much memory or time",
}


@dataclass(frozen=True)
class Hostile:
    """One file of the set.

    Attributes:
        kind: One of `KINDS`.
        proves: What it shows, in a few words.
        make: The bytes of the file.
        refused: Whether it must not load. What may load must give what the honest program gives.
    """

    kind: str
    proves: str
    make: Callable[[], bytes]
    refused: bool = True


HOSTILE: dict[str, Hostile] = {}


def add(kind: str, name: str, proves: str, make: Callable[[], bytes], *, refused: bool = True) -> None:
    """Puts a case into the set."""
    assert kind in KINDS and f"{kind}: {name}" not in HOSTILE, name
    HOSTILE[f"{kind}: {name}"] = Hostile(kind, proves, make, refused)


# -- the honest program -----------------------------------------------------------------------------------


class Model(torch.nn.Module):
    """A little of everything: weights, a subgraph, a dynamic size, a dictionary, a constant text."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(3, 3)
        self.register_buffer("offset", torch.ones(3))

    def forward(self, x: Tensor, *, options: dict[str, Tensor], mode: str = "sum") -> Tensor:
        y = torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, (self.linear(x) + self.offset,))
        return y * options["by"] + x.shape[0]


def inputs() -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call of the program."""
    return (torch.ones(4, 3),), {"options": {"by": torch.ones(3)}, "mode": "sum"}


@cache
def program() -> torch.export.ExportedProgram:
    """The honest program, exported once."""
    batch = torch.export.Dim("batch", min=2, max=64)
    args, kwargs = inputs()
    shapes = {"x": {0: batch}, "options": {"by": None}, "mode": None}
    return torch.export.export(Model(), args, kwargs, dynamic_shapes=shapes)


@cache
def honest() -> bytes:
    """Its archive, with JSON only, so that PyTorch and pt2wire read the same bytes."""
    return saved(program(), formats=("json",))


@cache
def honest_both() -> bytes:
    """Its archive in both forms."""
    return saved(program())


@cache
def honest_records() -> Records:
    """The records of the archive, by name below the root, without the index."""
    with zipfile.ZipFile(io.BytesIO(honest())) as file:
        names = [info.filename for info in file.infolist()]
        found = {name.partition("/")[2]: file.read(name) for name in names}
    del found[INDEX]
    return found


PROGRAM = "models/model.json"
WEIGHTS = "data/weights/model_weights_config.json"
CONSTANTS = "data/constants/model_constants_config.json"
INPUTS = "data/sample_inputs/model.pt"
INDEX = "thrift/index.compact"


# -- ways to change it ------------------------------------------------------------------------------------


def records(changes: dict[str, bytes | None]) -> bytes:
    """The archive with some records changed, added, or left out where None."""
    return with_records(honest(), {INDEX: None, **changes})


@cache
def _tree() -> Tree:
    return json_codec.decode(Tree, honest_records()[PROGRAM])


def tree(change: Callable[[Tree], object]) -> Callable[[], bytes]:
    """Makes the archive with a changed program."""

    def make() -> bytes:
        changed = copy.deepcopy(_tree())
        change(changed)
        return records({PROGRAM: json_codec.encode(changed)})

    return make


def plain(change: Callable[[Any], object], record: str = PROGRAM) -> Callable[[], bytes]:
    """Makes the archive with changed JSON: the plain values of one record."""

    def make() -> bytes:
        value = json.loads(honest_records()[record])
        change(value)
        return records({record: json.dumps(value).encode()})

    return make


def text(change: Callable[[bytes], bytes], record: str = PROGRAM) -> Callable[[], bytes]:
    """Makes the archive with changed bytes of one record."""
    return lambda: records({record: change(honest_records()[record])})


def thrift(change: Callable[[bytes], bytes], record: str = "thrift/model.compact") -> Callable[[], bytes]:
    """Makes the archive in Thrift only, with changed bytes of a document, and an index that agrees."""

    def make() -> bytes:
        found = dict(honest_thrift())
        found[record] = change(found[record])
        entries = index_entries(
            "model", Form.THRIFT, [found[name] for name in documents("model", Form.THRIFT)]
        )
        index = types.ArchiveIndex(writer=types.Writer(name="evil", version="1", revision=1), entries=entries)
        found[INDEX] = thrift_codec.encode(index)
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as file:
            for name, data in found.items():
                file.writestr(f"archive/{name}", data)
        return made.getvalue()

    return make


@cache
def honest_thrift() -> Records:
    """The records of the archive in Thrift, without its index."""
    with zipfile.ZipFile(io.BytesIO(saved(program(), formats=("thrift",)))) as file:
        found = {name.partition("/")[2]: file.read(name) for name in file.namelist()}
    del found[INDEX]
    return found


# -- places in the tree -----------------------------------------------------------------------------------


def graph(found: Tree) -> types.Graph:
    return found.graph_module.graph


def call(found: Tree, target: str) -> types.Node:
    """The first node that calls something of this name."""
    return next(node for node in graph(found).nodes if target in node.target)


def signature(found: Tree) -> types.GraphSignature:
    return found.graph_module.signature


def root(found: Tree) -> types.ModuleCallSignature:
    """The signature of the program itself in the module call graph."""
    made = found.graph_module.module_call_graph[0].signature
    assert made is not None
    return made


def sizes(found: Tree) -> list[types.SymInt]:
    """The symbolic sizes of all tensors."""
    metas = graph(found).tensor_values.values()
    return [size for meta in metas for size in meta.sizes if size.type == "as_expr"]


def set_size(found: Tree, expression: str) -> None:
    """Exchanges the first symbolic size."""
    described = sizes(found)[0].as_expr
    described.expr_str, described.hint = expression, None


def set_sizes(found: Tree, expression: str) -> None:
    """Exchanges all symbolic sizes."""
    for size in sizes(found):
        size.as_expr.expr_str, size.as_expr.hint = expression, None


def add_keyword(found: Tree, target: str, name: str) -> None:
    """Gives a call one more argument, by keyword."""
    argument = types.NamedArgument(name=name, arg=types.Argument.of_int(1), kind=types.ArgumentKind.KEYWORD)
    call(found, target).inputs.append(argument)


def set_subgraph(found: Tree, name: str) -> None:
    """Renames the first branch of the choice."""
    graphs = [named.arg for named in call(found, "cond").inputs if named.arg.type == "as_graph"]
    graphs[0].as_graph.name = name
