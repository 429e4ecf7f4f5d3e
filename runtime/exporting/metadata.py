"""What is kept about a node besides what it computes: where it came from, and what users noted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from torch.fx.traceback import NodeSource

from ..errors import SerializeError
from ..generated import types
from ..module_stacks import Module, join_module_stack
from .plain_notes import is_empty, plain_note
from .targets import export_target

_SEPARATOR = ";"


def export_metadata(meta: Mapping[str, Any]) -> dict[str, str]:
    """Write the metadata of an FX node that the format keeps; each entry is one text."""
    return {
        key: text
        for key, export, keeps_empty in _ENTRIES
        if key in meta
        and (keeps_empty or not is_empty(meta[key]))
        and (text := export(meta[key])) is not None
    }


def export_graph_metadata(meta: Mapping[str, Any]) -> dict[str, str]:
    """Write the metadata of a graph module that the format keeps: what users noted."""
    custom = meta.get("custom")
    text = None if is_empty(custom) else _export_custom(custom)
    return {} if text is None else {"custom": text}


def _export_stack_trace(trace: str) -> str:
    return trace


def export_module_stack(meta: Mapping[str, Any]) -> list[types.ModuleFrame] | None:
    """Write the modules in which a node was made, or None where a text among its metadata says it all."""
    stack = meta.get("nn_module_stack")
    if not stack or join_module_stack(_modules(stack)) is not None:
        return None
    return [types.ModuleFrame(*module) for module in _modules(stack)]


def _modules(stack: Mapping[str, tuple[str, str]]) -> tuple[Module, ...]:
    return tuple([(f"{key}", f"{path}", f"{kind}") for key, (path, kind) in stack.items()])


def _export_module_stack(stack: Mapping[str, tuple[str, str]]) -> str | None:
    return join_module_stack(_modules(stack))


def _export_source_stack(stack: Any) -> str:
    return _SEPARATOR.join([f"{name},{export_target(target)}" for name, target, *_ in stack])


def _export_torch_fn(names: Any) -> str:
    return _SEPARATOR.join(names)


def _export_custom(custom: Any) -> str | None:
    """A note as JSON, or None where JSON cannot hold it: it is in a field of our own then."""
    try:
        return json.dumps(plain_note(custom))
    except (SerializeError, TypeError, ValueError, RecursionError):
        return None


def _export_from_node(sources: Any) -> str:
    if sources is None:
        return "null"
    # Passes put other things among the sources; PyTorch leaves those out as well.
    return json.dumps([source.to_dict() for source in sources if isinstance(source, NodeSource)])


#: In the order in which PyTorch writes them: the key, how its value becomes text, whether empty ones count.
_ENTRIES: tuple[tuple[str, Callable[[Any], str | None], bool], ...] = (
    ("stack_trace", _export_stack_trace, False),
    ("nn_module_stack", _export_module_stack, False),
    ("source_fn_stack", _export_source_stack, False),
    ("torch_fn", _export_torch_fn, False),
    ("custom", _export_custom, False),
    ("from_node", _export_from_node, True),
)

METADATA_KEYS = tuple(key for key, _, _ in _ENTRIES)
