"""What inputs and outputs are, how modules were called, and how nested structures are written."""

from __future__ import annotations

import dataclasses
import enum
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest
import torch
from pt2wire.errors import SerializeError
from pt2wire.exporting import export_program
from pt2wire.exporting.signature import export_argument_spec, export_constant_input, export_input_spec
from pt2wire.exporting.treespecs import export_treespec
from pt2wire.exporting.values import Program, Values
from torch._higher_order_ops.effects import _EffectType, _register_effectful_op
from torch.export import Dim, register_dataclass
from torch.export.experimental import _export_forward_backward
from torch.export.graph_signature import InputKind, InputSpec, SymBoolArgument, TensorArgument, TokenArgument
from torch.utils import _pytree as pytree

from .helpers.exporting import assert_json_is_pytorchs, exported

Point = namedtuple("Point", ["x", "y"])
pytree._register_namedtuple(Point, serialized_type_name="pt2wire.tests.signature.Point")


@dataclasses.dataclass
class Pair:
    left: torch.Tensor
    right: torch.Tensor


register_dataclass(Pair, serialized_type_name="pt2wire.tests.Pair")


def _kinds(specs):
    return [spec.type for spec in specs]


def _weights():
    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(torch.randn(3))
    module.register_buffer("kept", torch.randn(3))
    module.register_buffer("passing", torch.randn(3), persistent=False)
    module.constant = torch.randn(3)
    return module


def test_weights_constants_and_mutations():
    def forward(self, x):
        inner = self.inner
        inner.kept.add_(1)
        x.mul_(2)
        return x * inner.weight + inner.kept + inner.passing + inner.constant

    ep = exported(forward, torch.ones(3), attributes={"inner": _weights()})
    signature = assert_json_is_pytorchs(ep).graph_module.signature
    assert _kinds(signature.input_specs) == ["parameter", "buffer", "buffer", "tensor_constant", "user_input"]
    assert [spec.buffer.persistent for spec in signature.input_specs[1:3]] == [True, False]
    decomposed = assert_json_is_pytorchs(ep.run_decompositions()).graph_module.signature
    assert _kinds(decomposed.output_specs) == ["buffer_mutation", "user_input_mutation", "user_output"]


def test_constants_as_inputs_and_outputs():
    def forward(self, x, n, factor, mode, flag, nothing):
        return x * n * factor, n, None, "a", 2.5, True

    ep = exported(forward, torch.ones(3), 3, 2.5, "fast", True, None)
    signature = assert_json_is_pytorchs(ep).graph_module.signature
    values = [spec.constant_input.value.type for spec in signature.input_specs[1:]]
    assert values == ["as_int", "as_float", "as_string", "as_bool", "as_none"]


def test_symbolic_inputs_and_outputs():
    def forward(self, x, n):
        return x.shape[0] * n, x.shape[0] / 2, n

    assert_json_is_pytorchs(exported(forward, torch.ones(4), 5, shapes=({0: Dim.AUTO}, Dim.AUTO)))


def test_a_loss_and_gradients():
    def forward(self, x):
        return torch.nn.functional.mse_loss(self.linear(x), x)

    ep = exported(forward, torch.ones(2, 3), attributes={"linear": torch.nn.Linear(3, 3)})
    tree = assert_json_is_pytorchs(_export_forward_backward(ep))
    assert _kinds(tree.graph_module.signature.output_specs) == [
        "loss_output",
        "gradient_to_parameter",
        "gradient_to_parameter",
    ]


def test_a_gradient_to_an_input_that_does_not_exist_is_refused():
    """What PyTorch's joint graphs hold, and what PyTorch refuses to save with a KeyError."""
    ep = exported(
        lambda self, x: torch.nn.functional.mse_loss(self.linear(x), x),
        torch.ones(2, 3, requires_grad=True),
        attributes={"linear": torch.nn.Linear(3, 3)},
    )
    joint = _export_forward_backward(ep)
    message = r"gradient_to_user_input `\w+`: expected the name of a value in the graph, found `arg\d_1`"
    with pytest.raises(SerializeError, match=message):
        export_program(joint)
    joint.graph_signature.output_specs[-1].target = "x"
    assert_json_is_pytorchs(joint)


def test_tokens_of_operators_with_effects():
    library = torch.library.Library("pt2wire_signature", "DEF")
    library.define("effect(Tensor x) -> Tensor", tags=torch.Tag.pt2_compliant_tag)
    library.impl("effect", torch.clone, "CompositeExplicitAutograd")
    torch.library.register_fake("pt2wire_signature::effect", torch.clone, lib=library)
    effect = torch.ops.pt2wire_signature.effect.default
    handle = _register_effectful_op(effect, _EffectType.ORDERED)
    try:
        ep = exported(lambda self, x: effect(x) + effect(x), torch.ones(3)).run_decompositions()
        signature = assert_json_is_pytorchs(ep).graph_module.signature
    finally:
        handle.destroy()
    assert _kinds(signature.input_specs) == ["token", "user_input"]
    assert _kinds(signature.output_specs) == ["token", "user_output"]


