"""Programs that may move the indices of sparse tensors would write or read anywhere: they are refused."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire import UnsafeArtifactError
from pt2wire.findings import Finding
from pt2wire.generated import types
from pt2wire.operators import Target, TargetKind, refusal
from pt2wire.permissions import permit
from pt2wire.sparse_operators import CHANGING_SPARSE, MAKING_FROM_PARTS, ON_SPARSE, READING_PARTS
from pt2wire.validation.sparse_flow import validate_sparse_flow
from torch import Tensor, nn, ones, tensor

from .helpers import sparse_search
from .helpers.call_trees import A, V, call, graph_named, graph_of, tensor_named, traced, tree_with

aten = torch.ops.aten

_Forward = Callable[..., Tensor]


def _indices() -> Tensor:
    return tensor([[0, 1], [1, 0]])


def _sparse() -> Tensor:
    return torch.sparse_coo_tensor(_indices(), ones(2), (2, 2)).coalesce()


def _saved(forward: _Forward, *args: Tensor) -> io.BytesIO:
    model: nn.Module = type("Model", (nn.Module,), {"forward": lambda self, *args: forward(*args)})()
    file = io.BytesIO()
    pt2wire.save(torch.export.export(model, args), file)
    return file


def _through_a_view(x: Tensor) -> Tensor:
    x.indices()[0].view(-1).add_(1 << 40)
    return x.to_dense()


def _through_parts(x: Tensor) -> Tensor:
    x._indices().unbind(0)[1].fill_(1 << 40)
    return x.to_dense()


def _of_what_shares_them(x: Tensor) -> Tensor:
    x.detach().indices().zero_()
    return x.to_dense()


def _by_rows(x: Tensor) -> Tensor:
    x.col_indices().mul_(1 << 40)
    return x.to_dense()


def _behind_its_back(indices: Tensor) -> Tensor:
    x = torch.sparse_coo_tensor(indices, ones(2), (2, 2))
    indices.copy_(indices + (1 << 40))
    return x.to_dense()


_CHANGES: dict[str, tuple[_Forward, tuple[Tensor, ...], str]] = {
    "through a view": (_through_a_view, (_sparse(),), "aten.add_"),
    "through parts": (_through_parts, (_sparse(),), "aten.fill_"),
    "of what shares them": (_of_what_shares_them, (_sparse(),), "aten.zero_"),
    "by rows": (_by_rows, (torch.eye(2).to_sparse_csr(),), "aten.mul_"),
    "behind its back": (_behind_its_back, (_indices(),), "aten.copy_"),
}


_MAKERS = ("aten.sparse_coo_tensor",)


@pytest.mark.parametrize("name", _CHANGES)
@pytest.mark.filterwarnings("ignore")
def test_changed_indices_are_refused(name: str) -> None:
    forward, args, operator = _CHANGES[name]
    file = _saved(forward, *args)
    with pytest.raises(UnsafeArtifactError) as caught:
        pt2wire.load(file, allow_operators=_MAKERS)
    wanted = rf"expected indices of sparse tensors to stay as they are, found '\w+' changed by {operator}"
    assert re.fullmatch(wanted, caught.value.message)
    assert f"allow_operators=['{operator}']" in str(caught.value)
    (finding,) = pt2wire.validate(file)
    if finding.rule != "denied-operator":  # it was permitted above, and is the first thing to say here
        assert (finding.rule, finding.message) == ("sparse-flow", caught.value.message)
        places = [(path or "").rpartition(":")[2] for path in (caught.value.path, finding.path)]
        assert places[0] == places[1] and places[0].startswith("graph_module.graph.nodes[")
    assert pt2wire.load(file, allow_operators=[operator, *_MAKERS]) is not None


_ALIASES: dict[str, Callable[[Tensor], Tensor]] = {
    "aten._unsafe_view": lambda i: aten._unsafe_view.default(i, [2, 2]),
    "aten.unsafe_chunk": lambda i: aten.unsafe_chunk.default(i, 1)[0],
    "aten.unsafe_split": lambda i: aten.unsafe_split.Tensor(i, 2)[0],
    "aten.broadcast_tensors": lambda i: aten.broadcast_tensors.default([i, i])[0],
    "aten.dropout": lambda i: aten.dropout.default(i, 0.0, False),
    "aten.atleast_1d": lambda i: aten.atleast_1d.default(i),
    "aten.meshgrid": lambda i: aten.meshgrid.default([aten.flatten.using_ints(i)] * 2)[0],
    "aten.sum_to_size": lambda i: aten.sum_to_size.default(i, [2, 2]),
    "aten.einsum": lambda i: aten.einsum.default("ij->ij", [i]),
    "aten.to_dense": lambda i: aten.to_dense.default(i),
}


def _check(forward: Callable[..., Any], *examples: Tensor, allowed: tuple[str, ...] = ()) -> list[Finding]:
    """Check calls that need not work."""
    return validate_sparse_flow(traced(forward, *examples), permit(allow_operators=allowed))


@pytest.mark.parametrize("name", _ALIASES)
def test_aliases_that_no_schema_declares_are_refused(name: str) -> None:
    def forward(x: Tensor) -> Tensor:
        return aten.fill_.Scalar(_ALIASES[name](aten.indices.default(x)), 1 << 40)  # type: ignore[no-any-return]

    alias, change = _check(forward, _sparse())
    assert "expected an operator that is known to be safe for sparse tensors" in alias.message
    assert f"found {name}, in node" in alias.message and alias.hint is not None
    assert f"allow_operators=['{name}']" in alias.hint and isinstance(alias.error(), UnsafeArtifactError)
    assert change.message.endswith("changed by aten.fill_")
    assert _check(forward, _sparse(), allowed=(name,)) == [change]
    assert _check(forward, _sparse(), allowed=(name, "aten.fill_")) == []


#: What operators that are given sparse tensors, or their parts, would break: the last of each is refused.
_REFUSED: dict[str, Callable[..., Any]] = {
    "aten.resize_": lambda x, y: aten.resize_.default(aten.to_sparse_csr.default(y), [2, 4, 4]),
    "aten.resize_as_sparse_": lambda x, y: aten.resize_as_sparse_.default(y, x),
    "aten.new_empty": lambda x, y: aten.new_empty.default(aten._to_copy.default(x), [4, 4]),
    "aten.sub": lambda x, y: aten.sub.out(y, y, out=x),
    "aten.add_": lambda x, y: aten.add_.Tensor(x, x),
    "aten._coalesced_": lambda x, y: aten._coalesced_.default(aten.t.default(x), True),
    "aten.lstm": lambda x, y: aten.lstm.input(y, [y], [x], True, 1, 0.0, False, False, False),
    "aten.squeeze_": lambda x, y: aten.squeeze_.default(aten.empty_like.default(y, layout=torch.sparse_coo)),
    "aten.batch_norm": lambda x, y: aten.batch_norm.default(
        y, None, None, aten.view.dtype(aten._indices.default(x), torch.float64), None, True, 1.0, 1e-5, False
    ),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_operators_that_are_not_known_to_keep_sparse_tensors_sound_are_refused(name: str) -> None:
    (finding,) = _check(_REFUSED[name], _sparse(), ones(4, 4))
    assert f"found {name}, in node" in finding.message
    assert _check(_REFUSED[name], _sparse(), ones(4, 4), allowed=(name,)) == []


#: In inference mode, what is done to the sizes of values is done to the sparse tensor.
_RESIZED: dict[str, Callable[..., Any]] = {
    "aten.resize_": lambda x: aten.resize_.default(aten._values.default(x), [9000]),
    "aten.t_": lambda x: aten.t_.default(aten.dropout.default(aten.values.default(x), 0.0, False)),
    "aten.add": lambda x: aten.add.out(1, 1, out=aten._values.default(x)),
}


@pytest.mark.parametrize("name", _RESIZED)
def test_values_keep_their_sizes(name: str) -> None:
    *_, finding = _check(_RESIZED[name], _sparse())
    assert re.search(rf"to keep their sizes, found .* given to {name}", finding.message)


def _layers(x: Tensor, y: Tensor) -> Tensor:
    dense = aten.layer_norm.default(aten.mm.default(aten.mul_.Tensor(x, 2), y), [4])
    aten.squeeze_.default(dense)
    row = aten.select.int(aten.indices.default(x), 0, 0)
    aten.scatter_add_.default(
        aten.zeros_like.default(y), 0, row, aten.dropout.default(aten.values.default(x), 0.1, True)
    )
    return aten.new_empty.default(aten.add_.Scalar(aten.clone.default(row), 1), [2])  # type: ignore[no-any-return]


def test_what_is_made_of_sparse_tensors_may_go_anywhere() -> None:
    assert _check(_layers, _sparse(), ones(4, 4)) == []


def test_operators_of_the_tables_exist() -> None:
    names = {name.partition(".")[0].replace("::", ".") for name in torch._C._dispatch_get_all_op_names()}
    assert names >= ON_SPARSE.keys() | READING_PARTS | CHANGING_SPARSE | MAKING_FROM_PARTS.keys()
    assert all(refusal(Target(TargetKind.OPERATOR, *name.split("."))) for name in MAKING_FROM_PARTS)


@pytest.mark.parametrize("name", ["aten.mul.Tensor", "aten.mm.default", "aten.coalesce.default"])
def test_operators_of_the_table_keep_sparse_tensors_sound(name: str) -> None:
    assert sparse_search.search(name, 40) is None


@pytest.mark.wide
def test_all_operators_of_the_table_keep_sparse_tensors_sound() -> None:
    assert {
        name: found for name in sparse_search.operators() if (found := sparse_search.search(name, 40))
    } == {}


def test_the_search_finds_what_breaks_sparse_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_search, "CHANGING_SPARSE", {"aten.add_"})
    found = sparse_search.search("aten.add_.Tensor", 400)
    assert found is not None and "dimensionality" in found


class _Updating(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("indices", _indices())

    def forward(self, values: Tensor) -> Tensor:
        x = torch.sparse_coo_tensor(self.indices, values, (2, 2))  # type: ignore[arg-type]
        self.indices.add_(1)  # type: ignore[operator]
        return x


def test_an_update_behind_the_back_of_a_sparse_tensor_is_refused() -> None:
    file = io.BytesIO()
    pt2wire.save(torch.export.export(_Updating(), (ones(2),)).run_decompositions(), file)
    with pytest.raises(UnsafeArtifactError, match="found 'b_indices' changed by an output, which updates it"):
        pt2wire.load(file, allow_operators=["aten._sparse_coo_tensor_with_dims_and_tensors"])


class _Branching(nn.Module):
    """Gives a branch the indices that a sparse tensor is made of."""

    def forward(self, indices: Tensor) -> Tensor:
        x = torch.sparse_coo_tensor(indices, ones(2), (9, 9))
        found: Tensor = torch.cond(indices.sum() > 5, lambda i: i + 1, lambda i: i - 1, (indices,))
        return x.to_dense().sum() + found.sum()


def test_subgraphs_change_no_indices_that_they_are_given() -> None:
    ep = torch.export.export(_Branching(), (_indices(),))
    tree = pt2wire.to_tree(ep)
    arguments = tree, ep.state_dict, ep.constants
    assert pt2wire.from_tree(*arguments, allow_operators=_MAKERS) is not None
    cond = next(node for node in tree.graph_module.graph.nodes if node.target.endswith(".cond"))
    branch = cond.inputs[1].arg.as_graph.graph
    branch.nodes[0].target = "torch.ops.aten.add_.Tensor"
    with pytest.raises(UnsafeArtifactError, match=r"changed by aten\.add_"):
        pt2wire.from_tree(*arguments, allow_operators=_MAKERS)


_SYMBOLIC = types.SymIntArgument.of_name("n")
_ADD, _INDICES_OF = "torch.ops.aten.add_.Scalar", "torch.ops.aten._indices.default"
_WRAP = "torch.ops.higher_order.wrap"


def _move(name: str = "y") -> types.Node:
    return call(_ADD, "moved", self=tensor_named(name), other=A.of_int(1 << 40))


def _of_x(results: str = "i") -> types.Node:
    return call(_INDICES_OF, results, self=tensor_named("x_0"))


def _unbound() -> types.Node:
    return call("torch.ops.aten.unbind.int", ["a", "y"], self=tensor_named("i"), name="unbind")


def _exact(node: types.Node, *values: V | None) -> types.Node:
    """A call whose arguments are None to PyTorch, and exactly these."""
    for named, value in zip(node.inputs, values, strict=True):
        named.arg = named.arg if value is None else A.of_none(True)
    pairs = zip(node.inputs, values, strict=True)
    node.exact_inputs = [types.NamedValue(named.name, value) for named, value in pairs]
    return node


_I, _T = tensor_named("i"), V.of_tensor(types.TensorArgument("i"))
_POINT = types.NamedTupleValue("geometry:Point", ["x", "y"], [_T, V.of_int(1)])
_NESTED = A.of_nested_tensors([[types.TensorArgument("i")]])
_OPTIONAL = A.of_optional_tensors(
    [types.OptionalTensorArgument.of_none(True), types.OptionalTensorArgument.of_tensor(_I.as_tensor)]
)
_MAP = "torch.ops.higher_order.map_impl"


def _body(*nodes: types.Node, name: str = "body") -> A:
    return graph_named(name, graph_of("a b", "b", *nodes))


def _in_container() -> types.Node:
    node = _exact(call(_MAP, "y", A.of_none(True)), V.of_tuple([V.of_subgraph("body")]))
    maker = call("torch.ops.aten.to_sparse.default", "s", self=tensor_named("a"))
    moving = [call(_INDICES_OF, "y", self=tensor_named("s")), _move()]
    node.subgraphs = [types.GraphArgument("body", graph_of("a", "s", maker, *moving))]
    return node


def _number_of_a_subgraph() -> types.Node:
    """Gives back what it is given, which the file calls a number."""
    node = call(_WRAP, "n", graph_named("body", graph_of("a", "a")), _I)
    node.outputs = [A.of_sym_int(_SYMBOLIC)]
    return node


def _as_numbers(target: str, *given: A) -> types.Node:
    node = call(target, "", *given, name="number")
    node.outputs = [A.of_sym_int(types.SymIntArgument.of_name("m"))]
    return node


#: How what a tree only implies might hide where the indices `i` go, and the node that must be found.
_WAYS: dict[str, tuple[list[types.Node], int, str]] = {
    "one of several outputs": ([_of_x(), _unbound(), _move()], 2, "aten.add_"),
    "a node that takes one out again": ([_of_x(), _unbound(), _move("twin")], 2, "aten.add_"),
    "a list": ([_of_x(), call("torch.ops.aten.meshgrid.default", ["y"],
                              tensors=A.of_tensors([_I.as_tensor]))], 1, "aten.meshgrid"),
    "a list with None": ([_of_x(), call("torch.ops.aten._unsafe_index.Tensor", "y", self=tensor_named("x_1"),
                                        indices=_OPTIONAL)], 1, "aten._unsafe_index"),
    "a list of lists": ([_of_x(), call(_MAP, "y", _body(), _NESTED)], 1, "map_impl"),
    "a dictionary": ([_of_x(), call(_MAP, "y", A.of_string_to_argument({"key": _I}))], 1, "map_impl"),
    "an exact list": ([_of_x(), _exact(call("torch.ops.aten.meshgrid.default", ["y"], tensors=_I),
                                       V.of_list([_T]))], 1, "aten.meshgrid"),
    "an exact dictionary": ([_of_x(), _exact(call(_MAP, "y", _I), V.of_dict(
        [types.ValueItem(V.of_int(1), V.of_tuple([_T]))]))], 1, "map_impl"),
    "a named tuple": ([_of_x(), _exact(call(_MAP, "y", _I), V.of_named_tuple(_POINT))], 1, "map_impl"),
    "an operand": ([_of_x(), call(_WRAP, "y", _body(_move("b")), tensor_named("x_1"), _I)], 1, "aten.add_"),
    "an operand that is a list": ([_of_x(), call(_WRAP, "y", _body(_move("a")), A.of_tensors(
        [_I.as_tensor, types.TensorArgument("x_1")]), tensor_named("x_1"))], 1, "aten.add_"),
    "what a subgraph gives": ([_of_x(), call(_WRAP, "y", _body(), tensor_named("x_1"), _I), _move()], 2,
                              "aten.add_"),
    "a subgraph in a container": ([_in_container()], 0, "aten.add_"),
    "what another operator calls": ([_of_x(), call("torch.ops.higher_order.auto_functionalized", "y",
                                                   A.of_operator("torch.ops.aten.relu_.default"), self=_I)],
                                    1, "aten.relu_"),
    "a function over numbers": ([_of_x(), _as_numbers("_operator.add", _I, A.of_int(1))], 1, "_operator.add"),
    "a function of functorch": ([_of_x(), call("torch._functorch.predispatch._add_batch_dim", "y", _I,
                                               A.of_int(0), A.of_int(1))], 1, "_add_batch_dim"),
    "an extension": ([_of_x(), call("#mine:op", "y", self=_I)], 1, "#mine:op"),
    "what is called a number": ([_of_x(), _number_of_a_subgraph(), call(
        "torch.ops.aten.mul_.Tensor", "y", self=A.of_sym_int(_SYMBOLIC), other=A.of_int(2))], 2, "aten.mul_"),
    "a number beside it": ([
        _as_numbers("torch.ops.aten.sym_size.int", tensor_named("x_1")),
        call("torch.ops.aten.add.Tensor", "s", self=tensor_named("x_0"), other=tensor_named("x_0"),
             alpha=A.of_sym_int(types.SymIntArgument.of_name("m"))),
        call("torch.ops.aten.squeeze_.default", "y", self=tensor_named("s")),
    ], 2, "aten.squeeze_"),
}  # fmt: skip


@pytest.mark.parametrize("name", _WAYS)
def test_what_a_tree_only_implies_is_followed(name: str) -> None:
    nodes, index, operator = _WAYS[name]
    tree = tree_with(_sparse(), ones(2))
    graph = tree.graph_module.graph
    graph.nodes = nodes
    graph.getitems = [types.GetItem("twin", "unbind", -1)]
    finding = validate_sparse_flow(tree)[0]
    assert finding.path.startswith(f"graph_module.graph.nodes[{index}]")
    assert operator in finding.message
    # Without the indices, the same calls are fine, but for what makes sparse tensors itself.
    if nodes[0].target == _INDICES_OF:
        nodes = [call("torch.ops.aten.relu.default", "i", self=tensor_named("x_1")), *nodes[1:]]
        graph.nodes = nodes
        assert validate_sparse_flow(tree) == []


def test_two_names_of_a_tensor_that_a_subgraph_holds_are_one_tensor() -> None:
    making = call("torch.ops.aten._sparse_coo_tensor_unsafe.default", "s", indices=tensor_named("one"))
    body = graph_of("a", "s", making, _move("two"))
    body.constants = [types.GraphConstant(name, "held", b"") for name in ("one", "two")]
    tree = tree_with(ones(2))
    described = tree.graph_module.graph.tensor_values["x_0"]
    body.tensor_values = {"one": described, "two": described}
    tree.graph_module.graph.nodes = [call(_WRAP, "y", graph_named("body", body), tensor_named("x_0"))]
    (finding,) = validate_sparse_flow(tree, permit(allow_operators=["aten._sparse_coo_tensor_unsafe"]))
    assert finding.path == "graph_module.graph.nodes[0].inputs[0].arg.as_graph.graph.nodes[1]"
    assert finding.message.endswith("found 'two' changed by aten.add_")


def test_what_a_subgraph_makes_indices_of_stays_as_it_is() -> None:
    making = call("torch.ops.aten._sparse_coo_tensor_unsafe.default", "s", indices=tensor_named("a"))
    tree = tree_with(ones(2))
    body = graph_named("body", graph_of("a", "s", making))
    tree.graph_module.graph.nodes = [call(_WRAP, "y", body, tensor_named("x_0")), _move("x_0")]
    (finding,) = validate_sparse_flow(tree, permit(allow_operators=["aten._sparse_coo_tensor_unsafe"]))
    assert finding.message.endswith("found 'x_0' changed by aten.add_")


def test_numbers_carry_nothing_from_one_tensor_to_another() -> None:
    tree = tree_with(_sparse(), ones(2))
    sizes = A.of_sym_ints([types.SymIntArgument.of_name("m")])
    view = "torch.ops.aten.view.default"
    tree.graph_module.graph.nodes = [
        _as_numbers("torch.ops.aten.sym_size.int", tensor_named("x_1")),
        _of_x(),
        call(view, "rows", self=_I, size=sizes),
        call(view, "own", self=tensor_named("x_1"), size=sizes),
        _move("own"),
    ]
    assert validate_sparse_flow(tree) == []


def _written_before(indices: Tensor, values: Tensor) -> Tensor:
    own = torch.zeros_like(indices)
    own.copy_(indices)
    return torch.sparse_coo_tensor(own, values, (2, 2)).to_dense()


def _values_changed(x: Tensor) -> Tensor:
    x.values().mul_(2)
    x.indices().clone().add_(5)
    return x.to_dense()


def _whole_changed(x: Tensor) -> Tensor:
    x.mul_(2 + x.indices().size(0))
    return x.to_dense()


_HONEST: list[tuple[_Forward, tuple[Tensor, ...]]] = [
    (_written_before, (_indices(), ones(2))),
    (_values_changed, (_sparse(),)),
    (_whole_changed, (_sparse(),)),
]


@pytest.mark.parametrize(("forward", "args"), _HONEST)
@pytest.mark.filterwarnings("ignore")
def test_whatever_else_changes_is_let_through(forward: _Forward, args: tuple[Tensor, ...]) -> None:
    expected = forward(*(arg.clone() for arg in args))
    loaded = pt2wire.load(_saved(forward, *args), allow_operators=_MAKERS)
    found = loaded.module()(*(arg.clone() for arg in args))
    assert torch.equal(found, expected)


def test_example_inputs_share_no_indices_with_numbers() -> None:
    numbers = _indices()
    sparse = torch.sparse_coo_tensor(numbers, ones(2), (2, 2))
    file = _saved(lambda numbers, x: numbers.add_(1) + x.to_dense().long(), numbers, sparse)
    with pytest.warns(UserWarning, match="indices of a sparse tensor share memory with numbers"):
        loaded = pt2wire.load(file)
    assert loaded.example_inputs is not None
    assert all(tensor.is_meta for tensor in loaded.example_inputs[0])
    numbers, sparse = _indices(), _sparse()
    expected = numbers + 1 + sparse.to_dense().long()
    assert torch.equal(loaded.module()(numbers, sparse), expected)
