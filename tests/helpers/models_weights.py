"""Parameters, buffers of both kinds, constants, mutation, and weights that are tied, aliased or strided."""

from __future__ import annotations

import torch
from torch import nn, randn
from torch.export import Dim

from .cases import Table, call

WEIGHTS = Table()
case = WEIGHTS.case


def _nested(m):
    m.layers = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4, bias=False), nn.ReLU()))


@case(lambda: call(randn(2, 4)), _nested)
def parameters_of_nested_modules(self, x):
    return self.layers(x)


def _frozen(m):
    m.frozen = nn.Parameter(randn(3), requires_grad=False)
    m.scalar = nn.Parameter(torch.tensor(2.0))
    m.empty = nn.Parameter(torch.empty(0, 3))
    m.unused = nn.Parameter(randn(5))


@case(lambda: call(randn(3)), _frozen)
def parameters_frozen_scalar_empty_unused(self, x):
    return torch.cat([(x * self.frozen * self.scalar)[None], self.empty])


def _buffers(m):
    m.register_buffer("kept", randn(3))
    m.register_buffer("left_out", randn(3), persistent=False)
    m.register_buffer("none", None)


@case(lambda: call(randn(3)), _buffers)
def buffers_persistent_and_not(self, x):
    return x * self.kept + self.left_out


def _parameter_buffers(m):
    m.register_buffer("kept", nn.Parameter(randn(3)))
    m.register_buffer("frozen", nn.Parameter(randn(3), requires_grad=False))


@case(lambda: call(randn(3)), _parameter_buffers)
def buffers_that_are_parameters(self, x):
    return x * self.kept + self.frozen


def _constants(m):
    m.table = torch.arange(6.0).view(2, 3)
    m.part = nn.Module()
    m.part.offset = torch.tensor([1, 2, 3])


@case(lambda: call(randn(3)), _constants)
def constants_lifted(self, x):
    return x + self.table + self.part.offset + torch.tensor([0.5, float("inf"), -0.0]), torch.tensor(7)


def _counter(m):
    m.register_buffer("count", torch.zeros(3))
    m.register_buffer("steps", torch.tensor(0), persistent=False)


@case(lambda: call(randn(3)), _counter)
def buffer_mutation(self, x):
    self.count.add_(x)
    self.steps += 1
    return self.count * 2, self.steps.clone()


@case(lambda: call(randn(3)), _counter, after=lambda ep: ep.run_decompositions({}))
def buffer_mutation_decomposed(self, x):
    self.count.add_(x)
    self.steps += 1
    return self.count * 2, self.steps.clone()


def _norm(m):
    m.norm = nn.BatchNorm1d(4)


@case(lambda: call(randn(6, 4)), _norm, name="batch_norm_in_training")
def _batch_norm(self, x):
    self.norm.train()
    return self.norm(x)


@case(
    lambda rows=6: call(randn(rows, 4)),
    _norm,
    shapes={"x": {0: Dim("rows", min=2)}},
    sizes=({"rows": 3},),
    after=lambda ep: ep.run_decompositions(),
)
def batch_norm_decomposed_dynamic(self, x):
    return self.norm(x)


def _tied(m):
    m.embedding = nn.Embedding(10, 4)
    m.head = nn.Linear(4, 10, bias=False)
    m.head.weight = m.embedding.weight


@case(lambda: call(torch.tensor([1, 2, 3])), _tied)
def weights_tied(self, tokens):
    return self.head(self.embedding(tokens))


def _aliased(m):
    base = torch.arange(24.0)
    m.register_buffer("base", base)
    m.register_buffer("window", base[4:10])
    m.register_buffer("matrix", base.view(4, 6).t())
    m.register_buffer("every_third", base[1::3], persistent=False)
    m.diagonal = torch.as_strided(base, (4,), (7,), 0)


@case(lambda: call(randn(6)), _aliased)
def weights_aliased(self, x):
    return self.base.sum() + x * self.window, self.matrix @ self.diagonal, self.every_third + 1


def _frozen_in_one_memory(m):
    base = randn(3)
    m.trained = nn.Parameter(base)
    m.frozen = nn.Parameter(base, requires_grad=False)


@case(lambda: call(randn(3)), _frozen_in_one_memory)
def weights_in_one_memory_some_frozen(self, x):
    return x * self.trained, x * self.frozen


def _strided(m):
    m.transposed = nn.Parameter(randn(3, 4).t())
    m.register_buffer("expanded", randn(3, 1).expand(3, 4))
    m.register_buffer("sliced", randn(10, 10)[2:6, 1:8:2])
    m.register_buffer("channels_last", randn(1, 3, 4, 5).to(memory_format=torch.channels_last))
    m.register_buffer("tail", randn(100)[97:])


@case(lambda: call(randn(3)), _strided)
def weights_strided(self, x):
    return self.transposed @ x, x @ self.expanded, self.sliced * 2, self.channels_last + 1, self.tail + x


def _storage_with_two_dtypes(m):
    base = torch.arange(8, dtype=torch.float32)
    m.register_buffer("floats", base)
    m.register_buffer("bits", base.view(torch.int32))


@case(lambda: call(randn(8)), _storage_with_two_dtypes)
def weights_sharing_bytes_between_dtypes(self, x):
    return x + self.floats, self.bits + 1


_DTYPES = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.complex64,
    torch.complex128,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.bool,
]


def _every_dtype(m):
    for index, dtype in enumerate(_DTYPES):
        m.register_buffer(f"buffer_{index}", torch.arange(5).to(dtype))


@case(lambda: call(*(torch.arange(4).to(dtype) for dtype in _DTYPES)), _every_dtype)
def weights_and_inputs_of_every_dtype(self, *xs):
    return [x.to(torch.float32) for x in xs], [buffer.to(torch.float32) for buffer in self.buffers()]


def _special_values(m):
    m.register_buffer("special", torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 1e-45]))


@case(lambda: call(randn(5)), _special_values)
def weights_with_special_values(self, x):
    return x * 0 + self.special, self.special.clone()


def _parameter_list(m):
    m.parts = nn.ParameterList([nn.Parameter(randn(2)) for _ in range(3)])
    m.named = nn.ParameterDict({"a": nn.Parameter(randn(2)), "b.c".replace(".", "_"): nn.Parameter(randn(2))})


@case(lambda: call(randn(2)), _parameter_list)
def parameters_in_lists_and_dicts(self, x):
    for part in self.parts:
        x = x * part
    return x + self.named["a"] - self.named["b_c"]


@case(lambda: call(randn(3)), _buffers)
def weights_as_outputs(self, x):
    return self.kept, self.left_out, x


def _shared_submodule(m):
    m.first = nn.Linear(3, 3)
    m.second = m.first


@case(lambda: call(randn(3)), _shared_submodule)
def submodule_used_under_two_names(self, x):
    return self.second(self.first(x))
