"""Custom objects: what a program holds beside tensors, of TorchScript classes or of opaque types."""

from __future__ import annotations

from typing import Any

import torch
from torch._library.opaque_object import get_opaque_type_name, is_opaque_type


def object_class(value: Any) -> str | None:
    """The name that PyTorch has for the class of a custom object; None for what is none.

    Example:
        >>> object_class(torch.ones(2)) is None
        True
    """
    if isinstance(value, torch.ScriptObject):
        return str(value._type().qualified_name())
    return get_opaque_type_name(type(value)) if is_opaque_type(type(value)) else None
