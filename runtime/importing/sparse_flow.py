"""What a program does with sparse tensors, and with the indices and values that lie in them.

Most operators of PyTorch believe the indices of a sparse tensor: whoever moves them lets the process read or
write anywhere. They are sound in weights and inputs, and stay so as long as a program hands sparse tensors,
and tensors that may lie in their memory, to nothing but what tables know. Which values are such is followed
through the graph; what is said of them in the file is not believed. Most programs have none.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Container, Iterator, Sequence
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload
from torch.export.graph_signature import ExportGraphSignature
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_leaves

from ..errors import UnsafeArtifactError
from ..memory_groups import MemoryGroups
from ..operators import allowing_packet
from ..sparse import is_sparse
from ..sparse_operators import (
    CHANGING_SPARSE,
    GIVING_INDICES,
    GIVING_VALUES,
    MAKING_FROM_PARTS,
    MAKING_SPARSE,
    ON_SPARSE,
    READING_PARTS,
    results_are_sparse,
)

_Traits = frozenset[str]
_NONE: _Traits = frozenset()
#: What a value may be: sparse itself, or in the memory of a sparse tensor's indices or values.
_SPARSE, _INDICES, _VALUES = frozenset({"sparse"}), frozenset({"indices"}), frozenset({"values"})

_SPARSE_LAYOUTS = frozenset(
    {torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc}
)
_GIVEN = {**dict.fromkeys(GIVING_INDICES, _INDICES), **dict.fromkeys(GIVING_VALUES, _VALUES)}
#: What they are given shares memory with what they give, but is no part of it, or the other way round.
_APART = _GIVEN.keys() | MAKING_FROM_PARTS.keys()
_Given = list[tuple[Any, list[Node]]]
_SAFE = "to be safe for sparse tensors and what lies in their memory"
#: They call their subgraphs once, with their last arguments.
_CALLING_ONCE = frozenset(
    "cond invoke_subgraph strict_mode tag_activation_checkpoint wrap wrap_activation_checkpoint"
    " wrap_with_autocast wrap_with_set_grad_enabled".split()
)


def check_sparse_flow(
    module: GraphModule, signature: ExportGraphSignature, allow_operators: Container[str]
) -> None:
    """Refuse a program that may move the indices of a sparse tensor, or use one where that is not safe.

    Args:
        module: The program's.
        signature: What its inputs and outputs are.
        allow_operators: Operators that may, as `namespace.name`.

    Raises:
        UnsafeArtifactError: It may.
    """
    if not any(_has_sparse(each) for each in module.modules() if isinstance(each, GraphModule)):
        return
    flow = _Flow(module, allow_operators, {})
    inputs = list(module.graph.find_nodes(op="placeholder"))
    flow.run([_SPARSE if is_sparse(node.meta.get("val")) else _NONE for node in inputs])
    updated = {*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()}
    names = {*updated, *(name for name, fqn in signature.inputs_to_buffers.items() if fqn in updated)}
    for node in inputs:
        if node.name in names and flow.traits(node) >= _INDICES:
            raise _moved(node, "an output, which updates it")


class _Flow:
    """What the values of a graph may be, so far."""

    def __init__(
        self,
        module: GraphModule,
        allowed: Container[str],
        known: dict[tuple[GraphModule, tuple[_Traits, ...]], list[_Traits]],
    ) -> None:
        self._module = module
        self._allowed = allowed
        self._known = known
        self._sparse: set[Node] = set()
        self._memory = MemoryGroups[Node]()
        self._parts: dict[Node, _Traits] = {}  # by what stands for the memory

    def run(self, inputs: Sequence[_Traits]) -> list[_Traits]:
        """Follow what each input may be, and tell what each output may be."""
        results: list[_Traits] = []
        given = iter(inputs)
        for node in self._module.graph.nodes:
            if node.op == "placeholder":
                self._mark(node, next(given, _NONE))
            elif node.op == "get_attr":
                self._mark(node, _SPARSE if is_sparse(_held(self._module, node)) else _NONE)
            elif node.op == "call_function":
                self._call(node)
            elif node.op == "output":
                outputs = [value for value in tree_leaves(node.args) if isinstance(value, Node)]
                results = [self.traits(value) for value in outputs]
        return results

    def traits(self, value: Node) -> _Traits:
        return self._parts.get(self._memory.of(value), _NONE) | (_SPARSE if value in self._sparse else _NONE)

    def _call(self, node: Node) -> None:
        target = node.target
        if isinstance(target, OpOverload):
            self._call_operator(node, target)
        elif isinstance(target, HigherOrderOperator):
            self._call_higher_order(node, target)
        else:  # an item of a list of results, a function of functorch, or of an extension
            for value in node.all_input_nodes:
                self._share(node, value)
                self._mark(node, self.traits(value))
            if self.traits(node) - _VALUES and target is not operator.getitem:
                raise _unknown(target, node)

    def _call_operator(self, node: Node, target: OpOverload) -> None:
        packet = _packet(target)
        given = list(_given(node, target))
        sparse = [value in self._sparse for _, values in given for value in values]
        if any(sparse) and packet not in self._allowed:
            self._check_sparse(node, target, given)
        for parameter, values in given:
            for value in values:
                self._take_part(node, target, parameter, value)
                if parameter.name in MAKING_FROM_PARTS.get(packet, ()):
                    self._mark(value, _INDICES)
        allowed = packet in self._allowed and any(sparse)
        if _is_made_sparse(node, target) or allowed or results_are_sparse(packet, sparse):
            self._mark(node, _SPARSE)
        self._mark(node, _GIVEN.get(packet, _NONE))

    def _check_sparse(self, node: Node, target: OpOverload, given: _Given) -> None:
        """An operator is given sparse tensors: refuse that unless it is known to be safe for them."""
        packet = _packet(target)
        out = any(parameter.is_out for parameter, values in given if values)
        changed = any(
            _is_written(parameter) for parameter, values in given if not self._sparse.isdisjoint(values)
        )
        if out or packet.rstrip("_") not in ON_SPARSE or (changed and packet not in CHANGING_SPARSE):
            raise _unknown(target, node)

    def _take_part(self, node: Node, target: OpOverload, parameter: Any, value: Node) -> None:
        """An operator is given what may lie in the memory of a sparse tensor."""
        packet, traits, alias = _packet(target), self._parts_of(value), parameter.alias_info
        if packet in _APART or (alias is None and packet.rstrip("_") in READING_PARTS):
            return
        written = _is_written(parameter)
        if packet not in self._allowed:
            if written and traits >= _INDICES:
                raise _moved(value, packet, allowing_packet(packet))
            if alias is None and traits >= _INDICES:
                raise _unknown(target, node)
            if written and traits >= _VALUES and (parameter.is_out or torch.Tag.inplace_view in target.tags):
                raise _resized(value, packet)
        if written and value in self._sparse:
            self._mark(node, _SPARSE)
        self._share(node, value)

    def _call_higher_order(self, node: Node, target: HigherOrderOperator) -> None:
        leaves = tree_leaves((node.args, node.kwargs))
        graphs = [graph for leaf in leaves if (graph := _subgraph(self._module, leaf)) is not None]
        operators = [leaf for leaf in leaves if isinstance(leaf, OpOverload)]
        once = target._name in _CALLING_ONCE and not node.kwargs
        union = _NONE.union(*map(self.traits, node.all_input_nodes))
        for called in operators:
            if (union or _is_made_sparse(node, called)) and _packet(called) not in self._allowed:
                raise _unknown(called, node)
        if union - _VALUES and not once and not operators:
            raise _unknown(target, node)
        for value in node.all_input_nodes:
            self._share(node, value)
        for graph in graphs:
            inputs: list[_Traits] = [union] * len(graph.graph.find_nodes(op="placeholder"))
            if once and len(inputs) <= len(leaves):
                last = leaves[len(leaves) - len(inputs) :]
                inputs = [self.traits(leaf) if isinstance(leaf, Node) else _NONE for leaf in last]
            for traits in self._run(graph, tuple(inputs)):
                if traits - _VALUES and not once:
                    raise _unknown(target, node)
                self._mark(node, traits)

    def _run(self, graph: GraphModule, inputs: tuple[_Traits, ...]) -> list[_Traits]:
        """`run` of a subgraph, once for each kind of inputs."""
        if (graph, inputs) not in self._known:
            self._known[graph, inputs] = _Flow(graph, self._allowed, self._known).run(inputs)
        return self._known[graph, inputs]

    def _parts_of(self, value: Node) -> _Traits:
        return self._parts.get(self._memory.of(value), _NONE)

    def _mark(self, value: Node, traits: _Traits) -> None:
        if traits >= _SPARSE:
            self._sparse.add(value)
        if parts := traits - _SPARSE:
            self._parts[self._memory.of(value)] = self._parts_of(value) | parts

    def _share(self, value: Node, other: Node) -> None:
        parts = self._parts_of(value) | self._parts_of(other)
        both = self._memory.join(value, other)
        if parts:
            self._parts[both] = parts


def _is_written(parameter: Any) -> bool:
    return parameter.alias_info is not None and parameter.alias_info.is_write


def _moved(value: Node, writer: str, hint: str | None = None) -> UnsafeArtifactError:
    message = (
        f"expected indices of sparse tensors to stay as they are, found {_name(value)} changed by {writer}"
    )
    return UnsafeArtifactError(message, path="graph", hint=hint)


def _resized(value: Node, packet: str) -> UnsafeArtifactError:
    message = f"expected values of sparse tensors to keep their sizes, found {_name(value)} given to {packet}"
    return UnsafeArtifactError(message, path="graph", hint=allowing_packet(packet))


def _unknown(target: Any, node: Node) -> UnsafeArtifactError:
    packet = _packet(target) if isinstance(target, OpOverload) else getattr(target, "_name", str(target))
    message = f"expected an operator that is known {_SAFE}, found {packet}, in node {_name(node)}"
    hint = allowing_packet(packet) if isinstance(target, OpOverload) else None
    return UnsafeArtifactError(message, path="graph", hint=hint)


def _name(value: Node) -> str:
    return repr(value.name[:80])


def _has_sparse(module: GraphModule) -> bool:
    """Whether a graph is given sparse tensors, holds or makes some."""
    for node in module.graph.nodes:
        if node.op == "call_function":
            leaves = tree_leaves(node.args) if isinstance(node.target, HigherOrderOperator) else ()
            operators = (each for each in (node.target, *leaves) if isinstance(each, OpOverload))
            if any(_is_made_sparse(node, called) for called in operators):
                return True
        elif node.op == "placeholder":
            if is_sparse(node.meta.get("val")):
                return True
        elif node.op == "get_attr" and is_sparse(_held(module, node)):
            return True
    return False


def _is_made_sparse(node: Node, target: OpOverload) -> bool:
    """Whether an operator may make sparse tensors of others."""
    by_name, by_layout = _may_make_sparse(target)
    return by_name or (by_layout and any(map(_is_layout, (*node.args, *node.kwargs.values()))))


@functools.lru_cache(maxsize=4_096)
def _may_make_sparse(target: OpOverload) -> tuple[bool, bool]:
    """Whether it does, and whether it does if it is told so."""
    packet = _packet(target)
    by_name = packet in MAKING_SPARSE or packet in MAKING_FROM_PARTS
    # What is in no table is refused, unless the caller allows it; of that, nothing is known but the name.
    by_name |= "sparse" in packet and packet.rstrip("_") not in ON_SPARSE
    return by_name, any("Layout" in str(parameter.real_type) for parameter in target._schema.arguments)


def _is_layout(value: object) -> bool:
    return isinstance(value, torch.layout) and value in _SPARSE_LAYOUTS


def _held(module: GraphModule, node: Node) -> object:
    """What a graph holds under the name that a node asks for."""
    found: object = module
    for name in str(node.target).split("."):
        found = getattr(found, name, None)
    return found


def _subgraph(module: GraphModule, leaf: object) -> GraphModule | None:
    held = _held(module, leaf) if isinstance(leaf, Node) and leaf.op == "get_attr" else None
    return held if isinstance(held, GraphModule) else None


@functools.lru_cache(maxsize=4_096)
def _packet(target: OpOverload) -> str:
    return f"{target.namespace}.{target._opname}"


def _given(node: Node, target: OpOverload) -> Iterator[tuple[Any, list[Node]]]:
    """The parameters of a call, with the values in each."""
    for position, parameter in enumerate(target._schema.arguments):
        given = node.args[position] if position < len(node.args) else node.kwargs.get(parameter.name)
        yield parameter, [value for value in tree_leaves(given) if isinstance(value, Node)]
