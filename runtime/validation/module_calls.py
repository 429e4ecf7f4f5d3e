"""The module call graph: how the program and its submodules were called."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from ..called_with import passed_inputs
from ..errors import DeserializeError
from ..exact_treespecs import parse_exact_treespec, treespecs_agree
from ..generated import types
from ..limits import Limits
from ..names import check_forward_name, check_fqn, check_key
from ..treespecs import SpecNode, key_texts, parse_treespec
from .arguments import argument_names
from .rules import Findings
from .scopes import Scope

_CALLS = "graph_module.module_call_graph"


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
    passed = len(passed_inputs(module.signature))
    for index, entry in enumerate(entries):
        path = f"{_CALLS}[{index}]"
        if entry.fqn and (problem := check_fqn(entry.fqn)) is not None:
            message = f"expected a qualified name, found {entry.fqn[:80]!r}: {problem}"
            findings.add("fqn", f"{path}.fqn", message)
        signature = entry.signature
        if signature is None:
            continue
        where = f"{path}.signature"
        _check_values(signature, where, scope, findings)
        # A pass may have changed what the program returns, as PyTorch's do where a tensor of a subclass is
        # taken apart. Its module then says so when it is called; the graph is as sound as others.
        leaves = (len(signature.inputs), len(signature.outputs)) if entry.fqn else (passed, None)
        in_spec = _check_structure(signature, leaves, where, scope, findings, limits)
        if in_spec is not None and not entry.fqn:
            _check_program(signature, in_spec, where, findings)
        _check_forward_names(signature.forward_arg_names or (), f"{where}.forward_arg_names", findings)


def _check_values(signature: types.ModuleCallSignature, path: str, scope: Scope, findings: Findings) -> None:
    for field in ("inputs", "outputs"):
        for position, argument in enumerate(getattr(signature, field)):
            for name in argument_names(argument):
                if name not in scope.taken:
                    message = f"expected a value of the graph, found {name[:80]!r}"
                    findings.add("module-calls", f"{path}.{field}[{position}]", message)


def _check_structure(
    signature: types.ModuleCallSignature,
    leaves: tuple[int, int | None],
    path: str,
    scope: Scope,
    findings: Findings,
    limits: Limits,
) -> SpecNode | None:
    """Checks what inputs and outputs nest in. Gives the tree spec of the inputs, where there is one."""
    check = functools.partial(_check_treespecs, scope=scope, findings=findings, limits=limits)
    passed, returned = leaves
    in_spec = check(signature.in_spec, signature.exact_in_spec, passed, path, "in_spec")
    check(signature.out_spec, signature.exact_out_spec, returned, path, "out_spec")
    if in_spec is not None and not _is_call(in_spec):
        findings.add(
            "module-calls",
            f"{path}.in_spec",
            "expected a tuple of the positional arguments, a tuple, and the keyword arguments, a dict",
        )
    return in_spec


def _check_program(
    signature: types.ModuleCallSignature, in_spec: SpecNode, path: str, findings: Findings
) -> None:
    """Checks what the program is called with, from which PyTorch makes source."""
    if signature.forward_arg_names and _is_call(in_spec):
        _check_argument_names(signature.forward_arg_names, in_spec, path, findings)
    for key in key_texts(in_spec):
        if (problem := check_key(key)) is not None:
            message = f"expected a plain text as key, found {key[:60]!r}, which {problem}"
            findings.add("treespec", f"{path}.in_spec", message)


def _check_forward_names(names: Sequence[str], path: str, findings: Findings) -> None:
    earlier: set[str] = set()
    for position, name in enumerate(names):
        where = f"{path}[{position}]"
        if name in earlier:
            message = f"expected distinct names of arguments, found {name[:80]!r} again"
            findings.add("module-calls", where, message)
        earlier.add(name)
        if (problem := check_forward_name(name)) is not None:
            findings.add("name", where, f"expected an identifier, found {name[:80]!r}: {problem}")


def _check_treespecs(
    text: str,
    exact: Sequence[types.TreeSpecNode] | None,
    leaves: int | None,
    path: str,
    field: str,
    *,
    scope: Scope,
    findings: Findings,
    limits: Limits,
) -> SpecNode | None:
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


def _check_argument_names(names: list[str], in_spec: SpecNode, path: str, findings: Findings) -> None:
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
    parse: Callable[[], SpecNode], leaves: int | None, path: str, findings: Findings
) -> SpecNode | None:
    try:
        spec = parse()
    except DeserializeError as error:
        findings.add_error("treespec", path, error)
        return None
    if leaves is not None and spec.leaf_count != leaves:
        message = f"expected {leaves} leaves, one for each value, found {spec.leaf_count}"
        findings.add("treespec-leaves", path, message)
    return spec


def _is_call(spec: SpecNode) -> bool:
    match spec:
        case SpecNode(
            type="builtins.tuple",
            children=(SpecNode(type="builtins.tuple"), SpecNode(type="builtins.dict")),
        ):
            return True
        case _:
            return False
