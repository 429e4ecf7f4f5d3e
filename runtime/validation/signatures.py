"""The signature: what the inputs and outputs of a program's graph stand for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..generated import types
from ..names import check_fqn, check_text, check_value_name
from ..treespecs import enum_key
from .arguments import argument_names
from .fqns import clashes, clashes_with_subgraphs
from .rules import Findings
from .scopes import Scope

_SIGNATURE = "graph_module.signature"

#: Input specs of weights: the field that holds the name of the weight.
WEIGHTS: Mapping[str, str] = {
    "parameter": "parameter_name",
    "buffer": "buffer_name",
    "tensor_constant": "tensor_constant_name",
    "custom_obj": "custom_obj_name",
}

#: Output specs that update an input or belong to one: the field that names it, and the kind of input spec.
TARGETS: Mapping[str, tuple[str, str]] = {
    "buffer_mutation": ("buffer_name", "buffer"),
    "parameter_mutation": ("parameter_name", "parameter"),
    "user_input_mutation": ("user_input_name", "user_input"),
    "gradient_to_parameter": ("parameter_name", "parameter"),
    "gradient_to_user_input": ("user_input_name", "user_input"),
}

# Tokens first, then updates, then what the caller gets: PyTorch finds each group by counting.
_ORDER: Mapping[str, int] = {
    "token": 0,
    "buffer_mutation": 1,
    "parameter_mutation": 1,
    "user_input_mutation": 1,
    "user_output": 2,
    "loss_output": 2,
    "gradient_to_parameter": 2,
    "gradient_to_user_input": 2,
}


def constant_names(signature: types.GraphSignature) -> Iterator[str]:
    """The names of the constant inputs."""
    for spec in signature.input_specs:
        if spec.type == "constant_input":
            yield spec.constant_input.name


def weight_names(signature: types.GraphSignature) -> Iterator[tuple[str, str, str]]:
    """The weights among the inputs: path of the name, kind of input, qualified name."""
    for index, spec in enumerate(signature.input_specs):
        if (field := WEIGHTS.get(spec.type)) is not None:
            path = f"{_SIGNATURE}.input_specs[{index}].{spec.type}.{field}"
            yield path, spec.type, getattr(spec.value, field)


def check_signature(
    graph: types.Graph, signature: types.GraphSignature, scope: Scope, findings: Findings
) -> None:
    """Checks the signature against the inputs and outputs of the graph, which was checked in `scope`."""
    named: dict[str, set[str]] = {kind: set() for kind in ("parameter", "buffer", "user_input")}
    _check_inputs(graph, signature, named, findings)
    _check_weights(signature, scope, findings)
    _check_outputs(graph, signature, named, findings)


def _check_inputs(
    graph: types.Graph, signature: types.GraphSignature, named: dict[str, set[str]], findings: Findings
) -> None:
    specs = signature.input_specs
    if len(specs) != len(graph.inputs):
        findings.add(
            "signature-inputs",
            f"{_SIGNATURE}.input_specs",
            f"expected {len(graph.inputs)} input specs, one for each graph input, found {len(specs)}",
        )
    for index, spec in enumerate(specs):
        path = f"{_SIGNATURE}.input_specs[{index}].{spec.type}"
        kind, value = spec.type, spec.value
        if index < len(graph.inputs):
            given = graph.inputs[index]
            if not _SAME_INPUT[kind](given, value):
                found = _spec_shown(kind, value)
                message = f"expected {_shown(given)} as graph input {index} is, found {found}"
                findings.add("signature-inputs", path, message)
        if kind in WEIGHTS:
            if kind in named:
                named[kind].add(getattr(value, WEIGHTS[kind]))
        elif kind == "user_input":
            named[kind].update(argument_names(value.arg))
        elif kind == "constant_input":
            _check_constant(value, path, findings)


def _check_weights(signature: types.GraphSignature, scope: Scope, findings: Findings) -> None:
    paths: dict[str, str] = {}
    kinds: dict[str, str] = {}
    for path, kind, fqn in weight_names(signature):
        if (problem := check_fqn(fqn)) is not None:
            findings.add("fqn", path, f"expected a qualified name, found {fqn[:80]!r}: {problem}")
        if fqn in kinds:
            findings.add("duplicate-fqn", path, f"expected {fqn[:80]!r} once, found it again")
        paths[fqn], kinds[fqn] = path, kind
    for fqn, problem in itertools.chain(clashes(kinds), clashes_with_subgraphs(kinds, scope)):
        findings.add("fqn-clash", paths[fqn], f"{problem}, in {fqn[:80]!r}")


def _check_constant(spec: types.InputToConstantInputSpec, path: str, findings: Findings) -> None:
    if spec.exact_value is not None:
        _check_enum_input(spec, spec.exact_value, f"{path}.exact_value", findings)
    if (problem := check_value_name(spec.name)) is not None:
        findings.add("name", f"{path}.name", f"expected an identifier, found {spec.name[:80]!r}: {problem}")
    if spec.value.type == "as_string" and (problem := check_text(spec.value.as_string)) is not None:
        findings.add(
            "constant-text",
            f"{path}.value.as_string",
            f"expected text without quotes, escapes and control characters, "
            f"found {spec.value.as_string[:80]!r}: it {problem}",
            "PyTorch cannot build module() for such an input either.",
        )


def _check_enum_input(
    spec: types.InputToConstantInputSpec, exact: types.Value, path: str, findings: Findings
) -> None:
    if spec.value.type != "as_none":
        message = f"expected None where the exact value stands in for a constant, found {spec.value.type}"
        findings.add("exact", path, message)
    if exact.type != "as_enum" or enum_key(exact.as_enum.fqn, exact.as_enum.name) is None:
        message = f"expected a member of an enum, MODULE:NAME, found {exact.type}"
        findings.add("exact", path, message)


def _check_outputs(
    graph: types.Graph, signature: types.GraphSignature, named: dict[str, set[str]], findings: Findings
) -> None:
    specs = signature.output_specs
    if len(specs) != len(graph.outputs):
        findings.add(
            "signature-outputs",
            f"{_SIGNATURE}.output_specs",
            f"expected {len(graph.outputs)} output specs, one for each graph output, found {len(specs)}",
        )
    last = 0
    for index, spec in enumerate(specs):
        path = f"{_SIGNATURE}.output_specs[{index}].{spec.type}"
        kind, value = spec.type, spec.value
        if index < len(graph.outputs):
            given = graph.outputs[index]
            same = _same_argument(given, value.arg) if kind == "user_output" else _same_name(given, value)
            if not same:
                found = _spec_shown(kind, value)
                message = f"expected {_shown(given)} as graph output {index} is, found {found}"
                findings.add("signature-outputs", path, message)
        if _ORDER[kind] < last:
            message = f"expected tokens, then updates, then the rest, found {kind} late"
            findings.add("output-order", path, message)
        last = max(last, _ORDER[kind])
        if kind in TARGETS:
            field, wanted = TARGETS[kind]
            target = getattr(value, field)
            if target not in named[wanted]:
                what = wanted.replace("_", " ")
                message = f"expected the name of a {what}, found {target[:80]!r}"
                findings.add("mutation-target", f"{path}.{field}", message)


def _same_name(given: types.Argument, value: Any) -> bool:
    return given.type == "as_tensor" and given.as_tensor.name == value.arg.name


def _same_argument(given: types.Argument, argument: types.Argument) -> bool:
    if given.type != argument.type:
        return False
    if given.type == "as_float" and math.isnan(given.as_float):
        return math.isnan(argument.as_float)
    return bool(given.value == argument.value)


def _same_constant(given: types.Argument, spec: types.InputToConstantInputSpec) -> bool:
    if given.type != spec.value.type:
        return False
    if given.type == "as_float" and math.isnan(given.as_float):
        return math.isnan(spec.value.as_float)
    return bool(given.value == spec.value.value)


def _same_custom_obj(given: types.Argument, spec: types.InputToCustomObjSpec) -> bool:
    return given.type == "as_custom_obj" and given.as_custom_obj == spec.arg


#: Whether a graph input is what its spec says, by the member of `InputSpec`.
_SAME_INPUT: Mapping[str, Callable[[types.Argument, Any], bool]] = {
    "user_input": lambda given, spec: _same_argument(given, spec.arg),
    "parameter": _same_name,
    "buffer": _same_name,
    "tensor_constant": _same_name,
    "custom_obj": _same_custom_obj,
    "token": lambda given, spec: spec.arg.name in argument_names(given),
    "constant_input": _same_constant,
}


def _shown(argument: types.Argument) -> str:
    names = argument_names(argument)
    return f"{argument.type} {names[0][:80]!r}" if names else f"{argument.type} {str(argument.value)[:80]}"


def _spec_shown(kind: str, spec: Any) -> str:
    if kind in ("user_input", "user_output"):
        return _shown(spec.arg)
    if kind == "constant_input":
        return f"{spec.value.type} {str(spec.value.value)[:80]}"
    if kind == "custom_obj":
        return f"as_custom_obj {spec.arg.name[:80]!r}"
    return f"as_tensor {spec.arg.name[:80]!r}"
