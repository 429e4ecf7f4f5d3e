"""Signature and module calls: every kind of input and output, and names that stay data."""

from __future__ import annotations

from typing import Any

import pytest
from pt2wire.errors import DeserializeError
from pt2wire.generated import types
from pt2wire.importing.module_calls import import_module_call_graph
from pt2wire.importing.signature import (
    import_constant,
    import_input_spec,
    import_output_spec,
    import_signature,
)
from pt2wire.importing.symbols import Symbols
from pt2wire.importing.values import Program, Values
from torch._export.serde import schema
from torch._export.serde.serialize import GraphModuleDeserializer, _dict_to_dataclass
from torch.export.graph_signature import (
    ConstantArgument,
    InputKind,
    InputSpec,
    OutputKind,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
)

A = types.Argument
_X = types.TensorArgument(name="x")
_TOKEN = types.TokenArgument(name="t")


def _values() -> Values:
    return Values(Program(Symbols({})), types.Graph([], [], [], {}, {}, {}), {})


_INPUTS = [
    types.InputSpec.of_user_input(types.UserInputSpec(arg=A.of_tensor(_X))),
    types.InputSpec.of_user_input(types.UserInputSpec(arg=A.of_sym_int(types.SymIntArgument.of_name("n")))),
    types.InputSpec.of_user_input(
        types.UserInputSpec(arg=A.of_sym_float(types.SymFloatArgument.of_name("f")))
    ),
    types.InputSpec.of_user_input(types.UserInputSpec(arg=A.of_int(3))),
    types.InputSpec.of_parameter(types.InputToParameterSpec(arg=_X, parameter_name="lin(1).weight")),
    types.InputSpec.of_buffer(types.InputToBufferSpec(arg=_X, buffer_name="x[0].b", persistent=True)),
    types.InputSpec.of_buffer(types.InputToBufferSpec(arg=_X, buffer_name="a b", persistent=False)),
    types.InputSpec.of_tensor_constant(types.InputToTensorConstantSpec(arg=_X, tensor_constant_name="c0")),
    types.InputSpec.of_token(types.InputTokenSpec(arg=_TOKEN)),
    *(
        types.InputSpec.of_constant_input(types.InputToConstantInputSpec(name="k", value=value))
        for value in (
            types.ConstantValue.of_none(True),
            types.ConstantValue.of_int(3),
            types.ConstantValue.of_float(2.5),
            types.ConstantValue.of_bool(False),
            types.ConstantValue.of_string("plain text, é"),
        )
    ),
]
_OUTPUTS = [
    types.OutputSpec.of_user_output(types.UserOutputSpec(arg=A.of_tensor(_X))),
    types.OutputSpec.of_user_output(types.UserOutputSpec(arg=A.of_none(True))),
    types.OutputSpec.of_loss_output(types.LossOutputSpec(arg=_X)),
    types.OutputSpec.of_buffer_mutation(types.BufferMutationSpec(arg=_X, buffer_name="b")),
    types.OutputSpec.of_parameter_mutation(types.ParameterMutationSpec(arg=_X, parameter_name="p")),
    types.OutputSpec.of_gradient_to_parameter(types.GradientToParameterSpec(arg=_X, parameter_name="p")),
    types.OutputSpec.of_gradient_to_user_input(types.GradientToUserInputSpec(arg=_X, user_input_name="u")),
    types.OutputSpec.of_user_input_mutation(types.UserInputMutationSpec(arg=_X, user_input_name="u")),
    types.OutputSpec.of_token(types.OutputTokenSpec(arg=_TOKEN)),
]


def _as_pytorch(kind: type, value: Any) -> Any:
    from pt2wire.generated import json_codec

    return _dict_to_dataclass(kind, json_codec.to_plain(value))


@pytest.mark.parametrize("spec", _INPUTS, ids=lambda spec: spec.type)
def test_inputs_are_read_as_pytorch_reads_them(spec: types.InputSpec) -> None:
    expected = GraphModuleDeserializer().deserialize_input_spec(_as_pytorch(schema.InputSpec, spec))
    assert import_input_spec(spec, _values()) == expected


@pytest.mark.parametrize("spec", _OUTPUTS, ids=lambda spec: spec.type)
def test_outputs_are_read_as_pytorch_reads_them(spec: types.OutputSpec) -> None:
    expected = GraphModuleDeserializer().deserialize_output_spec(_as_pytorch(schema.OutputSpec, spec))
    assert import_output_spec(spec, _values()) == expected


