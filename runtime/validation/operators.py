"""The check of calls against the schemas of operators: needs torch, and runs no operator."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch

from ..errors import DeserializeError
from ..exact_values import sequence_items
from ..extensions import find_extension, schema_of
from ..findings import Finding
from ..generated import types
from ..generated.types import Layout
from ..layouts import COMPRESSED
from ..operators import ENTER_AUTOCAST, NUMBERS_AS_TENSORS, Target, TargetKind, parse_target
from .parts import Given, parts_problem
from .rules import Findings

_Item = TypeVar("_Item", types.NamedArgument, types.NamedValue)

_NUMBERS = frozenset(
    {"as_int", "as_float", "as_bool", "as_complex", "as_sym_int", "as_sym_float", "as_sym_bool"}
)
_BOOLS = frozenset({"as_bools", "as_bool"})
_INTEGERS = frozenset({"as_ints", "as_sym_ints", "as_int", "as_sym_int", "as_tensors"}) | _BOOLS
_FLOATS = frozenset({"as_floats", "as_sym_floats", "as_float", "as_sym_float"})

#: Members of `Argument` that fit a parameter, by the name of its type in the schema. Where torch converts, we
#: accept what it converts: numbers for a tensor, one number for a list. Types that are not here take any.
_ARGUMENTS: Mapping[str, frozenset[str]] = {
    "Tensor": frozenset({"as_tensor", "as_optional_tensor"}) | _NUMBERS,
    "number": frozenset({"as_tensor"}) | _NUMBERS,
    "int": frozenset({"as_int", "as_sym_int", "as_bool", "as_sym_bool", "as_tensor"}),
    "float": frozenset({"as_tensor"}) | _NUMBERS - {"as_complex"},
    "bool": frozenset({"as_bool", "as_sym_bool", "as_int", "as_sym_int", "as_tensor"}),
    "str": frozenset({"as_string"}),
    "Device": frozenset({"as_device", "as_string"}),
    "ScalarType": frozenset({"as_scalar_type"}),
    "Layout": frozenset({"as_layout"}),
    "MemoryFormat": frozenset({"as_memory_format"}),
    "Generator": frozenset(),
    "Storage": frozenset(),
    "Stream": frozenset(),
    "List[Tensor]": frozenset({"as_tensors"}),
    "List[Optional[Tensor]]": frozenset({"as_optional_tensors", "as_tensors"}),
    "List[List[Tensor]]": frozenset({"as_nested_tensors", "as_tensors"}),
    "List[int]": _INTEGERS,
    "List[float]": _FLOATS | _INTEGERS,
    "List[number]": _FLOATS | _INTEGERS | {"as_sym_bools"},
    "List[bool]": frozenset(
        {"as_bools", "as_sym_bools", "as_ints", "as_sym_ints", "as_floats", "as_tensors"}
    ),
    "List[str]": frozenset({"as_strings"}),
}

#: Types for which torch takes a tensor, if it has one element.
_ONE_NUMBER = frozenset(
    name for kind in ("number", "int", "float", "bool") for name in (kind, f"Optional[{kind}]")
)

#: Members that fit a return. An undefined tensor is written as none, and an unused number.
_RETURNS: Mapping[str, frozenset[str]] = {
    "Tensor": frozenset({"as_tensor", "as_none"}),
    "Optional[Tensor]": frozenset({"as_tensor", "as_none"}),
    "List[Tensor]": frozenset({"as_tensors"}),
    "number": frozenset({"as_sym_int", "as_sym_float", "as_sym_bool", "as_none"}),
    "int": frozenset({"as_sym_int", "as_none"}),
    "float": frozenset({"as_sym_float", "as_none"}),
    "bool": frozenset({"as_sym_bool", "as_none"}),
}


@dataclass(frozen=True, slots=True)
class _Schema:
    """An operator's schema: the members that fit each parameter and each return, None where any does; which
    parameters may be given by position, in order; which have to be given, and which are changed."""

    parameters: Mapping[str, frozenset[str] | None]
    types: Mapping[str, str]
    positional: Sequence[str]
    required: frozenset[str]
    written: frozenset[str]
    returns: Sequence[frozenset[str] | None]


def validate_operators(tree: types.ExportedProgram) -> list[Finding]:
    """Checks that the operators of a program are registered in this process, and called as they want to be.

    Args:
        tree: The program, in which `validate_tree` found nothing.

    Returns:
        What is wrong.

    Example:
        >>> import pt2wire, torch
        >>> tree = pt2wire.to_tree(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)))
        >>> tree.graph_module.graph.nodes[0].target = "torch.ops.aten.rely.default"
        >>> [finding.message for finding in validate_operators(tree)]
        ["expected an operator that is registered, found torch.ops.aten.rely.default, in node 'relu'"]
    """
    findings = Findings()
    schemas: dict[str, _Schema | None] = {}
    pending = [(tree.graph_module.graph, "graph_module.graph")]
    while pending:
        graph, path = pending.pop()
        for index, node in enumerate(graph.nodes):
            where = f"{path}.nodes[{index}]"
            if node.target not in schemas:
                schemas[node.target] = _find(node.target)
            schema = schemas[node.target]
            if schema is None:
                _check_exists(node.target, f"{where}.target", node, findings)
                if _check_higher_order(node, where, findings):
                    _check_called(node, where, graph, findings)
            else:
                _check_arguments(schema, node, where, graph, findings)
                _check_returns(schema, node, where, findings)
            for position, argument in enumerate(node.inputs):
                if argument.arg.type not in ("as_graph", "as_operator", "as_string_to_argument"):
                    continue
                for inner, place in nested(argument.arg, f"{where}.inputs[{position}].arg"):
                    if isinstance(inner, str):
                        _check_exists(inner, place, node, findings)
                    else:
                        pending.append((inner, place))
            for position, exact in enumerate(node.exact_inputs or ()):
                if exact.value is not None:
                    place = f"{where}.exact_inputs[{position}].value"
                    for text in operators_in(exact.value):
                        _check_exists(text, place, node, findings)
            for position, subgraph in enumerate(node.subgraphs or ()):
                pending.append((subgraph.graph, f"{where}.subgraphs[{position}].graph"))
    return findings.found


def nested(argument: types.Argument, path: str) -> Iterator[tuple[types.Graph | str, str]]:
    """The subgraphs and operators in an argument."""
    if argument.type == "as_graph":
        yield argument.as_graph.graph, f"{path}.as_graph.graph"
    elif argument.type == "as_operator":
        yield argument.as_operator, f"{path}.as_operator"
    elif argument.type == "as_string_to_argument":
        for key, value in argument.as_string_to_argument.items():
            yield from nested(value, f"{path}.as_string_to_argument[{key!r}]")


def operators_in(value: types.Value) -> Iterator[str]:
    """The operators in an exact argument, whose nesting is bounded."""
    if value.type == "as_operator":
        yield value.as_operator
    elif (items := sequence_items(value)) is not None:
        for item in items:
            yield from operators_in(item)
    elif value.type == "as_dict":
        for entry in value.as_dict:
            yield from operators_in(entry.value)


def _find(text: str) -> _Schema | None:
    target = parse_target(text)
    if target is None or target.kind not in (TargetKind.OPERATOR, TargetKind.EXTENSION):
        return None
    found = find_schema(target)
    if found is None:
        return None
    only_tensors = target.namespace == "aten" and target.packet not in NUMBERS_AS_TENSORS
    parameters = {argument.name: str(argument.real_type) for argument in found.arguments}
    return _Schema(
        parameters={name: _fitting(kind, only_tensors) for name, kind in parameters.items()},
        types=parameters,
        positional=[argument.name for argument in found.arguments if not argument.kwarg_only],
        required=frozenset(argument.name for argument in found.arguments if not argument.has_default_value()),
        written=frozenset(
            argument.name
            for argument in found.arguments
            if argument.alias_info is not None and argument.alias_info.is_write
        ),
        returns=[_RETURNS.get(str(result.real_type)) for result in found.returns],
    )


def find_schema(target: Target) -> Any | None:
    """The schema of an operator or of one of an extension; None where none of that name is registered.

    An operator is looked up in the dispatcher by name; no attribute of `torch.ops` is followed. Beside these,
    `torch.ops` knows operators of TorchScript's interpreter; `aten::save`, which writes a file, is one.
    """
    if target.kind is TargetKind.EXTENSION:
        try:
            return schema_of(find_extension(target))
        except DeserializeError:
            return None
    try:
        torch._C._dispatch_find_schema_or_throw(*_registered(target))
        return torch._C._get_schema(*_registered(target))
    except RuntimeError:
        return None


def find_tags(target: Target) -> Sequence[Any]:
    """The tags of an operator that `find_schema` has found: `torch.Tag.inplace_view`, for example."""
    found = torch._C._get_operation_overload(*_registered(target))
    return () if found is None else found[2]


def _registered(target: Target) -> tuple[str, str]:
    """The name and the overload by which the dispatcher knows an operator."""
    return f"{target.namespace}::{target.name}", "" if target.overload == "default" else target.overload


def _fitting(kind: str, only_tensors: bool) -> frozenset[str] | None:
    if kind.startswith("Optional[") and kind.endswith("]"):
        inner = _fitting(kind[len("Optional[") : -1], only_tensors)
        return None if inner is None else inner | {"as_none"}
    if kind.startswith("__torch__."):
        return frozenset({"as_custom_obj"})
    fitting = _ARGUMENTS.get(kind)
    return fitting - _NUMBERS if fitting is not None and kind == "Tensor" and only_tensors else fitting


def _fits_exactly(kind: str, value: types.Value) -> bool:
    """Whether a parameter of a type takes a value in whose place PyTorch's field has None.

    A list fits if its items do, which may be of several kinds.
    """
    if kind.startswith("Optional["):
        return value.type == "as_none" or _fits_exactly(kind[len("Optional[") : -1], value)
    if kind.startswith("List[") and (items := sequence_items(value)) is not None:
        return all(_fits_exactly(kind[len("List[") : -1], item) for item in items)
    fitting = _fitting(kind, only_tensors=True)
    member = "as_scalar_type" if value.type == "as_extra_scalar_type" else value.type
    return fitting is None or member in fitting


def _no_tensors(argument: types.Argument, graph: types.Graph) -> list[str]:
    """The names in a list of tensors and None that are those of other values, which its member permits."""
    items = argument.as_optional_tensors if argument.type == "as_optional_tensors" else ()
    names = [item.as_tensor.name for item in items if item.type == "as_tensor"]
    return [name for name in names if name not in graph.tensor_values]


def _check_exists(text: str, path: str, node: types.Node, findings: Findings) -> None:
    target = parse_target(text)
    if target is None:
        return  # a finding of validate_tree
    if target.kind is TargetKind.EXTENSION:
        try:
            find_extension(target)
        except DeserializeError as error:
            findings.add("unknown-operator", path, f"{error.message}, in node {node.name!r}", error.hint)
        return
    if target.kind is TargetKind.OPERATOR:
        exists = find_schema(target) is not None
    elif target.kind is TargetKind.HIGHER_ORDER:
        exists = target.name in torch._ops._higher_order_ops
    else:
        return
    if not exists:
        findings.add(
            "unknown-operator",
            path,
            f"expected an operator that is registered, found {text}, in node {node.name!r}",
            "Import the package that registers it",
        )


_FUNCTIONALIZED = frozenset(
    f"torch.ops.higher_order.{name}" for name in ("auto_functionalized", "auto_functionalized_v2")
)
_VIEWING = "torch.ops.higher_order.auto_functionalized_v2"
_AUTOCAST = ("torch.ops.higher_order.wrap_with_autocast", ENTER_AUTOCAST)
_OF_PYTORCH = ("aten::", "prim::", "prims::")


def _check_higher_order(node: types.Node, path: str, findings: Findings) -> bool:
    """Whether the first argument is what some higher-order operators ask of it, and only torch knows."""
    if not node.inputs:
        return True
    first = node.inputs[0].arg
    if node.target in _FUNCTIONALIZED and first.type == "as_operator":
        target = parse_target(first.as_operator)
        schema = find_schema(target) if target is not None and target.kind is TargetKind.OPERATOR else None
        fits = schema is None or (schema.is_mutable and not schema.name.startswith(_OF_PYTORCH))
        expected, found = "an operator of another package that changes arguments", first.as_operator
    elif node.target in _AUTOCAST and first.type == "as_string":
        fits, expected, found = (
            _has_autocast(first.as_string),
            "a type of device with autocast",
            first.as_string,
        )
    else:
        return True
    if not fits:
        message = f"expected {expected}, found {found[:80]!r}, in node {node.name!r}"
        findings.add("operator-arguments", f"{path}.inputs[0].arg", message)
    return fits


def _has_autocast(device_type: str) -> bool:
    try:
        return torch.amp.is_autocast_available(device_type)
    except RuntimeError:  # no type of device
        return False


#: Higher-order operators that call an operator, by the position of its name, and where its arguments begin.
_CALLERS = {
    "torch.ops.higher_order.with_effects": (1, 2),
    "torch.ops.higher_order.out_dtype": (0, 2),
    **dict.fromkeys(_FUNCTIONALIZED, (0, 1)),
}
#: Arguments of `auto_functionalized_v2` beside those of the operator: the tensors that changed arguments are
#: views of, and of each of these, which view of which.
_BASES = "_all_bases"
_VIEW = (
    r"_({})_([0-9]+_)?(length|base_index|alias|size|stride|storage_offset|slice_dim|slice_start|slice_end)"
)


def _check_called(node: types.Node, path: str, graph: types.Graph, findings: Findings) -> None:
    """The arguments that a higher-order operator passes on to an operator, against that one's schema."""
    if node.target not in _CALLERS:
        return
    position, begin = _CALLERS[node.target]
    leading = node.inputs[:begin]
    if (
        len(leading) < begin
        or any(named.name for named in leading)
        or leading[position].arg.type != "as_operator"
    ):
        return  # given by keyword, which no exporter does
    target = leading[position].arg.as_operator
    schema = _find(target)
    if schema is None:
        return
    if node.target == _VIEWING:
        schema = _with_views(schema, node)
    exact = node.exact_inputs or ()
    passed_on = [value for value in exact if not value.name][begin:] + [
        value for value in exact if value.name
    ]
    inputs, exact_inputs = _named(node.inputs[begin:], schema), _named(passed_on, schema)
    call = replace(node, target=target, inputs=inputs, exact_inputs=exact_inputs)
    _check_arguments(schema, call, path, graph, findings, begin)


