"""Nested inputs and outputs, keyword arguments, constants as inputs and outputs, mutated inputs."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import torch
from torch import Tensor, randn
from torch.export import Dim

from .cases import Table, call

INPUTS = Table()
case = INPUTS.case

Point = namedtuple("Point", ["x", "y"])
torch.utils._pytree._register_namedtuple(Point, serialized_type_name="pt2wire.tests.Point")


@dataclass
class Box:
    """A dataclass as input and output; `label` is left None."""

    low: Tensor
    high: Tensor
    label: Tensor | None = None


torch.export.register_dataclass(Box, serialized_type_name="pt2wire.tests.Box")


@case(lambda: call({"a": randn(2), "b": [randn(2), (randn(2), randn(2))]}, [randn(2)]))
def nested_containers(self, tree, more):
    a, (b, (c, d)) = tree["a"], tree["b"]
    return {"sum": a + b, "pair": (c, [d, more[0]])}, [a * 2]


@case(lambda: call(randn(2), scale=randn(2), offset=randn(2)))
def keyword_arguments(self, x, *, offset, scale):
    return x * scale + offset


@case(lambda: call(b=randn(2), a=randn(2)))
def keyword_arguments_only(self, a, b):
    return a - 2 * b


@case(lambda: call(randn(3), randn(3), randn(3), last=randn(3)))
def variable_arguments(self, x, *rest, **named):
    return x + rest[0] - rest[1] * named["last"]


@case(lambda: call(randn(2), flag=True))
def default_arguments_left_out(self, x, bias=None, *, flag=False, factor=3):
    return x * factor if flag else bias


@case(lambda: call(Point(randn(2), randn(2))))
def namedtuples(self, point):
    return Point(point.y, point.x + 1)


@case(lambda: call(Box(randn(2), randn(2))))
def dataclasses(self, box):
    return Box(box.low.minimum(box.high), box.low.maximum(box.high))


@case(
    lambda rows=3: call(randn(rows), 2**70, [-(2**64), {2**80: randn(2)}]),
    shapes={"x": {0: Dim("rows")}, "number": None, "tree": [None, {2**80: None}]},
    sizes=({"rows": 5},),
)
def integers_beyond_64_bits(self, x, number, tree):
    with torch.fx.traceback.annotate({"seed": 2**100}):
        y = tree[1][2**80] + 1
    return y, x.size(0) * 2**66, number, tree[0]


@case(lambda: call(OrderedDict(b=randn(2), a=randn(2)), {3: randn(2), "three": randn(2)}))
def ordered_dict_and_int_keys(self, first, second):
    return OrderedDict(z=first["a"], y=second[3]), {1: first["b"], 2: second["three"]}


@case(lambda: call(randn(2)))
def single_output_in_a_list(self, x):
    return [x.exp()]


@case(lambda: call(randn(2)))
def single_tensor_output(self, x):
    return x.exp()


@case(lambda: call(randn(2)))
def outputs_none_and_numbers(self, x):
    return x + 1, None, 3, 2.5, True


@case(lambda: call(randn(2)))
def no_output(self, x):
    x.exp()
    return None


@case(lambda: call())
def no_input(self):
    return torch.arange(5) + torch.ones(5)


@case(lambda: call(randn(3), 2, 0.5, True, None, "floor"))
def constant_inputs(self, x, n, factor, flag, nothing, mode):
    y = torch.div(x * n, factor, rounding_mode=mode)
    return y if flag else nothing


@case(lambda: call({"sizes": [2, 3], "x": randn(6)}, text="sum"))
def constant_inputs_nested(self, tree, *, text):
    return tree["x"].view(tree["sizes"]), text == "sum"


@case(lambda: call(randn(2), [], {}, ()))
def empty_containers(self, x, a, b, c):
    return x, [], {}


@case(lambda: call(randn(3), randn(3)))
def input_returned_twice(self, x, unused):
    return x, x, x + 0


@case(lambda: call(randn(3)))
def one_value_at_two_outputs(self, x):
    y = x.exp()
    return y, {"again": y}


@case(lambda: call(randn(3), {"state": torch.zeros(3)}))
def input_mutation(self, x, state):
    state["state"].add_(x)
    return state["state"] * 2


@case(lambda rows=4: call(randn(rows, 3)), shapes={"x": {0: Dim("rows")}}, sizes=({"rows": 6},))
def input_mutation_dynamic(self, x):
    x.mul_(2)
    x[:, 0] = 1
    return x.sum(0)


@case(lambda: call(randn(3).requires_grad_()))
def input_that_requires_grad(self, x):
    return x * 2, x.detach() + 1


@case(
    lambda: call(randn(4, 6).t(), torch.as_strided(torch.arange(10.0), (2, 3), (1, 2), 3), randn(1).expand(4))
)
def strided_inputs(self, x, y, z):
    return x.contiguous(), y @ y.t(), z + 1, x.t()


@case(lambda: call([randn(2), None, randn(2)]))
def none_inside_a_list(self, xs):
    return xs[0] + xs[2], [xs[1], xs[0]]


@case(
    lambda rows=4: call({"tokens": torch.arange(rows), "rest": [randn(rows, 2)]}, scale=randn(rows)),
    shapes={"batch": {"tokens": {0: (_n := Dim("n"))}, "rest": [{0: _n}]}, "scale": {0: _n}},
    sizes=({"rows": 7},),
)
def nested_containers_dynamic(self, batch, *, scale):
    return {"y": batch["rest"][0] * scale[:, None], "n": batch["tokens"].shape[0]}, (batch["tokens"],)
