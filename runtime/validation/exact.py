"""Fields of our own: that their values are sound, and say the same as PyTorch's fields, only more exactly."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Container, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..exact_values import CONSTANTS, SEQUENCES, named_tuple_problem, sequence_items
from ..generated import types
from ..keys import keys_problem
from ..limits import DEFAULT_LIMITS, Limits, raising
from ..operators import FLAT_APPLY
from ..treespecs import enum_key
from .arguments import check_member, check_subgraph
from .metadata import metadata_problems, module_stack_problems
from .scopes import Scope

#: Members of `Value` that JSON holds as they are.
_IN_JSON: dict[str, Callable[[Any], Any]] = {
    "as_none": lambda value: None,
    "as_bool": lambda value: value,
    "as_int": lambda value: value,
    "as_float": lambda value: value,
    "as_string": lambda value: value,
}


# -- arguments --------------------------------------------------------------------------------------------


def check_exact_inputs(scope: Scope, node: types.Node, index: int) -> None:
    """Checks the exact arguments of a node that has some against the arguments that PyTorch reads."""
    if node.exact_inputs is None:
        scope.add("exact", "expected exact_inputs that name the subgraphs, found none", ".subgraphs")
        return
    scope.placed = {subgraph.name for subgraph in node.subgraphs or ()}
    for position, subgraph in enumerate(node.subgraphs or ()):
        scope.at = ("nodes", index, "subgraphs", position)
        check_subgraph(scope, subgraph, "")
    waiting: dict[str, deque[types.Argument]] = {}
    for item in node.inputs:
        waiting.setdefault(item.name, deque()).append(item.arg)
    for position, exact in enumerate(node.exact_inputs):
        scope.at = ("nodes", index, "exact_inputs", position)
        if not waiting.get(exact.name):
            scope.add("exact", f"expected one of the inputs, each once, found {exact.name[:80]!r}", ".name")
            continue
        argument = waiting[exact.name].popleft()
        if exact.value is None:
            continue
        scope.at = (*scope.at, "value")
        if not _check_value(scope, exact.value, 0) or _stands_in(
            scope, argument, exact.value, _BEYOND_INPUTS
        ):
            continue
        if _merged(_shape(exact.value), scope) != _shape(argument):
            scope.add("exact", "expected the value of the input, but for containers, found another")
    scope.at = ("nodes", index, "exact_inputs")
    if missing := sum(map(len, waiting.values())):
        scope.add("exact", f"expected as many as inputs, found {missing} fewer")
    scope.at = ("nodes", index)


def check_exact_output(scope: Scope, graph: types.Graph, exact: types.Value) -> None:
    """Checks what a graph returns against the outputs that PyTorch reads."""
    scope.at = ("exact_output",)
    items = sequence_items(exact)
    if items is None or len(items) != len(graph.outputs):
        scope.add("exact", f"expected {len(graph.outputs)} outputs, found {exact.type}")
        return
    if not _is_sound(scope, exact):
        return
    for output, argument in zip(items, graph.outputs, strict=True):
        if not _check_value(scope, output, 0) or _stands_in(scope, argument, output, _BEYOND_OUTPUTS):
            continue
        if _merged(_shape(output), scope) != _shape(argument):
            scope.add("exact", "expected the outputs, but for containers, found others")


def check_order(scope: Scope, graph: types.Graph, order: list[str]) -> None:
    """Checks that the order of FX nodes has each name once, and the calls as they stand."""
    scope.at = ("order",)
    if len(set(order)) != len(order):
        scope.add("exact", "expected each name once, found one again")
    calls = [node.name for node in graph.nodes if node.name is not None]
    known = set(calls)
    if [name for name in order if name in known] != calls:
        scope.add("exact", "expected the calls in the order of `nodes`, found another")


#: Members of outputs that PyTorch's format lacks. No containers: PyTorch counts the values in these as
#: outputs of their own.
_BEYOND_OUTPUTS = frozenset({"as_enum", "as_extra_scalar_type"})
#: Those of inputs. Containers may hold items that it lacks, or not together.
_BEYOND_INPUTS = _BEYOND_OUTPUTS | {"as_structure", "as_dict", *SEQUENCES}


def _stands_in(scope: Scope, argument: types.Argument, exact: types.Value, beyond: Container[str]) -> bool:
    """Whether an argument is None because PyTorch's format cannot express the exact one."""
    return scope.program.beyond and argument.type == "as_none" and exact.type in beyond


