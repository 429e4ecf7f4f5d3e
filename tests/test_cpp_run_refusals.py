"""What the interpreter in examples/cpp/run refuses, and the numbers it computes."""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from pt2wire.denied_operators import DENIED_NAMESPACES, DENIED_OPERATORS
from pt2wire.generated import types
from pt2wire.operators import SYMBOLIC_FUNCTIONS

from .helpers import cpp
from .helpers.cpp_run import edited, run_all, save_linear

# The tests share what was compiled.
pytestmark = pytest.mark.xdist_group("cpp_run")


@pytest.fixture(scope="module")
def linear(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_linear(tmp_path_factory.mktemp("linear"))


# -- programs that cannot be run ---------------------------------------------------------------------------

Edit = Callable[[types.GraphModule], None]


def _node(number: int, **changes: Any) -> Edit:
    """Changes fields of a node."""

    def edit(module: types.GraphModule) -> None:
        for name, value in changes.items():
            setattr(module.graph.nodes[number], name, value)

    return edit


def _input(number: int, position: int, **changes: Any) -> Edit:
    """Changes an argument of a node."""

    def edit(module: types.GraphModule) -> None:
        for name, value in changes.items():
            setattr(module.graph.nodes[number].inputs[position], name, value)

    return edit


def _argument(**member: Any) -> types.Argument:
    return types.Argument.create(**member)


def _drop(number: int) -> Edit:
    return lambda module: module.graph.nodes[number].inputs.pop()


def _rename_parameter(module: types.GraphModule) -> None:
    spec = next(spec for spec in module.signature.input_specs if spec.type == "parameter")
    spec.parameter.parameter_name = "nowhere"


def _token_input(module: types.GraphModule) -> None:
    token = types.InputTokenSpec(arg=types.TokenArgument(name="token"))
    module.signature.input_specs[0] = types.InputSpec.create(token=token)


def _gradient_output(module: types.GraphModule) -> None:
    name = module.graph.outputs[0].as_tensor
    gradient = types.GradientToParameterSpec(arg=name, parameter_name="weight")
    module.signature.output_specs[0] = types.OutputSpec.create(gradient_to_parameter=gradient)


def _unknown_function_in_a_size(module: types.GraphModule) -> None:
    size = module.graph.tensor_values["x"].sizes[0]
    size.as_expr.expr_str = "sin(Symbol('s77', positive=True, integer=True))"


#: An edit of the program of `save_linear`; the place and the reason that it is refused with.
UNSUPPORTED: dict[str, tuple[Edit, str, str]] = {
    "no such operator": (
        _node(1, target="torch.ops.nowhere.linear.default"),
        "nodes[1] linear, torch.ops.nowhere.linear.default",
        "this build of libtorch has no such operator",
    ),
    "no such overload": (
        _node(1, target="torch.ops.aten.linear.other"),
        "nodes[1] linear, torch.ops.aten.linear.other",
        "this build of libtorch has no such operator",
    ),
    "no overload": (
        _node(1, target="torch.ops.aten"),
        "nodes[1] linear, torch.ops.aten",
        "expected torch.ops.NAMESPACE.NAME.OVERLOAD",
    ),
    "denied operator": (
        _node(1, target="torch.ops.aten.from_file.default"),
        "nodes[1] linear, torch.ops.aten.from_file.default",
        "programs may not call this operator: it reaches outside of the program, or does not check its "
        "arguments",
    ),
    "no such function": (
        _node(1, target="os.system"),
        "nodes[1] linear, os.system",
        "there is no such function in this example",
    ),
    "higher-order operator": (
        _node(1, target="torch.ops.higher_order.flex_attention"),
        "nodes[1] linear, torch.ops.higher_order.flex_attention",
        "there is no such higher-order operator in this example",
    ),
    "arguments of a function": (
        _node(1, target="_operator.neg"),
        "nodes[1] linear, _operator.neg",
        "expected 1 arguments, found 3",
    ),
    "no subgraph": (
        _node(1, target="torch.ops.higher_order.cond"),
        "nodes[1] linear, torch.ops.higher_order.cond",
        "expected 2 subgraphs, found 0",
    ),
    "tens": (
        _node(
            1,
            target="builtins.round",
            inputs=[
                types.NamedArgument(
                    name="", arg=_argument(as_float=26.5), kind=types.ArgumentKind.POSITIONAL
                ),
                types.NamedArgument(name="", arg=_argument(as_int=-1), kind=types.ArgumentKind.POSITIONAL),
            ],
        ),
        "nodes[1] linear, builtins.round",
        "rounding to tens is not supported",
    ),
    "argument missing": (
        _drop(0),
        "nodes[0] sym_size_int_1, torch.ops.aten.sym_size.int",
        "the argument dim is missing",
    ),
    "argument of another name": (
        _input(0, 1, name="dimension"),
        "nodes[0] sym_size_int_1, torch.ops.aten.sym_size.int",
        'the operator has no argument "dimension"',
    ),
    "argument of another type": (
        _input(0, 1, arg=_argument(as_string="0")),
        "nodes[0] sym_size_int_1, torch.ops.aten.sym_size.int",
        "the argument dim: expected int, found String",
    ),
    "argument of an unsupported kind": (
        _input(0, 1, arg=_argument(as_operator="torch.ops.aten.add.Tensor")),
        "nodes[0] sym_size_int_1, torch.ops.aten.sym_size.int",
        "the argument dim: arguments of kind as_operator are not supported",
    ),
    "device": (
        _input(0, 1, arg=_argument(as_device=types.Device(type="xla", index=3))),
        "nodes[0] sym_size_int_1, torch.ops.aten.sym_size.int",
        'the argument dim: the device "xla:3" is not there in this build of libtorch',
    ),
    "value that is not there": (
        _input(1, 0, arg=_argument(as_tensor=types.TensorArgument(name="nothing"))),
        "nodes[1] linear, torch.ops.aten.linear.default",
        'the argument input: no value called "nothing" has been made at this point',
    ),
    "name of another value": (
        _node(2, outputs=[_argument(as_tensor=types.TensorArgument(name="linear"))]),
        "nodes[2] add, torch.ops.aten.add.Tensor",
        'the name "linear" is given to two values',
    ),
    "weight that is not there": (_rename_parameter, "input 0", 'the archive has no tensor "nowhere"'),
    "token": (_token_input, "input 0", "inputs of kind token are not supported"),
    "gradient": (_gradient_output, "output 0", "outputs of kind gradient_to_parameter are not supported"),
    "size": (
        _unknown_function_in_a_size,
        "input 2",
        'expressions with "sin" are not supported as sizes of inputs',
    ),
}


def test_what_cannot_be_run_is_named(linear: Path, tmp_path: Path) -> None:
    calls = []
    for name, (edit, _, _) in UNSUPPORTED.items():
        changed = edited(tmp_path / f"{name}.pt2", linear / "model.pt2", edit)
        calls.append([changed, linear / "inputs.pt", tmp_path / "out.pt"])
    answers = dict(zip(UNSUPPORTED, run_all(calls), strict=True))
    for name, (_, place, reason) in UNSUPPORTED.items():
        first, *lines = answers[name].split("\\n  ")
        assert first == "this program cannot be run:", (name, first)
        assert f"{place}: {reason}" in lines, (name, lines)
    assert not (tmp_path / "out.pt").exists()


# -- functions on numbers ----------------------------------------------------------------------------------

_ONE, _TWO = (
    ("neg", "pos", "abs"),
    ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift"),
)
_RELATIONS = ("eq", "ne", "lt", "le", "gt", "ge", "and_", "or_")
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{f"_operator.{name}": getattr(operator, name) for name in _ONE + _TWO + _RELATIONS},
    **{f"math.{name}": getattr(math, name) for name in ("trunc", "floor", "ceil")},
    **{f"torch.{name}": getattr(torch, name) for name in ("sym_float", "sym_int", "sym_max", "sym_min")},
    "builtins.round": round,
    **{f"torch.{name}": getattr(torch, name) for name in ("sym_not", "sym_ite", "sym_sum", "_sym_sqrt")},
}

