"""Control flow with subgraphs, IR levels, metadata of nodes, preserved module signatures."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import torch
from torch import nn, randn
from torch._higher_order_ops.scan import scan
from torch.export import Dim, ExportedProgram

from .cases import Case, Table, call

STRUCTURE = Table()
case = STRUCTURE.case


def _double(x):
    return x * 2


def _negate(x):
    return -x


@case(lambda value=1: call(torch.full((3,), float(value))), sizes=({"value": -1},))
def cond(self, x):
    return torch.cond(x.sum() > 0, _double, _negate, (x,))


@case(lambda rows=6: call(randn(rows)), shapes={"x": {0: Dim("rows")}}, sizes=({"rows": 3},))
def cond_on_a_size(self, x):
    return torch.cond(x.size(0) > 4, _double, _negate, (x,))


@case(lambda value=1: call(torch.full((3,), float(value))), sizes=({"value": -1}, {"value": 9}))
def cond_nested(self, x):
    def inner(y):
        return torch.cond(y.sum() > 10, _double, lambda z: z.sin(), (y,))

    def outer(y):
        return torch.cond(y.sum() > 1, inner, _negate, (y + 1,))

    return torch.cond(x.sum() > 0, outer, _double, (x,)) + 1


def _two_branches(m):
    m.left = nn.Linear(3, 3)
    m.right = nn.Linear(3, 3)
    m.register_buffer("offset", randn(3))


@case(
    lambda rows=4: call(randn(rows, 3)),
    _two_branches,
    shapes={"x": {0: Dim("rows", min=2)}},
    sizes=({"rows": 7},),
)
def cond_with_weights_and_many_outputs(self, x):
    def first(y):
        return self.left(y), (y + self.offset).sum(0)

    def second(y):
        return self.right(y), (y - self.offset).sum(0)

    return torch.cond(x.mean() > 0, first, second, (x,))


def _block(m):
    m.attention = nn.MultiheadAttention(8, 2, batch_first=True)
    m.norm = nn.LayerNorm(8)
    m.feed = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.1), nn.Linear(16, 8))


def _block_forward(self, x):
    attended, weights = self.attention(x, x, x)
    return self.norm(x + self.feed(attended)), weights


_BLOCK = {
    "inputs": lambda batch=2, length=5: call(randn(batch, length, 8)),
    "parts": _block,
    "shapes": {"x": {0: Dim("batch", max=64), 1: Dim("length", max=128)}},
    "sizes": ({"batch": 3, "length": 9},),
}
case(**_BLOCK, name="training_ir")(_block_forward)
case(**_BLOCK, name="decomposed_ir", after=lambda ep: ep.run_decompositions({}))(_block_forward)
case(**_BLOCK, name="core_aten_ir", after=lambda ep: ep.run_decompositions())(_block_forward)


def _annotate(ep: ExportedProgram) -> ExportedProgram:
    for number, node in enumerate(ep.graph.nodes):
        if node.op == "call_function":
            node.meta["custom"] = {
                "number": number,
                "tags": ["a", "b"],
                "nested": {"half": 0.5, "none": None},
            }
    return ep


def _pair(m):
    m.first = nn.Linear(4, 4)
    m.second = nn.ModuleDict({"inner": nn.Linear(4, 4)})


@case(lambda: call(randn(2, 4)), _pair, after=_annotate)
def metadata_custom(self, x):
    return self.second["inner"](self.first(x).relu())


def _annotate_beyond_json(ep: ExportedProgram) -> ExportedProgram:
    for number, node in enumerate(ep.graph.nodes):
        if node.op in ("call_function", "placeholder", "output"):
            node.meta["custom"] = {number: (1, [2.0, (None,)]), True: {"nan": float("nan")}, "": ()}
    ep.graph_module.meta["custom"] = [("a", "b")]
    return ep


@case(lambda: call(randn(2, 4)), _pair, after=_annotate_beyond_json)
def metadata_custom_beyond_json(self, x):
    return self.second["inner"](self.first(x).relu())


class Span(NamedTuple):
    """Where something is."""

    first: int
    last: Any


def _annotate_with_classes(ep: ExportedProgram) -> ExportedProgram:
    for number, node in enumerate(ep.graph.nodes):
        if node.op in ("call_function", "placeholder", "output"):
            node.meta["custom"] = {"at": Span(number, [Span(1, 2), (3,)])}
        if node.target is torch.ops.aten.permute.default:
            node.update_arg(1, Span(1, 0))
    ep.graph_module.meta["custom"] = [Span("a", None), Span(1.5, True)]
    ep.graph_module.recompile()
    return ep


@case(lambda: call(randn(2, 4)), _pair, after=_annotate_with_classes)
def namedtuples_in_notes_and_arguments(self, x):
    return self.second["inner"](self.first(x).relu()).permute(1, 0)


def _annotate_inputs(ep: ExportedProgram) -> ExportedProgram:
    for node in ep.graph.nodes:
        if node.op in ("placeholder", "output"):
            node.meta["custom"] = {"role": node.op}
            node.meta["stack_trace"] = f"line of {node.name}"
            node.meta["nn_module_stack"] = {"L__self__": ("", "Model")}
    return ep


@case(lambda: call(randn(2, 4), 3), _pair, after=_annotate_inputs)
def metadata_of_inputs_weights_and_outputs(self, x, number):
    return self.second["inner"](self.first(x)) * number, 7


def _turn_keyword_arguments(ep: ExportedProgram) -> ExportedProgram:
    for node in ep.graph.nodes:
        node.kwargs = dict(reversed(node.kwargs.items()))
    return ep


@case(lambda: call(randn(3)), after=_turn_keyword_arguments)
def keyword_arguments_in_another_order(self, x):
    return torch.full((3,), 1.0, dtype=torch.float64, device="cpu") + torch.zeros(3, device="cpu") + x


@case(lambda value=1: call(torch.full((3,), float(value))), sizes=({"value": 5},))
def while_loop_with_tuples(self, x):
    def more(i, y):
        return i.sum() < 3

    def step(i, y):
        return i + 1, y * 2

    return torch.while_loop(more, step, (torch.zeros(1), x))


@case(lambda: call(randn(2, 4)), _pair, export={"strict": True})
def metadata_of_strict_export(self, x):
    return self.second["inner"](self.first(x).relu()), torch.nn.functional.gelu(x)


def _bare(ep: ExportedProgram) -> ExportedProgram:
    for node in ep.graph.nodes:
        for key in ("stack_trace", "nn_module_stack", "torch_fn", "source_fn_stack", "custom"):
            node.meta.pop(key, None)
    return ep


@case(lambda: call(randn(2, 4)), _pair, after=_bare)
def metadata_left_out(self, x):
    return self.second["inner"](self.first(x).relu())


class _Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, pair, *, factor):
        return {"low": self.linear(pair[0]) * factor, "high": pair[1]}


def _preserved(m):
    m.block = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    m.scale = _Scale()


@case(
    lambda rows=3: call(randn(rows, 4)),
    _preserved,
    shapes={"x": {0: Dim("rows")}},
    sizes=({"rows": 5},),
    export={"preserve_module_call_signature": ("block", "scale", "scale.linear")},
)
def module_call_signatures(self, x):
    y = self.scale((x, self.block(x)), factor=2.0)
    return y["low"] + y["high"]


@case(lambda: call(randn(2, 4)), lambda m: setattr(m, "linear", nn.Linear(4, 4)))
def module_called_twice(self, x):
    return self.linear(self.linear(x))


class _Empty(nn.Module):
    def forward(self, x):
        return x


STRUCTURE.add(Case("identity", _Empty, lambda: call(randn(2))))


@case(lambda rows=4: call(randn(rows, 3)), shapes={"x": {0: Dim("rows")}}, sizes=({"rows": 2},))
def runtime_asserts_of_symbols(self, x):
    n = x.nonzero().size(0)
    torch._check(n <= x.numel())
    torch._check(n != 1)
    return x.new_ones(n + 2), n


STRUCTURE.add(
    Case(
        "many_layers",
        lambda: nn.Sequential(*(layer for _ in range(60) for layer in (nn.Linear(4, 4), nn.Tanh()))),
        lambda rows=2: call(randn(rows, 4)),
        shapes=({0: Dim("rows")},),
        sizes=({"rows": 3},),
    )
)


@case(lambda: call(randn(5, 3), randn(3)))
def scan_with_reverse(self, xs, init):
    return scan(lambda carried, x: (carried + x, carried * x), init, xs, reverse=True)


@case(
    lambda rows=5: call(randn(rows, 3), randn(3)),
    shapes={"xs": {0: Dim("rows", min=3)}, "init": None},
    sizes=({"rows": 7},),
)
def scan_over_a_size(self, xs, init):
    return scan(lambda carried, x: (carried + x * xs.shape[0], carried * x), init, xs)


@case(
    lambda rows=5: call(randn(rows, 3)),
    shapes={"x": {0: Dim("rows", min=3)}},
    sizes=({"rows": 7},),
)
def while_loop_over_sizes(self, x):
    def step(i, end, y):
        return i + 1, end, y * 2

    return torch.while_loop(lambda i, end, y: i < end, step, (x.shape[0] - 2, x.shape[0], x))


@case(lambda value=1: call(torch.full((3,), float(value))), sizes=({"value": -1},))
def cond_that_returns_a_number(self, x):
    return torch.cond(x.sum() > 0, lambda x: (x + 1, 2), lambda x: (x - 1, 3), (x,))


def _take_again(ep: ExportedProgram) -> ExportedProgram:
    """Lets each user have a node of its own that takes the output of a call."""
    for item in [node for node in ep.graph.nodes if node.target is operator.getitem]:
        for user in [user for user in item.users if user.op == "call_function"]:
            with ep.graph.inserting_before(user):
                again = ep.graph.call_function(operator.getitem, item.args)
            again.meta = dict(item.meta)
            user.replace_input_with(item, again)
    ep.graph_module.recompile()
    return ep


@case(lambda: call(randn(4, 4)), after=_take_again)
def outputs_taken_several_times(self, x):
    first, rest = x.split([1, 3])
    values, indices = rest.topk(2)
    return first + rest, rest.sin(), values + 1, values, indices * 2


@case(lambda: call(randn(4, 4)))
def autocast_in_a_region(self, x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x
        z = y + 1
    return y, z * 2


@case(lambda: call(randn(4, 4)))
def gradients_off_in_a_region(self, x):
    with torch.no_grad():
        y = x @ x
        z = y.sin()
    return y + z
