"""What a test model is: how to build it, how to export it, what to call it with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram

Inputs = tuple[tuple[Any, ...], dict[str, Any]]


def call(*args: Any, **kwargs: Any) -> Inputs:
    """The arguments of one call of a model."""
    return args, kwargs


def _unchanged(ep: ExportedProgram) -> ExportedProgram:
    return ep


@dataclass(frozen=True)
class Case:
    """One model.

    Attributes:
        name: What the model shows; the test's id.
        build: Makes the module, called after seeding.
        inputs: Makes a fresh set of inputs; its keyword arguments are sizes.
        shapes: `dynamic_shapes` of the export.
        sizes: Other sizes, each the keyword arguments of one call of `inputs`, that the program accepts.
        refused: Sizes that the program refuses, because a range or a guard says so.
        export: Further arguments of `torch.export.export`.
        after: What is done to the exported program (decompositions, notes on nodes).
        unsaved: What the error of PyTorch's own `save` says, as a pattern, where it refuses the program.
        readable: Whether PyTorch loads our file of a program that it does not save.
        unread: What the error says where PyTorch refuses the file that it wrote itself, or cannot call what
            it loaded from it.
        flat: Call the graph itself, as `module()` cannot call joint graphs.
        types: The classes that loading has to be handed.
        broken: What our error says where we refuse the file that PyTorch wrote, as PyTorch does.
        operators: What loading has to be allowed to call.
        pickled: Whether it holds custom objects, so that no file of it is read without `allow_pickle=True`.
    """

    name: str
    build: Callable[[], nn.Module]
    inputs: Callable[..., Inputs]
    shapes: Any = None
    sizes: tuple[dict[str, int], ...] = ()
    refused: tuple[dict[str, int], ...] = ()
    export: dict[str, Any] = field(default_factory=dict)
    after: Callable[[ExportedProgram], ExportedProgram] = _unchanged
    unsaved: str | None = None
    readable: bool = False
    unread: str | None = None
    broken: str | None = None
    types: tuple[type, ...] = ()
    operators: tuple[str, ...] = ()
    pickled: bool = False
    flat: bool = False

    def make_inputs(self, **sizes: int) -> Inputs:
        """Fresh inputs, the same at every call: a program may change them in place."""
        torch.manual_seed(1)
        return self.inputs(**sizes)

    def program(self) -> ExportedProgram:
        """The model, exported anew."""
        torch.manual_seed(0)
        module = self.build().eval()
        args, kwargs = self.make_inputs()
        return self.after(
            torch.export.export(module, args, kwargs or None, dynamic_shapes=self.shapes, **self.export)
        )


class Table(dict[str, Case]):
    """Models by name. The decorator `case` turns a `forward` into a model named after it."""

    def add(self, case: Case) -> None:
        if case.name in self:
            raise ValueError(f"two models are called {case.name}")
        self[case.name] = case

    def case(
        self,
        inputs: Callable[..., Inputs],
        parts: Callable[[nn.Module], Any] | None = None,
        *,
        name: str | None = None,
        **options: Any,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Args: see `Case`; `parts` gives the new module its submodules, parameters and buffers."""

        def register(forward: Callable[..., Any]) -> Callable[..., Any]:
            def build() -> nn.Module:
                module: nn.Module = type("Model", (nn.Module,), {"forward": forward})()
                if parts is not None:
                    parts(module)
                return module

            self.add(Case(name or forward.__name__, build, inputs, **options))
            return forward

        return register
