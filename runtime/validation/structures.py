"""Calls of `flat_apply`: that a graph holds tree specs for them, and functions of a table alone."""

from __future__ import annotations

from ..errors import DeserializeError
from ..exact_treespecs import parse_exact_treespec
from ..generated import types
from ..operators import APPLIED, CALLEES
from ..treespecs import SpecNode
from .scopes import Scope

_RULE = "flat-apply"


def check_held_structures(scope: Scope, structures: list[types.GraphStructure]) -> None:
    """Checks the tree specs and functions that a graph holds, and takes their names."""
    scope.at = ("structures",)
    scope.program.demand_beyond(scope.place())
    by_target: dict[str, types.GraphStructure] = {}
    for index, structure in enumerate(structures):
        scope.at = ("structures", index)
        scope.take(structure.name)
        scope.check_name(structure.name, ".name")
        scope.check_name(structure.target, ".target")
        known = by_target.setdefault(structure.target, structure)
        same = (known.spec, known.callee) == (structure.spec, structure.callee)
        if structure.target in scope.held or not same:
            scope.add(
                _RULE, f"expected one tree spec in {structure.target[:80]!r}, found something else, too"
            )
        scope.getters[structure.name] = structure.target
        scope.structures[structure.name] = _parsed(scope, structure)
    scope.at = ()


def _parsed(scope: Scope, structure: types.GraphStructure) -> SpecNode | None:
    """A tree spec, or None for a function and for what is wrong."""
    if structure.callee is not None:
        if structure.callee not in CALLEES or structure.spec is not None:
            message = f"expected a tree spec, or a function of {', '.join(CALLEES)}"
            scope.add(_RULE, f"{message}, found {structure.callee[:80]!r}", ".callee")
        return None
    try:
        return parse_exact_treespec(structure.spec or (), scope.program.permissions.limits)
    except DeserializeError as error:
        scope.findings.add_error("treespec", f"{scope.place()}.spec", error)
        return None


def check_flat_apply(scope: Scope, node: types.Node) -> None:
    """Checks a call of `flat_apply`: a function of the table, on one of the classes that it may be given.

    The function that exporters write imports what its first argument names and calls it. So that argument is
    a text of a table, and the tree spec such that it is what stands first among the values.
    """
    given = [item.value for item in node.exact_inputs or ()]
    names = [
        value.as_structure if value is not None and value.type == "as_structure" else None for value in given
    ]
    if len(names) < 3 or names[0] is None or names[1] is None or any(item.name for item in node.inputs):
        scope.add(_RULE, "expected a function, a tree spec and a text as arguments, by position", ".inputs")
        return
    spec = scope.structures.get(names[1])
    if names[0] not in scope.structures or scope.structures[names[0]] is not None or spec is None:
        scope.add(_RULE, "expected a function and a tree spec of the graph, found others", ".inputs")
    elif not _takes_first(spec):
        scope.add(
            _RULE, "expected a tree spec of positional arguments, a text first, found another", ".inputs"
        )
    elif spec.leaf_count != len(node.inputs) - 2:
        found = len(node.inputs) - 2
        scope.add(_RULE, f"expected {spec.leaf_count} values for the tree spec, found {found}", ".inputs")
    text = node.inputs[2].arg
    if text.type != "as_string" or text.as_string not in APPLIED or given[2] is not None:
        named = text.as_string[:80] if text.type == "as_string" else text.type
        scope.add(_RULE, f"expected a class of {', '.join(APPLIED)}, found {named!r}", ".inputs[2]")


def _takes_first(spec: SpecNode) -> bool:
    """Whether a tree spec is one of positional arguments alone, the first of which is the first value."""
    if spec.type != "builtins.tuple" or [child.type for child in spec.children] != _CALL:
        return False
    args, kwargs = spec.children
    return not kwargs.children and bool(args.children) and args.children[0].type is None


_CALL = ["builtins.tuple", "builtins.dict"]
