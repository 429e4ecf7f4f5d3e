"""What the graph's inputs and outputs are to its user: weights, mutations, gradients, user inputs."""

from __future__ import annotations

import enum
from collections.abc import Callable
from types import NoneType
from typing import Any

from torch.export.graph_signature import (
    ConstantArgument,
    CustomObjArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
    TokenArgument,
)

from ..errors import SerializeError
from ..generated import types
from ..names import check_fqn, check_text
from .arguments import export_argument
from .exact import export_exact
from .faults import located
from .values import Values


def export_signature(signature: ExportGraphSignature, values: Values) -> types.GraphSignature:
    """Write the signature of a program whose graph defined `values`."""
    return types.GraphSignature(
        input_specs=[_export_spec(export_input_spec, spec, values) for spec in signature.input_specs],
        output_specs=[_export_spec(export_output_spec, spec, values) for spec in signature.output_specs],
    )


def _export_spec(export: Callable[[Any, Values], Any], spec: Any, values: Values) -> Any:
    try:
        return export(spec, values)
    except SerializeError as error:
        step = f"graph signature, {spec.kind.name.lower()} `{spec.arg.name}`"
        raise located(error, step) from error.__cause__


def export_input_spec(spec: InputSpec, values: Values) -> types.InputSpec:
    """Write what one graph input is."""
    return _INPUTS[spec.kind](spec, values)


def export_output_spec(spec: OutputSpec, values: Values) -> types.OutputSpec:
    """Write what one graph output is."""
    return _OUTPUTS[spec.kind](spec, values)


def export_argument_spec(spec: Any, values: Values) -> types.Argument:
    """Write a user's or a module's input or output: the name of a value, or a constant."""
    try:
        export = _ARGUMENT_SPECS[type(spec)]
    except KeyError:
        expected = ", ".join(kind.__name__ for kind in _ARGUMENT_SPECS)
        raise SerializeError(f"expected one of {expected}, found {type(spec).__name__}") from None
    return export(spec, values)


_ARGUMENT_SPECS: dict[type, Callable[[Any, Values], types.Argument]] = {
    TensorArgument: lambda spec, values: types.Argument.of_tensor(_tensor(spec, values)),
    SymIntArgument: lambda spec, values: types.Argument.of_sym_int(
        types.SymIntArgument.of_name(_value_name(spec, values))
    ),
    SymFloatArgument: lambda spec, values: types.Argument.of_sym_float(
        types.SymFloatArgument.of_name(_value_name(spec, values))
    ),
    SymBoolArgument: lambda spec, values: _export_condition(_value_name(spec, values), values),
    ConstantArgument: lambda spec, values: export_argument(spec.value, values),
    CustomObjArgument: lambda spec, values: types.Argument.of_custom_obj(_object(spec, values)),
}


def _export_condition(name: str, values: Values) -> types.Argument:
    # The format has room for it, and PyTorch's reader knows it, but not in a signature.
    values.program.refused.append(f"the symbolic bool `{name}` as an input or output")
    return types.Argument.of_sym_bool(types.SymBoolArgument.of_name(name))


def _value_name(spec: Any, values: Values) -> str:
    name: str = spec.name
    return values.duplicates.get(name, name)


def _tensor(spec: Any, values: Values) -> types.TensorArgument:
    if type(spec) is not TensorArgument:
        raise SerializeError(f"expected a tensor, found {type(spec).__name__}")
    return types.TensorArgument(name=_value_name(spec, values))


def _object(spec: Any, values: Values) -> types.CustomObjArgument:
    if type(spec) is not CustomObjArgument:
        raise SerializeError(f"expected a custom object, found {type(spec).__name__}")
    return types.CustomObjArgument(name=_value_name(spec, values), class_fqn=spec.class_fqn)


def _target(spec: InputSpec | OutputSpec) -> str:
    if spec.target is None:
        raise SerializeError("expected the name of what the value stands for, found None")
    check_pasted(spec.target, check_fqn, "the name of a weight")
    return spec.target


def check_pasted(text: str, check: Callable[[str], str | None], expected: str) -> None:
    """Refuse what ends the text in source that PyTorch pastes it into: it cannot call the program either.

    Args:
        text: The name, key or text.
        check: What says why it is refused, or None.
        expected: What it is, in words.

    Raises:
        SerializeError: It is refused.
    """
    if reason := check(text):
        raise SerializeError(
            f"expected {expected} that PyTorch can paste into source, found {text[:80]!r}: {reason}",
            hint="Change it and export again",
        )


def _user_input(spec: OutputSpec, values: Values) -> str:
    target = _target(spec)
    if target not in values.tensors:
        # torch.export's forward-and-backward graphs name inputs as they were called before renaming.
        raise SerializeError(
            f"expected the name of a value in the graph, found `{target}`",
            hint="Set the target of the output spec to the name of the input's placeholder",
        )
    return target


# -- inputs -----------------------------------------------------------------------------------------------


def _export_user_input(spec: InputSpec, values: Values) -> types.InputSpec:
    member = getattr(spec.arg, "fake_val", getattr(spec.arg, "value", None))
    if isinstance(member, enum.Enum):
        return types.InputSpec.of_constant_input(_export_enum_member(spec.arg.name, member, values))
    if isinstance(spec.arg, ConstantArgument):
        return types.InputSpec.of_constant_input(
            types.InputToConstantInputSpec(name=spec.arg.name, value=export_constant_input(spec.arg.value))
        )
    return types.InputSpec.of_user_input(types.UserInputSpec(arg=export_argument_spec(spec.arg, values)))


