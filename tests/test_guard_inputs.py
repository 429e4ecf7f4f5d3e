"""Guards are conditions on inputs that there are: PyTorch fails at the call to compute what is refused."""

from __future__ import annotations

import contextlib
import functools
from collections import OrderedDict, deque
from typing import Any, NamedTuple

import pt2wire
import pytest
import torch
from pt2wire import DeserializeError
from pt2wire.generated import types
from torch import Tensor, nn, ones
from torch.export import Dim, ExportedProgram


class Pair(NamedTuple):
    first: Tensor
    second: Tensor


torch.utils._pytree._register_namedtuple(Pair, serialized_type_name="pt2wire.tests.PairOfGuards")


class _Model(nn.Module):
    def forward(self, x: Tensor, n: int, *args: Tensor, nest: Any, mode: str) -> Tensor:
        return x * n + args[0].sum() + nest["pair"].first.sum()


def _inputs() -> tuple[tuple[Any, ...], dict[str, Any]]:
    nest = OrderedDict(pair=Pair(ones(3), ones(())), rest=deque([ones(2, 2)]))
    nest["of ints"] = {7: ones(1)}
    return (ones(4, 3), 5, ones(6)), {"nest": nest, "mode": "fast"}


@functools.cache
def _program() -> ExportedProgram:
    args, kwargs = _inputs()
    shapes = {
        "x": {0: Dim("rows", min=2)},
        "n": Dim.DYNAMIC,
        "args": (None,),
        "nest": OrderedDict(
            {"pair": Pair(None, None), "rest": deque([None]), "of ints": {7: None}}  # type: ignore[arg-type]
        ),
        "mode": None,
    }
    return torch.export.export(_Model(), args, kwargs, dynamic_shapes=shapes)


@functools.cache
def _tree() -> types.ExportedProgram:
    return pt2wire.to_tree(_program())


def _with_guard(text: str) -> ExportedProgram:
    ep = _program()
    found = ExportedProgram(
        root=ep.graph_module,
        graph=ep.graph,
        graph_signature=ep.graph_signature,
        state_dict=ep.state_dict,
        range_constraints=ep.range_constraints,
        module_call_graph=ep.module_call_graph,
        example_inputs=ep.example_inputs,
        constants=ep.constants,
        verifiers=ep.verifiers,
    )
    found._guards_code = [text]
    return found


#: Guards that can be computed, whatever comes of them.
_COMPUTED = (
    "L['x'].size()[0] % 2 == 0",
    "L['x'].size()[-2] > 0 and L['x'].stride()[1] == 1",
    "L['flat_args'][0].size()[0] == 4",
    "L['x'].dim() + L['x'].numel() + L['x'].storage_offset() > 0",
    "L['n'] == 5",
    "L['n'] & 1 == 1",
    "L['args'][0].size()[0] == 6",
    "L['args_0'].size()[0] == 6",
    "L['nest']['pair'].first.size()[0] == 3",
    "L['nest']['pair'].second.item() > 0",
    "L['nest']['rest'][0].size()[1] == 2",
    "L['nest']['of ints'][7].size()[0] == 1",
    "IsNonOverlappingAndDenseIndicator(L['x'].size()[0], L['x'].stride()[0]) == 1",
    "torch.sym_ite(L['n'] > 3, 1, 2) == 1",
    "torch.sym_max(L['n'], 2) == 5 or torch.sym_not(L['n'] > 3)",
    "torch._sym_sqrt(L['n']) < 3.0",
    "torch.sym_int(torch.sym_float(L['n']) / 2) == 2",
    "math.log(L['n'], 2) > 1 and not math.isnan(L['n'])",
    "round(L['n'] / 3) == round(L['n'] / 3, 2)",
    "max(1, L['n'], 2) > min(1, 2) and abs(-L['n']) == 5",
    "(1 if L['n'] > 3 else 2) < 2",
    "2 ** L['n'] > L['n'] ** 2 * 1.5 ** 2",
    "True",
    "False",
)

