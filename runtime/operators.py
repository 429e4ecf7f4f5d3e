"""What a node may call: the tables behind `Node.target` and `as_operator`.

A target is text from a file, so it is never followed with getattr. It is one of

* `torch.ops.NAMESPACE.NAME.OVERLOAD`: an operator, looked up in the dispatcher,
* `torch.ops.higher_order.NAME`: a higher-order operator, from `HIGHER_ORDER`,
* a Python function by its full name, from `SYMBOLIC_FUNCTIONS`, `FUNCTORCH_FUNCTIONS` or
  `AUTOCAST_FUNCTIONS`,

or it is refused. The tables hold names only: exporting uses them to name what a node calls, importing to
find it again, validation to judge a target where torch is not installed.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from .denied_operators import DENIED_HIGHER_ORDER, DENIED_NAMESPACES, DENIED_OPERATORS


class TargetKind(enum.Enum):
    """What a node calls."""

    OPERATOR = "operator"
    HIGHER_ORDER = "higher-order operator"
    SYMBOLIC = "symbolic function"
    FUNCTORCH = "functorch function"
    AUTOCAST = "autocast function"
    EXTENSION = "extension"


@dataclass(frozen=True, slots=True)
class Target:
    """A node target taken apart.

    Attributes:
        kind: What it is.
        namespace: The operator's namespace, such as `aten`; `higher_order`; the module of a Python
            function; the namespace of an extension.
        name: The operator's or function's name.
        overload: The operator's overload, `default` for the one without a name; empty for everything else.
    """

    kind: TargetKind
    namespace: str
    name: str
    overload: str = ""

    @property
    def packet(self) -> str:
        """The operator without its overload, as the deny list names it: `aten.set_`."""
        return f"{self.namespace}.{self.name}"


@dataclass(frozen=True, slots=True)
class SymbolicFunction:
    """A Python function over symbolic numbers.

    Attributes:
        parameters: The names that PyTorch writes as `NamedArgument.name`, in order.
        optional: How many parameters at the end may be left out.
        read_by_torch: Whether PyTorch reads it back.
    """

    parameters: tuple[str, ...]
    optional: int = 0
    read_by_torch: bool = True


@dataclass(frozen=True, slots=True)
class FunctorchFunction:
    """A Python function that steers functorch.

    Attributes:
        required: How many arguments it needs.
        optional: How many more it takes.
        results: How many results it has.
        levels: How many levels it puts on functorch's stack. The stack belongs to the process, not to the
            program: a program that leaves a level behind would change what is computed after it.
    """

    required: int
    optional: int = 0
    results: int = 1
    levels: int = 0


def _symbolic_functions() -> dict[str, SymbolicFunction]:
    unary = ("neg", "pos")
    arithmetic = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift")
    relations = ("eq", "ne", "lt", "le", "gt", "ge", "and_", "or_")
    table = {f"_operator.{name}": SymbolicFunction(("a",)) for name in unary}
    table |= {f"_operator.{name}": SymbolicFunction(("a", "b")) for name in arithmetic + relations}
    table |= {
        "math.trunc": SymbolicFunction(("x",)),
        "torch.sym_float": SymbolicFunction(("a",)),
        "torch.sym_int": SymbolicFunction(("a",)),
        "torch.sym_not": SymbolicFunction(("a",)),
        "torch._sym_sqrt": SymbolicFunction(("a",)),
        "torch.sym_max": SymbolicFunction(("a", "b")),
        "torch.sym_min": SymbolicFunction(("a", "b")),
        "torch.sym_ite": SymbolicFunction(("b", "t", "f")),
        "torch.sym_sum": SymbolicFunction(("args",)),
        "_operator.abs": SymbolicFunction(("a",)),
        "math.ceil": SymbolicFunction(("x",)),
        "math.floor": SymbolicFunction(("x",)),
        "builtins.round": SymbolicFunction(("number", "ndigits"), optional=1, read_by_torch=False),
    }
    return table


#: Python functions over symbolic numbers, by the text PyTorch writes as target.
SYMBOLIC_FUNCTIONS: Mapping[str, SymbolicFunction] = MappingProxyType(_symbolic_functions())

#: Functions that `torch.vmap` and `torch.func.jvp` leave in a program exported for training.
FUNCTORCH_FUNCTIONS: Mapping[str, FunctorchFunction] = MappingProxyType(
    {
        f"torch._functorch.predispatch.{name}": function
        for name, function in {
            "lazy_load_decompositions": FunctorchFunction(0),
            "_vmap_increment_nesting": FunctorchFunction(2, levels=1),
            "_vmap_decrement_nesting": FunctorchFunction(0, levels=-1),
            "_add_batch_dim": FunctorchFunction(3),
            "_remove_batch_dim": FunctorchFunction(4),
            "_jvp_increment_nesting": FunctorchFunction(0, levels=1),
            "_jvp_decrement_nesting": FunctorchFunction(0, levels=-1),
            "_enter_dual_level": FunctorchFunction(0, levels=1),
            "_exit_dual_level": FunctorchFunction(1, levels=-1),
            "_make_dual": FunctorchFunction(2, optional=1),
            "_unpack_dual": FunctorchFunction(1, optional=1, results=2),
            "_unwrap_for_grad": FunctorchFunction(2),
        }.items()
    }
)

#: What `torch.autocast` around control flow leaves in a program exported for training, with how many regions
#: each opens. The one that closes a region is given what the other one gave. No value of a graph is that, and
#: none needs to be, since the region is the innermost one.
ENTER_AUTOCAST = "torch.amp.autocast_mode._enter_autocast"
EXIT_AUTOCAST = "torch.amp.autocast_mode._exit_autocast"
AUTOCAST_FUNCTIONS: Mapping[str, int] = MappingProxyType({ENTER_AUTOCAST: 1, EXIT_AUTOCAST: -1})

#: Higher-order operators whose calls need more than the generic form, with what they need: not written yet,
#: nor read. Some are refused when they are read, since they run code that the file brings.
NOT_YET: Mapping[str, str] = MappingProxyType(
    {
        "triton_kernel_wrapper_functional": "Triton kernels",
        "triton_kernel_wrapper_mutation": "Triton kernels",
    }
)

#: Higher-order operators to which a text is more than a text: the name of a method, the format of a print.
OF_TEXTS = frozenset({"call_torchbind", "print"})

#: Higher-order operators that a program may call, with what they do.
HIGHER_ORDER: Mapping[str, str] = MappingProxyType(
    {
        "aoti_call_delegate": "a module lowered by AOTInductor, by its name",
        "associative_scan": "parallel prefix over a subgraph",
        "auto_functionalized": "an operator with side effects, made functional",
        "auto_functionalized_v2": "an operator with side effects on views, made functional",
        "call_torchbind": "a method of a custom object",
        "cond": "one of two subgraphs",
        "executorch_call_delegate": "a module lowered by ExecuTorch's means, by its name",
        "flat_apply": "a function of nested arguments, one of `CALLEES`",
        "flex_attention": "attention with a score subgraph and a mask subgraph",
        "foreach_map": "a subgraph over lists of tensors",
        "hints_wrapper": "a subgraph with hints for a compiler",
        "invoke_subgraph": "a subgraph that is compiled once",
        "map_impl": "a subgraph over the first dimension",
        "out_dtype": "an operator with a wider output dtype",
        "print": "formatted text on the terminal",
        "scan": "a loop that carries state and stacks outputs",
        "strict_mode": "a subgraph traced strictly",
        "tag_activation_checkpoint": "a subgraph that is recomputed in backward",
        "while_loop": "a loop of a condition subgraph and a body subgraph",
        "while_loop_stack_output": "a loop that keeps what every step carried",
        "with_effects": "an operator with side effects, ordered by a token",
        "wrap": "a subgraph",
        "wrap_activation_checkpoint": "a subgraph that is recomputed in backward",
        "wrap_with_autocast": "a subgraph under autocast",
        "wrap_with_set_grad_enabled": "a subgraph with gradients on or off",
    }
)

#: Calls a function of nested arguments; no other node may, nor be given it.
FLAT_APPLY = "torch.ops.higher_order.flat_apply"

#: The functions that `flat_apply` may call. The one calls `apply` of the class that its first argument names:
#: it would import any, see `APPLIED`.
CALLEES = ("torch.export.custom_ops._call_custom_autograd_function_in_pre_dispatch",)

#: The classes that such a call may name.
APPLIED = ("torch._dynamo._trace_wrapped_higher_order_op.ModIndex",)

_ARITHMETIC = "add sub subtract mul multiply div divide true_divide floor_divide copy".split()

#: Operators of `aten` that take a number in place of a tensor. Of other namespaces each may.
NUMBERS_AS_TENSORS: frozenset[str] = frozenset(
    f"aten.{name}{suffix}" for name in _ARITHMETIC for suffix in ("", "_")
) | {"aten.to", "aten._to_copy", "aten._conj"}

_IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]*"
_OPERATOR = re.compile(rf"torch\.ops\.({_IDENTIFIER})\.({_IDENTIFIER})\.({_IDENTIFIER})")
_HIGHER_ORDER = re.compile(rf"torch\.ops\.higher_order\.({_IDENTIFIER})")
_EXTENSION = re.compile(rf"#({_IDENTIFIER}(?:\.{_IDENTIFIER})*):({_IDENTIFIER}(?:\.{_IDENTIFIER})*)")


def parse_target(text: str) -> Target | None:
    """Takes a node target apart; None where it is none of what a node may call.

    That a target parses says nothing of whether it exists or is permitted: see `refusal`.

    Example:
        >>> parse_target("torch.ops.aten.add.Tensor").packet
        'aten.add'
        >>> parse_target("os.system") is None
        True
    """
    if match := _OPERATOR.fullmatch(text):
        namespace, name, overload = match.groups()
        return None if namespace == "higher_order" else Target(TargetKind.OPERATOR, namespace, name, overload)
    if match := _HIGHER_ORDER.fullmatch(text):
        return Target(TargetKind.HIGHER_ORDER, "higher_order", match.group(1))
    for kind, table in (
        (TargetKind.SYMBOLIC, SYMBOLIC_FUNCTIONS),
        (TargetKind.FUNCTORCH, FUNCTORCH_FUNCTIONS),
        (TargetKind.AUTOCAST, AUTOCAST_FUNCTIONS),
    ):
        if text in table:
            module, _, name = text.rpartition(".")
            return Target(kind, module, name)
    if match := _EXTENSION.fullmatch(text):
        return Target(TargetKind.EXTENSION, match.group(1), match.group(2))
    return None


def refusal(target: Target, allowed: Container[str] = ()) -> str | None:
    """Why a program that nobody vouches for may not call a target; None where it may.

    Args:
        target: The target.
        allowed: Operators that the caller allows nevertheless, as `namespace.name`.

    Example:
        >>> refusal(parse_target("torch.ops.aten.from_file.default"))
        'it maps a file of the machine'
        >>> refusal(parse_target("torch.ops.aten.from_file.default"), {"aten.from_file"})
    """
    if target.packet in allowed:
        return None
    if target.kind is TargetKind.OPERATOR:
        names = target.packet, f"{target.packet}.{target.overload}"
        return next(filter(None, map(DENIED_OPERATORS.get, names)), DENIED_NAMESPACES.get(target.namespace))
    if target.kind is TargetKind.HIGHER_ORDER:
        return DENIED_HIGHER_ORDER.get(target.name)
    return None


def allowing(target: Target) -> str:
    """The hint for whoever runs into `refusal` with a file of their own.

    Example:
        >>> allowing(parse_target("torch.ops.aten.from_file.default"))
        "Pass allow_operators=['aten.from_file'] if you trust the author of the file"
    """
    return allowing_packet(target.packet)


def allowing_packet(packet: str) -> str:
    """The hint of `allowing`, of an operator by its name without overload.

    Example:
        >>> allowing_packet("aten.from_file")
        "Pass allow_operators=['aten.from_file'] if you trust the author of the file"
    """
    return allowing_packets([packet])


def allowing_packets(packets: Sequence[str]) -> str:
    """The hint of `allowing`, of several operators.

    Example:
        >>> allowing_packets(["aten.from_file", "aten.set_"])
        "Pass allow_operators=['aten.from_file', 'aten.set_'] if you trust the author of the file"
    """
    return f"{_PASS}[{', '.join(map(repr, packets))}]{_TRUSTED}"


_PASS, _TRUSTED = "Pass allow_operators=", " if you trust the author of the file"
_ALLOWING = re.compile(rf"{_PASS}\['({_IDENTIFIER}\.{_IDENTIFIER})'\]{_TRUSTED}")


def allowed_by(hint: str | None) -> str | None:
    """The operator of a hint of `allowing_packet`; None of other hints.

    Example:
        >>> allowed_by(allowing_packet("aten.from_file"))
        'aten.from_file'
    """
    match = _ALLOWING.fullmatch(hint or "")
    return None if match is None else match.group(1)
