"""Calls and what they yield: several outputs, unused ones, subgraphs, and the calls that are refused."""

from __future__ import annotations

import operator

import pytest
import torch
from functorch.experimental.control_flow import map as map_over
from pt2wire.errors import SerializeError
from pt2wire.exporting import export_program
from pt2wire.generated import json_codec
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim

from .helpers.exporting import assert_json_is_pytorchs, exported, node_named, pytorch_json

_LIBRARY = torch.library.Library("pt2wire_nodes", "DEF")  # kept: the operators go when this does


def _operator(schema, implementation):
    name = schema.partition("(")[0]
    _LIBRARY.define(schema, tags=torch.Tag.pt2_compliant_tag)
    _LIBRARY.impl(name, implementation, "CompositeExplicitAutograd")
    torch.library.register_fake(f"pt2wire_nodes::{name}", implementation, lib=_LIBRARY)
    return getattr(torch.ops.pt2wire_nodes, name).default


mixed = _operator(
    "mixed(Tensor x) -> (Tensor, Tensor[], int, float, bool, Tensor?)",
    lambda x: (x.clone(), [x + 1, x + 2], 3, 2.5, True, None),
)
no_result = _operator("no_result(Tensor x) -> ()", lambda x: None)
maybe_none = _operator("maybe_none(Tensor x) -> Tensor?", lambda x: None)
some_missing = _operator(
    "some_missing(Tensor x) -> (Tensor, Tensor?[])", lambda x: (x.clone(), [x + 1, None])
)
list_of_sizes = _operator("list_of_sizes(Tensor x) -> SymInt[]", lambda x: [x.shape[0], 3])


def _output_names(tree, index=0):
    """The names of a node's outputs, those of lists in lists."""
    return [
        [tensor.name for tensor in output.as_tensors] if output.type == "as_tensors" else output.value.name
        for output in tree.graph_module.graph.nodes[index].outputs
        if output.type in ("as_tensor", "as_tensors")
    ]


def test_several_outputs_are_named_after_their_getitem_nodes():
    ep = exported(lambda self, x: torch.topk(x, 2)[1] * 1, torch.randn(6, 3))
    ep.graph.eliminate_dead_code()
    tree = assert_json_is_pytorchs(ep)
    assert _output_names(tree) == ["topk_unused_0", "getitem_1"]


def test_list_outputs_are_named_after_their_getitem_nodes():
    ep = exported(lambda self, x: x.split(2)[1], torch.randn(6))
    ep.graph.eliminate_dead_code()
    tree = assert_json_is_pytorchs(ep)
    assert _output_names(tree) == [["split_unused_0", "getitem_1", "split_unused_2"]]


@pytest.mark.parametrize(
    ("use", "names"),
    [
        (lambda outputs: outputs[1][1], ["mixed_unused_0", ["getitem_1_unused_0", "getitem_6"]]),
        (lambda outputs: outputs[0], ["getitem", ["getitem_1_unused_0", "getitem_1_unused_1"]]),
    ],
    ids=["an item of the list", "another output"],
)
def test_outputs_of_every_kind(use, names):
    ep = exported(lambda self, x: use(mixed(x)), torch.randn(3))
    tree = assert_json_is_pytorchs(ep)
    kinds = [output.type for output in tree.graph_module.graph.nodes[0].outputs]
    assert kinds == ["as_tensor", "as_tensors", "as_sym_int", "as_sym_float", "as_sym_bool", "as_none"]
    ep.graph.eliminate_dead_code()
    assert_json_is_pytorchs(ep)


def test_calls_that_yield_nothing():
    def forward(self, x):
        no_result(x)
        maybe_none(x)
        return x + 1

    nodes = assert_json_is_pytorchs(exported(forward, torch.ones(2))).graph_module.graph.nodes
    assert [[output.type for output in node.outputs] for node in nodes] == [[], ["as_none"], ["as_tensor"]]


