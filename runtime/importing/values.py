"""What a name in a graph stands for: fake tensors and symbolic numbers, with devices and dtypes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx import Graph, Node
from torch.nn import Module

from ..errors import DeserializeError
from ..generated import types
from ..items import Listed
from ..layouts import PARTS
from ..names import check_device, check_value_name
from ..permissions import NO_PERMISSIONS, Permissions
from ..sparse import put_together
from .faults import cause_of, each, each_value, located
from .metadata import Metadata
from .objects import Objects
from .symbols import Symbols


def _torch_values(enum: Any) -> dict[Any, Any]:
    """The generated table of an enum's names in torch, as a table to torch's objects."""
    return {member: getattr(torch, name) for member, name in types.TORCH_NAMES[enum].items()}


_SCALAR_TYPES: dict[types.ScalarType, torch.dtype] = _torch_values(types.ScalarType)
_EXTRA_SCALAR_TYPES: dict[types.ExtraScalarType, torch.dtype] = _torch_values(types.ExtraScalarType)
_LAYOUTS: dict[types.Layout, torch.layout] = _torch_values(types.Layout)
_MEMORY_FORMATS: dict[types.MemoryFormat, torch.memory_format] = _torch_values(types.MemoryFormat)


#: Of a description, the tensor that it is of, as a plain one, and what makes those that it is made of.
MakeSubclass = Callable[
    [types.TensorMeta, torch.Tensor, Callable[[types.TensorMeta], torch.Tensor]], torch.Tensor
]


class Program:
    """What all graphs of a program share while it is built.

    Attributes:
        symbols: Its symbolic numbers.
        permissions: What the caller permits it.
        tensors: Its fake tensors.
        metadata: Its nodes' metadata.
        objects: Its custom objects.
        hidden: The `getitem` nodes that repeat others, and what they are to be called with.
    """

    def __init__(
        self,
        symbols: Symbols,
        permissions: Permissions = NO_PERMISSIONS,
        make_subclass: MakeSubclass | None = None,
        objects: Objects | None = None,
    ) -> None:
        self.symbols = symbols
        self.objects = objects or Objects({}, types.GraphSignature([], []))
        self.permissions = permissions
        self.tensors = FakeTensors(symbols, make_subclass)
        self.metadata = Metadata()
        self.hidden: list[tuple[Node, tuple[Any, ...]]] = []


@dataclass(slots=True)
class Values:
    """One graph while it is built, and the values that it has defined so far.

    Attributes:
        program: What it shares with the program's other graphs.
        tree: The graph to read.
        constant_inputs: By position, what the signature says of its inputs that are constants.
        graph: The FX graph, as far as it is built.
        module: The module that holds its subgraphs.
        nodes: The FX node that produces each value.
        unnamed: The `getitem` nodes whose names the format does not keep, as an ordered set.
        items: The nodes of `Graph.getitems` that are still to be made.
        kept: Those that were made.
        subgraphs: The graph read for each subgraph name.
        attributes: The `get_attr` nodes, by name.
        taken: The names that the tree gives to inputs, nodes and their results.
        held: The attributes of the module that are tensors and tree specs.
        structures: The nodes that stand for tree specs and functions, by name.
        regions: The nodes that opened a region of autocast which is not closed yet.
        in_containers: Of the node that is being read, the subgraphs in containers among its arguments.
    """

    program: Program
    tree: types.Graph
    constant_inputs: dict[int, types.InputToConstantInputSpec]
    graph: Graph = field(default_factory=Graph)
    module: Module = field(default_factory=Module)
    nodes: dict[str, Node] = field(default_factory=dict)
    unnamed: dict[Node, None] = field(default_factory=dict)
    items: Listed = field(default_factory=dict)
    kept: set[Node] = field(default_factory=set)
    subgraphs: dict[str, types.Graph] = field(default_factory=dict)
    attributes: dict[str, Node] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    structures: dict[str, Node] = field(default_factory=dict)
    regions: list[Node] = field(default_factory=list)
    in_containers: dict[str, types.GraphArgument] = field(default_factory=dict)
    taken: set[str] = field(init=False)

    def __post_init__(self) -> None:
        tree = self.tree
        tables = (tree.tensor_values, tree.sym_int_values, tree.sym_bool_values, tree.sym_float_values)
        self.taken = {name for table in (*tables, tree.custom_obj_values) for name in table}
        self.taken.update(node.name for node in tree.nodes if node.name is not None)
        self.taken.update(constant.name for constant in self.constant_inputs.values())
        self.taken.update(structure.name for structure in tree.structures or ())

    def node(self, name: str) -> Node:
        """The FX node that produces a value."""
        try:
            return self.nodes[name]
        except KeyError:
            raise DeserializeError(f"expected a value defined before, found the name {name!r}") from None

    def define(self, name: str, node: Node) -> None:
        """Let an FX node produce a value, and give it the value's name and metadata.

        Symbolic sizes are shared between values, but not those of inputs: tracing tells these apart by
        identity.
        """
        if name in self.nodes:
            raise DeserializeError(f"expected a new name for a value, found {name!r} again")
        check_name(name)
        # FX alters a name that it finds unfit (`input`, say), yet this one worked when the program was saved.
        node.name = name
        self.nodes[name] = node
        node.meta["val"] = import_value(name, self, own=node.op == "placeholder")


def check_name(name: str, check: Callable[[str], str | None] = check_value_name) -> None:
    """Refuse a name that is no identifier: FX pastes names into the source that it generates.

    Raises:
        DeserializeError: The name is none; by default, none that a variable may have there.
    """
    if reason := check(name):
        raise DeserializeError(f"expected an identifier as name, found {name[:80]!r}, which is {reason}")


def import_value(name: str, values: Values, own: bool = False) -> Any:
    """Read what a name stands for: the metadata of an FX node.

    Args:
        name: The name of a value that the graph lists.
        values: The graph.
        own: Whether it shares no symbolic number with another value.

    Returns:
        A fake tensor, a number, a symbolic number, or what PyTorch keeps of a custom object.

    Raises:
        DeserializeError: The graph lists no such value, or its description is wrong.
    """
    tree = values.tree
    try:
        if (meta := tree.tensor_values.get(name)) is not None:
            step = "tensor_values"
            return values.program.tensors.make(meta, own)
        symbols = values.program.symbols
        if (sym_int := tree.sym_int_values.get(name)) is not None:
            step = "sym_int_values"
            number = import_sym_int(sym_int, symbols)
            return symbols.another(number) if own else number
        if (sym_bool := tree.sym_bool_values.get(name)) is not None:
            step = "sym_bool_values"
            return import_sym_bool(sym_bool, symbols)
        if (sym_float := tree.sym_float_values.get(name)) is not None:
            step = "sym_float_values"
            return import_sym_float(sym_float, symbols)
        if (custom_obj := tree.custom_obj_values.get(name)) is not None:
            step = "custom_obj_values"
            return values.program.objects.of_input(name, custom_obj, values.program.tensors.mode)
    except Exception as error:
        raise located(error, f"{step}[{name!r}]") from cause_of(error)
    raise DeserializeError(
        f"expected {name!r} among the values that the graph lists, found it in none of them"
    )


class FakeTensors:
    """Makes fake tensors for tensor metadata.

    Each has a storage of its own. With symbolic sizes most of the time goes into computing how large that
    storage is; a program has few different shapes, so this is done for the first tensor of each and reused.

    Attributes:
        mode: The mode that all of them belong to.
    """

    def __init__(self, symbols: Symbols, make_subclass: MakeSubclass | None = None) -> None:
        self._symbols = symbols
        self._make_subclass = make_subclass
        self.mode = FakeTensorMode(
            allow_fallback_kernels=False, allow_non_fake_inputs=True, shape_env=symbols.shape_env
        )
        # How many elements the storage of each kind of tensor holds, where one of so many comes out equal.
        self._counts: dict[Any, Any] = {}

    def make(self, meta: types.TensorMeta, own: bool = False) -> torch.Tensor:
        """A new fake tensor with the given sizes, strides and storage offset (in elements).

        Args:
            own: Whether it shares no symbolic number with another tensor.
        """
        element = self._element(meta, own) if meta.layout is types.Layout.Strided else self._sparse(meta)
        tensor = FakeTensor(self.mode, element, import_device(meta.device))
        if meta.conj or meta.neg:
            pending = set_bits(tensor, meta)
            assert isinstance(pending, FakeTensor)
            tensor = pending
        if meta.requires_grad:
            tensor.requires_grad_(True)
        if meta.subclass is not None and self._make_subclass is not None:
            return self._make_subclass(meta, tensor, self.make)
        return tensor

    def _element(self, meta: types.TensorMeta, own: bool) -> torch.Tensor:
        """A strided tensor on the meta device."""
        symbols = self._symbols
        dtype = import_dtype(meta)
        sizes = each("sizes", meta.sizes, lambda size: _import_extent(size, symbols))
        strides = each("strides", meta.strides, lambda stride: _import_extent(stride, symbols))
        offset = _import_extent(meta.storage_offset, symbols)
        if len(sizes) != len(strides):
            raise DeserializeError(
                f"expected a stride per size, found {len(sizes)} sizes, {len(strides)} strides"
            )
        numbers = (*sizes, *strides, offset)
        integers = [number for number in numbers if type(number) is int]
        if integers and min(integers) < 0:
            raise DeserializeError(f"expected sizes, strides and offset of at least 0, found {min(integers)}")
        if len(integers) == len(numbers):
            return _storage_view(sizes, strides, offset, dtype)
        return self._symbolic(sizes, strides, offset, dtype, own)

    def _sparse(self, meta: types.TensorMeta) -> torch.Tensor:
        """A sparse tensor on the meta device."""
        symbols = self._symbols
        sizes = each("sizes", meta.sizes, lambda size: _import_extent(size, symbols))
        layout = import_layout(meta.layout)
        if meta.inner is None and meta.layout is types.Layout.SparseCoo:
            # PyTorch keeps no more than the layout; most tensors have no dense dimensions, and are coalesced.
            parts = {
                "indices": torch.empty((len(sizes), 0), dtype=torch.int64, device="meta"),
                "values": torch.empty((0,), dtype=import_dtype(meta), device="meta"),
            }
        else:
            parts = each_value("inner", meta.inner or {}, lambda part: self._element(part, False))
        if missing := [name for name in PARTS.get(meta.layout, ()) if name not in parts]:
            raise DeserializeError(f"expected the {missing[0]} of a tensor of layout {layout}, found none")
        return put_together(layout, parts, sizes, meta.coalesced is not False)

    def _symbolic(
        self, sizes: list[Any], strides: list[Any], offset: Any, dtype: torch.dtype, own: bool
    ) -> torch.Tensor:
        # Equal symbolic numbers are one object here; comparing them by value would add guards.
        numbers = (*sizes, *strides, offset)
        key = (dtype, *[number if type(number) is int else (id(number),) for number in numbers])
        if own:
            another = self._symbols.another
            sizes, strides, offset = [*map(another, sizes)], [*map(another, strides)], another(offset)
        if (count := self._counts.get(key)) is not None:
            return torch.empty((count,), dtype=dtype, device="meta").as_strided(sizes, strides, offset)
        element = _storage_view(sizes, strides, offset, dtype)
        if key not in self._counts:
            self._counts[key] = self._storage_elements(element)
        return element

    def _storage_elements(self, element: torch.Tensor) -> Any:
        """How many elements the storage of a tensor has, if a tensor of so many has an equal storage."""
        nbytes = element.untyped_storage().nbytes()
        if not isinstance(nbytes, torch.SymInt):
            return None
        node = nbytes.node
        itemsize = element.dtype.itemsize
        expression = node.expr / itemsize
        if not expression.is_integer or expression * itemsize != node.expr:
            return None
        hint = node.hint
        return self._symbols.shape_env.create_symintnode(
            expression, hint=None if hint is None else hint // itemsize
        )


def _storage_view(sizes: list[Any], strides: list[Any], offset: Any, dtype: torch.dtype) -> torch.Tensor:
    """A tensor without content; with an offset, the storage is as small as it can be."""
    if type(offset) is int and offset == 0:
        return torch.empty_strided(sizes, strides, dtype=dtype, device="meta")
    if any(type(size) is int and size == 0 for size in sizes):
        return torch.empty((0,), dtype=dtype, device="meta").as_strided(sizes, strides, offset)
    extent = offset + 1
    for size, stride in zip(sizes, strides, strict=True):
        extent = extent + (size - 1) * stride
    return torch.empty((extent,), dtype=dtype, device="meta").as_strided(sizes, strides, offset)


def _import_extent(value: types.SymInt, symbols: Symbols) -> int | torch.SymInt:
    """Read a size, stride or offset."""
    number = import_sym_int(value, symbols)
    if isinstance(number, torch.SymInt) and number.node.expr.is_negative:
        raise DeserializeError(
            f"expected a number from 0 up, found {value.as_expr.expr_str[:80]}", path="as_expr.expr_str"
        )
    return number


def import_sym_int(value: types.SymInt, symbols: Symbols) -> int | torch.SymInt:
    """Read an integer, with the hint that tracing saw where it is symbolic."""
    if value.type == "as_int":
        return value.as_int
    expression = value.as_expr
    try:
        return symbols.sym_int(expression.expr_str, _hint(expression, "as_int"))
    except Exception as error:
        raise located(error, "as_expr.expr_str") from cause_of(error)


def import_sym_float(value: types.SymFloat, symbols: Symbols) -> float | torch.SymFloat:
    """Read a float, with the hint that tracing saw where it is symbolic."""
    if value.type == "as_float":
        return value.as_float
    expression = value.as_expr
    try:
        return symbols.sym_float(expression.expr_str, _hint(expression, "as_float"))
    except Exception as error:
        raise located(error, "as_expr.expr_str") from cause_of(error)


def import_sym_bool(value: types.SymBool, symbols: Symbols) -> bool | torch.SymBool:
    """Read a bool; PyTorch keeps no hint for symbolic ones."""
    if value.type == "as_bool":
        return value.as_bool
    try:
        return symbols.sym_bool(value.as_expr.expr_str)
    except Exception as error:
        raise located(error, "as_expr.expr_str") from cause_of(error)


def _hint(expression: types.SymExpr, member: str) -> Any:
    hint = expression.hint
    if hint is None:
        return None
    if hint.type != member:
        raise DeserializeError(f"expected a hint with {member}, found {hint.type}")
    return hint.value


def import_device(device: types.Device) -> torch.device:
    """Read a device; an index of None stands for the current device of that type."""
    return _device(device.type, device.index)


@functools.lru_cache(maxsize=256)
def _device(kind: str, index: int | None) -> torch.device:
    if problem := check_device(kind, index):
        raise DeserializeError(problem)
    try:
        return torch.device(kind) if index is None else torch.device(kind, index)
    except RuntimeError as error:
        raise DeserializeError(f"expected a device that torch knows, found {kind!r}") from error


def set_bits(tensor: torch.Tensor, meta: types.TensorMeta) -> torch.Tensor:
    """A view of the same memory with the conjugation and negation that are pending."""
    if meta.conj:
        tensor = tensor.conj()
    return torch._neg_view(tensor) if meta.neg else tensor


def import_scalar_type(scalar_type: types.ScalarType) -> torch.dtype:
    """Read a dtype."""
    return _lookup(_SCALAR_TYPES, scalar_type, "dtype")  # type: ignore[no-any-return]


def import_extra_scalar_type(scalar_type: types.ExtraScalarType) -> torch.dtype:
    """Read a dtype that PyTorch's format has no number for."""
    return _EXTRA_SCALAR_TYPES[scalar_type]


def import_dtype(meta: types.TensorMeta) -> torch.dtype:
    """Read the dtype of a tensor, whichever of the two fields holds it."""
    if meta.extra_dtype is not None:
        return import_extra_scalar_type(meta.extra_dtype)
    return import_scalar_type(meta.dtype)


def import_layout(layout: types.Layout) -> torch.layout:
    """Read a layout."""
    return _lookup(_LAYOUTS, layout, "layout")  # type: ignore[no-any-return]


def import_memory_format(memory_format: types.MemoryFormat) -> torch.memory_format:
    """Read a memory format."""
    return _lookup(_MEMORY_FORMATS, memory_format, "memory format")  # type: ignore[no-any-return]


def _lookup(table: dict[Any, Any], value: Any, what: str) -> Any:
    try:
        return table[value]
    except KeyError:
        expected = ", ".join(member.name for member in table)
        raise DeserializeError(f"expected a {what} of {expected}, found {value!r}") from None
