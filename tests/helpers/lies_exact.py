"""Lies in the fields of our own about calls, inputs and outputs: that they say what PyTorch's fields say."""

from __future__ import annotations

from pt2wire.generated import types
from pt2wire.operators import APPLIED, CALLEES

from .lies import ENUM, GRAPH, IN_COND, NODE, Tree, Value, index_of, lie, node_of, sign


def _exact(tree: Tree, operands: Value) -> list[types.NamedValue]:
    """Exact inputs of the call of `cond`, honest but for its operands."""
    sign(tree)
    assert index_of(tree, "cond") == 5
    node = node_of(tree, "cond")
    node.exact_inputs = [types.NamedValue("", None) for _ in node.inputs]
    node.exact_inputs[3].value = operands
    return node.exact_inputs


OPERANDS = Value.of_tuple([Value.of_tensor(types.TensorArgument("addmm"))])


@lie("exact", f"{NODE}.exact_inputs", f"expected as many as inputs, found 1 fewer{IN_COND}")
def exact_inputs_too_few(tree: Tree) -> None:
    _exact(tree, OPERANDS).pop()


@lie(
    "exact",
    f"{NODE}.exact_inputs[4].name",
    f"expected one of the inputs, each once, found 'more'{IN_COND}",
)
def exact_input_of_another_name(tree: Tree) -> None:
    _exact(tree, OPERANDS).append(types.NamedValue("more", None))


@lie(
    "exact",
    f"{NODE}.exact_inputs[3].value",
    f"expected the value of the input, but for containers, found another{IN_COND}",
)
def exact_input_of_another_value(tree: Tree) -> None:
    _exact(tree, Value.of_tuple([Value.of_tensor(types.TensorArgument("x"))]))


@lie(
    "undefined-name",
    f"{NODE}.exact_inputs[3].value",
    f"expected a value that is defined before, found 'sin'{IN_COND}",
)
def exact_input_that_comes_later(tree: Tree) -> None:
    _exact(tree, Value.of_tuple([Value.of_tensor(types.TensorArgument("sin"))]))


@lie("depth", f"{NODE}.exact_inputs[3].value", f"expected at most 32 nested containers, found more{IN_COND}")
def exact_input_without_end(tree: Tree) -> None:
    value = OPERANDS
    for _ in range(40):
        value = Value.of_tuple([value])
    _exact(tree, value)


@lie("exact", f"{NODE}.exact_inputs[3].value", f"expected strings as keys, found others{IN_COND}")
def exact_input_with_a_number_as_key(tree: Tree) -> None:
    _exact(tree, Value.of_dict([types.ValueItem(Value.of_int(1), Value.of_int(1))]))


@lie(
    "writer",
    "writer",
    f"expected the writer of the program's own fields, such as {NODE}.exact_inputs, found none",
)
def own_fields_of_nobody(tree: Tree) -> None:
    _exact(tree, OPERANDS)
    tree.writer = None


@lie("exact", "range_constraints['zuf9'].min_float", "expected a number that rounds to 2, found 7.5")
def fraction_that_rounds_to_another(tree: Tree) -> None:
    sign(tree)
    tree.range_constraints["zuf9"] = types.RangeConstraint(2, 64, min_float=7.5)


@lie("exact", "range_constraints['zuf9'].max_float", "expected a number that rounds to 64, found nan")
def fraction_that_is_no_number(tree: Tree) -> None:
    sign(tree)
    tree.range_constraints["zuf9"] = types.RangeConstraint(2, 64, max_float=float("nan"))


@lie("range", "range_constraints['s77']", "expected a range of integers, found one of floats, for 's77'")
def fraction_as_bound_of_a_size(tree: Tree) -> None:
    sign(tree)
    tree.range_constraints["s77"] = types.RangeConstraint(2, 64, min_float=1.5)


@lie("range", "range_constraints['zuf9']", "expected a range of integers, found one of floats, for 'zuf9'")
def symbol_of_floats_as_a_size(tree: Tree) -> None:
    size = types.SymInt.of_expr(types.SymExpr("Symbol('zuf9')"))
    tree.graph_module.graph.tensor_values["x"].sizes[1] = size
    tree.range_constraints["zuf9"] = types.RangeConstraint(2, 64)


@lie("range", "range_constraints['2*s77']", "expected a range of integers, found one of floats, for '2*s77'")
def fraction_as_bound_of_a_derived_size(tree: Tree) -> None:
    sign(tree)
    tree.range_constraints["2*s77"] = types.RangeConstraint(2, 64, max_float=64.5)


