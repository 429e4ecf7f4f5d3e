"""`getitem` nodes, which take one of several outputs: to the format, outputs of the call that have names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .generated import types

Output = tuple[str, Any]  # the member of `Argument`, its value
#: By the name of what they take apart, nodes of `Graph.getitems` with their positions there.
Listed = dict[str, list[tuple[int, types.GetItem]]]

#: Members whose values are called by names.
SYMBOLIC = ("as_sym_int", "as_sym_float", "as_sym_bool")
#: Members that are taken apart themselves.
LISTS = ("as_tensors", "as_sym_ints", "as_sym_floats", "as_sym_bools")

#: How an output is called that no node takes out: after the call, or after the list that it is in.
MADE_UP = re.compile(r".*_unused_[0-9]+(_[0-9]+)?", re.ASCII)


class Taken(NamedTuple):
    """A node of `Graph.getitems`.

    Attributes:
        position: Where it stands there.
        item: The node.
        output: What it takes; None where there is nothing of that index.
    """

    position: int
    item: types.GetItem
    output: Output | None


def members(output: Output) -> list[Output]:
    """The items of a list output, each as if it were an output itself."""
    member, value = output
    return [(member.removesuffix("s"), item) for item in value]


def outputs_of(node: types.Node) -> list[Output]:
    """What `getitem` nodes may take of a call that yields several values."""
    outputs = [(output.type, output.value) for output in node.outputs]
    return members(outputs[0]) if len(outputs) == 1 and outputs[0][0] in LISTS else outputs


def output_name(output: Output) -> str | None:
    """The name of an output; None where it has none, as lists and None."""
    member, value = output
    if member in ("as_tensor", "as_custom_obj"):
        return value.name  # type: ignore[no-any-return]
    if member in SYMBOLIC and value.type == "as_name":
        return value.as_name  # type: ignore[no-any-return]
    return None


def by_owner(items: Iterable[types.GetItem] | None) -> Listed:
    """The nodes of `Graph.getitems` by the name of what they take apart."""
    listed: Listed = {}
    for position, item in enumerate(items or ()):
        listed.setdefault(item.of, []).append((position, item))
    return listed


def taken_from(owner: str, outputs: Sequence[Output], listed: Listed) -> Iterator[Taken]:
    """The nodes that take a call apart, and the lists among its outputs; they are removed from `listed`."""
    for position, item in listed.pop(owner, ()):
        found = -len(outputs) <= item.index < len(outputs)
        output = outputs[item.index] if found else None
        yield Taken(position, item, output)
        if output is not None and output[0] in LISTS:
            yield from taken_from(item.name, members(output), listed)


def twins_of(graph: types.Graph) -> dict[str, str]:
    """By the name of a node that takes an output which another one takes, the name of the output."""
    return {
        item.name: name
        for item, output in _taken(graph)
        if (name := output_name(output)) not in (None, item.name)
    }


def nones_of(graph: types.Graph) -> set[str]:
    """The names of the nodes that take None out of the outputs of a call."""
    return {item.name for item, output in _taken(graph) if output[0] == "as_none"}


def _taken(graph: types.Graph) -> Iterator[tuple[types.GetItem, Output]]:
    listed = by_owner(graph.getitems)
    for node in graph.nodes if listed else ():
        if node.name is not None:
            for _, item, output in taken_from(node.name, outputs_of(node), listed):
                if output is not None:
                    yield item, output
