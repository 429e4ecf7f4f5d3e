"""How the program's submodules were called, which unflattening needs."""

from __future__ import annotations

from collections.abc import Iterable

from torch.export import ModuleCallEntry, ModuleCallSignature

from ..errors import DeserializeError, SerializeError
from ..exact_treespecs import parse_exact_treespec
from ..generated import types
from ..names import check_fqn, check_key
from ..treespecs import key_texts, parse_treespec
from .faults import located
from .signature import check_pasted, export_argument_spec
from .treespecs import export_treespec
from .values import Values


def export_module_call_graph(
    entries: Iterable[ModuleCallEntry], values: Values, namedtuples: dict[str, types.NamedTupleDef]
) -> list[types.ModuleCallEntry]:
    """Write an entry per module; the field names of named tuples in signatures are added to `namedtuples`."""
    exported = []
    for entry in entries:
        if entry.fqn:
            check_pasted(entry.fqn, check_fqn, "the name of a module")
        try:
            signature = (
                export_module_call_signature(entry.signature, values, namedtuples)
                if entry.signature
                else None
            )
            if signature is not None and not entry.fqn:
                _check_keys(signature)
        except SerializeError as error:
            raise located(
                error, f"signature of module `{entry.fqn}`" if entry.fqn else "signature of the program"
            ) from error.__cause__
        exported.append(types.ModuleCallEntry(fqn=entry.fqn, signature=signature))
    return exported


def _check_keys(signature: types.ModuleCallSignature) -> None:
    """Refuse keys of the program's inputs, from which PyTorch makes source."""
    exact = signature.exact_in_spec
    try:
        spec = parse_treespec(signature.in_spec) if exact is None else parse_exact_treespec(exact)
    except DeserializeError:
        return  # of classes that only some can read: who saves is warned
    for key in key_texts(spec):
        check_pasted(key, check_key, "a key of the inputs")


def export_module_call_signature(
    signature: ModuleCallSignature, values: Values, namedtuples: dict[str, types.NamedTupleDef]
) -> types.ModuleCallSignature:
    """Write how one module was called: its values in the graph, and the structure that they had outside."""
    in_spec, exact_in_spec = export_treespec(signature.in_spec, namedtuples, values.program)
    out_spec, exact_out_spec = export_treespec(signature.out_spec, namedtuples, values.program)
    return types.ModuleCallSignature(
        inputs=[export_argument_spec(spec, values) for spec in signature.inputs],
        outputs=[export_argument_spec(spec, values) for spec in signature.outputs],
        in_spec=in_spec,
        out_spec=out_spec,
        exact_in_spec=exact_in_spec,
        exact_out_spec=exact_out_spec,
        forward_arg_names=list(signature.forward_arg_names) if signature.forward_arg_names else None,
    )
