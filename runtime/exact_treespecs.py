"""Treespecs of our own fields: structs instead of JSON, with contexts as they are. Needs no torch.

The JSON of `treespecs.py` has no members of enums that are numbers or texts too, no tuples within the
context of a registered class, and no classes that pytree has no name for. These structs have, and give the
same nodes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import DeserializeError
from .exact_values import named_tuple_problem
from .generated import types
from .keys import keys_problem
from .limits import DEFAULT_LIMITS, Limits, raising
from .treespecs import (
    FACTORIES,
    LEAF,
    MAX_CONTEXT_DEPTH,
    TYPE_NAME,
    EnumKey,
    Factory,
    SpecNode,
    enum_key,
    is_class_path,
)


@dataclass(frozen=True, slots=True)
class TorchConstant:
    """A dtype, layout, memory format or device: a member of `Value`, and its value as text to compare by."""

    member: str
    text: str
    value: types.Value = field(compare=False)


class NamedItems(tuple[Any, ...]):
    """The items of a named tuple; as of all tuples, their class has no part in whether they are equal.

    Attributes:
        path: Its class, as of `classes.path_of`.
        field_names: The names of its fields.
    """

    path: str
    field_names: tuple[str, ...]


def parse_exact_treespec(nodes: Sequence[types.TreeSpecNode], limits: Limits = DEFAULT_LIMITS) -> SpecNode:
    """Read an exact tree spec.

    Args:
        nodes: The containers and leaves, each before its children.
        limits: Bounds on nesting and number of containers.

    Returns:
        The root node, as of `parse_treespec`.

    Raises:
        DeserializeError: The nodes are no tree, or a container's context does not fit it.

    Example:
        >>> pair, leaf = types.TreeSpecNode(type="builtins.list", children=2), types.TreeSpecNode(type="")
        >>> parse_exact_treespec([pair, leaf, leaf]).leaf_count
        2
    """
    if len(nodes) > limits.treespec_nodes:
        raise DeserializeError(
            f"expected at most {limits.treespec_nodes} containers and leaves, found {len(nodes)}",
            hint=raising("treespec_nodes"),
        )
    root, end = _node(nodes, 0, 0, limits.treespec_depth)
    if end != len(nodes):
        raise DeserializeError(f"expected one root, found {len(nodes) - end} more nodes behind it")
    return root


def _node(
    nodes: Sequence[types.TreeSpecNode], position: int, depth: int, deepest: int
) -> tuple[SpecNode, int]:
    if position >= len(nodes):
        raise DeserializeError("expected as many nodes as containers have children, found fewer")
    node, path = nodes[position], f"[{position}]"
    if depth > deepest:
        raise DeserializeError(
            f"expected at most {deepest} nested containers, found more",
            path=path,
            hint=raising("treespec_depth"),
        )
    if node.type == "":
        if node.context is not None or node.children != 0:
            raise DeserializeError("expected a leaf without context and children, found some", path=path)
        return LEAF, position + 1
    if not (TYPE_NAME.fullmatch(node.type) or is_class_path(node.type)):
        raise DeserializeError(f"expected the name of a class, found {node.type[:80]!r}", path=f"{path}.type")
    if not 0 <= node.children < len(nodes):
        raise DeserializeError(f"expected children behind it, found {node.children}", path=f"{path}.children")
    children, end = [], position + 1
    for _ in range(node.children):
        child, end = _node(nodes, end, depth + 1, deepest)
        children.append(child)
    try:
        context = _CONTEXTS.get(node.type, _other)(node.context, len(children))
    except DeserializeError as error:
        raise DeserializeError(error.message, path=f"{path}.context") from error
    leaves = sum(child.leaf_count for child in children)
    return SpecNode(node.type, context, tuple(children), leaves, exact=True), end


# -- contexts: (value, number of children) -> checked context, as of `treespecs.py` -----------------------


def _no_context(context: types.Value | None, count: int) -> None:
    if context is not None and context.type != "as_none":
        raise DeserializeError(f"expected no context, found {context.type}")


def _keys(context: types.Value | None, count: int) -> tuple[Any, ...]:
    if context is None or context.type != "as_list":
        raise DeserializeError(f"expected the list of keys, found {_shown(context)}")
    if len(context.as_list) != count:
        raise DeserializeError(f"expected {count} keys, one for each child, found {len(context.as_list)}")
    return _distinct(context.as_list)


def _distinct(values: Sequence[types.Value]) -> tuple[Any, ...]:
    keys = tuple(map(_key, values))
    if (problem := keys_problem(keys)) is not None:
        raise DeserializeError(problem)
    return keys


def _key(value: types.Value) -> Any:
    if value.type in ("as_list", "as_dict"):
        raise DeserializeError(f"expected a constant or a tuple as key, found {value.type}")
    return plain_context(value)


def _default_dict(context: types.Value | None, count: int) -> tuple[Factory | None, tuple[Any, ...]]:
    if context is None or context.type != "as_tuple" or len(context.as_tuple) != 2:
        raise DeserializeError(f"expected the default_factory and the list of keys, found {_shown(context)}")
    factory, keys = context.as_tuple
    return _factory(factory), _keys(keys, count)


def _factory(value: types.Value) -> Factory | None:
    if value.type == "as_none":
        return None
    if value.type == "as_string":
        module, _, name = value.as_string.partition(".")
        if (module, name) in FACTORIES:
            return Factory(module, name)
    raise DeserializeError(
        f"expected None, or a plain container or number, as the default_factory, found {_shown(value)}"
    )


def _deque(context: types.Value | None, count: int) -> int | None:
    if context is not None and context.type == "as_none":
        return None
    if context is None or context.type != "as_int" or context.as_int < count:
        raise DeserializeError(f"expected None or a length of at least {count}, found {_shown(context)}")
    return context.as_int


def _named_tuple(context: types.Value | None, count: int) -> str:
    if context is not None and context.type == "as_string":
        name = context.as_string
        if TYPE_NAME.fullmatch(name) or is_class_path(name):
            return name
    raise DeserializeError(f"expected the name of a namedtuple class, found {_shown(context)}")


def _other(context: types.Value | None, count: int) -> Any:
    return None if context is None else plain_context(context)


_CONTEXTS: dict[str, Callable[[types.Value | None, int], Any]] = {
    "builtins.tuple": _no_context,
    "builtins.list": _no_context,
    "builtins.dict": _keys,
    "collections.OrderedDict": _keys,
    "collections.defaultdict": _default_dict,
    "collections.deque": _deque,
    "collections.namedtuple": _named_tuple,
    "torch.Size": _no_context,
    "torch.fx.immutable_collections.immutable_list": _no_context,
    "torch.fx.immutable_collections.immutable_dict": _keys,
}


# -- values -----------------------------------------------------------------------------------------------


def plain_context(value: types.Value, depth: int = 0) -> Any:
    """A value as Python's, with `EnumKey`, `NamedItems`, `TorchConstant` for what only importing can make.

    Raises:
        DeserializeError: It is none that a context may hold, or nested without end.
    """
    if depth > MAX_CONTEXT_DEPTH:
        raise DeserializeError(f"expected at most {MAX_CONTEXT_DEPTH} nested values, found more")
    convert = _VALUES.get(value.type)
    if convert is None:
        raise DeserializeError(f"expected a constant, found {value.type}")
    return convert(value, depth + 1)


def _enum(value: types.Value, depth: int) -> EnumKey:
    member = enum_key(value.as_enum.fqn, value.as_enum.name)
    if member is None:
        found = f"{value.as_enum.fqn}.{value.as_enum.name}"[:80]
        raise DeserializeError(f"expected a member of an enum, MODULE:NAME, found {found!r}")
    return member


def _named_items(value: types.Value, depth: int) -> NamedItems:
    named = value.as_named_tuple
    if (problem := named_tuple_problem(named.fqn, named.field_names, len(named.values))) is not None:
        raise DeserializeError(problem)
    made = NamedItems(plain_context(item, depth) for item in named.values)
    made.path, made.field_names = named.fqn, tuple(named.field_names)
    return made


def _dict(value: types.Value, depth: int) -> dict[Any, Any]:
    keys = _distinct([item.key for item in value.as_dict])
    return dict(zip(keys, (plain_context(item.value, depth) for item in value.as_dict), strict=True))


def _as_is(value: types.Value, depth: int) -> Any:
    return value.value


def _of_torch(value: types.Value, depth: int) -> TorchConstant:
    return TorchConstant(value.type, repr(value.value), value)


_VALUES: dict[str, Callable[[types.Value, int], Any]] = {
    "as_none": lambda value, depth: None,
    "as_bool": _as_is,
    "as_int": _as_is,
    "as_float": _as_is,
    "as_string": _as_is,
    "as_complex": lambda value, depth: complex(value.as_complex.real, value.as_complex.imag),
    "as_enum": _enum,
    "as_scalar_type": _of_torch,
    "as_extra_scalar_type": _of_torch,
    "as_layout": _of_torch,
    "as_memory_format": _of_torch,
    "as_device": _of_torch,
    "as_list": lambda value, depth: [plain_context(item, depth) for item in value.as_list],
    "as_tuple": lambda value, depth: tuple(plain_context(item, depth) for item in value.as_tuple),
    "as_named_tuple": _named_items,
    "as_dict": _dict,
}


def _shown(value: types.Value | None) -> str:
    return "none" if value is None else f"{value!r:.80}"


# -- what both say ----------------------------------------------------------------------------------------


def treespecs_agree(exact: SpecNode, text: SpecNode) -> bool:
    """Whether an exact tree spec says what the JSON one says, only more exactly."""
    return (
        exact.type == text.type
        and len(exact.children) == len(text.children)
        and _contexts_agree(exact, text)
        and all(map(treespecs_agree, exact.children, text.children))
    )


def _contexts_agree(exact: SpecNode, text: SpecNode) -> bool:
    # What a class writes itself stands in both alike.
    return _same(exact.context, text.context) or (
        exact.type not in _CONTEXTS and isinstance(text.context, str) and _text_agrees(exact, text.context)
    )


def _text_agrees(exact: SpecNode, text: str) -> bool:
    try:
        return _same(exact.context, json.loads(text, object_pairs_hook=_Pairs))
    except (ValueError, RecursionError):
        return False


class _Pairs(tuple[tuple[str, Any], ...]):
    """An object of JSON, in which keys may be alike: `1` and `"1"` are."""


def _same(exact: Any, found: Any) -> bool:
    if isinstance(exact, EnumKey):
        # An enum whose members are numbers or texts is written as those; only its class knows them.
        return exact in (found, _enum_of(found)) or isinstance(found, int | float | str)
    if isinstance(exact, dict):
        pairs = tuple(found.items()) if isinstance(found, dict) else found
        return (
            isinstance(found, dict | _Pairs)
            and len(exact) == len(pairs)
            and all(map(_same_item, exact.items(), pairs))
        )
    if isinstance(exact, list | tuple):
        return (
            isinstance(found, list | tuple)
            and not isinstance(found, _Pairs)
            and len(exact) == len(found)
            and all(map(_same, exact, found))
        )
    return type(exact) is type(found) and (bool(exact == found) or (exact != exact and found != found))


def _same_item(exact: tuple[Any, Any], found: tuple[str, Any]) -> bool:
    key, value = exact
    as_text = key if isinstance(key, str | EnumKey) else json.dumps(key, default=repr)
    return _same(as_text, found[0]) and _same(value, found[1])


def _enum_of(found: Any) -> EnumKey | None:
    """The member of an enum that pytree's JSON says, in words of its own."""
    if not isinstance(found, _Pairs):
        return None
    match dict(found):
        case {"__enum__": True, "fqn": str() as fqn, "name": str() as name}:
            return enum_key(fqn, name)
    return None
