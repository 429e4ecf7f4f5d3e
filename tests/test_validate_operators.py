"""The tables of what a node may call agree with PyTorch, and calls are compared with PyTorch's schemas."""

from __future__ import annotations

import builtins
import importlib
import inspect
import io
import json
import math
import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pt2wire
import pytest
import torch
import torch._inductor.inductor_prims  # registers operators
from pt2wire.denied_operators import DENIED_HIGHER_ORDER, DENIED_NAMESPACES, DENIED_OPERATORS
from pt2wire.generated import types
from pt2wire.operators import (
    AUTOCAST_FUNCTIONS,
    FUNCTORCH_FUNCTIONS,
    HIGHER_ORDER,
    NUMBERS_AS_TENSORS,
    SYMBOLIC_FUNCTIONS,
    TargetKind,
    parse_target,
    refusal,
)
from pt2wire.sparse_operators import ON_SPARSE
from pt2wire.validation import RULES
from pt2wire.validation.operators import find_schema, validate_operators
from pt2wire.validation.subgraphs import OUT_DTYPE_OPERATORS, check_operands
from torch import nn
from torch._export.serde import serialize as torch_serialize
from torch._higher_order_ops.out_dtype import ALLOWABLE_OPS

from .helpers.exporting import exported, node_named

STORED = Path(__file__).parent / "data" / "operators.json"

# PyTorch's serializer reads these back, `round` excepted, and refuses to write them.
_NOT_WRITTEN_BY_TORCH = {"_operator.abs", "builtins.round", "math.ceil", "math.floor", "torch.sym_sum"}
_MODULES = {"builtins": builtins, "_operator": operator, "math": math, "torch": torch}


def function_of(target: str) -> Callable[..., object]:
    module, _, name = target.rpartition(".")
    function: Callable[..., object] = getattr(_MODULES[module], name)
    return function


def written_by_torch(function: Callable[..., object]) -> str:
    serializer = object.__new__(torch_serialize.GraphModuleSerializer)
    text: str = serializer.serialize_operator(function)
    return text


def test_symbolic_functions_are_those_that_torch_writes_and_others_like_them() -> None:
    by_torch = {written_by_torch(function) for function in torch_serialize._SYM_OPS}
    assert not by_torch & _NOT_WRITTEN_BY_TORCH
    assert SYMBOLIC_FUNCTIONS.keys() == by_torch | _NOT_WRITTEN_BY_TORCH


@pytest.mark.parametrize("target", SYMBOLIC_FUNCTIONS)
def test_symbolic_function_has_the_parameters_and_the_name_of_torch(target: str) -> None:
    function = function_of(target)
    assert written_by_torch(function) == target
    assert tuple(inspect.signature(function).parameters) == SYMBOLIC_FUNCTIONS[target].parameters


@pytest.mark.parametrize("target", SYMBOLIC_FUNCTIONS)
def test_torch_reads_the_target_of_a_symbolic_function(target: str) -> None:
    reader = torch_serialize.GraphModuleDeserializer()
    read = reader.deserialize_operator(target) is function_of(target)
    assert read == SYMBOLIC_FUNCTIONS[target].read_by_torch


@pytest.mark.parametrize("target", [*FUNCTORCH_FUNCTIONS, *AUTOCAST_FUNCTIONS])
def test_function_of_functorch_and_autocast_is_one_of_torch(target: str) -> None:
    module, _, name = target.rpartition(".")
    assert written_by_torch(getattr(importlib.import_module(module), name)) == target


def test_the_verifier_of_torch_allows_no_functorch_function_that_the_table_lacks() -> None:
    from torch._functorch import predispatch

    public = {
        f"torch._functorch.predispatch.{name}"
        for name, value in vars(predispatch).items()
        if inspect.isfunction(value) and not name.endswith("_impl")
    }
    assert public == set(FUNCTORCH_FUNCTIONS)


