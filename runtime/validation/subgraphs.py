"""Higher-order operators: which of their arguments are subgraphs, and how many operands and outputs each
has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..generated import types
from ..names import check_identifier


@dataclass(frozen=True, slots=True)
class Operands:
    """Where a higher-order operator takes its subgraphs and their operands, by position.

    Attributes:
        graphs: Positions of the subgraphs; each takes all operands.
        lists: Positions of the lists of operands.
        rest: The position from which on each argument is an operand itself.
        gives_outputs: Whether the call gives what each subgraph gives, so that there are equally many.
    """

    graphs: tuple[int, ...]
    lists: tuple[int, ...] = ()
    rest: int | None = None
    gives_outputs: bool = False


#: The higher-order operators of which all operands are visible in the arguments.
OPERANDS: Mapping[str, Operands] = {
    "cond": Operands(graphs=(1, 2), lists=(3,), gives_outputs=True),
    "while_loop": Operands(graphs=(0, 1), lists=(2, 3)),
    "map_impl": Operands(graphs=(0,), lists=(1, 2)),
    "scan": Operands(graphs=(0,), lists=(1, 2, 3)),
    "wrap_with_set_grad_enabled": Operands(graphs=(1,), rest=2, gives_outputs=True),
    "wrap_with_autocast": Operands(graphs=(4,), rest=5, gives_outputs=True),
}


def check_operands(node: types.Node, name: str) -> Iterator[str]:
    """What is wrong with the subgraphs of a call of a higher-order operator."""
    operands = OPERANDS.get(name)
    if operands is None:
        return
    exact = [item.value for item in node.exact_inputs or ()] or [None] * len(node.inputs)
    arguments: list[types.Argument | types.Value] = [
        value or named.arg for named, value in zip(node.inputs, exact, strict=False) if not named.name
    ]
    if len(arguments) != len(node.inputs):
        return  # given by keyword: nothing that exporters write
    least = max(*operands.graphs, *operands.lists, operands.rest or 0) + (operands.rest is None)
    if len(arguments) < least:
        yield f"expected at least {least} arguments, found {len(arguments)}"
        return
    graphs = []
    for position in operands.graphs:
        argument = arguments[position]
        if not isinstance(argument, types.Argument) or argument.type != "as_graph":
            yield f"expected a subgraph as argument {position}, found {argument.type}"
            return
        graphs.append(argument.as_graph)
    count = 0
    for position in operands.lists:
        values = arguments[position].value
        if not isinstance(values, list):
            yield f"expected a list of operands as argument {position}, found {arguments[position].type}"
            return
        count += len(values)
    if operands.rest is not None:
        count += len(arguments) - operands.rest
    for graph in graphs:
        if len(graph.graph.inputs) != count:
            found = len(graph.graph.inputs)
            yield f"expected {graph.name!r} to take {count} operands, found {found} inputs"
    if not operands.gives_outputs:
        return
    outputs = [_count(graph.graph.outputs) for graph in graphs]
    if len(set(outputs)) > 1:
        yield f"expected subgraphs with equally many outputs, found {' and '.join(map(str, outputs))}"
    elif outputs[0] != _count(node.outputs):
        yield f"expected {_count(node.outputs)} outputs of {graphs[0].name!r}, found {outputs[0]}"


_CALL_METHOD = "call_torchbind"


def check_method(node: types.Node, name: str) -> Iterator[str]:
    """What is wrong with a call of a method of a custom object: the method's name becomes an attribute's."""
    inputs = [named.arg for named in node.inputs if not named.name]
    if name == "with_effects":  # of a token and an operator with its arguments
        inputs, called = inputs[2:], inputs[1:2]
        if [argument.value for argument in called] != [f"torch.ops.higher_order.{_CALL_METHOD}"]:
            return
    elif name != _CALL_METHOD:
        return
    if [argument.type for argument in inputs[:2]] != ["as_custom_obj", "as_string"]:
        found = ", ".join(argument.type for argument in inputs[:2]) or "none"
        yield f"expected a custom object and the name of a method, found {found}"
        return
    method = inputs[1].as_string
    if check_identifier(method) is not None or method.startswith("_"):
        yield f"expected the name of a public method, found {method[:80]!r}"


def _count(outputs: list[types.Argument]) -> int:
    # A list of tensors stands for its members: so older versions of PyTorch wrote tuples.
    return sum(len(output.as_tensors) if output.type == "as_tensors" else 1 for output in outputs)
