"""Values: fake tensors made fast equal the dispatcher's in every property; bad metadata is refused."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pt2wire.errors import DeserializeError
from pt2wire.generated import types
from pt2wire.importing.symbols import Symbols, import_ranges
from pt2wire.importing.values import (
    FakeTensors,
    import_device,
    import_layout,
    import_memory_format,
    import_scalar_type,
    import_sym_bool,
    import_sym_float,
    import_sym_int,
)
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

_S0 = "Symbol('s0', positive=True, integer=True)"
_S1 = "Symbol('s1', positive=True, integer=True)"
_U0 = "Symbol('u0', integer=True)"
_RANGES = {"s0": (0, 512), "s1": (2, None), "u0": (None, None)}


def _symbols() -> Symbols:
    ranges = {name: types.RangeConstraint(min_val=low, max_val=high) for name, (low, high) in _RANGES.items()}
    return Symbols(import_ranges(ranges))


def _number(value: int | tuple[str, int | None]) -> types.SymInt:
    if isinstance(value, int):
        return types.SymInt.of_int(value)
    text, hint = value
    return types.SymInt.of_expr(
        types.SymExpr(expr_str=text, hint=None if hint is None else types.SymExprHint.of_int(hint))
    )


def _meta(
    sizes: list[Any],
    strides: list[Any],
    dtype: types.ScalarType = types.ScalarType.FLOAT,
    requires_grad: bool = False,
    device: types.Device | None = None,
    offset: Any = 0,
) -> types.TensorMeta:
    return types.TensorMeta(
        dtype=dtype,
        sizes=[_number(size) for size in sizes],
        strides=[_number(stride) for stride in strides],
        requires_grad=requires_grad,
        device=device or types.Device(type="cpu", index=None),
        storage_offset=_number(offset),
        layout=types.Layout.Strided,
    )


_s0, _s1, _u0 = (_S0, 3), (_S1, 11), (_U0, None)
_s1_32 = (f"Mul(Integer(32), {_S1})", 352)
_METAS = {
    "static": _meta([2, 3], [3, 1]),
    "scalar": _meta([], []),
    "empty": _meta([0, 3], [3, 1]),
    "gradient": _meta([2, 3], [3, 1], requires_grad=True),
    "transposed": _meta([2, 3], [1, 2]),
    "expanded": _meta([5, 3], [0, 1]),
    "channels last": _meta([2, 3, 4, 5], [60, 1, 15, 3]),
    "symbolic": _meta([_s0, _s1, 32], [_s1_32, 32, 1]),
    "symbolic with gradient": _meta([_s0, _s1, 32], [_s1_32, 32, 1], types.ScalarType.HALF, True),
    "symbolic transposed": _meta([_s0, 32, _s1], [_s1_32, 1, 32]),
    "symbolic expanded": _meta([_s0, 5, _s1], [0, 0, 1], types.ScalarType.DOUBLE),
    "unbacked": _meta([_u0, 32], [32, 1], types.ScalarType.LONG),
    "odd itemsize": _meta([_s0, 3], [3, 1], types.ScalarType.BOOL),
    "complex": _meta([_s0, 3], [3, 1], types.ScalarType.COMPLEXDOUBLE),
    "other device": _meta([_s0, 3], [3, 1], device=types.Device(type="cuda", index=1)),
    "meta device": _meta([2, 3], [3, 1], device=types.Device(type="meta", index=None)),
}


def _expression(value: Any) -> Any:
    if isinstance(value, (torch.SymInt, torch.SymBool)):
        return sympy.srepr(value.node.expr), value.node.hint
    return value


_ATTRIBUTES = (
    *(
        "dtype",
        "device",
        "fake_device",
        "layout",
        "requires_grad",
        "retains_grad",
        "is_leaf",
        "grad",
        "output_nr",
    ),
    *(
        "_base",
        "_version",
        "is_sparse",
        "is_quantized",
        "is_meta",
        "is_cpu",
        "is_cuda",
        "is_nested",
        "is_mkldnn",
    ),
    *("constant", "real_tensor"),
)


def _properties(tensor: FakeTensor) -> dict[str, Any]:
    """All that can be told about a tensor without content."""
    told: dict[str, Any] = {
        "class": type(tensor),
        "sizes": [_expression(size) for size in tensor.shape],
        "strides": [_expression(stride) for stride in tensor.stride()],
        "offset": _expression(tensor.storage_offset()),
        "storage": _expression(tensor.untyped_storage().nbytes()),
        "storage device": tensor.untyped_storage().device,
        "keys": str(torch._C._dispatch_keys(tensor)),
        "gradient function": type(tensor.grad_fn),
        "attributes": {key: value for key, value in tensor.__dict__.items() if key != "fake_mode"},
        "symbolic": tensor._has_symbolic_sizes_strides,
        "view": tensor._is_view(),
        "formats": [
            _expression(tensor.is_contiguous(memory_format=memory_format))
            for memory_format in (torch.contiguous_format, torch.channels_last)
            if memory_format is torch.contiguous_format or tensor.dim() == 4
        ]
        if "u0" not in str(tensor.shape)
        else None,
    }
    for name in _ATTRIBUTES:
        told[name] = getattr(tensor, name)
    for name in ("is_conj", "is_neg", "is_inference", "is_pinned", "dim", "is_complex", "is_floating_point"):
        told[name] = getattr(tensor, name)() if name != "is_pinned" or tensor.device.type == "cpu" else None
    return told


def _by_dispatcher(meta: types.TensorMeta, symbols: Symbols, mode: FakeTensorMode) -> FakeTensor:
    """What is known of a tensor, read the plain way: by the dispatcher, as torch does. Its offset is 0."""
    with mode:
        tensor = torch.empty_strided(
            [import_sym_int(size, symbols) for size in meta.sizes],
            [import_sym_int(stride, symbols) for stride in meta.strides],
            dtype=import_scalar_type(meta.dtype),
            device=import_device(meta.device),
            requires_grad=meta.requires_grad,
        )
    assert isinstance(tensor, FakeTensor)
    return tensor


def _knowledge(symbols: Symbols) -> str:
    env = symbols.shape_env
    return str(
        ([g.expr for g in env.guards], env.replacements, env.axioms, env.var_to_range, env.backed_var_to_val)
    )


@pytest.mark.parametrize("own", [False, True], ids=["shared numbers", "own numbers"])
@pytest.mark.parametrize("name", _METAS)
def test_a_fake_tensor_equals_the_dispatchers_in_every_property(name: str, own: bool) -> None:
    meta = _METAS[name]
    by_dispatcher, ours = _symbols(), _symbols()
    expected = [_by_dispatcher(meta, by_dispatcher, FakeTensors(by_dispatcher).mode) for _ in range(3)]
    tensors = FakeTensors(ours)
    # the second and third are made after the first's storage
    found = [tensors.make(meta, own) for _ in range(3)]
    assert _knowledge(ours) == _knowledge(by_dispatcher), "making tensors must not add guards"
    for theirs, mine in zip(expected, found, strict=True):
        assert _properties(mine) == _properties(theirs)
    assert len({tensor.untyped_storage()._cdata for tensor in found}) == 3
    assert {tensor.fake_mode for tensor in found} == {tensors.mode}


_dimensions = st.one_of(st.integers(0, 9), st.sampled_from([_s0, _s1, _u0, _s1_32]))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(_dimensions, st.one_of(st.integers(0, 50), st.just(_s1_32))), max_size=4),
    st.sampled_from([types.ScalarType.FLOAT, types.ScalarType.BOOL, types.ScalarType.COMPLEXHALF]),
)
def test_any_fake_tensor_equals_the_dispatchers(dimensions: list[Any], dtype: types.ScalarType) -> None:
    meta = _meta([size for size, _ in dimensions], [stride for _, stride in dimensions], dtype)
    by_dispatcher, ours = _symbols(), _symbols()
    expected = _by_dispatcher(meta, by_dispatcher, FakeTensors(by_dispatcher).mode)
    tensors = FakeTensors(ours)
    tensors.make(meta)
    assert _properties(tensors.make(meta)) == _properties(expected)


@pytest.mark.parametrize("sizes", [[2, 3], [_s0, 3]], ids=["static", "symbolic"])
@pytest.mark.parametrize("offset", [7, _s1], ids=["static", "symbolic"])
def test_storage_offsets_are_kept(sizes: list[Any], offset: Any) -> None:
    """PyTorch's reader makes them 0."""
    symbols = _symbols()
    tensors = FakeTensors(symbols)
    for _ in range(3):
        tensor = tensors.make(_meta(sizes, [3, 1], offset=offset))
        assert _expression(tensor.storage_offset()) == _expression(import_sym_int(_number(offset), symbols))
        assert not tensor._is_view()
        if isinstance(offset, int) and isinstance(sizes[0], int):
            assert tensor.untyped_storage().nbytes() == (7 + 6) * 4
    assert symbols.shape_env.guards == []


