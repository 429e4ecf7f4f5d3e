"""What a node is called with: Python values and references to FX nodes, as members of `Argument`."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload
from torch.fx import GraphModule, Node

from ..errors import SerializeError
from ..generated import types
from ..objects import object_class
from .delegates import lowered_name
from .faults import located
from .tables import TypeTable
from .targets import export_target
from .values import (
    Values,
    attribute_of,
    export_device,
    export_layout,
    export_memory_format,
    export_scalar_type,
)

#: What makes an argument of a value: `Argument.of_ints` and the like.
Make = Callable[[Any], types.Argument]


def export_argument(
    value: Any, values: Values, empty_list: Make | None = types.Argument.of_tensors
) -> types.Argument:
    """Write one argument.

    The member is chosen by the value's type, the one of a list by the types of its items. The operator's
    schema decides where the value cannot: for an empty list.

    Args:
        value: An argument of an FX node: a node, or a Python value that holds none or some.
        values: The values of the graph, to which nodes refer.
        empty_list: Makes the argument of an empty list, by the operator's schema. Without one PyTorch writes
            it as a list of tensors.

    Raises:
        SerializeError: For a type that the format has no member for, and for a node without a value.
    """
    try:
        export = _ARGUMENTS[type(value)]
    except KeyError:
        return _export_object(value, values)
    return export(value, values, empty_list)


def export_input(
    node: Node, value: Any, values: Values, empty_list: Make | None = types.Argument.of_tensors
) -> types.Argument:
    """Write one argument of a call, or None in its place where PyTorch's format cannot express it.

    Args:
        node: The call.
        value: The argument.
        values: As for `export_argument`; notes that PyTorch's format lacks the argument.
        empty_list: As for `export_argument`.

    Raises:
        SerializeError: As for `export_argument`, but not for lists of several kinds of items, for dicts with
            other keys than texts, for members of enums, for dtypes, and for tree specs.
    """
    try:
        return export_argument(value, values, empty_list)
    except SerializeError as error:
        is_structure = isinstance(value, Node) and value in values.structures
        if not is_structure and not isinstance(value, (list, tuple, dict, enum.Enum, torch.dtype)):
            raise
        reason = str(value) if isinstance(value, torch.dtype) else error.message
        values.program.beyond.append(f"an argument of `{node.name}` ({reason})")
        return types.Argument.of_none(True)


def _name(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


# -- one value --------------------------------------------------------------------------------------------

_Export = Callable[[Any, Values, Make | None], types.Argument]


def _plain(make: Make) -> _Export:
    return lambda value, values, empty_list: make(value)


def _converted(make: Make, convert: Callable[[Any], Any]) -> _Export:
    return lambda value, values, empty_list: make(convert(value))


def _export_none(value: None, values: Values, empty_list: Make | None) -> types.Argument:
    return types.Argument.of_none(True)


def _export_complex(value: complex) -> types.ComplexValue:
    return types.ComplexValue(real=value.real, imag=value.imag)


def _export_dict(value: dict[Any, Any], values: Values, empty_list: Make | None) -> types.Argument:
    for key in value:
        if type(key) is not str:
            raise SerializeError(f"expected a dict with str keys as argument, found the key {key!r}")
    items = {key: export_argument(item, values) for key, item in value.items()}
    return types.Argument.of_string_to_argument(items)


def _export_object(value: Any, values: Values) -> types.Argument:
    """Write the name that a custom object gets here, under which it is among the constants of the file."""
    # To PyTorch, members of enums are objects, which it pickles; `exact_inputs` holds them as they are.
    class_fqn = None if isinstance(value, enum.Enum) else object_class(value)
    if class_fqn is None:
        raise SerializeError(
            f"expected an argument that the format can hold, found {_name(value)} ({value!r:.80})"
        )
    name = f"_custom_obj_{len(values.program.objects)}"
    values.program.objects[name] = value
    return types.Argument.of_custom_obj(types.CustomObjArgument(name=name, class_fqn=class_fqn))


def _export_reference(node: Node, values: Values, empty_list: Make | None) -> types.Argument:
    if node in values.structures:
        raise SerializeError("expected an argument that the format can hold, found a tree spec")
    if node in values.nones:
        return types.Argument.of_none(True)
    if node.op == "get_attr" and node not in values.references:
        if (name := lowered_name(node, values)) is not None:
            return types.Argument.of_string(name)
        return types.Argument.of_graph(export_subgraph(node, values))
    member, name = _reference(node, values)
    return _REFERENCES[member](name, values)


def _custom_obj(name: str, values: Values) -> types.Argument:
    class_fqn = values.custom_objs[name].class_fqn
    return types.Argument.of_custom_obj(types.CustomObjArgument(name=name, class_fqn=class_fqn))


_REFERENCES: dict[str, Callable[[str, Values], types.Argument]] = {
    "as_tensor": lambda name, _: types.Argument.of_tensor(types.TensorArgument(name=name)),
    "as_sym_int": lambda name, _: types.Argument.of_sym_int(types.SymIntArgument.of_name(name)),
    "as_sym_float": lambda name, _: types.Argument.of_sym_float(types.SymFloatArgument.of_name(name)),
    "as_sym_bool": lambda name, _: types.Argument.of_sym_bool(types.SymBoolArgument.of_name(name)),
    "as_custom_obj": _custom_obj,
}


def _reference(node: Node, values: Values) -> tuple[str, str]:
    try:
        return values.references[node]
    except KeyError:
        found = node.meta.get("val")
        raise SerializeError(
            f"expected an argument that is one tensor or number, found node `{node.name}` ({node.op}), "
            f"whose value is {'None' if found is None else _name(found)}"
        ) from None


def export_subgraph(node: Node, values: Values) -> types.GraphArgument:
    """Write the subgraph that a `get_attr` node stands for."""
    from .graph import export_inner_graph  # a graph holds nodes, nodes hold arguments, and those hold graphs

    name = str(node.target)
    module = attribute_of(node)
    if not isinstance(module, GraphModule):
        raise SerializeError(
            f"expected `{name}` to be a subgraph, found {_name(module)}",
            hint="Of modules lowered to a backend, those are written that ExecuTorch or AOTInductor makes",
        )
    try:
        graph = export_inner_graph(name, module, Values(values.program))
    except SerializeError as error:
        raise located(error, name) from error.__cause__
    # Several arguments may share one node.
    exact_name = node.name if node.name != name or node in values.attributes else None
    values.attributes.add(node)
    return types.GraphArgument(name=name, graph=graph, node=exact_name)


# -- lists ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ListMember:
    """A member that holds a list: the kinds of items that it takes, and how they are written."""

    make: Make
    kinds: frozenset[Any]
    export: Callable[[Sequence[Any], Values], Any]


def _export_list(items: Sequence[Any], values: Values, empty_list: Make | None) -> types.Argument:
    if not items:
        if empty_list is None:
            raise SerializeError("expected items, found an empty list of a type that has no member")
        return empty_list([])
    kinds = frozenset([_kind(item, values) for item in items])
    member = _list_member(kinds)
    if member is None:
        found = ", ".join(sorted(kind if isinstance(kind, str) else kind.__qualname__ for kind in kinds))
        raise SerializeError(f"expected a list whose items the format can hold together, found {found}")
    return member.make(member.export(items, values))


def _kind(item: Any, values: Values) -> Any:
    """What an item is: its type, the member that refers to a node, or in brackets what a list holds."""
    kind = type(item)
    if kind is Node and item in values.nones:
        return NoneType
    if kind is Node:
        is_graph = item.op == "get_attr" and item not in values.references
        return "graph" if is_graph else _reference(item, values)[0]
    if issubclass(kind, (list, tuple)):
        inner = frozenset([_kind(part, values) for part in item])
        inside = next((name for name, kinds in _INNER_KINDS if inner <= kinds), "mixed")
        return f"({inside})" if issubclass(kind, tuple) else f"[{inside}]"
    return kind


@functools.lru_cache(maxsize=256)
def _list_member(kinds: frozenset[Any]) -> _ListMember | None:
    return next((member for member in _LIST_MEMBERS if kinds <= member.kinds), None)


def _as_is(items: Sequence[Any], values: Values) -> list[Any]:
    return list(items)


def _numbers(union: Any, of_number: Callable[[Any], Any]) -> Callable[[Sequence[Any], Values], list[Any]]:
    """For lists that mix numbers and nodes: each item a union of a name and a number."""
    return lambda items, values: [
        union.of_name(values.references[item][1]) if type(item) is Node else of_number(item) for item in items
    ]


def _tensors(items: Sequence[Any], values: Values) -> list[types.TensorArgument]:
    return [types.TensorArgument(name=values.references[item][1]) for item in items]


def _optional_tensors(items: Sequence[Any], values: Values) -> list[types.OptionalTensorArgument]:
    return [
        types.OptionalTensorArgument.of_none(True)
        if item is None or item in values.nones
        else types.OptionalTensorArgument.of_tensor(types.TensorArgument(name=values.references[item][1]))
        for item in items
    ]


def _nested_tensors(items: Sequence[Any], values: Values) -> list[list[types.TensorArgument]]:
    return [_tensors(item, values) for item in items]


def _nested_items(items: Sequence[Any], values: Values) -> list[list[Any]]:
    return [list(item) for item in items]


_NODES = frozenset(_REFERENCES)
_INNER_KINDS: tuple[tuple[str, frozenset[Any]], ...] = (
    ("", frozenset()),
    ("node", _NODES),
    ("int", frozenset({int})),
    ("float", frozenset({float})),
)

#: In the order in which PyTorch tries them. Lists of nodes of several kinds (the operands of a higher-order
#: operator) are lists of tensors to the format; a name says which value is meant, whatever its kind.
_LIST_MEMBERS = (
    _ListMember(types.Argument.of_bools, frozenset({bool}), _as_is),
    _ListMember(types.Argument.of_ints, frozenset({int}), _as_is),
    _ListMember(types.Argument.of_floats, frozenset({float}), _as_is),
    _ListMember(types.Argument.of_strings, frozenset({str}), _as_is),
    _ListMember(
        types.Argument.of_sym_ints,
        frozenset({int, "as_sym_int"}),
        _numbers(types.SymIntArgument, types.SymIntArgument.of_int),
    ),
    _ListMember(
        types.Argument.of_sym_floats,
        frozenset({float, "as_sym_float"}),
        _numbers(types.SymFloatArgument, types.SymFloatArgument.of_float),
    ),
    _ListMember(
        types.Argument.of_sym_bools,
        frozenset({bool, "as_sym_bool"}),
        _numbers(types.SymBoolArgument, types.SymBoolArgument.of_bool),
    ),
    _ListMember(types.Argument.of_tensors, _NODES, _tensors),
    _ListMember(
        types.Argument.of_nested_tensors, frozenset({"[node]", "(node)", "[]", "()"}), _nested_tensors
    ),
    _ListMember(types.Argument.of_optional_tensors, _NODES | {NoneType}, _optional_tensors),
    # PyTorch reads these back as tuples, so a list of lists of ints is not one of them.
    _ListMember(types.Argument.of_int_lists, frozenset({"(int)", "()"}), _nested_items),
    _ListMember(types.Argument.of_float_lists, frozenset({"[float]", "(float)", "[]", "()"}), _nested_items),
)

_ARGUMENTS: TypeTable[_Export] = TypeTable(
    {
        Node: _export_reference,
        bool: _plain(types.Argument.of_bool),
        int: _plain(types.Argument.of_int),
        float: _plain(types.Argument.of_float),
        str: _plain(types.Argument.of_string),
        complex: _converted(types.Argument.of_complex, _export_complex),
        NoneType: _export_none,
        list: _export_list,
        tuple: _export_list,
        dict: _export_dict,
        torch.dtype: _converted(types.Argument.of_scalar_type, export_scalar_type),
        torch.layout: _converted(types.Argument.of_layout, export_layout),
        torch.memory_format: _converted(types.Argument.of_memory_format, export_memory_format),
        torch.device: _converted(types.Argument.of_device, export_device),
        OpOverload: _converted(types.Argument.of_operator, export_target),
        HigherOrderOperator: _converted(types.Argument.of_operator, export_target),
    },
    exact=(int, float, str, complex),
)