def _with_views(schema: _Schema, node: types.Node) -> _Schema:
    """What `auto_functionalized_v2` takes: views in place of what the operator changes."""
    view = re.compile(_VIEW.format("|".join(map(re.escape, sorted(schema.written)))))
    views = {named.name: "" for named in node.inputs if named.name == _BASES or view.fullmatch(named.name)}
    return replace(
        schema,
        parameters={**schema.parameters, **dict.fromkeys(views)},
        types={**schema.types, **views},
        required=schema.required - schema.written,
    )


def _named(items: Sequence[_Item], schema: _Schema) -> list[_Item]:
    """Arguments with the names of their parameters, which those given by position lack here."""
    names = iter(schema.positional)
    return [item if item.name else replace(item, name=next(names, "")) for item in items]


#: Lists with an item for each dimension; `aten.roll` calls itself once for each, until the stack ends.
_DIMENSIONS = frozenset({"dim", "dims", "shifts"})
#: Operators of PyTorch take tensors of at most 64 dimensions, whatever a caller lets a file describe.
_MOST_DIMENSIONS = 64

#: Operators that fill the values of what they make and leave the indices of compressed layouts as they find
#: the memory, so that others read wherever those point.
_WITHOUT_INDICES = frozenset(
    f"torch.ops.aten.{name}"
    for name in "empty full new_empty new_full new_ones normal ones rand randint randn".split()
)


