"""What a program says of the calls of its modules is what `torch.export.unflatten` makes of it."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable

import pt2wire
import pytest
import torch
from pt2wire.generated import types
from torch import Tensor, nn
from torch.export import ExportedProgram

from .helpers.models import MODELS

_CASE = MODELS["module_call_signatures"]


@pytest.fixture(scope="module")
def program() -> ExportedProgram:
    return _CASE.program()


def _loaded(ep: ExportedProgram, change: Callable[[types.ExportedProgram], object]) -> ExportedProgram:
    tree = copy.deepcopy(pt2wire.to_tree(ep))
    change(tree)
    assert pt2wire.validate(tree) == []
    return pt2wire.from_tree(tree, ep.state_dict, ep.constants)


def _unflattened(ep: ExportedProgram) -> Tensor:
    args, kwargs = _CASE.make_inputs()
    result: Tensor = torch.export.unflatten(ep)(*args, **kwargs)
    return result


def _signature(tree: types.ExportedProgram, module: str) -> types.ModuleCallSignature:
    found = next(entry.signature for entry in tree.graph_module.module_call_graph if entry.fqn == module)
    assert found is not None
    return found


def _tensor(name: str) -> types.Argument:
    return types.Argument.of_tensor(types.TensorArgument(name))


def _without_signatures(tree: types.ExportedProgram) -> None:
    for entry in tree.graph_module.module_call_graph[1:]:
        entry.signature = None


def _stack(tree: types.ExportedProgram, name: str, other: str) -> None:
    """Lets a node have been made where another one was."""
    nodes = {node.name: node for node in tree.graph_module.graph.nodes}
    nodes[name].metadata["nn_module_stack"] = nodes[other].metadata["nn_module_stack"]


_LIES: dict[str, tuple[Callable[[types.ExportedProgram], object], str]] = {
    "an output that is none": (
        lambda tree: _signature(tree, "block").outputs.__setitem__(0, _tensor("x")),
        "expected 'relu' among the outputs of the module call 'block', as 'add' uses it, ",
    ),
    "an output of nobody": (
        lambda tree: _stack(tree, "add", "mul"),
        "expected 'add' among the outputs of the module call 'scale', as 'output' uses it, ",
    ),
    "a signature of another call": (
        lambda tree: setattr(tree.graph_module.module_call_graph[-1], "fqn", "block.0"),
        "expected 'linear' among the outputs of the module call 'block.0', as 'relu' uses it, ",
    ),
    "an input that is another": (
        lambda tree: (
            _signature(tree, "block").inputs.__setitem__(0, _tensor("add")),
            _stack(tree, "linear", "add"),
        ),
        "expected 'linear' among the inputs of the module call 'block', as 'relu' uses it, ",
    ),
}


def test_honest_signatures_are_followed(program: ExportedProgram) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        loaded = _loaded(program, lambda tree: None)
    args, kwargs = _CASE.make_inputs()
    assert torch.equal(_unflattened(loaded), program.module()(*args, **kwargs))


@pytest.mark.parametrize("lie", _LIES)
def test_a_signature_that_lies_is_refused(lie: str, program: ExportedProgram) -> None:
    change, message = _LIES[lie]
    with pytest.raises(pt2wire.DeserializeError) as caught:
        _loaded(program, change)
    assert caught.value.path == "graph_module.module_call_graph"
    assert caught.value.message == f"{message}found it nowhere there"


def test_pytorch_follows_such_a_signature(program: ExportedProgram) -> None:
    """The reason for all this."""
    lying = copy.deepcopy(program)
    signature = next(entry.signature for entry in lying.module_call_graph if entry.fqn == "block")
    assert signature is not None
    signature.outputs = signature.inputs
    args, kwargs = _CASE.make_inputs()
    assert not torch.equal(_unflattened(lying), program.module()(*args, **kwargs))


def _another_class(tree: types.ExportedProgram) -> None:
    metadata = tree.graph_module.graph.nodes[1].metadata
    metadata["nn_module_stack"] = metadata["nn_module_stack"].replace("Sequential", "ModuleList")


def _without_root(tree: types.ExportedProgram) -> None:
    tree.graph_module.graph.nodes[-1].metadata["nn_module_stack"] = "key,lost,a.Module"


@pytest.mark.parametrize(
    ("change", "call"),
    [
        (lambda tree: _stack(tree, "mul", "linear"), "block"),
        (_another_class, "block"),
        (_without_root, ""),
    ],
)
def test_a_call_in_pieces_is_warned_of(
    change: Callable[[types.ExportedProgram], None], call: str, program: ExportedProgram
) -> None:
    """Nobody knows of such a program whether a pass or a liar made it; what it computes as a whole stands."""
    with pytest.warns(UserWarning, match=f"the nodes of the module call '{call}' do not lie together"):
        loaded = _loaded(program, lambda tree: (_without_signatures(tree), change(tree)))
    args, kwargs = _CASE.make_inputs()
    assert torch.equal(loaded.module()(*args, **kwargs), program.module()(*args, **kwargs))


class _Counting(nn.Module):
    def __init__(self, count: Tensor) -> None:
        super().__init__()
        self.register_buffer("count", count)

    def forward(self, x: Tensor) -> Tensor:
        self.count.add_(1)  # type: ignore[operator]
        return (x[: x.shape[0] - 1] * self.count).view(-1, x.shape[1])  # type: ignore[operator]


class _TwoCounting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        count = torch.zeros(1)
        self.first, self.second = _Counting(count), _Counting(count)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.second(self.first(x))
        return result


class _CountingTwice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.counting = _Counting(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.counting(self.counting(x))
        return result


@pytest.mark.parametrize("functional", [False, True])
def test_what_mutations_and_sizes_pass_on_is_in_no_signature(functional: bool) -> None:
    model: nn.Module = _CountingTwice() if functional else _TwoCounting()
    ep = torch.export.export(
        model,
        (torch.ones(5, 3),),
        dynamic_shapes=({0: torch.export.Dim("rows", min=4)},),
        preserve_module_call_signature=tuple(name for name, _ in model.named_children()),
    )
    ep = ep.run_decompositions() if functional else ep
    loaded = _loaded(ep, lambda tree: None)
    expected, found = (torch.export.unflatten(each) for each in (ep, loaded))
    for _ in range(2):
        assert torch.equal(expected(torch.ones(6, 3)), found(torch.ones(6, 3)))
