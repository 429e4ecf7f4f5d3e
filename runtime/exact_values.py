"""Values of our own fields: what calls are given, what sequences hold, what makes a named tuple.

Needs no torch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from .generated import types
from .names import check_identifier
from .treespecs import is_class_path

#: Members of `Value` that are sequences.
SEQUENCES = ("as_list", "as_tuple", "as_named_tuple")
#: Members of `Value` that stand for themselves, in a graph or outside of any.
CONSTANTS = frozenset(
    {
        "as_none",
        "as_bool",
        "as_int",
        "as_float",
        "as_string",
        "as_complex",
        "as_scalar_type",
        "as_extra_scalar_type",
        "as_memory_format",
        "as_layout",
        "as_device",
        "as_enum",
    }
)


def sequence_items(value: types.Value) -> list[types.Value] | None:
    """The items of a list or of a tuple of any class; None for what is neither.

    Example:
        >>> sequence_items(types.Value.of_tuple([types.Value.of_int(1)]))
        [Value(as_int=1)]
        >>> sequence_items(types.Value.of_int(1))
    """
    if value.type not in SEQUENCES:
        return None
    items: list[types.Value] = value.as_named_tuple.values if value.type == "as_named_tuple" else value.value
    return items


def named_tuple_problem(path: str, field_names: Sequence[str], count: int) -> str | None:
    """What keeps a named tuple from being one, or None.

    Args:
        path: Its class, as of `classes.path_of`.
        field_names: The names of its fields.
        count: How many items it has.

    Example:
        >>> named_tuple_problem("geometry:Point", ["x", "y"], 2)
        >>> named_tuple_problem("geometry:Point", ["x", "y"], 3)
        'expected as many items of a named tuple as it has fields, 2, found 3'
    """
    if not is_class_path(path):
        return f"expected the class of a named tuple, MODULE:NAME, found {path[:80]!r}"
    for name in field_names:
        if (problem := check_identifier(name)) is not None:
            return f"expected the name of a field, found {name[:80]!r}: {problem}"
    if len(set(field_names)) != len(field_names):
        return "expected different names of the fields of a named tuple, found one twice"
    if len(field_names) != count:
        return f"expected as many items of a named tuple as it has fields, {len(field_names)}, found {count}"
    return None


def call_arguments(node: types.Node) -> list[tuple[str, types.Argument | types.Value]]:
    """What a node is called with, by name in the order of the call, each as exactly as the tree has it.

    Args:
        node: A node whose exact arguments name those that PyTorch reads, each once.

    Example:
        >>> one = types.NamedArgument("a", types.Argument.of_none(True))
        >>> two = types.NamedArgument("b", types.Argument.of_int(2))
        >>> exact = [types.NamedValue("b"), types.NamedValue("a", types.Value.of_tuple([]))]
        >>> call_arguments(types.Node("target", [one, two], [], {}, exact_inputs=exact))
        [('b', Argument(as_int=2)), ('a', Value(as_tuple=[]))]
    """
    if node.exact_inputs is None:
        return [(named.name, named.arg) for named in node.inputs]
    waiting: dict[str, deque[types.Argument]] = {}
    for named in node.inputs:
        waiting.setdefault(named.name, deque()).append(named.arg)
    given: list[tuple[str, types.Argument | types.Value]] = []
    for exact in node.exact_inputs:
        if inputs := waiting.get(exact.name):
            argument = inputs.popleft()
            given.append((exact.name, argument if exact.value is None else exact.value))
    return given
