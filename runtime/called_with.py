"""What a program is called with, told from its tree: whether example inputs of one are another's, too."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from .generated import Struct, Union, json_codec
from .generated.types import Argument, ExportedProgram, Graph, GraphSignature, InputSpec

#: Where a graph describes what an argument names.
_VALUES = {
    "as_tensor": "tensor_values",
    "as_sym_int": "sym_int_values",
    "as_sym_float": "sym_float_values",
    "as_sym_bool": "sym_bool_values",
    "as_custom_obj": "custom_obj_values",
}


def passed_inputs(signature: GraphSignature) -> list[InputSpec]:
    """The inputs that a caller passes, in order: all but weights, constants, objects and tokens."""
    return [spec for spec in signature.input_specs if spec.type in ("user_input", "constant_input")]


def inputs_digest(tree: ExportedProgram) -> bytes:
    """The SHA-256 of how a program's inputs are nested, and of each one's description, without its name.

    Args:
        tree: The program, of which nothing but its types has been checked.

    Example:
        >>> import pt2wire, torch
        >>> one, other = (
        ...     pt2wire.to_tree(torch.export.export(module, (torch.ones(2),)))
        ...     for module in (torch.nn.ReLU(), torch.nn.Tanh())
        ... )
        >>> inputs_digest(one) == inputs_digest(other)
        True
    """
    whole = hashlib.sha256()
    for digest in _digests(tree):
        whole.update(digest)
    return whole.digest()


def _digests(tree: ExportedProgram) -> Iterator[bytes]:
    module = tree.graph_module
    signature = module.module_call_graph[0].signature if module.module_call_graph else None
    if signature is not None:
        yield _sha256(signature.in_spec.encode())
        for node in signature.exact_in_spec or ():
            yield _described(node)
    known: dict[tuple[str, str], bytes] = {}  # a hostile file may name one large description many times
    for spec in passed_inputs(module.signature):
        if spec.type == "constant_input":
            yield _described(spec.constant_input.value)
            if spec.constant_input.exact_value is not None:
                yield _described(spec.constant_input.exact_value)
        else:
            argument = spec.user_input.arg
            name = _name(argument)
            if name is None:
                yield _described(argument)
                continue
            key = (argument.type, name)
            if key not in known:
                known[key] = _sha256(argument.type.encode()) + _value(module.graph, *key)
            yield known[key]


def _name(argument: Argument) -> str | None:
    """The name of the value that an argument is; None for one that stands for itself."""
    if argument.type not in _VALUES:
        return None
    value = argument.value
    if isinstance(value, Union):  # a symbolic number, or a plain one
        return value.value if value.type == "as_name" else None
    name: str = value.name
    return name


def _value(graph: Graph, kind: str, name: str) -> bytes:
    value = getattr(graph, _VALUES[kind]).get(name)
    return b"" if value is None else _described(value)


def _described(value: Struct | Union) -> bytes:
    return _sha256(json_codec.encode(value))


def _sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
