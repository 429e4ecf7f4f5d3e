"""Whether a graph is what its module calls say: `torch.export.unflatten` takes that for granted.

It makes a module of the nodes of each call, in frames that open and close as the stacks of modules of nodes
do. A value that a call does not declare, though others use it, it takes for one that a mutation left behind,
and puts the argument of that in its place: the module computes something else, and may write to its inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch._export.passes._node_metadata_hook import _EMPTY_NN_MODULE_STACK_KEY
from torch._ops import OpOverload
from torch.export import ModuleCallEntry
from torch.export.graph_signature import ExportGraphSignature, OutputKind
from torch.fx import Graph, Node

from ..errors import DeserializeError
from ..warning import warn_user


class _Call(NamedTuple):
    """One call of a module: its name, `layer`, or `layer@1` the second time, and the module's class."""

    name: str
    type: str


#: The calls that a value is made in, outermost first.
_Frames = tuple[_Call, ...]

_MUTATIONS = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION, OutputKind.USER_INPUT_MUTATION)
#: What unflattening computes again where no call declares it, beside functions over numbers.
_COMPUTED_AGAIN = (
    torch.ops.aten.sym_size.int,
    torch.ops.aten.item.default,
    torch.ops.aten.unbind.int,
    torch.ops.aten.sum.dim_IntList,
    torch.ops.aten.view.default,
    torch.ops.aten.diff.default,
)


def check_module_calls(
    graph: Graph, signature: ExportGraphSignature, entries: Sequence[ModuleCallEntry]
) -> None:
    """Compare the module calls of a program with its graph.

    A program of which one call lies in several pieces is loaded with a warning: a pass may have left it so.

    Args:
        graph: The graph.
        signature: What its outputs are.
        entries: The module calls.

    Raises:
        DeserializeError: A value goes into a call, or comes out of one, and is none of its inputs or outputs.
    """
    frames = _frames(graph)
    declared = {
        entry.fqn: (
            {argument.name for argument in entry.signature.inputs},
            {argument.name for argument in entry.signature.outputs},
        )
        for entry in entries
        if entry.fqn and entry.signature is not None
    }
    if not declared:
        return
    left_behind = _left_behind(graph, signature)
    for node in frames:
        for used in node.all_input_nodes:
            _check_use(used, node, frames, declared, left_behind)


def _frames(graph: Graph) -> dict[Node, _Frames]:
    """The calls that each node belongs to; none at all where unflattening refuses the program."""
    frames: dict[Node, _Frames] = {}
    root: _Frames = (_Call("", ""),)
    current = root
    closed: set[str] = set()
    last = None
    for node in graph.nodes:
        if node.op in ("placeholder", "output"):
            frames[node] = root
            continue
        stack = node.meta.get("nn_module_stack")
        if not stack:
            return {}
        # What a pass adds belongs where it stands.
        if stack != last and stack.keys() != {_EMPTY_NN_MODULE_STACK_KEY}:
            calls = tuple(_call(key, *module) for key, module in stack.items())
            common = _common(calls, current)
            closed.update(call.name for call in current[common:])
            again = next((call.name for call in calls[common:] if call.name in closed), None)
            if again is not None or common == 0:
                warn_user(
                    f"the nodes of the module call {again or ''!r:.80} do not lie together: "
                    "torch.export.unflatten makes something else of the program; call its `module()`"
                )
                return {}
            current, last = calls, stack
        frames[node] = current
    return frames


def _call(key: str, path: str, class_name: str) -> _Call:
    if not path:
        return _Call("", "")
    number = key.partition("@")[2]
    return _Call(path if number in ("", "0") else f"{path}@{number}", class_name)


def _common(calls: _Frames, others: _Frames) -> int:
    """In how many calls, from the outermost, two nodes are together."""
    return next(
        (index for index, (call, other) in enumerate(zip(calls, others, strict=False)) if call != other),
        min(len(calls), len(others)),
    )


def _left_behind(graph: Graph, signature: ExportGraphSignature) -> set[Node]:
    """What mutations leave behind on their way from an input to the output that updates it."""
    inputs = {node.name: node for node in graph.find_nodes(op="placeholder")}
    targets = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    by_target = {target: inputs[name] for name, target in targets.items()} | inputs
    found: set[Node] = set()
    (outputs,) = graph.output_node().args
    for spec, output in zip(signature.output_specs, outputs, strict=True):  # type: ignore[arg-type]
        if spec.kind not in _MUTATIONS:
            continue
        chain: list[Node] = []
        while isinstance(output, Node) and output.op == "call_function" and output not in found:
            chain.append(output)
            output = output.args[0] if output.args else None
        if output in found or output is by_target.get(spec.target or ""):
            found.update(chain)
    return found


def _check_use(
    used: Node,
    user: Node,
    frames: Mapping[Node, _Frames],
    declared: Mapping[str, tuple[set[str], set[str]]],
    left_behind: set[Node],
) -> None:
    pending, seen = [used], {used}
    while pending:
        value = pending.pop()
        if value.op == "placeholder" or value in left_behind:
            continue
        common = _common(frames[value], frames[user])
        crossed = [(call.name, "outputs", 1) for call in frames[value][common:]]
        crossed += [(call.name, "inputs", 0) for call in frames[user][common:]]
        undeclared = next(
            (
                (call, kind)
                for call, kind, position in crossed
                if call in declared and value.name not in declared[call][position]
            ),
            None,
        )
        if undeclared is None:
            continue
        replaced = _in_place_of(value)
        if replaced is None:
            call, kind = undeclared
            raise DeserializeError(
                f"expected {value.name[:80]!r} among the {kind} of the module call {call[:80]!r}, "
                f"as {user.name[:80]!r} uses it, found it nowhere there",
                path="module_call_graph",
            )
        pending += [node for node in replaced if node not in seen]
        seen.update(replaced)


def _in_place_of(node: Node) -> Sequence[Node] | None:
    """What unflattening uses in place of a value that no call declares, if that comes to the same."""
    if node.target in _COMPUTED_AGAIN or getattr(node.target, "__module__", None) == "_operator":
        return node.all_input_nodes
    if isinstance(node.target, OpOverload) and node.args and isinstance(node.args[0], Node):
        schema = node.target._schema
        changed, results = schema.arguments[0].alias_info, [result.alias_info for result in schema.returns]
        if changed is not None and changed.is_write and len(results) == 1 and results[0] is not None:
            return [node.args[0]] if results[0].before_set == changed.before_set else None
    return None
