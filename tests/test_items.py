"""`getitem` nodes that the format has no room for come back, in both encodings; PyTorch opens the file."""

from __future__ import annotations

import copy
import io
import operator
import warnings
from typing import Any

import pt2wire
import pytest
import torch
from pt2wire.errors import SerializeError
from pt2wire.generated import types
from torch.fx import Node

from .helpers.exporting import exported, node_named
from .helpers.oracles import pytorch_load
from .helpers.programs import assert_same_program, describe_value

_LIBRARY = torch.library.Library("pt2wire_items", "FRAGMENT")


def _mixed(x: torch.Tensor) -> Any:
    return x + 1, None, [x * 1, x * 2], [], x * 3


_LIBRARY.define("mixed(Tensor x) -> (Tensor, Tensor?, Tensor[], Tensor[], Tensor)")
_LIBRARY.impl("mixed", _mixed, "CompositeExplicitAutograd")
torch.library.register_fake("pt2wire_items::mixed", _mixed, lib=_LIBRARY)


def _calls(self: Any, x: torch.Tensor, condition: torch.Tensor) -> Any:
    first, *_, last = x.split(1)
    values, indices = x.topk(2)
    added, _, (one, _), *_ = torch.ops.pt2wire_items.mixed(x)
    chosen = torch.cond(condition, lambda y: y.split(1)[0] + 1, lambda y: y[:1] * 2, (x,))
    return torch.cat([first, last]), values, indices, added + one, chosen


def _twin(node: Node, **changes: int) -> Node:
    """A node that takes what another takes."""
    owner, index = node.args
    with node.graph.inserting_before(node.next):
        twin = node.graph.call_function(operator.getitem, (owner, changes.get("index", index)))
    twin.meta = dict(node.meta)
    return twin


def _replace(user: Node, old: Node, new: Node) -> None:
    user.replace_input_with(old, new)


def _with_twins() -> torch.export.ExportedProgram:
    """A program with nodes that PyTorch merges when it makes an `ExportedProgram`, but not later."""
    ep = exported(_calls, torch.randn(3, 4), torch.tensor(True))
    graph = ep.graph
    cat, output = node_named(ep, "cat"), graph.output_node()
    first, last = cat.args[0]  # type: ignore[union-attr]
    _replace(cat, first, _twin(first))  # an item of a list
    _replace(cat, last, _twin(last, index=-1))  # the same, counted from the end, as its only node
    graph.erase_node(last)
    _twin(first)  # that nothing uses
    values = output.args[0][1]  # type: ignore[index]
    twin = _twin(values)
    _replace(output, values, twin)  # what the program returns
    ep.graph_signature.output_specs[1].arg.name = twin.name
    (items,) = [node for node in graph.nodes if node.target is operator.getitem and node.args[1] == 2]
    one = next(iter(items.users))
    twin = _twin(items)
    one.args = (twin, 0)  # of a list that is one of several outputs
    inner = ep.graph_module.get_submodule(str(node_named(ep, "cond").args[1]))
    (part,) = [node for node in inner.graph.nodes if node.target is operator.getitem and node.args[1] == 0]
    _replace(next(iter(part.users)), part, _twin(part))
    for module in (ep.graph_module, inner):
        module.graph.lint()
        module.recompile()
    return ep


@pytest.mark.parametrize("form", ["json", "thrift"])
@pytest.mark.parametrize("noted", [False, True], ids=["plain", "noted"])
def test_nodes_that_take_one_output_come_back(form: Any, noted: bool) -> None:
    ep, inputs = _with_twins(), (torch.randn(3, 4), torch.tensor(True))
    graphs = [module.graph for module in ep.graph_module.modules() if hasattr(module, "graph")]
    for node in [node for graph in graphs for node in graph.nodes if noted]:
        node.meta["custom"] = {"of": node.name}
    file = io.BytesIO()
    pt2wire.save(ep, file, formats=(form,))
    loaded = pt2wire.load(io.BytesIO(file.getvalue()))
    assert_same_program(ep, loaded)
    assert pt2wire.validate(pt2wire.to_tree(ep)) == []
    expected = ep.module()(*inputs)
    assert describe_value("", loaded.module()(*inputs)) == describe_value("", expected)
    again = io.BytesIO()
    pt2wire.save(loaded, again, formats=(form,))
    assert again.getvalue() == file.getvalue()
    if form == "json":
        assert all(map(torch.equal, pytorch_load(file.getvalue()).module()(*inputs), expected))


