"""Lies about graphs: names, values, arguments, and what nodes call."""

from __future__ import annotations

import dataclasses

from pt2wire.generated import types

from .lies import CALLS, GRAPH, IN_COND, IN_SIN, SIGNATURE, Tree, lie, node_of

# Names ---------------------------------------------------------------------------------------


def rename_input(tree: Tree, index: int, name: str) -> None:
    graph, spec = tree.graph_module.graph, tree.graph_module.signature.input_specs[index].value
    argument = graph.inputs[index].as_tensor
    old = argument.name
    arguments = [named.arg for node in graph.nodes for named in node.inputs]
    uses = [used.as_tensor for used in arguments if used.type == "as_tensor" and used.as_tensor.name == old]
    for tensor in (argument, *uses):
        tensor.name = name
    graph.tensor_values[name] = graph.tensor_values.pop(old)
    (spec.arg if isinstance(spec.arg, types.TensorArgument) else spec.arg.as_tensor).name = name


@lie("name", f"{GRAPH}.inputs[3]", "expected an identifier, found 'x=print()': not an identifier")
def placeholder_with_default(tree: Tree) -> None:
    rename_input(tree, 3, "x=print()")


@lie("name", f"{GRAPH}.inputs[3]", "expected an identifier, found 'lambda': a keyword of Python")
def placeholder_named_by_keyword(tree: Tree) -> None:
    rename_input(tree, 3, "lambda")


@lie(
    "name",
    f"{GRAPH}.inputs[3]",
    "expected an identifier, found 'inf': "
    "a name with a meaning of its own in the source that torch.fx generates",
)
def placeholder_that_would_stand_in_for_infinity(tree: Tree) -> None:
    rename_input(tree, 3, "inf")


@lie(
    "name",
    f"{GRAPH}.nodes[5].inputs[1].arg.as_graph.name",
    "expected an identifier, found 'a b': not an identifier" + IN_COND,
)
def subgraph_named_by_text(tree: Tree) -> None:
    node_of(tree, "cond").inputs[1].arg.as_graph.name = "a b"


@lie(
    "name",
    f"{GRAPH}.nodes[6].inputs[0].name",
    "expected an identifier, found 'self=1, x': not an identifier" + IN_SIN,
)
def argument_name_with_more(tree: Tree) -> None:
    node_of(tree, "sin").inputs[0].name = "self=1, x"


@lie(
    "name",
    f"{GRAPH}.nodes[6].name",
    "expected an identifier, found 'a.b': not an identifier, in node 'a.b' (torch.ops.aten.sin.default)",
)
def node_named_by_path(tree: Tree) -> None:
    node_of(tree, "sin").name = "a.b"


@lie(
    "name",
    f"{CALLS}[0].signature.forward_arg_names[0]",
    "expected an identifier, found 'x): print(': not an identifier",
)
def forward_argument_with_code(tree: Tree) -> None:
    entry = tree.graph_module.module_call_graph[0].signature
    assert entry is not None and entry.forward_arg_names is not None
    entry.forward_arg_names[0] = "x): print("


@lie("name", f"{SIGNATURE}.input_specs[4].constant_input.name", "expected an identifier, found '': empty")
def constant_without_name(tree: Tree) -> None:
    tree.graph_module.signature.input_specs[4].constant_input.name = ""


@lie(
    "name",
    "graph_module.treespec_namedtuple_fields['Point']",
    "expected an identifier, found 'x y': not an identifier",
)
def field_of_a_namedtuple(tree: Tree) -> None:
    tree.graph_module.treespec_namedtuple_fields["Point"] = types.NamedTupleDef(["x y"])


@lie(
    "fqn",
    f"{SIGNATURE}.input_specs[0].parameter.parameter_name",
    "expected a qualified name, found 'lin\")+print(\"': holds a double quote",
)
def weight_named_by_code(tree: Tree) -> None:
    tree.graph_module.signature.input_specs[0].parameter.parameter_name = 'lin")+print("'


