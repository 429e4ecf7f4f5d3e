"""How nested inputs and outputs are put together: pytree's specs as text, and as they are."""

from __future__ import annotations

import enum
import json
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.fx.immutable_collections import immutable_dict, immutable_list
from torch.utils import _pytree as pytree

from ..errors import SerializeError
from ..generated import types
from ..treespecs import FACTORIES
from .exact import class_path, export_plain_value
from .values import Program

_HINT = (
    "Use tuples, lists and dicts, or register the class with a serialized_type_name, "
    "for example by torch.export.register_dataclass"
)


def export_treespec(
    spec: pytree.TreeSpec, namedtuples: dict[str, types.NamedTupleDef], program: Program
) -> tuple[str, list[types.TreeSpecNode] | None]:
    """Write a spec in pytree's own JSON form, and as it is where that loses something.

    Args:
        spec: The structure of a module's inputs or outputs.
        namedtuples: By the name under which a named tuple is registered, its field names: those in the spec
            are added, so that a reader can compare its class with the one that was saved.
        program: Notes what PyTorch's format cannot express.

    Raises:
        SerializeError: For a class or key that can be written in neither way, and for two named tuples of
            the same name.
    """
    exact: list[types.TreeSpecNode] | None = None
    try:
        text = pytree.treespec_dumps(spec, types.TREESPEC_VERSION)
    except (NotImplementedError, TypeError, AttributeError) as cause:
        text, exact = "", _export_unnamed(spec, cause)
        program.beyond.append(f"inputs or outputs that pytree cannot write: {str(cause).rstrip('.'):.200}")
    else:
        if not _survives(spec):
            exact = list(export_nodes(spec))
    _collect_namedtuples(spec, namedtuples)
    return text, exact


def _export_unnamed(spec: pytree.TreeSpec, cause: Exception) -> list[types.TreeSpecNode]:
    try:
        return list(export_nodes(spec))
    except SerializeError as error:
        raise SerializeError(
            f"expected inputs and outputs of classes that pytree can name: {str(cause).rstrip('.')}; "
            f"{error.message}",
            hint=error.hint or _HINT,
        ) from cause


def _collect_namedtuples(spec: pytree.TreeSpec, namedtuples: dict[str, types.NamedTupleDef]) -> None:
    if spec.type is not None and pytree.is_namedtuple_class(spec.context):
        name = _named_tuple(spec.context)
        fields = list(spec.context._fields)
        known = namedtuples.setdefault(name, types.NamedTupleDef(field_names=fields))
        if known.field_names != fields:
            message = f"expected one named tuple `{name}`, found two: {known.field_names} and {fields}"
            raise SerializeError(message, hint="Register them under different names")
    for child in spec.children():
        _collect_namedtuples(child, namedtuples)


# -- as it is ---------------------------------------------------------------------------------------------


def export_nodes(spec: pytree.TreeSpec) -> Iterator[types.TreeSpecNode]:
    """Write a spec as it is, each container before its children."""
    if spec.type is None:
        yield types.TreeSpecNode(type="")
        return
    export = _CONTEXTS.get(spec.type)
    context = _other(spec.type, spec.context) if export is None else export(spec.context)
    children = spec.children()
    yield types.TreeSpecNode(type=_type_name(spec.type), context=context, children=len(children))
    for child in children:
        yield from export_nodes(child)


def _type_name(kind: Any) -> str:
    definition = pytree.SUPPORTED_SERIALIZED_TYPES.get(kind)
    if definition is None or definition.serialized_type_name == pytree.NO_SERIALIZED_TYPE_NAME_FOUND:
        return class_path(kind)
    return definition.serialized_type_name


def _other(kind: Any, context: Any) -> types.Value:
    """The context of a class that somebody registered, or what the class writes of it if it does."""
    definition = pytree.SUPPORTED_SERIALIZED_TYPES.get(kind)
    if definition is None or definition.to_dumpable_context is None:
        return export_plain_value(context)
    try:
        # As pytree's JSON has it, which is what the class is used to read.
        written = json.loads(
            pytree.treespec_dumps(pytree.TreeSpec(kind, context, []), types.TREESPEC_VERSION)
        )
        return export_plain_value(written[1]["context"])
    except (NotImplementedError, TypeError, AttributeError):
        return export_plain_value(definition.to_dumpable_context(context))


def _keys(context: Any) -> types.Value:
    return types.Value.of_list([export_plain_value(key) for key in context])


def _default_dict(context: Any) -> types.Value:
    factory, keys = context
    return types.Value.of_tuple([_factory(factory), _keys(keys)])


def _factory(factory: Any) -> types.Value:
    if factory is None:
        return types.Value.of_none(True)
    path = f"{getattr(factory, '__module__', '')}.{getattr(factory, '__qualname__', '')}"
    if tuple(path.split(".", 1)) not in FACTORIES:
        raise SerializeError(
            f"expected None, or a plain container or number, as the default_factory, found {factory!r:.80}"
        )
    return types.Value.of_string(path)


def _named_tuple(kind: Any) -> str:
    definition = pytree.SUPPORTED_SERIALIZED_TYPES.get(kind)
    return class_path(kind) if definition is None else definition.serialized_type_name


#: The context of each container that pytree knows by itself; other classes have a value of their own.
_CONTEXTS: dict[Any, Callable[[Any], types.Value | None]] = {
    tuple: lambda context: None,
    list: lambda context: None,
    torch.Size: lambda context: None,
    immutable_list: lambda context: None,
    dict: _keys,
    OrderedDict: _keys,
    immutable_dict: _keys,
    defaultdict: _default_dict,
    namedtuple: lambda context: types.Value.of_string(_named_tuple(context)),
}


# -- what JSON keeps --------------------------------------------------------------------------------------


def _survives(spec: pytree.TreeSpec) -> bool:
    """Whether the JSON of a spec has all of it."""
    if spec.type is None:
        return True
    return _context_survives(spec) and all(map(_survives, spec.children()))


def _context_survives(spec: pytree.TreeSpec) -> bool:
    if spec.type in _CONTEXTS:
        context = spec.context[1] if spec.type is defaultdict else spec.context
        return not isinstance(context, list) or all(map(_key_survives, context))
    # A class that writes its own context also reads it.
    definition = pytree.SUPPORTED_SERIALIZED_TYPES[spec.type]
    return definition.to_dumpable_context is not None or _value_survives(spec.context)


def _key_survives(key: Any) -> bool:
    """Whether a key is none that JSON takes for the number or text that it also is; its lists are tuples."""
    if isinstance(key, tuple):
        return type(key) is tuple and all(map(_key_survives, key))
    return not (isinstance(key, enum.Enum) and isinstance(key, (int, float, str)))


def _value_survives(value: Any) -> bool:
    if isinstance(value, tuple):
        return False
    if isinstance(value, list):
        return all(map(_value_survives, value))
    if isinstance(value, dict):
        return all(type(key) is str and _value_survives(item) for key, item in value.items())
    return _key_survives(value)
