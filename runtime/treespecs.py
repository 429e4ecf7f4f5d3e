"""Tree specs: the JSON text that says how inputs and outputs nest in containers.

torch's own reader imports whatever module an enum key or a defaultdict factory names. This one imports
nothing: it checks the text against the containers it knows, and returns plain nodes, from which
`importing/treespecs.py` makes pytree's objects. It needs no torch.

    text = [1, spec]
    spec = {"type": null, "context": null, "children_spec": []}          a leaf
         | {"type": name, "context": context, "children_spec": [spec...]}

The context of most containers is JSON within a JSON string, "[\\"x\\", \\"y\\"]" for the keys of a dict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .errors import DeserializeError
from .keys import keys_problem
from .limits import DEFAULT_LIMITS, INT64_MAX, Limits, raising

PROTOCOL = 1

#: Nesting of tuples that are a key, and of what a registered class keeps.
MAX_CONTEXT_DEPTH = 100

# The functions that a defaultdict may make its values with: module, name.
FACTORIES = frozenset(
    {("builtins", name) for name in "bool bytes complex dict float frozenset int list set str tuple".split()}
    | {("collections", name) for name in ["Counter", "OrderedDict", "deque"]}
)


@dataclass(frozen=True, slots=True)
class EnumKey:
    """A member of an enum as a key: the module and qualified name of its class, and its own name."""

    module: str
    qualified_name: str
    name: str


@dataclass(frozen=True, slots=True)
class Factory:
    """What a defaultdict makes its values with: one of `FACTORIES`."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class SpecNode:
    """One container, or a leaf, of a tree spec.

    Attributes:
        type: The name that the container's class is registered under with pytree, such as `builtins.dict`, or
            None for a leaf.
        context: What the container needs beside its children. dict and OrderedDict: a tuple of keys.
            defaultdict: a `Factory` or None, and a tuple of keys. deque: its maximal length or None.
            namedtuple: the name its class is registered under. tuple, list: None. Other classes: the JSON
            value, of lists, dicts and plain values.
        children: The nodes of the children.
        leaf_count: How many leaves there are below, or 1 for a leaf.
        exact: Whether the context of another class, if it is not what that writes itself, is a value rather
            than JSON text.
    """

    type: str | None
    context: Any
    children: tuple[SpecNode, ...]
    leaf_count: int
    exact: bool = False


LEAF = SpecNode(None, None, (), 1)

TYPE_NAME = re.compile(r"[A-Za-z_][\w.<>\[\], ]{0,511}")
_ENUM_KEYS = {"__enum__", "fqn", "name"}
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


@lru_cache(maxsize=1_024)
def parse_treespec(text: str, limits: Limits = DEFAULT_LIMITS) -> SpecNode:
    """Parse the text of one tree spec.

    Args:
        text: What `torch.utils._pytree.treespec_dumps` writes.
        limits: Bounds on its length, nesting and number of containers.

    Returns:
        The root node. Equal texts give the same object.

    Raises:
        DeserializeError: The text is no such JSON, or a container's context does not fit it. The path is the
            place in the JSON.

    Example:
        >>> leaf = '{"type": null, "context": null, "children_spec": []}'
        >>> root = f'{{"type": "builtins.list", "context": "null", "children_spec": [{leaf}, {leaf}]}}'
        >>> parse_treespec(f"[1, {root}]").leaf_count
        2
    """
    if len(text) > limits.treespec_length:
        raise DeserializeError(
            f"expected a tree spec of at most {limits.treespec_length} characters, found {len(text)}",
            hint=raising("treespec_length"),
        )
    match _json(text, ""):
        case [int() as protocol, dict() as root] if protocol is not True:
            if protocol != PROTOCOL:
                raise DeserializeError(
                    f"expected tree spec protocol {PROTOCOL}, found {protocol}", path="[0]"
                )
            return _Parser(limits).node(root, "[1]", 0)
        case value:
            raise DeserializeError(f"expected [{PROTOCOL}, {{...}}] as a tree spec, found {_shown(value)}")


