"""Lies in the fields of our own: that they are sound, and say what PyTorch's fields say."""

from __future__ import annotations

import copy
from typing import Any

from pt2wire.generated import types
from pt2wire.operators import APPLIED, CALLEES

from .lies import CALLS, GRAPH, Tree, index_of, lie, node_of

Value = types.Value
NODE = f"{GRAPH}.nodes[5]"
COND = "in node 'cond' (torch.ops.higher_order.cond)"


def _sign(tree: Tree) -> None:
    tree.writer = types.Writer("pt2wire", "0.1.0", 1)


def _exact(tree: Tree, operands: Value) -> list[types.NamedValue]:
    """Exact inputs of the call of `cond`, honest but for its operands."""
    _sign(tree)
    assert index_of(tree, "cond") == 5
    node = node_of(tree, "cond")
    node.exact_inputs = [types.NamedValue("", None) for _ in node.inputs]
    node.exact_inputs[3].value = operands
    return node.exact_inputs


OPERANDS = Value.of_tuple([Value.of_tensor(types.TensorArgument("addmm"))])


@lie("exact", f"{NODE}.exact_inputs", f"expected as many as inputs, found 1 fewer, {COND}")
def exact_inputs_too_few(tree: Tree) -> None:
    _exact(tree, OPERANDS).pop()


@lie(
    "exact",
    f"{NODE}.exact_inputs[4].name",
    f"expected one of the inputs, each once, found 'more', {COND}",
)
def exact_input_of_another_name(tree: Tree) -> None:
    _exact(tree, OPERANDS).append(types.NamedValue("more", None))


@lie(
    "exact",
    f"{NODE}.exact_inputs[3].value",
    f"expected the value of the input, but for containers, found another, {COND}",
)
def exact_input_of_another_value(tree: Tree) -> None:
    _exact(tree, Value.of_tuple([Value.of_tensor(types.TensorArgument("x"))]))


@lie(
    "undefined-name",
    f"{NODE}.exact_inputs[3].value",
    f"expected a value that is defined before, found 'sin', {COND}",
)
def exact_input_that_comes_later(tree: Tree) -> None:
    _exact(tree, Value.of_tuple([Value.of_tensor(types.TensorArgument("sin"))]))


@lie("depth", f"{NODE}.exact_inputs[3].value", f"expected at most 32 nested containers, found more, {COND}")
def exact_input_without_end(tree: Tree) -> None:
    value = OPERANDS
    for _ in range(40):
        value = Value.of_tuple([value])
    _exact(tree, value)


@lie("exact", f"{NODE}.exact_inputs[3].value", f"expected strings as keys, found others, {COND}")
def exact_input_with_a_number_as_key(tree: Tree) -> None:
    _exact(tree, Value.of_dict([types.ValueItem(Value.of_int(1), Value.of_int(1))]))


@lie("writer", "writer", "expected the writer of the program's own fields, found none")
def own_fields_of_nobody(tree: Tree) -> None:
    _exact(tree, OPERANDS)
    tree.writer = None


NOTE = "expected the note of metadata['custom'], but for containers and keys, found another"


def _note(tree: Tree, note: Value, text: str | None = None) -> None:
    _sign(tree)
    tree.graph_module.custom = note
    if text is not None:
        tree.graph_module.metadata["custom"] = text


@lie("exact", "graph_module.custom", NOTE)
def note_that_says_something_else(tree: Tree) -> None:
    _note(tree, Value.of_tuple([Value.of_int(1)]), "[2]")


@lie("exact", f"{NODE}.custom", f"{NOTE}, {COND}")
def note_of_a_node_that_pytorch_does_not_get(tree: Tree) -> None:
    _sign(tree)
    node_of(tree, "cond").custom = Value.of_tuple([Value.of_int(1)])


@lie("exact", "graph_module.custom", "expected no JSON for a note that JSON cannot hold, found some")
def note_that_json_cannot_hold(tree: Tree) -> None:
    _note(tree, Value.of_complex(types.ComplexValue(1.0, 2.0)), "[1, 2]")


@lie("exact", "graph_module.custom", "expected a constant, found as_tensor")
def note_with_a_tensor(tree: Tree) -> None:
    _note(tree, Value.of_tensor(types.TensorArgument("x")))