@lie("fqn", f"{CALLS}[1].fqn", "expected a qualified name, found 'lin..a': has an empty part")
def module_with_an_empty_part(tree: Tree) -> None:
    tree.graph_module.module_call_graph[1].fqn = "lin..a"


@lie(
    "constant-text",
    f"{SIGNATURE}.input_specs[4].constant_input.value.as_string",
    "expected text without quotes, escapes and control characters, found \"' + x + '\": "
    "it holds a quote, which PyTorch pastes into source unescaped",
)
def string_input_with_quotes(tree: Tree) -> None:
    tree.graph_module.graph.inputs[4].as_string = "' + x + '"
    tree.graph_module.signature.input_specs[4].constant_input.value.as_string = "' + x + '"


# Values --------------------------------------------------------------------------------------


@lie(
    "duplicate-name",
    f"{GRAPH}.nodes[6]",
    "expected a name that is defined once, found 'addmm' again, in node 'addmm' (torch.ops.aten.sin.default)",
)
def node_named_like_another(tree: Tree) -> None:
    node_of(tree, "sin").name = "addmm"


@lie("duplicate-name", f"{GRAPH}.inputs", "expected a name that is defined once, found 'x' again")
def constant_named_like_an_input(tree: Tree) -> None:
    tree.graph_module.signature.input_specs[4].constant_input.name = "x"


@lie(
    "undefined-name",
    f"{GRAPH}.nodes[6].inputs[0].arg",
    "expected a value that is defined before, found 'add_10'" + IN_SIN,
)
def value_used_before_it_is_made(tree: Tree) -> None:
    node_of(tree, "sin").inputs[0].arg.as_tensor.name = "add_10"


@lie(
    "undefined-name",
    f"{GRAPH}.nodes[5].inputs[1].arg.as_graph.graph.nodes[0].inputs[0].arg",
    "expected a value that is defined before, found 'x', in node 'add_3' (torch.ops.aten.add.Tensor)",
)
def subgraph_that_looks_outside(tree: Tree) -> None:
    graph = node_of(tree, "cond").inputs[1].arg.as_graph.graph
    graph.nodes[0].inputs[0].arg.as_tensor.name = "x"


@lie(
    "wrong-kind",
    f"{GRAPH}.nodes[6].inputs[0].arg",
    "expected a tensor, found 'gt', which is a sym_bool" + IN_SIN,
)
def condition_used_as_tensor(tree: Tree) -> None:
    node_of(tree, "sin").inputs[0].arg.as_tensor.name = "gt"


@lie(
    "missing-value",
    f"{GRAPH}.nodes[6].outputs[0]",
    "expected 'sin' in tensor_values, found nothing" + IN_SIN,
)
def value_without_description(tree: Tree) -> None:
    del tree.graph_module.graph.tensor_values["sin"]


@lie("tensor-meta", f"{GRAPH}.tensor_values['sin'].strides", "expected 2 strides, found 3")
def too_many_strides(tree: Tree) -> None:
    tree.graph_module.graph.tensor_values["sin"].strides.append(types.SymInt.create(as_int=1))


@lie("tensor-meta", f"{GRAPH}.tensor_values['sin'].sizes[1]", "expected a number from 0 up, found -4")
def negative_size(tree: Tree) -> None:
    tree.graph_module.graph.tensor_values["sin"].sizes[1] = types.SymInt.create(as_int=-4)


@lie("tensor-meta", f"{GRAPH}.tensor_values['sin'].storage_offset", "expected a number from 0 up, found -1")
def negative_offset(tree: Tree) -> None:
    tree.graph_module.graph.tensor_values["sin"].storage_offset = types.SymInt.create(as_int=-1)


@lie(
    "tensor-meta",
    f"{GRAPH}.tensor_values['sin']",
    f"expected a tensor of at most 2**63 - 1 bytes, found {2**60 * 16 * 8}",
)
def tensor_larger_than_memory(tree: Tree) -> None:
    tree.graph_module.graph.tensor_values["sin"].sizes[1] = types.SymInt.create(as_int=2**60)


