"""Errors of the package cross processes: every class of them is pickled and copied whole."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import pkgutil
import re
from pathlib import Path

import pt2wire
import pytest
import torch
from pt2wire import codegen, generated
from pt2wire.codegen.faults import Finding, Level, SchemaError
from pt2wire.codegen.model import Position
from pt2wire.codegen.outputs import ForeignError
from pt2wire.codegen.spellings import SpellingError
from pt2wire.generated import types
from pt2wire.generated._thrift_bytes import Fault

_FINDINGS = [
    Finding(Position("schema.yaml", line, 1), "rule", Level.SCHEMA, "message", "hint") for line in (1, 2)
]
#: Errors that are made otherwise than of a message alone.
_MADE: dict[type, Exception] = {
    Fault: Fault("message", 3),
    ForeignError: ForeignError(Path("there")),
    SchemaError: SchemaError(_FINDINGS),
    SpellingError: SpellingError("rule", 3, "message", "hint"),
}


def _classes() -> list[type[Exception]]:
    # Three folders, of which the package's own path has one where it is installed to be edited.
    folders = {package.__name__: package.__path__ for package in (pt2wire, codegen, generated)}
    modules = [
        info.name for name, path in folders.items() for info in pkgutil.walk_packages(path, f"{name}.")
    ]
    found: set[type[Exception]] = set()
    for name in modules:
        if not name.endswith("__main__"):
            members = inspect.getmembers(importlib.import_module(name), inspect.isclass)
            found |= {kind for _, kind in members if issubclass(kind, Exception) and kind.__module__ == name}
    return sorted(found, key=lambda kind: kind.__name__)


def _made(kind: type[Exception]) -> Exception:
    if issubclass(kind, pt2wire.Pt2WireError):
        return kind("message", path="path", hint="hint")
    return _MADE[kind] if kind in _MADE else kind("message")


def test_all_errors_are_found() -> None:
    names = {kind.__name__ for kind in _classes()}
    assert names >= {"UnsafeArtifactError", "DepthError", "SchemaError", "TorchSchemaError", "Fault"}


@pytest.mark.parametrize("kind", _classes(), ids=lambda kind: kind.__name__)
def test_errors_are_pickled_and_copied_whole(kind: type[Exception]) -> None:
    error = _made(kind)
    error.add_note("on its way")
    if isinstance(error, pt2wire.Pt2WireError):
        error.path = "outer:path"  # each level that an error passes may add to it
    for again in (
        *(pickle.loads(pickle.dumps(error, protocol)) for protocol in (0, 2, 5)),
        copy.copy(error),
        copy.deepcopy(error),
    ):
        assert type(again) is kind
        assert str(again) == str(error)
        assert vars(again) == vars(error)


def test_what_nests_deep_in_its_own_kind_is_shown_by_its_ends() -> None:
    tree = pt2wire.to_tree(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)))
    value = types.Value.of_int(1)
    for _ in range(200):
        value = types.Value.of_list([value])
    node = tree.graph_module.graph.nodes[0]
    node.exact_inputs = [types.NamedValue("", value)]
    shown = r"value\.as_list\[0\]\.as_list\[0\] \.\.\. \d+ more \.\.\. \.as_list\[0\]: expected at most "
    with pytest.raises(pt2wire.SerializeError, match=shown) as caught:
        pt2wire.to_json(tree)
    assert str(caught.value.path).count(".as_list[0]") > 100  # the path itself is whole
    (finding,) = pt2wire.validate(tree)
    assert re.search(shown, str(finding)) and finding.path == caught.value.path
    node.exact_inputs = None
    leaf = spec = '{"type": null, "context": null, "children_spec": []}'
    for _ in range(150):
        spec = f'{{"type": "builtins.list", "context": "null", "children_spec": [{spec}, {leaf}]}}'
    signature = tree.graph_module.module_call_graph[0].signature
    assert signature is not None
    signature.in_spec = f"[1, {spec}]"
    found = "\n".join(map(str, pt2wire.validate(tree)))
    assert "found more ([1].children_spec[0].children_spec[0] ... 98 more ... .children_spec[0])" in found
