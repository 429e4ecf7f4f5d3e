"""Python values as they are, for the fields of our own: where PyTorch's members or JSON lose something."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import map_arg
from torch.utils import _pytree as pytree

from ..classes import find_class, path_of
from ..containers import is_harmless_named_tuple
from ..errors import SerializeError
from ..exact_values import CONSTANTS, named_tuple_problem
from ..generated import types
from ..items import SYMBOLIC
from ..warning import warn_user
from .arguments import export_argument, export_subgraph
from .metadata import METADATA_KEYS, export_metadata, export_module_stack
from .plain_notes import is_empty, plain_note
from .tables import TypeTable
from .values import Program, Values, export_extra_scalar_type

_NOTES = frozenset(METADATA_KEYS)


def export_exact(value: Any, values: Values | None) -> types.Value:
    """Write a value with its containers as they are; all else is as in an argument.

    Args:
        value: A tuple, list or dict, nested or not, of what an argument may be.
        values: The values of the graph, to which nodes refer; None where only constants may stand.

    Raises:
        SerializeError: For a type that an argument cannot be.

    Example:
        >>> export_exact((1, 2.5), Values(Program()))
        Value(as_tuple=[Value(as_int=1), Value(as_float=2.5)])
    """
    return _VALUES[type(value)](value, values)


def export_plain_value(value: Any) -> types.Value:
    """Write a value that refers to nothing in a graph, and to no operator or object either."""
    return export_exact(value, None)


def _single(value: Any, values: Values | None) -> types.Value:
    argument = export_argument(value, Values(Program()) if values is None else values)
    if values is None and argument.type not in CONSTANTS:
        raise SerializeError(f"expected a constant, found {type(value).__qualname__} ({value!r:.80})")
    return types.Value.create(**{argument.type: argument.value})


def _node(node: Node, values: Values | None) -> types.Value:
    if values is None:
        raise SerializeError(f"expected a constant, found the node `{node.name}`")
    if node in values.structures:
        return types.Value.of_structure(node.name)
    if node in values.nones:
        return types.Value.of_tensor(types.TensorArgument(name=node.name))
    if node.op != "get_attr" or node in values.references:
        single = export_argument(node, values)
        if node.name in values.duplicates:  # the argument has the name of the output
            setattr(single.value, "as_name" if single.type in SYMBOLIC else "name", node.name)
        return types.Value.create(**{single.type: single.value})
    subgraph = export_subgraph(node, values)
    values.in_containers.append(subgraph)
    return types.Value.of_subgraph(subgraph.name)


def _list(items: list[Any], values: Values | None) -> types.Value:
    return types.Value.of_list([export_exact(item, values) for item in items])


def _tuple(items: tuple[Any, ...], values: Values | None) -> types.Value:
    exact = [export_exact(item, values) for item in items]
    kind: Any = type(items)
    if not pytree.is_namedtuple_class(kind):
        return types.Value.of_tuple(exact)
    if (problem := _named_tuple_problem(kind, len(items))) is not None:
        warn_user(f"a named tuple of class {kind.__qualname__} comes back as a plain tuple: {problem}")
        return types.Value.of_tuple(exact)
    if not is_harmless_named_tuple(kind):
        warn_user(
            f"a named tuple of class {kind.__qualname__} comes back as a plain tuple, unless load is given "
            f"types=[{kind.__qualname__}]: the class has special methods of its own"
        )
    named = types.NamedTupleValue(fqn=path_of(kind), field_names=list(kind._fields), values=exact)
    return types.Value.of_named_tuple(named)


def _named_tuple_problem(kind: Any, count: int) -> str | None:
    if not _is_found(kind):
        return f"{kind.__module__} has no class of that name; define it at the top of its module"
    return named_tuple_problem(path_of(kind), kind._fields, count)


def _dict(items: dict[Any, Any], values: Values | None) -> types.Value:
    return types.Value.of_dict(
        [
            types.ValueItem(key=export_exact(key, values), value=export_exact(value, values))
            for key, value in items.items()
        ]
    )


def _enum_member(value: enum.Enum, values: Values | None) -> types.Value:
    if type(value).__members__.get(value.name) is not value:
        raise SerializeError(
            f"expected a member of {type(value).__qualname__}, found {value!r:.80}",
            hint="Combinations of flags have no name to find them by: pass the number instead",
        )
    return types.Value.of_enum(types.EnumMember(fqn=class_path(type(value)), name=value.name))


def class_path(kind: type) -> str:
    """What the file calls a class.

    Raises:
        SerializeError: Nobody would find it by that: it is local to a function, say.
    """
    if not _is_found(kind):
        raise SerializeError(
            f"expected a class that its module knows, found {kind.__qualname__} of {kind.__module__}",
            hint="Define it at the top of its module",
        )
    return path_of(kind)


def _is_found(kind: type) -> bool:
    return find_class(kind.__module__, kind.__qualname__) is kind


def _dtype(value: torch.dtype, values: Values | None) -> types.Value:
    extra = export_extra_scalar_type(value)
    return _single(value, values) if extra is None else types.Value.of_extra_scalar_type(extra)


_VALUES: TypeTable[Callable[[Any, Values | None], types.Value]] = TypeTable(
    {
        tuple: _tuple,
        list: _list,
        dict: _dict,
        enum.Enum: _enum_member,
        torch.dtype: _dtype,
        Node: _node,
        object: _single,
    }
)


def export_exact_inputs(
    inputs: list[types.NamedArgument], args: tuple[Any, ...], kwargs: dict[str, Any], values: Values
) -> list[types.NamedValue] | None:
    """Write the arguments of a call as they are, or None where `inputs` says all there is.

    Args:
        inputs: How PyTorch's format holds the arguments: positional ones in order, others by name.
        args: The positional arguments.
        kwargs: The others.
        values: The values of the graph.
    """
    positional = [item for item in inputs if item.kind == types.ArgumentKind.POSITIONAL]
    by_name = {item.name: item for item in inputs if item.kind != types.ArgumentKind.POSITIONAL}
    given = [*zip(positional, args, strict=True), *((by_name[name], value) for name, value in kwargs.items())]
    come_back = [comes_back(item.arg, value, values) for item, value in given]
    # Keyword arguments may be in another order than that of the operator's schema.
    if all(come_back) and list(by_name) == list(kwargs):
        return None
    return [
        types.NamedValue(name=item.name, value=None if as_is else export_exact(value, values))
        for (item, value), as_is in zip(given, come_back, strict=True)
    ]


def comes_back(argument: types.Argument, value: Any, values: Values) -> bool:
    """Whether a reader of the argument gets the value, with its containers: lists, but for lists of ints."""
    if (values.duplicates or values.nones) and _holds_item(value, values):
        return False
    if argument.type == "as_none":
        return value is None
    if argument.type == "as_int_lists":
        return not isinstance(value, tuple)
    return not _holds_tuple(value)


def _holds_tuple(value: Any) -> bool:
    if isinstance(value, tuple):
        return True
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_holds_tuple(item) for item in items)


def _holds_item(value: Any, values: Values) -> bool:
    """Whether a value holds a node for which the argument names another one, or None."""
    found: list[Node] = []
    map_arg(value, found.append)
    return any(node.name in values.duplicates or node in values.nones for node in found)


def export_note(note: Any, *, beside_json: bool = True) -> types.Value | None:
    """Write a note that users left in `meta["custom"]`, or None where JSON says all there is.

    Args:
        note: The note.
        beside_json: Whether JSON of it is written, too.

    Raises:
        SerializeError: For a note of types that neither JSON nor `Value` has.
    """
    try:
        lost: dict[str, None] = {}
        plain = plain_note(note, lost)
        for kind in lost:
            warn_user(f"a note of class {kind} comes back as the plain value that it is, without the class")
        if is_empty(note) or (beside_json and _survives_json(plain)):
            return None
        return export_plain_value(plain)
    except (SerializeError, RecursionError) as error:
        if isinstance(error, RecursionError):
            raise SerializeError(
                "expected custom metadata that ends, found endless or very deep one"
            ) from error
        raise SerializeError(
            f"expected custom metadata of texts, numbers, lists, tuples and dicts: {error.message}"
        ) from error


def export_notes(node: Node) -> types.Notes | None:
    """Write what is kept about a node that is no call, or None where there is nothing."""
    meta = node.meta
    if _NOTES.isdisjoint(meta):
        return None
    notes = _notes(node)
    notes.metadata = {key: text for key, text in notes.metadata.items() if not is_empty(meta[key])}
    if not notes.metadata and notes.custom is None and notes.module_stack is None:
        return None
    return notes


def export_own_notes(node: Node, call: Node | None) -> types.Notes | None:
    """Write what is kept about a node that the format has none for, or None where its call has the same."""
    meta, of_call = node.meta, {} if call is None else call.meta
    if all(meta.get(key) is of_call.get(key) or _equal(key, meta, of_call) for key in METADATA_KEYS):
        return None
    notes = _notes(node)
    return None if notes == (types.Notes(metadata={}) if call is None else _notes(call)) else notes


def _notes(node: Node) -> types.Notes:
    """What is kept about a node that is no call."""
    custom = export_dropped_note(node.meta, node.name)
    return types.Notes(
        metadata=export_metadata(node.meta), custom=custom, module_stack=export_module_stack(node.meta)
    )


def export_dropped_note(
    meta: Mapping[str, Any], owner: str, *, beside_json: bool = True
) -> types.Value | None:
    """Write a note that PyTorch drops, so that one which no field can hold is left out, with a warning.

    Args:
        meta: The metadata that may have a note.
        owner: What it is about, in the warning.
        beside_json: As for `export_note`.
    """
    try:
        return export_note(meta.get("custom"), beside_json=beside_json)
    except SerializeError as error:
        warn_user(f"the note on `{owner}` is left out: {error.message}")
        return None


def _equal(key: str, meta: Mapping[str, Any], call: Mapping[str, Any]) -> bool:
    # What users noted may be of any type, with an idea of equality of its own.
    return key != "custom" and bool(meta.get(key) == call.get(key))


def _survives_json(note: Any) -> bool:
    if isinstance(note, dict):
        return all(isinstance(key, str) and _survives_json(value) for key, value in note.items())
    if isinstance(note, list):
        return all(map(_survives_json, note))
    return note is None or isinstance(note, (str, int, float))
