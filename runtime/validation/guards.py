"""Guards: each is in the language that exporters write, and a condition on inputs that the program has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..errors import DeserializeError
from ..generated import types
from ..guard_inputs import GuardInput, Number, check_guard_inputs, program_inputs
from ..guards import check_guard
from ..limits import Limits, raising
from .rules import Findings

_NUMBERS: Mapping[str, type[Number]] = {
    "as_int": int,
    "as_sym_int": int,
    "as_float": float,
    "as_sym_float": float,
    "as_bool": bool,
    "as_sym_bool": bool,
}


def check_guards(tree: types.ExportedProgram, findings: Findings, limits: Limits) -> None:
    """Checks the guards of a program.

    Args:
        tree: The program, of which all else was checked. If that found anything, only the language of guards
            is, since they are about inputs that may make no sense.
        findings: What is wrong is added here.
        limits: Bounds on each guard, and on all together.
    """
    if not tree.guards_code:
        return
    if (costly := _too_many(tree, limits)) is not None:
        findings.add_error("guard", "guards_code", costly)
        return
    module = tree.graph_module
    inputs = None if findings.found else program_inputs(module, list(_passed(module)), limits)
    for index, guard in enumerate(tree.guards_code):
        try:
            check_guard(guard, limits)
            if inputs is not None:
                check_guard_inputs(guard, inputs)
        except DeserializeError as error:
            findings.add_error("guard", f"guards_code[{index}]", error)


def _too_many(tree: types.ExportedProgram, limits: Limits) -> DeserializeError | None:
    """Why the guards together would cost more than a program's may."""
    count, characters = len(tree.guards_code), sum(map(len, tree.guards_code))
    divisions = sum(guard.count("%") + guard.count("/") - guard.count("//") for guard in tree.guards_code)
    passed = sum(1 for _ in _passed(tree.graph_module))
    for limit, amount, text in (
        ("guards", count, f"guards, found {count}"),
        ("guards_length", characters, f"characters of all guards, found {characters}"),
        ("guard_divisions", divisions, f"quotients and remainders in all guards, found {divisions}"),
        (
            "guard_searches",
            characters * passed,
            "characters times inputs, since PyTorch looks for each input in each guard, "
            f"found {characters} times {passed}",
        ),
    ):
        if amount > (most := getattr(limits, limit)):
            return DeserializeError(f"expected at most {most} {text}", hint=raising(limit))
    return None


def _passed(module: types.GraphModule) -> Iterator[GuardInput]:
    """What a caller passes, in the order of the graph's inputs."""
    tensors = module.graph.tensor_values
    for spec in module.signature.input_specs:
        if spec.type == "constant_input":
            yield GuardInput(_NUMBERS.get(spec.constant_input.value.type))
        elif spec.type == "user_input":
            argument = spec.user_input.arg
            meta = tensors.get(argument.as_tensor.name) if argument.type == "as_tensor" else None
            if meta is not None:
                yield GuardInput(rank=len(meta.sizes))
            else:
                yield GuardInput(_NUMBERS.get(argument.type))