@lie("exact", "graph_module.custom", "expected each key once, found one again")
def note_with_a_key_twice(tree: Tree) -> None:
    item = types.ValueItem(Value.of_int(1), Value.of_int(2))
    _note(tree, Value.of_dict([item, item]))


@lie("exact", "graph_module.custom", "expected a constant or a tuple as key, found as_list")
def note_with_a_list_as_key(tree: Tree) -> None:
    _note(tree, Value.of_dict([types.ValueItem(Value.of_list([]), Value.of_int(2))]))


@lie("exact", "graph_module.custom", "expected at most 32 nested containers, found more")
def note_without_end(tree: Tree) -> None:
    note = Value.of_int(1)
    for _ in range(40):
        note = Value.of_list([note])
    _note(tree, note)


@lie("exact", f"{GRAPH}.placeholder_metadata.sin", "expected the name of a node with notes, found 'sin'")
def notes_on_an_input_that_is_none(tree: Tree) -> None:
    _sign(tree)
    tree.graph_module.graph.placeholder_metadata = {"sin": types.Notes({}, None)}


@lie("exact", f"{GRAPH}.output_metadata.output", NOTE)
def notes_on_outputs_that_differ(tree: Tree) -> None:
    _sign(tree)
    notes = types.Notes({"custom": "[2]"}, Value.of_tuple([Value.of_int(1)]))
    tree.graph_module.graph.output_metadata = {"output": notes}


@lie("exact", f"{GRAPH}.get_attr_metadata.sin", "expected the name of a node with notes, found 'sin'")
def notes_on_a_subgraph_that_is_none(tree: Tree) -> None:
    _sign(tree)
    tree.graph_module.graph.get_attr_metadata = {"sin": types.Notes({}, None)}


@lie("exact", f"{GRAPH}.getitem_metadata.sin", "expected the name of a node with notes, found 'sin'")
def notes_on_an_item_that_is_a_call(tree: Tree) -> None:
    _sign(tree)
    tree.graph_module.graph.getitem_metadata = {"sin": types.Notes({}, None)}


@lie(
    "duplicate-name",
    f"{NODE}.inputs[1].arg",
    f"expected a name that is defined once, found 'x' again, {COND}",
)
def getter_of_a_subgraph_with_the_name_of_an_input(tree: Tree) -> None:
    _sign(tree)
    node_of(tree, "cond").inputs[1].arg.as_graph.node = "x"


@lie(
    "name",
    f"{NODE}.inputs[1].arg.as_graph.node",
    f"expected an identifier, found 'a b': not an identifier, {COND}",
)
def getter_of_a_subgraph_that_is_no_name(tree: Tree) -> None:
    _sign(tree)
    node_of(tree, "cond").inputs[1].arg.as_graph.node = "a b"


def _frames(*keys: str) -> list[types.ModuleFrame]:
    return [types.ModuleFrame(key, "a;b", "m.Model") for key in keys]


@lie(
    "exact",
    f"{NODE}.module_stack",
    f"expected no metadata['nn_module_stack'] beside the exact one, found some, {COND}",
)
def modules_that_pytorch_is_told_otherwise(tree: Tree) -> None:
    _sign(tree)
    node = node_of(tree, "cond")
    node.metadata["nn_module_stack"], node.module_stack = "l,,m.Model", _frames("k")


@lie("exact", f"{NODE}.module_stack", f"expected each key once, found one again, {COND}")
def modules_with_a_key_twice(tree: Tree) -> None:
    _sign(tree)
    node = node_of(tree, "cond")
    node.metadata.pop("nn_module_stack", None)
    node.module_stack = _frames("k", "k")


@lie(
    "module-path",
    f"{NODE}.module_stack",
    f"expected a path that stays a text when source is made of it, found 'a\\\\', {COND}",
)
def module_whose_path_ends_a_text(tree: Tree) -> None:
    _sign(tree)
    node = node_of(tree, "cond")
    node.metadata.pop("nn_module_stack", None)
    node.module_stack = [types.ModuleFrame("k", "a\\", "m.Model")]


@lie("exact", f"{GRAPH}.output_metadata.output.module_stack", "expected each key once, found one again")
def modules_of_outputs_with_a_key_twice(tree: Tree) -> None:
    _sign(tree)
    notes = types.Notes({}, None, _frames("k", "k"))
    tree.graph_module.graph.output_metadata = {"output": notes}