@pytest.mark.parametrize("sizes", [[0, 2], [2, 0], [_s0, 0], [0, _u0]], ids=str)
@pytest.mark.parametrize("offset", [1, 7, _s1], ids=["1", "7", "symbolic"])
def test_tensors_without_elements_have_an_offset_and_no_memory(sizes: list[Any], offset: Any) -> None:
    symbols = _symbols()
    tensors = FakeTensors(symbols)
    for _ in range(3):
        tensor = tensors.make(_meta(sizes, [4, 1], offset=offset))
        assert _expression(tensor.storage_offset()) == _expression(import_sym_int(_number(offset), symbols))
        assert tensor.untyped_storage().nbytes() == 0
    assert symbols.shape_env.guards == []


def test_inputs_share_no_symbolic_number() -> None:
    tensors = FakeTensors(_symbols())
    made = [tensors.make(_meta([_s0, _s0], [3, 1]), own=True) for _ in range(2)]
    assert len({id(size.node) for tensor in made for size in tensor.shape}) == 4  # type: ignore[union-attr]


def test_symbolic_numbers() -> None:
    symbols = _symbols()
    text = f"FloorDiv({_S1}, Integer(2))"
    size = import_sym_int(_number((text, 5)), symbols)
    assert (str(size.node.expr), size.node.hint) == ("(s1//2)", 5)  # type: ignore[union-attr]
    assert import_sym_int(_number(("Integer(4)", 4)), symbols) == 4
    number = types.SymFloat.of_expr(types.SymExpr(f"ToFloat({_S0})", types.SymExprHint.of_float(3.0)))
    found = import_sym_float(number, symbols)
    assert isinstance(found, torch.SymFloat) and found.node.hint == 3.0
    condition = import_sym_bool(
        types.SymBool.of_expr(types.SymExpr(f"StrictLessThan({_S0}, {_U0})")), symbols
    )
    assert isinstance(condition, torch.SymBool) and str(condition.node.expr) == "s0 < u0"
    assert import_sym_float(types.SymFloat.of_float(2.5), symbols) == 2.5
    assert import_sym_bool(types.SymBool.of_bool(True), symbols) is True