def test_lists_that_yield_no_tensor_are_refused():
    """PyTorch leaves out a None in a list of tensors, so that the ones behind it move up."""
    with pytest.raises(SerializeError, match=r"some_missing: expected tensors in a list .* found NoneType"):
        export_program(exported(lambda self, x: some_missing(x)[0], torch.ones(2)))
    with pytest.raises(SerializeError, match="list_of_sizes: expected a tensor, a number or None as value"):
        export_program(
            exported(lambda self, x: x + list_of_sizes(x)[0], torch.ones(2), shapes=({0: Dim.AUTO},))
        )


# Two getitem nodes that take out the same value: transformations leave such graphs.


def _split_with_a_repeated_getitem():
    def forward(self, x):
        left, right = x.split(2)
        return left + right, left

    ep = exported(forward, torch.randn(4))
    first = node_named(ep, "getitem")
    with ep.graph.inserting_after(first):
        again = ep.graph.call_function(operator.getitem, first.args)
    again.meta = dict(first.meta)
    return ep, first, again


def test_a_repeated_getitem_is_written_as_the_first_one():
    ep, first, again = _split_with_a_repeated_getitem()
    node_named(ep, "add").args = (again, first)
    tree = assert_json_is_pytorchs(ep)
    assert [named.arg.as_tensor.name for named in tree.graph_module.graph.nodes[1].inputs] == ["getitem"] * 2


def test_a_repeated_getitem_in_lists_and_outputs_where_pytorch_gives_up():
    ep, first, again = _split_with_a_repeated_getitem()
    add = node_named(ep, "add")
    with ep.graph.inserting_before(add):
        cat = ep.graph.call_function(torch.ops.aten.cat.default, ([again, first],))
    cat.meta = dict(add.meta)
    ep.graph.output_node().args = ((add, again),)
    ep.graph_signature.output_specs[1].arg.name = again.name
    module = export_program(ep).graph_module
    assert [tensor.name for tensor in module.graph.nodes[1].inputs[0].arg.as_tensors] == ["getitem"] * 2
    assert module.graph.outputs[1].as_tensor.name == "getitem"
    assert module.signature.output_specs[1].user_output.arg.as_tensor.name == "getitem"


def test_a_repeated_getitem_does_not_touch_its_namesake_in_a_subgraph():
    """PyTorch replaces the name in later subgraphs too, and so adds a part to itself there."""

    def forward(self, x):
        def thirds(x):
            first, second, third = x.split(2)
            return first * 1 + second * 2 + third * 3

        left, right = x.split(3)
        return torch.cond(x.sum() > 0, thirds, lambda x: x[:2] + 1, (x,)) + left.sum() + right.sum()

    ep = exported(forward, torch.randn(6))
    first = node_named(ep, "getitem")
    node_named(ep, "getitem_1").name = "other"
    with ep.graph.inserting_after(first):
        again = ep.graph.call_function(operator.getitem, first.args)
    again.name, again.meta = "getitem_1", dict(first.meta)
    node_named(ep, "sum_2").args = (again,)

    def operands(program):
        (call,) = (
            node for node in program["graph_module"]["graph"]["nodes"] if node["target"].endswith("cond")
        )
        nodes = call["inputs"][1]["arg"]["as_graph"]["graph"]["nodes"]
        return [node["inputs"][0]["arg"]["as_tensor"]["name"] for node in nodes if "mul" in node["target"]]

    assert operands(json_codec.to_plain(export_program(ep))) == ["getitem", "getitem_1", "getitem_2"]
    assert operands(pytorch_json(ep)) == ["getitem", "getitem", "getitem_2"]


@pytest.mark.parametrize("index", [-3, 2, slice(0, 1)])
def test_a_getitem_that_names_no_output_is_refused(index):
    ep = exported(lambda self, x: x.split(2)[0] + 1, torch.randn(4))
    node_named(ep, "getitem").args = (node_named(ep, "split"), index)
    with pytest.raises(SerializeError, match="getitem"):
        export_program(ep)


