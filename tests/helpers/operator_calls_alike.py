"""Calls written by hand, as in `operator_calls_by_hand.py`, where operators take the same arguments."""

from __future__ import annotations

from typing import Any

import torch
from torch import ones, tensor, zeros

_INTEGERS: dict[str, Any] = {"self": tensor([1, 2, 3]), "other": tensor([3, 1, 2])}
_FLOATS: dict[str, Any] = {"self": ones(4), "other": ones(4)}
_SQUARE: dict[str, Any] = {"self": ones(3, 3) + torch.eye(3)}
_SIGNED = torch.linspace(-0.9, 0.9, 6).view(2, 3)
_RANGE: dict[str, Any] = {"min": 0, "max": 5}
_WINDOW: dict[str, Any] = {"window_length": 5}
_TOKEN: dict[str, Any] = {"dep_token": zeros(0)}
_IMAGE: dict[str, Any] = {"input": ones(1, 3, 5, 5), "weight": ones(2, 3, 3, 3), "bias": ones(2)}
_QUANTIZED: dict[str, Any] = {"self": ones(4, 3), "quant_min": 0, "quant_max": 255}
_QUERIES: dict[str, Any] = {name: ones(1, 2, 3, 4) for name in ("query", "key", "value")}
_NORMALIZED: dict[str, Any] = {
    **{"input": ones(2, 3, 4), "weight": ones(3), "bias": ones(3), "eps": 1e-5},
    **{"running_mean": ones(3), "running_var": ones(3), "momentum": 0.1},
}
_CELL: dict[str, Any] = {
    **{"input": ones(2, 3), "hx": ones(2, 4), "w_ih": ones(4, 3), "w_hh": ones(4, 4)},
    **{"b_ih": ones(4), "b_hh": ones(4)},
}
_SHRUNK: dict[str, Any] = {
    **{"grad_output": ones(1, 2, 2, 2), "output_size": [2, 2], "input_size": [1, 2, 4, 4]},
    "align_corners": False,
}
_ROWS: dict[str, Any] = {"values": ones(3), "size": [2, 3]}
_BLOCKS: dict[str, Any] = {"values": ones(3, 1, 1), "size": [2, 3]}
_BY_ROWS: dict[str, Any] = {"crow_indices": tensor([0, 2, 3]), "col_indices": tensor([0, 2, 1])}
_BY_COLUMNS: dict[str, Any] = {"ccol_indices": tensor([0, 1, 2, 3]), "row_indices": tensor([0, 1, 0])}
_IN_FLOAT8 = ones(16, 16).to(torch.float8_e4m3fn)
_STEP: dict[str, Any] = {"start": 0, "end": 5}
_NCDHW: dict[str, Any] = {"input": ones(1, 2, 4, 4, 4), "output_size": None, "scale_factors": [2.0, 2.0, 2.0]}
_NCHW: dict[str, Any] = {
    **{"input": ones(1, 2, 4, 4), "output_size": [2, 2], "align_corners": False, "scale_factors": None}
}


def _recurrent(gates: int) -> dict[str, Any]:
    params = [ones(4 * gates, 3), ones(4 * gates, 4), ones(4 * gates), ones(4 * gates)]
    return {
        **{"input": ones(5, 2, 3), "params": params, "has_biases": True, "num_layers": 1, "dropout": 0.0},
        **{"train": False, "bidirectional": False, "batch_first": False},
    }


_HIDDEN = ones(1, 2, 4)