_NUMBERS = (
    *(-7, -2, -1, 0, 1, 2, 3, 10, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)),
    *(-2.5, -0.5, -0.0, 0.5, 2.0, 7.25, 2.0**53, 2.0**63, 1e300, 5e-324, math.inf, -math.inf, math.nan),
)
_OPERANDS: dict[str, Sequence[tuple[Any, ...]]] = {
    **{
        target: list(itertools.product(_NUMBERS, repeat=len(function.parameters)))
        for target, function in SYMBOLIC_FUNCTIONS.items()
        if len(function.parameters) < 3
    },
    "_operator.and_": [(3, 6), (0, 5), (True, False), (True, True)],
    "_operator.or_": [(3, 6), (0, 5), (True, False), (False, False)],
    "torch.sym_not": [(True,), (False,)],
    "torch.sym_ite": [(True, 2, 3), (False, 2.5, 3.5)],
    "builtins.round": [
        *((number,) for number in _NUMBERS),
        *itertools.product((*_NUMBERS, 0.125, 1.005, -2.675, 1e22), (0, 1, 2, 20, 2**62)),
    ],
    "torch.sym_sum": [((1, 2, 3),), ((-5, 4),)],
}


def _constant(value: Any) -> types.Argument:
    member = {bool: "as_bool", int: "as_int", float: "as_float", tuple: "as_ints"}[type(value)]
    return types.Argument.create(**{member: list(value) if member == "as_ints" else value})


def _call(target: str, operands: Sequence[Any], name: str, result: type) -> types.Node:
    """A node that calls a function on constants, for a result of some type."""
    symbols = {
        bool: ("as_sym_bool", types.SymBoolArgument),
        int: ("as_sym_int", types.SymIntArgument),
        float: ("as_sym_float", types.SymFloatArgument),
    }
    member, symbol = symbols[result]
    parameters = SYMBOLIC_FUNCTIONS[target].parameters
    return types.Node(
        target=target,
        inputs=[
            types.NamedArgument(name=parameter, arg=_constant(operand))
            for parameter, operand in zip(parameters, operands, strict=False)
        ],
        outputs=[types.Argument.create(**{member: symbol.create(as_name=name)})],
        metadata={},
    )