@pytest.mark.parametrize("name", [*HIGHER_ORDER, *DENIED_HIGHER_ORDER])
def test_higher_order_operator_exists(name: str) -> None:
    assert written_by_torch(torch._ops._higher_order_ops[name]) == f"torch.ops.higher_order.{name}"


def test_denied_operators_and_namespaces_exist() -> None:
    # TorchScript's own operators are not in the dispatcher, but torch.ops finds them.
    everything = [*torch._C._dispatch_get_all_op_names(), *(s.name for s in torch._C._jit_get_all_schemas())]
    overloads = {name.replace("::", ".") for name in everything}
    names = {".".join(name.split(".")[:2]) for name in overloads}
    assert set(DENIED_OPERATORS) <= names | overloads
    assert set(DENIED_NAMESPACES) <= {name.partition(".")[0] for name in names}


#: Operators that honest programs call, though bad arguments end the process there or let it read beyond a
#: tensor, by what has to be bad.
UNSAFE: dict[str, tuple[str, ...]] = {
    "weights, or running means, of another size": (
        *("aten._batch_norm_no_update", "aten._batch_norm_with_update"),
        *("aten._batch_norm_with_update_functional", "aten._native_batch_norm_legit"),
        *("aten._native_batch_norm_legit_functional", "aten.native_batch_norm", "aten._weight_norm"),
        *("aten._weight_norm_interface", "aten._native_batch_norm_legit_no_training", "aten.lstm"),
    ),
    "offsets, targets, pivots or indices": (
        *(
            "aten._embedding_bag",
            "aten._embedding_bag_forward_only",
            "aten.embedding_bag",
            "aten._ctc_loss",
            "aten.ctc_loss",
        ),
        *("aten.linalg_ldl_solve", "aten.lu_unpack", "aten._unsafe_masked_index"),
        "aten._unsafe_masked_index_put_accumulate",
    ),
    "numbers of repeats": ("aten.repeat_interleave",),
    "scales and padding": ("aten._upsample_bilinear2d_aa", "aten.replication_pad2d"),
    "dimensions": ("aten._fft_c2c", "aten._fft_c2r", "aten._fft_r2c", "prims.fft_c2r", "prims.fft_r2c"),
    "keys and queries that do not fit": ("aten._scaled_dot_product_flash_attention_for_cpu",),
    "numbers": ("aten._linalg_eigvals", "aten.lcm", "aten.lcm_", "aten.linalg_eigvals"),
    "tensors that are nested, sparse or laid out for oneDNN": (
        *("aten.copy", "aten.index_add_", "aten.index_copy_", "aten.scatter_reduce_"),
        *("aten.trapezoid", "aten.trapz", "aten.scatter_add_", "aten.cummaxmin_backward"),
    ),
}


def test_what_ends_a_process_is_refused_unless_honest_programs_call_it() -> None:
    stored = json.loads(STORED.read_text())
    ends = {name for name, found in stored["operators"].items() if any(end != "hang" for end, _ in found)}
    targets = filter(None, (parse_target(f"torch.ops.{name}") for name in ends))
    let = {target.packet for target in targets if refusal(target) is None}
    assert let == {packet for packets in UNSAFE.values() for packet in packets}


#: Operators that are let through though no call of them is known that a CPU takes.
UNSEARCHED: dict[str, tuple[str, ...]] = {
    "PyTorch has them for GPUs alone, and puts them into programs that are exported or decomposed there": (
        *("aten._scaled_dot_product_flash_attention.default", "aten._cudnn_rnn.default"),
        *("aten._scaled_dot_product_efficient_attention.default", "aten.cudnn_batch_norm.default"),
        *("aten._scaled_dot_product_cudnn_attention.default", "aten._thnn_fused_lstm_cell.default"),
        *("aten._thnn_fused_gru_cell.default", "aten.addmm.dtype"),
        *("aten.baddbmm.dtype", "aten.bmm.dtype", "aten.mm.dtype"),
    ),
    "it looks up a tensor of a subclass by its name": ("export.access_subclass_inner_tensor.default",),
}


