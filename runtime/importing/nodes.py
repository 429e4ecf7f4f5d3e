"""Calls: what a node calls, with what, and what it yields."""

from __future__ import annotations

import functools
import keyword
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload
from torch.fx import Node

from ..errors import DeserializeError
from ..extensions import is_extension, schema_of
from ..generated import types
from ..items import LISTS, SYMBOLIC, Output, members, output_name
from ..names import check_identifier
from ..operators import ENTER_AUTOCAST, EXIT_AUTOCAST, SYMBOLIC_FUNCTIONS
from .arguments import import_argument
from .exact import import_exact, import_plain_value, match_exact_inputs
from .faults import cause_of, each, located, within
from .items import make_items
from .metadata import import_module_stack
from .targets import find_target
from .values import Values, check_name

_POSITIONAL = types.ArgumentKind.POSITIONAL
_KEYWORD = types.ArgumentKind.KEYWORD

_Inputs = tuple[tuple[Any, ...], dict[str, Any]]


def import_node(node: types.Node, values: Values) -> None:
    """Read a call, and define what it yields.

    What takes a node's several outputs apart in FX, `getitem` nodes, is made here too: the format lists the
    outputs with the node.

    Args:
        node: The call.
        values: Its graph, to which the FX nodes are added.

    Raises:
        DeserializeError: The call is wrong, or cannot be read yet.
    """
    try:
        target = find_target(node.target, values.program.permissions.allow_operators)
    except Exception as error:
        raise located(error, "target") from cause_of(error)
    higher_order = isinstance(target, HigherOrderOperator)
    alone = node.is_hop_single_tensor_return or node.target == _LISTING or _is_own_result(node)
    in_tuple = higher_order and not alone
    values.in_containers = {subgraph.name: subgraph for subgraph in node.subgraphs or ()}
    if isinstance(target, OpOverload) or is_extension(target):
        args, kwargs = _import_inputs(node, target, values)
    elif node.target == EXIT_AUTOCAST:
        args, kwargs = (_innermost_region(values),), {}
    else:
        args, kwargs = _import_call(node, values)
    name = node.name or (None if in_tuple else _first_name(node))  # in a tuple, `getitem` has that name
    fx_node = values.graph.create_node("call_function", target, args, kwargs, name)
    if node.target == ENTER_AUTOCAST:
        values.regions.append(fx_node)
    if node.name:
        check_name(node.name)
        fx_node.name = node.name  # FX alters a name that another node has for the time being
    try:
        _import_outputs(node, fx_node, in_tuple, values)
    except Exception as error:
        raise located(error, "outputs") from cause_of(error)
    meta = import_notes(node, values)
    meta.setdefault("nn_module_stack", {})  # the format leaves out an empty one
    fx_node.meta.update(meta)
    if higher_order or values.held:
        _place_attributes(fx_node, node, values)
    _learn(target, fx_node, values)


def _innermost_region(values: Values) -> Node:
    if not values.regions:
        raise DeserializeError("expected a region of autocast that was opened before, found none")
    return values.regions.pop()


def _place_attributes(call: Node, node: types.Node, values: Values) -> None:
    """Put the nodes of tensors before the call that first takes them, and give them and subgraphs its notes.

    The format has no room for metadata of the nodes that get a subgraph.
    """
    for argument in call.all_input_nodes:
        if argument.op == "get_attr" and next(iter(argument.users)) is call:
            if argument.target in values.held:
                call.prepend(argument)
            argument.meta.update(import_notes(node, values))


def import_notes(node: types.Node | types.Notes, values: Values) -> dict[str, Any]:
    """Read what is kept about a node besides what it computes."""
    meta = values.program.metadata.import_metadata(node.metadata)
    if node.custom is not None:
        with within("custom"):
            meta["custom"] = import_plain_value(node.custom, values.program.permissions.types)
    if node.module_stack is not None:
        meta["nn_module_stack"] = import_module_stack(node.module_stack)
    return meta


#: The higher-order operator that yields a list of tensors itself, not in a tuple.
_LISTING = "torch.ops.higher_order.aoti_call_delegate"


def _is_own_result(node: types.Node) -> bool:
    """Whether a node's only result has the name of the node: else another node takes it out of a tuple."""
    names = [_output_name((output.type, output.value)) for output in node.outputs if output.type in SYMBOLIC]
    return len(node.outputs) == 1 and names == [node.name]


def _first_name(node: types.Node) -> str | None:
    """The name for a node of a file that has none (before 8.10): that of its only output."""
    if len(node.outputs) == 1:
        output = node.outputs[0]
        if output.type == "as_tensor":
            return output.as_tensor.name
        if output.type in SYMBOLIC:
            return _output_name((output.type, output.value))
    return None


def _assert_scalar(shape_env: Any, node: Node) -> None:
    condition = node.args[0]
    value = condition.meta.get("val") if isinstance(condition, Node) else None
    if isinstance(value, torch.SymBool):
        shape_env.guard_or_defer_runtime_assert(value.node.expr, "", node)


def _constrain_range_for_size(shape_env: Any, node: Node) -> None:
    size = node.args[0]
    value = size.meta.get("val") if isinstance(size, Node) else None
    if isinstance(value, torch.SymInt):
        shape_env._constrain_range_for_size(value.node.expr)


#: Operators that state facts about symbols, which values defined later rely on.
_FACTS: dict[Any, Callable[[Any, Node], None]] = {
    torch.ops.aten._assert_scalar.default: _assert_scalar,
    torch.ops.aten.sym_constrain_range_for_size.default: _constrain_range_for_size,
}


