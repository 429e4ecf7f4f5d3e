"""Containers and enums that a file names: those that are registered with pytree or imported already."""

from __future__ import annotations

import enum
import inspect
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any, Generic

import torch
from torch.nn.utils.rnn import PackedSequence
from torch.utils import _pytree as pytree

from .classes import find_class, handing_in, importing, importing_or_handing_in
from .errors import DeserializeError
from .generated import types
from .treespecs import EnumKey, SpecNode, context_value, is_class_path
from .warning import warn_user


def find_container(name: str, known: tuple[type, ...] = ()) -> type:
    """The class of a container that pytree knows by its registration only.

    Args:
        name: The name under which it is registered, or its path in an exact spec.
        known: Classes that the caller has handed in.

    Raises:
        DeserializeError: There is none.
    """
    if not is_class_path(name):
        return _registered(name)
    # A class that pytree has no name for; none is imported for it.
    module, _, qualified_name = name.partition(":")
    kind = find_class(module, qualified_name, known)
    if kind is None or not (kind in pytree.SUPPORTED_NODES or pytree.is_namedtuple_class(kind)):
        raise DeserializeError(
            f"expected a named tuple, or a class that is registered with pytree, found {name!r}"[:300],
            hint=importing_or_handing_in(module),
        )
    if kind not in pytree.SUPPORTED_NODES and not is_harmless_named_tuple(kind, known):
        raise DeserializeError(
            f"expected a named tuple without special methods of its own, found {name!r}"[:300],
            hint=handing_in(name),
        )
    return kind


def find_named_tuple(node: SpecNode, saved: types.NamedTupleDef | None, known: tuple[type, ...] = ()) -> type:
    """The class of a named tuple.

    Args:
        node: The named tuple in a spec.
        saved: The field names that it was saved with, if they are known.
        known: Classes that the caller has handed in.

    Raises:
        DeserializeError: There is none, or it has other fields.
    """
    name: str = node.context
    kind = find_container(name, known)
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
    return kind


def make_named_tuple(
    path: str, field_names: Sequence[str], items: Sequence[Any], known: tuple[type, ...]
) -> Any:
    """A named tuple, or with a warning a plain one where its class is not known here as it was saved.

    No code of the class runs, nor later: one with special methods of its own has to be handed in.

    Args:
        path: The class, as of `classes.path_of`.
        field_names: The names of its fields as saved.
        items: What the fields hold.
        known: Classes that the caller has handed in.
    """
    module, _, qualified_name = path.partition(":")
    kind: Any = find_class(module, qualified_name, known)
    if (
        pytree.is_namedtuple_class(kind)
        and list(kind._fields) == list(field_names)
        and len(items) == len(field_names)
    ):
        if is_harmless_named_tuple(kind, known):
            return tuple.__new__(kind, items)
        wanted, hint = "without special methods of its own", handing_in(path)
    else:
        wanted, hint = f"with the fields {', '.join(field_names)[:100]}", importing_or_handing_in(module)
    warn_user(
        f"a named tuple comes back as a plain tuple: expected the class {path[:100]!r} {wanted}, "
        f"found none here. {hint}"
    )
    return tuple(items)


#: What `namedtuple` makes, to compare with.
_Made = namedtuple("_Made", ["field"])
#: Special names that a class may have besides, as no operation calls what they name.
_INERT = frozenset(
    f"__{name}__"
    for name in (
        "annotate annotate_func annotations annotations_cache class_getitem dict doc firstlineno match_args "
        "module orig_bases parameters slotnames slots static_attributes type_params weakref"
    ).split()
)


def is_harmless_named_tuple(kind: type, known: tuple[type, ...] = ()) -> bool:
    """Whether operations on objects of a class of named tuples run no code but what `namedtuple` makes.

    `platform.uname_result` starts a program when its items are taken. Classes that were handed in, or are
    registered with pytree, are trusted, and PyTorch's own.

    Example:
        >>> import platform
        >>> is_harmless_named_tuple(_Made), is_harmless_named_tuple(platform.uname_result)
        (True, False)
    """
    trusted = kind in known or kind in pytree.SUPPORTED_SERIALIZED_TYPES or kind is PackedSequence
    return trusted or (
        type(kind) is type
        and all(
            _is_made_by_namedtuple(name, value)
            for base in kind.__mro__
            if base not in (tuple, object, Generic)
            for name, value in vars(base).items()
            if name.startswith("__") and name.endswith("__") and name not in _INERT
        )
    )


def _is_made_by_namedtuple(name: str, value: Any) -> bool:
    made, function = (getattr(each, "__func__", each) for each in (vars(_Made).get(name), value))
    if name == "__new__":  # compiled anew for each class
        return bool(getattr(function, "__globals__", {}).get("_tuple_new") == tuple.__new__)
    return made is not None and getattr(function, "__code__", None) is made.__code__


