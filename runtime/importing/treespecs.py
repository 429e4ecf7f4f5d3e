"""How nested inputs and outputs are put together: pytree's specs from text."""

from __future__ import annotations

import builtins
import collections
import enum
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.fx.immutable_collections import immutable_dict, immutable_list
from torch.utils import _pytree as pytree

from ..errors import DeserializeError
from ..generated import types
from ..permissions import NO_PERMISSIONS, Permissions
from ..treespecs import FACTORIES, EnumMember, Factory, TreeSpecNode, context_value, parse_treespec
from .classes import find_class

_LEAF = pytree.tree_structure(0)


def import_treespec(
    text: str,
    namedtuples: Mapping[str, types.NamedTupleDef],
    permissions: Permissions = NO_PERMISSIONS,
) -> pytree.TreeSpec:
    """Read a spec from pytree's own JSON form.

    Args:
        text: The spec.
        namedtuples: By the name under which a named tuple is registered, the field names that it was saved
            with.
        permissions: What the caller permits: classes that the text may name.

    Raises:
        DeserializeError: For text that is no spec, a class that is not registered with pytree here, and a
            named tuple with other fields than the saved one.
    """
    return _Reader(namedtuples, permissions.types).node(parse_treespec(text, permissions.limits))


class _Reader:
    """Reads the specs of one program."""

    def __init__(self, namedtuples: Mapping[str, types.NamedTupleDef], known: tuple[type, ...]) -> None:
        self._namedtuples = namedtuples
        self._known = known

    def node(self, node: TreeSpecNode) -> pytree.TreeSpec:
        if node.type is None:
            return _LEAF
        children = [self.node(child) for child in node.children]
        container = _CONTAINERS.get(node.type)
        if container is not None:
            kind, convert = container
            return pytree.TreeSpec(kind, convert(self, node.context), children)
        if node.type == "collections.namedtuple":
            return pytree.TreeSpec(namedtuple, _named_tuple(node, self._namedtuples), children)
        kind = _registered(node.type)
        return pytree.TreeSpec(kind, self._context(node, kind), children)

    def as_it_is(self, context: Any) -> Any:
        return context

    def keys(self, context: tuple[Any, ...]) -> list[Any]:
        return [self._key(key) for key in context]

    def default_dict(self, context: tuple[Factory, tuple[Any, ...]]) -> list[Any]:
        factory, keys = context
        return [_FACTORIES[factory.module, factory.name], self.keys(keys)]

    def _key(self, key: Any) -> Any:
        if isinstance(key, EnumMember):
            return import_enum_member(key, self._known)
        return tuple(self._key(item) for item in key) if isinstance(key, tuple) else key

    def _context(self, node: TreeSpecNode, kind: Any) -> Any:
        definition = pytree.SUPPORTED_SERIALIZED_TYPES[kind]
        if definition.from_dumpable_context is None:
            return self._plain(context_value(node))
        return definition.from_dumpable_context(self._plain(node.context))

    def _plain(self, value: Any) -> Any:
        """JSON values, with enum members in place."""
        if isinstance(value, EnumMember):
            return import_enum_member(value, self._known)
        if isinstance(value, list):
            return [self._plain(item) for item in value]
        if isinstance(value, dict):
            return {key: self._plain(item) for key, item in value.items()}
        return value


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


def _registered(name: str) -> Any:
    kind = pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.get(name)
    if kind is None or name == pytree.NO_SERIALIZED_TYPE_NAME_FOUND:
        raise DeserializeError(
            f"expected a class that is registered with pytree, found {name!r}",
            hint="Import the library that defines it before loading, or register it under this name with "
            "torch.utils._pytree.register_pytree_node(..., serialized_type_name=...)",
        )
    return kind


def _named_tuple(node: TreeSpecNode, namedtuples: Mapping[str, types.NamedTupleDef]) -> Any:
    name: str = node.context
    kind = _registered(name)
    fields = getattr(kind, "_fields", None)
    if not pytree.is_namedtuple_class(kind) or fields is None:
        raise DeserializeError(
            f"expected a named tuple, found {name!r}, which is registered for {kind.__name__}"
        )
    if len(fields) != len(node.children):
        raise DeserializeError(f"expected {len(fields)} fields of {name!r}, found {len(node.children)}")
    saved = namedtuples.get(name)
    if saved is not None and list(saved.field_names) != list(fields):
        raise DeserializeError(
            f"expected the fields of {name!r} as registered here, {', '.join(fields)}, found "
            f"{', '.join(saved.field_names)}"[:300],
            hint="Register the class as it was when the program was saved",
        )
    return kind


def import_enum_member(member: EnumMember, known: tuple[type, ...] = ()) -> enum.Enum:
    """Read a member of an enum that is known or imported already; a file never makes Python import one."""
    found = find_class(member.module, member.qualified_name, known)
    if not isinstance(found, enum.EnumMeta) or member.name not in found.__members__:
        raise DeserializeError(
            f"expected a member of an enum that is imported, found "
            f"{member.module}.{member.qualified_name}.{member.name}"[:300],
            hint=f"Import {member.module[:100]} before loading, or pass the class with types=[...]",
        )
    return found.__members__[member.name]