def _learn(target: Any, node: Node, values: Values) -> None:
    learn = _FACTS.get(target)
    if learn is not None and node.args:
        learn(values.program.symbols.shape_env, node)


# -- inputs -----------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4_096)
def _parameters(target: Any) -> dict[str, tuple[bool, bool]]:
    """An operator's parameters, by name in order: whether given by keyword only, whether required."""
    return {
        argument.name: (argument.kwarg_only, not argument.has_default_value())
        for argument in schema_of(target).arguments
    }


def _import_inputs(node: types.Node, target: Any, values: Values) -> _Inputs:
    """Read what an operator is called with: some positional, in the order of its schema, others by name."""
    parameters = _parameters(target)
    given: dict[str, tuple[types.ArgumentKind | None, Any]] = {}
    inputs, exact = match_exact_inputs(node)
    for index, item in enumerate(inputs):
        if item.name not in parameters or item.name in given:
            raise DeserializeError(
                f"expected an argument of {schema_of(target)}, each once, found {item.name[:80]!r}",
                path=f"inputs[{index}].name",
            )
        given[item.name] = (item.kind, _import_input(index, item, exact[index], values))
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for position, (name, (keyword_only, required)) in enumerate(parameters.items()):
        if name not in given:
            if required:
                raise DeserializeError(
                    f"expected the argument {name!r} of {schema_of(target)}, found none", path="inputs"
                )
            continue
        kind, value = given[name]
        by_position = len(args) == position
        # Files before 8.9 do not say which arguments are positional: those that the operator requires were.
        if kind == _POSITIONAL or (kind != _KEYWORD and required and not keyword_only and by_position):
            args.append(value)
        elif keyword.iskeyword(name):
            # `from=1` is no Python; the arguments before it become positional with it.
            args += [*kwargs.values(), value]
            kwargs = {}
        else:
            kwargs[name] = value
    if node.exact_inputs is not None:
        kwargs = {item.name: kwargs[item.name] for item in inputs if item.name in kwargs}
    return tuple(args), kwargs


def _import_call(node: types.Node, values: Values) -> _Inputs:
    """Read what something without a schema is called with: arguments without a name are positional."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    inputs, exact = match_exact_inputs(node)
    for index, item in enumerate(inputs):
        value = _import_input(index, item, exact[index], values)
        # Functions over symbolic numbers take all by position; files before 8.9 do not say which are.
        if item.kind == _POSITIONAL or item.name == "" or node.target in SYMBOLIC_FUNCTIONS:
            args.append(value)
            continue
        with within(f"inputs[{index}].name"):
            check_name(item.name, check_identifier)
            if item.name in kwargs:
                raise DeserializeError(f"expected each keyword argument once, found {item.name!r} again")
        kwargs[item.name] = value
    return tuple(args), kwargs


def _import_input(index: int, item: types.NamedArgument, exact: types.Value | None, values: Values) -> Any:
    try:
        return import_argument(item.arg, values) if exact is None else import_exact(exact, values)
    except Exception as error:
        step = f"inputs[{index}].arg" if exact is None else f"exact_inputs[{index}].value"
        raise located(error, step) from cause_of(error)


# -- outputs ----------------------------------------------------------------------------------------------


def _import_outputs(node: types.Node, fx_node: Node, in_tuple: bool, values: Values) -> None:
    """Define what a node yields: nothing, one value, or several that `getitem` nodes take apart.

    Args:
        in_tuple: Whether a single output comes in a tuple.
    """
    outputs = node.outputs
    if not outputs:
        # PyTorch demands one of all but its own operators.
        if isinstance(fx_node.target, HigherOrderOperator):
            fx_node.meta["val"] = ()
        elif is_extension(fx_node.target):
            fx_node.meta["val"] = None
        return
    member = outputs[0].type
    if len(outputs) > 1 or (in_tuple and member != "as_none"):
        several = [(output.type, output.value) for output in outputs]
        fx_node.meta["val"] = tuple(_import_items(node, [fx_node], several, values))
    elif member in LISTS:
        fx_node.meta["val"] = _import_items(node, [fx_node], members((member, outputs[0].value)), values)
    elif member == "as_none":
        fx_node.meta["val"] = None
    else:
        values.define(_output_name((member, outputs[0].value)), fx_node)
        return
    values.nodes.setdefault(fx_node.name, fx_node)


def _import_items(
    node: types.Node, owners: Sequence[Node], outputs: Sequence[Output], values: Values
) -> list[Any]:
    count = len(outputs)
    return each("", enumerate(outputs), lambda item: _import_item(node, owners, count, *item, values))


def _import_item(
    node: types.Node, owners: Sequence[Node], count: int, index: int, output: Output, values: Values
) -> Any:
    """Add the `getitem` nodes for one of several outputs; the result is what they yield."""
    member = output[0]
    named = member != "as_none" and member not in LISTS
    name = _output_name(output) if named else None
    default = "as_none" if member == "as_none" else None
    items = make_items(owners, index, count, name, default, values)
    if name is not None:
        values.define(name, items[0])
        value = items[0].meta["val"]
    else:
        value = None if member == "as_none" else _import_items(node, items, members(output), values)
    for item in items:
        item.meta["val"] = value
        # Where it came from is where the call did.
        item.meta.update(import_notes(node, values))
    return value


def _output_name(output: Output) -> str:
    name = output_name(output)
    if name is None or output[0] == "as_custom_obj":
        raise DeserializeError(f"expected a value with a name as output, found {output[0]}")
    return name