def test_all_kinds_are_covered() -> None:
    assert {spec.type for spec in _INPUTS} == set(types.InputSpec.FIELD_IDS) - {"custom_obj"}
    assert {spec.type for spec in _OUTPUTS} == set(types.OutputSpec.FIELD_IDS)
    signature = import_signature(types.GraphSignature(_INPUTS, _OUTPUTS), _values())
    assert {spec.kind for spec in signature.input_specs} == set(InputKind) - {InputKind.CUSTOM_OBJ}
    assert {spec.kind for spec in signature.output_specs} == set(OutputKind)


def test_symbolic_booleans_are_arguments_too() -> None:
    spec = types.InputSpec.of_user_input(
        types.UserInputSpec(arg=A.of_sym_bool(types.SymBoolArgument.of_name("b")))
    )
    assert import_input_spec(spec, _values()) == InputSpec(InputKind.USER_INPUT, SymBoolArgument("b"), None)


@pytest.mark.parametrize("name", ['a")+__import__("os").system("true', "a\\", "a\nb", "a..b", "", "a" * 5000])
def test_names_of_weights_that_could_end_a_string_are_refused(name: str) -> None:
    specs: list[Any] = [
        types.InputSpec.of_parameter(types.InputToParameterSpec(arg=_X, parameter_name=name)),
        types.InputSpec.of_buffer(types.InputToBufferSpec(arg=_X, buffer_name=name, persistent=True)),
        types.InputSpec.of_tensor_constant(
            types.InputToTensorConstantSpec(arg=_X, tensor_constant_name=name)
        ),
    ]
    for spec in specs:
        with pytest.raises(DeserializeError, match="expected the name of a weight, found"):
            import_input_spec(spec, _values())


@pytest.mark.parametrize("text", ["it's", 'say "hi"', "\\back", "\\", "\\\\", "\\1", "two\nlines", "nul\0"])
def test_constant_texts_that_could_end_a_string_are_refused(text: str) -> None:
    with pytest.raises(DeserializeError, match="expected a text that a guard can hold as constant input"):
        import_constant(types.ConstantValue.of_string(text))


_LIST_OF_ONE = (
    '[1, {"type": "builtins.tuple", "context": "null", "children_spec": '
    '[{"type": null, "context": null, "children_spec": []}]}]'
)


def _entry(**changes: Any) -> types.ModuleCallEntry:
    fields: dict[str, Any] = {
        "inputs": [A.of_tensor(_X), A.of_sym_int(types.SymIntArgument.of_name("n")), A.of_string("s")],
        "outputs": [A.of_sym_float(types.SymFloatArgument.of_name("f"))],
        "in_spec": _LIST_OF_ONE,
        "out_spec": _LIST_OF_ONE,
        "forward_arg_names": ["x", "n"],
    }
    return types.ModuleCallEntry(fqn="a.b", signature=types.ModuleCallSignature(**{**fields, **changes}))


def test_module_calls() -> None:
    entries = [types.ModuleCallEntry(fqn="", signature=None), _entry(), _entry(forward_arg_names=None)]
    root, call, unnamed = import_module_call_graph(entries, _values(), {})
    assert (root.fqn, root.signature) == ("", None)
    assert call.signature is not None and unnamed.signature is not None
    assert call.signature.inputs[1:] == [SymIntArgument("n"), ConstantArgument("", "s")]
    assert call.signature.outputs == [SymFloatArgument("f")]
    assert call.signature.forward_arg_names == ["x", "n"]
    assert unnamed.signature.forward_arg_names is None
    assert call.signature.in_spec is unnamed.signature.out_spec, "each treespec is read once"


_REFUSED = [
    (
        {"forward_arg_names": ["x=print(1)"]},
        "[0].signature.forward_arg_names: expected an identifier as name, found 'x=print(1)', which is not "
        "an identifier",
    ),
    (
        {"in_spec": '[1, {"type": "os.stat_result", "context": "null", "children_spec": []}]'},
        "[0].signature.in_spec: expected a class that is registered with pytree, found 'os.stat_result'. "
        "It needs `import os` first, or register it under this name with "
        "torch.utils._pytree.register_pytree_node(..., serialized_type_name=...).",
    ),
    (
        {"out_spec": '[1, {"type": "builtins.tuple", "context": "[]", "children_spec": []}]'},
        "[0].signature.out_spec[1].context: expected 'null', found '[]'",
    ),
]


@pytest.mark.parametrize(("changes", "message"), _REFUSED, ids=lambda value: str(value)[:30])
def test_bad_module_calls_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DeserializeError) as caught:
        import_module_call_graph([_entry(**changes)], _values(), {})
    assert str(caught.value) == message


def test_module_names_that_could_end_a_string_are_refused() -> None:
    entry = types.ModuleCallEntry(fqn='a"b', signature=None)
    with pytest.raises(DeserializeError, match=r"\[0\]: expected the name of a module, found 'a\"b'"):
        import_module_call_graph([entry], _values(), {})