def _length(value: types.Argument | types.Value) -> int:
    """How many items a list has, of whatever kinds; one number is as good as one item."""
    return len(value.value) if isinstance(value.value, list) else 1


def _check_arguments(
    schema: _Schema, node: types.Node, path: str, graph: types.Graph, findings: Findings, begin: int = 0
) -> None:
    given: dict[str, types.Argument | types.Value] = {}
    exact = {
        value.name: value.value
        for value in node.exact_inputs or ()
        if value.value is not None and not _is_none(value.value, graph)
    }
    for position, named in enumerate(node.inputs, begin):
        given[named.name] = named.arg
        where = f"{path}.inputs[{position}]"
        if named.name not in schema.parameters:
            message = f"expected an argument of {node.target}, found {named.name!r}, in node {node.name!r}"
            findings.add("operator-arguments", f"{where}.name", message)
            continue
        fitting, kind = schema.parameters[named.name], schema.types[named.name]
        value: types.Argument | types.Value = named.arg
        if value.type == "as_none" and named.name in exact:
            value = given[named.name] = exact[named.name]
            fits = _fits_exactly(kind, value)
        else:
            fits = fitting is None or value.type in fitting
        if not fits:
            message = (
                f"expected {kind} for {named.name!r} of {node.target}, found {value.type}, "
                f"in node {node.name!r}"
            )
            findings.add("operator-arguments", f"{where}.arg", message)
        elif fitting is not None and (others := _no_tensors(named.arg, graph)):
            message = (
                f"expected {kind} for {named.name!r} of {node.target}, found {others[0]!r}, which is no "
                f"tensor, in node {node.name!r}"
            )
            findings.add("operator-arguments", f"{where}.arg", message)
        elif named.name in _DIMENSIONS and _length(value) > _MOST_DIMENSIONS:
            message = (
                f"expected at most {_MOST_DIMENSIONS} {named.name} of {node.target}, "
                f"found {_length(value)}, in node {node.name!r}"
            )
            findings.add("operator-arguments", f"{where}.arg", message)
        elif named.arg.type == "as_tensor" and kind in _ONE_NUMBER:
            sizes = graph.tensor_values[named.arg.as_tensor.name].sizes
            if any(size.type == "as_int" and size.as_int != 1 for size in sizes):
                message = (
                    f"expected {kind} for {named.name!r} of {node.target}, "
                    f"found a tensor of several elements, in node {node.name!r}"
                )
                findings.add("operator-arguments", f"{where}.arg", message)
    for name in sorted(schema.required - given.keys()):
        message = f"expected the argument {name!r} of {node.target}, found none, in node {node.name!r}"
        findings.add("operator-arguments", f"{path}.inputs", message)
    by_position = {named.name for named in node.inputs if named.kind == types.ArgumentKind.POSITIONAL}
    left_out = [name for name in schema.positional[: len(by_position)] if name not in by_position]
    if left_out and schema.required <= given.keys() <= schema.parameters.keys():
        message = (
            f"expected what {node.target} is given by position before all else, "
            f"found {left_out[0]!r} left out, in node {node.name!r}"
        )
        findings.add("operator-arguments", f"{path}.inputs", message)
    _check_parts(node, given, path, graph, findings)
    _check_layout(node, given, path, graph, findings)


