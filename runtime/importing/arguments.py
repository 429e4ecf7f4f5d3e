"""What a node is called with: members of `Argument`, as Python values and references to FX nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.fx import GraphModule, Node

from ..errors import DeserializeError
from ..generated import types
from .faults import cause_of, each, each_value, located
from .targets import find_target
from .values import (
    Values,
    check_name,
    import_device,
    import_layout,
    import_memory_format,
    import_scalar_type,
)


def import_argument(argument: types.Argument, values: Values) -> Any:
    """Read one argument.

    Args:
        argument: An argument of a node, of a graph's outputs, or of a signature.
        values: The graph, to whose nodes the argument may refer.

    Returns:
        An FX node, or a Python value that holds none or some.

    Raises:
        DeserializeError: For a name that no node before defined, and for what cannot be read yet.
    """
    member = argument.type
    read = _ARGUMENTS.get(member)
    if read is None:
        raise DeserializeError(f"expected an argument of a known kind, found {member}")
    try:
        return read(argument.value, values)
    except Exception as error:
        raise located(error, member) from cause_of(error)


# -- one value --------------------------------------------------------------------------------------------

_Import = Callable[[Any, Values], Any]


def _plain(value: Any, values: Values) -> Any:
    return value


def _none(value: Any, values: Values) -> None:
    return None


def _converted(convert: Callable[[Any], Any]) -> _Import:
    return lambda value, values: convert(value)


def _complex(value: types.ComplexValue, values: Values) -> complex:
    return complex(value.real, value.imag)


def _tensor(value: types.TensorArgument, values: Values) -> Node:
    return values.node(value.name)


def _symbolic(value: Any, values: Values) -> Any:
    """A SymIntArgument, SymFloatArgument or SymBoolArgument: a node by name, or a number."""
    return values.node(value.as_name) if value.type == "as_name" else value.value


def _optional_tensor(value: types.OptionalTensorArgument, values: Values) -> Node | None:
    return None if value.type == "as_none" else values.node(value.as_tensor.name)


def _graph(value: types.GraphArgument, values: Values) -> Node:
    # The two modules read each other's entities: graphs hold nodes, which hold arguments, which hold graphs.
    from .graph import import_subgraph

    name = value.name
    known = values.subgraphs.get(name)
    if known is None:
        check_attribute(name)
        values.subgraphs[name] = value.graph
        values.module.register_module(name, import_subgraph(value.graph, values))
    elif known != value.graph:
        raise DeserializeError(f"expected one subgraph named {name!r}, found two different ones")
    return _attribute(name, value.node, values)


def check_attribute(name: str) -> None:
    """Refuse an attribute, for a subgraph or a tensor, that is no identifier or means something to FX."""
    check_name(name)
    if hasattr(GraphModule, name):
        raise DeserializeError(
            f"expected a name of its own for what a module holds, found {name!r} of torch.fx.GraphModule"
        )


def _attribute(target: str, exact_name: str | None, values: Values) -> Node:
    """The node that stands for a subgraph; several arguments share one where its name says so.

    Its name is a variable, and need not be that of the attribute that it gets. Without a name of its own it
    is called like the attribute, unless something else is: PyTorch's files tell no more.
    """
    if exact_name is not None and (known := values.attributes.get(exact_name)) is not None:
        if known.target != target:
            raise DeserializeError(
                f"expected a node that gets {target[:80]!r}, found {exact_name[:80]!r}, which gets another"
            )
        return known
    node = values.graph.create_node("get_attr", target, name=target)
    if exact_name is not None:
        check_name(exact_name)
        node.name = exact_name  # FX alters a name that it finds unfit
    elif target not in values.taken and target not in values.attributes:
        node.name = target
    else:
        while node.name in values.taken or node.name in values.attributes:
            node.name = values.graph._graph_namespace.create_name(target, None)
    values.attributes[node.name] = node
    return node


def _custom_obj(value: types.CustomObjArgument, values: Values) -> Any:
    if value.name in values.nodes:
        return values.nodes[value.name]
    return values.program.objects.of_argument(value)


def _operator(value: str, values: Values) -> Any:
    return find_target(value, values.program.permissions.allow_operators)


# -- lists and dicts --------------------------------------------------------------------------------------


def _list(value: list[Any], values: Values) -> list[Any]:
    return list(value)


def _items(read: _Import) -> _Import:
    return lambda value, values: each("", value, lambda item: read(item, values))


def _dict(value: dict[str, types.Argument], values: Values) -> dict[str, Any]:
    return each_value("", value, lambda item: import_argument(item, values))


#: How each member is read.
_ARGUMENTS: dict[str, _Import] = {
    "as_none": _none,
    "as_tensor": _tensor,
    "as_int": _plain,
    "as_float": _plain,
    "as_bool": _plain,
    "as_string": _plain,
    "as_complex": _complex,
    "as_sym_int": _symbolic,
    "as_sym_float": _symbolic,
    "as_sym_bool": _symbolic,
    "as_optional_tensor": _optional_tensor,
    "as_scalar_type": _converted(import_scalar_type),
    "as_memory_format": _converted(import_memory_format),
    "as_layout": _converted(import_layout),
    "as_device": _converted(import_device),
    "as_graph": _graph,
    "as_custom_obj": _custom_obj,
    "as_operator": _operator,
    "as_tensors": _items(_tensor),
    "as_ints": _list,
    "as_floats": _list,
    "as_bools": _list,
    "as_strings": _list,
    "as_sym_ints": _items(_symbolic),
    "as_sym_floats": _items(_symbolic),
    "as_sym_bools": _items(_symbolic),
    "as_optional_tensors": _items(_optional_tensor),
    "as_nested_tensors": _items(_items(_tensor)),
    "as_int_lists": _items(lambda value, values: tuple(value)),  # grids of kernels, which are tuples
    "as_float_lists": _items(_list),
    "as_string_to_argument": _dict,
}
