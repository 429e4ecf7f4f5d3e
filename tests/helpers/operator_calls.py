"""Calls of PyTorch's operators to change: those that its own tests make, and ones made up from a schema.

`torch.testing` needs the package expecttest, which nothing else of ours does.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import warnings
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only


class Call(NamedTuple):
    """Arguments of an operator, by name."""

    arguments: Mapping[str, Any]

    def copy(self) -> dict[str, Any]:
        """The arguments with tensors of their own, for an operator may write to them."""
        return {name: tree_map_only(Tensor, _copied, value) for name, value in self.arguments.items()}


_SAMPLES = 12  # of each operator of the tests
_COMPOSED = 3  # of these, for which operators that consist of others are looked for
_VARIANTS = 3  # of these, with which other spellings of the operator are called: methods, in place, aliases
_MODULES = 6  # of each module, in training and not
_CALLS = 4  # of each overload
_DONORS = 8  # calls that an overload may borrow
_DTYPES_OF_SAMPLES = (torch.float32, torch.int64)


def overloads() -> dict[str, OpOverload]:
    """All operators of the dispatcher, by name as `Node.target` has it, without `torch.ops.`."""
    found = {}
    for text in sorted(torch._C._dispatch_get_all_op_names()):
        packet, _, overload = text.partition(".")
        namespace, _, name = packet.partition("::")
        overload = overload or "default"
        found[f"{namespace}.{name}.{overload}"] = getattr(
            getattr(getattr(torch.ops, namespace), name), overload
        )
    return found


def sampled() -> dict[str, list[Call]]:
    """Calls that the samples of PyTorch's own tests lead to, forward and backward; a few of each operator."""
    recorder = _Recorder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for function, sample, composed in itertools.chain(_of_operators(), _of_lists(), _of_references()):
            _run(recorder, function, (sample.input, *sample.args), sample.kwargs, composed=composed)
        for module, forward, composed in _of_modules():
            _run(recorder, module, forward.args, forward.kwargs, composed=composed)
    return recorder.calls


def _of_operators() -> Iterator[tuple[Callable[..., Any], Any, bool]]:
    """Functions with samples, and whether what consists of others is looked for."""
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        spellings = [op.inplace_variant, op.method_variant]
        for alias in op.aliases:
            spellings += [alias.op, alias.inplace_variant, alias.method_variant]
        for dtype in filter(lambda dtype: op.supports_dtype(dtype, "cpu"), _DTYPES_OF_SAMPLES):
            needs_grad = dtype.is_floating_point and op.supports_autograd
            samples = _few(op.sample_inputs("cpu", dtype, requires_grad=needs_grad), _SAMPLES)
            for number, sample in enumerate(samples):
                yield op.op, sample, number < _COMPOSED
            for spelling in filter(None, spellings):
                for sample in _few(op.sample_inputs("cpu", dtype), _VARIANTS):
                    yield spelling, sample, True


def _few(samples: Iterable[Any], number: int) -> list[Any]:
    """The first of them. What makes them is ended here, else that would happen within what is traced then."""
    few = list(itertools.islice(samples, number))
    if isinstance(samples, Generator):
        samples.close()
    return few


def _of_lists() -> Iterator[tuple[Callable[..., Any], Any, bool]]:
    """The same for operators on lists of tensors."""
    from torch.testing._internal import common_methods_invocations as tests

    kinds = ("unary", "binary", "pointwise", "reduce", "other")
    for op in itertools.chain.from_iterable(getattr(tests, f"foreach_{kind}_op_db") for kind in kinds):
        for dtype in _DTYPES_OF_SAMPLES:
            for spelling in filter(None, (op.op, op.inplace_variant)):
                samples = op.sample_inputs("cpu", dtype, noncontiguous=False, num_input_tensors=[2])
                yield from ((spelling, sample, False) for sample in _few(samples, _SAMPLES))


def _of_references() -> Iterator[tuple[Callable[..., Any], Any, bool]]:
    """The same for what PyTorch has written in Python, of operators of `prims`."""
    from torch.testing._internal.common_methods_invocations import python_ref_db

    for op in python_ref_db:
        for dtype in filter(lambda dtype: op.supports_dtype(dtype, "cpu"), _DTYPES_OF_SAMPLES):
            for sample in _few(op.sample_inputs("cpu", dtype), _VARIANTS):
                yield op.op, sample, False


def _of_modules() -> Iterator[tuple[torch.nn.Module, Any, bool]]:
    """Modules with what they are called with."""
    from torch.testing._internal.common_modules import module_db

    for info, training in itertools.product(module_db, (True, False)):
        options = {"device": "cpu", "dtype": torch.float32, "requires_grad": True, "training": training}
        with contextlib.suppress(Exception):  # some need what is not installed
            samples = info.module_inputs_func(info, **options)
            for number, sample in enumerate(_few(samples, _MODULES)):
                made = sample.constructor_input
                module = info.module_cls(*made.args, **made.kwargs).train(training)
                if sample.forward_input is not None:
                    yield module, sample.forward_input, number < _COMPOSED


def _run(
    recorder: _Recorder, function: Callable[..., Any], args: Any, kwargs: Any, *, composed: bool
) -> None:
    try:
        with recorder:
            outputs = [leaf for leaf in tree_leaves(function(*args, **kwargs)) if isinstance(leaf, Tensor)]
            if graded := [output for output in outputs if output.requires_grad]:
                torch.autograd.backward(graded, [torch.ones_like(output) for output in graded])
        if composed:  # what the dispatcher takes apart before a mode sees it
            detached = tree_map_only(Tensor, _copied, (args, kwargs))
            graph = make_fx(lambda a, k: function(*a, **k), pre_dispatch=True)(*detached)
            _Interpreter(graph, recorder).run(*tree_leaves(detached))
    except Exception:  # some samples are of operators that cannot be traced: the others do
        return