#: Names of operators, and what all of them take. Of `aten` where no namespace is said.
_ALIKE: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "__and__.Tensor __iand__.Tensor __or__.Tensor __ior__.Tensor __xor__.Tensor __ixor__.Tensor"
        " __lshift__.Tensor __ilshift__.Tensor __rshift__.Tensor __irshift__.Tensor bitwise_and.Tensor"
        " bitwise_and_.Tensor bitwise_or_.Tensor bitwise_xor_.Tensor bitwise_left_shift_.Tensor"
        " bitwise_right_shift_.Tensor prims.shift_left.default prims.shift_right_arithmetic.default"
        " gcd_.default lcm_.default",
        _INTEGERS,
    ),
    (
        "__and__.Scalar __iand__.Scalar __or__.Scalar __ior__.Scalar __xor__.Scalar __ixor__.Scalar"
        " __lshift__.Scalar __ilshift__.Scalar __rshift__.Scalar __irshift__.Scalar"
        " bitwise_and.Scalar bitwise_and_.Scalar bitwise_or.Scalar bitwise_or_.Scalar bitwise_xor.Scalar"
        " bitwise_xor_.Scalar bitwise_left_shift.Tensor_Scalar bitwise_left_shift_.Tensor_Scalar"
        " bitwise_right_shift.Tensor_Scalar bitwise_right_shift_.Tensor_Scalar",
        {"self": tensor([1, 2, 3]), "other": 2},
    ),
    (
        "bitwise_and.Scalar_Tensor bitwise_or.Scalar_Tensor bitwise_xor.Scalar_Tensor"
        " bitwise_left_shift.Scalar_Tensor bitwise_right_shift.Scalar_Tensor",
        {"self": 2, "other": tensor([1, 2, 3])},
    ),
    (
        "_add_relu.Tensor _add_relu_.Tensor greater.Tensor greater_.Tensor greater_equal.Tensor"
        " greater_equal_.Tensor less.Tensor less_.Tensor less_equal.Tensor less_equal_.Tensor"
        " not_equal.Tensor not_equal_.Tensor multiply.Tensor multiply_.Tensor type_as.default"
        " prims.zeta.default special_xlogy.default special_gammainc.default special_gammaincc.default"
        " arctan2.default arctan2_.default _has_same_storage_numel.default is_same_size.default"
        " linalg_matmul.default",
        _FLOATS,
    ),
    (
        "_add_relu.Scalar _add_relu_.Scalar greater.Scalar greater_.Scalar greater_equal.Scalar"
        " greater_equal_.Scalar less.Scalar less_.Scalar less_equal.Scalar less_equal_.Scalar"
        " not_equal.Scalar not_equal_.Scalar multiply.Scalar multiply_.Scalar special_xlogy.other_scalar",
        {"self": ones(4), "other": 2.0},
    ),
    ("special_xlogy.self_scalar", {"self": 2.0, "other": ones(4)}),
    (
        "absolute.default absolute_.default arccos.default arccos_.default arcsin.default arcsin_.default"
        " arcsinh.default arcsinh_.default arctan.default arctan_.default arctanh.default arctanh_.default"
        " arccosh.default arccosh_.default fix.default fix_.default negative.default negative_.default"
        " special_digamma.default special_erf.default special_erfc.default special_erfinv.default"
        " special_exp2.default special_expit.default special_expm1.default special_gammaln.default"
        " special_i0.default special_log1p.default special_logit.default special_psi.default"
        " special_round.default special_sinc.default _cast_Byte.default _cast_Char.default"
        " _cast_Double.default _cast_Float.default _cast_Half.default _cast_Int.default _cast_Long.default"
        " _cast_Short.default adjoint.default contiguous.default lift.default data.default dim.default"
        " numel.default sym_numel.default storage_offset.default sym_storage_offset.default _version.default"
        " is_complex.default is_conj.default is_contiguous.default sym_is_contiguous.default"
        " is_floating_point.default is_inference.default is_leaf.default is_neg.default is_signed.default"
        " is_distributed.default output_nr.default retains_grad.default get_device.default"
        " requires_grad_.default random_.default random.default rand_like.default _neg_view.default"
        " _neg_view_copy.default _lazy_clone.default _shape_as_tensor.default _is_zerotensor.default"
        " _debug_has_internal_overlap.default dequantize.self _choose_qparams_per_tensor.default"
        " nuclear_norm.default frobenius_norm.dim"
        " prims.bessel_i0.default prims.bessel_i0e.default prims.bessel_i1.default prims.bessel_i1e.default"
        " prims.bessel_j0.default prims.bessel_j1.default prims.cbrt.default prims.erf_inv.default"
        " prims.erfcx.default prims.ndtri.default prims.spherical_bessel_j0.default to_dense.default",
        {"self": _SIGNED},
    ),
    ("inverse.default det.default slogdet.default matrix_exp.default", _SQUARE),
    ("is_contiguous.memory_format", {"self": ones(1, 2, 3, 3), "memory_format": torch.channels_last}),
    ("imag.default prims.imag.default real.default", {"self": torch.complex(ones(3), ones(3))}),
    ("item.default is_nonzero.default", {"self": tensor(1.0)}),
    ("prims.item.default", {"a": tensor(1.0)}),
    ("_is_all_true.default _is_any_true.default", {"self": tensor([True, False])}),
    ("row_stack.default concat.default concatenate.default", {"tensors": [ones(3, 3)] * 2}),
    ("chain_matmul.default", {"matrices": [ones(3, 3)] * 3}),
    ("is_set_to.default", {"self": ones(3), "tensor": ones(3)}),
    ("flatten_dense_tensors.default _to_cpu.default", {"tensors": [ones(2, 3), ones(4)]}),
    ("unflatten_dense_tensors.default", {"flat": ones(10), "tensors": [ones(2, 3), ones(4)]}),
    ("size.int sym_size.int stride.int sym_stride.int", {"self": ones(2, 3), "dim": 1}),
    ("_dim_arange.default", {"like": ones(2, 3), "dim": 1}),
    ("swapaxes.default swapaxes_.default", {"self": ones(2, 3, 4), "axis0": 0, "axis1": 2}),
    ("swapdims.default swapdims_.default", {"self": ones(2, 3, 4), "dim0": 0, "dim1": 2}),
    ("moveaxis.int", {"self": ones(2, 3, 4), "source": 0, "destination": 2}),
    ("moveaxis.intlist", {"self": ones(2, 3, 4), "source": [0, 1], "destination": [2, 0]}),
    ("clip.default clip_.default", {"self": _SIGNED, "min": -0.5, "max": 0.5}),
    ("clip.Tensor clip_.Tensor", {"self": _SIGNED, "min": zeros(2, 3), "max": ones(3)}),
    ("special_log_softmax.default special_softmax.default", {"self": _SIGNED, "dim": 1, "dtype": None}),
    ("special_logsumexp.default nuclear_norm.dim frobenius_norm.dim", {"self": ones(2, 3), "dim": [0, 1]}),
    ("special_multigammaln.default", {"self": ones(3) + 3, "p": 2}),
    ("linalg__powsum.default", {"self": ones(2, 3), "ord": 2, "dim": [1], "keepdim": False}),
    ("_foreach_powsum.Scalar", {"self": [ones(2, 3), ones(4)], "ord": 2}),
    ("matrix_power.default", {**_SQUARE, "n": 3}),
    ("matrix_exp_backward.default", {**_SQUARE, "grad": ones(3, 3)}),
    ("ger.default", {"self": ones(3), "vec2": ones(4)}),
    ("orgqr.default", {"self": ones(4, 3), "input2": ones(3)}),
    ("vander.default", {"x": ones(3), "N": 4}),
    ("range.default", _STEP),
    ("range.step", {**_STEP, "step": 2}),
    ("randperm.default", {"n": 5}),
    ("random_.to random.to", {"self": ones(4), "to": 10}),
    ("random_.from random.from", {"self": ones(4), "from": 2, "to": 10}),
    (
        "bartlett_window.default blackman_window.default hamming_window.default hann_window.default"
        " kaiser_window.default",
        _WINDOW,
    ),
    (
        "bartlett_window.periodic blackman_window.periodic hamming_window.periodic hann_window.periodic"
        " kaiser_window.periodic",
        {**_WINDOW, "periodic": False},
    ),
    ("kaiser_window.beta", {**_WINDOW, "periodic": False, "beta": 10.0}),
    ("hamming_window.periodic_alpha", {**_WINDOW, "periodic": False, "alpha": 0.5}),
    ("hamming_window.periodic_alpha_beta", {**_WINDOW, "periodic": False, "alpha": 0.5, "beta": 0.4}),
    ("fft_fftfreq.default fft_rfftfreq.default", {"n": 5}),
    ("fill_diagonal_.default", {"self": ones(3, 4), "fill_value": 2.0, "wrap": True}),
    ("_reshape_from_tensor.default", {"self": ones(2, 6), "shape": tensor([3, 4])}),
    ("slice_inverse.default", {"self": ones(4, 3), "src": ones(2, 3), "dim": 0, "start": 1, "end": 3}),
    ("unique_dim_consecutive.default", {"self": ones(4, 3), "dim": 0}),
    ("_addmm_activation.default", {"self": ones(3), "mat1": ones(2, 4), "mat2": ones(4, 3)}),
    ("_euclidean_dist.default", {"x1": ones(3, 4), "x2": ones(2, 4)}),
    ("_pad_circular.default", {"self": ones(1, 2, 4), "pad": [1, 1]}),
    ("_pad_enum.default", {"self": ones(1, 2, 4), "pad": [1, 1], "mode": 1}),
    ("native_dropout.default", {"input": ones(2, 3), "p": 0.5, "train": True}),
    (
        "_rowwise_prune.default",
        {
            **{"weight": ones(4, 3), "mask": tensor([True, False, True, True])},
            "compressed_indices_dtype": torch.int64,
        },
    ),
    ("_dirichlet_grad.default", {"x": ones(3, 2) / 2, "alpha": ones(3, 2), "total": ones(3, 2) * 2}),
    ("_standard_gamma_grad.default", {"self": ones(3), "output": ones(3)}),
    (
        "nll_loss2d.default",
        {
            **{"self": ones(2, 3, 2, 2), "target": ones(2, 2, 2, dtype=torch.int64), "weight": ones(3)},
        },
    ),
    (
        "_foreach_addcdiv.Tensor _foreach_addcdiv_.Tensor _foreach_addcmul.Tensor _foreach_addcmul_.Tensor",
        {**{name: [ones(2, 3), ones(4)] for name in ("self", "tensor1", "tensor2")}, "scalars": ones(2)},
    ),
    (
        "_upsample_nearest_exact2d.vec upsample_nearest2d.vec",
        {"input": ones(1, 2, 4, 4), "output_size": None, "scale_factors": [2.0, 2.0]},
    ),
    ("bernoulli.Tensor bernoulli_.Tensor", {"self": ones(4), "p": ones(4) / 2}),
    ("float_power_.Scalar", {"self": ones(4).double(), "exponent": 2.0}),
    ("float_power_.Tensor", {"self": ones(4).double(), "exponent": ones(4)}),
    ("gradient.tensorarrayint", {"self": ones(5, 4), "spacing": [torch.arange(5.0)], "dim": 0}),
    (
        "gradient.tensorarray",
        {"self": ones(5, 4), "spacing": [torch.arange(5.0), torch.arange(4.0)], "dim": [0, 1]},
    ),
    ("quantile.out nanquantile.out", {"self": ones(4, 5), "q": tensor([0.5]), "dim": 1, "out": zeros(1, 4)}),
    (
        "searchsorted.Scalar_out",
        {"sorted_sequence": torch.arange(5), "self": 2, "out": zeros((), dtype=torch.int64)},
    ),
    ("float_power.Scalar_out", {"self": 2.0, "exponent": ones(3), "out": zeros(3).double()}),
    (
        "_foreach_add.Tensor_out",
        {"self": [ones(3), ones(2)], "other": tensor(1.0), "out": [zeros(3), zeros(2)]},
    ),
    ("linalg_cond.p_str", {**_SQUARE, "p": "fro"}),
    ("linalg_norm.ord_str", {**_SQUARE, "ord": "fro"}),
    (
        "scatter.value_reduce scatter_.value_reduce",
        {"self": ones(3, 4), "dim": 1, "index": tensor([[0, 2]]), "value": 2.0, "reduce": "add"},
    ),
    # what a program asserts
    ("_assert_async.default", {"self": tensor(1)}),
    ("_assert_async.msg", {"self": tensor(1), "assert_msg": "x"}),
    ("_functional_assert_async.msg", {"self": tensor(1), "assert_msg": "x", **_TOKEN}),
    ("_assert_scalar.default", {"self": 1, "assert_msg": "x"}),
    ("_functional_assert_scalar.default", {"self": 1, "assert_msg": "x", **_TOKEN}),
    ("sym_constrain_range.default sym_constrain_range_for_size.default", {"size": 3, **_RANGE}),
    (
        "_functional_sym_constrain_range.default _functional_sym_constrain_range_for_size.default",
        {"size": 3, **_RANGE, **_TOKEN},
    ),
    ("_assert_tensor_metadata.default", {"a": ones(2, 3), "size": [2, 3], "stride": [3, 1]}),
    ("_make_dep_token.default prims._make_token.default", {}),
    ("prims._sink_tokens.default", {"tokens": [zeros(0)]}),
    # dtypes
    ("_autocast_to_full_precision.default", {"self": ones(3), "cuda_enabled": False, "cpu_enabled": True}),
    (
        "_autocast_to_reduced_precision.default",
        {
            **{"self": ones(3), "cuda_enabled": False, "cpu_enabled": True, "cuda_dtype": torch.float16},
            "cpu_dtype": torch.bfloat16,
        },
    ),
    ("can_cast.default", {"from_": torch.int64, "to": torch.float32}),
    ("promote_types.default", {"type1": torch.int64, "type2": torch.float32}),
    ("result_type.Tensor", {"tensor": ones(2), "other": ones(2)}),
    ("result_type.Scalar", {"tensor": ones(2), "other": 2}),
    ("result_type.Scalar_Tensor", {"scalar": 2, "tensor": ones(2)}),
    ("result_type.Scalar_Scalar", {"scalar1": 2, "scalar2": 2.0}),
    ("prims.maximum_value.default prims.minimum_value.default", {"dtype": torch.int64}),
    ("quantization._FloatToBfloat16Quantized.default", {"input": ones(2, 4)}),
    ("quantization._Bfloat16QuantizedToFloat.default", {"input": ones(2, 4).half()}),
    # networks
    ("_batch_norm_impl_index.default", {**_NORMALIZED, "training": True, "cudnn_enabled": False}),
    (
        "_batch_norm_impl_index_backward.default",
        {
            **{"impl_index": 0, "input": ones(2, 3, 4), "grad_output": ones(2, 3, 4), "weight": ones(3)},
            **{"running_mean": ones(3), "running_var": ones(3), "save_mean": ones(3), "train": True},
            **{
                "save_var_transform": ones(3),
                "eps": 1e-5,
                "output_mask": [True] * 3,
                "reservedSpace": zeros(0),
            },
        },
    ),
    ("_native_batch_norm_legit_no_training.default", _NORMALIZED),
    (
        "_convolution_mode.default",
        {**{**_IMAGE, "stride": [1, 1], "padding": "same", "dilation": [1, 1], "groups": 1}},
    ),
    (
        "mkldnn_convolution.default",
        {
            **{**{("self" if name == "input" else name): value for name, value in _IMAGE.items()}},
            **{"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], "groups": 1},
        },
    ),
    (
        "_convolution_double_backward.default",
        {
            **{"ggI": ones(1, 3, 5, 5), "ggW": ones(2, 3, 3, 3), "ggb": ones(2), "gO": ones(1, 2, 3, 3)},
            **{"self": ones(1, 3, 5, 5), "weight": ones(2, 3, 3, 3), "stride": [1, 1], "padding": [0, 0]},
            **{"dilation": [1, 1], "transposed": False, "output_padding": [0, 0], "groups": 1},
            "output_mask": [True] * 3,
        },
    ),
    ("_scaled_dot_product_attention_math.default _fused_sdp_choice.default", _QUERIES),
    ("_weight_norm.default _weight_norm_interface.default", {"v": ones(4, 3), "g": ones(4, 1), "dim": 0}),
    (
        "_weight_norm_differentiable_backward.default",
        {
            **{"grad_w": ones(4, 3), "saved_v": ones(4, 3), "saved_g": ones(4, 1), "saved_norms": ones(4, 1)},
            "dim": 0,
        },
    ),
    ("infinitely_differentiable_gelu_backward.default", {"grad": ones(4), "self": ones(4)}),
    ("glu_jvp.default", {"glu": ones(2), "x": ones(4), "dx": ones(4), "dim": 0}),
    (
        "glu_backward_jvp.default",
        {
            **{
                "grad_x": ones(4),
                "grad_glu": ones(2),
                "x": ones(4),
                "dgrad_glu": ones(2),
                "dx": ones(4),
                "dim": 0,
            }
        },
    ),
    (
        "cummaxmin_backward.default",
        {**{"grad": ones(2, 3), "input": ones(2, 3), "indices": zeros(2, 3, dtype=torch.int64), "dim": 1}},
    ),
    ("cumprod_backward.default", {"grad": ones(2, 3), "input": ones(2, 3), "dim": 1, "output": ones(2, 3)}),
    ("rnn_relu_cell.default rnn_tanh_cell.default", _CELL),
    ("rnn_relu.input rnn_tanh.input", {**_recurrent(1), "hx": _HIDDEN}),
    ("gru.input", {**_recurrent(3), "hx": _HIDDEN}),
    ("lstm.input", {**_recurrent(4), "hx": [_HIDDEN, _HIDDEN]}),
    (
        "_upsample_lanczos2d_aa.default",
        {**{"self": ones(1, 2, 4, 4), "output_size": [2, 2], "align_corners": False}},
    ),
    ("_upsample_bicubic2d_aa_backward.default _upsample_lanczos2d_aa_backward.default", _SHRUNK),
    ("_upsample_bicubic2d_aa.vec _upsample_lanczos2d_aa.vec", _NCHW),
    ("_upsample_nearest_exact3d.vec", _NCDHW),
    (
        "_upsample_nearest_exact3d_backward.default",
        {**{"grad_output": ones(1, 2, 2, 2, 2), "output_size": [2, 2, 2], "input_size": [1, 2, 4, 4, 4]}},
    ),
    ("cudnn_is_acceptable.default", {"self": ones(2)}),
    # quantization
    (
        "choose_qparams_optimized.default",
        {**{"input": ones(8), "numel": 8, "n_bins": 200, "ratio": 0.16, "bit_width": 8}},
    ),
    (
        "_fake_quantize_learnable_per_tensor_affine.default",
        {**{**_QUANTIZED, "scale": ones(1), "zero_point": zeros(1), "grad_factor": 1.0}},
    ),
    (
        "_fake_quantize_learnable_per_tensor_affine_backward.default",
        {**{**_QUANTIZED, "scale": ones(1), "zero_point": zeros(1), "grad_factor": 1.0, "grad": ones(4, 3)}},
    ),
    (
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default",
        {
            **{**_QUANTIZED, "scale": ones(1), "zero_point": zeros(1, dtype=torch.int32)},
            "fake_quant_enabled": ones(1),
        },
    ),
    (
        "fake_quantize_per_tensor_affine.tensor_qparams",
        {**{**_QUANTIZED, "scale": ones(1), "zero_point": zeros(1, dtype=torch.int32)}},
    ),
    (
        "fake_quantize_per_tensor_affine.default fake_quantize_per_tensor_affine_cachemask.default",
        {**_QUANTIZED, "scale": 1.0, "zero_point": 0},
    ),
    (
        "fake_quantize_per_channel_affine.default",
        {**{**_QUANTIZED, "scale": ones(4), "zero_point": zeros(4, dtype=torch.int32), "axis": 0}},
    ),
    (
        "fake_quantize_per_channel_affine_cachemask_backward.default"
        " fake_quantize_per_tensor_affine_cachemask_backward.default",
        {"grad": ones(4, 3), "mask": ones(4, 3).bool()},
    ),
    (
        "_scaled_mm.default",
        {
            **{"self": _IN_FLOAT8, "mat2": _IN_FLOAT8.t(), "scale_a": tensor(1.0), "scale_b": tensor(1.0)},
            "out_dtype": torch.float32,
        },
    ),
    # sparse tensors
    ("_validate_sparse_csr_tensor_args.default", {**_BY_ROWS, **_ROWS}),
    ("_validate_sparse_bsr_tensor_args.default", {**_BY_ROWS, **_BLOCKS}),
    ("_validate_sparse_csc_tensor_args.default", {**_BY_COLUMNS, **_ROWS}),
    ("_validate_sparse_bsc_tensor_args.default", {**_BY_COLUMNS, **_BLOCKS}),
    ("_validate_sparse_coo_tensor_args.default", {"indices": tensor([[0, 0, 1], [0, 2, 1]]), **_ROWS}),
    (
        "_validate_sparse_compressed_tensor_args.default",
        {
            **{"compressed_indices": tensor([0, 2, 3]), "plain_indices": tensor([0, 2, 1]), **_ROWS},
            "layout": torch.sparse_csr,
        },
    ),
    (
        "_validate_compressed_sparse_indices.default",
        {
            **{"is_crow": True, "compressed_idx": tensor([0, 2, 3]), "plain_idx": tensor([0, 2, 1])},
            **{"cdim": 2, "dim": 3, "nnz": 3},
        },
    ),
    (
        "to_sparse_csr.default to_sparse_csc.default to_sparse.default _to_sparse_csr.default"
        " _to_sparse_csc.default _to_sparse.default",
        {"self": torch.eye(4)},
    ),
    (
        "to_sparse_bsr.default to_sparse_bsc.default _to_sparse_bsr.default _to_sparse_bsc.default",
        {"self": torch.eye(4), "blocksize": [2, 2]},
    ),
    # prims
    ("prims.broadcast_in_dim.default", {"a": ones(3), "shape": [2, 3], "broadcast_dimensions": [1]}),
    ("prims.collapse.default prims.collapse_view.default", {"a": ones(2, 3, 4), "start": 0, "end": 1}),
    ("prims.convert_element_type.default", {"a": ones(3), "dtype": torch.int64}),
    ("prims.copy_strided.default", {"a": ones(2, 3), "stride": [1, 2]}),
    ("prims.copy_to.default", {"a": ones(2, 3), "b": zeros(2, 3)}),
    ("prims.device_put.default", {"a": ones(2, 3), "device": "cpu"}),
    (
        "prims.iota.default",
        {
            **{
                "length": 4,
                "start": 0,
                "step": 2,
                "dtype": torch.int64,
                "device": "cpu",
                "requires_grad": False,
            }
        },
    ),
    ("prims.rev.default", {"a": ones(2, 3), "dims": [0, 1]}),
    ("prims.split_dim.default", {"a": ones(6, 2), "dim": 0, "outer_length": 2}),
    ("prims.view_of.default", {"a": ones(2, 3)}),
    ("prims.view_of_dtype.default", {"a": ones(2, 3), "dtype": torch.int32}),
    ("debug_mode_ops.annotate.default", {"tag": "x"}),
)


def alike() -> dict[str, dict[str, Any]]:
    """Arguments by operator, as `Node.target` has it, without `torch.ops.`."""
    return {
        (name if name.count(".") == 2 else f"aten.{name}"): arguments
        for names, arguments in _ALIKE
        for name in names.split()
    }
