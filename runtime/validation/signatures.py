"""The signature and the module call graph: what the inputs and outputs of a program's graph stand for."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..called_with import passed_inputs
from ..errors import DeserializeError
from ..exact_treespecs import parse_exact_treespec, treespecs_agree
from ..generated import types
from ..limits import Limits
from ..names import check_forward_name, check_fqn, check_key, check_text, check_value_name
from ..treespecs import TreeSpecNode, enum_member, key_texts, parse_treespec
from .arguments import argument_names
from .fqns import clashes
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
    for fqn, problem in clashes(kinds, scope.subgraphs):
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
    if exact.type != "as_enum" or enum_member(exact.as_enum.fqn, exact.as_enum.name) is None:
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


def _is_call(spec: TreeSpecNode) -> bool:
    match spec:
        case TreeSpecNode(
            type="builtins.tuple",
            children=(TreeSpecNode(type="builtins.tuple"), TreeSpecNode(type="builtins.dict")),
        ):
            return True
        case _:
            return False


# The module call graph -------------------------------------------------------------------

_CALLS = "graph_module.module_call_graph"
_RETURNED = frozenset({"user_output", "loss_output"})


def check_module_calls(module: types.GraphModule, scope: Scope, findings: Findings, limits: Limits) -> None:
    """Checks the module call graph.

    Args:
        module: The graph module.
        scope: Its graph, after it was checked.
        findings: What is wrong is added here.
        limits: Bounds on tree specs.
    """
    entries = module.module_call_graph
    if not entries or entries[0].fqn != "" or entries[0].signature is None:
        findings.add("module-calls", _CALLS, "expected an entry with a signature for the program first")
    all_passed = len(passed_inputs(module.signature))
    all_returned = sum(spec.type in _RETURNED for spec in module.signature.output_specs)
    for index, entry in enumerate(entries):
        path = f"{_CALLS}[{index}]"
        if entry.fqn and (problem := check_fqn(entry.fqn)) is not None:
            message = f"expected a qualified name, found {entry.fqn[:80]!r}: {problem}"
            findings.add("fqn", f"{path}.fqn", message)
        signature = entry.signature
        if signature is None:
            continue
        for field in ("inputs", "outputs"):
            for position, argument in enumerate(getattr(signature, field)):
                for name in argument_names(argument):
                    if name not in scope.taken:
                        message = f"expected a value of the graph, found {name[:80]!r}"
                        findings.add("module-calls", f"{path}.signature.{field}[{position}]", message)
        if entry.fqn:
            passed, returned = len(signature.inputs), len(signature.outputs)
        else:
            passed, returned = all_passed, all_returned
        where = f"{path}.signature"
        check = functools.partial(_check_treespecs, scope=scope, findings=findings, limits=limits)
        in_spec = check(signature.in_spec, signature.exact_in_spec, passed, where, "in_spec")
        check(signature.out_spec, signature.exact_out_spec, returned, where, "out_spec")
        if in_spec is not None and not _is_call(in_spec):
            findings.add(
                "module-calls",
                f"{path}.signature.in_spec",
                "expected a tuple of the positional arguments, a tuple, and the keyword arguments, a dict",
            )
        elif in_spec is not None and not entry.fqn and signature.forward_arg_names:
            _check_argument_names(signature.forward_arg_names, in_spec, where, findings)
        if in_spec is not None and not entry.fqn:
            for key in key_texts(in_spec):
                if (problem := check_key(key)) is not None:
                    message = f"expected a plain text as key, found {key[:60]!r}, which {problem}"
                    findings.add("treespec", f"{where}.in_spec", message)
        names: set[str] = set()
        for position, name in enumerate(signature.forward_arg_names or ()):
            where = f"{path}.signature.forward_arg_names[{position}]"
            if name in names:
                message = f"expected distinct names of arguments, found {name[:80]!r} again"
                findings.add("module-calls", where, message)
            names.add(name)
            if (problem := check_forward_name(name)) is not None:
                findings.add("name", where, f"expected an identifier, found {name[:80]!r}: {problem}")


def _check_treespecs(
    text: str,
    exact: Sequence[types.TreeSpecNode] | None,
    leaves: int,
    path: str,
    field: str,
    *,
    scope: Scope,
    findings: Findings,
    limits: Limits,
) -> TreeSpecNode | None:
    """Checks both spellings of a tree spec. The exact one may be left out, or be the only one."""
    if exact is None:
        return _check_treespec(lambda: parse_treespec(text, limits), leaves, f"{path}.{field}", findings)
    where = f"{path}.exact_{field}"
    spec = _check_treespec(lambda: parse_exact_treespec(exact, limits), leaves, where, findings)
    if text == "" and scope.program.beyond:
        return spec
    written = _check_treespec(lambda: parse_treespec(text, limits), leaves, f"{path}.{field}", findings)
    if spec is not None and written is not None and not treespecs_agree(spec, written):
        message = f"expected what {field} says, but for keys and contexts, found another"
        findings.add("exact", where, message)
        return None
    return spec


def _check_argument_names(names: list[str], in_spec: TreeSpecNode, path: str, findings: Findings) -> None:
    """One name for each argument: the positional ones first, then the keywords of the others.

    These in the order of the tree spec: else PyTorch passes on the value of one keyword as that of another.
    """
    positional, keywords = in_spec.children
    count = len(positional.children)
    if len(names) != count + len(keywords.children) or names[count:] != list(keywords.context):
        expected = [*["..."] * min(count, 5), *keywords.context]
        message = f"expected {expected!r:.80} as the arguments are, found {names!r:.80}"
        findings.add("module-calls", f"{path}.forward_arg_names", message)


def _check_treespec(
    parse: Callable[[], TreeSpecNode], leaves: int, path: str, findings: Findings
) -> TreeSpecNode | None:
    try:
        spec = parse()
    except DeserializeError as error:
        findings.add_error("treespec", path, error)
        return None
    if spec.leaf_count != leaves:
        message = f"expected {leaves} leaves, one for each value, found {spec.leaf_count}"
        findings.add("treespec-leaves", path, message)
    return spec
