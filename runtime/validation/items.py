"""`getitem` nodes that the outputs of calls do not name: each takes one of several outputs."""

from __future__ import annotations

from ..generated import types
from ..items import Output, output_name, outputs_of, taken_from
from .scopes import Scope


def check_items(scope: Scope, node: types.Node, several: bool) -> None:
    """Checks the nodes that take a call apart, and lets those that stand for values be used.

    Args:
        scope: The graph.
        node: The call, whose outputs are defined.
        several: Whether it yields several values rather than one.
    """
    if node.name not in scope.items:
        return
    outputs: list[Output] = outputs_of(node) if several else []
    named: set[str] = set()
    for position, item, output in taken_from(node.name, outputs, scope.items):
        scope.at = ("getitems", position)
        if output is None:
            scope.add("exact", f"expected one of {len(outputs)} outputs, found {item.index}", ".index")
            continue
        name = output_name(output)
        if item.name == name and name not in named:
            named.add(name)
            continue
        scope.take(item.name)
        scope.check_name(item.name, ".name")
        if output[0] == "as_none":
            scope.nones.add(item.name)
        if name in scope.kinds:
            scope.kinds[item.name] = scope.kinds[name]
            scope.twins[item.name] = name


def check_items_done(scope: Scope) -> None:
    """Checks that each of the nodes takes something apart."""
    for owner, listed in scope.items.items():
        for position, _ in listed:
            scope.at = ("getitems", position, "of")
            scope.add("exact", f"expected a call with several outputs, or a list of it, found {owner[:80]!r}")