def _check_value(scope: Scope, value: types.Value, depth: int) -> bool:
    """Whether a value can be compared; adds findings for what is wrong in it."""
    if depth == (most := scope.program.permissions.limits.nested_graphs):
        message = f"expected at most {most} nested containers, found more"
        scope.add("depth", message, hint=raising("nested_graphs"))
        return False
    if (items := sequence_items(value)) is not None:
        return _is_sound(scope, value) and all([_check_value(scope, item, depth + 1) for item in items])
    if value.type == "as_dict":
        if not scope.program.beyond and any(item.key.type != "as_string" for item in value.as_dict):
            scope.add("exact", "expected strings as keys, found others")
            return False
        parts = [part for item in value.as_dict for part in (item.key, item.value)]
        if not all([_check_value(scope, part, depth + 1) for part in parts]):
            return False
        if (problem := keys_problem([_as_key(item.key) for item in value.as_dict])) is not None:
            scope.add("exact", problem)
        return problem is None
    if value.type == "as_tensor" and value.as_tensor.name in scope.nones:
        return True
    before = len(scope.findings.found)
    _OWN.get(value.type, check_member)(scope, value.type, value.value)
    return len(scope.findings.found) == before


def _as_key(value: types.Value) -> Hashable:
    constant = _IN_JSON.get(value.type)
    return (value.type, repr(value.value)) if constant is None else constant(value.value)


def _is_sound(scope: Scope, value: types.Value) -> bool:
    """Whether a sequence is no named tuple that cannot be one; adds a finding where it is."""
    problem = _named_tuple_problem(value.as_named_tuple) if value.type == "as_named_tuple" else None
    if problem is not None:
        scope.add("exact", problem)
    return problem is None


def _named_tuple_problem(named: types.NamedTupleValue) -> str | None:
    return named_tuple_problem(named.fqn, named.field_names, len(named.values))


def _check_named_subgraph(scope: Scope, member: str, name: str) -> None:
    if scope.node is None or name not in scope.placed:
        scope.add("exact", f"expected one of the node's subgraphs, found {name[:80]!r}")


def _check_structure(scope: Scope, member: str, name: str) -> None:
    if name not in scope.structures:
        scope.add("exact", f"expected a tree spec of the graph, found {name[:80]!r}")
    # Elsewhere nobody would look at what is called with it.
    if scope.node is None or scope.node.target != FLAT_APPLY:
        scope.add("flat-apply", f"expected tree specs in calls of {FLAT_APPLY} alone, found one")


def _check_enum(scope: Scope, member: str, value: types.EnumMember) -> None:
    if enum_key(value.fqn, value.name) is None:
        found = f"{value.fqn}.{value.name}"[:80]
        scope.add("exact", f"expected a member of an enum, MODULE:NAME, found {found!r}")


#: Members that `Argument` lacks.
_OWN: dict[str, Callable[[Scope, str, Any], None]] = {
    "as_subgraph": _check_named_subgraph,
    "as_structure": _check_structure,
    "as_enum": _check_enum,
    "as_extra_scalar_type": lambda scope, member, value: None,
}


def _shape(value: types.Value | types.Argument) -> Any:
    """A value without what tells lists from tuples and the kinds of references; NaN equals itself."""
    return _shape_of(value.type, value.value)


def _merged(shape: Any, scope: Scope) -> Any:
    """A shape in which the nodes that take one output have its name, and those that take None are None."""
    if not scope.twins and not scope.nones:
        return shape
    if isinstance(shape, list):
        return [_merged(item, scope) for item in shape]
    if isinstance(shape, dict):
        return {key: _merged(item, scope) for key, item in shape.items()}
    if shape[0] != "name":
        return shape
    return ("as_none",) if shape[1] in scope.nones else ("name", scope.twins.get(shape[1], shape[1]))


def _shape_of(member: str, value: Any) -> Any:
    if member in ("as_list", "as_tuple"):
        return [_shape(item) for item in value]
    if member == "as_named_tuple":
        return [_shape(item) for item in value.values]
    if member == "as_dict":
        return {_key_shape(item.key): _shape(item.value) for item in value}
    if member == "as_string_to_argument":
        return {key: _shape(item) for key, item in value.items()}
    if (item_member := _ITEMS.get(member)) is not None:
        return [_shape_of(item_member, item) for item in value]
    single = _SINGLES.get(member)
    return single(member, value) if single is not None else (member, repr(value))


def _key_shape(key: types.Value) -> Any:
    return key.as_string if key.type == "as_string" else (key.type, repr(key.value))


#: Members that are lists, with the member that each item would be.
_ITEMS = {
    "as_tensors": "as_tensor",
    "as_ints": "as_int",
    "as_floats": "as_float",
    "as_strings": "as_string",
    "as_bools": "as_bool",
    "as_sym_ints": "as_sym_int",
    "as_sym_floats": "as_sym_float",
    "as_sym_bools": "as_sym_bool",
    "as_optional_tensors": "as_optional_tensor",
    "as_nested_tensors": "as_tensors",
    "as_int_lists": "as_ints",
    "as_float_lists": "as_floats",
}


def _symbolic(member: str, value: Any) -> Any:
    return ("name", value.as_name) if value.type == "as_name" else ("as_" + value.type[3:], repr(value.value))


