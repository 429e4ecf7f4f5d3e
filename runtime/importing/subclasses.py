"""Values that are tensors of a subclass made of other tensors; mirror of `exporting.subclasses`.

Making one runs code of its class. So the class has to be handed in; otherwise the value is a plain tensor, as
it is to PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..classes import handing_in, known_class
from ..errors import DeserializeError
from ..generated import types
from ..warning import warn_user
from .exact import import_plain_value
from .faults import within


class Subclasses:
    """Makes the values of one program that are of such a class.

    Args:
        known: The classes that the caller has handed in.
    """

    def __init__(self, known: tuple[type, ...]) -> None:
        self._known = known
        self._missed: set[str] = set()

    def make(
        self, meta: types.TensorMeta, outer: torch.Tensor, inner: Callable[[types.TensorMeta], torch.Tensor]
    ) -> torch.Tensor:
        """The tensor that a description is of.

        Args:
            meta: The description, of a subclass.
            outer: The tensor as PyTorch reads it, which is the result for a class that was not handed in.
            inner: Makes one of the tensors that it is made of.

        Raises:
            DeserializeError: The class cannot make a tensor of these parts.
        """
        path = meta.subclass or ""
        kind: Any = known_class(path, self._known)
        if kind is None:
            if path not in self._missed:
                self._missed.add(path)
                warn_user(
                    f"values of the class {path[:80]!r} are read as plain tensors. {handing_in(path)}",
                )
            return outer
        if not (issubclass(kind, torch.Tensor) and hasattr(kind, "__tensor_unflatten__")):
            raise DeserializeError(f"expected a class of tensors made of tensors, found {path[:80]!r}")
        with within("inner"):
            parts = {name: inner(part) for name, part in (meta.inner or {}).items()}
        with within("context"):
            context = None if meta.context is None else import_plain_value(meta.context, self._known)
        try:
            made = kind.__tensor_unflatten__(parts, context, outer.shape, outer.stride())
        except Exception as error:  # of the class
            raise DeserializeError(
                f"expected parts of which {path[:80]!r} can be made, found others "
                f"({type(error).__name__}: {error!s:.100})"
            ) from error
        if type(made) is not kind or made.shape != outer.shape or made.dtype != outer.dtype:
            raise DeserializeError(
                f"expected a tensor of the class {path[:80]!r} as described, found another"
            )
        return made.requires_grad_(outer.requires_grad)  # type: ignore[no-any-return]
