"""Names of weights that no module can have, because something else has them."""

from __future__ import annotations

import io

import pt2wire
import pytest
import torch
from pt2wire import DeserializeError
from pt2wire.validation.attributes import _OF_GRAPHS, _OF_MODULES, _OF_PROGRAMS

from .helpers.archives import saved, torch_saved
from .helpers.exporting import exported

_BY_MODULES = "every module"
_BY_PROGRAMS = "the module of a program"
_TAKEN = {
    **dict.fromkeys(("graph", "code", "meta", "recompile", "_graph", "_in_spec", "_guards_fn"), _BY_PROGRAMS),
    **dict.fromkeys(("validate_inputs", "range_constraints", "graph.inner"), _BY_PROGRAMS),
}


class Holding(torch.nn.Module):
    """A module with a buffer of some name, perhaps in another module."""

    def __init__(self, name: str) -> None:
        super().__init__()
        outside, _, inside = name.rpartition(".")
        if outside:
            self.add_module(outside, torch.nn.Module())
        holder = self.get_submodule(outside)
        holder.register_buffer(inside, torch.ones(2))
        self.held = lambda: getattr(holder, inside)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.held()  # type: ignore[no-any-return]


def _program(name: str) -> torch.export.ExportedProgram:
    rows = torch.export.Dim.DYNAMIC
    return torch.export.export(Holding(name), (torch.ones(4, 2),), dynamic_shapes=({0: rows},))


@pytest.mark.parametrize("name", _TAKEN)
def test_weights_that_no_module_of_a_program_can_hold_are_refused(name: str) -> None:
    ep = _program(name)
    with pytest.raises((KeyError, TypeError, RuntimeError, AttributeError)):
        ep.module()(torch.ones(4, 2))  # PyTorch has no use for the program
    with pytest.warns(UserWarning, match=f"pt2wire will not.* {_TAKEN[name]} has"):
        data = saved(ep)
    for written in (data, torch_saved(ep)):
        with pytest.raises(DeserializeError, match=f"found '{name}': {_TAKEN[name]} has"):
            pt2wire.load(io.BytesIO(written))


@pytest.mark.parametrize("name", ["inner.graph", "inner.meta", "graphs", "inner._guards_fn"])
def test_other_weights_are_held(name: str) -> None:
    ep = _program(name)
    loaded = pt2wire.load(io.BytesIO(saved(ep)))
    assert torch.equal(loaded.module()(torch.ones(4, 2)), torch.full((4, 2), 2.0))


def test_the_names_are_those_that_modules_of_programs_have() -> None:
    module = torch.export.export(torch.nn.ReLU(), (torch.ones(3),)).module()
    of_libraries = set(dir(torch.nn.Module())) - _OF_MODULES  # which give all modules further attributes
    assert set(dir(module)) - of_libraries <= _OF_MODULES | _OF_GRAPHS | _OF_PROGRAMS
    assert all(hasattr(module, name) for name in _OF_PROGRAMS)


@pytest.mark.parametrize("name", ["true_graph_0.code", "true_graph_0.inner", "true_graph_0._in_spec"])
def test_weights_within_subgraphs_are_held_unless_these_have_such(name: str) -> None:
    """A module of the user's may be called as one, which then holds its weights."""

    def forward(self: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x + self.get_buffer(name), torch.sin, (x,))  # type: ignore

    outside, _, inside = name.partition(".")
    holder = torch.nn.Module()
    holder.register_buffer(inside, torch.ones(2))
    ep = exported(forward, torch.ones(2), attributes={outside: holder})
    if inside == "code":
        with pytest.raises(KeyError):
            ep.module()
        with pytest.warns(UserWarning, match="pt2wire will not.* the module of a subgraph has 'code'"):
            data = saved(ep)
        (finding,) = pt2wire.validate(io.BytesIO(data))
        assert "the module of a subgraph has 'code'" in finding.message
        with pytest.raises(DeserializeError, match="the module of a subgraph has 'code'"):
            pt2wire.load(io.BytesIO(data))
    else:
        loaded = pt2wire.load(io.BytesIO(saved(ep)))
        assert torch.equal(loaded.module()(torch.ones(2)), ep.module()(torch.ones(2)))
