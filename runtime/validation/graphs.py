"""Graphs: every name is defined before it is used, once, and used as what it is; nodes call what they
may."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ..generated import types
from ..names import check_identifier
from ..operators import FUNCTORCH_FUNCTIONS, HIGHER_ORDER, SYMBOLIC_FUNCTIONS, Target, TargetKind
from ..operators import parse_target, refusal
from .rules import Findings
from .subgraphs import check_operands
from .values import Symbols, check_tensor_meta, device_problem

#: Nesting of subgraphs and of dictionaries in arguments. Thrift stops at 12 nested subgraphs.
MAX_DEPTH: Final = 32

#: The kinds of values, with the field of `Graph` that describes each.
KINDS: Mapping[str, str] = {
    "tensor": "tensor_values",
    "sym_int": "sym_int_values",
    "sym_bool": "sym_bool_values",
    "sym_float": "sym_float_values",
    "custom_obj": "custom_obj_values",
}


class ProgramState:
    """What the graphs of one program share."""

    def __init__(self, findings: Findings, symbols: Symbols) -> None:
        self.findings = findings
        self.symbols = symbols
        self.targets: dict[str, tuple[Target | None, tuple[str, str] | None]] = {}
        self.argument_names: set[str] = {""}  # those known to be fine
        self.custom_objects: set[str] = set()  # names that are no value of a graph: constants of the
        archive self.depth = 0

    def target(self, text: str) -> tuple[Target | None, tuple[str, str] | None]:
        """A target taken apart, and what is wrong with it as rule and message."""
        known = self.targets.get(text)
        if known is None:
            parsed = parse_target(text)
            known = self.targets[text] = (parsed, _target_problem(text, parsed))
        return known


def _target_problem(text: str, target: Target | None) -> tuple[str, str] | None:
    if target is None:
        return "target", f"expected an operator or a symbolic function, found {text[:80]!r}"
    if (reason := refusal(target)) is not None:
        return "denied-operator", f"{text} is not permitted: {reason}"
    if target.kind is TargetKind.HIGHER_ORDER and target.name not in HIGHER_ORDER:
        return "target", f"expected a higher-order operator that is supported, found {target.name!r}"
    if target.kind is TargetKind.EXTENSION:
        return "target", f"expected an operator, found {text[:80]!r} of an extension that is not registered"
    return None


class Scope:
    """One graph while it is checked: which names are defined so far, and where we are in it."""

    __slots__ = ("at", "findings", "graph", "kinds", "levels", "node", "path", "program", "subgraphs",
    "taken")

    def __init__(self, program: ProgramState, graph: types.Graph, path: str) -> None:
        self.program = program
        self.findings = program.findings
        self.graph = graph
        self.path = path
        self.kinds: dict[str, str] = {}  # of the values defined so far
        self.taken: set[str] = set()  # names of values and of nodes
        self.subgraphs: dict[str, types.Graph] = {}
        self.levels = 0  # on the stack of functorch
        # Where we are. A path is only spelled out for a finding.
        self.node: types.Node | None = None
        self.at: tuple[object, ...] = ()

    def add(self, rule: str, message: str, suffix: str = "") -> None:
        """Adds a finding at the place where we are."""
        pieces = "".join(f"[{piece}]" if isinstance(piece, int) else f".{piece}" for piece in self.at)
        if self.node is not None:
            message = f"{message}, in node {self.node.name or '(unnamed)'!r} ({self.node.target[:80]})"
        self.findings.add(rule, f"{self.path}{pieces}{suffix}", message)

    def use(self, name: str, kind: str) -> None:
        """A value is used as a kind."""
        found = self.kinds.get(name)
        if found == kind:
            return
        if found is None:
            self.add("undefined-name", f"expected a value that is defined before, found {name[:80]!r}")
        else:
            self.add("wrong-kind", f"expected a {kind}, found {name!r}, which is a {found}")

    def define(self, name: str, kind: str) -> None:
        """A value is defined."""
        if name in self.kinds:
            self.add("duplicate-name", f"expected a name that is defined once, found {name!r} again")
            return
        if (problem := check_identifier(name)) is not None:
            self.add("name", f"expected an identifier, found {name[:80]!r}: {problem}")
        if name not in getattr(self.graph, KINDS[kind]):
            self.add("missing-value", f"expected {name!r} in {KINDS[kind]}, found nothing")
        self.kinds[name] = kind

    def take(self, name: str) -> None:
        """A name is given to a node of FX, where values and nodes share one space of names."""
        if name in self.taken:
            self.add("duplicate-name", f"expected a name that is defined once, found {name!r} again")
        self.taken.add(name)


def check_graph(program: ProgramState, graph: types.Graph, path: str, constant_names: Iterable[str] = ())
    -> Scope: """Checks a graph and the graphs in it.

    Args:
        program: What the graphs of the program share.
        graph: The graph.
        path: Where it is.
        constant_names: For the graph of the whole program, the names that its signature gives to constant
            inputs: the graph itself has no names for them.
    """
    scope = Scope(program, graph, path)
    _check_values(program, graph, path)
    for index, argument in enumerate(graph.inputs):
        scope.at = ("inputs", index)
        _define_input(scope, argument)
    for name in constant_names:
        scope.take(name)
    for index, node in enumerate(graph.nodes):
        scope.node = node
        _check_node(scope, node, index)
    scope.node = None
    for index, argument in enumerate(graph.outputs):
        scope.at = ("outputs", index)
        if argument.type in _NOT_OUTPUTS:
            scope.add("argument", f"expected a value or a constant as output, found {argument.type}")
        else:
            _check_argument(scope, argument)
    if scope.levels != 0:
        scope.at = ("nodes",)
        scope.add("functorch-levels", f"expected as many levels closed as opened, found {scope.levels}
        open")
    return scope


def _check_values(program: ProgramState, graph: types.Graph, path: str) -> None:
    findings, symbols = program.findings, program.symbols
    for name, meta in graph.tensor_values.items():
        check_tensor_meta(meta, f"{path}.tensor_values[{name!r}]", findings, symbols)
    numbers: tuple[tuple[str, Mapping[str, types.SymInt | types.SymBool | types.SymFloat]], ...] = (
        ("sym_int_values", graph.sym_int_values),
        ("sym_bool_values", graph.sym_bool_values),
        ("sym_float_values", graph.sym_float_values),
    )
    for field, values in numbers:
        for name, number in values.items():
            if number.type == "as_expr":
                symbols.check(number, f"{path}.{field}[{name!r}]")


# Inputs and outputs
# ------------------------------------------------------------------------------------------

_CONSTANTS = frozenset({"as_none", "as_int", "as_float", "as_bool", "as_string"})
_NOT_OUTPUTS = frozenset({"as_graph", "as_operator", "as_string_to_argument"})


def _define_input(scope: Scope, argument: types.Argument) -> None:
    if argument.type in _CONSTANTS:
        return
    defines = _DEFINES.get(argument.type)
    if defines is None or argument.type == "as_tensors":
        scope.add("argument", f"expected a tensor, a symbolic number or a constant as input, found
        {argument.type}") return
    for name, kind in defines(argument.value):
        scope.define(name, kind)
        scope.take(name)


def _symbolic_output(kind: str) -> Callable[[Any], Iterable[tuple[str, str]]]:
    def names(value: Any) -> Iterable[tuple[str, str]]:
        return ((value.as_name, kind),) if value.type == "as_name" else ((f"({value.type})", kind),)

    return names


#: Members of `Argument` that define values, as inputs of graphs and outputs of nodes, with what they
#: define.
_DEFINES: Mapping[str, Callable[[Any], Iterable[tuple[str, str]]]] = {
    "as_tensor": lambda value: ((value.name, "tensor"),),
    "as_tensors": lambda value: [(tensor.name, "tensor") for tensor in value],
    "as_sym_int": _symbolic_output("sym_int"),
    "as_sym_bool": _symbolic_output("sym_bool"),
    "as_sym_float": _symbolic_output("sym_float"),
    "as_custom_obj": lambda value: ((value.name, "custom_obj"),),
}


# Nodes
# -------------------------------------------------------------------------------------------------------


def _check_node(scope: Scope, node: types.Node, index: int) -> None:
    scope.at = ("nodes", index)
    program = scope.program
    target, problem = program.target(node.target)
    if problem is not None:
        scope.add(*problem, suffix=".target")
    known_names = program.argument_names
    for position, named in enumerate(node.inputs):
        scope.at = ("nodes", index, "inputs", position)
        if named.name not in known_names:
            _check_argument_name(scope, named.name)
        argument = named.arg
        _USES[argument.type](scope, argument.value)
    scope.at = ("nodes", index)
    if target is not None:
        _CALLS[target.kind](scope, node, target)
    own_name = node.name
    if own_name is not None:
        scope.take(own_name)
        if (problem_of_name := check_identifier(own_name)) is not None:
            scope.add("name", f"expected an identifier, found {own_name[:80]!r}: {problem_of_name}",
            ".name")
    single = len(node.outputs) == 1
    for position, output in enumerate(node.outputs):
        if output.type == "as_none":
            continue
        scope.at = ("nodes", index, "outputs", position)
        defines = _DEFINES.get(output.type)
        if defines is None:
            scope.add("argument", f"expected a tensor, tensors or a symbolic number as output, found
            {output.type}") continue
        for name, kind in defines(output.value):
            scope.define(name, kind)
            # A node with one result is that result.
            if not (single and name == own_name):
                scope.take(name)


def _check_argument_name(scope: Scope, name: str) -> None:
    if (problem := check_identifier(name)) is not None:
        # torch.fx writes keyword arguments as they are.
        scope.add("name", f"expected an identifier, found {name[:80]!r}: {problem}", ".name")
    else:
        scope.program.argument_names.add(name)


def _call_operator(scope: Scope, node: types.Node, target: Target) -> None:
    names = {named.name for named in node.inputs}
    if len(names) != len(node.inputs) or "" in names:
        scope.add("argument-name", "expected distinct argument names, found " + _repeated(node), ".inputs")


def _repeated(node: types.Node) -> str:
    names = [named.name for named in node.inputs]
    return repr(next((name for name in names if not name or names.count(name) > 1), ""))


def _call_symbolic(scope: Scope, node: types.Node, target: Target) -> None:
    parameters = SYMBOLIC_FUNCTIONS[node.target].parameters
    if len(node.inputs) != len(parameters):
        scope.add("symbolic-call", f"expected {len(parameters)} arguments, found {len(node.inputs)}",
        ".inputs")
    results = [output.type for output in node.outputs]
    if len(results) != 1 or results[0] not in ("as_sym_int", "as_sym_bool", "as_sym_float"):
        found = ", ".join(results) or "none"
        scope.add("symbolic-call", f"expected one symbolic number as output, found {found}", ".outputs")


def _call_functorch(scope: Scope, node: types.Node, target: Target) -> None:
    scope.levels += FUNCTORCH_FUNCTIONS[node.target]
    if scope.levels < 0:
        scope.add("functorch-levels", "expected a level that was opened before, found none to close",
        ".target") scope.levels = 0


def _call_higher_order(scope: Scope, node: types.Node, target: Target) -> None:
    for message in check_operands(node, target.name):
        scope.add("subgraph", message, ".inputs")


def _call_nothing(scope: Scope, node: types.Node, target: Target) -> None:
    pass


_CALLS: Mapping[TargetKind, Callable[[Scope, types.Node, Target], None]] = {
    TargetKind.OPERATOR: _call_operator,
    TargetKind.SYMBOLIC: _call_symbolic,
    TargetKind.FUNCTORCH: _call_functorch,
    TargetKind.HIGHER_ORDER: _call_higher_order,
    TargetKind.EXTENSION: _call_nothing,
}


# Arguments
# ---------------------------------------------------------------------------------------------------


def _check_argument(scope: Scope, argument: types.Argument) -> None:
    _USES[argument.type](scope, argument.value)


def _use_nothing(scope: Scope, value: Any) -> None:
    pass


def _use_tensor(scope: Scope, value: types.TensorArgument) -> None:
    scope.use(value.name, "tensor")


def _use_tensors(scope: Scope, value: list[types.TensorArgument]) -> None:
    for tensor in value:
        scope.use(tensor.name, "tensor")


def _use_nested_tensors(scope: Scope, value: list[list[types.TensorArgument]]) -> None:
    for tensors in value:
        _use_tensors(scope, tensors)


def _use_optional_tensor(scope: Scope, value: types.OptionalTensorArgument) -> None:
    if value.type == "as_tensor":
        scope.use(value.as_tensor.name, "tensor")


def _use_optional_tensors(scope: Scope, value: list[types.OptionalTensorArgument]) -> None:
    for tensor in value:
        _use_optional_tensor(scope, tensor)


def _use_symbolic(kind: str) -> Callable[[Scope, Any], None]:
    def use(scope: Scope, value: Any) -> None:
        if value.type == "as_name":
            scope.use(value.as_name, kind)

    return use


def _use_symbolics(kind: str) -> Callable[[Scope, Any], None]:
    def use(scope: Scope, value: list[Any]) -> None:
        for number in value:
            if number.type == "as_name":
                scope.use(number.as_name, kind)

    return use


def _use_custom_obj(scope: Scope, value: types.CustomObjArgument) -> None:
    if value.name in scope.kinds:
        scope.use(value.name, "custom_obj")
    elif (problem := check_identifier(value.name)) is not None:
        scope.add("name", f"expected an identifier, found {value.name[:80]!r}: {problem}")
    else:
        scope.program.custom_objects.add(value.name)


def _use_operator(scope: Scope, value: str) -> None:
    target, problem = scope.program.target(value)
    if problem is None and target is not None:
        if target.kind not in (TargetKind.OPERATOR, TargetKind.HIGHER_ORDER):
            problem = ("target", f"expected an operator, found {value[:80]!r}")
    if problem is not None:
        scope.add(*problem)


def _use_graph(scope: Scope, value: types.GraphArgument) -> None:
    program = scope.program
    if (problem := check_identifier(value.name)) is not None:
        scope.add("name", f"expected an identifier, found {value.name[:80]!r}: {problem}", ".as_graph.name")
    # The subgraphs of one graph module are its attributes, so two of one name must be one graph.
    known = scope.subgraphs.setdefault(value.name, value.graph)
    if known is not value.graph:
        if known != value.graph:
            scope.add("subgraph", f"expected one graph named {value.name!r}, found two that differ")
        return
    if program.depth == MAX_DEPTH:
        scope.add("depth", f"expected at most {MAX_DEPTH} nested subgraphs, found more")
        return
    pieces = "".join(f"[{piece}]" if isinstance(piece, int) else f".{piece}" for piece in scope.at)
    program.depth += 1
    check_graph(program, value.graph, f"{scope.path}{pieces}.arg.as_graph.graph")
    program.depth -= 1


def _use_dictionary(scope: Scope, value: dict[str, types.Argument]) -> None:
    program = scope.program
    if program.depth == MAX_DEPTH:
        scope.add("depth", f"expected at most {MAX_DEPTH} nested dictionaries, found more")
        return
    program.depth += 1
    for argument in value.values():
        _check_argument(scope, argument)
    program.depth -= 1


def _use_device(scope: Scope, value: types.Device) -> None:
    if (problem := device_problem(value)) is not None:
        scope.add("argument", problem)


def _use_enum(scope: Scope, value: types.ScalarType | types.MemoryFormat | types.Layout) -> None:
    if value == 0:
        scope.add("argument", f"expected a {type(value).__name__}, found Unknown")


#: Members of `Argument`, with the check of a use.
_USES: Mapping[str, Callable[[Scope, Any], None]] = {
    "as_none": _use_nothing,
    "as_tensor": _use_tensor,
    "as_tensors": _use_tensors,
    "as_int": _use_nothing,
    "as_ints": _use_nothing,
    "as_float": _use_nothing,
    "as_floats": _use_nothing,
    "as_string": _use_nothing,
    "as_strings": _use_nothing,
    "as_sym_int": _use_symbolic("sym_int"),
    "as_sym_ints": _use_symbolics("sym_int"),
    "as_scalar_type": _use_enum,
    "as_memory_format": _use_enum,
    "as_layout": _use_enum,
    "as_device": _use_device,
    "as_bool": _use_nothing,
    "as_bools": _use_nothing,
    "as_sym_bool": _use_symbolic("sym_bool"),
    "as_sym_bools": _use_symbolics("sym_bool"),
    "as_graph": _use_graph,
    "as_optional_tensors": _use_optional_tensors,
    "as_custom_obj": _use_custom_obj,
    "as_operator": _use_operator,
    "as_sym_float": _use_symbolic("sym_float"),
    "as_sym_floats": _use_symbolics("sym_float"),
    "as_optional_tensor": _use_optional_tensor,
    "as_complex": _use_nothing,
    "as_nested_tensors": _use_nested_tensors,
    "as_int_lists": _use_nothing,
    "as_string_to_argument": _use_dictionary,
    "as_float_lists": _use_nothing,
}
