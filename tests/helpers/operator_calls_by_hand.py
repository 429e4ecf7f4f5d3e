"""Calls of operators that PyTorch's own tests do not call, or not by themselves: written by hand.

Each is a valid one, of small tensors. The search makes their arguments bad.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, ones, tensor, zeros

from .operator_calls import Call
from .operator_calls_alike import alike

_LONG, _INT = torch.int64, torch.int32
_3X3 = {"kernel_size": [3, 3], "stride": [1, 1], "padding": [0, 0]}
_3X3X3 = {"kernel_size": [3, 3, 3], "stride": [1, 1, 1], "padding": [0, 0, 0]}
_RECURRENT: dict[str, Any] = {
    **{"data": ones(5, 4), "batch_sizes": tensor([3, 2]), "has_biases": False, "num_layers": 1},
    **{"dropout": 0.0, "train": False, "bidirectional": False},
}
_OBSERVED: dict[str, Any] = {
    **{"self": ones(4, 3), "observer_on": tensor([1]), "fake_quant_on": tensor([1])},
    **{"running_min": ones(4), "running_max": ones(4), "scale": ones(4), "zero_point": zeros(4, dtype=_INT)},
    **{"averaging_const": 0.1, "quant_min": 0, "quant_max": 255, "ch_axis": 0},
    **{"per_row_fake_quant": True, "symmetric_quant": False},
}
_QUANTIZED: dict[str, Any] = {
    "self": ones(4, 3),
    "scale": ones(4),
    "quant_min": 0,
    "quant_max": 255,
    "axis": 0,
}
_LEARNED: dict[str, Any] = {**_QUANTIZED, "zero_point": ones(4), "grad_factor": 1.0}
_IMAGE: dict[str, Any] = {"self": ones(1, 3, 5, 5), "weight": ones(2, 3, 3, 3)}
_VOLUME: dict[str, Any] = {"self": ones(1, 3, 5, 5, 5), "weight": ones(2, 3, 3, 3, 3)}
_SAMPLED: dict[str, Any] = {
    **{"input": ones(1, 2, 4, 4), "grid": ones(1, 3, 3, 2)},
    **{"interpolation_mode": 0, "padding_mode": 0, "align_corners": False},
}
_NORMALIZED: dict[str, Any] = {
    **{"input": ones(2, 3, 4), "weight": ones(3), "bias": ones(3)},
    **{"running_mean": ones(3), "running_var": ones(3), "momentum": 0.1, "eps": 1e-5},
}
_TRAINED: dict[str, Any] = {"weight_decay": 0.0, "lr": 0.1, "eps": 1e-8, "maximize": False}


def _lists(*names: str) -> dict[str, list[Tensor]]:
    return {name: [ones(4)] for name in names}


def _layer(norm: str) -> dict[str, Tensor]:
    return {f"norm_weight_{norm}": ones(8), f"norm_bias_{norm}": ones(8)}


_ATTENTION: dict[str, Any] = {
    **{"embed_dim": 8, "qkv_weight": ones(24, 8), "qkv_bias": ones(24), "proj_weight": ones(8, 8)},
    **{"proj_bias": ones(8), "mask": zeros(2, 3).bool(), "mask_type": 1},
}
_ADAM = {
    **_lists("self", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"),
    **{"state_steps": [tensor(1.0)], "beta1": 0.9, "beta2": 0.9, "amsgrad": True, **_TRAINED},
}

_BY_HAND: dict[str, dict[str, Any]] = {
    "_pad_packed_sequence.default": {
        **{"data": ones(5, 2), "batch_sizes": tensor([3, 2]), "batch_first": False},
        **{"padding_value": 0.0, "total_length": 2},
    },
    "_pack_padded_sequence.default": {
        "input": ones(3, 2, 4),
        "lengths": tensor([3, 2]),
        "batch_first": False,
    },
    "_pack_padded_sequence_backward.default": {
        **{"grad": ones(5, 4), "input_size": [3, 2, 4], "batch_sizes": tensor([2, 2, 1])},
        "batch_first": False,
    },
    "rnn_tanh.data": {**_RECURRENT, "hx": ones(1, 3, 4), "params": [ones(4, 4), ones(4, 4)]},
    "rnn_relu.data": {**_RECURRENT, "hx": ones(1, 3, 4), "params": [ones(4, 4), ones(4, 4)]},
    "gru.data": {**_RECURRENT, "hx": ones(1, 3, 4), "params": [ones(12, 4), ones(12, 4)]},
    "lstm.data": {**_RECURRENT, "hx": [ones(1, 3, 4)] * 2, "params": [ones(16, 4), ones(16, 4)]},
    "_jagged_to_padded_dense_forward.default": {
        **{"values": ones(6, 2), "offsets": [tensor([0, 2, 6])], "max_lengths": [4], "padding_value": 0.0}
    },
    "_padded_dense_to_jagged_forward.default": {
        **{"dense": ones(2, 4, 2), "offsets": [tensor([0, 2, 6])], "total_L": 6}
    },
    "_nested_from_padded.default": {
        **{"padded": ones(2, 4, 3), "cpu_nested_shape_example": tensor([[2, 3], [4, 3]])},
        "fuse_transform_0213": False,
    },
    "_unsafe_index.Tensor": {"self": ones(4, 3), "indices": [tensor([0, 1])]},
    "_unsafe_index_put.default": {"self": ones(4, 3), "indices": [tensor([0, 1])], "values": ones(2, 3)},
    "_index_put_impl_.default": {
        **{"self": ones(4, 3), "indices": [tensor([0, 1])], "values": ones(2, 3)},
        **{"accumulate": False, "unsafe": True},
    },
    "_fused_moving_avg_obs_fq_helper.default": _OBSERVED,
    "fused_moving_avg_obs_fake_quant.default": _OBSERVED,
    "fake_quantize_per_channel_affine_cachemask.default": {**_QUANTIZED, "zero_point": zeros(4, dtype=_INT)},
    "_fake_quantize_learnable_per_channel_affine.default": _LEARNED,
    "_fake_quantize_learnable_per_channel_affine_backward.default": {**_LEARNED, "grad": ones(4, 3)},
    "_weight_int8pack_mm.default": {
        **{"self": ones(4, 32).bfloat16(), "mat2": ones(8, 32, dtype=torch.int8)},
        "scales": ones(8).bfloat16(),
    },
    "_weight_int4pack_mm_for_cpu.default": {
        **{"self": ones(4, 64).bfloat16(), "mat2": ones(64, 32, dtype=torch.uint8), "qGroupSize": 32},
        "qScaleAndZeros": ones(2, 64, 2).bfloat16(),
    },
    "_convert_weight_to_int4pack_for_cpu.default": {"self": ones(64, 64, dtype=_INT), "innerKTiles": 2},
    "_int_mm.default": {"self": ones(32, 32, dtype=torch.int8), "mat2": ones(32, 32, dtype=torch.int8)},
    "_grouped_mm.default": {
        **{"self": ones(8, 16).bfloat16(), "mat2": ones(2, 16, 8).bfloat16()},
        "offs": tensor([4, 8], dtype=_INT),
    },
    "_sobol_engine_draw.default": {
        **{"quasi": zeros(3, dtype=_LONG), "n": 4, "sobolstate": ones(3, 30, dtype=_LONG), "dimension": 3},
        **{"num_generated": 1, "dtype": None},
    },
    "_sobol_engine_scramble_.default": {
        **{"self": ones(3, 30, dtype=_LONG), "ltm": ones(3, 30, 30, dtype=_LONG), "dimension": 3}
    },
    "_transformer_encoder_layer_fwd.default": {
        **{"src": ones(2, 3, 8), "num_heads": 2, "use_gelu": False, "norm_first": False, "eps": 1e-5},
        **{**_ATTENTION, **_layer("1"), **_layer("2"), "ffn_weight_1": ones(16, 8), "ffn_bias_1": ones(16)},
        **{"ffn_weight_2": ones(8, 16), "ffn_bias_2": ones(8)},
    },
    "_native_multi_head_attention.default": {
        **{"query": ones(2, 3, 8), "key": ones(2, 3, 8), "value": ones(2, 3, 8), "num_head": 2},
        **{**_ATTENTION, "need_weights": True, "average_attn_weights": True},
    },
    "_masked_softmax.default": {
        **{"self": ones(2, 2, 3, 3), "mask": zeros(2, 3).bool(), "dim": 3, "mask_type": 1}
    },
    "_masked_softmax_backward.default": {
        **{"grad_output": ones(2, 2, 3, 3), "output": ones(2, 2, 3, 3), "mask": zeros(2, 2, 3, 3).bool()},
        "dim": 3,
    },
    "_slow_conv2d_forward.default": {**_IMAGE, **_3X3, "bias": ones(2)},
    "_slow_conv2d_backward.output_mask": {
        **{**_IMAGE, **_3X3, "grad_output": ones(1, 2, 3, 3), "output_mask": [True] * 3}
    },
    "slow_conv3d_forward.default": {**_VOLUME, **_3X3X3, "bias": ones(2)},
    "slow_conv_transpose2d.default": {**_IMAGE, **_3X3, "weight": ones(3, 2, 3, 3), "bias": ones(2)},
    "slow_conv_transpose3d.default": {**_VOLUME, **_3X3X3, "weight": ones(3, 2, 3, 3, 3), "bias": ones(2)},
    "slow_conv_dilated2d.default": {**_IMAGE, **_3X3, "bias": ones(2), "dilation": [1, 1]},
    "slow_conv_dilated3d.default": {**_VOLUME, **_3X3X3, "bias": ones(2), "dilation": [1, 1, 1]},
    "conv_tbc.default": {"self": ones(5, 2, 3), "weight": ones(2, 3, 4), "bias": ones(4), "pad": 0},
    "conv_tbc_backward.default": {
        **{"self": ones(4, 2, 4), "input": ones(5, 2, 3), "weight": ones(2, 3, 4), "bias": ones(4), "pad": 0}
    },
    "_grid_sampler_2d_cpu_fallback.default": _SAMPLED,
    "_grid_sampler_2d_cpu_fallback_backward.default": {**_SAMPLED, "grad_output": ones(1, 2, 3, 3)},
    "_batch_norm_no_update.default": _NORMALIZED,
    "lstm_cell.default": {
        **{"input": ones(2, 3), "hx": [ones(2, 4)] * 2, "w_ih": ones(16, 3), "w_hh": ones(16, 4)},
        **{"b_ih": ones(16), "b_hh": ones(16)},
    },
    "gru_cell.default": {
        **{"input": ones(2, 3), "hx": ones(2, 4), "w_ih": ones(12, 3), "w_hh": ones(12, 4)},
        **{"b_ih": ones(12), "b_hh": ones(12)},
    },
    "_fused_adam_.default": _ADAM,
    "_fused_adamw_.default": _ADAM,
    "_fused_adagrad_.default": {
        **{**_lists("self", "grads", "state_sums"), **_TRAINED, "state_steps": [tensor(1.0)], "lr_decay": 0.1}
    },
    "_amp_foreach_non_finite_check_and_unscale_.default": {
        **{**_lists("self"), "found_inf": tensor(0.0), "inv_scale": tensor(1.0)}
    },
    "_amp_update_scale_.default": {
        **{"self": tensor(1.0), "growth_tracker": tensor(0, dtype=_INT), "found_inf": tensor(0.0)},
        **{"scale_growth_factor": 2.0, "scale_backoff_factor": 0.5, "growth_interval": 10},
    },
    "_spdiags.default": {"diagonals": ones(2, 4), "offsets": tensor([0, 1]), "shape": [4, 4]},
    "_trilinear.default": {
        **{"i1": ones(2, 3), "i2": ones(2, 3), "i3": ones(2, 3), "expand1": [], "expand2": [], "expand3": []},
        **{"sumdim": [1], "unroll_dim": 1},
    },
    "_embedding_bag_forward_only.default": {
        **{"weight": ones(4, 3), "indices": tensor([0, 1, 2]), "offsets": tensor([0, 2])}
    },
    "embedding_renorm_.default": {
        **{"self": ones(4, 3), "indices": tensor([0, 1]), "max_norm": 1.0, "norm_type": 2.0}
    },
    "affine_grid_generator.default": {"theta": ones(1, 2, 3), "size": [1, 1, 4, 4], "align_corners": False},
    "affine_grid_generator_backward.default": {
        **{"grad": ones(1, 4, 4, 2), "size": [1, 1, 4, 4], "align_corners": False}
    },
    "value_selecting_reduction_backward.default": {
        **{"grad": ones(3), "dim": 1, "indices": tensor([0, 1, 0]), "sizes": [3, 2], "keepdim": False}
    },
    "index_select_backward.default": {
        **{"grad": ones(2, 3), "self_sizes": [4, 3], "dim": 0, "index": tensor([0, 1])}
    },
    "masked_select_backward.default": {
        **{"grad": ones(2), "input": ones(4), "mask": tensor([True, False, True, False])}
    },
    "gather_backward.default": {
        **{"grad": ones(2, 2), "self": ones(2, 3), "dim": 1, "index": tensor([[0, 1], [1, 2]])},
        "sparse_grad": False,
    },
    "trace_backward.default": {"grad": tensor(1.0), "sizes": [3, 3]},
    "native_channel_shuffle.default": {"self": ones(1, 4, 2, 2), "groups": 2},
    "nll_loss.default": {"self": ones(3, 4), "target": tensor([0, 1, 2]), "weight": ones(4)},
    "_upsample_bicubic2d_aa.default": {
        "self": ones(1, 2, 4, 4),
        "output_size": [8, 8],
        "align_corners": False,
    },
    "_upsample_nearest_exact3d.default": {"self": ones(1, 2, 4, 4, 4), "output_size": [8, 8, 8]},
    "unsafe_split_with_sizes.default": {"self": ones(4, 3), "split_sizes": [1, 3]},
    "unique_dim.default": {"self": ones(4, 3), "dim": 0},
    "pad_sequence.default": {"sequences": [ones(3, 2), ones(2, 2)]},
    "norm_except_dim.default": {"v": ones(3, 2)},
    "istft.default": {"self": ones(33, 10, dtype=torch.complex64), "n_fft": 64},
    "_sparse_softmax.default": {"self": ones(3, 4).to_sparse(), "dim": 1, "half_to_float": False},
    "_standard_gamma.default": {"self": ones(3)},
    "_sample_dirichlet.default": {"self": ones(3, 2)},
    "binomial.default": {"count": ones(3), "prob": ones(3) / 2},
    "poisson.default": {"self": ones(3)},
    "_make_dual.default": {"primal": ones(4, 3), "tangent": ones(4, 3), "level": 0},
}


def by_hand() -> dict[str, Call]:
    """A call of each operator of the table, by name as `Node.target` has it, without `torch.ops.`."""
    single = {f"aten.{name}": Call(arguments) for name, arguments in _BY_HAND.items()}
    return single | {name: Call(arguments) for name, arguments in alike().items()}
