"""Lies about what surrounds the graph: versions, symbols, guards, signature, module calls."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pt2wire.errors import DeserializeError
from pt2wire.expression_parser import parse_expression
from pt2wire.generated import types
from pt2wire.guards import check_guard

from .lies import CALLS, GRAPH, SIGNATURE, Tree, lie
from .schema_versions import MAJOR, OLDER, OLDEST, dotted

CODE = "__import__('os').system('true')"


def parser_message(parse: Callable[[str], object], text: str) -> str:
    """What a parser says about a text, as a finding repeats it."""
    with pytest.raises(DeserializeError) as raised:
        parse(text)
    return f"{raised.value.message} ({raised.value.path})"


# Versions and ranges -------------------------------------------------------------------------


@lie("schema-version", "schema_version", f"expected format {OLDEST} or a later {MAJOR}, found {MAJOR + 1}.0")
def newer_major_version(tree: Tree) -> None:
    tree.schema_version = types.SchemaVersion(MAJOR + 1, 0)


@lie(
    "schema-version", "schema_version", f"expected format {OLDEST} or a later {MAJOR}, found {dotted(OLDER)}"
)
def older_minor_version(tree: Tree) -> None:
    tree.schema_version = types.SchemaVersion(*OLDER)


@lie("opset-version", "opset_version", "expected a namespace and its version, found 'aten': -1")
def negative_opset(tree: Tree) -> None:
    tree.opset_version["aten"] = -1


@lie("range", "range_constraints['s77']", "expected min_val <= max_val, found 9 > 3")
def empty_range(tree: Tree) -> None:
    tree.range_constraints["s77"] = types.RangeConstraint(9, 3)


@lie("range", "range_constraints['\\x1b[2J']", "expected a symbol or an expression, found '\\x1b[2J'")
def range_of_control_characters(tree: Tree) -> None:
    tree.range_constraints["\x1b[2J"] = types.RangeConstraint(1, 2)


# Expressions ---------------------------------------------------------------------------------


def set_size(tree: Tree, text: str, hint: types.SymExprHint | None = None) -> None:
    sizes = tree.graph_module.graph.tensor_values["sin"].sizes
    sizes[0] = types.SymInt.create(as_expr=types.SymExpr(text, hint))


SIN_SIZE = f"{GRAPH}.tensor_values['sin'].sizes[0].as_expr"


@lie(
    "expression",
    f"{SIN_SIZE}.expr_str",
    parser_message(parse_expression, CODE),
)
def code_as_expression(tree: Tree) -> None:
    set_size(tree, CODE)


@lie("expression-sort", f"{SIN_SIZE}.expr_str", "expected a number, found the boolean 'true'")
def condition_as_size(tree: Tree) -> None:
    set_size(tree, "true")


@lie(
    "symbol",
    f"{SIN_SIZE}.expr_str",
    "symbol 's77' has the assumptions integer=True, and elsewhere positive=True, integer=True",
)
def symbol_with_other_assumptions(tree: Tree) -> None:
    set_size(tree, "Symbol('s77', integer=True)")


@lie(
    "undeclared-symbol",
    f"{SIN_SIZE}.expr_str",
    "expected a range constraint for the unbacked symbol 'u0', found none",
)
def unbacked_symbol_without_range(tree: Tree) -> None:
    set_size(tree, "Symbol('u0', integer=True)")


@lie("hint", f"{SIN_SIZE}.hint", "expected as_int, found as_bool")
def hint_of_another_type(tree: Tree) -> None:
    set_size(tree, "Symbol('s77', positive=True, integer=True)", types.SymExprHint.create(as_bool=True))


@lie("hint", f"{SIN_SIZE}.hint", "expected 4 as the expression, found 5")
def hint_of_another_number(tree: Tree) -> None:
    set_size(tree, "Integer(4)", types.SymExprHint.create(as_int=5))


@lie("hint", f"{SIN_SIZE}.hint", "expected no hint for a constant expression, found 8")
def hint_of_a_constant(tree: Tree) -> None:
    set_size(tree, "Pow(Integer(10), Integer(2))", types.SymExprHint.create(as_int=8))


@lie("hint", f"{SIN_SIZE}.hint", "expected a number from 0 to 2**63 - 1, found -1")
def negative_hint(tree: Tree) -> None:
    set_size(tree, "Symbol('s77', positive=True, integer=True)", types.SymExprHint.create(as_int=-1))


@lie(
    "guard",
    "guards_code[0]",
    parser_message(check_guard, CODE),
)
def code_as_guard(tree: Tree) -> None:
    tree.guards_code.append(CODE)


# The signature -------------------------------------------------------------------------------


@lie(
    "signature-inputs",
    f"{SIGNATURE}.input_specs",
    "expected 5 input specs, one for each graph input, found 6",
)
def one_input_spec_too_many(tree: Tree) -> None:
    spec = types.InputSpec.create(token=types.InputTokenSpec(types.TokenArgument("t")))
    tree.graph_module.signature.input_specs.append(spec)


@lie(
    "signature-inputs",
    f"{SIGNATURE}.input_specs[1].parameter",
    "expected as_tensor 'p_lin_bias' as graph input 1 is, found as_tensor 'p_lin_weight'",
)
def input_spec_of_another_input(tree: Tree) -> None:
    tree.graph_module.signature.input_specs[1].parameter.arg.name = "p_lin_weight"


@lie(
    "signature-inputs",
    f"{SIGNATURE}.input_specs[4].constant_input",
    "expected as_string fast as graph input 4 is, found as_string slow",
)
def constant_of_another_value(tree: Tree) -> None:
    tree.graph_module.signature.input_specs[4].constant_input.value.as_string = "slow"


@lie(
    "signature-outputs",
    f"{SIGNATURE}.output_specs[1].user_output",
    "expected as_tensor 'add_10' as graph output 1 is, found as_tensor 'sin'",
)
def output_spec_of_another_output(tree: Tree) -> None:
    tree.graph_module.signature.output_specs[1].user_output.arg.as_tensor.name = "sin"


@lie(
    "signature-outputs",
    f"{SIGNATURE}.output_specs",
    "expected 4 output specs, one for each graph output, found 3",
)
def one_output_spec_too_few(tree: Tree) -> None:
    tree.graph_module.graph.outputs.append(types.Argument.create(as_none=True))


def _name_weights(tree: Tree, *names: str) -> None:
    for spec, name in zip(tree.graph_module.signature.input_specs, names, strict=False):
        spec.parameter.parameter_name = name


@lie(
    "fqn-clash",
    f"{SIGNATURE}.input_specs[0].parameter.parameter_name",
    "expected it behind 'a.b.w', which else takes its place in modules, in 'a.b@1.w'",
)
def weight_before_that_of_the_first_call(tree: Tree) -> None:
    _name_weights(tree, "a.b@1.w", "a.b.w")


@lie(
    "fqn-clash",
    f"{SIGNATURE}.input_specs[1].parameter.parameter_name",
    "expected modules around it, found the weight 'a', in 'a.b'",
)
def weight_in_a_weight(tree: Tree) -> None:
    _name_weights(tree, "a", "a.b")


@lie(
    "fqn-clash",
    f"{SIGNATURE}.input_specs[0].parameter.parameter_name",
    "expected another name than 'true_graph_0', which is a subgraph, in 'true_graph_0'",
)
def weight_in_the_place_of_a_subgraph(tree: Tree) -> None:
    _name_weights(tree, "true_graph_0")


@lie(
    "fqn-clash",
    f"{SIGNATURE}.input_specs[0].parameter.parameter_name",
    f"expected at most 8 calls such as `name@1` in it, found more, in '{'a@1.' * 9}w'",
)
def weight_of_many_calls(tree: Tree) -> None:
    _name_weights(tree, "a@1." * 9 + "w")


@lie(
    "duplicate-fqn",
    f"{SIGNATURE}.input_specs[1].parameter.parameter_name",
    "expected 'lin.weight' once, found it again",
)
def weight_given_twice(tree: Tree) -> None:
    tree.graph_module.signature.input_specs[1].parameter.parameter_name = "lin.weight"


@lie(
    "mutation-target",
    f"{SIGNATURE}.output_specs[0].buffer_mutation.buffer_name",
    "expected the name of a buffer, found 'lin.weight'",
)
def mutation_of_a_parameter_as_buffer(tree: Tree) -> None:
    tree.graph_module.signature.output_specs[0].buffer_mutation.buffer_name = "lin.weight"


@lie(
    "mutation-target",
    f"{SIGNATURE}.output_specs[0].user_input_mutation.user_input_name",
    "expected the name of a user input, found 'b_count'",
)
def mutation_of_a_buffer_as_input(tree: Tree) -> None:
    tree.graph_module.signature.output_specs[0] = types.OutputSpec.create(
        user_input_mutation=types.UserInputMutationSpec(types.TensorArgument("add"), "b_count")
    )


@lie(
    "output-order",
    f"{SIGNATURE}.output_specs[1].buffer_mutation",
    "expected tokens, then updates, then the rest, found buffer_mutation late",
)
def mutation_after_outputs(tree: Tree) -> None:
    outputs, specs = tree.graph_module.graph.outputs, tree.graph_module.signature.output_specs
    outputs[:2] = outputs[1::-1]
    specs[:2] = specs[1::-1]


# Module calls --------------------------------------------------------------------------------


@lie("module-calls", CALLS, "expected an entry with a signature for the program first")
def program_not_in_module_calls(tree: Tree) -> None:
    del tree.graph_module.module_call_graph[0]


@lie(
    "module-calls",
    f"{CALLS}[0].signature.inputs[0]",
    "expected a value of the graph, found 'nothing'",
)
def module_call_with_unknown_value(tree: Tree) -> None:
    signature = tree.graph_module.module_call_graph[0].signature
    assert signature is not None
    signature.inputs.append(types.Argument.create(as_tensor=types.TensorArgument("nothing")))


LEAF = '{"type": null, "context": null, "children_spec": []}'


@lie(
    "module-calls",
    f"{CALLS}[0].signature.in_spec",
    "expected a tuple of the positional arguments, a tuple, and the keyword arguments, a dict",
)
def treespec_that_is_no_call(tree: Tree) -> None:
    signature = tree.graph_module.module_call_graph[0].signature
    assert signature is not None
    spec = f'{{"type": "builtins.list", "context": "null", "children_spec": [{LEAF}, {LEAF}]}}'
    signature.in_spec = f"[1, {spec}]"


@lie(
    "treespec",
    f"{CALLS}[0].signature.in_spec",
    "expected a plain text as key, found \"']+str(print(1))+['\", which holds a quote, which PyTorch "
    "pastes into source unescaped",
)
def treespec_with_a_key_that_ends_a_string(tree: Tree) -> None:
    signature = tree.graph_module.module_call_graph[0].signature
    assert signature is not None
    key = json.dumps(json.dumps(["']+str(print(1))+['"]))
    spec = f'{{"type": "builtins.dict", "context": {key}, "children_spec": [{LEAF}]}}'
    assert signature.in_spec.count(LEAF) > 0
    signature.in_spec = signature.in_spec.replace(LEAF, spec, 1)


@lie(
    "treespec",
    f"{CALLS}[0].signature.out_spec",
    "expected tree spec protocol 1, found 2 ([0])",
)
def treespec_of_another_protocol(tree: Tree) -> None:
    signature = tree.graph_module.module_call_graph[0].signature
    assert signature is not None
    signature.out_spec = f"[2, {LEAF}]"


@lie(
    "treespec-leaves",
    f"{CALLS}[0].signature.in_spec",
    "expected 2 leaves, one for each value, found 1",
)
def treespec_with_a_leaf_too_few(tree: Tree) -> None:
    signature = tree.graph_module.module_call_graph[0].signature
    assert signature is not None
    empty = '{"type": "builtins.tuple", "context": "null", "children_spec": []}'
    signature.in_spec = signature.in_spec.replace(LEAF, empty, 1)


@lie(
    "metadata",
    f"{GRAPH}.nodes[1].metadata['nn_module_stack']",
    "expected one path of the module 'k', found 'a' and 'b', in node 'add' (torch.ops.aten.add.Tensor)",
)
def modules_of_one_key(tree: Tree) -> None:
    for node, path in zip(tree.graph_module.graph.nodes, "ab", strict=False):
        node.metadata["nn_module_stack"] = f"k,{path},m.M"


@lie(
    "metadata",
    "graph_module.metadata['custom']",
    "expected JSON, found '{': Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
)
def metadata_that_is_no_json(tree: Tree) -> None:
    tree.graph_module.metadata["custom"] = "{"
