"""Which operators a file may call with sparse tensors, and with their parts: tables.

PyTorch checks the indices of a sparse tensor when it is told to, which here it is when weights and example
inputs are made; from then on it uses them as they are. So only what is known to keep them sound may be given
any. `tests/helpers/sparse_search.py` tries each of these with bad arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType


def _names(text: str) -> frozenset[str]:
    return frozenset(f"aten.{name}" for name in text.split())


#: They make sparse tensors of others.
MAKING_SPARSE = _names(
    "to_sparse to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc"
    " _to_sparse _to_sparse_csr _to_sparse_csc _to_sparse_bsr _to_sparse_bsc"
)

_FROM_INDICES = _names(
    "sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor"
    " sparse_compressed_tensor _sparse_coo_tensor_unsafe _sparse_csr_tensor_unsafe _sparse_csc_tensor_unsafe"
    " _sparse_bsr_tensor_unsafe _sparse_bsc_tensor_unsafe _sparse_compressed_tensor_unsafe"
    " _sparse_coo_tensor_with_dims_and_tensors"
)

_PARAMETERS = "indices crow_indices col_indices ccol_indices row_indices compressed_indices plain_indices"

#: They make sparse tensors of loose parts, and check nothing of these: all of them are refused unless the
#: caller allows them. With the parameters that become indices.
MAKING_FROM_PARTS: Mapping[str, frozenset[str]] = MappingProxyType(
    dict.fromkeys(_FROM_INDICES, frozenset(_PARAMETERS.split()))
)

#: They give the memory in which a sparse tensor has its indices, or its values.
GIVING_INDICES = _names("indices _indices crow_indices col_indices ccol_indices row_indices")
GIVING_VALUES = _names("values _values")

_OF_EACH = _names(
    "abs alias asin asinh atan atanh ceil clone coalesce deg2rad detach div erf erfinv expm1 floor frac"
    " isinf isnan isneginf isposinf log1p mul neg permute pow rad2deg relu round select sgn sign sin sinh"
    " sqrt square sum t tan tanh transpose trunc unsqueeze zero zeros_like to _to_copy index_select cat"
    " narrow_copy _coalesce sparse_mask lift_fresh_copy _sparse_softmax _sparse_log_softmax _sparse_sum"
)
_WITH_DENSE = _names("add sub bmm matmul mm mv _sparse_mm")
_DENSE = _names(
    "to_dense _to_dense sparse_dim dense_dim is_coalesced _nnz _dimI _dimV sym_size sym_numel size numel"
    " _assert_tensor_metadata indices_copy _indices_copy values_copy _values_copy crow_indices_copy"
    " col_indices_copy ccol_indices_copy row_indices_copy"
)

#: What may be given sparse tensors, with which of its tensors must be sparse for its results to be: any, all,
#: the first, any but the second, none. Each may change a strided tensor in place, under its name with a line
#: behind.
ON_SPARSE: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(_OF_EACH | MAKING_SPARSE, "any"),
        **dict.fromkeys(_WITH_DENSE, "all"),
        "aten.addmm": "first",
        "aten.linear": "not second",
        **dict.fromkeys(_DENSE | GIVING_INDICES | GIVING_VALUES, "none"),
    }
)

_WHERE: dict[str, Callable[[Sequence[bool]], bool]] = {
    "any": any,
    "all": lambda sparse: bool(sparse) and all(sparse),
    "first": lambda sparse: any(sparse[:1]),
    "not second": lambda sparse: any((*sparse[:1], *sparse[2:])),
    "none": lambda sparse: False,
}


def results_are_sparse(packet: str, sparse: Sequence[bool]) -> bool:
    """Whether results of an operator may be sparse, by which of the tensors are that it is given.

    Example:
        >>> results_are_sparse("aten.mm", [True, False])
        False
    """
    return _WHERE[ON_SPARSE.get(out_of_place(packet), "any")](sparse)


def out_of_place(packet: str) -> str:
    """The name of an operator without the line behind that says that it changes what it is given.

    Example:
        >>> out_of_place("aten.add_"), out_of_place("aten.__and__")
        ('aten.add', 'aten.__and__')
    """
    return packet if packet.endswith("__") else packet.removesuffix("_")


#: What may change a sparse tensor in place: not what may give it other indices, as `add_` does.
CHANGING_SPARSE = _names(
    "abs_ asin_ asinh_ atan_ atanh_ ceil_ deg2rad_ div_ erf_ erfinv_ expm1_ floor_ frac_ log1p_ mul_ neg_"
    " rad2deg_ relu_ round_ sgn_ sign_ sin_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ zero_"
)

_ARITHMETIC = (
    "abs add addcmul bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor"
    " clamp clamp_max clamp_min copysign div eq exp floor_divide fmod ge gt le logical_and logical_not"
    " logical_or logical_xor lt maximum minimum mul ne neg pow reciprocal remainder rsqrt rsub sigmoid sign"
    " sqrt square sub where __and__ __lshift__ __or__ __rshift__ __xor__"
)
_REDUCTIONS = (
    "all amax amin aminmax any argmax argmin count_nonzero cummax cummin cumprod cumsum max mean min prod"
    " std sum var"
)
_LOOKING_UP = (
    "argsort bincount bucketize cat clone copy embedding equal gather histc index index_add index_copy"
    " index_put index_reduce index_select isin item masked_fill masked_scatter masked_select nonzero one_hot"
    " repeat repeat_interleave roll flip scatter scatter_add scatter_reduce searchsorted sort stack take"
    " take_along_dim topk tril triu unique_consecutive unique_dim _unique2 _index_put_impl"
    " _local_scalar_dense _to_copy lift_fresh_copy"
)
_LIKE = "empty_like full_like new_empty new_full new_ones new_zeros ones_like rand_like randn_like zeros_like"
_ABOUT = (
    "sym_size sym_numel sym_stride sym_storage_offset sym_is_contiguous size numel dim is_same_size"
    " _assert_tensor_metadata _assert_async"
)
_LAYERS = (
    "addmm baddbmm bmm gelu leaky_relu linear log_softmax _log_softmax _softmax softmax matmul mm mv relu"
    " silu tanh"
)

#: What may be given tensors that lie in the memory of a sparse one's indices or values: it only reads them,
#: and what it makes has memory of its own. Views may be, too: their schemas say so.
READING_PARTS = _names(" ".join((_ARITHMETIC, _REDUCTIONS, _LOOKING_UP, _LIKE, _ABOUT, _LAYERS)))