@lie("tensor-meta", f"{GRAPH}.tensor_values['sin'].sizes", "expected at most 64 dimensions, found 65")
def too_many_dimensions(tree: Tree) -> None:
    meta = tree.graph_module.graph.tensor_values["sin"]
    meta.sizes = meta.strides = [types.SymInt.create(as_int=1)] * 65


@lie("tensor-meta", f"{GRAPH}.tensor_values['sin'].dtype", "expected a dtype, found UNKNOWN")
def unknown_dtype(tree: Tree) -> None:
    tree.graph_module.graph.tensor_values["sin"].dtype = types.ScalarType.UNKNOWN


@lie(
    "tensor-meta",
    f"{GRAPH}.tensor_values['sin'].requires_grad",
    "expected a dtype with gradients, or requires_grad false, found INT",
)
def gradient_of_integers(tree: Tree) -> None:
    meta = tree.graph_module.graph.tensor_values["sin"]
    meta.dtype, meta.requires_grad = types.ScalarType.INT, True


@lie("argument", f"{GRAPH}.outputs", "expected one tensor as the only output, found 2 outputs", "training")
def several_outputs_as_a_single_one(tree: Tree) -> None:
    tree.graph_module.graph.is_single_tensor_return = True


@lie(
    "metadata",
    f"{GRAPH}.nodes[0].metadata['nn_module_stack']",
    "expected a key, a path and a class with commas between, found 'one', in node 'sym_size_int_1' "
    "(torch.ops.aten.sym_size.int)",
    "training",
)
def module_stack_in_no_format(tree: Tree) -> None:
    tree.graph_module.graph.nodes[0].metadata["nn_module_stack"] = "one"


@lie(
    "module-path",
    f"{GRAPH}.nodes[0].metadata['nn_module_stack']",
    "expected a path that stays a text when source is made of it, found 'a\" + stop() + \"', "
    "in node 'sym_size_int_1' (torch.ops.aten.sym_size.int)",
    "training",
)
def module_path_that_goes_on_as_source(tree: Tree) -> None:
    tree.graph_module.graph.nodes[0].metadata["nn_module_stack"] = 'k,a" + stop() + ",m.L'


@lie("tensor-meta", f"{GRAPH}.tensor_values['sin'].layout", "expected a layout, found Unknown")
def unknown_layout(tree: Tree) -> None:
    tree.graph_module.graph.tensor_values["sin"].layout = types.Layout.Unknown


@lie(
    "tensor-meta",
    f"{GRAPH}.tensor_values['sin'].device",
    "expected the name of a device type such as 'cpu' or 'cuda', found 'CPU; x'",
)
def unknown_device(tree: Tree) -> None:
    tree.graph_module.graph.tensor_values["sin"].device = types.Device("CPU; x")


@lie(
    "tensor-meta",
    f"{GRAPH}.tensor_values['sin'].device",
    "expected a device index from 0 to 127, found 300",
)
def device_out_of_range(tree: Tree) -> None:
    tree.graph_module.graph.tensor_values["sin"].device = types.Device("cuda", 300)


# Arguments -----------------------------------------------------------------------------------


@lie(
    "argument",
    f"{GRAPH}.nodes[6].outputs[0]",
    "expected tensors or a symbolic number as result, found as_int, "
    "in node '(unnamed)' (torch.ops.aten.sin.default)",
)
def constant_as_result(tree: Tree) -> None:
    node = node_of(tree, "sin")
    node.name = None  # it has two results now
    node.outputs.insert(0, types.Argument.create(as_int=1))


@lie("argument", f"{GRAPH}.outputs[2]", "expected a value or a constant as output, found as_operator")
def operator_as_output(tree: Tree) -> None:
    argument = types.Argument.create(as_operator="torch.ops.aten.sin.default")
    tree.graph_module.graph.outputs[2] = argument
    tree.graph_module.signature.output_specs[2].user_output.arg = argument


@lie(
    "argument",
    f"{GRAPH}.inputs[4]",
    "expected a tensor, a number or a constant as input, found as_ints",
)
def list_as_input(tree: Tree) -> None:
    tree.graph_module.graph.inputs[4] = types.Argument.create(as_ints=[1])
    tree.graph_module.signature.input_specs[4] = types.InputSpec.create(
        user_input=types.UserInputSpec(types.Argument.create(as_ints=[1]))
    )


