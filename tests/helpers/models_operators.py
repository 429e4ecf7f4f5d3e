"""Arguments and returns of operators: scalars, lists, optionals, texts, dtypes, layouts, several outputs."""

from __future__ import annotations

import torch
from torch import nn, randn
from torch.export import Dim
from torch.nn import functional

from .cases import Table, call

OPERATORS = Table()
case = OPERATORS.case

_LIBRARY = torch.library.Library("pt2wire_optionals", "DEF")
for _name, _type in (("scalars", "Scalar?[]"), ("sizes", "SymInt?[]")):
    _LIBRARY.define(f"{_name}(Tensor x, {_type} items) -> Tensor")
    _LIBRARY.impl(_name, lambda x, items: x * (items[1] or 1), "CompositeExplicitAutograd")
    torch.library.register_fake(f"pt2wire_optionals::{_name}", lambda x, items: x * 1, lib=_LIBRARY)


@case(lambda: call(randn(3)))
def scalars(self, x):
    return (
        x + 1,
        x * 2.5,
        x.clamp(min=-float("inf"), max=float("inf")),
        torch.nan_to_num(x, nan=float("nan")),
        x.masked_fill(x > 0, True),
        x.to(torch.complex64) * 2j,
        torch.full((2,), 2**62),
        x.pow(-0.0),
        torch.full((1,), 1e300, dtype=torch.float64),
        x.add(x, alpha=3),
    )


@case(lambda: call(torch.tensor([1, -2, 3])))
def integer_arithmetic(self, x):
    return x // 2, x % 2, x << 1, x & 3, ~x, x == 1, x.bool().logical_not(), x / 2


@case(lambda: call(randn(2, 6), randn(2, 6)))
def lists_of_tensors(self, x, y):
    return torch.cat([x, y], 1), torch.stack((x, y)), torch.broadcast_tensors(x, y[0]), torch.block_diag(x, y)


@case(lambda: call(randn(4, 6)))
def lists_of_ints(self, x):
    return (
        x.reshape(2, 2, -1),
        x.permute(1, 0),
        x.sum([0, 1], keepdim=True),
        x.roll((1, 2), (0, 1)),
        x.sum([]),
    )


@case(lambda: call(randn(1, 2, 4, 4)))
def lists_of_floats_and_bools(self, x):
    return functional.interpolate(x, scale_factor=[2.0, 1.5], mode="nearest"), torch.movedim(
        x, (0, 1), (1, 0)
    )


@case(lambda: call(randn(3, 4, 5), torch.tensor([0, 2])))
def optional_tensors_in_lists(self, x, index):
    return x[:, index], x[index, :, index], x[..., None, 1], x.index_put([index], torch.tensor(9.0))


@case(lambda rows=3: call(randn(rows)), shapes={"x": {0: Dim("rows")}}, sizes=({"rows": 5},))
def optional_numbers_in_lists(self, x):
    operators = torch.ops.pt2wire_optionals
    return operators.scalars(x, [None, x.shape[0]]), operators.sizes(x, [x.shape[0], None])


@case(lambda: call(randn(4, 6)))
def several_outputs(self, x):
    values, indices = x.max(1)
    top = x.topk(2)
    return (
        values,
        indices,
        top.values,
        tuple(x.sort(stable=True)),
        torch.std_mean(x, 0),
        tuple(x.aminmax(dim=0)),
    )


@case(lambda: call(randn(6, 4)))
def list_outputs(self, x):
    first, *rest = x.split([1, 2, 3])
    return first, rest, x.chunk(2, 1), x.unbind(1)[0], torch.meshgrid(x[0], x[1], indexing="ij")


@case(lambda rows=6: call(randn(rows, 4)), shapes={"x": {0: Dim("rows", min=4)}}, sizes=({"rows": 9},))
def list_outputs_dynamic(self, x):
    head, tail = x.split([2, x.size(0) - 2])
    return head, tail


@case(lambda: call(randn(2, 6)))
def some_outputs_unused(self, x):
    return x.max(1)[1], x.sort()[0], x.split(3, 1)[1], torch.native_dropout(x, 0.0, False)[0]


