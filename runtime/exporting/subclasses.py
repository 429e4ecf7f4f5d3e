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
from .exact import class_path, export_constant
from .faults import located
from .values import Values, export_tensor_meta


def add_subclasses(values: Values) -> None:
    """Write what the values of a graph are made of, where they are of such a class.

    Raises:
        SerializeError: The class, or the constants that it keeps beside its tensors, cannot be written.
    """
    for node, (member, name) in values.references.items():
        value = node.meta.get("val")
        if member != "as_tensor" or type(value) is FakeTensor or not is_traceable_wrapper_subclass(value):
            continue
        try:
            _add_subclass(values.tensors[name], value, values)
        except SerializeError as error:
            raise located(error, node.name) from error.__cause__
        values.own.add("subclass")


def _add_subclass(meta: types.TensorMeta, tensor: Any, values: Values) -> None:
    names, context = tensor.__tensor_flatten__()
    meta.subclass = class_path(type(tensor))
    meta.inner = {name: _inner(getattr(tensor, name), values) for name in names}
    try:
        meta.context = None if context is None else export_constant(context)
    except SerializeError as error:
        raise SerializeError(
            f"expected a tensor of a class that keeps plain constants beside its tensors, found "
            f"{type(tensor).__qualname__}: {error.message}",
            hint="Unwrap its weights first, with torch._functorch._aot_autograd.subclass_parametrization or "
            "run_decompositions()",
        ) from error


def _inner(tensor: torch.Tensor, values: Values) -> types.TensorMeta:
    meta = export_tensor_meta(tensor, values.symbols)
    if is_traceable_wrapper_subclass(tensor):
        _add_subclass(meta, tensor, values)
    return meta