def _calling(nodes: Sequence[types.Node]) -> Edit:
    """Makes a program of these nodes, which gives all that they compute."""

    def edit(module: types.GraphModule) -> None:
        outputs = [node.outputs[0] for node in nodes]
        module.graph.nodes, module.graph.outputs = list(nodes), outputs
        module.signature.output_specs = [
            types.OutputSpec.create(user_output=types.UserOutputSpec(arg=output)) for output in outputs
        ]

    return edit


def _attempt(target: str, operands: Sequence[Any]) -> Any:
    """What Python computes, or None if that is no number of 64 bits."""
    if target in ("_operator.pow", "_operator.lshift") and isinstance(operands[1], int) and operands[1] > 64:
        return None  # Python would compute it, however long that takes
    try:
        result = FUNCTIONS[target](*operands)
    except (ArithmeticError, TypeError, ValueError):
        return None
    fits = type(result) is float or (isinstance(result, int) and -(2**63) <= result < 2**63)
    return result if fits else None


def test_functions_on_numbers_compute_what_python_computes(linear: Path, tmp_path: Path) -> None:
    assert FUNCTIONS.keys() == SYMBOLIC_FUNCTIONS.keys()
    calls = [(target, operands) for target in FUNCTIONS for operands in _OPERANDS[target]]
    fine = [(call, result) for call in calls if (result := _attempt(*call)) is not None]
    nodes = [
        _call(target, operands, f"v{number}", type(result))
        for number, ((target, operands), result) in enumerate(fine)
    ]
    model = edited(tmp_path / "model.pt2", linear / "model.pt2", _calling(nodes))
    assert run_all([[model, linear / "inputs.pt", tmp_path / "out.pt"]]) == ["ok"]
    outputs = torch.load(tmp_path / "out.pt", weights_only=True)[0]
    wrong = [
        (target, operands, result, output)
        for ((target, operands), result), output in zip(fine, outputs, strict=True)
        if repr(result) != repr(output)  # types and the sign of zero count
    ]
    assert not wrong
    assert len(fine) > 2500


NO_NUMBER = {
    "sum": ("_operator.add", (2**63 - 1, 1), "an integer exceeds 64 bits"),
    "difference": ("_operator.sub", (-(2**63), 1), "an integer exceeds 64 bits"),
    "product": ("_operator.mul", (2**62, 2), "an integer exceeds 64 bits"),
    "power": ("_operator.pow", (2, 63), "an integer exceeds 64 bits"),
    "shift": ("_operator.lshift", (1, 63), "an integer exceeds 64 bits"),
    "shift of a float": ("_operator.rshift", (1.0, 2), "expected integers to shift"),
    "shift back": (
        "_operator.rshift",
        (1, -1),
        "expected a count of bits to shift by, found a negative number",
    ),
    "least integer negated": ("_operator.neg", (-(2**63),), "an integer exceeds 64 bits"),
    "least integer divided": ("_operator.floordiv", (-(2**63), -1), "an integer exceeds 64 bits"),
    "division": ("_operator.truediv", (1, 0), "division by zero"),
    "floor division": ("_operator.floordiv", (1, 0), "division by zero"),
    "remainder": ("_operator.mod", (1.5, 0.0), "division by zero"),
    "root of a negative number": (
        "torch._sym_sqrt",
        (-1,),
        "expected a number of at least 0, found -1.000000",
    ),
    "power of a negative number": ("_operator.pow", (-2.0, 0.5), "a power is no real number"),
    "infinity": ("math.trunc", (float("inf"),), "a number is too large for an integer of 64 bits"),
}


def test_numbers_that_do_not_exist_are_errors(linear: Path, tmp_path: Path) -> None:
    calls = []
    for name, (target, operands, _) in NO_NUMBER.items():
        edit = _calling([_call(target, operands, "v", int)])
        model = edited(tmp_path / f"{name}.pt2", linear / "model.pt2", edit)
        calls.append([model, linear / "inputs.pt", tmp_path / "out.pt"])
    answers = dict(zip(NO_NUMBER, run_all(calls), strict=True))
    for name, (target, _, message) in NO_NUMBER.items():
        assert answers[name].endswith(f"nodes[0] {target}: {message}"), answers[name]


# -- operators ------------------------------------------------


def test_the_same_operators_are_denied_as_in_python() -> None:
    source = (cpp.ROOT / "examples" / "cpp" / "run" / "operators.h").read_text()
    for name, expected in (("operators", DENIED_OPERATORS), ("namespaces", DENIED_NAMESPACES)):
        table = re.search(rf"denied_{name}\[\] = {{(.*?)}};", source, re.DOTALL)
        assert table
        assert set(re.findall(r'"([^"]+)"', table[1])) == set(expected)
