"""How the program's submodules were called, which unflattening needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch.export import ModuleCallEntry, ModuleCallSignature
from torch.utils._pytree import TreeSpec

from ..errors import DeserializeError
from ..generated import types
from ..names import check_forward_name, check_fqn
from .faults import each, within
from .signature import import_argument_spec
from .treespecs import import_treespec
from .values import Values, check_name

_Read = Callable[[str, Sequence[types.TreeSpecNode] | None], TreeSpec]


def import_module_call_graph(
    entries: Sequence[types.ModuleCallEntry], values: Values, namedtuples: Mapping[str, types.NamedTupleDef]
) -> list[ModuleCallEntry]:
    """Read an entry per module; `namedtuples` has the field names of named tuples in signatures."""
    specs: dict[str, TreeSpec] = {}

    def treespec(text: str, exact: Sequence[types.TreeSpecNode] | None) -> TreeSpec:
        spec = specs.get(text) if exact is None else None
        if spec is None:
            spec = import_treespec(text, namedtuples, values.program.permissions, exact)
        if exact is None:
            specs[text] = spec
        return spec

    return each("", entries, lambda entry: _import_entry(entry, values, treespec))


def _import_entry(entry: types.ModuleCallEntry, values: Values, treespec: _Read) -> ModuleCallEntry:
    # The module at the root has an empty name
    if entry.fqn and (reason := check_fqn(entry.fqn)):
        raise DeserializeError(f"expected the name of a module, found {entry.fqn[:80]!r} ({reason})")
    if entry.signature is None:
        return ModuleCallEntry(fqn=entry.fqn, signature=None)
    with within("signature"):
        return ModuleCallEntry(fqn=entry.fqn, signature=_import_signature(entry.signature, values, treespec))


def _import_signature(
    signature: types.ModuleCallSignature, values: Values, treespec: _Read
) -> ModuleCallSignature:
    names = signature.forward_arg_names
    for name in names or ():
        with within("forward_arg_names"):
            check_name(name, check_forward_name)
    with within("in_spec" if signature.exact_in_spec is None else "exact_in_spec"):
        in_spec = treespec(signature.in_spec, signature.exact_in_spec)
    with within("out_spec" if signature.exact_out_spec is None else "exact_out_spec"):
        out_spec = treespec(signature.out_spec, signature.exact_out_spec)
    return ModuleCallSignature(
        inputs=each("inputs", signature.inputs, lambda spec: import_argument_spec(spec, values)),
        outputs=each("outputs", signature.outputs, lambda spec: import_argument_spec(spec, values)),
        in_spec=in_spec,
        out_spec=out_spec,
        forward_arg_names=list(names) if names else None,
    )