def test_what_is_let_through_was_searched() -> None:
    # With a call to begin with that the operator takes: bad arguments beside other bad ones say little.
    searched = json.loads(STORED.read_text())["searched"]
    namespaces = {packet.partition(".")[0] for packet in searched}
    unknown = set()
    for name in torch._C._dispatch_get_all_op_names():
        target = parse_target(torch_target(name))
        assert target is not None, name
        overloads = searched.get(target.packet, {})
        known, _ = overloads.get(target.overload, (0, 0))
        if not any(valid for valid, _ in overloads.values()):
            known = target.packet in ON_SPARSE  # of sparse tensors alone: `sparse_search.py` tries it
        if target.namespace in namespaces and refusal(target) is None and not known:
            unknown.add(f"{target.packet}.{target.overload}")
    assert unknown == {name for names in UNSEARCHED.values() for name in names}


def torch_target(name: str) -> str:
    """What a node has for an operator of the dispatcher, such as `aten::add.Tensor`."""
    packet, _, overload = name.partition(".")
    return f"torch.ops.{packet.replace('::', '.')}.{overload or 'default'}"


def test_no_operator_with_a_storage_or_a_file_name_is_permitted() -> None:
    permitted = []
    for name in torch._C._dispatch_get_all_op_names():
        target = parse_target(torch_target(name))
        assert target is not None, name
        schema = find_schema(target)
        suspicious = (
            [
                argument.name
                for argument in schema.arguments
                if str(argument.real_type) in ("Storage", "Stream") or "file" in argument.name
            ]
            if schema is not None
            else []
        )
        if suspicious and refusal(target) is None:
            permitted.append(name)
    assert permitted == []


@pytest.mark.parametrize(
    "text",
    [
        "os.system",
        "torch.load",
        "torch.ops.load_library",
        "torch.ops.aten.add",
        "torch.ops.aten.add.Tensor.__call__",
        "torch.ops.aten.add.Tensor\n",
        "torch.ops.aten..Tensor",
        "torch.ops.aten.ädd.Tensor",
        "torch.ops.higher_order.cond.default",
        "torch.sym_int.__globals__",
        "_operator.attrgetter",
        "_operator.methodcaller",
        "math.factorial",
        "torch._functorch.predispatch.torch",
        "builtins.eval",
        "#a",
        "",
    ],
)
def test_text_that_is_no_target(text: str) -> None:
    assert parse_target(text) is None


def test_target_taken_apart() -> None:
    target = parse_target("torch.ops.aten.add.Tensor")
    assert target is not None
    assert (target.kind, target.namespace, target.name, target.overload, target.packet) == (
        TargetKind.OPERATOR,
        "aten",
        "add",
        "Tensor",
        "aten.add",
    )


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (lambda self, x: x.sum([0], True), ([False], True)),
        (lambda self, x: x.sum([0], True), (False, True)),
        (lambda self, x: x.roll([1], [0]), ([True], [True])),
    ],
)
def test_booleans_are_taken_for_a_list_of_integers_as_torch_does(call: Any, arguments: Any) -> None:
    x = torch.arange(4.0).reshape(2, 2)
    ep = exported(call, x)
    node = next(node for node in ep.graph.nodes if node.op == "call_function")
    node.args = (node.args[0], *arguments)
    file = io.BytesIO()
    pt2wire.save(ep, file)
    loaded = pt2wire.load(io.BytesIO(file.getvalue()))
    assert repr(node_named(loaded, node.name).args) == repr(node.args)
    assert torch.equal(loaded.module()(x), node.target(x, *arguments))


