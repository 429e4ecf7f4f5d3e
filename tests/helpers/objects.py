"""Custom objects for tests: the TorchScript classes that PyTorch ships for its own, and opaque types."""

from __future__ import annotations

from typing import Any

import torch
from torch._library.opaque_object import get_opaque_type_name, register_opaque_type
from torch._opaque_base import OpaqueBase
from torch.testing._internal import torchbind_impls

torch.ops.load_library(f"{torch.__path__[0]}/lib/libtorchbind_test.so")
torchbind_impls.register_fake_operators()
torchbind_impls.register_fake_classes()

SCRIPT = torch.classes._TorchScriptTesting


def foo(x: int, y: int) -> Any:
    """An object with two numbers."""
    return SCRIPT._Foo(x, y)


def queue() -> Any:
    """An object that holds tensors and is changed by its methods."""
    return SCRIPT._TensorQueue(torch.full((1,), -1.0))


class Counter(OpaqueBase):
    """An opaque object that stands for itself."""

    def __init__(self, step: int) -> None:
        self.step = step

    def __repr__(self) -> str:
        return f"Counter({self.step})"


class Factor:
    """An opaque object that is equal to others of its value."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def __eq__(self, other: object) -> bool:
        return type(other) is Factor and other.factor == self.factor

    def __hash__(self) -> int:
        return hash(self.factor)

    def __repr__(self) -> str:
        return f"Factor({self.factor})"

    def __fx_repr__(self) -> tuple[str, dict[str, type]]:
        return repr(self), {"Factor": Factor}


register_opaque_type(Counter, typ="reference")
register_opaque_type(Factor, typ="value")

_LIBRARY = torch.library.Library("wiretests", "FRAGMENT")
_LIBRARY.define(f"count({get_opaque_type_name(Counter)} counter, Tensor x) -> Tensor")
_LIBRARY.define(f"scale(Tensor x, {get_opaque_type_name(Factor)} factor) -> Tensor")


@torch.library.impl("wiretests::count", "CompositeExplicitAutograd", lib=_LIBRARY)
def _count(counter: Counter, x: torch.Tensor) -> torch.Tensor:
    return x + counter.step


@torch.library.impl("wiretests::scale", "CompositeExplicitAutograd", lib=_LIBRARY)
def _scale(x: torch.Tensor, factor: Factor) -> torch.Tensor:
    return x * factor.factor


@torch.library.register_fake("wiretests::count", lib=_LIBRARY)
def _fake_count(counter: Counter, x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


@torch.library.register_fake("wiretests::scale", lib=_LIBRARY)
def _fake_scale(x: torch.Tensor, factor: Factor) -> torch.Tensor:
    return torch.empty_like(x)
