"""Static and dynamic shapes: backed, derived, automatic, unbacked; guards; symbolic numbers in and out."""

from __future__ import annotations

import torch
from torch import nn, randn
from torch.export import Dim

from .cases import Table, call

SHAPES = Table()
case = SHAPES.case


def _linear(m):
    m.linear = nn.Linear(4, 3)


@case(lambda: call(randn(2, 4)), _linear)
def static(self, x):
    return self.linear(x).relu()


@case(
    lambda rows=6: call(randn(rows, 4)),
    _linear,
    shapes={"x": {0: Dim("rows", min=2, max=32)}},
    sizes=({"rows": 2}, {"rows": 32}, {"rows": 1}, {"rows": 0}),
    refused=({"rows": 33},),
)
def dim_with_range(self, x):
    return self.linear(x).relu()


@case(
    lambda rows=6, columns=5: call(randn(rows, columns), randn(columns, 3)),
    shapes={"x": {0: Dim("rows"), 1: (_columns := Dim("columns"))}, "y": {0: _columns}},
    sizes=({"rows": 2, "columns": 7},),
)
def dims_shared_between_inputs(self, x, y):
    return x @ y


_half = Dim("half", min=2, max=16)


@case(
    lambda half=4: call(randn(2 * half), randn(half)),
    shapes={"x": {0: 2 * _half}, "y": {0: _half}},
    sizes=({"half": 2}, {"half": 16}),
)
def dim_derived_by_factor(self, x, y):
    return x[::2] + y


_length = Dim("length", min=3, max=64)


@case(
    lambda length=5: call(randn(length), randn(length + 1)),
    shapes={"x": {0: _length}, "y": {0: _length + 1}},
    sizes=({"length": 9},),
)
def dim_derived_by_offset(self, x, y):
    return x + y[1:]


@case(
    lambda rows=6: call(randn(rows, 3)),
    shapes={"x": {0: Dim("rows", min=0, max=64)}},
    sizes=({"rows": 0}, {"rows": 1}, {"rows": 9}),
    refused=({"rows": 65},),
)
def dim_from_zero_on(self, x):
    return x.sum(0) + x, x.shape[0] + 1


@case(
    lambda rows=6, columns=4: call(randn(rows, columns)),
    shapes={"x": {0: Dim.AUTO, 1: Dim.AUTO}},
    sizes=({"rows": 3, "columns": 8},),
)
def dims_automatic(self, x):
    return x.reshape(x.size(1), -1), x.flatten()