class _Recorder(TorchDispatchMode):
    """Remembers a few calls of each operator."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[str, list[Call]] = defaultdict(list)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.note(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))

    def note(self, function: Any, args: Any, kwargs: Any) -> None:
        calls = self.calls[str(function)]
        if len(calls) < _CALLS:
            names = [argument.name for argument in function._schema.arguments]
            calls.append(Call(Call(dict(zip(names, args, strict=False)) | dict(kwargs)).copy()))


class _Interpreter(torch.fx.Interpreter):
    def __init__(self, graph: torch.fx.GraphModule, recorder: _Recorder) -> None:
        super().__init__(graph)
        self.recorder = recorder

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(target, OpOverload):
            self.recorder.note(target, args, kwargs)
        return super().call_function(target, args, kwargs)


def _copied(tensor: Tensor) -> Tensor:
    return tensor.detach().clone()


# -- made up ----------------------------------------------------------------------------------------------

_SHAPES = ((4,), (4, 4), (2, 3, 4), (2, 3, 4, 4), (2, 3, 4, 4, 4), ())
_DTYPES = (torch.float32, torch.float32, torch.float32, torch.int64, torch.int32, torch.bool, torch.uint8)

_MADE: dict[str, Callable[[random.Random], Any]] = {
    "Tensor": lambda chance: _tensor(chance),
    "int": lambda chance: chance.choice((0, 1, 2, 3, -1)),
    "float": lambda chance: chance.choice((0.5, 1.0, 0.0)),
    "number": lambda chance: chance.choice((1, 2.0, True)),
    "bool": lambda chance: chance.random() < 0.5,
    "str": lambda chance: chance.choice(("sum", "mean", "none", "reflect", "linear", "cpu", "0")),
    "ScalarType": lambda chance: chance.choice(_DTYPES),
    "Device": lambda chance: torch.device("cpu"),
    "Layout": lambda chance: torch.strided,
    "MemoryFormat": lambda chance: torch.contiguous_format,
}


def _tensor(chance: random.Random) -> Tensor:
    shape, dtype = chance.choice(_SHAPES), chance.choice(_DTYPES)
    return torch.randn(shape) if dtype.is_floating_point else torch.randint(0, 2, shape).to(dtype)


def made_up(operator: OpOverload, chance: random.Random) -> Iterator[Call]:
    """Calls by the schema alone, without end: most are refused."""
    while True:
        arguments = {}
        for argument in operator._schema.arguments:
            if argument.has_default_value() and chance.random() < 0.7:
                continue
            arguments[argument.name] = _made(str(argument.real_type), chance)
        yield Call(arguments)


def _made(kind: str, chance: random.Random) -> Any:
    if kind.startswith("Optional[") and chance.random() < 0.4:
        return None
    if kind.startswith("Optional["):
        kind = kind.removeprefix("Optional[").removesuffix("]")
    if kind.startswith("List["):
        inner = kind.removeprefix("List[").removesuffix("]")
        return [_made(inner, chance) for _ in range(chance.choice((1, 2, 2, 3)))]
    make = _MADE.get(kind)
    return make(chance) if make else None


# -- borrowed ---------------------------------------------------------------------------------------------


def _kin(packet: str) -> str:
    """What the names of operators that take the same arguments have in common."""
    for prefix in ("_foreach_", "_fused_"):
        packet = packet.removeprefix(prefix)
    packet = packet.strip("_")
    for suffix in ("_copy", "_functional"):
        packet = packet.removesuffix(suffix)
    return packet


def borrowed(
    name: str, operators: Mapping[str, OpOverload], calls: Mapping[str, Sequence[Call]]
) -> list[Call]:
    """Calls of an operator after those of its kin: of other overloads, in place or not, of lists or not."""
    kin, schema = _kin(name.split(".")[1]), operators[name]._schema
    donors = [
        (other, call) for other, found in calls.items() if _kin(other.split(".")[1]) == kin for call in found
    ]
    needed = {argument.name for argument in schema.arguments if not argument.has_default_value()}

    def strangeness(donor: tuple[str, Call]) -> tuple[int, bool]:
        return len(needed - donor[1].arguments.keys()), not name.startswith(donor[0].removesuffix(".default"))

    chance, outputs = random.Random(0), [argument.name for argument in schema.arguments if argument.is_out]
    return [
        Call(_fitted(operators[name], donor, chance) | _results(operators.get(other), donor, outputs))
        for other, donor in sorted(donors, key=strangeness)[:_DONORS]
    ]


def _results(operator: OpOverload | None, call: Call, names: Sequence[str]) -> dict[str, Any]:
    """What a call gives, as that which an overload with `out` writes to."""
    if operator is None or not names:
        return {}
    try:
        results = operator(**call.copy())
    except Exception:  # a call that ends in an error
        return {}
    results = [results] if isinstance(results, Tensor) or len(names) == 1 else list(results)
    return dict(zip(names, results, strict=True)) if len(results) == len(names) else {}


def _fitted(operator: OpOverload, donor: Call, chance: random.Random) -> dict[str, Any]:
    """Arguments of another operator as this one takes them."""
    arguments = {}
    for argument in operator._schema.arguments:
        kind = str(argument.real_type)
        if argument.name in donor.arguments:
            value = donor.arguments[argument.name]
            one_of_many = kind == "List[Tensor]" and isinstance(value, Tensor)
            arguments[argument.name] = [value, value] if one_of_many else value
        elif not argument.has_default_value():
            arguments[argument.name] = torch.empty(0) if argument.is_out else _made(kind, chance)
    return arguments
