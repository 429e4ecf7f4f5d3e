"""Programs that PyTorch saves and loads although something in them is rare: pt2wire does, too."""

from __future__ import annotations

import io
import warnings
from typing import Any

import pt2wire
import pytest
import torch
from torch import nn
from torch.export import ExportedProgram, export
from torch.utils import _pytree as pytree

from .helpers.lies import Autocast
from .helpers.models import MODELS
from .helpers.oracles import pytorch_load


def files_of(ep: ExportedProgram) -> list[io.BytesIO]:
    """A program as pt2wire and PyTorch save it, without a warning."""
    files = [io.BytesIO(), io.BytesIO()]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        pt2wire.save(ep, files[0])
    torch.export.save(ep, files[1])
    files[1].seek(0)
    return files


def assert_loads(ep: ExportedProgram, *args: Any) -> None:
    """Both files load, compute what PyTorch's reader of them computes, and have no findings."""
    for file in files_of(ep):
        torch.manual_seed(0)
        expected = pytorch_load(file.getvalue()).module()(*args)
        torch.manual_seed(0)
        assert torch.equal(pt2wire.load(file).module()(*args), expected)
        assert pt2wire.validate(file) == []


def test_an_argument_of_an_operator_may_have_a_keyword_as_name() -> None:
    class Bounded(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.empty_like(x).uniform_(-1, 1)

    ep = export(Bounded(), (torch.ones(3),))
    assert_loads(ep, torch.ones(3))
    tree = pt2wire.to_tree(ep)
    node = next(node for node in tree.graph_module.graph.nodes if node.inputs[-1].name == "from")
    node.inputs[-1].name = "lambda"
    with pytest.raises(pt2wire.DeserializeError, match=r"expected an argument of torch.ops.aten.uniform_"):
        pt2wire.from_tree(tree, {}, {})


def _halved(module: nn.Module, ep: ExportedProgram) -> None:
    module.half()  # whose parameters the program shares


def _replaced(module: nn.Module, ep: ExportedProgram) -> None:
    ep.state_dict["weight"] = nn.Parameter(torch.ones(4, 3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            _halved,
            r"expected 'weight' of dtype FLOAT as in the graph, found HALF. If they were changed",
        ),
        (_replaced, r"expected 'weight' of sizes \[3, 3\] as in the graph, found \[4, 3\]"),
    ],
)
def test_saving_warns_of_weights_that_are_no_longer_those_of_the_graph(change: Any, message: str) -> None:
    module = nn.Linear(3, 3)
    ep = export(module, (torch.ones(2, 3),))
    change(module, ep)
    file = io.BytesIO()
    with pytest.warns(UserWarning, match=f"PyTorch can load this file, pt2wire will not: .*{message}"):
        pt2wire.save(ep, file)
    pytorch_load(file.getvalue())
    with pytest.raises(pt2wire.DeserializeError, match=message):
        pt2wire.load(file)


def test_arguments_of_the_program_may_have_names_beyond_ascii() -> None:
    class Scaled(nn.Module):
        def forward(self, é: torch.Tensor, *, größe: torch.Tensor) -> torch.Tensor:
            return é * größe

    ep = export(Scaled(), (torch.ones(3),), {"größe": torch.ones(3)})
    for file in files_of(ep):
        module = pt2wire.load(file).module()
        assert module(torch.full((3,), 2.0), größe=torch.full((3,), 3.0)).tolist() == [6, 6, 6]
        assert pt2wire.validate(file) == []
    tree = pt2wire.to_tree(ep)
    signature = tree.graph_module.module_call_graph[0].signature
    assert signature is not None and signature.forward_arg_names is not None
    signature.forward_arg_names[0] = "é=print()"
    with pytest.raises(pt2wire.UnsafeArtifactError, match="not an identifier"):
        pt2wire.from_tree(tree, {}, {})


def test_validating_names_classes_that_are_not_registered_here_as_loading_does() -> None:
    class Pair:
        def __init__(self, left: torch.Tensor, right: torch.Tensor) -> None:
            self.left, self.right = left, right

    class Paired(nn.Module):
        def forward(self, x: torch.Tensor) -> Pair:
            return Pair(x + 1, x + 2)

    pytree.register_pytree_node(
        Pair,
        lambda pair: ((pair.left, pair.right), None),
        lambda items, _: Pair(*items),
        serialized_type_name="unusual.Pair",
    )
    try:
        file, _ = files_of(export(Paired(), (torch.ones(3),)))
        assert pt2wire.validate(file) == []
    finally:
        pytree._deregister_pytree_node(Pair)
    [finding] = pt2wire.validate(file)
    assert (finding.rule, finding.path.partition(":")[2]) == (
        "unknown-class",
        "models/model.json:graph_module.module_call_graph[0].signature.out_spec",
    )
    with pytest.raises(pt2wire.DeserializeError) as caught:
        pt2wire.load(file, form="json")
    assert str(caught.value) == str(finding.error())


