"""Models that PyTorch exports, but does not save or does not load."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.export import Dim

from .cases import Table, call

BEYOND = Table()


@BEYOND.case(
    lambda rows=7: call(torch.ones(rows)),
    shapes={"x": {0: Dim("rows", min=2, max=64)}},
    sizes=({"rows": 31},),
    refused=({"rows": 65},),
    unsaved="TODO",  # all that its AssertionError says
)
def comparisons_of_sizes_as_outputs(self: nn.Module, x: Tensor) -> tuple[bool, bool]:
    return x.size(0) > 30, (x.size(0) == 7) & (x.size(0) > 3)
