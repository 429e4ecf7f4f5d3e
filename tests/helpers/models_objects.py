"""What a program calls or holds that is neither an operator of PyTorch nor a tensor: extensions, objects."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn, randn
from torch.export import Dim

from .cases import Table, call
from .extensions import to_edge

EXTENSIONS = Table()


@EXTENSIONS.case(
    lambda rows=4: call(randn(rows, 4)),
    shapes={"x": {0: Dim("rows", min=2)}},
    sizes=({"rows": 9},),
    after=to_edge,
)
def operators_of_an_extension(self: nn.Module, x: Tensor) -> Any:
    values, indices = torch.cat([x.sin(), x]).max(1)
    first, _ = x.split(2, 1)
    return torch.add(x, x, alpha=2), values, indices, first, x.clamp(max=0.5), x.cos()