@pytest.mark.parametrize("scalar_type", list(types.TORCH_NAMES[types.ScalarType]), ids=str)
def test_every_dtype(scalar_type: types.ScalarType) -> None:
    dtype = import_scalar_type(scalar_type)
    assert str(dtype) == f"torch.{types.TORCH_NAMES[types.ScalarType][scalar_type]}"
    tensor = FakeTensors(_symbols()).make(_meta([_s0, 2], [2, 1], scalar_type))
    assert tensor.dtype == dtype


_REFUSED = {
    "stride per size": (_meta([2, 3], [1]), "expected a stride per size, found 2 sizes, 1 strides"),
    "negative": (_meta([2, -3], [1, 1]), "expected sizes, strides and offset of at least 0, found -3"),
    "negative beside symbols": (
        _meta([_s0, 3], [1, -1]),
        "expected sizes, strides and offset of at least 0, found -1",
    ),
    "device": (
        _meta([2], [1], device=types.Device(type="cpu:0; x", index=None)),
        "expected the name of a device type such as 'cpu' or 'cuda', found 'cpu:0; x'",
    ),
    "device index": (
        _meta([2], [1], device=types.Device(type="cuda", index=300)),
        "expected a device index from 0 to 127, found 300",
    ),
    "unknown device": (
        _meta([2], [1], device=types.Device(type="abacus", index=None)),
        "expected a device that torch knows, found 'abacus'",
    ),
    "dtype": (
        _meta([2], [1], types.ScalarType.UNKNOWN),
        "expected a dtype of BYTE, CHAR, SHORT",
    ),
    "expression": (
        _meta([2, ("__import__('os')", None)], [1, 1]),
        "sizes[1].as_expr.expr_str, column 1: expected a symbol, a number or a known function, found "
        "'__import__'",
    ),
    "boolean": (
        _meta([("true", None)], [1]),
        "sizes[0].as_expr.expr_str: expected an expression for a number, found one for a boolean",
    ),
    "hint": (
        _meta([("Integer(4)", 5)], [1]),
        "sizes[0].as_expr.expr_str: refused by torch with AssertionError: int(sym)=4 != hint=5",
    ),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_bad_metadata_is_refused(name: str) -> None:
    meta, message = _REFUSED[name]
    with pytest.raises(DeserializeError) as caught:
        FakeTensors(_symbols()).make(meta)
    assert str(caught.value).startswith(message)


def test_a_sparse_layout_without_its_parts_is_refused() -> None:
    meta = _meta([2], [1])
    meta.layout = types.Layout.SparseCsr
    with pytest.raises(DeserializeError, match="expected the crow_indices of a tensor of layout"):
        FakeTensors(_symbols()).make(meta)


def test_a_sparse_tensor_of_which_pytorch_kept_the_layout_is_sparse() -> None:
    meta = _meta([2, 3], [0, 0])
    meta.layout = types.Layout.SparseCoo
    found = FakeTensors(_symbols()).make(meta)
    assert found.layout is torch.sparse_coo
    assert (found.shape, found.sparse_dim(), found.dense_dim()) == ((2, 3), 2, 0)


def test_a_size_that_overflows_is_refused() -> None:
    with pytest.raises(Exception, match="overflow") as caught:
        FakeTensors(_symbols()).make(_meta([1 << 62, 1 << 62], [1 << 62, 1]))
    assert not isinstance(caught.value, MemoryError)


def test_two_symbols_of_one_name_are_refused() -> None:
    symbols = _symbols()
    import_sym_int(_number(_s0), symbols)
    with pytest.raises(DeserializeError, match="expected one symbol named 's0', found"):
        import_sym_int(_number(("Symbol('s0', integer=True)", None)), symbols)


def test_hints_are_of_the_numbers_kind() -> None:
    value = types.SymInt.of_expr(types.SymExpr(_S0, types.SymExprHint.of_float(3.0)))
    with pytest.raises(DeserializeError, match="expected a hint with as_int, found as_float"):
        import_sym_int(value, _symbols())


def test_devices_layouts_and_memory_formats() -> None:
    assert import_device(types.Device(type="cuda", index=1)) == torch.device("cuda", 1)
    assert import_device(types.Device(type="cpu", index=None)) == torch.device("cpu")
    assert import_layout(types.Layout.SparseCsr) is torch.sparse_csr
    assert import_memory_format(types.MemoryFormat.ChannelsLast) is torch.channels_last
    with pytest.raises(DeserializeError, match="expected a memory format of ContiguousFormat, ChannelsLast"):
        import_memory_format(types.MemoryFormat.Unknown)


def test_making_a_tensor_ignores_an_outer_mode() -> None:
    """Whoever loads a program while tracing another must not get fakes of fakes."""
    expected = FakeTensors(_symbols()).make(_METAS["symbolic"])
    with torch._subclasses.FakeTensorMode():
        found = FakeTensors(_symbols()).make(_METAS["symbolic"])
    assert _properties(found) == _properties(expected)
