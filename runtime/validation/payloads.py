"""The check of payload configs: what an archive says of weights and constants, against the graph."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import IntEnum

from ..archive.extents import check_one_dtype, each_meta, tensor_extent
from ..archive.payloads import alias_problem, owners
from ..archive.records import OBJECT_PREFIXES
from ..classes import handing_in, known_class
from ..errors import DeserializeError
from ..findings import Finding
from ..generated import types
from ..layouts import PARTS
from ..permissions import ALLOW_PICKLE, CHANGED_WEIGHTS, MISSING_WEIGHTS, NO_PERMISSIONS, Permissions
from .rules import Findings
from .signatures import WEIGHTS, weight_names

#: What a weight is beside its bytes, and which of that its caller can permit to be another.
_DESCRIBED = {"dtype": True, "extra_dtype": True, "layout": False, "sizes": True}

_RECORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}")


def validate_payloads(
    tree: types.ExportedProgram,
    weights: types.PayloadConfig,
    constants: types.PayloadConfig,
    permissions: Permissions = NO_PERMISSIONS,
) -> list[Finding]:
    """Checks the payload configs of a program; needs no torch.

    Args:
        tree: The program, in which `validate_tree` found nothing.
        weights: Which parameters and persistent buffers lie in which payloads.
        constants: Which constants, non-persistent buffers and custom objects lie in which payloads.
        permissions: What the caller permits.

    Returns:
        What is wrong. Whether payloads are long enough is checked when they are read.

    Example:
        >>> from pt2wire.generated import PayloadConfig
        >>> import pt2wire, torch
        >>> tree = pt2wire.to_tree(torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),)))
        >>> for finding in validate_payloads(tree, PayloadConfig({}), PayloadConfig({})):
        ...     print(finding.message)
        expected a payload for 'weight', found none
        expected a payload for 'bias', found none
    """
    findings = Findings()
    unused = unused_objects(tree, constants)
    for field, config in (("weights", weights), ("constants", constants)):
        named = owners(each_meta(weights.config), each_meta(config.config))
        for fqn, payload in config.config.items():
            path = f"{field}[{fqn[:80]!r}]"
            if field != "constants" or fqn not in unused:
                _check_payload(payload, path, findings, permissions)
            else:
                _check_record(payload, path, findings)
            _check_alias(payload, named, path, findings)
        try:
            check_one_dtype(config, field)
        except DeserializeError as error:
            findings.add("payload-record", field, error.message)
    for fqn in sorted(weights.config.keys() & constants.config.keys()):
        findings.add("payload-record", f"constants[{fqn[:80]!r}]", "expected a name that no weight has")
    _check_signature(tree, weights, constants, findings, permissions)
    for name, path in _loose_objects(tree.graph_module.graph, "graph_module.graph"):
        if name not in constants.config:
            findings.add("payload-missing", path, f"expected a payload for {name[:80]!r}, found none")
    return findings.found


def unused_objects(tree: types.ExportedProgram, constants: types.PayloadConfig) -> list[str]:
    """Constants that are pickled objects and that neither an input nor a node of the program names.

    PyTorch stores an object that a program takes as its input under that input's name.
    """
    module = tree.graph_module
    used = {name for name, _ in _loose_objects(module.graph, "")} | _traced_again(module.graph)
    used |= {fqn for _, _, fqn in weight_names(module.signature)}
    return [
        fqn
        for fqn, payload in constants.config.items()
        if fqn not in used and payload.use_pickle and payload.path_name.startswith(OBJECT_PREFIXES)
    ]


def _traced_again(graph: types.Graph) -> set[str]:
    # PyTorch looks for the schemas of methods whose calls are ordered by tokens when it makes a module.
    calls = [node for node in graph.nodes if node.target == "torch.ops.higher_order.with_effects"]
    inputs = [named.arg for node in calls for named in node.inputs if named.arg.type == "as_custom_obj"]
    return {argument.as_custom_obj.name for argument in inputs}


def _check_record(payload: types.PayloadMeta, path: str, findings: Findings) -> None:
    if not _RECORD.fullmatch(payload.path_name):
        message = f"expected a plain file name, found {payload.path_name[:80]!r}"
        findings.add("payload-record", f"{path}.path_name", message)


def _check_alias(
    payload: types.PayloadMeta, named: Mapping[str, types.PayloadMeta], path: str, findings: Findings
) -> None:
    alias = payload.alias_of
    if alias is not None and (problem := alias_problem(payload, named.get(alias))) is not None:
        findings.add("payload-missing", f"{path}.alias_of", problem)
    for name, part in (payload.inner or {}).items():
        _check_alias(part, named, f"{path}.inner[{name[:80]!r}]", findings)


def _check_payload(
    payload: types.PayloadMeta, path: str, findings: Findings, permissions: Permissions
) -> None:
    _check_record(payload, path, findings)
    if payload.instance is not None and payload.instance < 1:
        message = f"expected a number from 1 on, or none for the first, found {payload.instance}"
        findings.add("payload-meta", f"{path}.instance", message)
    if payload.absent and permissions.missing_weights == "error":
        message = "expected the bytes of a tensor, found one saved without them"
        findings.add("payload-absent", path, message, MISSING_WEIGHTS)
    sparse = payload.tensor_meta is not None and payload.tensor_meta.layout in PARTS
    pickled = payload.use_pickle and payload.tensor_meta is not None
    if payload.inner and not (pickled or (sparse and not payload.use_pickle)):
        found = ", ".join(map(repr, payload.inner))
        message = f"expected no parts of a tensor that is not sparse, found {found:.80}"
        findings.add("payload-meta", f"{path}.inner", message)
    if payload.use_pickle:
        _check_shared_parts(payload, path, findings, permissions)
        if not permissions.allow_pickle:
            _check_pickled(payload, path, findings, permissions)
    elif payload.tensor_meta is None:
        findings.add("payload-meta", path, "expected metadata of a tensor, found none")
    elif payload.tensor_meta.layout in PARTS:
        _check_parts(payload, payload.tensor_meta, path, findings, permissions)
    else:
        try:
            tensor_extent(payload.tensor_meta, path, permissions.limits)
        except DeserializeError as error:
            findings.add("payload-meta", f"{path}.tensor_meta", error.message)


def _check_pickled(
    payload: types.PayloadMeta, path: str, findings: Findings, permissions: Permissions
) -> None:
    """A tensor of a class of its own, for whose class the caller has to vouch, or an object."""
    rule, meta = "payload-pickled", payload.tensor_meta
    if meta is None or (meta.subclass is None and not permissions.types):
        message = f"expected the bytes of a tensor, found the pickle {payload.path_name[:80]!r}"
        findings.add(rule, path, message, ALLOW_PICKLE)
    # PyTorch does not say which class it is; opening it shows whether it is one of those.
    elif meta.subclass is not None and known_class(meta.subclass, permissions.types) is None:
        message = f"expected the bytes of a tensor, found a pickled one of the class {meta.subclass[:80]!r}"
        findings.add(rule, path, message, handing_in(meta.subclass))


def _check_shared_parts(
    payload: types.PayloadMeta, path: str, findings: Findings, permissions: Permissions
) -> None:
    """Parts of a pickled tensor that lie in memory of others, and so in a payload of their own."""
    for name, part in (payload.inner or {}).items():
        where = f"{path}.inner[{name[:80]!r}]"
        if part.use_pickle or (part.tensor_meta is not None and part.tensor_meta.layout in PARTS):
            findings.add("payload-meta", where, "expected a strided tensor as part of a pickled one")
        else:
            _check_payload(part, where, findings, permissions)


def _check_parts(
    payload: types.PayloadMeta,
    meta: types.TensorMeta,
    path: str,
    findings: Findings,
    permissions: Permissions,
) -> None:
    """A sparse tensor: what its metadata say of its parts is what the parts say themselves."""
    if any(size.type != "as_int" or size.as_int < 0 for size in meta.sizes):
        message = f"expected numbers from 0 up, found {_shown(meta.sizes)}"
        findings.add("payload-meta", f"{path}.tensor_meta.sizes", message)
    inner = payload.inner or {}
    if sorted(inner) != sorted(PARTS[meta.layout]):
        found = ", ".join(map(repr, inner)) or "nothing"
        message = f"expected {', '.join(PARTS[meta.layout])}, found {found:.80}"
        findings.add("payload-meta", f"{path}.inner", message)
    for name, part in inner.items():
        where = f"{path}.inner[{name[:80]!r}]"
        _check_payload(part, where, findings, permissions)
        if part.tensor_meta != (meta.inner or {}).get(name):
            findings.add("payload-differs", where, "expected the part that the whole names, found another")


def _check_signature(
    tree: types.ExportedProgram,
    weights: types.PayloadConfig,
    constants: types.PayloadConfig,
    findings: Findings,
    permissions: Permissions,
) -> None:
    values = tree.graph_module.graph.tensor_values
    for index, spec in enumerate(tree.graph_module.signature.input_specs):
        if spec.type not in WEIGHTS:
            continue
        path = f"graph_module.signature.input_specs[{index}].{spec.type}"
        fqn = getattr(spec.value, WEIGHTS[spec.type])
        is_weight = spec.type == "parameter" or (spec.type == "buffer" and spec.buffer.persistent)
        place, other = (weights, constants) if is_weight else (constants, weights)
        payload = place.config.get(fqn)
        if payload is None:
            payload = other.config.get(fqn)
            if payload is None:
                findings.add("payload-missing", path, f"expected a payload for {fqn[:80]!r}, found none")
                continue
            names = ("weights", "constants") if is_weight else ("constants", "weights")
            message = f"expected {fqn[:80]!r} among the {names[0]}, found it among the {names[1]}"
            findings.add("payload-place", path, message)
        if spec.type == "parameter" and not payload.is_param:  # a buffer may be a parameter in kind, too
            findings.add("payload-kind", path, "expected the payload of a parameter, found no parameter")
        if spec.type == "custom_obj":
            if not payload.use_pickle:
                findings.add("payload-kind", path, "expected the pickle of an object, found a tensor")
            continue
        meta = values.get(spec.value.arg.name)
        if meta is None or payload.tensor_meta is None or payload.use_pickle:
            continue
        for field, may_change in _DESCRIBED.items():
            expected, found = getattr(meta, field), getattr(payload.tensor_meta, field)
            if expected != found and not (may_change and permissions.changed_weights):
                wanted = f"{fqn[:80]!r} of {field} {_shown(expected)} as in the graph"
                hint = CHANGED_WEIGHTS if may_change else None
                findings.add("payload-differs", path, f"expected {wanted}, found {_shown(found)}", hint)


def _shown(value: IntEnum | list[types.SymInt] | None) -> str:
    if value is None or isinstance(value, IntEnum):
        return "none" if value is None else value.name
    numbers = (str(number.as_int) if number.type == "as_int" else number.as_expr.expr_str for number in value)
    return f"[{', '.join(numbers)}]"[:80]


def _loose_objects(graph: types.Graph, path: str) -> Iterator[tuple[str, str]]:
    # Custom objects that nodes name directly. Objects that are inputs are checked with the signature.
    pending = [(graph, path)]
    while pending:
        graph, path = pending.pop()
        for index, node in enumerate(graph.nodes):
            for position, named in enumerate(node.inputs):
                argument = named.arg
                if argument.type not in ("as_custom_obj", "as_graph"):
                    continue
                place = f"{path}.nodes[{index}].inputs[{position}].arg"
                if argument.type == "as_graph":
                    pending.append((argument.as_graph.graph, f"{place}.as_graph.graph"))
                elif argument.as_custom_obj.name not in graph.custom_obj_values:
                    yield argument.as_custom_obj.name, place