@lie("exact", "beyond", "expected what PyTorch cannot express, or no list, found an empty one")
def nothing_that_pytorch_cannot_express(tree: Tree) -> None:
    sign(tree)
    tree.beyond = []


@lie("exact", f"{NODE}.subgraphs", f"expected exact_inputs that name the subgraphs, found none{IN_COND}")
def subgraphs_that_nothing_names(tree: Tree) -> None:
    sign(tree)
    node = node_of(tree, "cond")
    node.subgraphs = [types.GraphArgument("mask", node.inputs[1].arg.as_graph.graph)]


@lie(
    "exact",
    f"{NODE}.exact_inputs[3].value",
    f"expected one of the node's subgraphs, found 'true_graph_0'{IN_COND}",
)
def exact_input_with_a_subgraph_of_nobody(tree: Tree) -> None:
    _exact(tree, Value.of_tuple([Value.of_subgraph("true_graph_0")]))


@lie(
    "exact",
    f"{NODE}.exact_inputs[3].value",
    f"expected a member of an enum, MODULE:NAME, found 'os.system.x'{IN_COND}",
)
def exact_input_with_a_function_as_enum(tree: Tree) -> None:
    _exact(tree, Value.of_tuple([Value.of_enum(types.EnumMember("os.system", "x"))]))


def _pair(values: list[Value]) -> Value:
    return Value.of_named_tuple(types.NamedTupleValue("geometry:Point", ["x"], values))


@lie(
    "exact",
    f"{NODE}.exact_inputs[3].value",
    f"expected as many items of a named tuple as it has fields, 1, found 2{IN_COND}",
)
def exact_input_with_more_items_than_fields(tree: Tree) -> None:
    _exact(tree, _pair([Value.of_tensor(types.TensorArgument("addmm")), Value.of_int(1)]))


@lie(
    "exact",
    f"{NODE}.exact_inputs[3].value",
    f"expected the value of the input, but for containers, found another{IN_COND}",
)
def exact_input_of_a_named_tuple_of_something_else(tree: Tree) -> None:
    _exact(tree, _pair([Value.of_tensor(types.TensorArgument("x"))]))


@lie("exact", f"{GRAPH}.exact_output", "expected as many items of a named tuple as it has fields, 1, found 3")
def exact_output_with_more_items_than_fields(tree: Tree) -> None:
    sign(tree)
    outputs = tree.graph_module.graph.outputs
    tree.graph_module.graph.exact_output = _pair(
        [Value.create(**{argument.type: argument.value}) for argument in outputs]
    )


@lie(
    "exact",
    f"{NODE}.exact_inputs[3].value",
    f"expected the value of the input, but for containers, found another{IN_COND}",
)
def exact_input_where_nothing_stands_in(tree: Tree) -> None:
    _exact(tree, Value.of_tuple([Value.of_int(1)]))
    tree.beyond = ["something else"]


@lie(
    "exact",
    f"{NODE}.exact_inputs[3].value",
    f"expected the value of the input, but for containers, found another{IN_COND}",
)
def exact_input_that_needs_nothing_in_its_place(tree: Tree) -> None:
    _exact(tree, Value.of_tensor(types.TensorArgument("addmm")))
    tree.beyond = ["something else"]
    node_of(tree, "cond").inputs[3].arg = types.Argument.of_none(True)


@lie("exact", f"{GRAPH}.exact_output", "expected the outputs, but for containers, found others")
def exact_output_that_is_a_container(tree: Tree) -> None:
    sign(tree)
    tree.beyond = ["something else"]
    graph, specs = tree.graph_module.graph, tree.graph_module.signature.output_specs
    none = types.Argument.of_none(True)
    graph.outputs[-1], specs[-1] = none, types.OutputSpec.of_user_output(types.UserOutputSpec(none))
    exact = [Value.create(**{argument.type: argument.value}) for argument in graph.outputs[:-1]]
    graph.exact_output = Value.of_tuple([*exact, Value.of_list([Value.of_int(1), Value.of_none(True)])])


@lie("exact", f"{GRAPH}.exact_output", "expected the outputs, but for containers, found others")
def exact_output_of_another_value(tree: Tree) -> None:
    sign(tree)
    outputs = tree.graph_module.graph.outputs
    exact = [Value.create(**{argument.type: argument.value}) for argument in outputs]
    tree.graph_module.graph.exact_output = Value.of_tuple([*exact[:-1], Value.of_int(1)])


@lie("exact", f"{GRAPH}.exact_output", "expected 3 outputs, found as_none")
def exact_output_that_is_none(tree: Tree) -> None:
    sign(tree)
    tree.graph_module.graph.exact_output = Value.of_none(True)


