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

from ..classes import find_class
from ..errors import DeserializeError
from ..exact_treespecs import TorchConstant, is_class_path, parse_exact_treespec
from ..generated import types
from ..permissions import NO_PERMISSIONS, Permissions
from ..treespecs import FACTORIES, EnumMember, Factory, TreeSpecNode, context_value, parse_treespec
from .enums import import_enum_member
from .exact import import_note

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

    def node(self, node: TreeSpecNode) -> pytree.TreeSpec:
        if node.type is None:
            return _LEAF
        children = [self.node(child) for child in node.children]
        container = _CONTAINERS.get(node.type)
        if container is not None:
            kind, convert = container
            return pytree.TreeSpec(kind, convert(self, node.context), children)
        if node.type == "collections.namedtuple":
            return pytree.TreeSpec(namedtuple, self._named_tuple(node), children)
        kind = self._class(node.type)
        return pytree.TreeSpec(kind, self._context(node, kind), children)

    def as_it_is(self, context: Any) -> Any:
        return context

    def keys(self, context: tuple[Any, ...]) -> list[Any]:
        return [self._plain(key) for key in context]

    def default_dict(self, context: tuple[Factory | None, tuple[Any, ...]]) -> list[Any]:
        factory, keys = context
        return [None if factory is None else _FACTORIES[factory.module, factory.name], self.keys(keys)]

    def _class(self, name: str) -> Any:
        if not is_class_path(name):
            return _registered(name)
        # A class that pytree has no name for; none is imported for it.
        module, _, qualified_name = name.partition(":")
        kind = find_class(module, qualified_name, self._known)
        if kind is None or not (kind in pytree.SUPPORTED_NODES or pytree.is_namedtuple_class(kind)):
            raise DeserializeError(
                f"expected a named tuple, or a class that is registered with pytree, found {name!r}"[:300],
                hint=f"Import {module[:100]} before loading, or pass the class with types=[...]",
            )
        return kind

    def _named_tuple(self, node: TreeSpecNode) -> Any:
        kind = self._class(node.context)
        _check_fields(node, kind, self._namedtuples.get(node.context))
        return kind

    def _context(self, node: TreeSpecNode, kind: Any) -> Any:
        if node.exact:
            return self._plain(node.context)
        definition = pytree.SUPPORTED_SERIALIZED_TYPES[kind]
        if definition.from_dumpable_context is None:
            return self._plain(context_value(node))
        return definition.from_dumpable_context(self._plain(node.context))

    def _plain(self, value: Any) -> Any:
        """Plain values, with members of enums and torch's constants in place."""
        convert = _PLAIN.get(type(value))
        return value if convert is None else convert(self, value)


_PLAIN: dict[type, Callable[[Any, Any], Any]] = {
    list: lambda reader, value: [reader._plain(item) for item in value],
    tuple: lambda reader, value: tuple(reader._plain(item) for item in value),
    dict: lambda reader, value: {reader._plain(key): reader._plain(item) for key, item in value.items()},
    EnumMember: lambda reader, value: import_enum_member(value, reader._known),
    TorchConstant: lambda reader, value: import_note(value.value),
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


def _registered(name: str) -> Any:
    kind = pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.get(name)
    if kind is None or name == pytree.NO_SERIALIZED_TYPE_NAME_FOUND:
        module, _, qualified_name = name.rpartition(".")
        known = find_class(module, qualified_name)
        is_module = known is not None and issubclass(known, torch.nn.Module)
        raise DeserializeError(
            f"expected a class that is registered with pytree, found {name!r}",
            hint=_MODULE.format(qualified_name) if is_module else _REGISTER,
        )
    return kind


_REGISTER = (
    "Import the library that defines it before loading, or register it under this name with "
    "torch.utils._pytree.register_pytree_node(..., serialized_type_name=...)"
)
_MODULE = (
    "Modules among the inputs come from the example inputs, which are pickled. Pass types=[{}] with the "
    "classes of its parts, or allow_pickle=True if you trust the author of the file"
)


def _check_fields(node: TreeSpecNode, kind: Any, saved: types.NamedTupleDef | None) -> None:
    name: str = node.context
    fields = getattr(kind, "_fields", None)
    if not pytree.is_namedtuple_class(kind) or fields is None:
        raise DeserializeError(
            f"expected a named tuple, found {name!r}, which is registered for {kind.__name__}"
        )
    if len(fields) != len(node.children):
        raise DeserializeError(f"expected {len(fields)} fields of {name!r}, found {len(node.children)}")
    if saved is not None and list(saved.field_names) != list(fields):
        raise DeserializeError(
            f"expected the fields of {name!r} as registered here, {', '.join(fields)}, found "
            f"{', '.join(saved.field_names)}"[:300],
            hint="Register the class as it was when the program was saved",
        )
