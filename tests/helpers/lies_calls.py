"""Lies about calls: of subgraphs, and of the program by its module call graph."""

from __future__ import annotations

import copy
import json

from pt2wire.generated import types

from .lies import CALLS, GRAPH, IN_COND, Tree, lie, node_of, sign


@lie(
    "module-calls",
    f"{CALLS}[0].signature.forward_arg_names[1]",
    "expected distinct names of arguments, found 'x' again",
)
def forward_arguments_of_one_name(tree: Tree) -> None:
    entry = tree.graph_module.module_call_graph[0].signature
    assert entry is not None and entry.forward_arg_names is not None
    entry.forward_arg_names[1] = entry.forward_arg_names[0]


@lie(
    "module-calls",
    f"{CALLS}[0].signature.forward_arg_names",
    "expected ['x', 'mode'] as the arguments are, found ['mode', 'x']",
)
def keywords_in_another_order(tree: Tree) -> None:
    entry = tree.graph_module.module_call_graph[0].signature
    assert entry is not None and entry.forward_arg_names is not None
    leaf = '{"type": null, "context": null, "children_spec": []}'
    keywords = json.dumps({"type": "builtins.dict", "context": '["x", "mode"]', "children_spec": [0, 0]})
    nothing = '{"type": "builtins.tuple", "context": "null", "children_spec": []}'
    children = f"[{nothing}, {keywords.replace('0', leaf)}]"
    entry.in_spec = f'[1, {{"type": "builtins.tuple", "context": "null", "children_spec": {children}}}]'
    entry.forward_arg_names.reverse()


@lie("subgraph", f"{GRAPH}.nodes[5].inputs", "expected 1 outputs of 'true_graph_0', found 0" + IN_COND)
def branches_without_outputs(tree: Tree) -> None:
    for branch in node_of(tree, "cond").inputs[1:3]:
        branch.arg.as_graph.graph.outputs.clear()


@lie(
    "exact", f"{GRAPH}.nodes[5].inputs[1].arg.as_graph.graph.custom", "expected a constant, found as_operator"
)
def note_on_a_branch_that_names_an_operator(tree: Tree) -> None:
    sign(tree)
    branch = node_of(tree, "cond").inputs[1].arg.as_graph.graph
    branch.custom = types.Value.of_operator("torch.ops.aten.relu.default")


@lie(
    "call-text",
    f"{GRAPH}.nodes[6].inputs",
    "expected a custom object and the name of a method, found as_tensor, as_string, "
    "in node 'sin' (torch.ops.higher_order.call_torchbind)",
)
def method_of_a_tensor(tree: Tree) -> None:
    node = node_of(tree, "sin")
    node.target = "torch.ops.higher_order.call_torchbind"
    node.is_hop_single_tensor_return = True
    node.inputs[0].name = ""
    node.inputs.append(
        types.NamedArgument("", types.Argument.of_string("sin"), types.ArgumentKind.POSITIONAL)
    )


# Arguments of higher-order operators, which have no schema -----------------------------------

_WRAPPED = "torch.ops.higher_order.wrap_with_set_grad_enabled"
_INPUTS = f"{GRAPH}.nodes[5].inputs"


@lie("subgraph", _INPUTS, "expected at most 4 arguments, found more" + IN_COND)
def cond_of_too_many(tree: Tree) -> None:
    node = node_of(tree, "cond")
    node.inputs.append(copy.deepcopy(node.inputs[3]))


@lie("subgraph", _INPUTS, "expected the argument 'operands', found none" + IN_COND)
def cond_of_too_few(tree: Tree) -> None:
    node_of(tree, "cond").inputs.pop()


@lie("subgraph", _INPUTS, "expected arguments of pred, true_fn, false_fn, operands, found 'more'" + IN_COND)
def cond_of_a_keyword_of_nobody(tree: Tree) -> None:
    argument = types.NamedArgument("more", types.Argument.of_int(1), types.ArgumentKind.KEYWORD)
    node_of(tree, "cond").inputs.append(argument)


@lie("subgraph", _INPUTS, "expected each argument once, found 'pred' again" + IN_COND)
def cond_of_one_argument_twice(tree: Tree) -> None:
    argument = types.NamedArgument("pred", types.Argument.of_int(1), types.ArgumentKind.KEYWORD)
    node_of(tree, "cond").inputs.append(argument)


@lie(
    "subgraph",
    _INPUTS,
    f"expected a boolean as 'enable_grad', found as_tensor, in node 'cond' ({_WRAPPED})",
)
def gradients_switched_by_a_tensor(tree: Tree) -> None:
    node = node_of(tree, "cond")
    node.target = _WRAPPED
    node.inputs[0].arg = types.Argument.of_tensor(node.inputs[3].arg.as_tensors[0])
    node.inputs[2:] = [types.NamedArgument("", node.inputs[0].arg, types.ArgumentKind.POSITIONAL)]