def test_nodes_of_lists_and_of_none_keep_their_names() -> None:
    ep = exported(lambda self, x: torch.ops.pt2wire_items.mixed(x), torch.randn(2))
    taken = [node.args[1] for node in ep.graph.nodes if node.target is operator.getitem]
    assert taken == [0, 1, 2, 0, 1, 3, 4]
    for node in ep.graph.nodes:
        node.meta["custom"] = {"of": node.name}
    loaded = pt2wire.load(_saved(ep))
    assert_same_program(ep, loaded)
    # PyTorch's own files have nodes for outputs that nothing uses, which stay as well.
    unused = exported(lambda self, x: x.split(1)[0], torch.randn(2))
    unused.graph.erase_node(node_named(unused, "getitem_1"))
    of_pytorch = pytorch_load(_saved(unused, torch.export))
    assert any("unused" in node.name for node in of_pytorch.graph.nodes)
    loaded = pt2wire.load(_saved(of_pytorch))
    assert str(loaded.graph) == str(of_pytorch.graph)


def _saved(ep: torch.export.ExportedProgram, by: Any = pt2wire) -> Any:
    file = io.BytesIO()
    by.save(ep, file)
    return file.getvalue() if by is torch.export else io.BytesIO(file.getvalue())


def test_programs_in_which_such_nodes_have_other_names_are_the_same() -> None:
    ep, other = _with_twins(), _with_twins()
    for number, node in enumerate(other.graph.nodes):
        if node.target is operator.getitem:
            node.name = f"item_{number}"
    returned: Any = other.graph.output_node().args[0]
    for spec, node in zip(other.graph_signature.output_specs, returned, strict=True):
        spec.arg.name = node.name
    one, two = pt2wire.to_tree(ep), pt2wire.to_tree(other)
    assert one != two
    assert pt2wire.canonicalize(one) == pt2wire.canonicalize(two)
    assert pt2wire.diff(one, two) == []


def _calls_with_none(self: Any, x: torch.Tensor) -> Any:
    first, *_ = torch.ops.pt2wire_items.mixed(x)
    return first.clamp(None, x), first[:, torch.arange(2)]


def _with_none_given_on() -> torch.export.ExportedProgram:
    """A program that gives on what a call has None for: to an operator, and in a list."""
    ep = exported(_calls_with_none, torch.randn(3, 4))
    (nothing,) = [node for node in node_named(ep, "mixed").users if node.args[1] == 1]
    clamp, index = node_named(ep, "clamp"), node_named(ep, "index")
    clamp.args = (clamp.args[0], nothing, *clamp.args[2:])
    index.args = (index.args[0], [nothing, *index.args[1][1:]])  # type: ignore[index, misc]
    ep.graph_module.recompile()
    return ep


@pytest.mark.parametrize("form", ["json", "thrift"])
def test_nodes_that_take_none_can_be_given_on(form: Any) -> None:
    ep, x, file = _with_none_given_on(), torch.randn(3, 4), io.BytesIO()
    with pytest.raises(AssertionError, match="not in def_table"):
        _saved(ep, torch.export)
    pt2wire.save(ep, file, formats=(form,))
    loaded = pt2wire.load(io.BytesIO(file.getvalue()))
    assert_same_program(ep, loaded)
    expected = ep.module()(x)
    assert describe_value("", loaded.module()(x)) == describe_value("", expected)
    if form == "json":  # PyTorch reads None for them
        assert describe_value("", pytorch_load(file.getvalue()).module()(x)) == describe_value("", expected)
    again = io.BytesIO()
    pt2wire.save(loaded, again, formats=(form,))
    assert again.getvalue() == file.getvalue()


