"""What is kept about a node besides what it computes: where it came from, and what users noted."""

from __future__ import annotations

import functools
import json
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import torch
from torch.fx.traceback import NodeSource

from ..errors import DeserializeError, UnsafeArtifactError
from ..generated import types
from ..module_stacks import Module, path_problem, split_module_stack
from .faults import cause_of, located
from .targets import find_named

_SEPARATOR = ";"


class Metadata:
    """Reads the metadata of nodes; texts that repeat from node to node are read once."""

    def __init__(self) -> None:
        self._module_stacks: dict[str, dict[str, tuple[str, str]]] = {}
        self._source_stacks: dict[str, list[tuple[str, Any]]] = {}

    def import_metadata(self, metadata: Mapping[str, str]) -> dict[str, Any]:
        """Read the metadata of one node: entries for its `meta`. No two nodes share a mutable one."""
        meta: dict[str, Any] = {}
        try:
            for key, text in metadata.items():
                # Empty texts say nothing, and PyTorch writes none; unknown keys are of a later version.
                if text and (read := _ENTRIES.get(key)) is not None:
                    meta[key] = read(self, text)
        except Exception as error:
            raise located(error, f"metadata[{key!r}]") from cause_of(error)
        return meta

    def _stack_trace(self, text: str) -> str:
        return text

    def _module_stack(self, text: str) -> dict[str, tuple[str, str]]:
        stack = self._module_stacks.get(text)
        if stack is None:
            stack = self._module_stacks[text] = _module_stack(split_module_stack(text))
        return stack.copy()

    def _source_stack(self, text: str) -> list[tuple[str, Any]]:
        stack = self._source_stacks.get(text)
        if stack is None:
            stack = self._source_stacks[text] = [_import_source(entry) for entry in text.split(_SEPARATOR)]
        return stack.copy()

    def _torch_fn(self, text: str) -> tuple[str, ...]:
        return tuple(text.split(_SEPARATOR))

    def _custom(self, text: str) -> Any:
        return _import_json(text)

    def _from_node(self, text: str) -> Any:
        return _import_from_node(_import_json(text))


_ENTRIES: dict[str, Callable[[Metadata, str], Any]] = {
    "stack_trace": Metadata._stack_trace,
    "nn_module_stack": Metadata._module_stack,
    "source_fn_stack": Metadata._source_stack,
    "torch_fn": Metadata._torch_fn,
    "custom": Metadata._custom,
    "from_node": Metadata._from_node,
}

METADATA_KEYS = tuple(_ENTRIES)


def import_module_stack(frames: list[types.ModuleFrame]) -> dict[str, tuple[str, str]]:
    """Read the modules in which a node was made, outermost first."""
    return _module_stack((frame.key, frame.path, frame.type) for frame in frames)


def _module_stack(modules: Iterable[Module]) -> dict[str, tuple[str, str]]:
    stack = {}
    for key, path, kind in modules:
        if (problem := path_problem(path)) is not None:
            raise UnsafeArtifactError(problem)
        stack[key] = (path, kind)
    return stack


def import_graph_metadata(module: types.GraphModule) -> dict[str, Any]:
    """Read the metadata of a graph module: what users noted, and the field names of named tuples."""
    meta: dict[str, Any] = {}
    if custom := module.metadata.get("custom"):
        try:
            meta["custom"] = _import_json(custom)
        except DeserializeError as error:
            raise located(error, "metadata['custom']") from cause_of(error)
    meta["treespec_namedtuple_fields"] = {
        name: list(definition.field_names) for name, definition in module.treespec_namedtuple_fields.items()
    }
    return meta


def _import_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DeserializeError(f"expected JSON, found {text[:60]!r}: {error}") from error


def _import_source(entry: str) -> tuple[str, Any]:
    name, comma, target = entry.partition(",")
    if not comma or "," in target:
        raise DeserializeError(f"expected a name and a function with a comma between, found {entry[:80]!r}")
    return name, import_source_function(target)


def import_source_function(name: str) -> Any:
    """The class, function or operator of torch that a node came from, or its name where it is none.

    Example:
        >>> import_source_function("torch.nn.modules.linear.Linear")
        <class 'torch.nn.modules.linear.Linear'>
        >>> import_source_function("torch.ops.aten.relu")
        <OpOverloadPacket(op='aten.relu')>
        >>> import_source_function("os.system")
        'os.system'
    """
    for find in (_source_functions().get, find_named, _defined_in_torch):
        if (found := find(name)) is not None:
            return found
    return name


@functools.cache
def _source_functions() -> Mapping[str, Any]:
    """The public classes and functions of torch, by the full name that PyTorch writes for them."""
    table: dict[str, Any] = {}
    for namespace in (torch, torch.Tensor, torch.nn, torch.nn.functional, operator, math):
        for public, value in vars(namespace).items():
            if public.startswith("_") or not callable(value):
                continue
            module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
            if isinstance(module, str) and isinstance(name, str):
                table.setdefault(f"{module}.{name}", value)
    return table


def _defined_in_torch(name: str) -> Any:
    """The class or function that a module of torch defines by that name, or None.

    It is reached through modules that each bear the name by which they are reached, so that no name leads out
    of torch. None is imported: what has not been is unknown.
    """
    *modules, last = name.split(".")
    if modules[:1] != ["torch"]:
        return None
    module, path = torch, "torch"
    for step in modules[1:]:
        path = f"{path}.{step}"
        inner = vars(module).get(step)
        if type(inner) is not ModuleType or inner.__name__ != path:
            return None
        module = inner
    found = vars(module).get(last)
    is_source = isinstance(found, _SOURCES) and (found.__module__, found.__name__) == (path, last)
    return found if is_source else None


_SOURCES = (type, FunctionType, BuiltinFunctionType)


def _import_from_node(sources: Any) -> list[NodeSource] | None:
    """The chain of nodes that a node was made from."""
    if sources is None:
        return None
    if not isinstance(sources, list):
        raise DeserializeError(f"expected a list of sources, found {type(sources).__name__}")
    return [_import_node_source(source) for source in sources]


_SOURCE_TYPES = {"name": str, "target": str, "graph_id": int, "pass_name": str, "action": str}


def _import_node_source(source: Any) -> NodeSource:
    if not isinstance(source, dict):
        raise DeserializeError(f"expected an object as source of a node, found {type(source).__name__}")
    for key, kind in _SOURCE_TYPES.items():
        if key in source and type(source[key]) is not kind:
            raise DeserializeError(
                f"expected {kind.__name__} as {key} of a node's source, found {source[key]!r:.60}"
            )
    earlier = source.get("from_node")
    made = NodeSource._from_dict({**source, "from_node": None})
    assert made is not None
    made.from_node = [] if earlier is None else _import_from_node(earlier) or []
    return made