@lie(
    "argument",
    f"{GRAPH}.nodes[6].inputs[0].arg",
    "expected a known ScalarType, found 0" + IN_SIN,
)
def unknown_dtype_as_argument(tree: Tree) -> None:
    node_of(tree, "sin").inputs[0].arg = types.Argument.create(as_scalar_type=types.ScalarType.UNKNOWN)


@lie(
    "argument",
    f"{GRAPH}.nodes[6].inputs[0].arg",
    "expected a device index from 0 to 127, found -2" + IN_SIN,
)
def device_as_argument(tree: Tree) -> None:
    node_of(tree, "sin").inputs[0].arg = types.Argument.create(as_device=types.Device("cuda", -2))


@lie(
    "argument-name",
    f"{GRAPH}.nodes[7].inputs",
    "expected distinct argument names, found 'self', in node 'add_10' (torch.ops.aten.add.Tensor)",
)
def argument_given_twice(tree: Tree) -> None:
    node_of(tree, "add_10").inputs[1].name = "self"


@lie(
    "depth",
    f"{GRAPH}.nodes[5].inputs[3].arg" + ".as_string_to_argument.a" * 32,
    "expected at most 32 nested dictionaries, found more, "
    "in node 'cond' (torch.ops.higher_order.foreach_map)",
)
def nested_dictionaries(tree: Tree) -> None:
    node = node_of(tree, "cond")
    node.target = "torch.ops.higher_order.foreach_map"
    node.inputs[0], node.inputs[1] = node.inputs[1], node.inputs[0]
    for _ in range(33):
        node.inputs[3].arg = types.Argument.create(as_string_to_argument={"a": node.inputs[3].arg})


@lie(
    "depth",
    f"{GRAPH}.nodes[5].inputs[1].arg" + ".as_graph.graph.nodes[1].inputs[0].arg" * 32,
    "expected at most 32 nested subgraphs, found more, in node 'more' (torch.ops.higher_order.foreach_map)",
)
def nested_subgraphs(tree: Tree) -> None:
    innermost = graph = node_of(tree, "cond").inputs[1].arg.as_graph.graph
    for _ in range(32):
        argument = types.Argument.create(as_graph=types.GraphArgument("inner", graph))
        named = types.NamedArgument("", argument, types.ArgumentKind.POSITIONAL)
        more = types.Node("torch.ops.higher_order.foreach_map", [named], [], {}, name="more")
        graph = dataclasses.replace(innermost, nodes=[innermost.nodes[0], more])
    node_of(tree, "cond").inputs[1].arg.as_graph.graph = graph


# What nodes call -----------------------------------------------------------------------------


@lie(
    "target",
    f"{GRAPH}.nodes[6].target",
    "expected an operator or a symbolic function, found 'os.system', in node 'sin' (os.system)",
)
def python_function_as_target(tree: Tree) -> None:
    node_of(tree, "sin").target = "os.system"


@lie(
    "target",
    f"{GRAPH}.nodes[6].target",
    "expected an operator or a symbolic function, found 'torch.load', in node 'sin' (torch.load)",
)
def loader_as_target(tree: Tree) -> None:
    node_of(tree, "sin").target = "torch.load"


@lie(
    "target",
    f"{GRAPH}.nodes[6].target",
    "expected a supported higher-order operator, found '__init__', "
    "in node 'sin' (torch.ops.higher_order.__init__)",
)
def unknown_higher_order_operator(tree: Tree) -> None:
    node_of(tree, "sin").target = "torch.ops.higher_order.__init__"


@lie("target", f"{GRAPH}.nodes[6].inputs[0].arg", "expected an operator, found '#mine:op'" + IN_SIN)
def extension_as_argument(tree: Tree) -> None:
    node_of(tree, "sin").inputs[0].arg = types.Argument.of_operator("#mine:op")