@pytest.mark.parametrize("name", ["long" * 400, "a\tb", "zero\u200bwidth", "two\u2028lines"])
def test_modules_and_weights_may_have_any_name_that_stays_text_in_source(name: str) -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.add_module(name, nn.Linear(3, 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = getattr(self, name)(x)
            return result

    ep = export(Named(), (torch.ones(3),))
    assert_loads(ep, torch.ones(3))
    loaded = pt2wire.load(files_of(ep)[0])
    assert list(loaded.state_dict) == [f"{name}.weight", f"{name}.bias"]
    assert torch.export.unflatten(loaded)(torch.ones(3)).shape == (3,)


@pytest.mark.parametrize("name", ["a\nb", "a\rb", "a\0b", "a\x1b[2Jb", "a\x85b", "a\ud800b"])
def test_names_of_weights_that_end_a_line_or_steer_a_terminal_are_refused(name: str) -> None:
    ep = export(nn.Linear(3, 3), (torch.ones(3),))
    tree = pt2wire.to_tree(ep)
    tree.graph_module.signature.input_specs[0].parameter.parameter_name = name
    with pytest.raises(pt2wire.UnsafeArtifactError, match="a control character or a surrogate"):
        pt2wire.from_tree(tree, {**ep.state_dict, name: ep.state_dict["weight"]}, {})


def test_gradients_that_torch_traced_into_constants_are_refused_by_name() -> None:
    class Gradients(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.func.grad(lambda y: (y**2).sum())(x * 2)

    ep = export(Gradients(), (torch.ones(3),))
    assert isinstance(ep.module()(torch.ones(3)), torch._subclasses.FakeTensor)  # there is nothing to lose
    with pytest.raises(pt2wire.SerializeError, match="constant that functorch made") as caught:
        pt2wire.save(ep, io.BytesIO())
    assert caught.value.path == "lifted_tensor_0"


def test_autocast_that_a_program_leaves_on_is_refused_by_name() -> None:
    ep = export(Autocast(), (torch.ones(3, 3),))
    exits = [node for node in ep.graph.nodes if node.target is torch.amp.autocast_mode._exit_autocast]
    (inner,), (outer,) = exits[0].args, exits[1].args
    exits[0].args, exits[1].args = (outer,), (inner,)  # torch checks neither order nor number
    with pytest.raises(pt2wire.SerializeError, match="end of the innermost region") as caught:
        pt2wire.to_tree(ep)
    assert caught.value.path == "_exit_autocast"
    exits[0].args = (inner,)
    ep.graph.erase_node(exits[1])
    with pytest.raises(pt2wire.SerializeError, match="end of each region of autocast") as caught:
        pt2wire.to_tree(ep)
    assert caught.value.path == "_enter_autocast"


def test_saving_warns_of_the_policy_of_a_checkpoint() -> None:
    with pytest.warns(
        UserWarning, match="policy of the checkpoint `tag_activation_checkpoint` is a function"
    ):
        pt2wire.save(MODELS["checkpoint_strict"].program(), io.BytesIO())


def test_a_text_with_a_tab_is_an_input_as_any_other() -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor, text: str) -> torch.Tensor:
            return x * len(text)

    x, file, theirs = torch.ones(2), io.BytesIO(), io.BytesIO()
    ep = export(Model(), (x, "a\tb"))
    pt2wire.save(ep, file)
    torch.export.save(ep, theirs)
    for loaded in (pt2wire.load(file), pytorch_load(file.getvalue()), pytorch_load(theirs.getvalue())):
        module = loaded.module()
        assert torch.equal(module(x, "a\tb"), x * 3)
        with pytest.raises((RuntimeError, AssertionError)):
            module(x, "a b")
    with pytest.raises(
        pt2wire.SerializeError, match=r"'\\x01', which is a control character other than a tab"
    ):
        pt2wire.save(export(Model(), (x, "a\x01b")), io.BytesIO())


def test_a_buffer_in_the_place_of_a_subgraph_is_saved_with_a_warning() -> None:
    """PyTorch exports and loads such a program, and cannot call it: both are one attribute of its module."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("true_graph_0", torch.ones(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda x: x + self.true_graph_0, lambda x: x - 1, (x,))

    ep = export(Model(), (torch.ones(3),))
    with pytest.raises(KeyError, match="already exists"):
        ep.module()
    with pytest.warns(UserWarning, match="pt2wire will not: .* which is a subgraph"):
        pt2wire.save(ep, file := io.BytesIO())
    assert pytorch_load(file.getvalue()).constants == {} != pt2wire.read(file).weights
    with pytest.raises(pt2wire.DeserializeError, match="which is a subgraph"):
        pt2wire.load(file)


def test_a_node_that_gets_a_subgraph_gives_way_to_a_value_of_its_name() -> None:
    """PyTorch's files do not say how such nodes are called; names of values come back as they were."""

    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)).sin().cos()

    torch.export.save(export(Model(), (torch.ones(3),)), file := io.BytesIO())
    tree = pt2wire.read(file).programs["model"]
    node = next(node for node in tree.graph_module.graph.nodes if node.name == "cond")
    node.inputs[1].arg.as_graph.name, node.inputs[2].arg.as_graph.name = "sin", "cos"
    loaded = pt2wire.from_tree(tree, {}, {})
    names = [node.name for node in loaded.graph.nodes]
    assert names == ["x", "sum_1", "gt", "sin_1", "cos_1", "cond", "getitem", "sin", "cos", "output"]
    assert torch.equal(loaded.module()(torch.ones(3)), torch.full((3,), 2.0).sin().cos())
    again = pt2wire.from_tree(pt2wire.to_tree(loaded), {}, {})
    assert [node.name for node in again.graph.nodes] == names
