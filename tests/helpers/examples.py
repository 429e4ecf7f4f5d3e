"""The examples that torch.export ships, one a feature, as models."""

from __future__ import annotations

import copy
from typing import Any

from torch._export.db.examples import all_examples

from .cases import Case, Inputs, Table, call

#: What torch.export itself refuses when tracing without strict mode.
NOT_EXPORTABLE = frozenset({"dynamic_shape_round"})

EXAMPLES = Table()


def _case(name: str, example: Any) -> Case:
    def inputs() -> Inputs:
        return call(*copy.deepcopy(example.example_args), **copy.deepcopy(example.example_kwargs))

    return Case(name, lambda: copy.deepcopy(example.model), inputs, example.dynamic_shapes)


for _name, _example in sorted(all_examples().items()):
    if _name not in NOT_EXPORTABLE:
        EXAMPLES.add(_case(_name, _example))
