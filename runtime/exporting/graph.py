"""A graph: its inputs, its nodes in order, its outputs, and what every name stands for."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable
from types import NoneType
from typing import Any

import torch
from torch.export.graph_signature import CustomObjArgument
from torch.fx import GraphModule, Node

from ..errors import SerializeError
from ..generated import types
from ..objects import object_class
from .arguments import export_argument, export_input
from .delegates import is_lowered
from .exact import comes_back, export_dropped_note, export_exact, export_notes, export_own_notes
from .faults import located
from .held_tensors import export_held_tensor, held_tensor, placed_by
from .nodes import export_node
from .order import export_order, is_held
from .structures import export_held_structure, held_structure
from .subclasses import add_subclasses
from .tables import TypeTable
from .values import Values, export_value


def export_graph(module: GraphModule, values: Values) -> types.Graph:
    """Write a graph, the subgraphs of its higher-order operators included.

    Args:
        module: The graph, in topological order, with the modules that its `get_attr` nodes name.
        values: Empty, to be filled with the values that the graph defines.

    Raises:
        SerializeError: Its path is the name of the node, behind those of the nodes that hold the subgraph.
    """
    graph = types.Graph(
        inputs=[],
        outputs=[],
        nodes=[],
        tensor_values=values.tensors,
        sym_int_values=values.sym_ints,
        sym_bool_values=values.sym_bools,
        custom_obj_values=values.custom_objs,
        sym_float_values=values.sym_floats,
    )
    for node in module.graph.nodes:
        try:
            _NODES.get(node.op, _refuse)(node, graph, values)
        except SerializeError as error:
            raise located(error, node.name) from error.__cause__
    if values.regions:
        raise SerializeError(
            "expected the end of each region of autocast, found none", path=values.regions[-1].name
        )
    add_subclasses(values)
    graph.getitems = list(values.items.values()) or None
    graph.order = export_order(module.graph, values)
    return graph


def export_inner_graph(name: str, module: GraphModule, values: Values) -> types.Graph:
    """Write the graph of a subgraph, with what users noted on it.

    Args:
        name: What the subgraph is called.
        module: As for `export_graph`.
        values: As for `export_graph`.
    """
    graph = export_graph(module, values)
    graph.custom = export_dropped_note(module.meta, name, beside_json=False)
    return graph


def _add_placeholder(node: Node, graph: types.Graph, values: Values) -> None:
    value = node.meta["val"]
    try:
        export = _PLACEHOLDERS[type(value)]
    except KeyError:
        export = _export_object
    graph.inputs.append(export(node, value, values))
    values.order.append(node.name)
    if (notes := export_notes(node)) is not None:
        if graph.placeholder_metadata is None:
            graph.placeholder_metadata = {}
        graph.placeholder_metadata[node.name] = notes


def _export_constant(node: Node, value: Any, values: Values) -> types.Argument:
    return export_argument(value, values)


def _export_object(node: Node, value: Any, values: Values) -> types.Argument:
    class_fqn = object_class(value)
    if class_fqn is None:
        raise SerializeError(
            "expected a tensor, a number, symbolic or not, str, None, a member of an enum or a custom "
            f"object as input, found {type(value).__qualname__}"
        )
    values.program.refused.append(f"an object of the opaque type {class_fqn} as input")
    return _export_input(node, CustomObjArgument(name=node.name, class_fqn=class_fqn), values)


def _export_input(node: Node, value: Any, values: Values) -> types.Argument:
    return export_value(node.name, value, (node,), values)


def _export_number(node: Node, value: Any, values: Values) -> types.Argument:
    kind = "float" if isinstance(value, torch.SymFloat) else "bool"
    values.program.refused.append(f"the symbolic {kind} `{node.name}` as an input")
    return _export_input(node, value, values)


def _export_enum_member(node: Node, value: enum.Enum, values: Values) -> types.Argument:
    # Which member it is stands in the signature.
    values.program.beyond.append(f"the input `{node.name}`, a member of an enum")
    return types.Argument.of_none(True)


_PLACEHOLDERS: TypeTable[Callable[[Node, Any, Values], types.Argument]] = TypeTable(
    {
        torch.Tensor: _export_input,
        torch.SymInt: _export_input,
        torch.SymFloat: _export_number,
        torch.SymBool: _export_number,
        int: _export_constant,
        bool: _export_constant,
        str: _export_constant,
        float: _export_constant,
        NoneType: _export_constant,
        enum.Enum: _export_enum_member,
        CustomObjArgument: _export_input,
    },
    exact=(int, float, str),
)


def _add_call(node: Node, graph: types.Graph, values: Values) -> None:
    if node.target is not operator.getitem:
        graph.nodes.append(export_node(node, values))
        return
    # A getitem was written with the node that it takes apart, but for its notes.
    call = node
    while call.target is operator.getitem:
        call = call.args[0]  # type: ignore[assignment]
    if node in values.references or node in values.items:
        graph.getitem_metadata = _with_notes(graph.getitem_metadata, node, call)


def _add_attribute(node: Node, graph: types.Graph, values: Values) -> None:
    """A tensor or tree spec, or of a subgraph the notes: it is written where a node is called with it.

    Of a lowered module nothing but its name is.
    """
    if is_lowered(node):
        return
    if (tensor := held_tensor(node)) is not None:
        graph.constants = [] if graph.constants is None else graph.constants
        graph.constants.append(export_held_tensor(node, tensor, values))
    if (spec := held_structure(node)) is not None:
        graph.structures = [] if graph.structures is None else graph.structures
        graph.structures.append(export_held_structure(node, spec, values))
    if node.users or is_held(node, values):
        graph.get_attr_metadata = _with_notes(graph.get_attr_metadata, node, placed_by(node))


def _with_notes(
    table: dict[str, types.Notes] | None, node: Node, call: Node | None
) -> dict[str, types.Notes] | None:
    """A table of notes, to which those of a node are added that the format has none for."""
    notes = export_own_notes(node, call)
    if notes is not None:
        table = {} if table is None else table
        table[node.name] = notes
    return table


def _add_output(node: Node, graph: types.Graph, values: Values) -> None:
    outputs = node.args[0]
    # Subgraphs may return one tensor rather than a tuple.
    graph.is_single_tensor_return = isinstance(outputs, Node)
    if isinstance(outputs, Node):
        outputs = (outputs,)
    if not isinstance(outputs, (tuple, list)):
        raise SerializeError(f"expected a tuple of outputs, found {type(outputs).__qualname__}")
    held = (each for each in node.graph.nodes if is_held(each, values))
    values.order += [each.name for each in held if placed_by(each) is None]
    values.order.append(node.name)
    graph.outputs = [export_input(node, output, values) for output in outputs]
    for each in graph.outputs:
        if (what := _NOT_READ.get(each.type)) is not None:
            values.program.refused.append(f"{what(each.value)} as an output")
    # Subgraphs return tuples, and so does the program.
    pairs = zip(graph.outputs, outputs, strict=True)
    if isinstance(node.args[0], list) or not all(comes_back(*pair, values) for pair in pairs):
        graph.exact_output = export_exact(node.args[0], values)
    if (notes := export_notes(node)) is not None:
        graph.output_metadata = {node.name: notes}


#: Members of outputs that PyTorch's reader does not know there, with what they are to users.
_NOT_READ: dict[str, Callable[[Any], str]] = {
    "as_string": lambda text: "a text",
    "as_custom_obj": lambda value: f"the custom object `{value.name}`",
}


def _refuse(node: Node, graph: types.Graph, values: Values) -> None:
    raise SerializeError(
        f"expected a graph of function calls, found a {node.op} of {node.target!r}",
        hint="Graphs made by torch.export have none; write the program that it returned",
    )


_NODES: dict[str, Callable[[Node, types.Graph, Values], None]] = {
    "placeholder": _add_placeholder,
    "call_function": _add_call,
    "get_attr": _add_attribute,
    "output": _add_output,
}