@pytest.mark.parametrize("mask", [[1, 0, 0], [2, 1, 0], [0.5, 0.0, 0.0], [True, False, 0]])
def test_numbers_are_taken_for_a_list_of_booleans_as_torch_does(mask: list[Any]) -> None:
    def call(self: Any, grad: Any, x: Any, weight: Any) -> Any:
        return torch.ops.aten.convolution_backward(
            grad, x, weight, None, [1], [0], [1], False, [0], 1, [True, True, False]
        )[0]

    x = torch.ones(1, 1, 4), torch.rand(1, 1, 4), torch.ones(1, 1, 1)
    ep = exported(call, *x)
    node = node_named(ep, "convolution_backward")
    node.args = (*node.args[:-1], mask)
    file = io.BytesIO()
    pt2wire.save(ep, file)
    loaded = pt2wire.load(io.BytesIO(file.getvalue()))
    assert repr(node_named(loaded, node.name).args) == repr(node.args)
    assert torch.equal(loaded.module()(*x), node.target(*x, *node.args[3:])[0])


@pytest.mark.wide
def test_numbers_are_taken_for_tensors_where_torch_does() -> None:
    takes = set()
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, name = schema.name.partition("::")
        by_position = [argument for argument in schema.arguments if not argument.kwarg_only]
        if namespace != "aten" or not by_position or str(by_position[0].type) != "Tensor":
            continue
        if name in ("backward", "_backward", "requires_grad_", "retain_grad", "set_data"):
            continue  # methods of tensors
        operator = getattr(getattr(torch.ops.aten, name), schema.overload_name or "default", None)
        if operator is None:
            continue
        refusal = f"for argument '{by_position[0].name}' but instead found type 'float'"
        try:
            operator(2.0, *[object()] * (len(by_position) - 1))
            takes.add(f"aten.{name}")
        except Exception as error:
            if refusal not in str(error):
                takes.add(f"aten.{name}")
    assert takes == NUMBERS_AS_TENSORS


# Calls against schemas -----------------------------------------------------------------------


def test_out_dtype_takes_the_operators_that_torch_lets_it_take() -> None:
    assert {f"torch.ops.{operator}" for operator in ALLOWABLE_OPS} == OUT_DTYPE_OPERATORS


class Called(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))
        return result


_A = types.Argument
_T = _A.of_tensor(types.TensorArgument("x"))
_OP = "torch.ops.aten.mm.default"


@pytest.mark.parametrize(
    ("target", "arguments", "message"),
    [
        (
            "auto_functionalized",
            [_A.of_operator("torch.ops.aten.relu.default")],
            "expected an operator of another package that changes arguments, "
            "found 'torch.ops.aten.relu.default'",
        ),
        (
            "wrap_with_autocast",
            [_A.of_string("moon")],
            "expected a type of device with autocast, found 'moon'",
        ),
        (
            "out_dtype",
            [_A.of_operator(_OP), _A.of_scalar_type(types.ScalarType.LONG), _T, _A.of_string("a")],
            f"expected Tensor for 'mat2' of {_OP}, found as_string",
        ),
        (
            "out_dtype",
            [_A.of_operator(_OP), _A.of_scalar_type(types.ScalarType.LONG), _T],
            f"expected the argument 'mat2' of {_OP}, found none",
        ),
        (
            "with_effects",
            [_T, _A.of_operator(_OP), _T, _T, _T],
            f"expected an argument of {_OP}, found ''",
        ),
    ],
)
def test_higher_order_operators_call_others_as_these_want_to_be(
    target: str, arguments: list[types.Argument], message: str
) -> None:
    found = pt2wire.to_tree(torch.export.export(Called(), (torch.ones(2),)))
    node = found.graph_module.graph.nodes[-1]
    node.target = f"torch.ops.higher_order.{target}"
    node.inputs = [types.NamedArgument("", each, types.ArgumentKind.POSITIONAL) for each in arguments]
    node.exact_inputs = None
    findings = [finding.message for finding in validate_operators(found)]
    assert findings == [f"{message}, in node {node.name!r}"]


def test_exact_arguments_belong_to_those_of_their_names() -> None:
    found = pt2wire.to_tree(torch.export.export(Called(), (torch.ones(2),)))
    node = found.graph_module.graph.nodes[-1]
    for named, name in zip(node.inputs, ("pred", "true_fn", "false_fn", "operands"), strict=True):
        named.name, named.kind = name, types.ArgumentKind.KEYWORD
    node.inputs[3].arg = _A.of_none(True)
    node.exact_inputs = [
        types.NamedValue("operands", _V.of_tuple([_V.of_tensor(types.TensorArgument("x"))])),
        *[types.NamedValue(named.name) for named in node.inputs[:3]],
    ]
    assert list(check_operands(node, "cond")) == []


