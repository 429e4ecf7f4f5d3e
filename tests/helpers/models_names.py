"""Models in which a node is called like what another one gets: a subgraph, or the module of weights.

PyTorch counts the nodes that get a subgraph, and the subgraphs, each by themselves: `submod_3` may be the
node that gets `submod_1`, while another one gets `submod_3`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn, randn
from torch.export import ExportedProgram

from .cases import Table, call

NAMES, NAMES_BEYOND = Table(), Table()


def _decomposed(ep: ExportedProgram) -> ExportedProgram:
    return ep.run_decompositions()


@NAMES.case(lambda: call(randn(3, 3)))
def autocast_before_gradients_off(self: nn.Module, x: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x
    with torch.no_grad():
        return y * 2


@NAMES.case(lambda: call(randn(3, 3)))
def regions_in_regions(self: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        y = x @ x
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = y @ x
    with torch.no_grad():
        w = torch.cond(z.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))
        with torch.enable_grad():
            w = w * x
        w = w + 1
    return z, w


@NAMES_BEYOND.case(lambda: call(randn(3, 3)), unread="is missing val field")
def regions_without_results(self: nn.Module, x: Tensor) -> Tensor:
    for number in range(4):
        with torch.set_grad_enabled(number % 2 == 0):
            x = x * 2 + number
        with torch.autocast("cpu", dtype=torch.bfloat16):
            x = (x @ x).float()
    return x


def _modules(self: nn.Module) -> None:
    self.submod_1, self.true_graph_0 = nn.Linear(3, 3), nn.Linear(3, 3)


def _call_modules(self: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad():
        y = self.submod_1(x)
    return torch.cond(y.sum() > 0, lambda x: self.true_graph_0(x), lambda x: x - 1, (y,))


def _use_inputs(self: nn.Module, submod_1: Tensor, true_graph_0: Tensor) -> Tensor:
    with torch.no_grad():
        y = submod_1 * 2
    return torch.cond(y.sum() > 0, lambda x: x + 1, lambda x: x - 1, (y + true_graph_0,))


for _suffix, _options in (("", {}), ("_decomposed", {"after": _decomposed})):
    NAMES.case(
        lambda: call(randn(3, 3)), _modules, name=f"submodules_called_like_subgraphs{_suffix}", **_options
    )(_call_modules)
    NAMES.case(
        lambda: call(randn(3, 3), randn(3, 3)), name=f"inputs_called_like_subgraphs{_suffix}", **_options
    )(_use_inputs)
