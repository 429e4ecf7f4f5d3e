"""Models that PyTorch exports, but does not save or does not load."""

from __future__ import annotations

import enum
from collections import defaultdict, namedtuple
from typing import Any

import torch
from torch import Tensor, nn, randn
from torch._higher_order_ops.scan import scan
from torch.export import Dim, ExportedProgram
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

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


@BEYOND.case(lambda: call({Unnamed(1, "a"): randn(2), "b": randn(2)}), unread="unhashable type")
def namedtuples_as_keys(self: nn.Module, tree: Any) -> Any:
    return {4: tree[Unnamed(1, "a")], 5: tree["b"]}  # of PyTorch's file keys come back plain


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


@BEYOND.case(
    lambda rows=4, value=1: call(torch.full((rows, 3), float(value))),
    shapes={"x": {0: Dim("rows", min=3)}},
    sizes=({"rows": 6, "value": 2},),
    unsaved="while_loop",
)
def while_loop_over_numbers_and_tensors(self: nn.Module, x: Tensor) -> Any:
    def step(i: int, flag: bool, y: Tensor) -> Any:
        return i + 1, flag, y * 2

    return torch.while_loop(lambda i, flag, y: i < x.shape[0], step, (0, True, x))


def _attention_inputs(size: int = 16) -> Any:
    return call(*(randn(1, 2, size, 8) for _ in range(3)))


@BEYOND.case(_attention_inputs, unsaved="flex_attention")
def flex_attention_with_a_score_function(self: nn.Module, q: Tensor, k: Tensor, v: Tensor) -> Any:
    return flex_attention(q, k, v, score_mod=lambda score, batch, head, i, j: score + (i - j))


@BEYOND.case(_attention_inputs, unsaved="flex_attention")
def flex_attention_with_a_mask_function(self: nn.Module, q: Tensor, k: Tensor, v: Tensor) -> Any:
    mask = create_block_mask(lambda batch, head, i, j: i >= j, None, None, 16, 16, device="cpu")
    return flex_attention(q, k, v, block_mask=mask)


@BEYOND.case(lambda: call(randn(2, 2)), unsaved="Failed serializing node cond")
def cond_that_makes_tensors(self: nn.Module, x: Tensor) -> Any:
    def yes(y: Tensor) -> Any:
        return y + torch.tensor([1.0, 2.0]), torch.tensor(3, dtype=torch.int8)

    def no(y: Tensor) -> Any:
        rows = torch.tensor([[True, False], [False, True]])
        return torch.where(rows, y, torch.tensor([1.0, 2.0])), torch.tensor(-3, dtype=torch.int8)

    return torch.cond(x.sum() > 0, yes, no, (x,))


@BEYOND.case(
    lambda: call(randn(3, 2)),
    export={"strict": True},
    unsaved="Failed serializing node scan",
)
def scan_that_makes_tensors_strict(self: nn.Module, xs: Tensor) -> Any:
    def step(carry: Tensor, x: Tensor) -> Any:
        inner = torch.cond(x.sum() > 0, lambda y: y * torch.tensor(2.0), lambda y: y.clone(), (x,))
        return carry * torch.tensor([1.0, 2.0], dtype=torch.bfloat16).float(), inner

    return scan(step, torch.ones(2), xs)


@BEYOND.case(
    lambda rows=11: call(torch.ones(rows)),
    shapes={"x": {0: Dim.AUTO}},
    sizes=({"rows": 13}, {"rows": 14}),
    refused=({"rows": 3},),
    unsaved="round",
)
def rounded_sizes(self: nn.Module, x: Tensor) -> Any:
    return x.new_zeros(round(x.size(0) / 4)), x * round(x.size(0) / 3, 2), round(x.size(0) / 2)


@BEYOND.case(
    lambda rows=9: call(torch.arange(8) < rows - 3, randn(rows)),
    shapes={"where": None, "x": {0: Dim.DYNAMIC}},
    sizes=({"rows": 5},),
    unread="expected no unbacked symbols",
)
def unbacked_size_tied_to_an_input(self: nn.Module, where: Tensor, x: Tensor) -> Tensor:
    found = where.nonzero()
    torch._check(found.size(0) == x.size(0) - 3)
    return found.squeeze(1) + x[3:]


@BEYOND.case(
    lambda rows=7: call(torch.ones(rows)),
    shapes={"x": {0: Dim("rows", min=3, max=64)}},
    sizes=({"rows": 31},),
    refused=({"rows": 65},),
    unsaved="SymFloat graph input",
)
def symbolic_numbers_passed_to_a_region(self: nn.Module, x: Tensor) -> Tensor:
    half, many = x.size(0) / 2, x.size(0) > 20
    with torch.no_grad():
        y = x * half + many
    return y + x


class Plain(enum.Enum):
    A = "a"
    B = (1, 2)


class Number(enum.IntEnum):
    ONE = 1
    TWO = 2