@case(lambda: call(randn(2, 3), torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])))
def texts(self, x, y):
    return (
        functional.gelu(x, approximate="tanh"),
        torch.div(x, 2, rounding_mode="floor"),
        torch.einsum("ij,kj->ik", x, y),
        torch.searchsorted(y[1], x, side="right"),
        x.index_reduce(0, torch.tensor([0, 1]), y, "amax"),
    )


@case(lambda: call(randn(2, 3)))
def dtypes_and_devices(self, x):
    return (
        x.to(torch.float16),
        x.double().sum(dtype=torch.float32),
        x.to("cpu", torch.bfloat16),
        torch.zeros(2, dtype=torch.uint8, device=x.device),
        torch.empty_like(x, dtype=torch.int32).fill_(3),
        x.long().float().bool().int(),
        torch.ones(3, dtype=torch.complex128),
    )


@case(lambda: call(randn(1, 3, 4, 4)))
def memory_formats_and_layouts(self, x):
    y = x.to(memory_format=torch.channels_last)
    return (
        y.contiguous(),
        y.clone(memory_format=torch.preserve_format),
        y * 1,
        torch.zeros_like(y, memory_format=torch.contiguous_format),
        torch.zeros(2, layout=torch.strided),
    )


@case(lambda: call(randn(2, 4, 3, 8), randn(2, 4, 3, 8), randn(2, 4, 3, 8), randn(3, 3)))
def attention(self, q, k, v, mask):
    attend = functional.scaled_dot_product_attention
    return attend(q, k, v, attn_mask=mask, scale=0.25), attend(q, k, v, is_causal=True)


@case(lambda: call(randn(3, 4)))
def views(self, x):
    y = x.t()
    z = y[1:, ::2]
    return y, z, z.unsqueeze(0).expand(5, -1, -1), x.as_strided((2, 2), (1, 4), 1), x.diagonal(), x.flatten()


@case(lambda: call(randn(3, 4)))
def in_place_operators(self, x):
    y = x.clone()
    y.add_(1).mul_(2)
    y[0] = 5
    y[:, 1:3] += x[:, :2]
    y.masked_fill_(y > 4, 0)
    return y


@case(lambda: call(torch.tensor([1 + 2j, 3 - 1j])))
def complex_numbers(self, z):
    return z.abs(), z * (1 - 1j), torch.view_as_real(z), z.real + z.imag, z.angle()


@case(
    lambda: call(randn(4, 3, 6)),
    lambda m: setattr(m, "lstm", nn.LSTM(6, 5, num_layers=2, bidirectional=True)),
)
def recurrent_network(self, x):
    y, (h, c) = self.lstm(x)
    return y, h, c


@case(
    lambda: call(torch.tensor([1, 2, 0, 2]), torch.tensor([0, 2])),
    lambda m: setattr(m, "bag", nn.EmbeddingBag(4, 3, mode="mean")),
)
def embedding_bag(self, tokens, offsets):
    return self.bag(tokens, offsets)


@case(
    lambda size=8: call(randn(2, 3, size, size)),
    lambda m: setattr(
        m,
        "net",
        nn.Sequential(
            nn.Conv2d(3, 4, 3, padding="same"),
            nn.BatchNorm2d(4),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.ConvTranspose2d(4, 3, 2, stride=2),
            nn.GroupNorm(3, 3),
            nn.AdaptiveAvgPool2d(2),
            nn.PixelShuffle(1),
            nn.Flatten(),
            nn.LogSoftmax(-1),
        ),
    ),
    shapes={"image": {0: Dim.AUTO}},
)
def convolutional_network(self, image):
    return self.net(image)


@case(lambda: call(randn(4)))
def random_operators(self, x):
    return (
        torch.rand_like(x),
        x + torch.randn(4),
        torch.randperm(5),
        x.bernoulli(0.5),
        functional.dropout(x, 0.5),
    )


@case(lambda: call(randn(3, 3)))
def linear_algebra(self, x):
    q, r = torch.linalg.qr(x)
    return q, r, torch.linalg.norm(x), torch.linalg.inv(x), torch.fft.rfft(x, dim=1)