@lie(
    "target",
    f"{GRAPH}.nodes[6].inputs[0].arg",
    "expected an operator, found 'torch.sym_not'" + IN_SIN,
)
def function_as_operator_argument(tree: Tree) -> None:
    node_of(tree, "sin").inputs[0].arg = types.Argument.create(as_operator="torch.sym_not")


@lie(
    "denied-operator",
    f"{GRAPH}.nodes[6].target",
    "expected an operator that is permitted, found torch.ops.aten.from_file.default: "
    "it maps a file of the machine, in node 'sin' (torch.ops.aten.from_file.default)",
)
def operator_that_reads_files(tree: Tree) -> None:
    node_of(tree, "sin").target = "torch.ops.aten.from_file.default"


@lie(
    "denied-operator",
    f"{GRAPH}.nodes[6].inputs[0].arg",
    "expected an operator that is permitted, found torch.ops.inductor._reinterpret_tensor.default: its "
    "operators reinterpret and resize storage without bounds checks" + IN_SIN,
)
def denied_namespace_as_argument(tree: Tree) -> None:
    denied = "torch.ops.inductor._reinterpret_tensor.default"
    node_of(tree, "sin").inputs[0].arg = types.Argument.create(as_operator=denied)


@lie(
    "denied-operator",
    f"{GRAPH}.nodes[6].target",
    "expected an operator that is permitted, found torch.ops.higher_order.trace_wrapped: it calls a "
    "Python function, in node 'sin' (torch.ops.higher_order.trace_wrapped)",
)
def denied_higher_order_operator(tree: Tree) -> None:
    node_of(tree, "sin").target = "torch.ops.higher_order.trace_wrapped"


@lie(
    "function-call",
    f"{GRAPH}.nodes[8].inputs",
    "expected 2 arguments, found 1, in node 'mul_8' (_operator.mul)",
)
def too_few_arguments(tree: Tree) -> None:
    node_of(tree, "mul_8").inputs.pop()


@lie(
    "function-call",
    f"{GRAPH}.nodes[6].outputs",
    "expected one symbolic number as result, found as_tensor, in node 'sin' (math.trunc)",
)
def symbolic_function_of_tensors(tree: Tree) -> None:
    node_of(tree, "sin").target = "math.trunc"


@lie(
    "function-call",
    f"{GRAPH}.nodes[6].inputs",
    "expected 2 arguments, found 1, "
    "in node '_vmap_increment_nesting' (torch._functorch.predispatch._vmap_increment_nesting)",
    tree="training",
)
def too_few_arguments_for_functorch(tree: Tree) -> None:
    node_of(tree, "_vmap_increment_nesting").inputs.pop()


@lie(
    "function-call",
    f"{GRAPH}.nodes[6].outputs",
    "expected 1 results, found 2, "
    "in node '_vmap_increment_nesting' (torch._functorch.predispatch._vmap_increment_nesting)",
    tree="training",
)
def too_many_results_of_functorch(tree: Tree) -> None:
    node_of(tree, "_vmap_increment_nesting").outputs.append(types.Argument.create(as_none=True))


@lie(
    "functorch-levels",
    f"{GRAPH}.nodes",
    "expected every level to be closed, found 1 open",
    tree="training",
)
def level_left_open(tree: Tree) -> None:
    tree.graph_module.graph.nodes.remove(node_of(tree, "_vmap_decrement_nesting"))


@lie(
    "functorch-levels",
    f"{GRAPH}.nodes[0].target",
    "expected a level that was opened before, found none, "
    "in node 'early' (torch._functorch.predispatch._vmap_decrement_nesting)",
    tree="training",
)
def level_closed_before_it_is_opened(tree: Tree) -> None:
    closing = node_of(tree, "_vmap_decrement_nesting")
    tree.graph_module.graph.nodes.remove(closing)
    tree.graph_module.graph.nodes.remove(node_of(tree, "_vmap_increment_nesting"))
    closing.name = "early"
    tree.graph_module.graph.nodes.insert(0, closing)


