"""What guards say of the inputs of their program: that these exist, and are what the guard takes them for.

PyTorch exchanges the paths of inputs in the text of a guard, and runs what comes of that: a path of no input
stays as it is, so that the call ends in a `NameError`. Needs no torch, and computes with constants only.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from .errors import DeserializeError
from .exact_treespecs import parse_exact_treespec
from .generated import types
from .guards import METHODS, full_name, source_text
from .limits import Limits
from .treespecs import SpecNode, parse_treespec

Number = bool | int | float
T = TypeVar("T")  # what stands for an input


@dataclass(frozen=True, slots=True)
class GuardInput:
    """One value that a program is given.

    Attributes:
        number: For a number, the class of it.
        rank: For a tensor, how many dimensions it has.
    """

    number: type[Number] | None = None
    rank: int | None = None


@dataclass(slots=True)
class GuardInputs(Generic[T]):
    """The inputs of a program by the text that a guard has for them, `L['x'][0]`.

    Attributes:
        by_text: What is known of each input, or the input itself.
        opaque: Texts of containers of classes that only their authors can name the contents of.
    """

    by_text: dict[str, T] = field(default_factory=dict)
    opaque: set[str] = field(default_factory=set)


class _Value(NamedTuple):
    """What an expression gives: a number of a class, and which one where no input decides it."""

    sort: type[Number]
    constant: Number | None = None


# -- the inputs of a program ------------------------------------------------------------------------------

_NUMBERED = re.compile(r"(.+)_([0-9]+)", re.DOTALL | re.ASCII)


def guard_inputs(
    names: Sequence[str],
    in_spec: SpecNode,
    leaves: Sequence[T],
    fields: Mapping[str, Sequence[str]],
) -> GuardInputs[T]:
    """The inputs of a program, by the texts that PyTorch looks for in its guards.

    Args:
        names: Of its arguments: those by position, then those by keyword. None stand for `arg_0`, `arg_1` and
            the keywords.
        in_spec: How the arguments nest.
        leaves: What there is in the nest, in its order.
        fields: The fields of named tuples, by the name of the class.

    Example:
        >>> leaf = SpecNode(None, None, (), 1)
        >>> x = SpecNode("builtins.list", None, (leaf, leaf), 2)
        >>> args = SpecNode("builtins.tuple", None, (x,), 2)
        >>> call = SpecNode("builtins.tuple", None, (args, SpecNode("builtins.dict", (), (), 0)), 2)
        >>> list(guard_inputs(["x"], call, [GuardInput(rank=1), GuardInput(number=int)], {}).by_text)
        ["L['x'][0]", "L['x'][1]", "L['flat_args'][0]", "L['flat_args'][1]"]
    """
    found = GuardInputs[T]()
    positional, keywords = in_spec.children
    specs = [*positional.children, *keywords.children]
    names = names or [*(f"arg_{index}" for index in range(len(positional.children))), *keywords.context]
    remaining = iter(leaves)
    for name, spec in zip(names, specs, strict=True):
        texts = [f"L[{name!r}]"]
        if numbered := _NUMBERED.fullmatch(name):  # of `*args`: PyTorch knows both spellings
            texts.append(f"L[{numbered[1]!r}][{int(numbered[2])}]")
        values = list(islice(remaining, spec.leaf_count))
        for text in texts:
            _walk(found, text, spec, iter(values), fields)
    for index, leaf in enumerate(leaves):
        found.by_text[f"L['flat_args'][{index}]"] = leaf
    return found


def program_inputs(module: types.GraphModule, leaves: Sequence[T], limits: Limits) -> GuardInputs[T]:
    """The inputs of a program that is otherwise sound, as `guard_inputs` gives them.

    Args:
        module: The program's.
        leaves: What stands for each input that a caller passes, in the order of the graph's.
        limits: Bounds on the tree spec of the arguments.
    """
    signature = module.module_call_graph[0].signature
    assert signature is not None  # else the program were not sound
    exact = signature.exact_in_spec
    in_spec = (
        parse_treespec(signature.in_spec, limits) if exact is None else parse_exact_treespec(exact, limits)
    )
    fields = {name: item.field_names for name, item in module.treespec_namedtuple_fields.items()}
    return guard_inputs(signature.forward_arg_names or [], in_spec, leaves, fields)


def _walk(
    found: GuardInputs[T],
    text: str,
    spec: SpecNode,
    leaves: Iterator[T],
    fields: Mapping[str, Sequence[str]],
) -> None:
    if spec.type is None:
        found.by_text[text] = next(leaves)
        return
    steps = _steps(spec, fields)
    if steps is None:
        found.opaque.add(text)
        for _ in range(spec.leaf_count):
            next(leaves)
        return
    for step, child in zip(steps, spec.children, strict=True):
        _walk(found, text + step, child, leaves, fields)


_SEQUENCES = frozenset(
    """
    builtins.tuple builtins.list collections.deque torch.Size torch.fx.immutable_collections.immutable_list
    """.split()
)
_MAPPINGS: Mapping[str, Callable[[Any], Sequence[Any]]] = {
    "builtins.dict": lambda context: context,
    "collections.OrderedDict": lambda context: context,
    "collections.defaultdict": lambda context: context[1],
    "torch.fx.immutable_collections.immutable_dict": lambda context: context,
}


def _steps(spec: SpecNode, fields: Mapping[str, Sequence[str]]) -> list[str] | None:
    """How the children of a container are named in a text; None where nobody can tell."""
    count = len(spec.children)
    if spec.type in _SEQUENCES:
        return [f"[{index}]" for index in range(count)]
    if (keys := _MAPPINGS.get(spec.type or "")) is not None:
        return [f"[{key!r}]" for key in keys(spec.context)]
    if spec.type == "collections.namedtuple" and len(names := fields.get(spec.context, ())) == count:
        return [f".{name}" for name in names]
    return None


# -- what a guard computes --------------------------------------------------------------------------------

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}
_DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod)
_OF_INTEGERS = (ast.FloorDiv, ast.BitAnd, ast.BitOr, ast.BitXor)


@dataclass(frozen=True, slots=True)
class _Function:
    """A function that guards call.

    Attributes:
        least: How many arguments it takes at least.
        most: How many at most.
        sort: The class of what it gives; None for that of its arguments together.
        compute: What it gives for constants; None for what is not computed here.
        conditions: How many arguments are conditions, the first of all; the others are numbers.
    """

    least: int
    most: int
    sort: type[Number] | None
    compute: Callable[..., Any] | None = None
    conditions: int = 0


_MANY = 1 << 16
_MATH = "sqrt exp log log2 sin cos tan sinh cosh tanh asin acos atan asinh".split()
_FUNCTIONS: Mapping[str, _Function] = {
    "max": _Function(2, _MANY, None, max),
    "min": _Function(2, _MANY, None, min),
    "abs": _Function(1, 1, None, abs),
    "round": _Function(1, 2, None, round),
    "IsNonOverlappingAndDenseIndicator": _Function(2, _MANY, int),
    **{f"math.{name}": _Function(1, 1, int, getattr(math, name)) for name in ("floor", "ceil", "trunc")},
    **{f"math.{name}": _Function(1, 1, float, getattr(math, name)) for name in _MATH},
    "math.log": _Function(1, 2, float, math.log),
    "math.isnan": _Function(1, 1, bool, math.isnan),
    "torch.sym_float": _Function(1, 1, float, float),
    "torch.sym_int": _Function(1, 1, int, int),
    "torch.sym_max": _Function(2, 2, None, max),
    "torch.sym_min": _Function(2, 2, None, min),
    "torch.sym_not": _Function(1, 1, bool, operator.not_, conditions=1),
    "torch.sym_ite": _Function(3, 3, None, lambda test, yes, no: yes if test else no, conditions=1),
    "torch.sym_sqrt": _Function(1, 1, float, math.sqrt),
    "torch._sym_sqrt": _Function(1, 1, float, math.sqrt),
}
_NUMBER_OF_ARGUMENTS = {
    (1, 1): "one argument",
    (1, 2): "one or two arguments",
    (2, 2): "two arguments",
    (3, 3): "three arguments",
    (2, _MANY): "two arguments or more",
}


def check_guard_inputs(text: str, inputs: GuardInputs[GuardInput]) -> None:
    """Check that a guard is a condition on inputs that there are.

    Args:
        text: A guard that `check_guard` accepts.
        inputs: The inputs of its program.

    Raises:
        DeserializeError: It names no input, or takes one for what it is not, or calls a function with too few
            or too many numbers, or cannot be computed whatever the inputs are, or is no condition. Python
            computes with conditions as with numbers, exporters do not, and no pass could go on with that.

    Example:
        >>> x = GuardInputs({"L['x']": GuardInput(rank=2)})
        >>> check_guard_inputs("L['x'].size()[1] % 3 == 0", x)
        >>> check_guard_inputs("L['y'].size()[1] % 3 == 0", x)
        Traceback (most recent call last):
        ...
        pt2wire.errors.DeserializeError: column 1: expected an input of the program, found "L['y']"
    """
    node = ast.parse(text.strip(" \t"), mode="eval").body
    _Reader(inputs).condition(node)


def _wrong(node: ast.expr, expected: str, found: str) -> DeserializeError:
    return DeserializeError(f"expected {expected}, found {found}", path=f"column {node.col_offset + 1}")


def _shown(node: ast.expr) -> str:
    return repr(ast.unparse(node))[:80]


class _Reader:
    """Reads the guards of a program whose inputs it knows."""

    def __init__(self, inputs: GuardInputs[GuardInput]) -> None:
        self._inputs = inputs

    def condition(self, node: ast.expr) -> _Value:
        """What a condition gives."""
        value = self._value(node)
        if value.sort is not bool:
            raise _wrong(node, "a condition", _shown(node))
        return value

    def _number(self, node: ast.expr) -> _Value:
        value = self._value(node)
        if value.sort is bool:
            raise _wrong(node, "a number", f"{_shown(node)}, which is a condition")
        return value

    def _value(self, node: ast.expr) -> _Value:
        match node:
            case ast.Constant(value=bool() | int() | float() as constant):
                return _Value(type(constant), constant)
            case ast.Attribute(value=ast.Name(id="math"), attr=name):
                return _Value(float, getattr(math, name))
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(node, op, self._number(left), self._number(right))
            case ast.UnaryOp(op=op, operand=operand):
                value = self.condition(operand) if isinstance(op, ast.Not) else self._number(operand)
                return self._computed(node, value.sort, _UNARY[type(op)], [value])
            case ast.BoolOp(values=values):
                for part in values:
                    self.condition(part)
                return _Value(bool)
            case ast.Compare(left=left, comparators=comparators):
                for side in (left, *comparators):
                    self._number(side)
                return _Value(bool)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.condition(test)
                return _Value(_joined([self._number(body).sort, self._number(orelse).sort]))
            case ast.Call(func=func, args=[_, *_] | [] as args) if (name := full_name(func)) in _FUNCTIONS:
                return self._call(node, _FUNCTIONS[name], name, args)
            case _:
                return self._of_input(node)

    def _binary(self, node: ast.expr, op: ast.operator, left: _Value, right: _Value) -> _Value:
        sort = _joined([left.sort, right.sort])
        if isinstance(op, _OF_INTEGERS) and sort is float:
            raise _wrong(node, "integers", _shown(node))
        if isinstance(op, _DIVISIONS) and right.constant == 0:
            raise _wrong(node, "a divisor other than zero", _shown(node))
        return self._computed(
            node, float if isinstance(op, ast.Div) else sort, _BINARY[type(op)], [left, right]
        )

    def _call(self, node: ast.expr, function: _Function, name: str, parts: Sequence[ast.expr]) -> _Value:
        least, most = function.least, function.most
        if not least <= len(parts) <= most:
            raise _wrong(node, f"{_NUMBER_OF_ARGUMENTS[least, most]} for {name}", str(len(parts)))
        conditions = [self.condition(part) for part in parts[: function.conditions]]
        numbers = [self._number(part) for part in parts[function.conditions :]]
        sorts = [number.sort for number in numbers]
        if name == "torch.sym_ite" and len(set(sorts)) > 1:
            raise _wrong(node, "two numbers of one class", _shown(node))
        return self._computed(node, function.sort or _joined(sorts), function.compute, conditions + numbers)

    def _computed(
        self, node: ast.expr, sort: type[Number], compute: Callable[..., Any] | None, arguments: list[_Value]
    ) -> _Value:
        constants = [argument.constant for argument in arguments]
        if compute is None or None in constants:
            return _Value(sort)
        try:
            constant = compute(*constants)
        except (ArithmeticError, ValueError, TypeError) as error:
            raise _wrong(node, "what can be computed", f"{_shown(node)}: {error}") from error
        if isinstance(constant, complex):
            raise _wrong(node, "a real number", _shown(node))
        return _Value(type(constant), constant)

    def _of_input(self, node: ast.expr) -> _Value:
        """A number that an input is, or that a tensor says of itself."""
        match node:
            case ast.Subscript(value=ast.Call(func=ast.Attribute(attr=method, value=source)), slice=index):
                rank = self._tensor(source).rank
                at = _integer(index)
                if method not in ("size", "stride") or at is None:
                    raise _wrong(node, "a size or stride of a tensor", _shown(node))
                if rank is not None and not -rank <= at < rank:
                    raise _wrong(node, f"one of {rank} dimensions", _shown(node))
                return _Value(int)
            case ast.Call(func=ast.Attribute(attr=method, value=source)) if method in METHODS:
                tensor = self._tensor(source)
                if method in ("size", "stride"):
                    raise _wrong(node, "one size or stride", f"all of {_shown(node)}")
                if method == "item" and tensor.rank:
                    raise _wrong(node, "a tensor without dimensions", _shown(source))
                return _Value(float if method == "item" else int)
        found = self._input(node)
        if found is not None and found.number is None:
            raise _wrong(node, "a number", f"{_shown(node)}, which is {_kind(found)}")
        return _Value(int if found is None else found.number or int)

    def _tensor(self, node: ast.expr) -> GuardInput:
        found = self._input(node)
        if found is not None and found.rank is None:
            raise _wrong(node, "a tensor", f"{_shown(node)}, which is {_kind(found)}")
        return found or GuardInput()

    def _input(self, node: ast.expr) -> GuardInput | None:
        """The input of an expression; None for what is in a container that nobody can look into."""
        text = source_text(node)
        found = self._inputs.by_text.get(text)
        if found is None and not any(text.startswith(prefix) for prefix in self._inputs.opaque):
            raise _wrong(node, "an input of the program", _shown(node))
        return found


def _integer(node: ast.expr) -> int | None:
    """The integer of an index, or None for another key."""
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.UnaryOp(operand=ast.Constant(value=int() as number)):
            return -number
    return None


def _kind(found: GuardInput) -> str:
    if found.number is not None:
        return {int: "an integer", float: "a float", bool: "a boolean"}[found.number]
    return "neither a tensor nor a number" if found.rank is None else "a tensor"


def _joined(sorts: Sequence[type[Number]]) -> type[Number]:
    """The class of what numbers of some classes give together."""
    return float if float in sorts else int
