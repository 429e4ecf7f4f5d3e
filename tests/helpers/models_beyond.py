"""Models that PyTorch exports, but does not save or does not load."""

from __future__ import annotations

from collections import defaultdict, namedtuple
from typing import Any

import torch
from torch import Tensor, nn, randn
from torch.export import Dim

from .cases import Table, call

BEYOND = Table()

Unnamed = namedtuple("Unnamed", ["x", "y"])


@BEYOND.case(
    lambda rows=7: call(torch.ones(rows)),
    shapes={"x": {0: Dim("rows", min=2, max=64)}},
    sizes=({"rows": 31},),
    refused=({"rows": 65},),
    unsaved="TODO",  # all that its AssertionError says
)
def comparisons_of_sizes_as_outputs(self: nn.Module, x: Tensor) -> tuple[bool, bool]:
    return x.size(0) > 30, (x.size(0) == 7) & (x.size(0) > 3)


@BEYOND.case(lambda: call({(1, "a"): randn(2), "b": randn(2)}), unread="unhashable type")
def tuples_as_keys(self: nn.Module, tree: Any) -> Any:
    return {(3,): tree[(1, "a")], ((4, None), 5): tree["b"]}


@BEYOND.case(lambda: call({torch.float32: randn(2), 1j: randn(2)}), unsaved="Unable to serialize context")
def dtypes_and_complex_numbers_as_keys(self: nn.Module, tree: Any) -> Any:
    return {torch.bfloat16: tree[torch.float32], torch.strided: tree[1j]}


@BEYOND.case(lambda: call(defaultdict(None, {"a": randn(2)})), unsaved="NoneType")
def defaultdict_without_factory(self: nn.Module, tree: Any) -> Tensor:
    return tree["a"] + 1


@BEYOND.case(lambda: call(Unnamed(randn(2), randn(2))), unsaved="register")
def namedtuples_that_pytree_has_no_name_for(self: nn.Module, pair: Unnamed) -> Unnamed:
    return Unnamed(pair.y, pair.x + 1)


@BEYOND.case(lambda: call(randn(3, 4)), unsaved="torch.return_types")
def named_return_types_as_outputs(self: nn.Module, x: Tensor) -> Any:
    return x.max(1), {"top": x.topk(2), "rest": [x.sort()]}