def _is_none(value: types.Value, graph: types.Graph) -> bool:
    """Whether a value that is sound is a node that takes None out of the outputs of a call."""
    return value.type == "as_tensor" and value.as_tensor.name not in graph.tensor_values


def _check_parts(node: types.Node, given: Given, path: str, graph: types.Graph, findings: Findings) -> None:
    for position, output in enumerate(node.outputs):
        if output.type == "as_tensors":
            problem = parts_problem(node.target, given, len(output.as_tensors), graph)
            if problem is not None:
                message = f"{problem}, in node {node.name!r} ({node.target})"
                findings.add("operator-returns", f"{path}.outputs[{position}]", message)


def _check_layout(node: types.Node, given: Given, path: str, graph: types.Graph, findings: Findings) -> None:
    layout, like = given.get("layout"), given.get("self")
    if layout is not None and layout.type == "as_layout" and layout.as_layout is Layout._mkldnn:
        message = f"expected a layout that operators know, found _mkldnn, in node {node.name!r}"
        findings.add("operator-arguments", f"{path}.inputs", message)
    if node.target.rpartition(".")[0] not in _WITHOUT_INDICES:
        return
    made: Layout | None = None
    if layout is not None and layout.type == "as_layout":
        made = layout.as_layout
    elif like is not None and like.type == "as_tensor":
        made = graph.tensor_values[like.as_tensor.name].layout
    if made in COMPRESSED:
        message = (
            f"expected a layout whose indices {node.target} fills, found {made.name}, in node {node.name!r}"
        )
        findings.add("operator-arguments", f"{path}.inputs", message)


def _check_returns(schema: _Schema, node: types.Node, path: str, findings: Findings) -> None:
    if len(node.outputs) != len(schema.returns):
        message = (
            f"expected {len(schema.returns)} results of {node.target}, found {len(node.outputs)}, "
            f"in node {node.name!r}"
        )
        findings.add("operator-returns", f"{path}.outputs", message)
        return
    for position, (output, fitting) in enumerate(zip(node.outputs, schema.returns, strict=True)):
        if fitting is not None and output.type not in fitting:
            expected = " or ".join(sorted(fitting))
            message = f"expected {expected} of {node.target}, found {output.type}, in node {node.name!r}"
            findings.add("operator-returns", f"{path}.outputs[{position}]", message)
