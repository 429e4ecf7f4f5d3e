"""Calls of modules that were lowered to a backend: the name of what was compiled stands for the module.

What was compiled is no part of the program: it is packaged beside it, and whoever runs the program finds it
by that name. So the module does not come back.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from ..errors import SerializeError
from .values import Values, attribute_of

_AOTI = torch.ops.higher_order.aoti_call_delegate
_NAMED = {"AOTInductorEPModule", "AOTInductorRunnerWrapper"}
_LOWERED = "LoweredBackendModule"


def is_lowered(node: Node) -> bool:
    """Whether a `get_attr` node stands for a lowered module, or for what one was made of.

    PyTorch knows lowered modules by the names of their classes: not all are its own.
    """
    kind = type(attribute_of(node)).__name__
    return (
        kind == _LOWERED
        or kind in _NAMED
        or (bool(node.users) and all(_is_original(node, user) for user in node.users))
    )


def lowered_name(node: Node, values: Values) -> str | None:
    """The name that stands for a module lowered by ExecuTorch's means; None for other attributes.

    Raises:
        SerializeError: The module does not say how it is called.
    """
    module = attribute_of(node)
    if type(module).__name__ != _LOWERED:
        return None
    name, backend = getattr(module, "module_name", None), getattr(module, "backend_id", None)
    if not (isinstance(name, str) and isinstance(backend, str)):
        raise SerializeError(
            f"expected a lowered module with a name and a backend, found {name!r:.80} and {backend!r:.80}",
            hint="Give it a `module_name` when it is lowered",
        )
    values.program.left_out.append(f"{name}-{backend}")
    return f"{name}-{backend}"


def delegate_arguments(node: Node, values: Values) -> list[Any]:
    """What a call of AOTInductor's delegate is written with: a path for the module, and no original.

    Raises:
        SerializeError: There is no path, or the call is none of a lowered module, its original, weights and
            inputs.
    """
    if len(node.args) != 4 or node.kwargs:
        raise SerializeError(
            f"expected a lowered module, its original, weights and inputs, found {len(node.args)} arguments "
            f"and {list(node.kwargs)}"
        )
    lowered, original, weights, inputs = list[Any](node.args)
    if isinstance(lowered, Node):
        path = getattr(attribute_of(lowered), "aoti_path", None)
        if not isinstance(path, str):
            raise SerializeError(f"expected a lowered module with an `aoti_path`, found {path!r:.80}")
        values.program.left_out.append(path)
        lowered, original = path, None
    # PyTorch leaves objects out of the weights: the format has a list of tensors for these.
    objects = [node for node, (member, _) in values.references.items() if member == "as_custom_obj"]
    return [lowered, original, [weight for weight in weights or () if weight not in objects], list(inputs)]


def _is_original(node: Node, call: Node) -> bool:
    return call.target is _AOTI and len(call.args) > 1 and call.args[1] is node
