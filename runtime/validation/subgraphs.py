"""Calls of higher-order operators, which have no schema: what each takes, and what its subgraphs take and
give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ..exact_values import SEQUENCES, call_arguments, sequence_items
from ..generated import types
from ..operators import ENTER_AUTOCAST, EXIT_AUTOCAST

_Given = types.Argument | types.Value


@dataclass(frozen=True, slots=True)
class Parameter:
    """One thing that a higher-order operator takes.

    Attributes:
        name: As a keyword, by which it may be given instead.
        members: Members of `Argument` and `Value` that fit; None where any does.
        what: The same in words.
        required: Whether it has to be given.
        filled: Whether it is a list that has to hold something.
        texts: The texts that it may be; None where any may be.
    """

    name: str
    members: frozenset[str] | None = None
    what: str = ""
    required: bool = True
    filled: bool = False
    texts: frozenset[str] | None = None


def _graph(name: str) -> Parameter:
    return Parameter(name, frozenset({"as_graph"}), "a subgraph")


def _operands(name: str, required: bool = True, filled: bool = False) -> Parameter:
    # What the list holds decides about its member; an empty one can be any.
    lists = (member for member in (*_LISTS, *SEQUENCES))
    return Parameter(name, frozenset(lists), "a list of operands", required, filled)


def _one_of(name: str, what: str, *members: str) -> Parameter:
    return Parameter(name, frozenset(members), what)


_LISTS = """
    as_tensors as_optional_tensors as_nested_tensors as_ints as_sym_ints as_floats as_sym_floats as_bools
    as_sym_bools as_strings as_int_lists as_float_lists
