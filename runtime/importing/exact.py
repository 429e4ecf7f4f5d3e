"""Python values as they were, from the fields of our own: where PyTorch's members or JSON lose something."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from torch.fx import Node

from ..containers import find_enum_member, make_named_tuple
from ..errors import DeserializeError
from ..generated import types
from ..names import check_text
from ..treespecs import enum_key
from .arguments import import_argument
from .faults import cause_of, each, located
from .values import (
    Values,
    import_device,
    import_extra_scalar_type,
    import_layout,
    import_memory_format,
    import_scalar_type,
)

_Single = Callable[[types.Value], Any]
_Known = tuple[type, ...]  # classes that the caller has handed in


def import_exact(value: types.Value, values: Values) -> Any:
    """Read a value with its containers as they were; all else is as in an argument.

    Args:
        value: The value.
        values: The graph, to whose nodes the value may refer, with the node's subgraphs.
    """
    known = values.program.permissions.types
    return _import(value, lambda single: _single(single, values, known), known)


def _single(value: types.Value, values: Values, known: _Known) -> Any:
    if value.type in ("as_enum", "as_extra_scalar_type"):
        return _constant(value, known)
    if value.type == "as_structure":
        return _structure(value.as_structure, values)
    if value.type != "as_subgraph":
        return import_argument(types.Argument.create(**{value.type: value.value}), values)
    name = value.as_subgraph
    if name not in values.in_containers:
        raise DeserializeError(f"expected a subgraph of the node, found {name[:80]!r}")
    return import_argument(types.Argument.of_graph(values.in_containers[name]), values)


def _structure(name: str, values: Values) -> Node:
    if name not in values.structures:
        raise DeserializeError(f"expected a tree spec of the graph, found {name[:80]!r}")
    return values.structures[name]


def import_plain_value(value: types.Value, known: _Known = ()) -> Any:
    """Read a value that refers to nothing in a graph: a note, say, or the context of a tree spec.

    Example:
        >>> import_plain_value(types.Value.of_tuple([types.Value.of_int(1), types.Value.of_string("a")]))
        (1, 'a')
    """
    return _import(value, lambda single: _constant(single, known), known)


def import_enum_input(value: types.Value, known: _Known = ()) -> enum.Enum:
    """Read the member of an enum that a program was exported for in place of an input."""
    member = import_plain_value(value, known)
    if not isinstance(member, enum.Enum):
        raise DeserializeError(f"expected a member of an enum as constant input, found {value.type}")
    if isinstance(member, str) and (reason := check_text(f"{member}")):
        raise DeserializeError(
            f"expected a text that a guard can hold as constant input, found a member that {reason}"
        )
    return member


def _import(value: types.Value, single: _Single, known: _Known) -> Any:
    read = _CONTAINERS.get(value.type)
    if read is None:
        return single(value)
    try:
        return read(value.value, single, known)
    except Exception as error:
        raise located(error, value.type) from cause_of(error)


def _list(items: list[types.Value], single: _Single, known: _Known) -> list[Any]:
    return each("", items, lambda item: _import(item, single, known))


def _dict(items: list[types.ValueItem], single: _Single, known: _Known) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for index, item in enumerate(items):
        try:
            key = _key(item.key, known)
            if key in made:
                raise DeserializeError(f"expected each key once, found {key!r:.80} again")
            made[key] = _import(item.value, single, known)
        except Exception as error:
            raise located(error, f"[{index}]") from cause_of(error)
    return made


def _key(value: types.Value, known: _Known) -> Any:
    if value.type in ("as_list", "as_dict"):
        raise DeserializeError(f"expected a constant or a tuple as key, found {value.type}")
    if value.type == "as_tuple":
        return tuple([_key(item, known) for item in value.as_tuple])
    if value.type == "as_named_tuple":
        named = value.as_named_tuple
        return make_named_tuple(
            named.fqn, named.field_names, [_key(item, known) for item in named.values], known
        )
    return _constant(value, known)


def _named_tuple(named: types.NamedTupleValue, single: _Single, known: _Known) -> Any:
    items = each("values", named.values, lambda item: _import(item, single, known))
    return make_named_tuple(named.fqn, named.field_names, items, known)


_CONTAINERS: dict[str, Callable[[Any, _Single, _Known], Any]] = {
    "as_list": _list,
    "as_tuple": lambda items, single, known: tuple(_list(items, single, known)),
    "as_named_tuple": _named_tuple,
    "as_dict": _dict,
}


def _constant(value: types.Value, known: _Known) -> Any:
    if value.type == "as_enum":
        return _enum_member(value.as_enum, known)
    try:
        return _CONSTANTS[value.type](value.value)
    except KeyError:
        raise DeserializeError(f"expected a constant, found {value.type}") from None


def _enum_member(value: types.EnumMember, known: _Known) -> enum.Enum:
    member = enum_key(value.fqn, value.name)
    if member is None:
        raise DeserializeError(
            f"expected a member of an enum, MODULE:NAME, found {value.fqn[:60]!r} and {value.name[:60]!r}"
        )
    return find_enum_member(member, known)


_CONSTANTS: dict[str, Callable[[Any], Any]] = {
    "as_none": lambda value: None,
    "as_bool": lambda value: value,
    "as_int": lambda value: value,
    "as_float": lambda value: value,
    "as_string": lambda value: value,
    "as_complex": lambda value: complex(value.real, value.imag),
    "as_scalar_type": import_scalar_type,
    "as_extra_scalar_type": import_extra_scalar_type,
    "as_memory_format": import_memory_format,
    "as_layout": import_layout,
    "as_device": import_device,
}


def match_exact_inputs(node: types.Node) -> tuple[list[types.NamedArgument], Sequence[types.Value | None]]:
    """The arguments of a call in its order, each with the value that it was, where that is said.

    Raises:
        DeserializeError: `exact_inputs` are not the inputs, each once, the nameless ones in order.
    """
    if node.exact_inputs is None:
        return node.inputs, [None] * len(node.inputs)
    waiting: dict[str, deque[types.NamedArgument]] = {}
    for item in node.inputs:
        waiting.setdefault(item.name, deque()).append(item)
    ordered: list[types.NamedArgument] = []
    for index, exact in enumerate(node.exact_inputs):
        if not waiting.get(exact.name):
            raise DeserializeError(
                f"expected the name of one of the inputs, each once, found {exact.name[:80]!r}",
                path=f"exact_inputs[{index}].name",
            )
        ordered.append(waiting[exact.name].popleft())
    if len(ordered) != len(node.inputs):
        raise DeserializeError(
            f"expected as many as inputs, {len(node.inputs)}, found {len(ordered)}", path="exact_inputs"
        )
    return ordered, [exact.value for exact in node.exact_inputs]
