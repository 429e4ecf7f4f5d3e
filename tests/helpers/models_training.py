"""Joint graphs of forward and backward, effects in order, weights that change, higher-order operators."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn, randn
from torch._higher_order_ops import out_dtype, strict_mode
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.effects import _EffectType, _register_effectful_op
from torch._higher_order_ops.foreach_map import foreach_map
from torch._higher_order_ops.invoke_subgraph import mark_compile_region
from torch.export import ExportedProgram
from torch.export.experimental import _export_forward_backward
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from .cases import Table, call

TRAINING = Table()

_library = torch.library.Library("pt2wire_effects", "DEF")
for _signature in ("log(Tensor x, str text) -> Tensor", "say(Tensor x) -> ()"):
    _library.define(_signature)
for _name, _function in (("log", lambda x, text: x.clone()), ("say", lambda x: None)):
    _library.impl(_name, _function, "CompositeExplicitAutograd")
    torch.library.register_fake(f"pt2wire_effects::{_name}", _function, lib=_library)
    _operator = getattr(torch.ops.pt2wire_effects, _name).default
    _register_effectful_op(_operator, _EffectType.ORDERED)


@TRAINING.case(lambda: call(randn(3)), after=lambda ep: ep.run_decompositions())
def effects_in_order(self: nn.Module, x: Tensor) -> Tensor:
    first = torch.ops.pt2wire_effects.log(x, "first")
    torch.ops.pt2wire_effects.say(first)
    return torch.ops.pt2wire_effects.log(first * 2, "second")


def _joint(ep: ExportedProgram) -> ExportedProgram:
    joint = _export_forward_backward(ep)
    for spec in joint.graph_signature.output_specs:
        if spec.kind.name == "GRADIENT_TO_USER_INPUT":
            spec.target = "x"  # PyTorch names it as it was called before it was renamed
    return joint


def _trained(m: Any) -> None:
    m.layer = nn.Linear(3, 1)
    m.register_buffer("calls", torch.zeros(1))


@TRAINING.case(lambda: call(randn(4, 3, requires_grad=True), randn(4, 1)), _trained, after=_joint, flat=True)
def loss_and_gradients(self: Any, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    self.calls.add_(1)
    return ((self.layer(x) - y) ** 2).sum() * self.calls.sum(), x.detach() * 2


def _convolutional(m: Any) -> None:
    m.layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.AvgPool2d(2))


#: Their backward operators trust sizes and indices, so that loading has to be told of them.
_POOLING = ("aten.avg_pool2d_backward", "aten.max_pool2d_with_indices_backward")
_ATTENTION = ("aten._scaled_dot_product_flash_attention_for_cpu_backward",)


@TRAINING.case(lambda: call(randn(2, 3, 10, 10)), _convolutional, after=_joint, flat=True, operators=_POOLING)
def loss_and_gradients_with_pooling(self: Any, x: Tensor) -> Tensor:
    return self.layers(x).square().mean()


def _attending(m: Any) -> None:
    m.norm, m.layer = nn.LayerNorm(4), nn.Linear(4, 4)


@TRAINING.case(lambda: call(randn(2, 3, 4)), _attending, after=_joint, flat=True, operators=_ATTENTION)
def loss_and_gradients_with_attention(self: Any, x: Tensor) -> Tensor:
    y = self.layer(self.norm(x)).unsqueeze(1)
    return nn.functional.scaled_dot_product_attention(y, y, y).square().mean()


def _changing(m: nn.Module) -> None:
    m.frozen = nn.Parameter(randn(3), requires_grad=False)
    m.register_buffer("state", randn(3))


@TRAINING.case(lambda: call(randn(3)), _changing, after=lambda ep: ep.run_decompositions())
def parameters_buffers_and_inputs_that_change(self: Any, x: Tensor) -> Tensor:
    self.frozen.add_(x)
    self.state.mul_(2)
    x.sub_(self.state)
    return self.frozen * x


@mark_compile_region
def _region(x: Tensor) -> Tensor:
    return x.sin() + 1


@TRAINING.case(lambda: call(randn(4, 3), torch.ones(2, 2, dtype=torch.int8)))
def higher_order_operators(self: nn.Module, x: Tensor, whole: Tensor) -> Any:
    return (
        associative_scan(lambda one, other: one + other, x, 0, combine_mode="generic"),
        _region(x) + _region(x * 2),
        out_dtype(torch.ops.aten.mm.default, torch.int32, whole, whole),
        strict_mode(lambda y: (y + 1, y - 1), (x,)),
    )


@TRAINING.case(
    lambda rounds=3: call(randn(4, 3), torch.tensor(rounds)),
    lambda m: setattr(m, "factors", nn.Parameter(randn(3))),
    sizes=({"rounds": 0},),
)
def while_loop_with_weights(self: Any, x: Tensor, rounds: Tensor) -> Any:
    # In the offsets of its results is a symbol that nothing makes.
    return torch.while_loop(
        lambda i, y: i < rounds, lambda i, y: (i + 1, y * self.factors), (torch.tensor(0), x)
    )


class _Cubed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x**3

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


@TRAINING.case(lambda: call(randn(3), randn(3)), export={"strict": True})
def higher_order_operators_strict(self: nn.Module, x: Tensor, y: Tensor) -> Any:
    sums = foreach_map(lambda one, other: one + other, [x, y], [y, y])
    hinted = torch.ops.higher_order.hints_wrapper(lambda z: z + 1, (x,), {}, hints={"level": 1, "name": "a"})
    return sums, hinted, _Cubed.apply(x)


@TRAINING.case(lambda: call(randn(4, 3)))
def vmap(self: nn.Module, x: Tensor) -> Tensor:
    return torch.vmap(lambda column: (column * 2).sum(), in_dims=1)(x)


@TRAINING.case(lambda: call(randn(3), randn(3)))
def jvp(self: nn.Module, x: Tensor, y: Tensor) -> Any:
    return torch.func.jvp(lambda one, other: one * other.sin(), (x, y), (y, x))


@TRAINING.case(lambda: call(randn(3)), export={"strict": True})
def jvp_of_jvp_strict(self: nn.Module, x: Tensor) -> Any:
    return torch.func.jvp(lambda y: torch.func.jvp(torch.sin, (y,), (y,))[1], (x,), (x,))


def _policy(ctx: Any, operator: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    saved = operator is torch.ops.aten.mm.default
    return CheckpointPolicy.MUST_SAVE if saved else CheckpointPolicy.PREFER_RECOMPUTE


def _layer(m: Any) -> None:
    m.layer = nn.Linear(3, 3)


@TRAINING.case(lambda: call(randn(4, 3)), _layer, export={"strict": True})
def checkpoint_strict(self: Any, x: Tensor) -> Tensor:
    policy = partial(create_selective_checkpoint_contexts, _policy)
    return checkpoint(lambda y: self.layer(y).relu(), x, use_reentrant=False, context_fn=policy) + 1