""".split()


@dataclass(frozen=True, slots=True)
class Call:
    """How a higher-order operator is called.

    Attributes:
        parameters: What it takes, by position or by name.
        rest: Whether it takes more, which are operands of its subgraph or operator.
        keywords: Whether it takes whatever keywords there are.
        takes: How many operands each subgraph is given, by its parameter.
        gives: Parameters of subgraphs that give what the call gives.
    """

    parameters: tuple[Parameter, ...]
    rest: bool = False
    keywords: bool = False
    takes: Mapping[str, Callable[[_Arguments], int | None]] | None = None
    gives: tuple[str, ...] = ()


class _Arguments:
    """The arguments of a call by parameter, and what is left of those by position."""

    def __init__(self) -> None:
        self.given: dict[str, _Given] = {}
        self.rest: list[_Given] = []

    def length(self, name: str) -> int:
        """How many items a list has; one that is left out is empty."""
        if name not in self.given:
            return 0
        given = self.given[name]
        items = sequence_items(given) if isinstance(given, types.Value) else None
        return len(given.value if items is None else items)


def _of(*names: str) -> Callable[[_Arguments], int]:
    return lambda arguments: sum(map(arguments.length, names))


def _rest(arguments: _Arguments) -> int:
    return len(arguments.rest)


def _pairs(arguments: _Arguments) -> int:
    # A combining function takes two elements of each list.
    return 2 * arguments.length("xs") + arguments.length("additional_inputs")


def _score(arguments: _Arguments) -> int:
    # A score and its four places: batch, head, query, key.
    return 5 + arguments.length("score_mod_other_buffers")


def _mask(arguments: _Arguments) -> int:
    # Four places.
    return 4 + arguments.length("mask_mod_other_buffers")


def _wrapping(*before: Parameter, gives: bool = True) -> Call:
    return Call(
        (*before, _graph("body")),
        rest=True,
        takes={"body": _rest},
        gives=("body",) if gives else (),
    )


_LOOP = Call(
    (_graph("cond_fn"), _graph("body_fn"), _operands("carried_inputs"), _operands("additional_inputs")),
    takes=dict.fromkeys(("cond_fn", "body_fn"), _of("carried_inputs", "additional_inputs")),
)
_OPERATOR = Parameter("op", frozenset({"as_operator"}), "an operator")
_DICTS = ("as_string_to_argument", "as_dict")

#: The operators that `out_dtype` takes.
OUT_DTYPE_OPERATORS = frozenset(
    f"torch.ops.aten.{name}"
    for name in """
        linear.default mm.default conv2d.default convolution.default
        mul.Tensor mul.Scalar div.Tensor div.Scalar
    """.split()
)

_AUTOCAST = (
    _one_of("device_type", "a text", "as_string"),
    _one_of("dtype", "a dtype or none", "as_scalar_type", "as_none"),
    _one_of("enabled", "a boolean", "as_bool"),
    _one_of("cache_enabled", "a boolean or none", "as_bool", "as_none"),
)

#: How each higher-order operator is called.
CALLS: Mapping[str, Call] = {
    "associative_scan": Call(
        (_graph("combine_fn"), _operands("xs", filled=True), _operands("additional_inputs")),
        takes={"combine_fn": _pairs},
        gives=("combine_fn",),
    ),
    "auto_functionalized": Call((_OPERATOR,), keywords=True),
    "auto_functionalized_v2": Call((_OPERATOR,), keywords=True),
    "cond": Call(
        (Parameter("pred"), _graph("true_fn"), _graph("false_fn"), _operands("operands")),
        takes=dict.fromkeys(("true_fn", "false_fn"), _of("operands")),
        gives=("true_fn", "false_fn"),
    ),
    "flex_attention": Call(
        (
            *(_one_of(name, "a tensor", "as_tensor") for name in ("query", "key", "value")),
            _graph("score_mod"),
            _one_of("block_mask", "a tuple that ends in a subgraph", "as_tuple"),
            *map(Parameter, ("scale", "kernel_options")),
            _operands("score_mod_other_buffers", required=False),
            _operands("mask_mod_other_buffers", required=False),
        ),
        takes={"score_mod": _score, "block_mask": _mask},
    ),
    "foreach_map": Call((_graph("fn"),), rest=True, keywords=True),
    "hints_wrapper": Call(
        (
            _graph("body_fn"),
            _operands("args"),
            *(_one_of(name, "a dict", *_DICTS) for name in ("kwargs", "hints")),
        ),
        takes={"body_fn": _of("args")},
        gives=("body_fn",),
    ),
    "invoke_subgraph": Call(
        (_graph("subgraph"), _one_of("identifier", "a text or none", "as_string", "as_none")),
        rest=True,
        takes={"subgraph": _rest},
        gives=("subgraph",),
    ),
    "map_impl": Call(
        (_graph("f"), _operands("xs", filled=True), _operands("args")),
        takes={"f": _of("xs", "args")},
        gives=("f",),
    ),
    "out_dtype": Call(
        (replace(_OPERATOR, texts=OUT_DTYPE_OPERATORS), _one_of("output_dtype", "a dtype", "as_scalar_type")),
        rest=True,
    ),
    "scan": Call(
        (_graph("combine_fn"), _operands("init"), _operands("xs"), _operands("additional_inputs")),
        takes={"combine_fn": _of("init", "xs", "additional_inputs")},
        gives=("combine_fn",),
    ),
    "strict_mode": Call(
        (_graph("callable"), _operands("operands")), takes={"callable": _of("operands")}, gives=("callable",)
    ),
    "tag_activation_checkpoint": Call((_graph("gmod"),), rest=True, keywords=True, takes={"gmod": _rest}),
    "while_loop": _LOOP,
    "while_loop_stack_output": _LOOP,
    "with_effects": Call((Parameter("token"), _OPERATOR), rest=True, keywords=True),
    "wrap": _wrapping(),
    "wrap_activation_checkpoint": Call((_graph("function"),), rest=True, keywords=True),
    "wrap_with_autocast": _wrapping(*_AUTOCAST),
    "wrap_with_set_grad_enabled": _wrapping(_one_of("enable_grad", "a boolean", "as_bool")),
}


#: How the functions are called that begin and end a region of autocast.
_REGIONS: Mapping[str, Call] = {
    ENTER_AUTOCAST: Call(_AUTOCAST),
    EXIT_AUTOCAST: Call((_one_of("mode", "none, which stands for the innermost region,", "as_none"),)),
}


def check_region(node: types.Node) -> Iterator[str]:
    """What is wrong with a call that begins or ends a region of autocast."""
    if node.exact_inputs is not None or any(named.name for named in node.inputs):
        yield "expected arguments by position and as they are, found others"
        return
    yield from _match(_REGIONS[node.target], call_arguments(node), _Arguments())
    if [output.type for output in node.outputs] != ["as_none"]:
        yield "expected none as result, found another"


def check_operands(node: types.Node, name: str) -> Iterator[str]:
    """What is wrong with a call of a higher-order operator."""
    call = CALLS.get(name)
    if call is None or (node.exact_inputs is not None and len(node.exact_inputs) != len(node.inputs)):
        return
    arguments = _Arguments()
    problems = list(_match(call, call_arguments(node), arguments))
    if problems:
        yield from problems
        return
    for parameter, count in (call.takes or {}).items():
        graph = _graph_of(node, arguments.given[parameter])
        if graph is None:
            yield f"expected a tuple that ends in a subgraph as {parameter!r}, found another"
            return
        wanted, found = count(arguments), len(graph.graph.inputs)
        if wanted != found:
            yield f"expected {graph.name!r} to take {wanted} operands, found {found} inputs"
    graphs = [arguments.given[parameter].value for parameter in call.gives]
    counts = [_count(graph.graph.outputs) for graph in graphs]
    if len(set(counts)) > 1:
        yield f"expected subgraphs with equally many outputs, found {' and '.join(map(str, counts))}"
    elif counts and counts[0] != _count(node.outputs):
        yield f"expected {_count(node.outputs)} outputs of {graphs[0].name!r}, found {counts[0]}"


def invoked(node: types.Node) -> tuple[str, types.Graph] | None:
    """The identifier and the subgraph of a call of `invoke_subgraph`; None where it has no identifier."""
    arguments = _Arguments()
    for _ in _match(CALLS["invoke_subgraph"], call_arguments(node), arguments):
        return None  # what does not fit is said elsewhere
    identifier, subgraph = arguments.given["identifier"], arguments.given["subgraph"]
    return (identifier.value, subgraph.value.graph) if identifier.type == "as_string" else None


def _match(call: Call, given: Iterable[tuple[str, _Given]], arguments: _Arguments) -> Iterator[str]:
    """Matches what is given with what is taken, as Python does; yields what does not fit."""
    by_name = {parameter.name: parameter for parameter in call.parameters}
    position = 0
    for name, value in given:
        if name == "":
            if position < len(call.parameters):
                name = call.parameters[position].name
            elif not call.rest:
                yield f"expected at most {len(call.parameters)} arguments, found more"
                return
            position += 1
        if name == "":
            arguments.rest.append(value)
        elif name not in by_name:
            if not call.keywords:
                yield f"expected arguments of {', '.join(by_name)}, found {name[:80]!r}"
        elif name in arguments.given:
            yield f"expected each argument once, found {name!r} again"
        else:
            arguments.given[name] = value
    for name, parameter in by_name.items():
        if name not in arguments.given:
            if parameter.required:
                yield f"expected the argument {name!r}, found none"
        elif parameter.members is not None and (found := arguments.given[name].type) not in parameter.members:
            yield f"expected {parameter.what} as {name!r}, found {found}"
        elif parameter.filled and not arguments.length(name):
            yield f"expected at least one operand in {name!r}, found none"
        elif parameter.texts is not None and (text := arguments.given[name].value) not in parameter.texts:
            yield f"expected one of {', '.join(sorted(parameter.texts))} as {name!r}, found {text[:80]!r}"


def _graph_of(node: types.Node, argument: _Given) -> types.GraphArgument | None:
    """A subgraph, or the one at the end of a tuple."""
    if argument.type == "as_graph":
        graph: types.GraphArgument = argument.value
        return graph
    if not argument.value or argument.value[-1].type != "as_subgraph":
        return None
    named = {graph.name: graph for graph in node.subgraphs or ()}
    return named.get(argument.value[-1].as_subgraph)


def _count(outputs: list[types.Argument]) -> int:
    # A list of tensors stands for its members: so older versions of PyTorch wrote tuples.
    return sum(len(output.as_tensors) if output.type == "as_tensors" else 1 for output in outputs)
