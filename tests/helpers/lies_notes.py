"""Lies in the fields of our own about notes on nodes and programs."""

from __future__ import annotations

from pt2wire.generated import types

from .lies import GRAPH, IN_COND, NODE, Tree, Value, lie, node_of, sign

NOTE = "expected the note of metadata['custom'], but for containers and keys, found another"


def _note(tree: Tree, note: Value, text: str | None = None) -> None:
    sign(tree)
    tree.graph_module.custom = note
    if text is not None:
        tree.graph_module.metadata["custom"] = text


@lie("exact", "graph_module.custom", NOTE)
def note_that_says_something_else(tree: Tree) -> None:
    _note(tree, Value.of_tuple([Value.of_int(1)]), "[2]")


@lie("exact", f"{NODE}.custom", f"{NOTE}{IN_COND}")
def note_of_a_node_that_pytorch_does_not_get(tree: Tree) -> None:
    sign(tree)
    node_of(tree, "cond").custom = Value.of_tuple([Value.of_int(1)])


@lie("exact", "graph_module.custom", "expected no JSON for a note that JSON cannot hold, found some")
def note_that_json_cannot_hold(tree: Tree) -> None:
    _note(tree, Value.of_complex(types.ComplexValue(1.0, 2.0)), "[1, 2]")


@lie("exact", "graph_module.custom", "expected a constant, found as_tensor")
def note_with_a_tensor(tree: Tree) -> None:
    _note(tree, Value.of_tensor(types.TensorArgument("x")))


@lie(
    "exact",
    "graph_module.custom",
    "expected at most 256 keys that are tuples, long integers or the like, found 300",
)
def note_with_tuples_as_keys_without_end(tree: Tree) -> None:
    keys = [Value.of_tuple([Value.of_int(number)]) for number in range(300)]
    _note(tree, Value.of_dict([types.ValueItem(key, Value.of_int(2)) for key in keys]))


@lie("exact", "graph_module.custom", "expected different keys, found one twice")
def note_with_a_key_twice(tree: Tree) -> None:
    item = types.ValueItem(Value.of_int(1), Value.of_int(2))
    _note(tree, Value.of_dict([item, item]))


@lie("exact", "graph_module.custom", "expected a constant or a tuple as key, found as_list")
def note_with_a_list_as_key(tree: Tree) -> None:
    _note(tree, Value.of_dict([types.ValueItem(Value.of_list([]), Value.of_int(2))]))


_FIELDS = ["x", "y"]
_ONES = [Value.of_int(1), Value.of_int(1)]


def _named(path: str = "geometry:Point", fields: list[str] = _FIELDS, values: list[Value] = _ONES) -> Value:
    return Value.of_named_tuple(types.NamedTupleValue(path, fields, values))


@lie(
    "exact",
    "graph_module.custom",
    "expected as many items of a named tuple as it has fields, 2, found 1",
)
def note_with_fields_that_hold_nothing(tree: Tree) -> None:
    _note(tree, _named(values=_ONES[:1]))


@lie(
    "exact",
    "graph_module.custom",
    "expected different names of the fields of a named tuple, found one twice",
)
def note_with_a_field_twice(tree: Tree) -> None:
    _note(tree, Value.of_list([_named(fields=["x", "x"])]))


@lie(
    "exact",
    "graph_module.custom",
    "expected the name of a field, found 'x=print()': not an identifier",
)
def note_with_source_as_field(tree: Tree) -> None:
    _note(tree, Value.of_dict([types.ValueItem(_named(fields=["x=print()", "y"]), Value.of_int(2))]))


@lie(
    "exact",
    "graph_module.custom",
    "expected the class of a named tuple, MODULE:NAME, found 'os.system'",
)
def note_of_a_class_that_is_none(tree: Tree) -> None:
    _note(tree, _named("os.system"))


@lie("exact", "graph_module.custom", NOTE)
def note_of_a_named_tuple_that_says_something_else(tree: Tree) -> None:
    _note(tree, _named(), "[1, 2]")


@lie("exact", "graph_module.custom", "expected at most 32 nested containers, found more")
def note_without_end(tree: Tree) -> None:
    note = Value.of_int(1)
    for _ in range(40):
        note = Value.of_list([note])
    _note(tree, note)


@lie("exact", f"{GRAPH}.placeholder_metadata.sin", "expected the name of a node with notes, found 'sin'")
def notes_on_an_input_that_is_none(tree: Tree) -> None:
    sign(tree)
    tree.graph_module.graph.placeholder_metadata = {"sin": types.Notes({}, None)}