@case(
    lambda rows=6: call(randn(rows, 4)),
    shapes={"x": {0: Dim.AUTO}},
    sizes=({"rows": 4},),
    refused=({"rows": 7},),
)
def guard_on_remainder(self, x):
    torch._check(x.size(0) % 2 == 0)
    return x.reshape(x.size(0) // 2, 8)


@case(
    lambda rows=6, columns=9: call(randn(rows), randn(columns)),
    shapes={"x": {0: Dim.AUTO}, "y": {0: Dim.AUTO}},
    sizes=({"rows": 3, "columns": 8},),
    refused=({"rows": 8, "columns": 8},),
)
def guard_between_dims(self, x, y):
    torch._check(x.size(0) + 2 < y.size(0))
    return y[: x.size(0)] + x


@case(
    lambda rows=6: call(randn(rows, 4)),
    shapes={"x": {0: Dim("rows", min=2, max=100)}},
    sizes=({"rows": 8},),
    refused=({"rows": 7},),
    export={"prefer_deferred_runtime_asserts_over_guards": True},
)
def guard_as_runtime_assert(self, x):
    torch._check(x.size(0) % 2 == 0)
    return x.reshape(x.size(0) // 2, 8)


@case(lambda count=3: call(torch.tensor(count), randn(10)), sizes=({"count": 5},), refused=({"count": 11},))
def unbacked_int_from_item(self, n, x):
    count = n.item()
    torch._check(count >= 2)
    torch._check(count <= x.size(0))
    return x[:count] * 2, torch.zeros(count, 3)


@case(lambda: call(torch.tensor(2.5), randn(3)))
def unbacked_float_from_item(self, factor, x):
    return x * factor.item()


@case(lambda: call(torch.tensor([0.0, 1.0, 0.0, 3.0])))
def unbacked_size_from_nonzero(self, x):
    index = x.nonzero()
    return index, x[x > 0], index.shape[0]


@case(lambda: call(torch.tensor([3, 4, 2]), randn(9, 2)))
def unbacked_sizes_from_tolist(self, sizes, x):
    first, second, third = sizes.tolist()
    torch._check(first + second + third == x.size(0))
    return x.split([first, second, third])


@case(
    lambda rows=6: call(torch.arange(rows) % 3, torch.tensor(4)),
    shapes={"x": {0: Dim("rows")}, "n": None},
    sizes=({"rows": 11},),
)
def unbacked_size_beside_backed(self, x, n):
    count = n.item()
    torch._check(count >= 1)
    return x.new_ones(count, x.size(0)), torch.bincount(x)


@case(lambda n=3: call(randn(4), n), shapes={"x": None, "n": Dim.DYNAMIC}, sizes=({"n": 5},))
def symbolic_int_input(self, x, n):
    return x * n, x.new_zeros(n), n + 1


@case(
    lambda rows=6, columns=4: call(randn(rows, columns)),
    shapes={"x": {0: Dim("rows"), 1: Dim("columns")}},
    sizes=({"rows": 3, "columns": 9},),
)
def symbolic_ints_as_outputs(self, x):
    rows, columns = x.shape
    return (
        rows,
        rows * columns,
        [rows + 1, rows // 2, rows % columns, -columns],
        {"square": rows**2},
        max(rows, 3),
    )


@case(
    lambda rows=6: call(randn(rows, 4)),
    shapes={"x": {0: Dim("rows", min=4)}},
    sizes=({"rows": 5}, {"rows": 12}),
)
def symbolic_ints_in_arguments(self, x):
    rows = x.size(0)
    return (
        x.view(2 * rows, -1),
        torch.full((rows, 2), 7),
        torch.arange(rows, dtype=torch.float32),
        x.narrow(0, 1, rows - 2),
        x / rows,
        x.expand(2, rows, 4),
        torch.cat([x, x.new_ones(rows + 1, 4)]),
    )


@case(lambda rows=6: call(randn(rows, 4)), shapes={"x": {0: Dim("rows")}}, sizes=({"rows": 9},))
def symbolic_floats_in_arguments(self, x):
    rows = x.size(0)
    return (
        x * (rows / 2),
        x * (rows * 0.5),
        torch.full((2,), torch.sym_float(rows) * 0.5),
        x.clamp(max=rows * 0.1),
        x * torch.sym_sqrt(rows),
    )


@case(lambda rows=6: call(randn(rows, 4)), shapes={"x": {0: Dim("rows")}}, sizes=({"rows": 9},))
def symbolic_bools_and_choices(self, x):
    rows = x.size(0)
    return x * torch.sym_ite(rows > 7, 3, 4), x + max(rows, 9), x - min(rows, 7)


@case(
    lambda size=8: call(randn(1, 3, size, size)),
    lambda m: setattr(m, "convolution", nn.Conv2d(3, 4, 3, stride=2, padding=1)),
    shapes={"image": {2: Dim.AUTO, 3: Dim.AUTO}},
    sizes=({"size": 12},),
)
def derived_expressions_in_values(self, image):
    return nn.functional.max_pool2d(self.convolution(image), 2, ceil_mode=True).flatten(1)


@case(
    lambda rows=6: call(randn(rows, 2)),
    shapes={"x": {0: Dim.DYNAMIC}},
    sizes=({"rows": 3},),
    export={"strict": True},
)
def dim_dynamic_strict(self, x):
    return x.sin() + x.size(0)
