"""Where a tree names values: what each node uses and defines, to be looked at and to be renamed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..errors import DeserializeError
from ..generated import Struct, Union, types
from .encoding import encoded

#: The tables of a graph that describe its values by name.
TABLES = ("tensor_values", "sym_int_values", "sym_bool_values", "custom_obj_values", "sym_float_values")

_NAMED = (types.TensorArgument, types.TokenArgument, types.CustomObjArgument)
_SYMBOLIC = (types.SymIntArgument, types.SymFloatArgument, types.SymBoolArgument)

# Members of Argument that are lists of values, each of which may also be a constant.
_LISTS = (
    "as_tensors",
    "as_sym_ints",
    "as_sym_floats",
    "as_sym_bools",
    "as_optional_tensors",
    "as_nested_tensors",
)


class Named:
    """A place in a tree that holds the name of a value.

    Attributes:
        holder: The object that has the name in one of its fields.
        is_symbolic: Whether it is a symbolic number, which is no memory that could be changed.
    """

    __slots__ = ("_field", "holder", "is_symbolic")

    def __init__(self, holder: Struct | Union, field: str) -> None:
        self.holder = holder
        self.is_symbolic = isinstance(holder, _SYMBOLIC)
        self._field = field

    @property
    def name(self) -> str:
        name: str = getattr(self.holder, self._field)
        return name

    @name.setter
    def name(self, name: str) -> None:
        setattr(self.holder, self._field, name)


class Call:
    """A node with what it uses and defines.

    Attributes:
        node: The node.
        uses: The values among its arguments.
        definitions: The values among its results.
        subgraphs: The subgraphs among its arguments.
        references: The places that name one of `node.subgraphs`.
        structures: The places that name one of the graph's structures.
    """

    __slots__ = ("definitions", "node", "references", "structures", "subgraphs", "uses")

    def __init__(self, node: types.Node) -> None:
        self.node = node
        self.uses: list[Named] = []
        self.definitions: list[Named] = []
        self.subgraphs: list[types.GraphArgument] = []
        self.references = list(_references(node.exact_inputs, "as_subgraph"))
        self.structures = list(_references(node.exact_inputs, "as_structure"))
        for field in node.FIELD_IDS:
            if field not in ("metadata", "outputs"):
                _collect(getattr(node, field), self.uses, self.subgraphs)
        _collect(node.outputs, self.definitions, self.subgraphs)


def _references(part: Any, member: str) -> Iterator[types.Value]:
    """The values that name a subgraph, or what else the member says."""
    if isinstance(part, types.Value) and part.type == member:
        yield part
    elif isinstance(part, types.NamedTupleValue):
        yield from _references(part.values, member)
    elif isinstance(part, types.Value | types.NamedValue | types.ValueItem):
        yield from _references(part.value, member)
    elif isinstance(part, list):
        for item in part:
            yield from _references(item, member)


def calls_of(graph: types.Graph) -> list[Call]:
    """The nodes of a graph with what they use and define."""
    return [Call(node) for node in graph.nodes]


def named_values(part: Any) -> list[Named]:
    """The places in a part of a tree that name values, in order, subgraphs left out."""
    found: list[Named] = []
    _collect(part, found, [])
    return found


def given_values(graph: types.Graph) -> list[Named]:
    """The places in a graph that name what no node makes: its inputs, then the tensors that it holds."""
    return named_values(graph.inputs) + [Named(constant, "name") for constant in graph.constants or ()]


def rename(values: Iterable[Named], names: Mapping[str, str]) -> None:
    """Renames values. What has no new name keeps its own, such as a custom object of the whole program."""
    for value in values:
        value.name = names.get(value.name, value.name)


#: Kinds of outputs that name an input.
_NAMING_INPUTS = ("user_input_mutation", "gradient_to_user_input")


def rename_signature(signature: types.GraphSignature, names: Mapping[str, str]) -> None:
    """Renames the values that a signature names."""
    rename(named_values(signature), names)
    for output in signature.output_specs:
        if output.type in _NAMING_INPUTS:
            spec = output.value
            spec.user_input_name = names.get(spec.user_input_name, spec.user_input_name)


def sort_held_tensors(graph: types.Graph) -> None:
    """Puts the tensors that a graph holds in an order that does not depend on their names."""

    def key(constant: types.GraphConstant) -> tuple[bytes, bytes, bool]:
        meta = graph.tensor_values.get(constant.name)
        return constant.data, b"" if meta is None else encoded(meta), constant.requires_grad

    if graph.constants is not None:
        graph.constants.sort(key=key)


#: What the members of `Value` that are names refer to.
_HOLDERS = {"as_structure": "graph's tree specs", "as_subgraph": "node's subgraphs"}


def refer_to(names: Mapping[str, str], references: Iterable[types.Value], path: str) -> None:
    """Renames what some values refer to.

    Raises:
        DeserializeError: There is nothing of a name.
    """
    for reference in references:
        member, name = reference.type, reference.value
        if name not in names:
            raise DeserializeError(f"expected one of the {_HOLDERS[member]}, found {name!r:.80}", path=path)
        setattr(reference, member, names[name])


def merge_structures(graph: types.Graph, calls: list[Call], path: str) -> None:
    """Names the tree specs that a graph holds by what they are, so that equal ones are one.

    Raises:
        DeserializeError: A node of the graph, which is at `path`, takes one that the graph does not hold.
    """
    named = {}
    for structure in graph.structures or ():
        old, structure.name, structure.target = structure.name, "", ""
        named[old] = f"_{hashlib.sha256(encoded(structure)).hexdigest()[:32]}"
        structure.name = structure.target = named[old]
    for number, call in enumerate(calls):
        refer_to(named, call.structures, f"{path}.nodes[{number}]")
    if graph.structures is not None:
        by_name = {structure.name: structure for structure in graph.structures}
        graph.structures = [by_name[name] for name in sorted(by_name)]


def content(call: Call, name_of: Callable[[str], str]) -> bytes:
    """A node as bytes without names of its own.

    Args:
        call: The node; it is changed, and changed back.
        name_of: What to write for the name of a value that it uses.
    """
    values = (*call.uses, *call.definitions)
    old = [value.name for value in values]
    for value in call.uses:
        value.name = name_of(value.name)
    for value in call.definitions:
        value.name = ""
    encoded_node = encoded(call.node)
    for value, name in zip(values, old, strict=True):
        value.name = name
    return encoded_node


def used_names(argument: types.Argument) -> list[str | None]:
    """The names of the values in an argument, None for each constant beside them."""
    if argument.type in _LISTS:
        return [name for item in argument.value for name in _names_of_item(item)]
    if argument.type == "as_string_to_argument":  # PyTorch's order does not look into it
        return [None]
    names: list[str | None] = [named.name for named in named_values(argument)]
    return names or [None]


def _names_of_item(item: Any) -> list[str | None]:
    found: list[str | None] = [named.name for named in named_values(item)]
    return found if found or isinstance(item, list) else [None]


def _collect(part: Any, found: list[Named], subgraphs: list[types.GraphArgument]) -> None:
    collect = _COLLECTORS.get(type(part))
    if collect is None:
        collect = _COLLECTORS[type(part)] = _collector(type(part))
    collect(part, found, subgraphs)


_Collector = Callable[[Any, list[Named], list[types.GraphArgument]], None]


def _collector(kind: type[Any]) -> _Collector:
    if kind is types.GraphArgument:
        return lambda part, found, subgraphs: subgraphs.append(part)
    if issubclass(kind, _NAMED):
        return lambda part, found, subgraphs: found.append(Named(part, "name"))
    if issubclass(kind, _SYMBOLIC):
        return _collect_symbolic
    if issubclass(kind, Union):
        return lambda part, found, subgraphs: _collect(part.value, found, subgraphs)
    if issubclass(kind, Struct):
        return _collect_struct
    if issubclass(kind, list):
        return _collect_list
    if issubclass(kind, dict):
        return _collect_dict
    return lambda part, found, subgraphs: None


def _collect_symbolic(part: Any, found: list[Named], subgraphs: list[types.GraphArgument]) -> None:
    if part.type == "as_name":
        found.append(Named(part, "as_name"))


def _collect_struct(part: Struct, found: list[Named], subgraphs: list[types.GraphArgument]) -> None:
    for field in part.FIELD_IDS:
        _collect(getattr(part, field), found, subgraphs)


def _collect_list(part: list[Any], found: list[Named], subgraphs: list[types.GraphArgument]) -> None:
    if part and not isinstance(part[0], bool | int | float | str):
        for item in part:
            _collect(item, found, subgraphs)


def _collect_dict(part: dict[str, Any], found: list[Named], subgraphs: list[types.GraphArgument]) -> None:
    for item in part.values():
        _collect(item, found, subgraphs)


# By class; filled as classes are met.
_COLLECTORS: dict[type[Any], _Collector] = {}