@lie("exact", "range_constraints['s77'].min_float", "expected a number that rounds to 2, found 7.5")
def fraction_that_rounds_to_another(tree: Tree) -> None:
    _sign(tree)
    tree.range_constraints["s77"] = types.RangeConstraint(2, 64, min_float=7.5)


@lie("exact", "range_constraints['s77'].max_float", "expected a number that rounds to 64, found nan")
def fraction_that_is_no_number(tree: Tree) -> None:
    _sign(tree)
    tree.range_constraints["s77"] = types.RangeConstraint(2, 64, max_float=float("nan"))


@lie("tensor-meta", f"{GRAPH}.tensor_values['sin'].conj", "expected a complex dtype, found FLOAT")
def conjugated_float(tree: Tree) -> None:
    _sign(tree)
    tree.graph_module.graph.tensor_values["sin"].conj = True


def _subclass(tree: Tree, name: str, context: Value | None = None, part: str = "whole") -> None:
    """A value of a class of its own, made of one other tensor."""
    _sign(tree)
    values = tree.graph_module.graph.tensor_values
    meta = values["sin"]
    meta.inner = {part: copy.deepcopy(meta)}
    meta.subclass, meta.context = name, context


_SIN = f"{GRAPH}.tensor_values['sin']"


@lie("tensor-meta", f"{_SIN}.subclass", "expected MODULE:QUALIFIED_NAME, found 'os.system()'")
def tensor_of_a_class_that_is_a_call(tree: Tree) -> None:
    _subclass(tree, "os.system()")


@lie("tensor-meta", f"{_SIN}.context", "expected a constant, found as_tensor")
def tensor_of_a_class_with_a_tensor_as_constant(tree: Tree) -> None:
    _subclass(tree, "vendor:Quantized", Value.of_tensor(types.TensorArgument("x")))


@lie("tensor-meta", f"{_SIN}.inner['a b']", "expected an identifier, found 'a b': not an identifier")
def tensor_of_a_class_with_a_part_that_is_no_name(tree: Tree) -> None:
    _subclass(tree, "vendor:Quantized", part="a b")


@lie("tensor-meta", f"{_SIN}.inner['whole'].dtype", "expected a dtype, found UNKNOWN")
def tensor_of_a_class_with_a_part_without_a_dtype(tree: Tree) -> None:
    _subclass(tree, "vendor:Quantized")
    inner = tree.graph_module.graph.tensor_values["sin"].inner
    assert inner is not None
    inner["whole"].dtype = types.ScalarType.UNKNOWN


@lie("tensor-meta", f"{_SIN}.inner", "expected the tensors that a tensor is made of, found none")
def tensor_of_a_class_made_of_nothing(tree: Tree) -> None:
    _sign(tree)
    tree.graph_module.graph.tensor_values["sin"].subclass = "vendor:Quantized"


@lie("tensor-meta", f"{_SIN}.context", "expected none for a tensor of PyTorch's own class, found one")
def plain_tensor_with_the_constants_of_a_class(tree: Tree) -> None:
    _sign(tree)
    tree.graph_module.graph.tensor_values["sin"].context = Value.of_int(1)


ENUM = Value.of_enum(types.EnumMember("signal:Signals", "SIGINT"))
SIGNATURE_IN = f"{CALLS}[0].signature.exact_in_spec"
LEAF = types.TreeSpecNode("")


def _spec(tree: Tree, *nodes: types.TreeSpecNode) -> None:
    """An exact tree spec of the inputs, honest but for what is given: two leaves as positional arguments."""
    _sign(tree)
    signature = tree.graph_module.module_call_graph[0].signature
    assert signature is not None
    keywords = types.TreeSpecNode("builtins.dict", Value.of_list([]), 0)
    outer = types.TreeSpecNode("builtins.tuple", None, 2)
    signature.exact_in_spec = [outer, *nodes, keywords]


def _arguments(kind: str = "builtins.tuple", context: Value | None = None) -> types.TreeSpecNode:
    return types.TreeSpecNode(kind, context, 2)


@lie("exact", SIGNATURE_IN, "expected what in_spec says, but for keys and contexts, found another")
def exact_spec_of_another_container(tree: Tree) -> None:
    _spec(tree, types.TreeSpecNode("builtins.tuple", None, 1), _arguments("builtins.list"), LEAF, LEAF)