# Higher-order operators.


def _cond(self, x):
    def inner(x):
        return torch.cond(x.sum() > 1, lambda x: (x.sin(), x + 1), lambda x: (x.cos(), x - 1), (x,))

    return torch.cond(x.shape[0] > 3, inner, lambda x: (self.linear(x), x * x.shape[0]), (x,))


def _while(self, x):
    return while_loop(lambda i, x: i.sum() < 10, lambda i, x: (i + 1, x * 2), (torch.tensor(0), x))


def _modes(self, x):
    with torch.no_grad():
        y = x * 2
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = x @ x.t()
    return y, z


HIGHER_ORDER = {
    "cond": _cond,
    "map": lambda self, x: map_over(lambda row, y: row + y, x, torch.ones(3)),
    "while": _while,
    "scan": lambda self, x: scan(lambda carry, row: (carry + row, carry * 2), torch.ones(3), x),
    "associative_scan": lambda self, x: associative_scan(torch.add, x, 0, combine_mode="generic"),
    "modes": _modes,
    "checkpoint": lambda self, x: torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False),
    "vmap": lambda self, x: torch.vmap(lambda row: row.sin() + 1)(x),
    "jvp": lambda self, x: torch.func.jvp(torch.sin, (x,), (x,)),
}


@pytest.mark.parametrize("shapes", [None, ({0: Dim.AUTO},)], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", HIGHER_ORDER)
def test_higher_order_operators_and_function_transforms(name, shapes):
    attributes = {"linear": torch.nn.Linear(3, 3)}
    assert_json_is_pytorchs(
        exported(HIGHER_ORDER[name], torch.randn(5, 3), shapes=shapes, attributes=attributes)
    )


def test_a_subgraph_is_written_where_it_is_passed():
    ep = exported(
        _cond, torch.randn(5, 3), shapes=({0: Dim.AUTO},), attributes={"linear": torch.nn.Linear(3, 3)}
    )
    (call,) = (node for node in export_program(ep).graph_module.graph.nodes if node.target.endswith(".cond"))
    assert [named.arg.type for named in call.inputs] == ["as_sym_bool", "as_graph", "as_graph", "as_tensors"]
    assert call.is_hop_single_tensor_return is False
    inner = call.inputs[1].arg.as_graph.graph.nodes
    assert "torch.ops.higher_order.cond" in {node.target for node in inner}


# Refusals, each with the path of the node.


def test_a_function_that_is_not_written_yet_is_refused_by_node():
    ep = exported(lambda self, x: x * abs(x.shape[0] - 9), torch.randn(5), shapes=({0: Dim.AUTO},))
    node_named(ep, "abs_1").target = operator.not_
    with pytest.raises(SerializeError, match=r"^abs_1: .* found the function _operator\.not_"):
        export_program(ep)


@pytest.mark.parametrize(
    ("operator_name", "what"),
    [
        ("triton_kernel_wrapper_functional", "Triton kernels"),
        ("triton_kernel_wrapper_mutation", "Triton kernels"),
    ],
)
def test_higher_order_operators_that_need_more_are_refused_by_name(operator_name, what):
    from torch._higher_order_ops import triton_kernel_wrap  # noqa: F401

    ep = exported(lambda self, x: x + 1, torch.ones(2))
    node_named(ep, "add").target = getattr(torch.ops.higher_order, operator_name)
    with pytest.raises(SerializeError, match=f"^add: {what}.* cannot be written yet.*{operator_name}$"):
        export_program(ep)


def test_arguments_beyond_the_schema_are_refused():
    ep = exported(lambda self, x: x.relu(), torch.ones(2))
    relu = node_named(ep, "relu")
    relu.args = (*relu.args, 1)
    with pytest.raises(
        SerializeError, match=r"^relu: expected arguments of aten::relu.*, found 2 positional"
    ):
        export_program(ep)