class Text(enum.StrEnum):
    X = "x"


@BEYOND.case(lambda: call(randn(3), Plain.B, options=[Plain.A, None]), unsaved="node mode in graph")
def members_of_enums_as_inputs(self: nn.Module, x: Tensor, mode: Plain, options: list[Plain]) -> Tensor:
    return x * 2 if mode is Plain.B and options[0] is Plain.A else x - 1


@BEYOND.case(
    lambda rows=3: call(randn(rows), {"number": Number.TWO, "text": Text.X}),
    shapes={"x": {0: Dim("rows", min=3)}, "options": {"number": None, "text": None}},
    sizes=({"rows": 6},),
    refused=({"rows": 2},),
    unsaved="_custom_obj",
)
def members_of_number_and_text_enums(self: nn.Module, x: Tensor, options: dict[str, Any]) -> Any:
    return x * options["number"], {"text": options["text"]}


def _bias(module: nn.Module) -> None:
    module.bias = nn.Parameter(randn(16))


@BEYOND.case(_attention_inputs, _bias, unsaved="TreeSpec")
def flex_attention_with_a_bias(self: nn.Module, q: Tensor, k: Tensor, v: Tensor) -> Any:
    return flex_attention(q, k, v, score_mod=lambda score, batch, head, i, j: score + self.bias[i - j])


def _documents(module: nn.Module) -> None:
    module.register_buffer("document", torch.tensor([0] * 6 + [1] * 10))


@BEYOND.case(_attention_inputs, _documents, unsaved="TreeSpec")
def flex_attention_within_documents(self: nn.Module, q: Tensor, k: Tensor, v: Tensor) -> Any:
    def same(batch: Tensor, head: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return self.document[i] == self.document[j]

    return flex_attention(q, k, v, block_mask=create_block_mask(same, None, None, 16, 16, device="cpu"))


@BEYOND.case(lambda: call(randn(4, 4)), unread="is missing val field")
def gradients_on_within_gradients_off(self: nn.Module, x: Tensor) -> Any:
    with torch.no_grad():
        y = x @ x
        with torch.enable_grad():
            z = y.sin()
    return y, z


_NAMES = ("a,b", "a;b", "a[b", "a)b", "it's", "x(1, 2)")


@BEYOND.case(
    lambda: call(randn(2, 2)),
    lambda self: setattr(self, "parts", nn.ModuleDict({name: nn.Linear(2, 2) for name in _NAMES})),
    unread="We ran into an error when deserializing",
    broken="expected a key, a path and a class",
)
def submodules_with_commas_brackets_and_semicolons_in_names(self: nn.Module, x: Tensor) -> Tensor:
    for part in self.parts.values():
        x = part(x).relu()
    return x


def _with_sines(x: Tensor) -> Tensor:
    return x.sin() @ x


def _with_cosines(x: Tensor) -> Tensor:
    return x.cos() @ x


@BEYOND.case(
    lambda value=1: call(torch.full((3, 3), float(value))), sizes=({"value": -1},), unsaved="def_table"
)
def autocast_around_a_cond(self: nn.Module, x: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x
        with torch.autocast("cpu", enabled=False):
            z = torch.cond(x.sum() > 0, _with_sines, _with_cosines, (x,)) @ x
        return torch.cond(x.sum() < 1, _with_sines, _with_cosines, (y @ z,)) @ z


@BEYOND.case(
    lambda value=1: call(torch.full((3, 3), float(value))),
    sizes=({"value": -1},),
    export={"strict": True},
    unsaved="def_table",
)
def autocast_around_a_cond_in_a_branch(self: nn.Module, x: Tensor) -> Tensor:
    def inner(y: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return torch.cond(y.sum() > 3, _with_sines, _with_cosines, (y @ y,)).float()

    return torch.cond(x.sum() > 0, inner, _with_cosines, (x,)) + x @ x


def _with_none_given_on(ep: ExportedProgram) -> ExportedProgram:
    """Let `clamp` take the gradient that the call before it was not asked for."""
    (nothing,) = [
        node for node in ep.graph.nodes if node.meta.get("val", node) is None and node.op != "output"
    ]
    (clamp,) = [node for node in ep.graph.nodes if node.name == "clamp"]
    clamp.args = (clamp.args[0], nothing, *clamp.args[2:])
    ep.graph_module.recompile()
    return ep


@BEYOND.case(
    lambda: call(randn(1, 2, 5, 5), randn(3, 2, 3, 3), randn(1, 3, 3, 3)),
    after=_with_none_given_on,
    unsaved="def_table",
    readable=True,
)
def none_given_on_to_another_call(self: nn.Module, x: Tensor, weight: Tensor, gradient: Tensor) -> Any:
    like_conv = (None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    convolution_backward = torch.ops.aten.convolution_backward.default
    gradients = convolution_backward(gradient, x, weight, *like_conv, [True, True, False])
    return gradients[0].clamp(None, x), gradients[1]