def test_nodes_that_take_none_are_no_tensors() -> None:
    nothing = types.TensorArgument(name="getitem_1")
    trees = [pt2wire.to_tree(_with_none_given_on()) for _ in range(3)]
    clamp, of_tensor, without_exact = (
        next(node for node in tree.graph_module.graph.nodes if node.name == "clamp") for tree in trees
    )
    assert clamp.exact_inputs is not None and clamp.exact_inputs[1].value == types.Value.of_tensor(nothing)
    clamp.inputs[1].arg = types.Argument.of_tensor(nothing)
    of_tensor.inputs[1].arg = of_tensor.inputs[2].arg
    without_exact.inputs[2].arg, without_exact.exact_inputs = types.Argument.of_tensor(nothing), None
    for tree, rule in zip(trees, ("undefined-name", "exact", "undefined-name"), strict=True):
        assert rule in {finding.rule for finding in pt2wire.validate(tree)}
        with pytest.raises(pt2wire.DeserializeError):
            pt2wire.from_tree(tree, {}, {})


def test_how_many_nodes_take_an_output_has_no_meaning() -> None:
    plain = exported(_calls, torch.randn(3, 4), torch.tensor(True))
    with_none = exported(_calls_with_none, torch.randn(3, 4))
    for changed, before in ((_with_twins(), plain), (_with_none_given_on(), with_none)):
        one, two = pt2wire.to_tree(changed), pt2wire.to_tree(before)
        assert pt2wire.canonicalize(one) == pt2wire.canonicalize(two)
        assert pt2wire.digest(one) == pt2wire.digest(two)
        assert pt2wire.diff(one, two) == []
        assert pt2wire.validate(pt2wire.canonicalize(one)) == []


def test_what_takes_none_of_the_outputs_is_refused() -> None:
    ep = exported(lambda self, x: x.topk(2).values, torch.randn(3))
    _twin(node_named(ep, "getitem"), index=2)
    with pytest.raises(SerializeError, match="topk: expected one of 2 outputs, found another as `getitem_2`"):
        pt2wire.to_tree(ep)


@pytest.mark.parametrize("kind, value", [("int", 3), ("float", 1.5), ("bool", True)])
def test_a_warning_names_outputs_that_pytorch_cannot_read(kind: str, value: Any) -> None:
    def beside_a_number(x: torch.Tensor) -> Any:
        return x + 1, value

    _LIBRARY.define(f"beside_{kind}(Tensor x) -> (Tensor, {kind})")
    _LIBRARY.impl(f"beside_{kind}", beside_a_number, "CompositeExplicitAutograd")
    torch.library.register_fake(f"pt2wire_items::beside_{kind}", beside_a_number, lib=_LIBRARY)
    operator_of = getattr(torch.ops.pt2wire_items, f"beside_{kind}")
    ep, file = exported(lambda self, x: operator_of(x), torch.ones(2)), io.BytesIO()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        pt2wire.save(ep, file)
    loaded = pt2wire.load(io.BytesIO(file.getvalue()))
    assert str(loaded.graph) == str(ep.graph)
    assert loaded.module()(torch.ones(2))[1] == value
    try:
        pytorch_load(file.getvalue())
    except RuntimeError:
        (warning,) = warned
        assert f"a {kind} among the outputs of `beside_{kind}`" in str(warning.message)
    else:
        assert not warned


def _lying(items: list[types.GetItem]) -> types.ExportedProgram:
    tree = copy.deepcopy(_TREE)
    tree.graph_module.graph.getitems = items
    tree.graph_module.graph.order = None
    return tree


_TREE = pt2wire.to_tree(exported(lambda self, x: (x.topk(2).values, x + 1), torch.randn(3)))
_TREE.writer = types.Writer("test", "0", 1)
_LIES = {
    "a call with one output": ([types.GetItem("a", "add", 0)], "exact"),
    "nothing": ([types.GetItem("a", "nothing", 0)], "exact"),
    "no output": ([types.GetItem("a", "topk", 2)], "exact"),
    "none from the end": ([types.GetItem("a", "topk", -3)], "exact"),
    "a name that is taken": ([types.GetItem("add", "topk", 0)], "duplicate-name"),
    "a name twice": ([types.GetItem("getitem", "topk", 0)] * 2, "duplicate-name"),
    "code": ([types.GetItem("a=b", "topk", 0)], "name"),
}


@pytest.mark.parametrize("items, rule", _LIES.values(), ids=_LIES)
def test_lies_are_found_and_refused(items: list[types.GetItem], rule: str) -> None:
    tree = _lying(items)
    assert rule in {finding.rule for finding in pt2wire.validate(tree)}
    with pytest.raises(pt2wire.DeserializeError):
        pt2wire.from_tree(tree, {}, {})
