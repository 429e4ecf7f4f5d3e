"""Python values as they were, from the fields of our own: where PyTorch's members or JSON lose something."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import DeserializeError
from ..generated import types
from .arguments import import_argument
from .faults import each, located
from .values import Values, import_device, import_layout, import_memory_format, import_scalar_type


def import_exact(value: types.Value, values: Values) -> Any:
    """Read a value with its containers as they were; all else is as in an argument.

    Args:
        value: The value.
        values: The graph, to whose nodes the value may refer.
    """
    return _import(value, lambda single: import_argument(_argument(single), values))


def _argument(value: types.Value) -> types.Argument:
    return types.Argument.create(**{value.type: value.value})


def import_note(value: types.Value) -> Any:
    """Read a note that users left in `meta["custom"]`: a value that refers to nothing in a graph.

    Example:
        >>> import_note(types.Value.of_tuple([types.Value.of_int(1), types.Value.of_string("a")]))
        (1, 'a')
    """
    return _import(value, _constant)


_Single = Callable[[types.Value], Any]


def _import(value: types.Value, single: _Single) -> Any:
    read = _CONTAINERS.get(value.type)
    if read is None:
        return single(value)
    try:
        return read(value.value, single)
    except Exception as error:
        raise located(error, value.type) from error


def _list(items: list[types.Value], single: _Single) -> list[Any]:
    return each("", items, lambda item: _import(item, single))


def _dict(items: list[types.ValueItem], single: _Single) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for index, item in enumerate(items):
        try:
            key = _key(item.key)
            if key in made:
                raise DeserializeError(f"expected each key once, found {key!r:.80} again")
            made[key] = _import(item.value, single)
        except Exception as error:
            raise located(error, f"[{index}]") from error
    return made


def _key(value: types.Value) -> Any:
    if value.type in ("as_list", "as_dict"):
        raise DeserializeError(f"expected a constant or a tuple as key, found {value.type}")
    return tuple(map(_key, value.as_tuple)) if value.type == "as_tuple" else _constant(value)


_CONTAINERS: dict[str, Callable[[Any, _Single], Any]] = {
    "as_list": _list,
    "as_tuple": lambda items, single: tuple(_list(items, single)),
    "as_dict": _dict,
}


def _constant(value: types.Value) -> Any:
    try:
        return _CONSTANTS[value.type](value.value)
    except KeyError:
        raise DeserializeError(f"expected a constant, found {value.type}") from None


_CONSTANTS: dict[str, Callable[[Any], Any]] = {
    "as_none": lambda value: None,
    "as_bool": lambda value: value,
    "as_int": lambda value: value,
    "as_float": lambda value: value,
    "as_string": lambda value: value,
    "as_complex": lambda value: complex(value.real, value.imag),
    "as_scalar_type": import_scalar_type,
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
    waiting: dict[str, list[types.NamedArgument]] = {}
    for item in node.inputs:
        waiting.setdefault(item.name, []).append(item)
    ordered: list[types.NamedArgument] = []
    for index, exact in enumerate(node.exact_inputs):
        if not waiting.get(exact.name):
            raise DeserializeError(
                f"expected the name of one of the inputs, each once, found {exact.name[:80]!r}",
                path=f"exact_inputs[{index}].name",
            )
        ordered.append(waiting[exact.name].pop(0))
    if len(ordered) != len(node.inputs):
        raise DeserializeError(
            f"expected as many as inputs, {len(node.inputs)}, found {len(ordered)}", path="exact_inputs"
        )
    return ordered, [exact.value for exact in node.exact_inputs]
