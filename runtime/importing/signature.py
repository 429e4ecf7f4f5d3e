"""What the graph's inputs and outputs are to its user: weights, mutations, gradients, user inputs."""

from __future__ import annotations

from collections.abc import Callable
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
from torch.fx import Node

from ..errors import DeserializeError
from ..generated import types
from ..names import check_fqn, check_text
from .arguments import import_argument
from .exact import import_enum_input
from .faults import each
from .values import Values


def import_signature(signature: types.GraphSignature, values: Values) -> ExportGraphSignature:
    """Read the signature of a program whose graph defined `values`."""
    outputs = each("output_specs", signature.output_specs, lambda spec: import_output_spec(spec, values))
    if values.tree.exact_output is not None:
        _set_exact_outputs(outputs, values)
    return ExportGraphSignature(
        input_specs=each("input_specs", signature.input_specs, lambda spec: import_input_spec(spec, values)),
        output_specs=outputs,
    )


def _set_exact_outputs(outputs: list[OutputSpec], values: Values) -> None:
    """Give outputs the constants that the graph returns, where the signature has None in their place.

    Of several nodes that take one output of a call, they get the name of that which the graph returns.
    """
    returned = values.graph.output_node().args[0]
    for spec, output in zip(outputs, returned, strict=True):  # type: ignore[arg-type]
        if isinstance(spec.arg, ConstantArgument) and spec.arg.value is None:
            spec.arg = ConstantArgument(name=spec.arg.name, value=output)
        elif isinstance(output, Node):
            spec.arg.name = output.name


def import_input_spec(spec: types.InputSpec, values: Values) -> InputSpec:
    """Read what one graph input is."""
    return _INPUTS[spec.type](spec.value, values)


def import_output_spec(spec: types.OutputSpec, values: Values) -> OutputSpec:
    """Read what one graph output is."""
    return _OUTPUTS[spec.type](spec.value, values)


def import_argument_spec(argument: types.Argument, values: Values) -> Any:
    """Read a user's or a module's input or output: the name of a value, or a constant."""
    member = argument.type
    make = _ARGUMENT_SPECS.get(member)
    if make is not None:
        return make(argument.value, values)
    return ConstantArgument(name="", value=import_argument(argument, values))


def _object(value: types.CustomObjArgument, values: Values) -> CustomObjArgument:
    known = values.node(value.name).meta["val"]
    fake = known.fake_val if isinstance(known, CustomObjArgument) else known
    return CustomObjArgument(name=value.name, class_fqn=value.class_fqn, fake_val=fake)


_ARGUMENT_SPECS: dict[str, Callable[[Any, Values], Any]] = {
    "as_tensor": lambda value, _: TensorArgument(name=value.name),
    "as_sym_int": lambda value, _: SymIntArgument(name=value.as_name),
    "as_sym_float": lambda value, _: SymFloatArgument(name=value.as_name),
    "as_sym_bool": lambda value, _: SymBoolArgument(name=value.as_name),
    "as_custom_obj": _object,
}


def _tensor(argument: types.TensorArgument) -> TensorArgument:
    return TensorArgument(name=argument.name)


def _target(fqn: str) -> str:
    if reason := check_fqn(fqn):
        raise DeserializeError(f"expected the name of a weight, found {fqn[:80]!r} ({reason})")
    return fqn


# -- inputs -----------------------------------------------------------------------------------------------

_Input = Callable[[Any, Values], InputSpec]


def _import_user_input(spec: types.UserInputSpec, values: Values) -> InputSpec:
    return InputSpec(kind=InputKind.USER_INPUT, arg=import_argument_spec(spec.arg, values), target=None)


def _import_constant_input(spec: types.InputToConstantInputSpec, values: Values) -> InputSpec:
    argument: Any
    if spec.exact_value is None:
        argument = ConstantArgument(name=spec.name, value=import_constant(spec.value))
    else:
        member: Any = import_enum_input(spec.exact_value, values.program.permissions.types)
        argument = CustomObjArgument(name=spec.name, class_fqn=_ENUM, fake_val=member)
    return InputSpec(kind=InputKind.USER_INPUT, arg=argument, target=None)


#: What torch.export calls the class of every member of an enum.
_ENUM = "enum.Enum"


def import_constant(constant: types.ConstantValue) -> Any:
    """Read the value of an input that the program was specialized for."""
    if constant.type == "as_none":
        return None
    value = constant.value
    if isinstance(value, str) and (reason := check_text(value)):
        raise DeserializeError(
            f"expected a text that a guard can hold as constant input, found one that {reason}"
        )
    return value


def _weight(kind: InputKind, name: str) -> _Input:
    return lambda spec, values: InputSpec(
        kind=kind, arg=_tensor(spec.arg), target=_target(getattr(spec, name))
    )


def _import_buffer(spec: types.InputToBufferSpec, values: Values) -> InputSpec:
    return InputSpec(
        kind=InputKind.BUFFER,
        arg=_tensor(spec.arg),
        target=_target(spec.buffer_name),
        persistent=spec.persistent,
    )


def _import_custom_obj(spec: types.InputToCustomObjSpec, values: Values) -> InputSpec:
    return InputSpec(
        kind=InputKind.CUSTOM_OBJ, arg=_object(spec.arg, values), target=_target(spec.custom_obj_name)
    )


_INPUTS: dict[str, _Input] = {
    "user_input": _import_user_input,
    "constant_input": _import_constant_input,
    "parameter": _weight(InputKind.PARAMETER, "parameter_name"),
    "buffer": _import_buffer,
    "tensor_constant": _weight(InputKind.CONSTANT_TENSOR, "tensor_constant_name"),
    "custom_obj": _import_custom_obj,
    "token": lambda spec, values: InputSpec(
        kind=InputKind.TOKEN, arg=TokenArgument(name=spec.arg.name), target=None
    ),
}

# -- outputs ----------------------------------------------------------------------------------------------

_Output = Callable[[Any, Values], OutputSpec]


def _of_weight(kind: OutputKind, name: str) -> _Output:
    return lambda spec, values: OutputSpec(
        kind=kind, arg=_tensor(spec.arg), target=_target(getattr(spec, name))
    )


def _of_user_input(kind: OutputKind) -> _Output:
    return lambda spec, values: OutputSpec(kind=kind, arg=_tensor(spec.arg), target=spec.user_input_name)


_OUTPUTS: dict[str, _Output] = {
    "user_output": lambda spec, values: OutputSpec(
        kind=OutputKind.USER_OUTPUT, arg=import_argument_spec(spec.arg, values), target=None
    ),
    "loss_output": lambda spec, values: OutputSpec(
        kind=OutputKind.LOSS_OUTPUT, arg=_tensor(spec.arg), target=None
    ),
    "buffer_mutation": _of_weight(OutputKind.BUFFER_MUTATION, "buffer_name"),
    "parameter_mutation": _of_weight(OutputKind.PARAMETER_MUTATION, "parameter_name"),
    "gradient_to_parameter": _of_weight(OutputKind.GRADIENT_TO_PARAMETER, "parameter_name"),
    "gradient_to_user_input": _of_user_input(OutputKind.GRADIENT_TO_USER_INPUT),
    "user_input_mutation": _of_user_input(OutputKind.USER_INPUT_MUTATION),
    "token": lambda spec, values: OutputSpec(
        kind=OutputKind.TOKEN, arg=TokenArgument(name=spec.arg.name), target=None
    ),
}
