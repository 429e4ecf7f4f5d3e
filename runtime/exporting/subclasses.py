"""Values that are tensors of a subclass made of other tensors; mirror of `importing.subclasses`.

PyTorch writes what such a tensor looks like from outside, and reads a plain one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from ..errors import SerializeError
from ..generated import types
from ..warning import warn_user
from .exact import class_path, export_plain_value
from .values import Values, export_tensor_meta


def add_subclasses(values: Values) -> None:
    """Write what the values of a graph are made of, where they are of such a class.

    A class that keeps something else than tensors and constants is left out, with a warning: its values are
    plain tensors then, as in PyTorch's files.
    """
    left_out: dict[type, str] = {}
    for node, (member, name) in values.references.items():
        value = node.meta.get("val")
        if member != "as_tensor" or type(value) is FakeTensor or not is_traceable_wrapper_subclass(value):
            continue
        meta = values.tensors[name]
        try:
            meta.subclass, meta.context, meta.inner = _made_of(value, values)
        except SerializeError as error:
            left_out[type(value)] = error.message
    for kind, reason in left_out.items():
        warn_user(f"values of the class {kind.__qualname__} are saved as plain tensors: {reason}")


def _made_of(tensor: Any, values: Values) -> tuple[str, types.Value | None, dict[str, types.TensorMeta]]:
    """Its class, and the constants and tensors that it is made of."""
    names, context = tensor.__tensor_flatten__()
    inner = {name: _inner(name, getattr(tensor, name), values) for name in names}
    return class_path(type(tensor)), None if context is None else export_plain_value(context), inner


def _inner(name: str, tensor: object, values: Values) -> types.TensorMeta:
    if not isinstance(tensor, torch.Tensor):
        raise SerializeError(f"expected a tensor as `{name}`, found {type(tensor).__qualname__}")
    meta = export_tensor_meta(tensor, values.program.symbols)
    if is_traceable_wrapper_subclass(tensor):
        meta.subclass, meta.context, meta.inner = _made_of(tensor, values)
    return meta
