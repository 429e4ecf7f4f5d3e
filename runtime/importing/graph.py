"""A graph: its inputs, its nodes in order, its outputs, and what every name stands for."""

from __future__ import annotations

import operator
from typing import Any

from torch.fx import GraphModule, Node
from torch.fx.experimental.symbolic_shapes import _free_unbacked_symbols_with_path

from ..errors import DeserializeError
from ..generated import types
from ..items import MADE_UP, by_owner
from .arguments import import_argument
from .exact import import_enum_input, import_exact, import_plain_value
from .faults import cause_of, located, within
from .held_tensors import import_held_tensors, place_held_tensors
from .items import check_all_made
from .metadata import METADATA_KEYS
from .nodes import import_node, import_notes
from .order import import_order
from .structures import import_held_structures
from .values import Program, Values, check_name


def import_graph(
    tree: types.Graph,
    program: Program,
    constant_inputs: dict[int, types.InputToConstantInputSpec] | None = None,
    *,
    is_subgraph: bool = False,
) -> Values:
    """Read a graph, the subgraphs of its higher-order operators included.

    Args:
        tree: The graph.
        program: What it shares with the program's other graphs.
        is_subgraph: Whether a call of another graph is given it.
        constant_inputs: By position, what the signature says of inputs that are constants: a graph has no
            names for them.

    Returns:
        The finished FX graph, with the module that holds its subgraphs.

    Raises:
        DeserializeError: The graph is wrong, or cannot be read yet; the path names the place.
    """
    values = Values(program, tree, constant_inputs or {}, items=by_owner(tree.getitems))
    symbols = program.symbols
    outer_unbound, symbols.unbound = symbols.unbound, set()
    for index, argument in enumerate(tree.inputs):
        try:
            _add_placeholder(index, argument, values)
        except Exception as error:
            raise located(error, f"inputs[{index}]") from cause_of(error)
    import_held_tensors(values)
    import_held_structures(values)
    for index, node in enumerate(tree.nodes):
        try:
            import_node(node, values)
        except Exception as error:
            raise _in_node(located(error, f"nodes[{index}]"), node) from cause_of(error)
    check_all_made(values)
    _add_output(tree, values)
    _drop_unused_outputs(values)
    _add_notes("placeholder", tree.placeholder_metadata, values)
    _add_notes("output", tree.output_metadata, values)
    import_order(values)
    _add_notes("get_attr", tree.get_attr_metadata, values)
    _add_notes("getitem", tree.getitem_metadata, values)
    _bind_unbacked(values, is_subgraph)
    symbols.unbound = outer_unbound
    return values


def _in_node(error: DeserializeError, node: types.Node) -> DeserializeError:
    name = node.name or node.target
    return type(error)(f"{error.message}, in node {name[:80]!r}", path=error.path, hint=error.hint)


def import_subgraph(tree: types.Graph, values: Values) -> GraphModule:
    """Read the graph that a higher-order operator is called with."""
    try:
        inner = import_graph(tree, values.program, is_subgraph=True)
    except DeserializeError as error:
        raise located(error, "graph") from cause_of(error)
    try:
        module = GraphModule(inner.module, inner.graph)
    except SyntaxError as error:
        raise DeserializeError(
            "expected a graph with valid names, found one whose source does not compile"
        ) from error
    if tree.custom is not None:
        with within("graph.custom"):
            module.meta["custom"] = import_plain_value(tree.custom, values.program.permissions.types)
    return module


_INPUT_MEMBERS = {
    "as_tensor": lambda value: value.name,
    "as_sym_int": lambda value: value.as_name,
    "as_sym_float": lambda value: value.as_name,
    "as_sym_bool": lambda value: value.as_name,
    "as_custom_obj": lambda value: value.name,
}
_CONSTANT_MEMBERS = ("as_int", "as_float", "as_bool", "as_none", "as_string")