@lie(
    "subgraph",
    _INPUTS,
    "expected 'true_graph_0' to take 2 operands, found 1 inputs" + IN_COND.replace("cond)", "scan)"),
)
def scan_of_too_many_operands(tree: Tree) -> None:
    node = node_of(tree, "cond")
    node.target = "torch.ops.higher_order.scan"
    operands = node.inputs[3]
    node.inputs = [node.inputs[1], operands, copy.deepcopy(operands), copy.deepcopy(operands)]
    node.inputs[3].arg = types.Argument.of_tensors([])


# Functions over symbolic numbers -------------------------------------------------------------


@lie(
    "function-call",
    f"{GRAPH}.nodes[8].inputs[0].arg",
    "expected a number, found as_tensor, in node 'mul_8' (_operator.mul)",
)
def product_of_a_tensor(tree: Tree) -> None:
    node = node_of(tree, "mul_8")
    node.inputs[0].arg = copy.deepcopy(node_of(tree, "sin").inputs[0].arg)


@lie(
    "subgraph",
    _INPUTS,
    "expected at least one operand in 'xs', found none, in node 'cond' (torch.ops.higher_order.map_impl)",
)
def map_over_nothing(tree: Tree) -> None:
    node = node_of(tree, "cond")
    node.target, body, nothing = (
        "torch.ops.higher_order.map_impl",
        node.inputs[1],
        types.Argument.of_tensors([]),
    )
    node.inputs = [body, types.NamedArgument("", nothing, types.ArgumentKind.POSITIONAL), node.inputs[3]]


@lie(
    "subgraph",
    _INPUTS,
    "expected a dict as 'hints', found as_string, in node 'cond' (torch.ops.higher_order.hints_wrapper)",
)
def hints_that_are_a_text(tree: Tree) -> None:
    node = node_of(tree, "cond")
    node.target = "torch.ops.higher_order.hints_wrapper"
    given = [types.Argument.of_string_to_argument({}), types.Argument.of_string("fast")]
    texts = [types.NamedArgument("", each, types.ArgumentKind.POSITIONAL) for each in given]
    node.inputs = [node.inputs[1], node.inputs[3], *texts]


# Guards --------------------------------------------------------------------------------------


@lie("guard", "guards_code[0]", "expected an input of the program, found \"L['nope']\" (column 1)")
def guard_of_no_input(tree: Tree) -> None:
    tree.guards_code.append("L['nope'].size()[0] == 3")


# Methods of objects --------------------------------------------------------------------------


@lie(
    "target",
    f"{_INPUTS}[0].arg",
    "expected call_torchbind in an ordered effect only, found it elsewhere, "
    "in node 'cond' (torch.ops.higher_order.auto_functionalized_v2)",
)
def method_that_another_operator_calls(tree: Tree) -> None:
    node = node_of(tree, "cond")
    node.target = "torch.ops.higher_order.auto_functionalized_v2"
    operator = types.Argument.of_operator("torch.ops.higher_order.call_torchbind")
    node.inputs = [types.NamedArgument("", operator, types.ArgumentKind.POSITIONAL)]


# Tokens of effects ---------------------------------------------------------------------------


def _with_token(tree: Tree) -> types.Node:
    """The sine as an effect, ordered by a token."""
    graph, node = tree.graph_module.graph, node_of(tree, "sin")
    token = types.TensorArgument("token")
    graph.inputs.insert(0, types.Argument.of_tensor(token))
    graph.tensor_values |= dict.fromkeys(("token", "after"), graph.tensor_values["sin"])
    spec = types.InputTokenSpec(types.TokenArgument("token"))
    tree.graph_module.signature.input_specs.insert(0, types.InputSpec.of_token(spec))
    arguments = [types.Argument.of_tensor(token), types.Argument.of_operator(node.target), node.inputs[0].arg]
    node.inputs = [types.NamedArgument("", each, types.ArgumentKind.POSITIONAL) for each in arguments]
    node.target, node.name = "torch.ops.higher_order.with_effects", "with_effects"
    node.outputs.insert(0, types.Argument.of_tensor(types.TensorArgument("after")))
    return node


_EFFECT = ", in node 'with_effects' (torch.ops.higher_order.with_effects)"


@lie("subgraph", f"{GRAPH}.nodes[6].inputs[0].arg", "expected a token first, found 'addmm'" + _EFFECT)
def effect_that_no_token_orders(tree: Tree) -> None:
    _with_token(tree).inputs[0].arg = types.Argument.of_tensor(types.TensorArgument("addmm"))


@lie(
    "subgraph",
    f"{GRAPH}.nodes[6].inputs[2].arg",
    "expected no token but of an effect, found 'token'" + _EFFECT,
)
def token_as_an_operand(tree: Tree) -> None:
    _with_token(tree).inputs[2].arg = types.Argument.of_tensor(types.TensorArgument("token"))
