"""How nested inputs and outputs are put together: pytree's specs as text."""

from __future__ import annotations

from torch.utils import _pytree as pytree

from ..errors import SerializeError
from ..generated import types


def export_treespec(spec: pytree.TreeSpec, namedtuples: dict[str, types.NamedTupleDef]) -> str:
    """Write a spec in pytree's own JSON form.

    Args:
        spec: The structure of a module's inputs or outputs.
        namedtuples: By the name under which a named tuple is registered, its field names: those in the spec
            are added, so that a reader can compare its class with the one that was saved.

    Raises:
        SerializeError: For a class that pytree has no name for, and for two named tuples of the same name.
    """
    try:
        text = pytree.treespec_dumps(spec, types.TREESPEC_VERSION)
    except (NotImplementedError, TypeError) as cause:
        raise SerializeError(
            f"expected inputs and outputs of classes that pytree can name: {str(cause).rstrip('.')}",
            hint="Use tuples, lists and dicts, or register the class with a serialized_type_name, "
            "for example by torch.export.register_dataclass",
        ) from cause
    _collect_namedtuples(spec, namedtuples)
    return text


def _collect_namedtuples(spec: pytree.TreeSpec, namedtuples: dict[str, types.NamedTupleDef]) -> None:
    if spec.type is not None and pytree.is_namedtuple_class(spec.context):
        name = pytree.SUPPORTED_SERIALIZED_TYPES[spec.context].serialized_type_name
        fields = list(spec.context._fields)
        known = namedtuples.setdefault(name, types.NamedTupleDef(field_names=fields))
        if known.field_names != fields:
            message = f"expected one named tuple `{name}`, found two: {known.field_names} and {fields}"
            raise SerializeError(message, hint="Register them under different names")
    for child in spec.children():
        _collect_namedtuples(child, namedtuples)