_V = types.Value
_X = _V.of_tensor(types.TensorArgument("x"))
_MEMBER = _V.of_enum(types.EnumMember("signal:Signals", "SIGINT"))


@pytest.mark.parametrize(
    ("target", "parameter", "kind", "value", "fits"),
    [
        ("clamp.default", "min", "Optional[number]", _V.of_list([_V.of_int(1)]), False),
        ("clamp.default", "min", "Optional[number]", _MEMBER, False),
        ("clamp.default", "min", "Optional[number]", _V.of_dict([]), False),
        ("index.Tensor", "indices", "List[Optional[Tensor]]", _V.of_tuple([_V.of_none(True), _X]), True),
        ("index.Tensor", "indices", "List[Optional[Tensor]]", _V.of_list([_X, _V.of_int(1)]), False),
        ("var.correction", "dim", "Optional[List[int]]", _V.of_list([_V.of_int(0), _V.of_float(0.5)]), False),
        ("var.correction", "dim", "Optional[List[int]]", _V.of_list([_V.of_list([_V.of_int(0)])]), False),
        ("to.dtype", "dtype", "ScalarType", _V.of_extra_scalar_type(types.ExtraScalarType.INT4), True),
    ],
)
def test_what_stands_behind_none_is_compared_with_the_schema(
    target: str, parameter: str, kind: str, value: types.Value, fits: bool
) -> None:
    found = tree()
    node = found.graph_module.graph.nodes[0]
    node.target = f"torch.ops.aten.{target}"
    del node.inputs[2]
    node.inputs[1].name, node.inputs[1].arg = parameter, types.Argument.of_none(True)
    node.exact_inputs = [types.NamedValue("self", None), types.NamedValue(parameter, value)]
    message = f"expected {kind} for {parameter!r} of {node.target}, found {value.type}, in node 'add'"
    findings = [finding.message for finding in validate_operators(found)]
    assert [each for each in findings if f" for {parameter!r} of " in each] == ([] if fits else [message])


def test_dimensions_behind_none_are_counted_as_all_are() -> None:
    found = tree()
    node = found.graph_module.graph.nodes[0]
    node.target = "torch.ops.aten.roll.default"
    node.inputs[1:] = [types.NamedArgument("shifts", types.Argument.of_none(True), node.inputs[1].kind)]
    for count, messages in (
        (64, []),
        (65, [f"expected at most 64 shifts of {node.target}, found 65, in node 'add'"]),
    ):
        node.exact_inputs = [
            types.NamedValue("self"),
            types.NamedValue("shifts", _V.of_list([_V.of_int(1)] * count)),
        ]
        assert [finding.message for finding in validate_operators(found)] == messages


class Changing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        add_to(y[1:], 2)
        return y


@torch.library.custom_op("pt2wire_tests::add_to", mutates_args=("x",))
def add_to(x: torch.Tensor, number: int, alpha: float = 1.0) -> None:
    """Changes what it is given, so that exporting makes it functional."""
    x.add_(number, alpha=alpha)


def _keyword(name: str, argument: types.Argument) -> Callable[[dict[str, types.Argument]], object]:
    return lambda given: given.update({name: argument})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_keyword("number", _A.of_string("2")), "expected int for 'number' of {}, found as_string"),
        (_keyword("alpha", _A.of_none(True)), "expected float for 'alpha' of {}, found as_none"),
        (_keyword("_y_alias", _A.of_bool(True)), "expected an argument of {}, found '_y_alias'"),
        (lambda given: given.pop("number"), "expected the argument 'number' of {}, found none"),
    ],
)
def test_what_is_made_functional_is_called_as_it_wants_to_be(
    change: Callable[[dict[str, types.Argument]], object], message: str
) -> None:
    ep = torch.export.export(Changing(), (torch.ones(3, 2),)).run_decompositions()
    found = pt2wire.to_tree(ep)
    assert validate_operators(found) == []
    node = next(node for node in found.graph_module.graph.nodes if "auto_functionalized" in node.target)
    first, *rest = node.inputs
    given = {named.name: named.arg for named in rest}
    change(given)
    node.inputs = [first, *(types.NamedArgument(*item, rest[0].kind) for item in given.items())]
    expected = message.format("torch.ops.pt2wire_tests.add_to.default")
    assert [finding.message for finding in validate_operators(found)] == [
        f"{expected}, in node {node.name!r}"
    ]