def _json(text: str, path: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            raise ValueError("an object with the same key twice")
        return result

    try:
        return json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise DeserializeError(f"expected JSON, found {_shown(text)}: {error}", path=path or None) from error


class _Parser:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._nodes = 0

    def node(self, value: Any, path: str, depth: int) -> SpecNode:
        self._nodes += 1
        limits = self._limits
        for limit, found, most, what in (
            ("treespec_depth", depth, limits.treespec_depth, "nested containers"),
            ("treespec_nodes", self._nodes, limits.treespec_nodes, "containers and leaves"),
        ):
            if found > most:
                raise DeserializeError(
                    f"expected at most {most} {what}, found more", path=path, hint=raising(limit)
                )
        match value:
            case {"type": None, "context": None, "children_spec": [], **more} if not more:
                return LEAF
            case {"type": str() as name, "context": context, "children_spec": list() as children, **more} if (
                not more
            ):
                nodes = tuple(
                    self.node(child, f"{path}.children_spec[{i}]", depth + 1)
                    for i, child in enumerate(children)
                )
            case _:
                raise DeserializeError(
                    f"expected an object of type, context and children_spec, found {_shown(value)}", path=path
                )
        if not TYPE_NAME.fullmatch(name):
            raise DeserializeError(f"expected the name of a class, found {name[:80]!r}", path=f"{path}.type")
        checked = _CONTEXTS.get(name, _other)(context, len(nodes), f"{path}.context")
        return SpecNode(name, checked, nodes, sum(node.leaf_count for node in nodes))


# -- contexts: (what the JSON holds, number of children, path) -> checked context


def _no_context(context: Any, count: int, path: str) -> None:
    if context != "null":
        raise DeserializeError(f"expected 'null', found {_shown(context)}", path=path)


def _keys(context: Any, count: int, path: str) -> tuple[Any, ...]:
    if not isinstance(context, str):
        raise DeserializeError(f"expected the keys as JSON text, found {_shown(context)}", path=path)
    return _key_list(_json(context, path), count, path)


def _key_list(value: Any, count: int, path: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise DeserializeError(f"expected a list of keys, found {_shown(value)}", path=path)
    keys = tuple(_key(key, f"{path}[{i}]", 0) for i, key in enumerate(value))
    if len(keys) != count:
        raise DeserializeError(f"expected {count} keys, one for each child, found {len(keys)}", path=path)
    if (problem := keys_problem(keys)) is not None:
        raise DeserializeError(problem, path=path)
    return keys


def key_texts(spec: SpecNode) -> Iterator[str]:
    """All texts that are keys, or parts of keys, of a tree spec's dictionaries.

    Example:
        >>> call = '[1, {"type": "builtins.dict", "context": "[\\\\"a\\\\"]", "children_spec": ['
        >>> leaf = '{"type": null, "context": null, "children_spec": []}'
        >>> list(key_texts(parse_treespec(call + leaf + "]}]")))
        ['a']
    """
    pending: list[Any] = [spec]
    while pending:
        match pending.pop():
            case SpecNode(context=context, children=children):
                pending += children
                if isinstance(context, tuple):
                    pending.append(context)
            case tuple() as items:
                pending += items
            case str() as text:
                yield text


def _key(value: Any, path: str, depth: int) -> Any:
    match value:
        case str():
            return value
        case None | bool() | int() | float():
            return value
        case list() if depth < MAX_CONTEXT_DEPTH:  # JSON has no tuples, and only a tuple can be a key
            return tuple(_key(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value))
        case {"__enum__": _}:
            return _enum_key(value, path)
    raise DeserializeError(
        f"expected a text, number, boolean, enum member or tuple, found {_shown(value)}", path=path
    )


def _enum_key(value: dict[str, Any], path: str) -> EnumKey:
    match value:
        case {"__enum__": True, "fqn": str() as fqn, "name": str() as name} if set(value) == _ENUM_KEYS:
            if (member := enum_key(fqn, name)) is not None:
                return member
    raise DeserializeError(f"expected the member of an enum, found {_shown(value)}", path=path)


def enum_key(fqn: str, name: str) -> EnumKey | None:
    """The member of an enum of its class, `MODULE:QUALIFIED_NAME`, and its name; None for other texts.

    Example:
        >>> enum_key("signal:Signals", "SIGINT")
        EnumKey(module='signal', qualified_name='Signals', name='SIGINT')
    """
    module, _, qualified_name = fqn.partition(":")
    if _DOTTED.fullmatch(module) and _DOTTED.fullmatch(qualified_name) and name.isidentifier():
        return EnumKey(module, qualified_name, name)
    return None


def is_class_path(text: str) -> bool:
    """Whether a text is `MODULE:QUALIFIED_NAME`."""
    return enum_key(text, "x") is not None


def _default_dict(context: Any, count: int, path: str) -> tuple[Factory, tuple[Any, ...]]:
    match context:
        case {
            "default_factory_module": str() as module,
            "default_factory_name": str() as name,
            "dict_context": list() as keys,
            **more,
        } if not more:
            if (module, name) not in FACTORIES:
                raise DeserializeError(
                    f"expected a plain container or number as the default_factory, found '{module}.{name}'"[
                        :200
                    ],
                    path=path,
                )
            return Factory(module, name), _key_list(keys, count, f"{path}.dict_context")
    raise DeserializeError(
        f"expected default_factory_module, default_factory_name and dict_context, found {_shown(context)}",
        path=path,
    )


def _deque(context: Any, count: int, path: str) -> int | None:
    length = _json(context, path) if isinstance(context, str) else context
    if context is None or not (length is None or (type(length) is int and count <= length <= INT64_MAX)):
        raise DeserializeError(
            f"expected 'null' or a length of at least {count}, found {_shown(context)}", path=path
        )
    return length


def _named_tuple(context: Any, count: int, path: str) -> str:
    if not (isinstance(context, str) and TYPE_NAME.fullmatch(context)):
        raise DeserializeError(f"expected the name of a namedtuple class, found {_shown(context)}", path=path)
    return context


def _other(context: Any, count: int, path: str) -> Any:
    """Of a class that somebody registered with pytree: JSON text, or whatever its own writer makes.

    Members of enums in the latter are for the class to read, which gets them from PyTorch as they are here.
    """
    _check_depth(context, path, 0)
    return context


def _check_depth(value: Any, path: str, depth: int) -> None:
    if depth > MAX_CONTEXT_DEPTH:
        raise DeserializeError(f"expected at most {MAX_CONTEXT_DEPTH} nested values, found more", path=path)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inner:
        _check_depth(item, path, depth + 1)


def _plain(value: Any, path: str, depth: int) -> Any:
    if depth > MAX_CONTEXT_DEPTH:
        raise DeserializeError(f"expected at most {MAX_CONTEXT_DEPTH} nested values, found more", path=path)
    if isinstance(value, list):
        return [_plain(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
    if isinstance(value, dict):
        if "__enum__" in value:
            return _enum_key(value, path)
        return {key: _plain(item, f"{path}.{key}", depth + 1) for key, item in value.items()}
    return value


def context_value(node: SpecNode) -> Any:
    """The value within the JSON text of a registered class's context, enum members as `EnumKey`.

    Raises:
        DeserializeError: The context is no JSON text.
    """
    if not isinstance(node.context, str):
        raise DeserializeError(
            f"expected JSON text as the context of {node.type}, found {_shown(node.context)}"
        )
    return _plain(_json(node.context, ""), "context", 0)


_CONTEXTS: dict[str, Callable[[Any, int, str], Any]] = {
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


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


#: The containers that need no registration.
CONTAINERS = frozenset(_CONTEXTS)
