"""Graphs: every name is defined before it is used, once, and used as what it is; nodes call what they may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from ..generated import types
from ..items import LISTS
from ..operators import (
    AUTOCAST_FUNCTIONS,
    FUNCTORCH_FUNCTIONS,
    SYMBOLIC_FUNCTIONS,
    Target,
    TargetKind,
)
from .arguments import DEFINES, argument_names, check_argument, check_argument_name
from .exact import (
    check_exact_inputs,
    check_exact_output,
    check_module_note,
    check_notes,
    check_order,
    note_problems,
)
from .held_tensors import check_held_tensors
from .items import check_items, check_items_done
from .metadata import metadata_problems, module_stack_problems
from .scopes import ProgramState, Scope
from .structures import check_flat_apply, check_held_structures
from .subgraphs import check_operands, check_region, invoked
from .texts import check_texts
from .values import check_tensor_meta

_CONSTANTS = frozenset({"as_none", "as_int", "as_float", "as_bool", "as_string"})
_NUMBERS = frozenset({"as_sym_int", "as_sym_float", "as_sym_bool"})
_ONE_NUMBER = frozenset({"as_int", "as_float", "as_bool", "as_sym_int", "as_sym_float", "as_sym_bool"})
_LISTS_OF_NUMBERS = frozenset(f"{member}s" for member in _ONE_NUMBER)
_POSITIONAL = types.ArgumentKind.POSITIONAL
_NOT_OUTPUTS = frozenset({"as_graph", "as_operator", "as_string_to_argument"})


def check_graphs(
    program: ProgramState, graph: types.Graph, path: str, constant_names: Iterable[str]
) -> Scope:
    """Checks the graph of a program, and the graphs in it.

    Args:
        program: What the graphs of the program share.
        graph: The graph.
        path: Where it is.
        constant_names: The names that the signature gives to constant inputs. The graph has none for them.

    Returns:
        What is known at the end of the graph.
    """
    scope = Scope(program, graph, path, 0)
    _check_graph(scope, constant_names)
    while program.pending:
        pending = program.pending.pop()
        _check_graph(Scope(program, *pending), ())
    return scope


def _check_graph(scope: Scope, constant_names: Iterable[str]) -> None:
    graph = scope.graph
    scope.program.modules[id(graph)] = scope
    _check_values(scope)
    for index, argument in enumerate(graph.inputs):
        scope.at = ("inputs", index)
        _check_input(scope, argument)
    scope.at = ("inputs",)
    for name in constant_names:
        scope.take(name)
    if graph.constants is not None:
        check_held_tensors(scope, graph.constants)
    if graph.structures is not None:
        check_held_structures(scope, graph.structures)
    if graph.placeholder_metadata is not None:
        check_notes(scope, "placeholder_metadata", graph.placeholder_metadata, scope.taken)
    if graph.output_metadata is not None:
        check_notes(scope, "output_metadata", graph.output_metadata, {"output"})
    if graph.custom is not None:
        check_module_note(scope, graph.custom)
    for index, node in enumerate(graph.nodes):
        scope.node = node
        _check_node(scope, node, index)
    scope.node = None
    if scope.items:
        check_items_done(scope)
    if graph.get_attr_metadata is not None:
        check_notes(scope, "get_attr_metadata", graph.get_attr_metadata, scope.getters)
    if graph.getitem_metadata is not None:
        check_notes(scope, "getitem_metadata", graph.getitem_metadata, _item_names(scope))
    for index, argument in enumerate(graph.outputs):
        scope.at = ("outputs", index)
        if argument.type in _NOT_OUTPUTS:
            scope.add("argument", f"expected a value or a constant as output, found {argument.type}")
        else:
            check_argument(scope, argument)
    if graph.exact_output is not None:
        check_exact_output(scope, graph, graph.exact_output)
    scope.at = ("outputs",)
    if graph.is_single_tensor_return and (len(graph.outputs) != 1 or not argument_names(graph.outputs[0])):
        scope.add("argument", f"expected one tensor as the only output, found {len(graph.outputs)} outputs")
    scope.at = ("nodes",)
    for name in scope.held_attributes().intersection(scope.subgraphs):
        scope.add("held-tensor", f"expected a subgraph of another name than {name[:80]!r}, which is taken")
    if graph.order is not None or graph.get_attr_metadata is not None:  # which name these nodes
        for name in sorted(scope.unnamed & scope.taken):
            scope.add("duplicate-name", f"expected a name for the node that gets {name[:80]!r}, found none")
    if graph.order is not None:
        check_order(scope, graph, graph.order)
    for rule, levels in scope.levels.items():
        if levels != 0:
            scope.add(rule, f"expected every level to be closed, found {levels} open")


def _check_values(scope: Scope) -> None:
    graph, findings, symbols = scope.graph, scope.findings, scope.program.symbols
    for name, meta in graph.tensor_values.items():
        check_tensor_meta(
            meta, f"{scope.path}.tensor_values[{name!r}]", findings, symbols, scope.program.permissions.limits
        )
    numbers: tuple[tuple[str, Mapping[str, types.SymInt | types.SymBool | types.SymFloat]], ...] = (
        ("sym_int_values", graph.sym_int_values),
        ("sym_bool_values", graph.sym_bool_values),
        ("sym_float_values", graph.sym_float_values),
    )
    for field, values in numbers:
        for name, number in values.items():
            if number.type == "as_expr":
                symbols.check(number, f"{scope.path}.{field}[{name!r}]")


def _check_input(scope: Scope, argument: types.Argument) -> None:
    if argument.type in _CONSTANTS:
        return
    if argument.type not in DEFINES or argument.type == "as_tensors":
        scope.add("argument", f"expected a tensor, a number or a constant as input, found {argument.type}")
        return
    for name, kind in DEFINES[argument.type](argument.value):
        scope.define(name, kind)


def _check_node(scope: Scope, node: types.Node, index: int) -> None:
    scope.at = ("nodes", index)
    limits = scope.program.permissions.limits
    target, problem = scope.program.target(node.target)
    if problem is not None:
        scope.add(problem.rule, problem.message, ".target", problem.hint)
    called = None if target is None else target.kind
    for position, named in enumerate(node.inputs):
        scope.at = ("nodes", index, "inputs", position, "arg")
        check_argument(scope, named.arg)
        scope.at = ("nodes", index, "inputs", position, "name")
        check_argument_name(scope, named.name, called)
    scope.at = ("nodes", index)
    before = len(scope.findings.found)
    if node.exact_inputs is not None or node.subgraphs is not None:
        check_exact_inputs(scope, node, index)
    exact = len(scope.findings.found) == before
    if node.custom is not None:
        for message in note_problems(node.custom, node.metadata.get("custom"), limits):
            scope.add("exact", message, ".custom")
    if node.module_stack is not None:
        for fault in module_stack_problems(node.module_stack, node.metadata, scope.program.metadata):
            scope.add(fault.rule, fault.message, ".module_stack")
    if scope.depth == 0:
        _check_tokens(scope, node)
    if target is not None and exact:  # else the arguments say two things
        _CALLS[target.kind](scope, node, target)
    if node.name is not None:
        scope.take(node.name)
        scope.check_name(node.name, ".name")
    for key, fault in metadata_problems(node.metadata, scope.program.metadata, limits):
        scope.add(fault.rule, fault.message, f".metadata[{key!r}]")
    # The single output of a higher-order operator may come in a tuple, and is then another node's.
    is_higher_order = problem is None and called is TargetKind.HIGHER_ORDER
    if is_higher_order:
        _check_positional(scope, node, index)
    in_tuple = is_higher_order and not (node.is_hop_single_tensor_return or _is_own_result(node))
    single = len(node.outputs) == 1 and not in_tuple
    for position, output in enumerate(node.outputs):
        if output.type == "as_none":
            continue
        scope.at = ("nodes", index, "outputs", position)
        if output.type not in DEFINES:
            scope.add("argument", f"expected tensors or a symbolic number as result, found {output.type}")
            continue
        for name, kind in DEFINES[output.type](output.value):
            scope.define(name, kind, own=single and name == node.name)
    if scope.items:
        several = not single or node.outputs[0].type in LISTS
        check_items(scope, node, several)


def _check_positional(scope: Scope, node: types.Node, index: int) -> None:
    """With a name, an argument by position is one thing to other checks, and another to the operator."""
    scope.at = ("nodes", index)
    if named := next((item.name for item in node.inputs if item.name and item.kind is _POSITIONAL), None):
        message = f"expected no name of an argument by position, found {named[:80]!r}"
        scope.add("argument-name", message, ".inputs")


def _is_own_result(node: types.Node) -> bool:
    # A number that is the node's only result, and not in a tuple.
    return [(output.type in _NUMBERS, argument_names(output)) for output in node.outputs] == [
        (True, [node.name])
    ]


def _item_names(scope: Scope) -> set[str]:
    """The names of nodes that take one of several results, or an item of one."""
    return {item.name for item in scope.graph.getitems or ()} | {
        name
        for node in scope.graph.nodes
        for output in node.outputs
        if output.type in DEFINES
        for name, _ in DEFINES[output.type](output.value)
        if name != node.name
    }


def _check_tokens(scope: Scope, node: types.Node) -> None:
    """PyTorch takes the tokens out of a program when it is called, and stops where one is anything else."""
    tokens = scope.program.tokens
    orders = node.target == "torch.ops.higher_order.with_effects"
    for position, named in enumerate(node.inputs):
        name = named.arg.as_tensor.name if named.arg.type == "as_tensor" else ""
        if (name in tokens) != (orders and position == 0):
            wanted = "a token first" if orders and position == 0 else "no token but of an effect"
            scope.add("subgraph", f"expected {wanted}, found {name[:80]!r}", f".inputs[{position}].arg")
    if orders and node.outputs and node.outputs[0].type == "as_tensor":
        tokens.add(node.outputs[0].as_tensor.name)


def _call_operator(scope: Scope, node: types.Node, target: Target) -> None:
    distinct = {named.name for named in node.inputs}
    if len(distinct) != len(node.inputs) or "" in distinct:
        counts = Counter(named.name for named in node.inputs)
        repeated = next(name for name, count in counts.items() if not name or count > 1)
        scope.add("argument-name", f"expected distinct argument names, found {repeated[:80]!r}", ".inputs")


def _call_symbolic(scope: Scope, node: types.Node, target: Target) -> None:
    function = SYMBOLIC_FUNCTIONS[node.target]
    most = len(function.parameters)
    if not most - function.optional <= len(node.inputs) <= most:
        message = f"expected {most} arguments, found {len(node.inputs)}"
        scope.add("function-call", message, ".inputs")
    results = [output.type for output in node.outputs]
    if len(results) != 1 or results[0] not in ("as_sym_int", "as_sym_bool", "as_sym_float"):
        found = ", ".join(results) or "none"
        scope.add("function-call", f"expected one symbolic number as result, found {found}", ".outputs")
    wanted, what = (_LISTS_OF_NUMBERS, "numbers") if target.name == "sym_sum" else (_ONE_NUMBER, "a number")
    for position, named in enumerate(node.inputs):
        optional = position >= most - function.optional and named.arg.type == "as_none"
        if named.arg.type not in wanted and not optional:
            scope.add("function-call", f"expected {what}, found {named.arg.type}", f".inputs[{position}].arg")


def _call_functorch(scope: Scope, node: types.Node, target: Target) -> None:
    function = FUNCTORCH_FUNCTIONS[node.target]
    given = len(node.inputs)
    if not function.required <= given <= function.required + function.optional:
        scope.add("function-call", f"expected {function.required} arguments, found {given}", ".inputs")
    if len(node.outputs) != function.results:
        message = f"expected {function.results} results, found {len(node.outputs)}"
        scope.add("function-call", message, ".outputs")
    _change_levels(scope, "functorch-levels", function.levels)


def _call_autocast(scope: Scope, node: types.Node, target: Target) -> None:
    scope.program.demand_beyond(scope.place())
    for message in check_region(node):
        scope.add("function-call", message)
    _change_levels(scope, "autocast-levels", AUTOCAST_FUNCTIONS[node.target])


def _change_levels(scope: Scope, rule: str, levels: int) -> None:
    scope.levels[rule] += levels
    if scope.levels[rule] < 0:
        scope.add(rule, "expected a level that was opened before, found none", ".target")
        scope.levels[rule] = 0


def _call_higher_order(scope: Scope, node: types.Node, target: Target) -> None:
    if target.name == "flat_apply":
        check_flat_apply(scope, node)
    if target.name == "invoke_subgraph":
        _check_identifier(scope, node)
    for message in check_operands(node, target.name):
        scope.add("subgraph", message, ".inputs")
    for message in check_texts(node, target.name):
        scope.add("call-text", message, ".inputs")


def _check_identifier(scope: Scope, node: types.Node) -> None:
    """PyTorch takes calls of one identifier for calls of one subgraph, whichever each of them names."""
    found = invoked(node)
    if found is not None:
        identifier, graph = found
        if scope.program.identified.setdefault(identifier, graph) != graph:
            message = (
                f"expected one subgraph behind the identifier {identifier[:80]!r}, found two that differ"
            )
            scope.add("subgraph", message, ".inputs")


_CALLS: Mapping[TargetKind, Callable[[Scope, types.Node, Target], None]] = {
    TargetKind.OPERATOR: _call_operator,
    TargetKind.SYMBOLIC: _call_symbolic,
    TargetKind.FUNCTORCH: _call_functorch,
    TargetKind.AUTOCAST: _call_autocast,
    TargetKind.HIGHER_ORDER: _call_higher_order,
    TargetKind.EXTENSION: _call_operator,
}