def check_context(node: SpecNode, kind: type) -> None:
    """Checks that objects of a registered class can be made of what a spec says, where it is known how.

    What classes do that somebody registered with functions of his own is theirs to check.

    Args:
        node: The container in a spec.
        kind: Its class.

    Raises:
        DeserializeError: They cannot.
    """
    flatten: Any = pytree.SUPPORTED_NODES[kind].flatten_fn if kind in pytree.SUPPORTED_NODES else None
    if flatten is None:
        raise DeserializeError(f"expected a class that is registered with pytree, found {node.type!r}"[:300])
    definition = pytree.SUPPORTED_SERIALIZED_TYPES.get(kind)
    if definition is not None and definition.from_dumpable_context is not None:
        return
    context = node.context if node.exact else context_value(node)
    problem = _PROBLEMS.get((flatten.__module__, getattr(flatten, "__qualname__", "")), _no_problem)
    if (expected := problem(kind, context, len(node.children))) is not None:
        found = f"{len(node.children)} children and {context!r}"
        raise DeserializeError(
            f"expected {expected} for {node.type!r}, found {found}"[:300],
            hint="Register the class as it was when the program was saved",
        )


# -- what contexts should be: (class, context, number of children) -> what was expected, or None ------------


def _dataclass_problem(kind: Any, context: Any, count: int) -> str | None:
    flatten: Any = pytree.SUPPORTED_NODES[kind].flatten_fn
    fields = inspect.getclosurevars(flatten).nonlocals.get("field_names", ())
    match context:
        case [list() as given, list() as none] if len(given) == count and _takes(kind, [*given, *none]):
            if set(fields).issuperset([*given, *none]):
                return None
    return f"names of its fields ({', '.join(fields)}), those of the children and those that are None,"


def _model_output_problem(kind: Any, context: Any, count: int) -> str | None:
    if isinstance(context, list) and len(context) == count and _takes(kind, context):
        return None
    return "names of its fields, one for each child,"


def _takes(kind: Any, names: list[Any]) -> bool:
    """Whether a class is called with these keywords; its code does not run."""
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        return False
    try:
        inspect.signature(kind).bind(**dict.fromkeys(names))
    except (TypeError, ValueError):
        return False
    return True


def _structseq_problem(kind: Any, context: Any, count: int) -> str | None:
    fields = kind.n_sequence_fields
    return None if context is None and count == fields else f"{fields} children and no context"


def _constant_problem(kind: Any, context: Any, count: int) -> str | None:
    return "no such object, which no spec holds,"


def _no_problem(kind: Any, context: Any, count: int) -> str | None:
    return None


#: By the function that takes objects of a class apart: its module and qualified name.
_PROBLEMS: dict[tuple[str, str], Callable[[Any, Any, int], str | None]] = {
    ("torch.utils._pytree", "register_dataclass.<locals>._flatten_fn"): _dataclass_problem,
    ("torch.utils._pytree", "register_constant.<locals>._flatten"): _constant_problem,
    ("torch.return_types", "pytree_register_structseq.<locals>.structseq_flatten"): _structseq_problem,
    ("transformers.utils.generic", "_model_output_flatten"): _model_output_problem,
}


def find_enum_member(member: EnumKey, known: tuple[type, ...] = ()) -> enum.Enum:
    """A member of an enum that is known or imported already; a file never makes Python import one."""
    found = find_class(member.module, member.qualified_name, known)
    if not isinstance(found, enum.EnumMeta) or member.name not in found.__members__:
        raise DeserializeError(
            f"expected a member of an enum that is imported, found "
            f"{member.module}.{member.qualified_name}.{member.name}"[:300],
            hint=importing_or_handing_in(member.module),
        )
    return found.__members__[member.name]


def _registered(name: str) -> type:
    kind: type | None = pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.get(name)
    if kind is None or name == pytree.NO_SERIALIZED_TYPE_NAME_FOUND:
        module, _, qualified_name = name.rpartition(".")
        known = find_class(module, qualified_name)
        is_module = known is not None and issubclass(known, torch.nn.Module)
        raise DeserializeError(
            f"expected a class that is registered with pytree, found {name!r}",
            hint=_MODULE.format(qualified_name) if is_module else f"{importing(module)}, {_REGISTER}",
        )
    return kind


_REGISTER = (
    "or register it under this name with "
    "torch.utils._pytree.register_pytree_node(..., serialized_type_name=...)"
)
_MODULE = (
    "Modules among the inputs come from the example inputs, which are pickled. Pass types=[{}] with the "
    "classes of its parts, or allow_pickle=True if you trust the author of the file"
)
