"""`getitem` nodes made one: that several take one output of a call, or that one takes None, means nothing."""

from __future__ import annotations

from collections.abc import Collection

from ..exact_values import sequence_items
from ..generated import types
from ..items import nones_of, twins_of
from .naming import named_values, rename


def merge_items(graph: types.Graph) -> None:
    """Lets exact values name outputs, and None, in place of the nodes that take them.

    Exact values that then say no more than PyTorch's fields are dropped.
    """
    twins, nones = twins_of(graph), nones_of(graph)
    for part in (graph.exact_output, *(node.exact_inputs for node in graph.nodes)):
        rename(named_values(part), twins)
    for node in graph.nodes:
        if node.exact_inputs is not None:
            _merge_inputs(node, node.exact_inputs, nones)
    if graph.exact_output is not None:
        exact_output = graph.exact_output = _without(graph.exact_output, nones)
        if exact_output.type == "as_tuple" and all(map(_repeats, exact_output.as_tuple, graph.outputs)):
            graph.exact_output = None


def _merge_inputs(node: types.Node, exact_inputs: list[types.NamedValue], nones: Collection[str]) -> None:
    named = {item.name: item.arg for item in node.inputs if item.name}
    positional = iter([item.arg for item in node.inputs if not item.name])
    for exact in exact_inputs:
        argument = named.get(exact.name) or next(positional, None)
        value = None if exact.value is None else _without(exact.value, nones)
        exact.value = None if value is None or _repeats(value, argument) else value
    in_order = [exact.name for exact in exact_inputs] == [item.name for item in node.inputs]
    if in_order and all(exact.value is None for exact in exact_inputs):
        node.exact_inputs = None


def _without(value: types.Value, nones: Collection[str]) -> types.Value:
    """A value with None in place of the nodes that take it."""
    if value.type == "as_tensor" and value.as_tensor.name in nones:
        return types.Value.of_none(True)
    if (items := sequence_items(value)) is not None:
        items[:] = [_without(item, nones) for item in items]
    elif value.type == "as_dict":
        for item in value.as_dict:
            item.value = _without(item.value, nones)
    return value


#: Members of `Value` that say more than any argument of PyTorch's.
_BEYOND = ("as_tuple", "as_named_tuple", "as_enum", "as_structure", "as_subgraph", "as_extra_scalar_type")


def _repeats(value: types.Value, argument: types.Argument | None) -> bool:
    """Whether a value of a sound tree says no more than the argument beside it."""
    if argument is not None and argument.type == "as_none":
        return value.type == "as_none"
    if value.type == "as_list":
        return all(_repeats(item, None) for item in value.as_list)
    if value.type == "as_dict":
        return all(item.key.type == "as_string" and _repeats(item.value, None) for item in value.as_dict)
    return value.type not in _BEYOND
