"""The check of one tree: a program as decoded, before anything of torch, sympy or pytree sees it."""

from __future__ import annotations

import math

from ..errors import DeserializeError
from ..findings import Finding
from ..format_versions import check_version, own_field
from ..generated import CodecError, DepthError, json_codec, types
from ..limits import Limits, raising
from ..names import check_identifier, is_float_symbol
from ..permissions import NO_PERMISSIONS, Permissions
from .exact import note_problems
from .graphs import check_graphs
from .guards import check_guards
from .metadata import check_json
from .module_calls import check_module_calls
from .rules import Findings
from .scopes import ProgramState
from .signatures import check_signature, constant_names
from .values import Symbols


def validate_types(tree: types.ExportedProgram) -> list[Finding]:
    """Checks that a tree holds what the schema says: one from a file does, since the codecs see to it.

    Args:
        tree: The program, made or changed by hand.

    Returns:
        The first value that is of another type than its field, or nested deeper than any codec goes; nothing
        else can be told about such a tree.

    Example:
        >>> import pt2wire, torch
        >>> tree = pt2wire.to_tree(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)))
        >>> tree.graph_module.graph.nodes[0].target = 5
        >>> for finding in validate_types(tree):
        ...     print(finding)
        graph_module.graph.nodes[0].target: expected a string, found int 5 [type]
    """
    findings = Findings()
    try:
        json_codec.check_types(tree)
    except DepthError as error:
        findings.add("depth", error.path, error.message)
    except CodecError as error:
        findings.add("type", error.path, error.message)
    return findings.found


def validate_texts(tree: types.ExportedProgram) -> list[Finding]:
    """Checks that UTF-8 can hold the texts of a tree, whose types are right: one from a file has no others.

    Example:
        >>> import pt2wire, torch
        >>> tree = pt2wire.to_tree(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)))
        >>> tree.graph_module.graph.nodes[0].metadata["note"] = chr(0xD800)
        >>> for finding in validate_texts(tree):
        ...     print(finding.message)
        expected text that UTF-8 can hold, found a lone surrogate at 0
    """
    findings = Findings()
    try:
        json_codec.encode(tree)
    except CodecError as error:
        findings.add("type", error.path, error.message)
    return findings.found


def validate_tree(tree: types.ExportedProgram, permissions: Permissions = NO_PERMISSIONS) -> list[Finding]:
    """Checks the structure of a program; needs no torch, and runs nothing of the program.

    Args:
        tree: The program. Its types are taken to be right, as the codecs and `validate_types` guarantee.
        permissions: What the caller permits it.

    Returns:
        What is wrong, in the order of the tree; empty for an honest program.

    Example:
        >>> import pt2wire, torch
        >>> tree = pt2wire.to_tree(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)))
        >>> tree.graph_module.graph.nodes[0].target = "os.system"
        >>> for finding in validate_tree(tree):
        ...     print(finding)
        graph_module.graph.nodes[0].target: expected an operator or a symbolic function, \
found 'os.system', in node 'relu' (os.system) [target]
    """
    findings = Findings()
    _check_versions(tree, findings)
    module = tree.graph_module
    limits = permissions.limits
    symbols = Symbols(findings, tree.range_constraints, limits)
    program = ProgramState(findings, symbols, permissions, beyond=tree.beyond is not None)
    if tree.beyond == []:
        findings.add(
            "exact", "beyond", "expected what PyTorch cannot express, or no list, found an empty one"
        )
    program.tokens.update(
        spec.token.arg.name for spec in module.signature.input_specs if spec.type == "token"
    )
    scope = check_graphs(program, module.graph, "graph_module.graph", constant_names(module.signature))
    check_signature(module.graph, module.signature, scope, findings)
    check_module_calls(module, scope, findings, limits)
    _check_module_metadata(module, findings, limits)
    if module.custom is not None:
        for message in note_problems(module.custom, module.metadata.get("custom"), limits):
            findings.add("exact", "graph_module.custom", message)
    for index, spec in enumerate(module.signature.input_specs):
        if spec.type == "constant_input" and spec.constant_input.exact_value is not None:
            program.demand_beyond(f"graph_module.signature.input_specs[{index}].constant_input.exact_value")
    if tree.writer is None and (own := own_field(tree)) is not None:
        findings.add(
            "writer",
            "writer",
            f"expected the writer of the program's own fields, such as {own}, found none",
            "`pt2wire.write` fills it in; or set it to a Writer of pt2wire.generated",
        )
    _check_ranges(tree, symbols, findings, limits)
    check_guards(tree, findings, limits)
    return findings.found


def _check_versions(tree: types.ExportedProgram, findings: Findings) -> None:
    try:
        check_version(tree.schema_version, "")
    except DeserializeError as error:
        findings.add("schema-version", "schema_version", error.message, error.hint)
    for namespace, number in tree.opset_version.items():
        if number < 0 or check_identifier(namespace) is not None:
            message = f"expected a namespace and its version, found {namespace[:80]!r}: {number}"
            findings.add("opset-version", "opset_version", message)


def _check_ranges(tree: types.ExportedProgram, symbols: Symbols, findings: Findings, limits: Limits) -> None:
    for name, bounds in tree.range_constraints.items():
        path = f"range_constraints[{name[:80]!r}]"
        # A derived dimension is declared by its expression as sympy prints it, `2*s0`. It is only compared.
        if not name.isprintable() or not name:
            findings.add("range", path, f"expected a symbol or an expression, found {name[:80]!r}")
        elif len(name) > limits.range_name_length:
            message = f"expected at most {limits.range_name_length} characters, found {len(name)}"
            findings.add("range", path, message, raising("range_name_length"))
        of_integers = symbols.is_integer(name) or not name.isidentifier()
        if of_integers and (is_float_symbol(name) or (bounds.min_float, bounds.max_float) != (None, None)):
            message = f"expected a range of integers, found one of floats, for {name[:80]!r}"
            findings.add("range", path, message)
        lower, upper = _check_fractions(bounds, path, findings)
        if lower is not None and upper is not None and lower > upper:
            findings.add("range", path, f"expected min_val <= max_val, found {lower} > {upper}")
        least = symbols.least(name)
        if least is not None and upper is not None and upper < least:
            findings.add(
                "range", path, f"expected numbers from {least} up, as assumed, found at most {upper}"
            )


def _check_fractions(
    bounds: types.RangeConstraint, path: str, findings: Findings
) -> tuple[float | None, float | None]:
    """The bounds of a range; adds what is wrong with those that are fractions."""
    found: list[float | None] = []
    for field, fraction, whole, rounded in (
        ("min_float", bounds.min_float, bounds.min_val, math.ceil),
        ("max_float", bounds.max_float, bounds.max_val, math.floor),
    ):
        found.append(whole if fraction is None else fraction)
        if fraction is not None and not (math.isfinite(fraction) and rounded(fraction) == whole):
            findings.add(
                "exact", f"{path}.{field}", f"expected a number that rounds to {whole}, found {fraction}"
            )
    return found[0], found[1]


def _check_module_metadata(module: types.GraphModule, findings: Findings, limits: Limits) -> None:
    path = "graph_module.metadata['custom']"
    text = module.metadata.get("custom")
    if text is not None and (problem := check_json(text, limits)) is not None:
        findings.add("metadata", path, problem)
    for name, definition in module.treespec_namedtuple_fields.items():
        for field in definition.field_names:
            if (problem := check_identifier(field)) is not None:
                where = f"graph_module.treespec_namedtuple_fields[{name[:80]!r}]"
                findings.add("name", where, f"expected an identifier, found {field[:80]!r}: {problem}")
