"""Calls: what a node calls, with what, and what it yields."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload
from torch.fx import Node

from ..errors import SerializeError
from ..extensions import is_extension, schema_of
from ..generated import types
from ..items import SYMBOLIC
from ..operators import (
    ENTER_AUTOCAST,
    EXIT_AUTOCAST,
    FUNCTORCH_FUNCTIONS,
    NOT_YET,
    SYMBOLIC_FUNCTIONS,
)
from ..warning import warn_user
from .arguments import Make, export_input
from .delegates import delegate_arguments
from .exact import export_exact_inputs, export_note
from .items import add_items, parts_of
from .metadata import export_metadata, export_module_stack
from .order import add_to_order
from .tables import TypeTable
from .targets import export_target
from .values import Values, export_value


def export_node(node: Node, values: Values) -> types.Node:
    """Write a call, and define what it yields.

    Args:
        node: A `call_function` node, but not a `getitem`: those are written as the outputs of the node that
            they take apart.
        values: The values of its graph.

    Raises:
        SerializeError: The node cannot be written.
    """
    add_to_order(node, values)
    try:
        export = _CALLS[type(node.target)]
    except KeyError:
        return _export_extension(node, values)
    return export(node, values)


def _export_operator(node: Node, values: Values) -> types.Node:
    target: Any = node.target
    if isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool)):
        names = tuple(name for name, _, _ in _parameters(target))
        return _node(node, _positional(node, names, values), _export_single(node, values), values)
    return _node(node, export_inputs(node, values), _export_operator_outputs(node, values), values)


def _export_extension(node: Node, values: Values) -> types.Node:
    kind = type(node.target)
    if not is_extension(node.target):
        raise SerializeError(
            f"expected an operator or a function over symbolic numbers, found {node.target!r:.80} of type "
            f"{kind.__module__}.{kind.__qualname__}",
            hint="Register a handler for operators of this type, with pt2wire.register_extension",
        )
    call = _export_operator(node, values)
    _note_without_results(call, values)
    return call


def _export_higher_order(node: Node, values: Values) -> types.Node:
    target: Any = node.target
    if target.name() in NOT_YET:
        raise SerializeError(
            f"{NOT_YET[target.name()]} cannot be written yet, found a call of {target.name()}"
        )
    if target.name() == "aoti_call_delegate":
        return _export_delegate(node, values)
    if target.name() == "tag_activation_checkpoint":
        _warn_of_policy(node)
    call = _export_call(node, values, single_tensor=isinstance(node.meta.get("val"), torch.Tensor))
    _note_without_results(call, values)
    if not isinstance(node.meta["val"], tuple) and call.outputs[0].type in SYMBOLIC:
        # PyTorch takes it for a result in a tuple, with the name of the call for two nodes.
        values.program.refused.append(f"a number as the only result of `{call.name}`")
    return call


def _note_without_results(call: types.Node, values: Values) -> None:
    """Note that PyTorch will refuse a call without results, which it lets none but its own operators have."""
    if not call.outputs:
        values.program.refused.append(f"the call `{call.name}`, which has no results")


def _warn_of_policy(node: Node) -> None:
    region: Any = node.args[0]
    if "_checkpoint_context_fn" in getattr(node.graph.owning_module, region.target).meta:
        warn_user(
            f"the policy of the checkpoint `{node.name}` is a function of Python, and is left out: "
            "once loaded, backward recomputes all of it"
        )


def _export_delegate(node: Node, values: Values) -> types.Node:
    inputs = [
        types.NamedArgument(name="", arg=export_input(node, value, values), kind=_POSITIONAL)
        for value in delegate_arguments(node, values)
    ]
    outputs = [_export_tensors(node.meta["val"], [node], f"{node.name}_unused", values)]
    # What the lowered module is given, of tensors and custom objects, it knows itself.
    return _node(node, inputs, outputs, values, single_tensor=False, keeps_containers=False)


def _export_function(node: Node, values: Values) -> types.Node:
    name = export_target(node.target)
    if name in SYMBOLIC_FUNCTIONS:
        function = SYMBOLIC_FUNCTIONS[name]
        inputs = _positional(node, function.parameters, values)
        if not function.read_by_torch:
            values.program.refused.append(f"a call of {name}")
        return _node(node, inputs, _export_single(node, values), values)
    if name in FUNCTORCH_FUNCTIONS:
        return _export_call(node, values)
    if name == ENTER_AUTOCAST:
        values.regions.append(node)
        values.program.beyond.append("regions of autocast that are no subgraphs")
        return _export_call(node, values)
    if name == EXIT_AUTOCAST:
        return _export_end(node, values)
    raise SerializeError(
        f"expected an operator or a function over symbolic numbers, found the function {name}",
        hint="Calls of other functions cannot be written yet",
    )


def _export_end(node: Node, values: Values) -> types.Node:
    """Write the end of a region of autocast; which one it closes is said by where it stands."""
    region = values.regions.pop() if values.regions else None
    if node.args != (region,) or node.kwargs:
        raise SerializeError(
            f"expected the end of the innermost region of autocast, found that of {node.args!r:.80}"
        )
    inputs = [types.NamedArgument(name="", arg=types.Argument.of_none(True), kind=_POSITIONAL)]
    return _node(node, inputs, _export_single(node, values), values, keeps_containers=False)


_CALLS: TypeTable[Callable[[Node, Values], types.Node]] = TypeTable(
    {
        OpOverload: _export_operator,
        HigherOrderOperator: _export_higher_order,
        FunctionType: _export_function,
        BuiltinFunctionType: _export_function,
    }
)


def _node(
    node: Node,
    inputs: list[types.NamedArgument],
    outputs: list[types.Argument],
    values: Values,
    single_tensor: bool | None = None,
    keeps_containers: bool = True,
) -> types.Node:
    meta = node.meta
    exact_inputs = export_exact_inputs(inputs, node.args, node.kwargs, values) if keeps_containers else None
    subgraphs, values.in_containers = values.in_containers or None, []
    return types.Node(
        target=export_target(node.target),
        inputs=inputs,
        outputs=outputs,
        metadata=export_metadata(meta),
        is_hop_single_tensor_return=single_tensor,
        name=node.name,
        exact_inputs=exact_inputs,
        subgraphs=subgraphs,
        custom=export_note(meta["custom"]) if "custom" in meta else None,
        module_stack=export_module_stack(meta),
    )


# -- inputs -----------------------------------------------------------------------------------------------

_POSITIONAL = types.ArgumentKind.POSITIONAL
_KEYWORD = types.ArgumentKind.KEYWORD

#: What makes the argument of an empty list, by the type of items that the operator's schema asks for.
_EMPTY_LISTS: dict[str, Make] = {
    "BoolType": types.Argument.of_bools,
    "IntType": types.Argument.of_ints,
    "FloatType": types.Argument.of_floats,
    "StringType": types.Argument.of_strings,
    "TensorType": types.Argument.of_tensors,
}


_Parameters = tuple[tuple[str, bool, Make | None], ...]


@functools.lru_cache(maxsize=4096)
def _parameters(target: OpOverload) -> _Parameters:
    return _parameters_in(schema_of(target))


def _parameters_in(schema: Any) -> _Parameters:
    """What a schema has: names, whether given by keyword only, what makes an empty list's argument."""
    return tuple(
        (argument.name, argument.kwarg_only, _EMPTY_LISTS.get(_item_kind(argument.type)))
        for argument in schema.arguments
    )