def _add_placeholder(index: int, argument: types.Argument, values: Values) -> None:
    member = argument.type
    if member in _CONSTANT_MEMBERS:
        constant = values.constant_inputs.get(index)
        node = values.graph.placeholder(f"arg{index}" if constant is None else constant.name)
        if constant is not None:  # FX alters a name that it finds unfit, `type` say
            check_name(constant.name)
            node.name = constant.name
        if constant is not None and constant.exact_value is not None:
            node.meta["val"] = import_enum_input(constant.exact_value, values.program.permissions.types)
        else:
            node.meta["val"] = import_argument(argument, values)
    elif member in _INPUT_MEMBERS:
        name = _INPUT_MEMBERS[member](argument.value)
        values.define(name, values.graph.placeholder(name))
    else:
        import_argument(argument, values)  # says so itself where the kind of value cannot be read yet
        raise DeserializeError(f"expected a tensor, a symbolic number or a constant as input, found {member}")


_OUTPUT_MEMBERS = frozenset((*_INPUT_MEMBERS, *_CONSTANT_MEMBERS))


def _add_output(tree: types.Graph, values: Values) -> None:
    outputs: list[Any] = []
    for index, argument in enumerate(tree.outputs):
        try:
            if argument.type not in _OUTPUT_MEMBERS:
                raise DeserializeError(f"expected a value or a constant as output, found {argument.type}")
            outputs.append(import_argument(argument, values))
        except Exception as error:
            raise located(error, f"outputs[{index}]") from cause_of(error)
    if tree.exact_output is not None:
        with within("exact_output"):
            exact = import_exact(tree.exact_output, values)
        if not isinstance(exact, (list, tuple)) or len(exact) != len(outputs):
            raise DeserializeError(f"expected {len(outputs)} outputs", path="exact_output")
        node = values.graph.output(exact)
        node.meta["val"] = type(exact)(map(_output_value, exact))
    elif tree.is_single_tensor_return:
        if len(outputs) != 1 or not isinstance(outputs[0], Node):
            raise DeserializeError(
                f"expected one tensor as the only output, found {len(outputs)}", path="outputs"
            )
        node = values.graph.output(outputs[0])
        node.meta["val"] = outputs[0].meta["val"]
    else:
        node = values.graph.output(tuple(outputs))
        node.meta["val"] = tuple(map(_output_value, outputs))
    place_held_tensors(values, node)


def _output_value(output: Any) -> Any:
    return output.meta.get("val") if isinstance(output, Node) else output


def _add_notes(kind: str, notes: dict[str, types.Notes] | None, values: Values) -> None:
    """Put the notes on nodes that are no calls where they were, in place of those of the call."""
    if notes is None:
        return
    nodes = {node.name: node for node in values.graph.nodes if _kind(node) == kind}
    for name, noted in notes.items():
        with within(f"{kind}_metadata[{name[:80]!r}]"):
            if name not in nodes:
                raise DeserializeError(f"expected the name of the node of {_NOTED[kind]}, found another")
            meta = nodes[name].meta
            for key in METADATA_KEYS:
                meta.pop(key, None)
            meta.update(import_notes(noted, values))


def _kind(node: Node) -> str:
    return "getitem" if node.target is operator.getitem else node.op


_NOTED = {
    "placeholder": "an input",
    "output": "the outputs",
    "get_attr": "a subgraph",
    "getitem": "one of several outputs",
}


def _drop_unused_outputs(values: Values) -> None:
    """Take out the `getitem` nodes of outputs that had none when the program was written.

    The format lists all outputs, and PyTorch's reader takes each out. Without those nodes the graph is the
    one that was written.
    """
    for node in reversed(values.graph.nodes):
        unused = node.target is operator.getitem and not node.users and node not in values.kept
        if unused and (node in values.unnamed or MADE_UP.fullmatch(node.name)):
            values.graph.erase_node(node)
            values.unnamed.pop(node, None)
    for node in values.unnamed:
        while node.name in values.nodes or node.name in values.attributes:
            node.name = values.graph._graph_namespace.create_name("getitem", None)


def _bind_unbacked(values: Values, is_subgraph: bool) -> None:
    """Note on each node which unbacked symbols it makes, and where in its value they are.

    What a subgraph is given, something outside of it has made. Some symbols nothing makes: of a loop over
    weights, tracing leaves one in the offsets of its results.
    """
    symbols = values.program.symbols
    for node in values.graph.nodes if symbols.unbound else ():
        value = node.meta.get("val")
        bindings = _free_unbacked_symbols_with_path(
            value, (), shape_env=symbols.shape_env, pending=symbols.unbound
        )
        if bindings and not (is_subgraph and node.op == "placeholder"):
            node.meta["unbacked_bindings"] = bindings