def test_a_symbolic_bool_as_output_is_written_with_a_warning():
    ep = exported(lambda self, x: (x.shape[0] > 3, x), torch.ones(4), shapes=({0: Dim.AUTO},))
    with pytest.warns(
        UserWarning, match="will refuse this program.*: the symbolic bool `gt` as an input or output"
    ):
        signature = export_program(ep).graph_module.signature
    assert signature.output_specs[0].user_output.arg.as_sym_bool.as_name == "gt"


@pytest.mark.parametrize("value", [1j, enum.IntEnum("Mode", "FAST").FAST, (1,)], ids=repr)
def test_constants_of_other_types_are_refused(value):
    with pytest.raises(SerializeError, match="expected int, float, str, bool or None as constant input"):
        export_constant_input(value)


def test_specs_that_contradict_their_kind_are_refused():
    values = Values(Program())
    with pytest.raises(SerializeError, match="expected a tensor, found SymBoolArgument"):
        export_input_spec(InputSpec(InputKind.PARAMETER, SymBoolArgument("x"), "weight"), values)
    with pytest.raises(SerializeError, match="expected the name of what the value stands for, found None"):
        export_input_spec(InputSpec(InputKind.PARAMETER, TensorArgument("x"), None), values)
    with pytest.raises(SerializeError, match="expected a token, found TensorArgument"):
        export_input_spec(InputSpec(InputKind.TOKEN, TensorArgument("x"), None), values)
    with pytest.raises(SerializeError, match=r"expected one of TensorArgument, .* found TokenArgument"):
        export_argument_spec(TokenArgument("x"), values)


# Modules.


class Scale(torch.nn.Module):
    def forward(self, x, *, factor=1.0):
        return {"scaled": x * factor, "same": (x, None)}


@pytest.mark.parametrize("shapes", [None, ({0: Dim.AUTO},)], ids=["static", "dynamic"])
def test_signatures_of_modules(shapes):
    attributes = {"scale": Scale(), "linear": torch.nn.Linear(3, 3)}
    ep = exported(
        lambda self, x: self.linear(self.scale(x, factor=2.0)["scaled"]),
        torch.ones(2, 3),
        shapes=shapes,
        attributes=attributes,
        preserve_module_call_signature=("scale", "linear"),
    )
    entries = assert_json_is_pytorchs(ep).graph_module.module_call_graph
    assert [entry.fqn for entry in entries if entry.signature] == ["", "scale", "linear"]


def test_modules_among_the_inputs():
    assert_json_is_pytorchs(exported(lambda self, x, module: module(x), torch.ones(2, 3), torch.nn.ReLU()))


# Nested structures.


def test_nested_inputs_and_outputs():
    def forward(self, x, *rest, table, **named):
        return {
            "list": [x, (rest[0]["a"], None)],
            "point": Point(x + 1, table.x),
            "pair": Pair(x, named["more"]),
            "ordered": OrderedDict(b=x, a=x),
            "default": defaultdict(list, c=x),
            "queue": deque([x], maxlen=3),
        }

    one = torch.ones(2)
    ep = exported(forward, one, {"a": one}, kwargs={"table": Point(one, one), "more": one})
    module = assert_json_is_pytorchs(ep).graph_module
    assert module.treespec_namedtuple_fields["pt2wire.tests.signature.Point"].field_names == ["x", "y"]
    assert module.module_call_graph[0].signature.forward_arg_names == ["x", "rest_0", "table", "more"]


def test_keys_that_no_form_has_are_refused():
    ep = exported(lambda self, x: x[b"a"], {b"a": torch.ones(3)})
    message = "^signature of the program: .* can name: Unable to serialize context.* found bytes "
    with pytest.raises(SerializeError, match=message):
        export_program(ep)


def test_two_named_tuples_of_one_name_are_refused():
    spec = pytree.tree_structure(Point(1, 2))
    namedtuples = {}
    export_treespec(spec, namedtuples, Program())
    namedtuples["pt2wire.tests.signature.Point"].field_names = ["x", "z"]
    with pytest.raises(
        SerializeError, match=r"expected one named tuple `pt2wire.tests.signature.Point`, found two: "
    ):
        export_treespec(spec, namedtuples, Program())
