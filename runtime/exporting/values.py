"""What a name in a graph stands for: tensor metadata and symbolic numbers, with devices and dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export.graph_signature import CustomObjArgument
from torch.fx import Node

from ..errors import SerializeError
from ..generated import types
from ..layouts import COMPLEX, COMPRESSED
from ..sparse import parts_of
from .symbols import Symbols
from .tables import TypeTable


class _FromTorch(dict[Any, Any]):
    """The generated table of an enum's names in torch, turned into a table from torch's objects."""

    def __init__(self, what: str, enum: Any) -> None:
        super().__init__({getattr(torch, name): member for member, name in types.TORCH_NAMES[enum].items()})
        self._what = what

    def __missing__(self, value: Any) -> Any:
        expected = ", ".join(str(known) for known in self)
        raise SerializeError(f"expected a {self._what} of {expected}, found {value}")


_SCALAR_TYPES: dict[torch.dtype, types.ScalarType] = _FromTorch("dtype", types.ScalarType)
_EXTRA_SCALAR_TYPES: dict[torch.dtype, types.ExtraScalarType] = _FromTorch("dtype", types.ExtraScalarType)
_LAYOUTS: dict[torch.layout, types.Layout] = _FromTorch("layout", types.Layout)
_MEMORY_FORMATS: dict[torch.memory_format, types.MemoryFormat] = _FromTorch(
    "memory format", types.MemoryFormat
)


@dataclass(slots=True)
class Program:
    """What all graphs of a program share while it is written.

    Attributes:
        symbols: The memo of its symbolic numbers.
        refused: What PyTorch's reader will refuse of it so far.
        beyond: What PyTorch's format cannot express of it so far.
        objects: By the name given to it here, each custom object that stands in an argument itself.
        left_out: Names of lowered modules, which are no part of what is written.
    """

    symbols: Symbols = field(default_factory=Symbols)
    refused: list[str] = field(default_factory=list)
    beyond: list[str] = field(default_factory=list)
    objects: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Values:
    """One graph while it is written, and the values that it has defined so far.

    Attributes:
        program: What it shares with the program's other graphs.
        tensors, sym_ints, sym_floats, sym_bools, custom_objs: What each name stands for, as the graph of the
            format keeps it.
        references: How an argument refers to what an FX node produced: the member of `Argument`, and the
            name. A value of several outputs has none itself, the `getitem` nodes that take it apart have.
        items: The `getitem` nodes that reading would not make as they are.
        duplicates: By the name of a `getitem` node that repeats an earlier one, the name of that one.
        nones: The `getitem` nodes that take None out of a call's outputs.
        structures: The `get_attr` nodes that stand for tree specs and functions.
        regions: The nodes that opened a region of autocast which is not closed yet.
        attributes: The `get_attr` nodes that arguments have named so far.
        order: The names of all FX nodes in the order in which reading makes them.
        in_containers: Of the node that is being written, the subgraphs in containers among its arguments.
    """

    program: Program
    tensors: dict[str, types.TensorMeta] = field(default_factory=dict)
    sym_ints: dict[str, types.SymInt] = field(default_factory=dict)
    sym_floats: dict[str, types.SymFloat] = field(default_factory=dict)
    sym_bools: dict[str, types.SymBool] = field(default_factory=dict)
    custom_objs: dict[str, types.CustomObjArgument] = field(default_factory=dict)
    references: dict[Node, tuple[str, str]] = field(default_factory=dict)
    items: dict[Node, types.GetItem] = field(default_factory=dict)
    duplicates: dict[str, str] = field(default_factory=dict)
    nones: set[Node] = field(default_factory=set)
    structures: set[Node] = field(default_factory=set)
    regions: list[Node] = field(default_factory=list)
    attributes: set[Node] = field(default_factory=set)
    order: list[str] = field(default_factory=list)
    in_containers: list[types.GraphArgument] = field(default_factory=list)


def attribute_of(node: Node) -> Any:
    """What a `get_attr` node stands for; None for other nodes, and where there is nothing of that name."""
    return getattr(node.graph.owning_module, str(node.target), None) if node.op == "get_attr" else None


def export_value(name: str, value: Any, owners: Iterable[Node], values: Values) -> types.Argument:
    """Define a value in its graph, and write the argument that a node or a graph lists for it.

    Args:
        name: The name of the value, unique in its graph.
        value: The metadata of an FX node: a fake tensor, a number, a symbolic number, or None.
        owners: The FX nodes that stand for this value where it is used; the first gives it its name.
        values: The values of the graph, to which this one is added.

    Raises:
        SerializeError: For a value of any other type, and for a name that was defined before.
    """
    if value is None:
        return types.Argument.of_none(True)
    try:
        member, define = _DEFINITIONS[type(value)]
    except KeyError:
        message = f"expected a tensor, a number or None as value, found {type(value).__qualname__}"
        raise SerializeError(message) from None
    argument = define(name, value, values)
    for owner in owners:
        values.references[owner] = (member, name)
        if owner.name != name:
            values.duplicates[owner.name] = name
    return argument


def _define_tensor(name: str, value: torch.Tensor, values: Values) -> types.Argument:
    meta = export_tensor_meta(value, values.program.symbols)
    if meta.layout in COMPRESSED:
        values.program.beyond.append(f"tensors of layout {value.layout}")
    if meta.extra_dtype is not None:
        values.program.beyond.append(f"tensors of dtype {value.dtype}")
    _add(name, meta, values.tensors)
    return types.Argument.of_tensor(types.TensorArgument(name=name))


def _define_sym_int(name: str, value: int | torch.SymInt, values: Values) -> types.Argument:
    _add(name, export_sym_int(value, values.program.symbols), values.sym_ints)
    return types.Argument.of_sym_int(types.SymIntArgument.of_name(name))


def _define_sym_float(name: str, value: float | torch.SymFloat, values: Values) -> types.Argument:
    _add(name, export_sym_float(value, values.program.symbols), values.sym_floats)
    return types.Argument.of_sym_float(types.SymFloatArgument.of_name(name))


def _define_sym_bool(name: str, value: bool | torch.SymBool, values: Values) -> types.Argument:
    _add(name, export_sym_bool(value, values.program.symbols), values.sym_bools)
    return types.Argument.of_sym_bool(types.SymBoolArgument.of_name(name))


def _define_custom_obj(name: str, value: CustomObjArgument, values: Values) -> types.Argument:
    # Both name the class; the other name is that under which PyTorch looks for the object when it retraces.
    described = types.CustomObjArgument(name=value.name, class_fqn=value.class_fqn)
    _add(name, described, values.custom_objs)
    return types.Argument.of_custom_obj(types.CustomObjArgument(name=name, class_fqn=value.class_fqn))


def _add(name: str, value: Any, table: dict[str, Any]) -> None:
    if name in table:
        raise SerializeError(f"expected unique names, found a second value named `{name}`")
    table[name] = value


_Define = Callable[[str, Any, Values], types.Argument]
_DEFINITIONS: TypeTable[tuple[str, _Define]] = TypeTable(
    {
        torch.Tensor: ("as_tensor", _define_tensor),
        bool: ("as_sym_bool", _define_sym_bool),
        torch.SymBool: ("as_sym_bool", _define_sym_bool),
        int: ("as_sym_int", _define_sym_int),
        torch.SymInt: ("as_sym_int", _define_sym_int),
        float: ("as_sym_float", _define_sym_float),
        torch.SymFloat: ("as_sym_float", _define_sym_float),
        CustomObjArgument: ("as_custom_obj", _define_custom_obj),
    }
)


def export_tensor_meta(tensor: torch.Tensor, symbols: Symbols) -> types.TensorMeta:
    """Write what is known of a tensor without its content.

    Args:
        tensor: A real or a fake tensor. Sizes, strides and storage offset are counted in elements.
        symbols: The program's symbolic numbers.

    Raises:
        SerializeError: For an unknown layout or dtype.
    """
    layout = export_layout(tensor.layout)
    strides, offset = ((), 0) if layout in COMPRESSED else (tensor.stride(), tensor.storage_offset())
    extra_dtype = export_extra_scalar_type(tensor.dtype)
    meta = types.TensorMeta(
        dtype=types.ScalarType.UNKNOWN if extra_dtype is not None else export_scalar_type(tensor.dtype),
        sizes=[export_sym_int(size, symbols) for size in tensor.shape],
        requires_grad=tensor.requires_grad,
        device=export_device(tensor.device),
        strides=[export_sym_int(stride, symbols) for stride in strides],
        storage_offset=export_sym_int(offset, symbols),
        layout=layout,
        extra_dtype=extra_dtype,
    )
    if meta.dtype in COMPLEX and tensor.is_conj():
        meta.conj = True
    if tensor.is_neg():
        meta.neg = True
    if layout is not types.Layout.Strided:
        meta.inner = {name: export_tensor_meta(part, symbols) for name, part in parts_of(tensor).items()}
    if layout is types.Layout.SparseCoo:
        meta.coalesced = tensor.is_coalesced()
    return meta


def export_sym_int(value: int | torch.SymInt, symbols: Symbols) -> types.SymInt:
    """Write a size, stride or integer, with the hint that tracing saw where it is symbolic."""
    if type(value) is not torch.SymInt:
        return types.SymInt.of_int(int(value))
    expression = symbols.expression(value)
    if expression.is_Integer:
        return types.SymInt.of_int(int(expression))
    hint = value.node.hint
    return types.SymInt.of_expr(
        types.SymExpr(
            expr_str=symbols.text(expression), hint=None if hint is None else types.SymExprHint.of_int(hint)
        )
    )


def export_sym_float(value: float | torch.SymFloat, symbols: Symbols) -> types.SymFloat:
    """Write a float, with the hint that tracing saw where it is symbolic."""
    if type(value) is not torch.SymFloat:
        return types.SymFloat.of_float(float(value))
    expression = symbols.expression(value)
    if expression.is_Float:
        return types.SymFloat.of_float(float(expression))
    hint = value.node.hint
    return types.SymFloat.of_expr(
        types.SymExpr(
            expr_str=symbols.text(expression), hint=None if hint is None else types.SymExprHint.of_float(hint)
        )
    )


def export_sym_bool(value: bool | torch.SymBool, symbols: Symbols) -> types.SymBool:
    """Write a bool; PyTorch keeps no hint for symbolic ones."""
    if type(value) is not torch.SymBool:
        return types.SymBool.of_bool(bool(value))
    expression = symbols.expression(value)
    if expression.is_Boolean and expression.is_Atom and not expression.is_Symbol:
        return types.SymBool.of_bool(bool(expression))
    return types.SymBool.of_expr(types.SymExpr(expr_str=symbols.text(expression)))


def export_device(device: torch.device) -> types.Device:
    """Write a device; an index of None stands for the current device of that type."""
    return types.Device(type=device.type, index=device.index)


def export_scalar_type(dtype: torch.dtype) -> types.ScalarType:
    """Write a dtype; SerializeError for one that the format has no value for."""
    return _SCALAR_TYPES[dtype]


def export_extra_scalar_type(dtype: torch.dtype) -> types.ExtraScalarType | None:
    """Write a dtype that PyTorch's format has no value for; None for one that it has, perhaps by now."""
    return None if dtype in _SCALAR_TYPES else _EXTRA_SCALAR_TYPES.get(dtype)


def export_layout(layout: torch.layout) -> types.Layout:
    """Write a layout; SerializeError for one that the format has no value for."""
    return _LAYOUTS[layout]


def export_memory_format(memory_format: torch.memory_format) -> types.MemoryFormat:
    """Write a memory format; SerializeError for one that the format has no value for."""
    return _MEMORY_FORMATS[memory_format]
