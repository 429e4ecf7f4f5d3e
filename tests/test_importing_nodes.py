"""Nodes: calls, arguments and outputs of every kind, with every file's way of naming them."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from pt2wire.errors import DeserializeError, UnsafeArtifactError
from pt2wire.generated import types
from pt2wire.importing.arguments import import_argument
from pt2wire.importing.graph import import_graph
from pt2wire.importing.symbols import Symbols
from pt2wire.importing.targets import find_target
from pt2wire.importing.values import Program, Values
from pt2wire.operators import HIGHER_ORDER, NOT_YET, SYMBOLIC_FUNCTIONS
from pt2wire.validation.arguments import _USES
from torch.fx import Graph

_POSITIONAL, _KEYWORD = types.ArgumentKind.POSITIONAL, types.ArgumentKind.KEYWORD
A = types.Argument


def _tensor_meta() -> types.TensorMeta:
    return types.TensorMeta(
        dtype=types.ScalarType.FLOAT,
        sizes=[types.SymInt.of_int(2)],
        strides=[types.SymInt.of_int(1)],
        requires_grad=False,
        device=types.Device(type="cpu"),
        storage_offset=types.SymInt.of_int(0),
        layout=types.Layout.Strided,
    )


def _tensor(name: str) -> types.Argument:
    return A.of_tensor(types.TensorArgument(name=name))


def _tensors(*names: str) -> types.Argument:
    return A.of_tensors([types.TensorArgument(name=name) for name in names])


def _input(
    name: str, arg: types.Argument, kind: types.ArgumentKind | None = _POSITIONAL
) -> types.NamedArgument:
    return types.NamedArgument(name=name, arg=arg, kind=kind)


def _node(
    target: str, inputs: list[types.NamedArgument], outputs: list[types.Argument], **more: Any
) -> types.Node:
    return types.Node(target=target, inputs=inputs, outputs=outputs, **{"metadata": {}, **more})


def _graph(
    *nodes: types.Node, inputs: tuple[str, ...] = ("x",), outputs: tuple[str, ...] = ()
) -> types.Graph:
    names = [*inputs]
    for node in nodes:
        for output in node.outputs:
            if output.type == "as_tensor":
                names.append(output.as_tensor.name)
            elif output.type == "as_tensors":
                names += [item.name for item in output.as_tensors]
    return types.Graph(
        inputs=[_tensor(name) for name in inputs],
        outputs=[_tensor(name) for name in outputs],
        nodes=list(nodes),
        tensor_values={name: _tensor_meta() for name in names},
        sym_int_values={"n": types.SymInt.of_int(7)},
        sym_bool_values={"b": types.SymBool.of_bool(True)},
        sym_float_values={"f": types.SymFloat.of_float(2.5)},
    )


def _read(graph: types.Graph) -> Values:
    return import_graph(graph, Program(Symbols({})))


def _text(graph: types.Graph) -> list[str]:
    """The graph, a line a node, without its heading."""
    return [str(line).strip() for line in str(_read(graph).graph).splitlines() if "=" in line]


_RELU = _node("torch.ops.aten.relu.default", [_input("self", _tensor("x"))], [_tensor("y")], name="y")


def test_positional_and_keyword_arguments() -> None:
    node = _node(
        "torch.ops.aten.add.Tensor",
        [
            _input("self", _tensor("x")),
            _input("other", _tensor("x"), _KEYWORD),
            _input("alpha", A.of_int(2), _KEYWORD),
        ],
        [_tensor("y")],
        name="y",
    )
    assert _text(_graph(node))[1] == (
        "%y : [num_users=0] = call_function[target=torch.ops.aten.add.Tensor](args = (%x,), kwargs "
        "= {other: %x, alpha: 2})"
    )


def test_files_that_do_not_say_which_arguments_are_positional() -> None:
    node = _node(
        "torch.ops.aten.add.Tensor",
        [
            _input("self", _tensor("x"), None),
            _input("alpha", A.of_int(2), None),
            _input("other", _tensor("x"), None),
        ],
        [_tensor("y")],
    )
    assert _text(_graph(node))[1] == (
        "%y : [num_users=0] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, %x), "
        "kwargs = {alpha: 2})"
    )


def test_a_keyword_of_python_becomes_positional() -> None:
    node = _node(
        "torch.ops.aten.uniform.default",
        [
            _input("self", _tensor("x")),
            _input("from", A.of_float(0.5), _KEYWORD),
            _input("to", A.of_float(2.0), _KEYWORD),
        ],
        [_tensor("y")],
    )
    assert "args = (%x, 0.5), kwargs = {to: 2.0}" in _text(_graph(node))[1]


_ARGUMENTS: list[tuple[types.Argument, Any]] = [
    (A.of_none(True), None),
    (A.of_int(3), 3),
    (A.of_float(2.5), 2.5),
    (A.of_bool(True), True),
    (A.of_string("sum"), "sum"),
    (A.of_complex(types.ComplexValue(real=1.0, imag=-2.0)), 1 - 2j),
    (A.of_ints([1, 2]), [1, 2]),
    (A.of_ints([]), []),
    (A.of_floats([1.5]), [1.5]),
    (A.of_bools([True, False]), [True, False]),
    (A.of_strings(["a", "b"]), ["a", "b"]),
    (A.of_int_lists([[1, 2], [3]]), [(1, 2), (3,)]),
    (A.of_float_lists([[1.0], []]), [[1.0], []]),
    (A.of_scalar_type(types.ScalarType.BFLOAT16), torch.bfloat16),
    (A.of_layout(types.Layout.Strided), torch.strided),
    (A.of_memory_format(types.MemoryFormat.ChannelsLast), torch.channels_last),
    (A.of_device(types.Device(type="cuda", index=0)), torch.device("cuda", 0)),
    (A.of_operator("torch.ops.aten.mm.default"), torch.ops.aten.mm.default),
    (A.of_operator("torch.ops.higher_order.cond"), torch.ops.higher_order.cond),
    (A.of_sym_int(types.SymIntArgument.of_int(4)), 4),
    (A.of_sym_float(types.SymFloatArgument.of_float(4.5)), 4.5),
    (A.of_sym_bool(types.SymBoolArgument.of_bool(False)), False),
    (A.of_tensor(types.TensorArgument(name="x")), "x"),
    (A.of_sym_int(types.SymIntArgument.of_name("x")), "x"),
    (A.of_sym_ints([types.SymIntArgument.of_int(1), types.SymIntArgument.of_name("x")]), [1, "x"]),
    (
        A.of_sym_floats([types.SymFloatArgument.of_float(1.5), types.SymFloatArgument.of_name("x")]),
        [1.5, "x"],
    ),
    (A.of_sym_bools([types.SymBoolArgument.of_bool(True), types.SymBoolArgument.of_name("x")]), [True, "x"]),
    (A.of_tensors([]), []),
    (A.of_tensors([types.TensorArgument(name="x")] * 2), ["x", "x"]),
    (A.of_nested_tensors([[types.TensorArgument(name="x")], []]), [["x"], []]),
    (A.of_optional_tensor(types.OptionalTensorArgument.of_none(True)), None),
    (
        A.of_optional_tensors(
            [
                types.OptionalTensorArgument.of_none(True),
                types.OptionalTensorArgument.of_tensor(types.TensorArgument(name="x")),
            ]
        ),
        [None, "x"],
    ),
    (
        A.of_string_to_argument({"k": A.of_int(1), "l": A.of_tensor(types.TensorArgument(name="x"))}),
        {"k": 1, "l": "x"},
    ),
]


@pytest.mark.parametrize(("argument", "expected"), _ARGUMENTS, ids=lambda value: getattr(value, "type", ""))
def test_every_kind_of_argument(argument: types.Argument, expected: Any) -> None:
    values = Values(Program(Symbols({})), _graph(), {})
    node = values.nodes["x"] = values.graph.placeholder("x")

    def with_node(value: Any) -> Any:
        if isinstance(value, list):
            return [with_node(item) for item in value]
        if isinstance(value, dict):
            return {key: with_node(item) for key, item in value.items()}
        return node if value == "x" else value

    found, wanted = import_argument(argument, values), with_node(expected)
    assert found == wanted
    assert type(found) is type(wanted)
    if isinstance(found, list):
        assert list(map(type, found)) == list(map(type, wanted))


def test_every_member_of_argument_is_read_or_refused_with_a_reason() -> None:
    covered = {argument.type for argument, _ in _ARGUMENTS}
    assert set(types.Argument.FIELD_IDS) - covered == {"as_graph", "as_custom_obj"}
    assert set(_USES) == set(types.Argument.FIELD_IDS)  # validation asks each what it uses


def test_custom_objects_that_are_not_there_are_refused() -> None:
    custom = A.of_custom_obj(types.CustomObjArgument(name="o", class_fqn="a.B"))
    node = _node("torch.ops.aten.relu.default", [_input("self", custom)], [_tensor("y")], name="y")
    with pytest.raises(DeserializeError) as caught:
        _read(_graph(_RELU.__class__(**{**_fields(_RELU), "outputs": [_tensor("z")], "name": "z"}), node))
    assert str(caught.value) == (
        "nodes[1].inputs[0].arg.as_custom_obj: expected the object 'o' of class a.B among the constants, "
        "found none, in node 'y'"
    )


def _fields(node: types.Node) -> dict[str, Any]:
    return {name: getattr(node, name) for name in node.FIELD_IDS}


@pytest.mark.parametrize("kind", [_POSITIONAL, _KEYWORD, None])
def test_functions_over_symbolic_numbers_take_all_by_position(kind: types.ArgumentKind | None) -> None:
    """Files before 8.9 do not say which arguments are positional; these functions take no others."""
    inputs = [_input(name, A.of_sym_int(types.SymIntArgument.of_int(2)), kind) for name in ("a", "b")]
    node = _node("_operator.add", inputs, [A.of_sym_int(types.SymIntArgument.of_name("n"))], name="n")
    assert _read(_graph(node)).nodes["n"].args == (2, 2)


@pytest.mark.parametrize("name", [None, "wrap"])
def test_a_call_whose_only_output_comes_in_a_tuple_has_a_name_of_its_own(name: str | None) -> None:
    node = _node("torch.ops.higher_order.wrap", [], [_tensor("y")], name=name)
    values = _read(_graph(node, outputs=("y",)))
    assert [n.name for n in values.graph.nodes] == ["x", "wrap", "y", "output"]
    values.graph.lint()


@pytest.mark.parametrize("name", NOT_YET)
def test_what_is_not_read_yet_says_so(name: str) -> None:
    with pytest.raises(DeserializeError, match=f"{re.escape(NOT_YET[name])} cannot be read yet"):
        find_target(f"torch.ops.higher_order.{name}")


# -- outputs ----------------------------------------------------------------------------------------------


def test_several_outputs_are_taken_apart() -> None:
    node = _node(
        "torch.ops.aten.max.dim",
        [_input("self", _tensor("x")), _input("dim", A.of_int(0))],
        [_tensor("values"), _tensor("indices")],
        name="max_1",
        metadata={"stack_trace": "here"},
    )
    values = _read(_graph(node))
    assert [n.name for n in values.graph.nodes] == ["x", "max_1", "values", "indices", "output"]
    first = values.nodes["values"]
    assert (first.target, first.args[1]) == (operator.getitem, 0)
    assert first.meta["stack_trace"] == values.nodes["max_1"].meta["stack_trace"] == "here"
    assert values.nodes["max_1"].meta["val"] == (first.meta["val"], values.nodes["indices"].meta["val"])


def test_a_list_output_is_taken_apart_even_if_it_is_empty() -> None:
    inputs = [_input("self", _tensor("x"))]
    values = _read(_graph(_node("torch.ops.aten.unbind.int", inputs, [_tensors("a", "b")], name="unbind")))
    assert [n.name for n in values.graph.nodes] == ["x", "unbind", "a", "b", "output"]
    assert type(values.nodes["unbind"].meta["val"]) is list
    values = _read(_graph(_node("torch.ops.aten.unbind.int", inputs, [_tensors()], name="unbind")))
    assert values.nodes["unbind"].meta["val"] == []


def test_lists_and_nothing_among_the_outputs() -> None:
    node = _node(
        "torch.ops.higher_order.wrap",
        [],
        [_tensors("a", "b"), A.of_none(True), A.of_sym_int(types.SymIntArgument.of_name("n"))],
        name="wrap",
        is_hop_single_tensor_return=False,
    )
    values = _read(_graph(node))
    names = [(n.name, n.args[1]) for n in values.graph.nodes if n.target is operator.getitem]
    assert names == [("getitem", 0), ("a", 0), ("b", 1), ("n", 2)]
    listed, nothing, number = values.nodes["wrap"].meta["val"]
    assert (len(listed), nothing, number) == (2, None, 7)


def test_outputs_that_nothing_took_out_have_no_nodes() -> None:
    node = _node(
        "torch.ops.higher_order.wrap",
        [],
        [_tensor("wrap_unused_0"), _tensors("wrap_unused_1_0", "wrap_unused_1_1"), _tensor("y")],
        name="wrap",
    )
    values = _read(_graph(node))
    assert [n.name for n in values.graph.nodes] == ["x", "wrap", "y", "output"]
    _, second, third = values.nodes["wrap"].meta["val"]
    assert (len(second), third) == (2, values.nodes["y"].meta["val"])
    node.outputs[1] = _tensors("getitem_1_unused_0", "z")
    values = _read(_graph(node))
    assert [n.name for n in values.graph.nodes] == ["x", "wrap", "getitem", "z", "y", "output"]


def test_names_that_the_format_does_not_keep_evade_those_that_it_keeps() -> None:
    node = _node("torch.ops.higher_order.wrap", [], [_tensors("a"), _tensor("getitem")], name="wrap")
    names = [n.name for n in _read(_graph(node)).graph.nodes]
    assert len(set(names)) == len(names) == 6
    assert "getitem" in names


@pytest.mark.parametrize(
    ("single", "names"),
    [(True, ["x", "y"]), (False, ["x", "wrap", "y"]), (None, ["x", "wrap", "y"])],
)
def test_one_tensor_or_a_tuple_of_one(single: bool | None, names: list[str]) -> None:
    node = _node(
        "torch.ops.higher_order.wrap", [], [_tensor("y")], name="wrap", is_hop_single_tensor_return=single
    )
    assert [n.name for n in _read(_graph(node)).graph.nodes][:-1] == names


def test_nothing_as_the_only_output_keeps_the_nodes_name() -> None:
    node = _node(
        "torch.ops.higher_order.wrap", [], [A.of_none(True)], name="wrap_7", is_hop_single_tensor_return=False
    )
    values = _read(_graph(node))
    (call,) = (n for n in values.graph.nodes if n.op == "call_function")
    assert (call.name, call.meta["val"]) == ("wrap_7", None)


def test_a_node_without_outputs_has_no_value() -> None:
    condition = A.of_sym_bool(types.SymBoolArgument.of_bool(True))
    inputs = [_input("self", condition), _input("assert_msg", A.of_string("m"))]
    values = _read(_graph(_node("torch.ops.aten._assert_scalar.default", inputs, [], name="_assert_scalar")))
    assert "val" not in list(values.graph.nodes)[1].meta


def test_names_that_fx_would_change_are_kept() -> None:
    node = _node(
        "torch.ops.aten.relu.default", [_input("self", _tensor("input"))], [_tensor("sum")], name="sum"
    )
    assert [n.name for n in _read(_graph(node, inputs=("input",))).graph.nodes] == ["input", "sum", "output"]


def test_an_empty_module_stack_is_there_again() -> None:
    assert _read(_graph(_RELU)).nodes["y"].meta["nn_module_stack"] == {}


# -- subgraphs --------------------------------------------------------------------------------------------


def _subgraph(name: str, graph: types.Graph) -> types.Argument:
    return A.of_graph(types.GraphArgument(name=name, graph=graph))


def _wrap(*arguments: types.Argument, output: str = "z") -> types.Node:
    inputs = [_input("", argument) for argument in arguments]
    return _node(
        "torch.ops.higher_order.wrap",
        inputs,
        [_tensor(output)],
        name=output,
        is_hop_single_tensor_return=True,
    )


def test_a_subgraph_may_use_names_of_the_graph_around_it() -> None:
    inner = _graph(_RELU, outputs=("y",))
    values = _read(_graph(_wrap(_subgraph("body", inner), _tensor("x")), outputs=("z",)))
    assert [n.name for n in values.graph.nodes] == ["x", "body", "z", "output"]
    body = values.module.body
    assert isinstance(body, torch.fx.GraphModule)
    assert torch.equal(body(torch.tensor([-1.0, 1.0]))[0], torch.tensor([0.0, 1.0]))


def test_one_subgraph_under_one_name_may_be_given_twice() -> None:
    calls = [
        _wrap(_subgraph("body", _graph(_RELU, outputs=("y",))), _tensor("x"), output=name)
        for name in ("p", "q")
    ]
    values = _read(_graph(*calls))
    assert [n.target for n in values.graph.nodes if n.op == "get_attr"] == ["body", "body"]
    calls[1].inputs[0] = _input("", _subgraph("body", _graph(outputs=("x",))))
    with pytest.raises(
        DeserializeError, match="expected one subgraph named 'body', found two different ones"
    ):
        _read(_graph(*calls))


def test_a_subgraph_returns_a_tensor_or_a_tuple() -> None:
    inner = _graph(_RELU, outputs=("y",))
    inner.is_single_tensor_return = True
    body: Any = _read(_graph(_wrap(_subgraph("body", inner), _tensor("x")))).module.body
    assert torch.equal(body(torch.tensor([2.0])), torch.tensor([2.0]))
    inner.outputs.append(_tensor("x"))
    with pytest.raises(DeserializeError, match="expected one tensor as the only output, found 2"):
        _read(_graph(_wrap(_subgraph("body", inner), _tensor("x"))))


@pytest.mark.parametrize(
    "name", ["a b", "__import__('os')", "class", "", "forward", "graph", "code", "recompile"]
)
def test_names_of_subgraphs_are_identifiers_of_their_own(name: str) -> None:
    with pytest.raises(DeserializeError, match=r"as_graph: (expected|refused)"):
        _read(_graph(_wrap(_subgraph(name, _graph(outputs=("x",))), _tensor("x"))))


# -- targets ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SYMBOLIC_FUNCTIONS)
def test_symbolic_functions_are_found(name: str) -> None:
    assert callable(find_target(name))


@pytest.mark.parametrize("name", HIGHER_ORDER)
def test_higher_order_operators_are_found(name: str) -> None:
    allowed = frozenset([f"higher_order.{name}"])
    assert find_target(f"torch.ops.higher_order.{name}", allowed) is getattr(torch.ops.higher_order, name)


def test_operators_of_any_registered_namespace_are_found() -> None:
    with torch.library._scoped_library("pt2wire_tests", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor")
        assert find_target("torch.ops.pt2wire_tests.twice.default")._schema.name == "pt2wire_tests::twice"
    find_target.cache_clear()


_UNSAFE_TARGETS = [
    "os.system",
    "posix.system",
    "torch.load",
    "torch.hub.load",
    "torch.os.system",
    "torch.ops.aten.add.Tensor.__class__",
    "torch.ops.load_library",
    "torch.ops.aten.add",
    "torch.ops.higher_order.cond.__call__",
    "_operator.attrgetter",
    "_operator.methodcaller",
    "operator.add",
    "math.__loader__.load_module",
    "builtins.eval",
    "torch.ops.aten.from_file.default",
    "torch.ops.aten.set_.source_Storage",
    "torch.ops.inductor._reinterpret_tensor.default",
    "torch.ops.higher_order.print",
    "torch.ops.aten.add.Tensor; import os",
    "",
]


@pytest.mark.parametrize("target", _UNSAFE_TARGETS)
def test_targets_that_reach_further_are_refused(target: str) -> None:
    with pytest.raises(UnsafeArtifactError):
        find_target(target)


def test_unregistered_targets_leave_no_trace() -> None:
    before = len(list(torch.ops))
    for target in (
        "torch.ops.nobodys.op.default",
        "torch.ops.aten.no_such_op.default",
        "torch.ops.aten.add.__class__",
        "torch.ops.aten.add.NoSuch",
    ):
        with pytest.raises(DeserializeError, match=r"expected a registered operator, found torch\.ops"):
            find_target(target)
    assert len(list(torch.ops)) == before
    with pytest.raises(
        DeserializeError, match=r"expected a higher-order operator of aoti_call_delegate, associative_scan"
    ):
        find_target("torch.ops.higher_order.nobodys")
    with pytest.raises(DeserializeError, match="Triton kernels cannot be read yet"):
        find_target("torch.ops.higher_order.triton_kernel_wrapper_functional")
    with pytest.raises(
        DeserializeError, match=r"'somebodys' before loading, with pt2wire\.register_extension"
    ):
        find_target("#somebodys:op")


# -- what is refused --------------------------------------------------------------------------------------


def _changed(change: Callable[[types.Graph], None]) -> types.Graph:
    node = _node("torch.ops.aten.relu.default", [_input("self", _tensor("x"))], [_tensor("y")], name="y")
    graph = _graph(node, outputs=("y",))
    change(graph)
    return graph


def _rename_input(name: str) -> Callable[[types.Graph], None]:
    def change(graph: types.Graph) -> None:
        graph.inputs[0].as_tensor.name = name
        graph.tensor_values[name] = _tensor_meta()

    return change


_REFUSED: dict[str, tuple[Callable[[types.Graph], None], str]] = {
    "use before definition": (
        lambda graph: setattr(graph.nodes[0].inputs[0], "arg", _tensor("later")),
        "nodes[0].inputs[0].arg.as_tensor: expected a value defined before, found the name "
        "'later', in node 'y'",
    ),
    "second definition": (
        lambda graph: setattr(graph.nodes[0], "outputs", [_tensor("x")]),
        "nodes[0].outputs: expected a new name for a value, found 'x' again, in node 'y'",
    ),
    "value without metadata": (
        lambda graph: graph.tensor_values.pop("y"),
        "nodes[0].outputs: expected 'y' among the values that the graph lists, found it in none of "
        "them, in node 'y'",
    ),
    "code as name of an input": (
        _rename_input("x=__import__('os').system('true')"),
        "inputs[0]: expected an identifier as name, found \"x=__import__('os').system('true')\", "
        "which is not an "
        "identifier",
    ),
    "keyword as name of an input": (
        _rename_input("lambda"),
        "inputs[0]: expected an identifier as name, found 'lambda', which is a keyword of Python",
    ),
    "argument that the operator has not": (
        lambda graph: graph.nodes[0].inputs.append(_input("x=print(1)", A.of_int(1), _KEYWORD)),
        "nodes[0].inputs[1].name: expected an argument of aten::relu(Tensor self) -> Tensor, each "
        "once, found "
        "'x=print(1)', in node 'y'",
    ),
    "argument twice": (
        lambda graph: graph.nodes[0].inputs.append(_input("self", _tensor("x"))),
        "nodes[0].inputs[1].name: expected an argument of aten::relu(Tensor self) -> Tensor, each "
        "once, found "
        "'self', in node 'y'",
    ),
    "argument missing": (
        lambda graph: graph.nodes[0].inputs.clear(),
        "nodes[0].inputs: expected the argument 'self' of aten::relu(Tensor self) -> Tensor, found "
        "none, in node 'y'",
    ),
    "target": (
        lambda graph: setattr(graph.nodes[0], "target", "os.system"),
        "nodes[0].target: expected an operator such as torch.ops.aten.add.Tensor, or a function "
        "over symbolic "
        "numbers, found 'os.system', in node 'y'",
    ),
    "operator argument": (
        lambda graph: setattr(graph.nodes[0].inputs[0], "arg", A.of_operator("posix.system")),
        "nodes[0].inputs[0].arg.as_operator: expected an operator such as "
        "torch.ops.aten.add.Tensor, or a function "
        "over symbolic numbers, found 'posix.system', in node 'y'",
    ),
    "constant as output of a node": (
        lambda graph: setattr(graph.nodes[0], "outputs", [A.of_int(3)]),
        "nodes[0].outputs: expected a value with a name as output, found as_int, in node 'y'",
    ),
    "list as input": (
        lambda graph: graph.inputs.append(A.of_ints([1])),
        "inputs[1]: expected a tensor, a symbolic number or a constant as input, found as_ints",
    ),
    "list as output": (
        lambda graph: graph.outputs.append(_tensors("x")),
        "outputs[1]: expected a value or a constant as output, found as_tensors",
    ),
    "output that nothing defines": (
        lambda graph: graph.outputs.append(_tensor("z")),
        "outputs[1].as_tensor: expected a value defined before, found the name 'z'",
    ),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_a_graph_that_does_not_hold_together_is_refused(name: str) -> None:
    change, message = _REFUSED[name]
    with pytest.raises(DeserializeError) as caught:
        _read(_changed(change))
    assert str(caught.value) == message


def test_keyword_names_of_higher_order_calls_are_identifiers_each_once() -> None:
    node = _wrap(_subgraph("body", _graph(outputs=("x",))), _tensor("x"))
    node.inputs.append(_input("k=print(1)", A.of_int(1), _KEYWORD))
    with pytest.raises(
        DeserializeError, match=r"nodes\[0\].inputs\[2\].name: expected an identifier as name"
    ):
        _read(_graph(node))
    node.inputs[2:] = [_input("k", A.of_int(1), _KEYWORD), _input("k", A.of_int(1), _KEYWORD)]
    with pytest.raises(
        DeserializeError, match=r"nodes\[0\].inputs\[3\].name: expected each keyword argument once"
    ):
        _read(_graph(node))


def test_constant_inputs_have_the_names_of_the_signature() -> None:
    graph = types.Graph(
        inputs=[A.of_int(3), A.of_string("a"), A.of_none(True)],
        outputs=[A.of_int(4), A.of_string("b")],
        nodes=[],
        tensor_values={},
        sym_int_values={},
        sym_bool_values={},
    )
    specs = {
        0: types.InputToConstantInputSpec("size", types.ConstantValue.of_int(3)),
        2: types.InputToConstantInputSpec("nothing", types.ConstantValue.of_none(True)),
    }
    values = import_graph(graph, Program(Symbols({})), specs)
    assert [(n.name, n.meta["val"]) for n in values.graph.nodes] == [
        ("size", 3),
        ("arg1", "a"),
        ("nothing", None),
        ("output", (4, "b")),
    ]
    assert isinstance(values.graph, Graph)
