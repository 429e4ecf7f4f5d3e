"""What a node calls, by its full name: operators, higher-order operators, symbolic functions."""

from __future__ import annotations

from typing import Any

from ..extensions import extension_text


def export_target(target: Any) -> str:
    """The full name of what a node calls: `torch.ops.aten.add.Tensor`, `_operator.mul`, `#mine:double`."""
    if isinstance(target, str):
        return target
    if (text := extension_text(target)) is not None:
        return text
    # Operators live in `torch._ops`, where `torch.ops` finds them by name.
    module: str = target.__module__
    if module.startswith("torch._ops"):
        module = module.replace("torch._ops", "torch.ops")
    return f"{module}.{target.__name__}"