def _item_kind(kind: Any) -> str:
    """The kind of the items of a list type, whether the list or its items are optional or not."""
    kind = _required(kind)
    return _required(kind.getElementType()).kind() if kind.kind() == "ListType" else ""


def _required(kind: Any) -> Any:
    return kind.getElementType() if kind.kind() == "OptionalType" else kind


def export_inputs(node: Node, values: Values, schema: Any = None) -> list[types.NamedArgument]:
    """Write what an operator is called with; parameters left to their defaults are left out.

    Args:
        node: The call.
        values: The values of its graph.
        schema: That of what is called, where the operator itself has none.
    """
    target: Any = node.target
    args, kwargs = node.args, node.kwargs
    inputs = []
    parameters = _parameters(target) if schema is None else _parameters_in(schema)
    for position, (name, keyword_only, empty_list) in enumerate(parameters):
        if name in kwargs:
            value, kind = kwargs[name], _KEYWORD
        elif position < len(args) and not keyword_only:
            value, kind = args[position], _POSITIONAL
        else:
            continue
        inputs.append(
            types.NamedArgument(name=name, arg=export_input(node, value, values, empty_list), kind=kind)
        )
    if len(inputs) != len(args) + len(kwargs):
        raise SerializeError(
            f"expected arguments of {schema or schema_of(target)}, found {len(args)} positional "
            f"and {list(kwargs)}"
        )
    return inputs