@lie("exact", f"{GRAPH}.output_metadata.output", NOTE)
def notes_on_outputs_that_differ(tree: Tree) -> None:
    sign(tree)
    notes = types.Notes({"custom": "[2]"}, Value.of_tuple([Value.of_int(1)]))
    tree.graph_module.graph.output_metadata = {"output": notes}


@lie("exact", f"{GRAPH}.get_attr_metadata.sin", "expected the name of a node with notes, found 'sin'")
def notes_on_a_subgraph_that_is_none(tree: Tree) -> None:
    sign(tree)
    tree.graph_module.graph.get_attr_metadata = {"sin": types.Notes({}, None)}


@lie("exact", f"{GRAPH}.custom", "expected the note on the top graph in GraphModule, found it in Graph")
def note_on_the_top_graph_beside_its_module(tree: Tree) -> None:
    sign(tree)
    tree.graph_module.graph.custom = Value.of_int(1)


@lie("exact", f"{GRAPH}.getitem_metadata.sin", "expected the name of a node with notes, found 'sin'")
def notes_on_an_item_that_is_a_call(tree: Tree) -> None:
    sign(tree)
    tree.graph_module.graph.getitem_metadata = {"sin": types.Notes({}, None)}


@lie(
    "duplicate-name",
    f"{NODE}.inputs[1].arg",
    f"expected a name that is defined once, found 'x' again{IN_COND}",
)
def getter_of_a_subgraph_with_the_name_of_an_input(tree: Tree) -> None:
    sign(tree)
    node_of(tree, "cond").inputs[1].arg.as_graph.node = "x"


@lie("duplicate-name", f"{GRAPH}.nodes", "expected a name for the node that gets 'x', found none")
def getter_with_notes_whose_name_is_that_of_an_input(tree: Tree) -> None:
    sign(tree)
    node_of(tree, "cond").inputs[1].arg.as_graph.name = "x"
    tree.graph_module.graph.get_attr_metadata = {"x": types.Notes({}, None)}


@lie(
    "subgraph",
    f"{NODE}.inputs[2].arg.as_graph.node",
    f"expected a node that gets 'false_graph_0', found one that gets 'true_graph_0'{IN_COND}",
)
def getter_of_two_subgraphs(tree: Tree) -> None:
    sign(tree)
    node_of(tree, "cond").inputs[1].arg.as_graph.node = "branch"
    node_of(tree, "cond").inputs[2].arg.as_graph.node = "branch"


@lie(
    "name",
    f"{NODE}.inputs[1].arg.as_graph.node",
    f"expected an identifier, found 'a b': not an identifier{IN_COND}",
)
def getter_of_a_subgraph_that_is_no_name(tree: Tree) -> None:
    sign(tree)
    node_of(tree, "cond").inputs[1].arg.as_graph.node = "a b"


def _frames(*keys: str) -> list[types.ModuleFrame]:
    return [types.ModuleFrame(key, "a;b", "m.Model") for key in keys]


@lie(
    "exact",
    f"{NODE}.module_stack",
    f"expected no metadata['nn_module_stack'] beside the exact one, found some{IN_COND}",
)
def modules_that_pytorch_is_told_otherwise(tree: Tree) -> None:
    sign(tree)
    node = node_of(tree, "cond")
    node.metadata["nn_module_stack"], node.module_stack = "l,,m.Model", _frames("k")


@lie("exact", f"{NODE}.module_stack", f"expected each key once, found one again{IN_COND}")
def modules_with_a_key_twice(tree: Tree) -> None:
    sign(tree)
    node = node_of(tree, "cond")
    node.metadata.pop("nn_module_stack", None)
    node.module_stack = _frames("k", "k")


@lie(
    "module-path",
    f"{NODE}.module_stack",
    f"expected a path that stays a text when source is made of it, found 'a\\\\'{IN_COND}",
)
def module_whose_path_ends_a_text(tree: Tree) -> None:
    sign(tree)
    node = node_of(tree, "cond")
    node.metadata.pop("nn_module_stack", None)
    node.module_stack = [types.ModuleFrame("k", "a\\", "m.Model")]


@lie("exact", f"{GRAPH}.output_metadata.output.module_stack", "expected each key once, found one again")
def modules_of_outputs_with_a_key_twice(tree: Tree) -> None:
    sign(tree)
    notes = types.Notes({}, None, _frames("k", "k"))
    tree.graph_module.graph.output_metadata = {"output": notes}
