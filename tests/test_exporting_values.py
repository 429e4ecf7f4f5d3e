"""What names stand for: tensor metadata and symbolic numbers, equal to PyTorch's, or a refusal."""

from __future__ import annotations

import pytest
import torch
from pt2wire.errors import SerializeError
from pt2wire.exporting import export_program
from pt2wire.exporting import values as values_module
from pt2wire.exporting.symbols import Symbols
from pt2wire.exporting.values import Program, Values, export_device, export_tensor_meta, export_value
from pt2wire.generated import types
from torch.export import Dim
from torch.fx import Graph

from .helpers.exporting import assert_json_is_pytorchs, exported

_DTYPES = [getattr(torch, name) for name in types.TORCH_NAMES[types.ScalarType].values()]


@pytest.mark.parametrize("dtype", _DTYPES, ids=str)
def test_every_dtype_of_the_format(dtype):
    meta = export_tensor_meta(torch.empty(2, dtype=dtype), Symbols())
    assert types.TORCH_NAMES[types.ScalarType][meta.dtype] == str(dtype).removeprefix("torch.")


def test_the_dtypes_that_the_format_lacks_have_a_field_of_their_own():
    lacking = {value for value in vars(torch).values() if isinstance(value, torch.dtype)} - set(_DTYPES)
    assert torch.float4_e2m1fn_x2 in lacking
    for dtype in lacking:
        tensor = torch.empty(2, dtype=dtype, device="meta")
        if "q" in str(dtype):  # torch.export refuses quantized tensors
            with pytest.raises(SerializeError, match=f"expected a dtype of torch.uint8, .*, found {dtype}"):
                export_tensor_meta(tensor, Symbols())
        else:
            meta = export_tensor_meta(tensor, Symbols())
            assert meta.dtype is types.ScalarType.UNKNOWN
            assert types.TORCH_NAMES[types.ExtraScalarType][meta.extra_dtype] == str(dtype)[6:]


def test_a_dtype_that_the_format_has_come_to_know_is_written_as_pytorch_writes_it(monkeypatch):
    monkeypatch.setitem(values_module._SCALAR_TYPES, torch.int4, types.ScalarType.CHAR)
    meta = export_tensor_meta(torch.empty(2, dtype=torch.int4), Symbols())
    assert (meta.dtype, meta.extra_dtype) == (types.ScalarType.CHAR, None)


def test_strides_offset_and_flags_are_the_tensors():
    base = torch.zeros(6, 8, requires_grad=True)
    meta = export_tensor_meta(base[1:, ::2].t(), Symbols())
    assert [size.as_int for size in meta.sizes] == [4, 5]
    assert [stride.as_int for stride in meta.strides] == [2, 8]
    assert meta.storage_offset.as_int == 8
    assert meta.requires_grad
    assert (meta.device.type, meta.device.index) == ("cpu", None)


@pytest.mark.parametrize(("device", "index"), [("cuda", None), ("cuda:0", 0), ("mps:1", 1)])
def test_a_device_keeps_its_index(device, index):
    written = export_device(torch.device(device))
    assert (written.type, written.index) == (device.partition(":")[0], index)


def test_what_the_format_cannot_express_is_named_once():
    def forward(self, x):
        return x.to_sparse_csr() * 2

    tree = export_program(exported(forward, torch.eye(3)))
    assert tree.beyond == ["tensors of layout torch.sparse_csr"]
    meta = tree.graph_module.graph.tensor_values["mul"]
    assert list(meta.inner) == ["crow_indices", "col_indices", "values"]
    assert meta.strides == []


def test_sparse_coordinates_are_written():
    tree = assert_json_is_pytorchs(exported(lambda self, x: x * 2, torch.eye(3).to_sparse()))
    assert tree.graph_module.graph.tensor_values["x"].layout is types.Layout.SparseCoo


@pytest.mark.parametrize("shapes", [None, ({0: Dim.AUTO, 1: Dim.AUTO},)], ids=["static", "dynamic"])
def test_views_share_no_objects_in_the_tree(shapes):
    """Editing one value of a tree must not change another one."""
    tree = assert_json_is_pytorchs(
        exported(lambda self, x: (x.t(), x[1:] + 1), torch.randn(4, 6), shapes=shapes)
    )
    seen: set[int] = set()
    for meta in tree.graph_module.graph.tensor_values.values():
        parts = [meta, meta.device, meta.storage_offset, *meta.sizes, *meta.strides]
        parts += [size.as_expr for size in meta.sizes if size.type == "as_expr"]
        assert seen.isdisjoint(map(id, parts))
        seen.update(map(id, parts))


def test_symbolic_ints_floats_and_bools_are_values():
    def forward(self, x, n):
        size = x.shape[0]
        other = x.sum().item()
        torch._check(other > 0)
        return size + n, size / 2, other * 2, x * torch.sym_not(size == 5), torch.sym_max(size, n), -size % 3

    ep = exported(forward, torch.ones(4, 3), 7, shapes=({0: Dim("batch", max=64)}, Dim.AUTO))
    graph = assert_json_is_pytorchs(ep).graph_module.graph
    assert graph.sym_int_values
    assert graph.sym_float_values
    assert graph.sym_bool_values


def test_a_concrete_result_of_symbolic_arithmetic_is_a_number():
    def forward(self, x):
        return x.new_zeros(x.shape[0] * 0 + 2), torch.sym_float(x.shape[1])

    assert_json_is_pytorchs(exported(forward, torch.ones(4, 3), shapes=({0: Dim.AUTO},)))


def test_hints_are_kept_and_unbacked_sizes_have_none():
    def forward(self, x):
        return x.nonzero(), x * x.shape[0]

    graph = assert_json_is_pytorchs(
        exported(forward, torch.ones(5), shapes=({0: Dim.AUTO},))
    ).graph_module.graph
    assert graph.tensor_values["x"].sizes[0].as_expr.hint.as_int == 5
    assert graph.tensor_values["nonzero"].sizes[0].as_expr.hint is None


def test_a_second_value_of_a_name_is_refused():
    values, node = Values(Program()), Graph().placeholder("x")
    export_value("x", torch.ones(2), (node,), values)
    with pytest.raises(SerializeError, match="expected unique names, found a second value named `x`"):
        export_value("x", torch.ones(3), (node,), values)


def test_a_value_of_another_type_is_refused():
    with pytest.raises(SerializeError, match="expected a tensor, a number or None as value, found list"):
        export_value("x", [torch.ones(2)], (), Values(Program()))
