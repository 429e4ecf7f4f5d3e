"""What a node calls, found by its full name: operators, higher-order operators, symbolic functions."""

from __future__ import annotations

import builtins
import functools
import math
import operator
import re
from typing import Any

import torch
import torch._functorch.predispatch
import torch.amp.autocast_mode
from torch._ops import OpOverload, OpOverloadPacket, _higher_order_ops

from ..errors import DeserializeError, UnsafeArtifactError
from ..extensions import find_extension
from ..operators import (
    AUTOCAST_FUNCTIONS,
    FUNCTORCH_FUNCTIONS,
    HIGHER_ORDER,
    NOT_YET,
    SYMBOLIC_FUNCTIONS,
    Target,
    TargetKind,
    allowing,
    parse_target,
    refusal,
)

_MODULES = {
    "_operator": operator,
    "builtins": builtins,
    "math": math,
    "torch": torch,
    "torch._functorch.predispatch": torch._functorch.predispatch,
    "torch.amp.autocast_mode": torch.amp.autocast_mode,
}
#: By full name; the names are those of our own tables, so that nothing from a file is looked up as attribute.
_FUNCTIONS: dict[str, Any] = {
    full_name: getattr(_MODULES[module], name)
    for full_name in (*SYMBOLIC_FUNCTIONS, *FUNCTORCH_FUNCTIONS, *AUTOCAST_FUNCTIONS)
    for module, _, name in [full_name.rpartition(".")]
}


@functools.lru_cache(maxsize=4_096)
def find_target(text: str, allowed: frozenset[str] = frozenset()) -> Any:
    """What a node's target or an operator argument names.

    Args:
        text: The full name.
        allowed: Operators that the caller allows though they are refused otherwise, as `namespace.name`.

    Raises:
        UnsafeArtifactError: For what a program that nobody vouches for must not call.
        DeserializeError: For what is no target, is not registered, or cannot be read yet.

    Example:
        >>> find_target("torch.ops.aten.add.Tensor")
        <OpOverload(op='aten.add', overload='Tensor')>
    """
    target = parse_target(text)
    if target is None:
        raise UnsafeArtifactError(
            f"expected an operator such as torch.ops.aten.add.Tensor, or a function over symbolic numbers, "
            f"found {text[:120]!r}"
        )
    if reason := refusal(target, allowed):
        raise UnsafeArtifactError(
            f"expected an operator that files may call, found {text}: {reason}", hint=allowing(target)
        )
    return _FIND[target.kind](target, text)


def _find_operator(target: Target, text: str) -> OpOverload[..., Any]:
    qualified, overload = f"{target.namespace}::{target.name}", target.overload
    try:
        # The dispatcher knows what is registered; torch.ops makes up namespaces for whatever it is asked for.
        torch._C._dispatch_find_schema_or_throw(qualified, "" if overload == "default" else overload)
    except RuntimeError as error:
        raise DeserializeError(
            f"expected a registered operator, found {text}",
            hint="It needs an import of the library that registers it first",
        ) from error
    found = getattr(getattr(getattr(torch.ops, target.namespace), target.name), overload)
    if not isinstance(found, OpOverload):
        raise DeserializeError(f"expected an operator, found {text}, which is a {type(found).__name__}")
    return found


def _find_higher_order(target: Target, text: str) -> Any:
    if target.name in NOT_YET:
        raise DeserializeError(f"{NOT_YET[target.name]} cannot be read yet, found a call of {text}")
    if target.name not in HIGHER_ORDER or target.name not in _higher_order_ops:
        raise DeserializeError(
            f"expected a higher-order operator of {', '.join(HIGHER_ORDER)}, found {text}",
        )
    return _higher_order_ops[target.name]


def _find_function(target: Target, text: str) -> Any:
    return _FUNCTIONS[text]


def _find_extension(target: Target, text: str) -> Any:
    return find_extension(target)


_FIND = {
    TargetKind.OPERATOR: _find_operator,
    TargetKind.HIGHER_ORDER: _find_higher_order,
    TargetKind.SYMBOLIC: _find_function,
    TargetKind.FUNCTORCH: _find_function,
    TargetKind.AUTOCAST: _find_function,
    TargetKind.EXTENSION: _find_extension,
}


_PACKET = re.compile(r"torch\.ops\.(\w+)\.(\w+)", re.ASCII)


def find_named(text: str) -> Any:
    """The operator that a note names, with its overload or without, or None.

    Nothing calls what notes name, so that files may name all that there are.

    Example:
        >>> find_named("torch.ops.aten.add")
        <OpOverloadPacket(op='aten.add')>
        >>> find_named("torch.ops.aten.nothing") is None
        True
    """
    target = parse_target(text)
    if target is None:
        match = _PACKET.fullmatch(text)
        return None if match is None else _find_packet(*match.groups())
    if target.kind is TargetKind.HIGHER_ORDER:
        return _higher_order_ops.get(target.name)
    try:
        return _FIND[target.kind](target, text)
    except DeserializeError:
        return None


def _find_packet(namespace: str, name: str) -> OpOverloadPacket[..., Any] | None:
    # As for one overload, the dispatcher is asked first.
    if not torch._C._jit_get_schemas_for_operator(f"{namespace}::{name}"):
        return None
    found = getattr(getattr(torch.ops, namespace), name)
    return found if isinstance(found, OpOverloadPacket) else None