def _positional(node: Node, names: Sequence[str], values: Values) -> list[types.NamedArgument]:
    if node.kwargs or len(node.args) > len(names):
        raise SerializeError(
            f"expected at most {len(names)} arguments, all positional, found {len(node.args)} positional "
            f"and {list(node.kwargs)}"
        )
    return [
        types.NamedArgument(name=name, arg=export_input(node, value, values), kind=_POSITIONAL)
        for name, value in zip(names, node.args, strict=False)
    ]


def _export_call(node: Node, values: Values, single_tensor: bool | None = None) -> types.Node:
    """Write a call of something without a schema: its positional arguments have no names."""
    inputs = [
        types.NamedArgument(name="", arg=export_input(node, value, values), kind=_POSITIONAL)
        for value in node.args
    ]
    inputs += [
        types.NamedArgument(name=name, arg=export_input(node, value, values), kind=_KEYWORD)
        for name, value in node.kwargs.items()
    ]
    value = node.meta["val"]
    outputs = (
        _export_multiple(node, value, values) if isinstance(value, tuple) else _export_single(node, values)
    )
    return _node(node, inputs, outputs, values, single_tensor)


# -- outputs ----------------------------------------------------------------------------------------------


def _export_operator_outputs(node: Node, values: Values) -> list[types.Argument]:
    target: Any = node.target
    returns = _returns(target)
    if not returns:
        return []
    if returns == ("List[Tensor]",):
        if not node.meta["val"]:
            values.program.refused.append(f"an empty list as the result of `{node.name}`")
        return [_export_tensors(node.meta["val"], [node], f"{node.name}_unused", values)]
    if len(returns) == 1:
        return _export_single(node, values)
    return _export_multiple(node, node.meta["val"], values)


@functools.lru_cache(maxsize=4096)
def _returns(target: OpOverload) -> tuple[str, ...]:
    return tuple(str(result.real_type) for result in schema_of(target).returns)


def _export_single(node: Node, values: Values) -> list[types.Argument]:
    return [export_value(node.name, node.meta["val"], (node,), values)]


def _export_multiple(node: Node, results: Sequence[Any], values: Values) -> list[types.Argument]:
    """Write the outputs of a node that yields several values, some of which may be lists of tensors.

    FX takes such a value apart with `getitem` nodes. The format has none: an output carries the name of the
    `getitem` node that would take it out, or one made up when nothing uses it.
    """
    parts = parts_of([node], len(results))
    outputs = []
    for index, result in enumerate(results):
        owners = parts[index]
        add_items(owners, node, index, result is not None and not isinstance(result, list), values)
        if result is None:
            values.nones.update(owners)
        unused = f"{node.name}_unused_{index}"
        if isinstance(result, list):
            unused = f"{owners[0].name}_unused" if owners else unused
            outputs.append(_export_tensors(result, owners, unused, values))
        else:
            outputs.append(export_value(owners[0].name if owners else unused, result, owners, values))
        if outputs[-1].type not in _READ_AMONG_SEVERAL:
            kind = type(result).__name__
            values.program.refused.append(f"a {kind} among the outputs of `{node.name}`")
    return outputs


#: What PyTorch's reader takes for one of several outputs.
_READ_AMONG_SEVERAL = frozenset({"as_none", "as_tensor", "as_tensors", "as_sym_int", "as_sym_float"})


def _export_tensors(
    tensors: Sequence[Any], owners: Sequence[Node], unused: str, values: Values
) -> types.Argument:
    """Write an output that is a list of tensors, which the users of `owners` take apart."""
    parts = parts_of(owners, len(tensors))
    arguments = []
    for index, tensor in enumerate(tensors):
        if not isinstance(tensor, torch.Tensor):
            raise SerializeError(
                f"expected tensors in a list that a node yields, found {type(tensor).__qualname__}"
            )
        users = parts[index]
        if users:
            add_items(users, owners[0], index, True, values)
        name = users[0].name if users else f"{unused}_{index}"
        export_value(name, tensor, users, values)
        arguments.append(types.TensorArgument(name=name))
    return types.Argument.of_tensors(arguments)