@lie(
    "treespec",
    SIGNATURE_IN,
    "expected 2 keys, one for each child, found 1 ([1].context)",
)
def exact_spec_with_too_few_keys(tree: Tree) -> None:
    _spec(tree, _arguments("builtins.dict", Value.of_list([ENUM])), LEAF, LEAF)


@lie("treespec", SIGNATURE_IN, "expected different keys, found one twice ([1].context)")
def exact_spec_with_a_key_twice(tree: Tree) -> None:
    _spec(tree, _arguments("builtins.dict", Value.of_list([ENUM, ENUM])), LEAF, LEAF)


@lie("treespec", SIGNATURE_IN, "expected a constant, found as_tensor ([1].context)")
def exact_spec_with_a_tensor_as_key(tree: Tree) -> None:
    tensor = Value.of_tensor(types.TensorArgument("x"))
    _spec(tree, _arguments("builtins.dict", Value.of_list([tensor, ENUM])), LEAF, LEAF)


@lie(
    "treespec",
    SIGNATURE_IN,
    "expected a member of an enum, MODULE:NAME, found 'os.system.x' ([1].context)",
)
def exact_spec_with_a_function_as_enum(tree: Tree) -> None:
    function = Value.of_enum(types.EnumMember("os.system", "x"))
    _spec(tree, _arguments("builtins.dict", Value.of_list([function, ENUM])), LEAF, LEAF)


@lie(
    "treespec",
    f"{CALLS}[0].signature.in_spec",
    'expected a plain text as key, found "a\'+x", which holds a quote, which PyTorch pastes into source '
    "unescaped",
)
def exact_spec_with_source_as_key(tree: Tree) -> None:
    keys = Value.of_list([Value.of_tuple([Value.of_string("a'+x")]), ENUM])
    _spec(tree, types.TreeSpecNode("builtins.tuple", None, 1), _arguments("builtins.dict", keys), LEAF, LEAF)
    tree.beyond = ["members of enums as keys"]
    signature = tree.graph_module.module_call_graph[0].signature
    signature.in_spec, signature.forward_arg_names = "", None


@lie(
    "treespec",
    SIGNATURE_IN,
    "expected None, or a plain container or number, as the default_factory, found "
    "Value(as_string='os.system') ([1].context)",
)
def exact_spec_with_a_function_as_factory(tree: Tree) -> None:
    context = Value.of_tuple([Value.of_string("os.system"), Value.of_list([ENUM, Value.of_int(1)])])
    _spec(tree, _arguments("collections.defaultdict", context), LEAF, LEAF)


@lie("treespec", SIGNATURE_IN, "expected the name of a class, found 'os:system()' ([1].type)")
def exact_spec_of_a_call(tree: Tree) -> None:
    _spec(tree, _arguments("os:system()"), LEAF, LEAF)


@lie("treespec", SIGNATURE_IN, "expected children behind it, found -1 ([1].children)")
def exact_spec_with_less_than_no_children(tree: Tree) -> None:
    _spec(tree, types.TreeSpecNode("builtins.tuple", None, -1), LEAF, LEAF)


@lie("treespec", SIGNATURE_IN, "expected one root, found 1 more nodes behind it")
def exact_spec_with_more_nodes_than_children(tree: Tree) -> None:
    _spec(tree, _arguments(), LEAF, LEAF, LEAF)


@lie("treespec", SIGNATURE_IN, "expected as many nodes as containers have children, found fewer")
def exact_spec_with_fewer_nodes_than_children(tree: Tree) -> None:
    _spec(tree, types.TreeSpecNode("builtins.tuple", None, 3), LEAF)


@lie("treespec", SIGNATURE_IN, "expected a leaf without context and children, found some ([1])")
def exact_spec_with_a_leaf_that_has_children(tree: Tree) -> None:
    _spec(tree, types.TreeSpecNode("", None, 2), LEAF, LEAF)


@lie(
    "treespec",
    f"{CALLS}[0].signature.in_spec",
    "expected JSON, found '': Expecting value: line 1 column 1 (char 0)",
)
def exact_spec_alone_where_pytorch_could_have_one(tree: Tree) -> None:
    _spec(tree, _arguments(), LEAF, LEAF)
    tree.graph_module.module_call_graph[0].signature.in_spec = ""