@lie(
    "autocast-levels",
    f"{GRAPH}.nodes",
    "expected every level to be closed, found 1 open",
    tree="autocast",
)
def region_of_autocast_left_open(tree: Tree) -> None:
    tree.graph_module.graph.order = None
    tree.graph_module.graph.nodes.remove(node_of(tree, "_exit_autocast_1"))


@lie(
    "autocast-levels",
    f"{GRAPH}.nodes[0].target",
    "expected a level that was opened before, found none, "
    "in node '_exit_autocast' (torch.amp.autocast_mode._exit_autocast)",
    tree="autocast",
)
def region_of_autocast_closed_before_it_is_opened(tree: Tree) -> None:
    nodes, tree.graph_module.graph.order = tree.graph_module.graph.nodes, None
    nodes.remove(node_of(tree, "_enter_autocast"))
    nodes.remove(node_of(tree, "_exit_autocast_1"))
    closing = node_of(tree, "_exit_autocast")
    nodes.remove(closing)
    nodes.insert(0, closing)
    nodes.append(nodes.pop(1))


@lie(
    "function-call",
    f"{GRAPH}.nodes[1]",
    "expected a dtype or none as 'dtype', found as_int, "
    "in node '_enter_autocast_1' (torch.amp.autocast_mode._enter_autocast)",
    tree="autocast",
)
def dtype_of_autocast_that_is_a_number(tree: Tree) -> None:
    node_of(tree, "_enter_autocast_1").inputs[1].arg = types.Argument.of_int(5)


@lie(
    "function-call",
    f"{GRAPH}.nodes[3]",
    "expected none, which stands for the innermost region, as 'mode', found as_tensor, "
    "in node '_exit_autocast' (torch.amp.autocast_mode._exit_autocast)",
    tree="autocast",
)
def region_of_autocast_that_is_a_tensor(tree: Tree) -> None:
    node_of(tree, "_exit_autocast").inputs[0].arg = types.Argument.of_tensor(types.TensorArgument(name="x"))


@lie(
    "function-call",
    f"{GRAPH}.nodes[0]",
    "expected arguments by position and as they are, found others, "
    "in node '_enter_autocast' (torch.amp.autocast_mode._enter_autocast)",
    tree="autocast",
)
def argument_of_autocast_by_name(tree: Tree) -> None:
    node_of(tree, "_enter_autocast").inputs[3].name = "cache_enabled"


@lie(
    "exact",
    f"{GRAPH}.nodes[0]",
    "expected a program that says what PyTorch cannot express of it, found none",
    tree="autocast",
)
def autocast_that_says_pytorch_reads_it(tree: Tree) -> None:
    tree.beyond = None


@lie(
    "subgraph",
    f"{GRAPH}.nodes[5].inputs[2].arg",
    "expected one graph named 'true_graph_0', found two that differ, "
    "in node 'cond' (torch.ops.higher_order.cond)",
)
def two_subgraphs_of_one_name(tree: Tree) -> None:
    node_of(tree, "cond").inputs[2].arg.as_graph.name = "true_graph_0"


@lie(
    "subgraph",
    f"{GRAPH}.nodes[5].inputs",
    "expected 'false_graph_0' to take 1 operands, found 0 inputs" + IN_COND,
)
def subgraph_without_inputs(tree: Tree) -> None:
    graph = node_of(tree, "cond").inputs[2].arg.as_graph.graph
    graph.inputs.clear()
    graph.nodes.clear()
    graph.outputs[0] = types.Argument.create(as_none=True)


@lie(
    "subgraph",
    f"{GRAPH}.nodes[5].inputs",
    "expected subgraphs with equally many outputs, found 1 and 0" + IN_COND,
)
def branches_with_different_outputs(tree: Tree) -> None:
    node_of(tree, "cond").inputs[2].arg.as_graph.graph.outputs.clear()


@lie(
    "subgraph",
    f"{GRAPH}.nodes[5].inputs",
    "expected a subgraph as 'true_fn', found as_int" + IN_COND,
)
def branch_that_is_a_number(tree: Tree) -> None:
    node_of(tree, "cond").inputs[1].arg = types.Argument.create(as_int=1)