class Net(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (*torch.split(torch.add(x, x, alpha=2), 2), *x.max(dim=0))


def tree() -> types.ExportedProgram:
    return pt2wire.to_tree(torch.export.export(Net(), (torch.ones(4, 4),)))


def _rename(node: types.Node) -> None:
    node.inputs[0].name = "selv"


def _another_kind(node: types.Node) -> None:
    node.inputs[2].arg = types.Argument.create(as_string="2")


def _nothing_for_a_tensor(node: types.Node) -> None:
    node.inputs[1].arg = types.Argument.create(as_none=True)


def _number_for_a_tensor(node: types.Node) -> None:
    node.target = "torch.ops.aten.atan2.default"
    node.inputs[1].arg = types.Argument.of_int(2)
    del node.inputs[2]


def _tensor_for_a_number(node: types.Node) -> None:
    node.inputs[2].arg = node.inputs[0].arg


def _positions_with_a_gap(node: types.Node) -> None:
    node.target = "torch.ops.aten.clamp.default"
    node.inputs[2].name, node.inputs[2].kind = "max", types.ArgumentKind.POSITIONAL
    del node.inputs[1]


def _missing(node: types.Node) -> None:
    del node.inputs[1]


def _unknown(node: types.Node) -> None:
    node.target = "torch.ops.aten.addd.Tensor"


def _unknown_overload(node: types.Node) -> None:
    node.target = "torch.ops.aten.add.default"


def _torchscript_operator(node: types.Node) -> None:
    node.target = "torch.ops.aten.save.default"


def _no_result(node: types.Node) -> None:
    node.outputs.clear()


def _list_result(node: types.Node) -> None:
    node.outputs[0] = types.Argument.create(as_tensors=[node.outputs[0].as_tensor])


_NODE = "graph_module.graph.nodes[0]"
_CALL = "torch.ops.aten.add.Tensor"

LIES: dict[Callable[[types.Node], None], list[tuple[str, str, str]]] = {
    _rename: [
        (
            "operator-arguments",
            f"{_NODE}.inputs[0].name",
            f"expected an argument of {_CALL}, found 'selv', in node 'add'",
        ),
        (
            "operator-arguments",
            f"{_NODE}.inputs",
            f"expected the argument 'self' of {_CALL}, found none, in node 'add'",
        ),
    ],
    _another_kind: [
        (
            "operator-arguments",
            f"{_NODE}.inputs[2].arg",
            f"expected number for 'alpha' of {_CALL}, found as_string, in node 'add'",
        )
    ],
    _nothing_for_a_tensor: [
        (
            "operator-arguments",
            f"{_NODE}.inputs[1].arg",
            f"expected Tensor for 'other' of {_CALL}, found as_none, in node 'add'",
        )
    ],
    _number_for_a_tensor: [
        (
            "operator-arguments",
            f"{_NODE}.inputs[1].arg",
            "expected Tensor for 'other' of torch.ops.aten.atan2.default, found as_int, in node 'add'",
        )
    ],
    _tensor_for_a_number: [
        (
            "operator-arguments",
            f"{_NODE}.inputs[2].arg",
            f"expected number for 'alpha' of {_CALL}, found a tensor of several elements, in node 'add'",
        )
    ],
    _positions_with_a_gap: [
        (
            "operator-arguments",
            f"{_NODE}.inputs",
            "expected what torch.ops.aten.clamp.default is given by position before all else, "
            "found 'min' left out, in node 'add'",
        )
    ],
    _missing: [
        (
            "operator-arguments",
            f"{_NODE}.inputs",
            f"expected the argument 'other' of {_CALL}, found none, in node 'add'",
        )
    ],
    _unknown: [
        (
            "unknown-operator",
            f"{_NODE}.target",
            "expected an operator that is registered, found torch.ops.aten.addd.Tensor, in node 'add'",
        )
    ],
    _unknown_overload: [
        (
            "unknown-operator",
            f"{_NODE}.target",
            "expected an operator that is registered, found torch.ops.aten.add.default, in node 'add'",
        )
    ],
    _torchscript_operator: [
        (
            "unknown-operator",
            f"{_NODE}.target",
            "expected an operator that is registered, found torch.ops.aten.save.default, in node 'add'",
        )
    ],
    _no_result: [
        ("operator-returns", f"{_NODE}.outputs", f"expected 1 results of {_CALL}, found 0, in node 'add'")
    ],
    _list_result: [
        (
            "operator-returns",
            f"{_NODE}.outputs[0]",
            f"expected as_none or as_tensor of {_CALL}, found as_tensors, in node 'add'",
        )
    ],
}


def test_honest_calls_have_no_findings() -> None:
    assert validate_operators(tree()) == []


@pytest.mark.parametrize("change", LIES, ids=lambda change: change.__name__.strip("_"))
def test_lie_is_found(change: Callable[[types.Node], None]) -> None:
    lying = tree()
    change(lying.graph_module.graph.nodes[0])
    found = validate_operators(lying)
    assert [(finding.rule, finding.path, finding.message) for finding in found] == LIES[change]


def test_numbers_among_optional_tensors_are_found() -> None:
    class Picks(nn.Module):
        def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
            return x[:, index] * x.size(0)

    rows = torch.export.Dim("rows")
    ep = torch.export.export(Picks(), (torch.ones(3, 2), torch.tensor([0])), dynamic_shapes=({0: rows}, None))
    lying = pt2wire.to_tree(ep)
    nodes = lying.graph_module.graph.nodes
    size, pick = nodes[0], next(node for node in nodes if node.target == "torch.ops.aten.index.Tensor")
    pick.inputs[1].arg.as_optional_tensors[1].as_tensor.name = size.outputs[0].as_sym_int.as_name
    assert [(finding.path, finding.message) for finding in pt2wire.validate(lying)] == [
        (
            f"graph_module.graph.nodes[{nodes.index(pick)}].inputs[1].arg",
            "expected List[Optional[Tensor]] for 'indices' of torch.ops.aten.index.Tensor, "
            f"found 'sym_size_int_1', which is no tensor, in node {pick.name!r}",
        )
    ]


def test_layouts_whose_indices_nobody_would_fill_are_found() -> None:
    class Like(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.new_empty(2, 2)

    found = pt2wire.to_tree(torch.export.export(Like(), (torch.ones(3, 3),)))
    graph = found.graph_module.graph
    assert graph.nodes[0].target == "torch.ops.aten.new_empty.default"
    assert validate_operators(found) == []
    graph.tensor_values["x"].layout = types.Layout.SparseBsc
    (finding,) = validate_operators(found)
    expected = "expected a layout whose indices torch.ops.aten.new_empty.default fills, found SparseBsc"
    assert finding.message.startswith(expected)
    graph.nodes[0].target = "torch.ops.aten.new_zeros.default"
    assert validate_operators(found) == []


def test_every_rule_about_operators_has_a_lie() -> None:
    about_operators = {rule.id for rule in RULES.values() if rule.checked == "operators"}
    elsewhere = {"sparse-flow"}  # in test_sparse_flow.py
    assert about_operators - elsewhere == {rule for lies in LIES.values() for rule, _, _ in lies}


def test_operators_within_subgraphs_and_arguments_are_checked() -> None:
    class Branches(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))
            return result

    lying = pt2wire.to_tree(torch.export.export(Branches(), (torch.ones(4),)))
    nodes = lying.graph_module.graph.nodes
    cond = next(node for node in nodes if node.target == "torch.ops.higher_order.cond")
    cond.inputs[1].arg.as_graph.graph.nodes[0].target = "torch.ops.aten.sine.default"
    cond.inputs[0].arg = types.Argument.create(as_operator="torch.ops.aten.cosine.default")
    index = nodes.index(cond)
    assert sorted(finding.path for finding in validate_operators(lying)) == [
        f"graph_module.graph.nodes[{index}].inputs[0].arg.as_operator",
        f"graph_module.graph.nodes[{index}].inputs[1].arg.as_graph.graph.nodes[0].target",
    ]


_ANOTHER_KIND = {
    "add.Tensor": (
        "other",
        types.Argument.create(as_graph=types.GraphArgument("g", types.Graph([], [], [], {}, {}, {}))),
        "expected Tensor for 'other' of torch.ops.aten.add.Tensor, found as_graph",
    ),
    "full.default": (
        "layout",
        types.Argument.create(as_int=-5),
        "expected Optional[Layout] for 'layout' of torch.ops.aten.full.default, found as_int",
    ),
    "split.Tensor": (
        "dim",
        types.Argument.create(as_string="a"),
        "expected int for 'dim' of torch.ops.aten.split.Tensor, found as_string",
    ),
}


class _Calls(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, _ = torch.split(x, 2, 1)
        return first + torch.full((2, 2), 1.0, layout=torch.strided)


@pytest.mark.parametrize("operator", _ANOTHER_KIND)
def test_loading_refuses_an_argument_of_another_kind_as_validating_does(operator: str) -> None:
    name, argument, message = _ANOTHER_KIND[operator]
    ep = torch.export.export(_Calls(), (torch.ones(2, 4),))
    file, changed = io.BytesIO(), io.BytesIO()
    pt2wire.save(ep, file)
    archive = pt2wire.read(file)
    nodes = archive.programs["model"].graph_module.graph.nodes
    call = next(node for node in nodes if node.target == f"torch.ops.aten.{operator}")
    next(named for named in call.inputs if named.name == name).arg = argument
    pt2wire.write(archive, changed)
    found = pt2wire.validate(changed)
    assert found[0].message.startswith(message)
    with pytest.raises(pt2wire.DeserializeError) as caught:
        pt2wire.load(changed, form="json")
    assert str(caught.value) == str(found[0].error())
    with pytest.raises(pt2wire.DeserializeError, match=re.escape(message)):
        pt2wire.from_tree(archive.programs["model"], ep.state_dict, ep.constants)


def test_a_dtype_in_place_of_none_fits_parameters_for_dtypes_alone() -> None:
    class Packed(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.view(torch.uint4).view(torch.uint8).add(x)

    with pytest.warns(UserWarning, match="an argument of `view` .torch.uint4."):
        tree = pt2wire.to_tree(torch.export.export(Packed(), (torch.ones(2, dtype=torch.uint8),)))
    assert validate_operators(tree) == [] == pt2wire.validate(tree)
    view, _, add = tree.graph_module.graph.nodes
    assert view.exact_inputs is not None
    named = types.NamedValue("other", view.exact_inputs[1].value)
    add.inputs[1].arg, add.exact_inputs = types.Argument.of_none(True), [types.NamedValue("self"), named]
    (finding,) = validate_operators(tree)
    assert finding.message.startswith("expected Tensor for 'other' of torch.ops.aten.add.Tensor, found as_")


def test_what_a_finding_shows_of_a_file_steers_no_terminal() -> None:
    tree = pt2wire.to_tree(torch.export.export(nn.ReLU(), (torch.ones(2),)))
    node = tree.graph_module.graph.nodes[0]
    node.target = node.name = "torch.ops.aten.relu\x1b[2J\nfine"
    for finding in pt2wire.validate(tree):
        assert str(finding).isprintable() and str(finding.error()).isprintable()