@lie("exact", "beyond", "expected what PyTorch cannot express, or no list, found an empty one")
def nothing_that_pytorch_cannot_express(tree: Tree) -> None:
    _sign(tree)
    tree.beyond = []


@lie("exact", f"{NODE}.subgraphs", f"expected exact_inputs that name the subgraphs, found none, {COND}")
def subgraphs_that_nothing_names(tree: Tree) -> None:
    _sign(tree)
    node = node_of(tree, "cond")
    node.subgraphs = [types.GraphArgument("mask", node.inputs[1].arg.as_graph.graph)]


@lie(
    "exact",
    f"{NODE}.exact_inputs[3].value",
    f"expected one of the node's subgraphs, found 'true_graph_0', {COND}",
)
def exact_input_with_a_subgraph_of_nobody(tree: Tree) -> None:
    _exact(tree, Value.of_tuple([Value.of_subgraph("true_graph_0")]))


@lie(
    "exact",
    f"{NODE}.exact_inputs[3].value",
    f"expected a member of an enum, MODULE:NAME, found 'os.system.x', {COND}",
)
def exact_input_with_a_function_as_enum(tree: Tree) -> None:
    _exact(tree, Value.of_tuple([Value.of_enum(types.EnumMember("os.system", "x"))]))


@lie(
    "exact",
    f"{NODE}.exact_inputs[3].value",
    f"expected the value of the input, but for containers, found another, {COND}",
)
def exact_input_where_nothing_stands_in(tree: Tree) -> None:
    _exact(tree, Value.of_tuple([Value.of_int(1)]))
    tree.beyond = ["something else"]


@lie(
    "exact",
    f"{NODE}.exact_inputs[3].value",
    f"expected the value of the input, but for containers, found another, {COND}",
)
def exact_input_that_needs_nothing_in_its_place(tree: Tree) -> None:
    _exact(tree, Value.of_tensor(types.TensorArgument("addmm")))
    tree.beyond = ["something else"]
    node_of(tree, "cond").inputs[3].arg = types.Argument.of_none(True)


@lie("exact", f"{GRAPH}.exact_output", "expected the outputs, but for containers, found others")
def exact_output_that_is_a_container(tree: Tree) -> None:
    _sign(tree)
    tree.beyond = ["something else"]
    graph, specs = tree.graph_module.graph, tree.graph_module.signature.output_specs
    none = types.Argument.of_none(True)
    graph.outputs[-1], specs[-1] = none, types.OutputSpec.of_user_output(types.UserOutputSpec(none))
    exact = [Value.create(**{argument.type: argument.value}) for argument in graph.outputs[:-1]]
    graph.exact_output = Value.of_tuple([*exact, Value.of_list([Value.of_int(1), Value.of_none(True)])])


@lie("exact", f"{GRAPH}.exact_output", "expected the outputs, but for containers, found others")
def exact_output_of_another_value(tree: Tree) -> None:
    _sign(tree)
    outputs = tree.graph_module.graph.outputs
    exact = [Value.create(**{argument.type: argument.value}) for argument in outputs]
    tree.graph_module.graph.exact_output = Value.of_tuple([*exact[:-1], Value.of_int(1)])


@lie("exact", f"{GRAPH}.exact_output", "expected 3 outputs, found as_none")
def exact_output_that_is_none(tree: Tree) -> None:
    _sign(tree)
    tree.graph_module.graph.exact_output = Value.of_none(True)


def _order(tree: Tree) -> list[str]:
    _sign(tree)
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


BRANCH = f"{NODE}.inputs[1].arg.as_graph.graph"


def _held(tree: Tree, **changes: Any) -> types.Graph:
    """A tensor that the branch of `cond` holds, honest but for the changes of it."""
    _sign(tree)
    tree.beyond = ["tensors that subgraphs hold"]
    graph = node_of(tree, "cond").inputs[1].arg.as_graph.graph
    meta = types.TensorMeta(
        dtype=types.ScalarType.INT,
        sizes=[types.SymInt.of_int(2)],
        requires_grad=False,
        device=types.Device(type="cpu"),
        strides=[types.SymInt.of_int(1)],
        storage_offset=types.SymInt.of_int(0),
        layout=types.Layout.Strided,
    )
    constant = types.GraphConstant("made", "made", bytes(8))
    for field, value in changes.items():
        setattr(meta if hasattr(meta, field) and field != "requires_grad" else constant, field, value)
    graph.tensor_values["made"] = meta
    graph.constants = [constant]
    return graph


