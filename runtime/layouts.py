"""What tensors are made of that are not one strided storage. Needs no torch."""

from __future__ import annotations

from types import MappingProxyType

from .generated.types import BITS, ExtraScalarType, Layout, ScalarType, TensorMeta

#: For each sparse layout the names of its tensors, of which the last one holds the elements.
PARTS = MappingProxyType(
    {
        Layout.SparseCoo: ("indices", "values"),
        Layout.SparseCsr: ("crow_indices", "col_indices", "values"),
        Layout.SparseCsc: ("ccol_indices", "row_indices", "values"),
        Layout.SparseBsr: ("crow_indices", "col_indices", "values"),
        Layout.SparseBsc: ("ccol_indices", "row_indices", "values"),
    }
)

#: Layouts without strides and storage offset.
COMPRESSED = frozenset(PARTS) - {Layout.SparseCoo}


def element_type(meta: TensorMeta) -> ScalarType | ExtraScalarType:
    """The dtype of a tensor, whichever of the two fields holds it."""
    return meta.dtype if meta.extra_dtype is None else meta.extra_dtype


#: The dtypes of complex numbers.
COMPLEX = frozenset((ScalarType.COMPLEXHALF, ScalarType.COMPLEXFLOAT, ScalarType.COMPLEXDOUBLE))

#: Bytes of one element. Numbers of the two enums differ, so that they can be keys of one table.
ITEM_SIZES: dict[ScalarType | ExtraScalarType, int] = {
    kind(dtype): bits // 8
    for kind in (ScalarType, ExtraScalarType)
    for dtype, bits in BITS[kind].items()
    if bits % 8 == 0
}
