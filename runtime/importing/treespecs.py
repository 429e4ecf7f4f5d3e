"""How nested inputs and outputs are put together: pytree's specs from text."""

from __future__ import annotations

import builtins
import collections
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx.immutable_collections import immutable_dict, immutable_list
from torch.utils import _pytree as pytree

from ..containers import check_context, find_container, find_enum_member, find_named_tuple, make_named_tuple
from ..exact_treespecs import NamedItems, TorchConstant, parse_exact_treespec
from ..generated import types
from ..permissions import NO_PERMISSIONS, Permissions
from ..treespecs import FACTORIES, EnumKey, Factory, SpecNode, context_value, parse_treespec
from .exact import import_plain_value

_LEAF = pytree.tree_structure(0)


def import_treespec(
    text: str,
    namedtuples: Mapping[str, types.NamedTupleDef],
    permissions: Permissions = NO_PERMISSIONS,
    exact: Sequence[types.TreeSpecNode] | None = None,
) -> pytree.TreeSpec:
    """Read a spec.

    Args:
        text: The spec in pytree's own JSON form.
        namedtuples: By the name under which a named tuple is registered, the field names that it was saved
            with.
        permissions: What the caller permits: classes that the text may name.
        exact: The spec as it is, where the JSON loses something.

    Raises:
        DeserializeError: For text that is no spec, a class that is not registered with pytree here, and a
            named tuple with other fields than the saved one.
    """
    limits = permissions.limits
    root = parse_treespec(text, limits) if exact is None else parse_exact_treespec(exact, limits)
    return _Reader(namedtuples, permissions.types).node(root)


class _Reader:
    """Reads the specs of one program."""

    def __init__(self, namedtuples: Mapping[str, types.NamedTupleDef], known: tuple[type, ...]) -> None:
        self._namedtuples = namedtuples
        self._known = known

    def node(self, node: SpecNode) -> pytree.TreeSpec:
        if node.type is None:
            return _LEAF
        children = [self.node(child) for child in node.children]
        container = _CONTAINERS.get(node.type)
        if container is not None:
            kind, convert = container
            return pytree.TreeSpec(kind, convert(self, node.context), children)
        if node.type == "collections.namedtuple":
            kind = find_named_tuple(node, self._namedtuples.get(node.context), self._known)
            return pytree.TreeSpec(namedtuple, kind, children)
        kind = find_container(node.type, self._known)
        check_context(node, kind)
        return pytree.TreeSpec(kind, self._context(node, kind), children)

    def as_it_is(self, context: Any) -> Any:
        return context

    def keys(self, context: tuple[Any, ...]) -> list[Any]:
        return [self._plain(key) for key in context]

    def default_dict(self, context: tuple[Factory | None, tuple[Any, ...]]) -> list[Any]:
        factory, keys = context
        return [None if factory is None else _FACTORIES[factory.module, factory.name], self.keys(keys)]

    def _context(self, node: SpecNode, kind: Any) -> Any:
        definition = pytree.SUPPORTED_SERIALIZED_TYPES.get(kind)
        if definition is None or definition.from_dumpable_context is None:
            return self._plain(node.context if node.exact else context_value(node))
        return definition.from_dumpable_context(self._plain(node.context))

    def _named_tuple(self, value: NamedItems) -> Any:
        items = [self._plain(item) for item in value]
        return make_named_tuple(value.path, value.field_names, items, self._known)

    def _plain(self, value: Any) -> Any:
        """Plain values, with members of enums and torch's constants in place."""
        convert = _PLAIN.get(type(value))
        return value if convert is None else convert(self, value)


_PLAIN: dict[type, Callable[[Any, Any], Any]] = {
    list: lambda reader, value: [reader._plain(item) for item in value],
    tuple: lambda reader, value: tuple(reader._plain(item) for item in value),
    dict: lambda reader, value: {reader._plain(key): reader._plain(item) for key, item in value.items()},
    NamedItems: lambda reader, value: reader._named_tuple(value),
    EnumKey: lambda reader, value: find_enum_member(value, reader._known),
    TorchConstant: lambda reader, value: import_plain_value(value.value),
}

_MODULES = {"builtins": builtins, "collections": collections}
#: The names are those of our own table, so that nothing from a file is looked up as attribute.
_FACTORIES: dict[tuple[str, str], Any] = {
    (module, name): getattr(_MODULES[module], name) for module, name in FACTORIES
}

#: The containers that pytree knows by itself: their class, and how their context is made.
_CONTAINERS: dict[str, tuple[Any, Callable[[_Reader, Any], Any]]] = {
    "builtins.tuple": (tuple, _Reader.as_it_is),
    "builtins.list": (list, _Reader.as_it_is),
    "builtins.dict": (dict, _Reader.keys),
    "collections.OrderedDict": (OrderedDict, _Reader.keys),
    "collections.defaultdict": (defaultdict, _Reader.default_dict),
    "collections.deque": (deque, _Reader.as_it_is),
    "torch.Size": (torch.Size, _Reader.as_it_is),
    "torch.fx.immutable_collections.immutable_list": (immutable_list, _Reader.as_it_is),
    "torch.fx.immutable_collections.immutable_dict": (immutable_dict, _Reader.keys),
}
