"""Whether a program changes indices of a sparse tensor in place.

PyTorch checks them when the tensor is made, and uses them as they are from then on: what is changed later may
lie anywhere in the memory of the process. No exporter meets a model that does so.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any

from torch._ops import HigherOrderOperator, OpOverload
from torch.export.graph_signature import ExportGraphSignature
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_leaves

from ..errors import UnsafeArtifactError
from ..memory_groups import MemoryGroups
from ..operators import allowing_packet

_INDICES = frozenset({"crow_indices", "col_indices", "ccol_indices", "row_indices"})
#: What gives the memory in which a sparse tensor has its indices.
_GETTERS = frozenset(f"aten.{name}" for name in ("indices", "_indices", *_INDICES))
#: Parameters that become the indices of the sparse tensor that an operator makes of them.
_PARAMETERS = _INDICES | {"indices", "compressed_indices", "plain_indices"}
_MAKERS = frozenset(
    f"aten.{prefix}sparse_{layout}_tensor{suffix}"
    for layout in ("coo", "csr", "csc", "bsr", "bsc", "compressed")
    for prefix, suffix in (("", ""), ("_", "_unsafe"))
) | {"aten._sparse_coo_tensor_with_dims_and_tensors"}
_TOUCHING = _GETTERS | _MAKERS
#: These change copies of what they are given.
_COPYING = frozenset({"auto_functionalized", "auto_functionalized_v2"})


def check_index_memory(
    module: GraphModule, signature: ExportGraphSignature, allow_operators: Container[str]
) -> None:
    """Refuse a program that changes indices of a sparse tensor in place.

    Args:
        module: The program's.
        signature: What its inputs and outputs are.
        allow_operators: Operators that may, as `namespace.name`.

    Raises:
        UnsafeArtifactError: It does.
    """
    modules = [each for each in module.modules() if isinstance(each, GraphModule)]
    if not any(_touches(each) for each in modules):
        return
    for each in modules:
        memory = _Memory(each, allow_operators)
        for node in each.graph.nodes:
            if node.op == "call_function":
                memory.call(node)
        if each is module:
            updated = {*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()}
            names = {*updated, *(name for name, fqn in signature.inputs_to_buffers.items() if fqn in updated)}
            for node in each.graph.find_nodes(op="placeholder"):
                if node.name in names:
                    memory.check_stays(node, "an output, which updates it")


class _Memory:
    """Which values of a graph share memory, so far, and which of them are indices of sparse tensors."""

    def __init__(self, module: GraphModule, allow_operators: Container[str]) -> None:
        self._module = module
        self._allowed = allow_operators
        self._memory = MemoryGroups[Node]()
        self._indices: set[Node] = set()

    def call(self, node: Node) -> None:
        target = node.target
        if isinstance(target, OpOverload):
            self._call_operator(node, target)
        elif isinstance(target, HigherOrderOperator):
            self._call_higher_order(node, target)
        else:  # an item of a list of results
            self._share(node, node.all_input_nodes)

    def check_stays(self, value: Node, writer: str, hint: str | None = None) -> None:
        """A value is changed in place: refuse that where it is indices."""
        if self._memory.of(value) in self._indices:
            raise UnsafeArtifactError(
                "expected indices of sparse tensors to stay as they are, "
                f"found {value.name[:80]!r} changed by {writer}",
                path="graph",
                hint=hint,
            )

    def _call_operator(self, node: Node, target: OpOverload) -> None:
        packet = _packet(target)
        if packet in _GETTERS:
            self._indices.add(node)
            return
        given = list(_given(node, target))
        for parameter, values in given:
            if parameter.alias_info is not None and parameter.alias_info.is_write:
                self._write(values, target)
        for parameter, values in given:
            if parameter.alias_info is not None:
                self._share(node, values)
            if packet in _MAKERS and parameter.name in _PARAMETERS:
                self._indices.update(map(self._memory.of, values))

    def _call_higher_order(self, node: Node, target: HigherOrderOperator) -> None:
        subgraphs = [each for value in node.all_input_nodes for each in self._subgraphs(value)]
        called = [*node.args, *(inner.target for each in subgraphs for inner in each.graph.nodes)]
        for operator in called if target._name not in _COPYING else ():
            if isinstance(operator, OpOverload) and operator._schema.is_mutable:
                self._write(node.all_input_nodes, operator)
        self._share(node, node.all_input_nodes)
        if any(map(_touches, subgraphs)):
            self._indices.add(self._memory.of(node))

    def _write(self, values: Iterable[Node], operator: OpOverload) -> None:
        packet = _packet(operator)
        if packet not in self._allowed:
            for value in values:
                self.check_stays(value, packet, allowing_packet(packet))

    def _subgraphs(self, value: Node) -> Iterator[GraphModule]:
        held = getattr(self._module, str(value.target), None) if value.op == "get_attr" else None
        if isinstance(held, GraphModule):
            yield from (each for each in held.modules() if isinstance(each, GraphModule))

    def _share(self, node: Node, values: Iterable[Node]) -> None:
        for value in values:
            holds_indices = self._memory.of(node) in self._indices
            both = self._memory.join(node, value)
            if holds_indices:
                self._indices.add(both)


def _touches(module: GraphModule) -> bool:
    return any(
        isinstance(node.target, OpOverload) and _packet(node.target) in _TOUCHING
        for node in module.graph.nodes
    )


def _packet(target: OpOverload) -> str:
    return f"{target.namespace}.{target._opname}"


def _given(node: Node, target: OpOverload) -> Iterator[tuple[Any, list[Node]]]:
    """The parameters of a call, with the values in each."""
    for position, parameter in enumerate(target._schema.arguments):
        given = node.args[position] if position < len(node.args) else node.kwargs.get(parameter.name)
        yield parameter, [value for value in tree_leaves(given) if isinstance(value, Node)]