#: Guards that cannot, with what is said of them.
_NOT_COMPUTED = {
    "L['nope'].size()[0] == 3": "expected an input of the program, found \"L['nope']\"",
    "L['x']['k'].size()[0] == 3": "expected an input of the program, found \"L['x']['k']\"",
    "L['x'].first.size()[0] == 3": "expected an input of the program, found \"L['x'].first\"",
    "L['nest'].size()[0] == 3": "expected an input of the program, found \"L['nest']\"",
    "L['nest']['pair'].third.size()[0] == 3": (
        "expected an input of the program, found \"L['nest']['pair'].third\""
    ),
    "L['nest']['of ints'][8].size()[0] == 3": (
        "expected an input of the program, found \"L['nest']['of ints'][8]\""
    ),
    "L['args'][1].size()[0] == 3": "expected an input of the program, found \"L['args'][1]\"",
    "L['flat_args'][99].size()[0] == 3": "expected an input of the program, found \"L['flat_args'][99]\"",
    "L['x'].size()[2] == 3": "expected one of 2 dimensions, found \"L['x'].size()[2]\"",
    "L['x'].stride()[-3] == 3": "expected one of 2 dimensions, found \"L['x'].stride()[-3]\"",
    "L['x'].size()[0][0] == 3": "expected an input of the program, found \"L['x'].size()[0][0]\"",
    "L['x'].size() > 3": "expected one size or stride, found all of \"L['x'].size()\"",
    "L['x'].item() == 3": "expected a tensor without dimensions, found \"L['x']\"",
    "L['x'] > 3": "expected a number, found \"L['x']\", which is a tensor",
    "L['n'].size()[0] == 3": "expected a tensor, found \"L['n']\", which is an integer",
    "L['mode'] > 3": "expected a number, found \"L['mode']\", which is neither a tensor nor a number",
    "max() > 0": "expected two arguments or more for max, found 0",
    "max(1) > 0": "expected two arguments or more for max, found 1",
    "abs(1, 2) > 0": "expected one argument for abs, found 2",
    "math.log(1, 2, 3) > 0": "expected one or two arguments for math.log, found 3",
    "torch.sym_max(1) > 0": "expected two arguments for torch.sym_max, found 1",
    "torch.sym_ite(1) > 0": "expected three arguments for torch.sym_ite, found 1",
    "torch.sym_ite(1, 2, 3) > 0": ("expected a condition, found '1'"),
    "torch.sym_ite(True, 2, 3.5) > 0": (
        "expected two numbers of one class, found 'torch.sym_ite(True, 2, 3.5)'"
    ),
    "1 / 0 > 0": "expected a divisor other than zero, found '1 / 0'",
    "L['n'] % (1 - 1) > 0": "expected a divisor other than zero, found \"L['n'] % (1 - 1)\"",
    "math.sqrt(-1) > 0": "expected what can be computed, found 'math.sqrt(-1)': math domain error",
    "math.floor(math.inf) > 0": (
        "expected what can be computed, found 'math.floor(math.inf)': "
        "cannot convert float infinity to integer"
    ),
    "(-2) ** 0.5 > 0": "expected a real number, found '(-2) ** 0.5'",
    "1.5 & 2 > 0": "expected integers, found '1.5 & 2'",
}

_CONDITION = "L['n'] > 3"
#: Guards that Python computes and sympy does not: no exporter writes them, and no pass could go on with them.
_NOT_EXPRESSED = {
    f"({_CONDITION}) + 1 == 2": "a number",
    f"-({_CONDITION}) == -1": "a number",
    f"({_CONDITION}) == True": "a number",
    f"({_CONDITION}) & ({_CONDITION})": "a number",
    f"abs({_CONDITION}) == 1": "a number",
    f"math.floor(max({_CONDITION}, 1)) == 1": "a number",
    f"(1 if {_CONDITION} else True) == 1": "a number",
    "not L['n']": "a condition",
    f"{_CONDITION} and L['n']": "a condition",
    "torch.sym_not(L['n'])": "a condition",
    "(1 if L['n'] else 2) == 1": "a condition",
    "L['n'] // 0.5 > 1": "integers",
}


@pytest.mark.parametrize("text", _COMPUTED)
def test_what_pytorch_computes_has_no_findings(text: str) -> None:
    args, kwargs = _inputs()
    try:
        _with_guard(text).module()(*args, **kwargs)
    except AssertionError as error:  # how a guard fails
        assert "Guard failed" in str(error)
    assert pt2wire.validate(_changed(text)) == []


@pytest.mark.parametrize("text", _NOT_COMPUTED)
def test_what_pytorch_cannot_compute_is_refused(text: str) -> None:
    args, kwargs = _inputs()
    with pytest.raises(Exception) as failed:  # any, but the failure of a guard
        _with_guard(text).module()(*args, **kwargs)
    assert "Guard failed" not in str(failed.value)
    with pytest.raises(DeserializeError) as refused:
        pt2wire.from_tree(_changed(text), {}, {})
    assert refused.value.path == "guards_code[0]"
    assert refused.value.message.startswith(_NOT_COMPUTED[text] + " (column ")


@pytest.mark.parametrize("text", _NOT_EXPRESSED)
def test_numbers_are_no_conditions_nor_conditions_numbers(text: str) -> None:
    args, kwargs = _inputs()
    with contextlib.suppress(AssertionError):  # how a guard fails
        _with_guard(text).module()(*args, **kwargs)
    (finding,) = pt2wire.validate(_changed(text))
    assert finding.message.startswith(f"expected {_NOT_EXPRESSED[text]}, found ")


def _changed(text: str) -> types.ExportedProgram:
    tree = pt2wire.from_json(pt2wire.to_json(_tree()))
    tree.guards_code = [text]
    return tree


@pytest.mark.parametrize("text", ["3", "L['n']", "L['x'].size()[0]", "1 if L['n'] > 3 else 2"])
def test_a_guard_is_a_condition(text: str) -> None:
    """PyTorch takes what is not zero for true; exporters write no such."""
    (finding,) = pt2wire.validate(_changed(text))
    assert finding.message.startswith("expected a condition, found ")


def test_contents_of_a_class_that_is_registered_are_left_to_it() -> None:
    tree = _changed("L['nest'].anything.size()[0] == 3")
    signature = tree.graph_module.module_call_graph[0].signature
    assert signature is not None
    signature.in_spec = signature.in_spec.replace("collections.OrderedDict", "some.Class")
    # Of the guard nothing is said, of the class that it is not registered here.
    assert [finding.rule for finding in pt2wire.validate(tree)] == ["unknown-class"]


def test_guards_and_inputs_are_bounded_together() -> None:
    tree = _changed("True")
    tree.guards_code = ["L['n'] > 3"] * 100
    (finding,) = pt2wire.validate(tree, limits=pt2wire.Limits(guard_searches=5_000))
    assert (finding.rule, finding.path) == ("guard", "guards_code")
    assert "found 1000 times 8. Raise `guard_searches`" in str(finding.error())