def _order(tree: Tree) -> list[str]:
    sign(tree)
    graph = tree.graph_module.graph
    graph.order = [name for node in graph.nodes if (name := node.name) is not None]
    return graph.order


@lie("exact", f"{GRAPH}.order", "expected the calls in the order of `nodes`, found another")
def order_that_turns_calls_around(tree: Tree) -> None:
    _order(tree).reverse()


@lie("exact", f"{GRAPH}.order", "expected each name once, found one again")
def order_with_a_name_twice(tree: Tree) -> None:
    order = _order(tree)
    order += ["output", "output"]


CONSTANT = "graph_module.signature.input_specs[4].constant_input"


def _enum_input(tree: Tree, exact: Value, *, is_none: bool = True) -> None:
    """An input that is a member of an enum, in place of a text."""
    sign(tree)
    tree.beyond = ["the input `mode`, a member of an enum"]
    constant = tree.graph_module.signature.input_specs[4].constant_input
    constant.exact_value = exact
    if is_none:
        constant.value = types.ConstantValue.of_none(True)
        tree.graph_module.graph.inputs[4] = types.Argument.of_none(True)


@lie(
    "exact",
    f"{CONSTANT}.exact_value",
    "expected None where the exact value stands in for a constant, found as_string",
)
def enum_input_beside_a_text(tree: Tree) -> None:
    _enum_input(tree, ENUM, is_none=False)


@lie("exact", f"{CONSTANT}.exact_value", "expected a member of an enum, MODULE:NAME, found as_int")
def enum_input_that_is_a_number(tree: Tree) -> None:
    _enum_input(tree, Value.of_int(1))


@lie("exact", f"{CONSTANT}.exact_value", "expected a member of an enum, MODULE:NAME, found as_enum")
def enum_input_whose_class_is_code(tree: Tree) -> None:
    _enum_input(tree, Value.of_enum(types.EnumMember("signal:Signals.__init__()", "SIGINT")))


@lie(
    "exact",
    f"{CONSTANT}.exact_value",
    "expected a program that says what PyTorch cannot express of it, found none",
)
def enum_input_that_pytorch_lacks(tree: Tree) -> None:
    _enum_input(tree, ENUM)
    tree.beyond = None


APPLY = "in node 'cond' (torch.ops.higher_order.flat_apply)"


def _apply(tree: Tree, text: str = APPLIED[0], callee: str | None = CALLEES[0], leaves: int = 1) -> None:
    """A call of `flat_apply` in place of that of `cond`."""
    sign(tree)
    tree.beyond = ["calls of flat_apply"]
    nodes = types.TreeSpecNode
    spec = [nodes("builtins.tuple", None, 2), nodes("builtins.tuple", None, leaves), *[nodes("")] * leaves]
    spec.append(nodes("builtins.dict", Value.of_list([])))
    tree.graph_module.graph.structures = [
        types.GraphStructure(name="call", target="call", callee=callee),
        types.GraphStructure(name="nest", target="nest", spec=spec),
    ]
    node = node_of(tree, "cond")
    node.target = "torch.ops.higher_order.flat_apply"
    none = types.Argument.of_none(True)
    node.inputs = [
        types.NamedArgument("", argument, types.ArgumentKind.POSITIONAL)
        for argument in (none, none, types.Argument.of_string(text))
    ]
    exact = [Value.of_structure("call"), Value.of_structure("nest"), None]
    node.exact_inputs = [types.NamedValue("", value) for value in exact]


@lie("flat-apply", f"{NODE}.inputs[2]", f"expected a class of {APPLIED[0]}, found 'os.system', {APPLY}")
def applied_class_of_another_name(tree: Tree) -> None:
    _apply(tree, text="os.system")


@lie(
    "flat-apply",
    f"{GRAPH}.structures[0].callee",
    f"expected a tree spec, or a function of {CALLEES[0]}, found 'os.system'",
)
def applied_function_of_another_name(tree: Tree) -> None:
    _apply(tree, callee="os.system")


@lie("flat-apply", f"{NODE}.inputs", f"expected 2 values for the tree spec, found 1, {APPLY}")
def applied_to_too_few_values(tree: Tree) -> None:
    _apply(tree, leaves=2)


@lie(
    "flat-apply",
    f"{NODE}.inputs",
    f"expected a tree spec of positional arguments, a text first, found another, {APPLY}",
)
def applied_to_nothing(tree: Tree) -> None:
    _apply(tree, leaves=0)
