"""Arguments, by member: what each uses as an argument, and what it defines as a result."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..generated import types
from ..limits import raising
from ..names import check_device, check_identifier
from ..operators import FLAT_APPLY, OF_TEXTS, TargetKind
from .rules import Problem
from .scopes import Pending, Scope


def check_argument(scope: Scope, argument: types.Argument) -> None:
    """Checks an argument that is used at where the scope is."""
    use = _USES[argument.type]
    if use is not None:
        use(scope, argument.value)


def check_member(scope: Scope, member: str, value: Any) -> None:
    """Checks what a member of `Argument` holds, wherever it stands."""
    use = _USES[member]
    if use is not None:
        use(scope, value)


def _tensor(scope: Scope, value: types.TensorArgument) -> None:
    scope.use(value.name, "tensor")


def _tensors(scope: Scope, value: list[types.TensorArgument]) -> None:
    # Operands of higher-order operators, of whatever kind, are such a list to PyTorch.
    operands = scope.node is not None and scope.node.target.startswith("torch.ops.higher_order.")
    for tensor in value:
        scope.use(tensor.name, scope.kinds.get(tensor.name, "tensor") if operands else "tensor")


def _nested_tensors(scope: Scope, value: list[list[types.TensorArgument]]) -> None:
    for tensors in value:
        _tensors(scope, tensors)


def _optional_tensor(scope: Scope, value: types.OptionalTensorArgument) -> None:
    if value.type == "as_tensor":
        scope.use(value.as_tensor.name, "tensor")


def _optional_tensors(scope: Scope, value: list[types.OptionalTensorArgument]) -> None:
    # To PyTorch, lists of None and of numbers or objects are such a list too.
    for item in value:
        if item.type == "as_tensor":
            name = item.as_tensor.name
            scope.use(name, scope.kinds.get(name, "tensor"))


def _symbolic(kind: str) -> Callable[[Scope, Any], None]:
    def use(scope: Scope, value: Any) -> None:
        if value.type == "as_name":
            scope.use(value.as_name, kind)

    return use


def _symbolics(kind: str) -> Callable[[Scope, Any], None]:
    def use(scope: Scope, value: list[Any]) -> None:
        for number in value:
            if number.type == "as_name":
                scope.use(number.as_name, kind)

    return use


def _custom_obj(scope: Scope, value: types.CustomObjArgument) -> None:
    if value.name in scope.kinds:
        scope.use(value.name, "custom_obj")
    elif scope.check_name(value.name):
        scope.program.custom_objects.add(value.name)


_OPERATORS = (TargetKind.OPERATOR, TargetKind.HIGHER_ORDER)
#: What gives its arguments names of its own.
_WITH_SCHEMA = (TargetKind.OPERATOR, TargetKind.EXTENSION)


def _operator(scope: Scope, value: str) -> None:
    target, problem = scope.program.target(value)
    if problem is None and target is not None and target.kind not in _OPERATORS:
        problem = Problem("target", f"expected an operator, found {value[:80]!r}")
    of_texts = target is not None and target.kind is TargetKind.HIGHER_ORDER and target.name in OF_TEXTS
    if problem is None and target is not None and of_texts and not _is_effect(scope):
        # Where else it is called, nothing knows which of the arguments is the text that is checked.
        problem = Problem("target", f"expected {target.name} in an ordered effect only, found it elsewhere")
    if value == FLAT_APPLY:
        problem = Problem(
            "flat-apply", f"expected {FLAT_APPLY} as what a node calls, found it as an argument"
        )
    if problem is not None:
        scope.add(problem.rule, problem.message, hint=problem.hint)


def _is_effect(scope: Scope) -> bool:
    """Whether we are at the operator that an ordered effect calls."""
    orders = scope.node is not None and scope.node.target == "torch.ops.higher_order.with_effects"
    return orders and scope.at[2:] == ("inputs", 1, "arg")


def _graph(scope: Scope, value: types.GraphArgument) -> None:
    check_subgraph(scope, value, ".as_graph")


def check_subgraph(scope: Scope, value: types.GraphArgument, step: str) -> None:
    """Checks a subgraph, now its name, later what is in it; `step` leads from where the scope is to it."""
    scope.check_name(value.name, f"{step}.name")
    if value.node is None:  # the node is called like the subgraph, or, where that is taken, in another way
        scope.getters.setdefault(value.name, value.name)
        scope.unnamed.add(value.name)
    else:
        scope.check_name(value.node, f"{step}.node")
        if value.node not in scope.getters:  # several arguments may share one
            scope.take(value.node)
        if (got := scope.getters.setdefault(value.node, value.name)) != value.name:
            message = f"expected a node that gets {value.name[:80]!r}, found one that gets {got[:80]!r}"
            scope.add("subgraph", message, f"{step}.node")
    known = scope.subgraphs.setdefault(value.name, value.graph)
    if known is not value.graph:
        if known != value.graph:
            scope.add("subgraph", f"expected one graph named {value.name[:80]!r}, found two that differ")
    elif scope.depth == (most := scope.program.permissions.limits.nested_graphs):
        message = f"expected at most {most} nested subgraphs, found more"
        scope.add("depth", message, hint=raising("nested_graphs"))
    else:
        pending = Pending(value.graph, f"{scope.place()}{step}.graph", scope.depth + 1)
        scope.program.pending.append(pending)


def _dictionary(scope: Scope, value: dict[str, types.Argument]) -> None:
    place = scope.at
    if place.count("as_string_to_argument") == (most := scope.program.permissions.limits.nested_graphs):
        message = f"expected at most {most} nested dictionaries, found more"
        scope.add("depth", message, hint=raising("nested_graphs"))
        return
    for key, argument in value.items():
        scope.at = (*place, "as_string_to_argument", key[:80])
        check_argument(scope, argument)
    scope.at = place


def _device(scope: Scope, value: types.Device) -> None:
    if (problem := check_device(value.type, value.index)) is not None:
        scope.add("argument", problem)


def _enum(scope: Scope, value: types.ScalarType | types.MemoryFormat | types.Layout) -> None:
    if value == 0:
        scope.add("argument", f"expected a known {type(value).__name__}, found 0")


# None: nothing to check.
_USES: Mapping[str, Callable[[Scope, Any], None] | None] = {
    "as_none": None,
    "as_tensor": _tensor,
    "as_tensors": _tensors,
    "as_int": None,
    "as_ints": None,
    "as_float": None,
    "as_floats": None,
    "as_string": None,
    "as_strings": None,
    "as_sym_int": _symbolic("sym_int"),
    "as_sym_ints": _symbolics("sym_int"),
    "as_scalar_type": _enum,
    "as_memory_format": _enum,
    "as_layout": _enum,
    "as_device": _device,
    "as_bool": None,
    "as_bools": None,
    "as_sym_bool": _symbolic("sym_bool"),
    "as_sym_bools": _symbolics("sym_bool"),
    "as_graph": _graph,
    "as_optional_tensors": _optional_tensors,
    "as_custom_obj": _custom_obj,
    "as_operator": _operator,
    "as_sym_float": _symbolic("sym_float"),
    "as_sym_floats": _symbolics("sym_float"),
    "as_optional_tensor": _optional_tensor,
    "as_complex": None,
    "as_nested_tensors": _nested_tensors,
    "as_int_lists": None,
    "as_string_to_argument": _dictionary,
    "as_float_lists": None,
}


# As results and graph inputs ---------------------------------------------------------------

Defines = Callable[[Any], Iterable[tuple[str, str]]]


def _defines_symbolic(kind: str) -> Defines:
    def names(value: Any) -> Iterable[tuple[str, str]]:
        # A result that is a plain number has no name; the empty one is refused.
        return ((value.as_name if value.type == "as_name" else "", kind),)

    return names


#: Members that define values, with the names and kinds of these.
DEFINES: Mapping[str, Defines] = {
    "as_tensor": lambda value: ((value.name, "tensor"),),
    "as_tensors": lambda value: [(tensor.name, "tensor") for tensor in value],
    "as_sym_int": _defines_symbolic("sym_int"),
    "as_sym_bool": _defines_symbolic("sym_bool"),
    "as_sym_float": _defines_symbolic("sym_float"),
    "as_custom_obj": lambda value: ((value.name, "custom_obj"),),
}


def argument_names(argument: types.Argument) -> list[str]:
    """The names of the value that an argument is; none for a constant and for a list."""
    if argument.type not in DEFINES or argument.type == "as_tensors":
        return []
    return [name for name, _ in DEFINES[argument.type](argument.value) if name]


def check_argument_name(scope: Scope, name: str, kind: TargetKind | None) -> None:
    """Checks the name of an argument of a node; torch.fx writes keyword arguments as they are.

    Args:
        scope: The graph; we are at the name.
        name: The name.
        kind: What the node calls, if that is known. The schema of an operator decides how it calls its
            arguments, and importing compares them with it; what is a keyword of Python it gives by position.
    """
    known = scope.program.argument_names
    if name in known or (kind in _WITH_SCHEMA and keyword.iskeyword(name)):
        return
    if scope.check_name(name, check=check_identifier):
        known.add(name)
