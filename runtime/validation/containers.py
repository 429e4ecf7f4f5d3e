"""The check that classes in tree specs are there: needs torch, and imports no module for a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..containers import check_context, find_container, find_enum_member, find_named_tuple
from ..errors import DeserializeError
from ..exact_treespecs import parse_exact_treespec
from ..findings import Finding
from ..generated import types
from ..permissions import NO_PERMISSIONS, Permissions
from ..treespecs import CONTAINERS, EnumKey, SpecNode, parse_treespec
from .rules import Findings


def validate_containers(
    tree: types.ExportedProgram, permissions: Permissions = NO_PERMISSIONS
) -> list[Finding]:
    """Checks that the classes of inputs and outputs are registered with pytree in this process, and made so.

    Args:
        tree: The program, in which `validate_tree` found nothing.
        permissions: What the caller permits: classes handed in, and limits.

    Returns:
        What is wrong.
    """
    findings = Findings()
    module = tree.graph_module
    checked: set[str] = set()  # most modules of a program are called alike
    for index, entry in enumerate(module.module_call_graph):
        for field in ("in_spec", "out_spec") if entry.signature is not None else ():
            text, exact = getattr(entry.signature, field), getattr(entry.signature, f"exact_{field}")
            if exact is None and text in checked:
                continue
            checked.add(text)
            try:
                limits = permissions.limits
                spec = parse_treespec(text, limits) if exact is None else parse_exact_treespec(exact, limits)
                _check(spec, module.treespec_namedtuple_fields, permissions.types)
            except DeserializeError as error:
                step = field if exact is None else f"exact_{field}"
                path = f"graph_module.module_call_graph[{index}].signature.{step}"
                findings.add_error("unknown-class", path, error)
    return findings.found


def _check(node: SpecNode, namedtuples: dict[str, types.NamedTupleDef], known: tuple[type, ...]) -> None:
    pending = [node]
    while pending:
        node = pending.pop()
        pending += reversed(node.children)
        if node.type == "collections.namedtuple":
            find_named_tuple(node, namedtuples.get(node.context), known)
        elif node.type is not None and node.type not in CONTAINERS:
            check_context(node, find_container(node.type, known))
        for member in _enum_members(node.context):
            find_enum_member(member, known)


def _enum_members(context: Any) -> Iterator[EnumKey]:
    if isinstance(context, EnumKey):
        yield context
    elif isinstance(context, list | tuple):
        for item in context:
            yield from _enum_members(item)
    elif isinstance(context, dict):
        for item in (*context, *context.values()):
            yield from _enum_members(item)