@lie(
    "held-tensor",
    f"{GRAPH}.constants",
    "expected the tensors of a program as its inputs, found some in its graph",
)
def tensors_in_the_top_graph(tree: Tree) -> None:
    _sign(tree)
    tree.beyond = ["tensors that subgraphs hold"]
    tree.graph_module.graph.constants = []


@lie(
    "exact",
    f"{BRANCH}.constants",
    "expected a program that says what PyTorch cannot express of it, found none",
)
def held_tensor_that_pytorch_lacks(tree: Tree) -> None:
    _held(tree)
    tree.beyond = None


@lie("held-tensor", f"{BRANCH}.constants[0].data", "expected 8 bytes, found 7")
def held_tensor_of_too_few_bytes(tree: Tree) -> None:
    _held(tree, data=bytes(7))


@lie("held-tensor", f"{BRANCH}.constants[0].data", "expected 8 bytes, found 9")
def held_tensor_of_too_many_bytes(tree: Tree) -> None:
    _held(tree, data=bytes(9))


@lie("held-tensor", f"{BRANCH}.constants[0]", "expected integers as sizes, found a symbolic expression")
def held_tensor_of_unknown_size(tree: Tree) -> None:
    size = tree.graph_module.graph.tensor_values["x"].sizes[0]
    _held(tree, sizes=[size])


@lie(
    "held-tensor",
    f"{BRANCH}.constants[0]",
    "expected the numbers themselves, found a conjugation or negation of them",
)
def held_tensor_negated(tree: Tree) -> None:
    _held(tree, neg=True)


@lie(
    "held-tensor",
    f"{BRANCH}.constants[0]",
    "expected a device cpu without an index, found 99",
)
def held_tensor_on_a_device_with_an_index(tree: Tree) -> None:
    _held(tree, device=types.Device("cpu", 99))


@lie(
    "held-tensor",
    f"{BRANCH}.constants[0].requires_grad",
    "expected a dtype with gradients, or requires_grad false, found INT",
)
def held_integers_with_a_gradient(tree: Tree) -> None:
    _held(tree, requires_grad=True)


@lie(
    "name",
    f"{BRANCH}.constants[0].target",
    "expected an identifier, found 'x=__import__(\"os\")': not an identifier",
)
def held_tensor_whose_attribute_is_code(tree: Tree) -> None:
    _held(tree, target='x=__import__("os")')


@lie("missing-value", f"{BRANCH}.constants[0]", "expected 'made' in tensor_values, found nothing")
def held_tensor_without_a_description(tree: Tree) -> None:
    del _held(tree).tensor_values["made"]


@lie("duplicate-name", f"{BRANCH}.constants[1]", "expected a name that is defined once, found 'made' again")
def held_tensor_twice(tree: Tree) -> None:
    graph = _held(tree)
    graph.constants *= 2


@lie("held-tensor", f"{BRANCH}.constants[1]", "expected one tensor named 'made', found two that differ")
def held_tensors_in_one_place(tree: Tree) -> None:
    graph = _held(tree)
    graph.tensor_values["other"] = graph.tensor_values["made"]
    graph.constants.append(types.GraphConstant("other", "made", b"\1" * 8))


@lie("held-tensor", f"{BRANCH}.constants[1]", "expected one tensor named 'made', found two that differ")
def held_tensors_of_two_dtypes_in_one_place(tree: Tree) -> None:
    graph = _held(tree)
    graph.tensor_values["other"] = copy.copy(graph.tensor_values["made"])
    graph.tensor_values["other"].dtype = types.ScalarType.FLOAT
    graph.constants.append(types.GraphConstant("other", "made", bytes(8)))


CONSTANT = "graph_module.signature.input_specs[4].constant_input"


def _enum_input(tree: Tree, exact: Value, *, is_none: bool = True) -> None:
    """An input that is a member of an enum, in place of a text."""
    _sign(tree)
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
    _sign(tree)
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