def _export_enum_member(name: str, member: enum.Enum, values: Values) -> types.InputToConstantInputSpec:
    if isinstance(member, str) and (reason := check_text(f"{member}")):
        raise SerializeError(f"expected a text that a guard can hold, found {member!r:.80}, which {reason}")
    return types.InputToConstantInputSpec(
        name=name, value=types.ConstantValue.of_none(True), exact_value=export_exact(member, values)
    )


def export_constant_input(value: Any) -> types.ConstantValue:
    """Write the value of an input that the program was specialized for."""
    if isinstance(value, str):
        check_pasted(value, check_text, "a constant input")
    try:
        return _CONSTANTS[type(value)](value)
    except KeyError:
        raise SerializeError(
            f"expected int, float, str, bool or None as constant input, found {type(value).__qualname__}"
        ) from None


_CONSTANTS: dict[type, Callable[[Any], types.ConstantValue]] = {
    NoneType: lambda value: types.ConstantValue.of_none(True),
    int: types.ConstantValue.of_int,
    float: types.ConstantValue.of_float,
    str: types.ConstantValue.of_string,
    bool: types.ConstantValue.of_bool,
}


def _export_buffer(spec: InputSpec, values: Values) -> types.InputSpec:
    if spec.persistent is None:
        raise SerializeError("expected to know whether the buffer is persistent, found None")
    return types.InputSpec.of_buffer(
        types.InputToBufferSpec(
            arg=_tensor(spec.arg, values), buffer_name=_target(spec), persistent=spec.persistent
        )
    )


def _export_custom_obj(spec: InputSpec, values: Values) -> types.InputSpec:
    return types.InputSpec.of_custom_obj(
        types.InputToCustomObjSpec(arg=_object(spec.arg, values), custom_obj_name=_target(spec))
    )


def _token(spec: InputSpec | OutputSpec) -> types.TokenArgument:
    if not isinstance(spec.arg, TokenArgument):
        raise SerializeError(f"expected a token, found {type(spec.arg).__name__}")
    return types.TokenArgument(name=spec.arg.name)


_INPUTS: dict[InputKind, Callable[[InputSpec, Values], types.InputSpec]] = {
    InputKind.USER_INPUT: _export_user_input,
    InputKind.PARAMETER: lambda spec, values: types.InputSpec.of_parameter(
        types.InputToParameterSpec(arg=_tensor(spec.arg, values), parameter_name=_target(spec))
    ),
    InputKind.BUFFER: _export_buffer,
    InputKind.CONSTANT_TENSOR: lambda spec, values: types.InputSpec.of_tensor_constant(
        types.InputToTensorConstantSpec(arg=_tensor(spec.arg, values), tensor_constant_name=_target(spec))
    ),
    InputKind.CUSTOM_OBJ: _export_custom_obj,
    InputKind.TOKEN: lambda spec, values: types.InputSpec.of_token(types.InputTokenSpec(arg=_token(spec))),
}

# -- outputs ----------------------------------------------------------------------------------------------


def _export_user_output(spec: OutputSpec, values: Values) -> types.OutputSpec:
    if isinstance(spec.arg, ConstantArgument) and isinstance(spec.arg.value, enum.Enum):
        argument = types.Argument.of_none(True)  # which member it is stands in `Graph.exact_output`
    else:
        argument = export_argument_spec(spec.arg, values)
    return types.OutputSpec.of_user_output(types.UserOutputSpec(arg=argument))


_OUTPUTS: dict[OutputKind, Callable[[OutputSpec, Values], types.OutputSpec]] = {
    OutputKind.USER_OUTPUT: _export_user_output,
    OutputKind.LOSS_OUTPUT: lambda spec, values: types.OutputSpec.of_loss_output(
        types.LossOutputSpec(arg=_tensor(spec.arg, values))
    ),
    OutputKind.BUFFER_MUTATION: lambda spec, values: types.OutputSpec.of_buffer_mutation(
        types.BufferMutationSpec(arg=_tensor(spec.arg, values), buffer_name=_target(spec))
    ),
    OutputKind.PARAMETER_MUTATION: lambda spec, values: types.OutputSpec.of_parameter_mutation(
        types.ParameterMutationSpec(arg=_tensor(spec.arg, values), parameter_name=_target(spec))
    ),
    OutputKind.GRADIENT_TO_PARAMETER: lambda spec, values: types.OutputSpec.of_gradient_to_parameter(
        types.GradientToParameterSpec(arg=_tensor(spec.arg, values), parameter_name=_target(spec))
    ),
    OutputKind.GRADIENT_TO_USER_INPUT: lambda spec, values: types.OutputSpec.of_gradient_to_user_input(
        types.GradientToUserInputSpec(
            arg=_tensor(spec.arg, values), user_input_name=_user_input(spec, values)
        )
    ),
    OutputKind.USER_INPUT_MUTATION: lambda spec, values: types.OutputSpec.of_user_input_mutation(
        types.UserInputMutationSpec(arg=_tensor(spec.arg, values), user_input_name=_user_input(spec, values))
    ),
    OutputKind.TOKEN: lambda spec, values: types.OutputSpec.of_token(types.OutputTokenSpec(arg=_token(spec))),
}
