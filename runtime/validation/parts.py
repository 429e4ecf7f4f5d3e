"""Operators that take a tensor apart into a list of others: the graph names each part.

A number decides how many there are, and each takes memory and time, whoever runs the program: a file of a few
bytes may ask for a billion. Needs no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..generated import types

Given = Mapping[str, types.Argument | types.Value]


def parts_problem(target: str, given: Given, results: int, graph: types.Graph) -> str | None:
    """What is wrong with how many parts an operator makes of a tensor.

    Args:
        target: What is called.
        given: The arguments by name, as the operator's schema has them.
        results: How many parts the graph names.
        graph: The graph, which describes the tensors.

    Returns:
        What was expected and found; None where all is well, where only the call shows how many parts there
        are, and for operators that take nothing apart.

    Example:
        >>> graph = types.Graph([], [], [], {}, {}, {})
        >>> given = {"sections": types.Argument.of_int(1 << 28)}
        >>> parts_problem("torch.ops.aten.tensor_split.sections", given, 5, graph)
        'expected 268435456 parts as sections says, found 5'
    """
    parting = _PARTINGS.get(target)
    if parting is None:
        return None
    number = None if parting.number is None else _number(given.get(parting.number), graph)
    parts = parting.count(number, _size(given, graph))
    if parts is not None and parts != results:
        return f"expected {parts} parts as {parting.number or 'the dimension'} says, found {results}"
    if parts is None and parting.number == "chunks" and number is not None and number > _MOST:
        return f"expected at most {_MOST} chunks of a symbolic size, found {number}"
    return None


_MOST = 65_536  # chunks of a dimension whose size only a call shows; each is at least one element


def _sections(number: int | None, size: int | None) -> int | None:
    return number


def _pieces(number: int | None, size: int | None) -> int | None:
    """Of a size, but for the last, which has what remains."""
    if number is None or number <= 0 or size is None:
        return None
    return max(-(-size // number), 1)


def _chunks(number: int | None, size: int | None) -> int | None:
    """So many, or as few as there are when all are as large but the last."""
    if not number or not size:
        return number if size == 0 else None
    return _pieces(-(-size // number), size)


def _slices(number: int | None, size: int | None) -> int | None:
    return size


@dataclass(frozen=True, slots=True)
class _Parting:
    """How an operator takes a tensor apart.

    Attributes:
        number: The parameter that says how; None where the dimension does.
        count: How many parts there are, for that number and the size of the dimension; None if not known.
    """

    number: str | None
    count: Callable[[int | None, int | None], int | None]


_PARTINGS: Mapping[str, _Parting] = {
    f"torch.ops.aten.{name}": parting
    for names, parting in (
        ("tensor_split.sections hsplit.int vsplit.int dsplit.int", _Parting("sections", _sections)),
        ("chunk.default unsafe_chunk.default", _Parting("chunks", _chunks)),
        ("split.Tensor unsafe_split.Tensor split_copy.Tensor", _Parting("split_size", _pieces)),
        ("unbind.int unbind_copy.int", _Parting(None, _slices)),
    )
    for name in names.split()
}


def _number(value: types.Argument | types.Value | None, graph: types.Graph) -> int | None:
    """A whole number among arguments; None where it is not known, or there is none."""
    match value:
        case types.Argument(type="as_int") | types.Value(type="as_int"):
            return value.as_int
        case types.Argument(type="as_sym_int") | types.Value(type="as_sym_int"):
            number = value.as_sym_int
            return number.as_int if number.type == "as_int" else _known(graph.sym_int_values[number.as_name])
    return None


def _known(number: types.SymInt) -> int | None:
    return number.as_int if number.type == "as_int" else None


def _size(given: Given, graph: types.Graph) -> int | None:
    """The size of the dimension that is taken apart, the first unless another is given."""
    tensor = given.get("self")
    if tensor is None or tensor.type != "as_tensor":
        return None
    sizes = graph.tensor_values[tensor.as_tensor.name].sizes
    dim = _number(given["dim"], graph) if "dim" in given else 0
    return _known(sizes[dim]) if dim is not None and -len(sizes) <= dim < len(sizes) else None