#: A name says which value is meant, whatever its kind: lists of several kinds are written as of tensors.
_SINGLES: dict[str, Callable[[str, Any], Any]] = {
    "as_tensor": lambda member, value: ("name", value.name),
    "as_sym_int": _symbolic,
    "as_sym_float": _symbolic,
    "as_sym_bool": _symbolic,
    "as_optional_tensor": lambda member, value: _shape(value),
    "as_none": lambda member, value: (member,),
    "as_graph": lambda member, value: (member, value.name),
    "as_complex": lambda member, value: (member, repr((value.real, value.imag))),
    "as_device": lambda member, value: (member, value.type, value.index),
}


# -- notes ------------------------------------------------------------------------------------------------


def check_notes(scope: Scope, field: str, notes: Mapping[str, types.Notes], names: Container[str]) -> None:
    """Checks the notes on nodes that are no calls; `names` are those of the nodes that may have some."""
    for name, noted in notes.items():
        scope.at = (field, name[:80])
        if name not in names:
            scope.add("exact", f"expected the name of a node with notes, found {name[:80]!r}")
        limits = scope.program.permissions.limits
        for key, fault in metadata_problems(noted.metadata, scope.program.metadata, limits):
            scope.add(fault.rule, fault.message, f".metadata[{key!r}]")
        if noted.custom is not None:
            for message in note_problems(noted.custom, noted.metadata.get("custom"), limits):
                scope.add("exact", message)
        if noted.module_stack is not None:
            for fault in module_stack_problems(noted.module_stack, noted.metadata, scope.program.metadata):
                scope.add(fault.rule, fault.message, ".module_stack")


def check_module_note(scope: Scope, note: types.Value) -> None:
    """Checks the note on the module of a subgraph, for which PyTorch has no room."""
    scope.at = ("custom",)
    if scope.depth == 0:
        scope.add("exact", "expected the note on the top graph in GraphModule, found it in Graph")
    try:
        _note(note, scope.program.permissions.limits.nested_graphs)
    except _Problem as problem:
        scope.add("exact", str(problem))


def note_problems(note: types.Value, text: str | None, limits: Limits = DEFAULT_LIMITS) -> Iterator[str]:
    """What is wrong with a note, next to the JSON that PyTorch reads; None where there is none.

    Example:
        >>> note = types.Value.of_tuple([types.Value.of_int(1)])
        >>> list(note_problems(note, "[1]")), list(note_problems(note, "[2]"))
        ([], ["expected the note of metadata['custom'], but for containers and keys, found another"])
    """
    try:
        expected = json.dumps(
            json.loads(json.dumps(_note(note, limits.nested_graphs)))
        )  # 1 and "1" are one key to JSON
    except _Problem as problem:
        yield str(problem)
        return
    except TypeError:  # what JSON cannot hold, PyTorch does not get
        if text is not None:
            yield "expected no JSON for a note that JSON cannot hold, found some"
        return
    try:
        found = None if text is None else json.dumps(json.loads(text))
    except (ValueError, RecursionError):
        return  # a finding of the metadata itself
    if expected != found:
        yield "expected the note of metadata['custom'], but for containers and keys, found another"


class _Problem(Exception):
    pass


def _note(value: types.Value, most: int, depth: int = 0) -> Any:
    member = value.type
    if depth == most:
        raise _Problem(f"expected at most {most} nested containers, found more")
    if member == "as_list":
        return [_note(item, most, depth + 1) for item in value.as_list]
    if member == "as_tuple":
        return tuple([_note(item, most, depth + 1) for item in value.as_tuple])
    if member == "as_named_tuple":
        if (problem := _named_tuple_problem(value.as_named_tuple)) is not None:
            raise _Problem(problem)
        return tuple([_note(item, most, depth + 1) for item in value.as_named_tuple.values])
    if member == "as_dict":
        for item in value.as_dict:
            if item.key.type in ("as_list", "as_dict"):
                raise _Problem(f"expected a constant or a tuple as key, found {item.key.type}")
        keys = [_note(item.key, most, depth + 1) for item in value.as_dict]
        if (problem := keys_problem(keys)) is not None:
            raise _Problem(problem)
        return dict(zip(keys, (_note(item.value, most, depth + 1) for item in value.as_dict), strict=True))
    if member in _IN_JSON:
        return _IN_JSON[member](value.value)
    if member == "as_enum" and enum_key(value.as_enum.fqn, value.as_enum.name) is None:
        raise _Problem(f"expected a member of an enum, MODULE:NAME, found {value.as_enum.fqn[:80]!r}")
    if member in CONSTANTS:
        return _Beyond(member, repr(value.value))
    raise _Problem(f"expected a constant, found {member}")


@dataclass(frozen=True, slots=True)
class _Beyond:
    """A constant that JSON cannot hold."""

    member: str
    value: str
