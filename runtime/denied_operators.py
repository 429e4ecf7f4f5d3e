"""Which operators nobody's file may call unless the caller allows it, with the reasons: tables."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

#: Operators of which every overload is refused, or the one that is named, by the reason. Those that trust
#: what they are given were found by `tests/helpers/operator_search.py`.
_BY_REASON = {
    "it takes tensors whose sizes nothing checks": """
        aten._adaptive_avg_pool2d_backward aten._adaptive_avg_pool3d_backward
        aten._batch_norm_impl_index_backward aten._cdist_backward
        aten._cholesky_solve_helper aten._chunk_cat aten._compute_linear_combination
        aten._convert_weight_to_int4pack aten._convert_weight_to_int4pack_for_cpu
        aten._ctc_loss_backward aten._cummax_helper aten._cummin_helper aten._dyn_quant_matmul_4bit
        aten._dyn_quant_pack_4bit_weight aten._fused_adagrad aten._fused_adagrad_ aten._fused_adam
        aten._fused_adam_ aten._fused_adamw aten._fused_adamw_ aten._fused_moving_avg_obs_fq_helper
        aten._fused_moving_avg_obs_fq_helper_functional aten._fused_sgd aten._fused_sgd_
        aten._grid_sampler_2d_cpu_fallback aten._grid_sampler_2d_cpu_fallback_backward
        aten._log_softmax_backward_data aten._masked_softmax aten._masked_softmax_backward
        aten._native_multi_head_attention aten._nested_compute_contiguous_strides_offsets
        aten._nnpack_spatial_convolution aten._pdist_backward aten._saturate_weight_to_fp16
        aten._scaled_dot_product_flash_attention_for_cpu_backward aten._slow_conv2d_backward
        aten._slow_conv2d_forward aten._sobol_engine_draw aten._sobol_engine_initialize_state_
        aten._sobol_engine_scramble_ aten._spdiags aten._stack
        aten._thnn_differentiable_gru_cell_backward aten._thnn_differentiable_lstm_cell_backward
        aten._transform_bias_rescale_qkv aten._transformer_encoder_layer_fwd
        aten._triton_multi_head_attention aten._triton_scaled_dot_attention aten._weight_int4pack_mm
        aten._weight_int4pack_mm_for_cpu aten._weight_int4pack_mm_with_scales_and_zeros
        aten._weight_norm_interface_backward aten.adaptive_avg_pool3d_backward
        aten.avg_pool2d_backward aten.avg_pool3d_backward aten.batch_norm_backward
        aten.batch_norm_update_stats aten.fbgemm_linear_quantize_weight
        aten.fbgemm_pack_gemm_matrix_fp16 aten.fused_moving_avg_obs_fake_quant
        aten.grid_sampler_2d_backward aten.grid_sampler_3d_backward aten.mkldnn_rnn_layer
        aten.mkldnn_rnn_layer_backward aten.multi_margin_loss_backward
        aten.multilabel_margin_loss_backward aten.native_batch_norm_backward
        aten.native_layer_norm_backward aten.quantized_gru aten.quantized_lstm_cell
        aten.reflection_pad1d_backward aten.reflection_pad2d_backward aten.reflection_pad3d_backward
        aten.replication_pad1d_backward aten.replication_pad2d_backward
        aten.replication_pad3d_backward aten.slow_conv3d aten.slow_conv3d_forward
        aten.slow_conv_dilated2d aten.slow_conv_dilated3d aten.slow_conv_transpose2d
        aten.slow_conv_transpose3d aten.smooth_l1_loss_backward aten.thnn_conv2d
        aten.unfold_backward
    """,
    "it takes lists whose lengths nothing checks": "aten._foreach_copy",
    "it writes to tensors whose sizes and dtypes nothing checks": """
        aten._logcumsumexp.out aten.rrelu_with_noise.out
    """,
    "it takes indices that nothing checks": """
        aten._convert_indices_from_coo_to_csr aten._convert_indices_from_csr_to_coo
        aten._embedding_bag_backward aten._embedding_bag_dense_backward
        aten._embedding_bag_per_sample_weights_backward aten._embedding_bag_sparse_backward
        aten._gather_sparse_backward aten._segment_reduce_backward aten._sparse_bsc_tensor_unsafe
        aten._sparse_bsr_tensor_unsafe aten._sparse_compressed_tensor_unsafe
        aten._sparse_compressed_tensor_with_dims aten._sparse_coo_tensor_unsafe
        aten._sparse_coo_tensor_with_dims_and_tensors aten._sparse_csc_tensor_unsafe
        aten._sparse_csr_tensor_unsafe aten._sparse_mm_reduce_impl_backward
        aten.adaptive_max_pool2d_backward aten.adaptive_max_pool3d_backward aten.embedding_backward
        aten.embedding_dense_backward aten.embedding_sparse_backward
        aten.fractional_max_pool2d_backward aten.fractional_max_pool3d_backward
        aten.max_pool2d_with_indices_backward aten.max_pool3d_with_indices_backward
        aten.sparse_bsc_tensor aten.sparse_bsr_tensor aten.sparse_compressed_tensor
        aten.sparse_coo_tensor aten.sparse_csc_tensor aten.sparse_csr_tensor
    """,
    "nobody tried it with bad arguments": """
        _native._foreach_mm_native_0 aten._amp_foreach_non_finite_check_and_unscale.out
        aten._backward aten._coalesced aten._coalesced_ aten._conv_depthwise2d aten._copy_from
        aten._copy_from_and_resize aten._cslt_compress aten._cslt_sparse_mm
        aten._cslt_sparse_mm_search aten._cudnn_attention_backward aten._cudnn_attention_forward
        aten._cudnn_ctc_loss aten._cudnn_init_dropout_state aten._cudnn_rnn.out
        aten._cudnn_rnn_backward aten._cudnn_rnn_flatten_weight aten._cufft_clear_plan_cache
        aten._cufft_get_plan_cache_max_size aten._cufft_get_plan_cache_size
        aten._cufft_set_plan_cache_max_size aten._efficient_attention_backward
        aten._efficient_attention_forward aten._empty_affine_quantized
        aten._empty_per_channel_affine_quantized aten._fill_mem_eff_dropout_mask_
        aten._flash_attention_backward aten._flash_attention_forward
        aten._flash_attention_forward_no_dropout_inplace aten._fused_dropout
        aten._fused_rms_norm_backward aten._fw_primal_copy aten._lstm_mps
        aten._make_dual_copy aten._masked_scale aten._mixed_dtypes_linear aten._mkldnn_reshape
        aten._mkldnn_transpose aten._mkldnn_transpose_ aten._mps_convolution
        aten._mps_convolution_transpose aten._nested_get_jagged_dummy aten._nested_get_lengths
        aten._nested_get_max_seqlen aten._nested_get_min_seqlen aten._nested_get_offsets
        aten._nested_get_ragged_idx aten._nested_get_values aten._nested_get_values_copy
        aten._nested_select_backward aten._nested_sum_backward
        aten._nested_tensor_from_mask_left_aligned aten._nested_tensor_size
        aten._nested_tensor_softmax_with_shape aten._nested_tensor_storage_offsets
        aten._nested_tensor_strides aten._nested_view_from_jagged aten._nested_view_from_jagged_copy
        aten._philox_key_fold_in aten._philox_key_split aten._philox_normal aten._philox_normal_
        aten._philox_uniform aten._philox_uniform_ aten._pin_memory aten._propagate_xla_data
        aten._resize_output aten._resize_output_ aten._scaled_dot_product_attention_math_for_mps
        aten._scaled_dot_product_cudnn_attention_backward
        aten._scaled_dot_product_efficient_attention_backward
        aten._scaled_dot_product_flash_attention.quantized
        aten._scaled_dot_product_flash_attention_backward
        aten._scaled_dot_product_fused_attention_overrideable
        aten._scaled_dot_product_fused_attention_overrideable_backward aten._scaled_grouped_mm
        aten._scaled_grouped_mm_v2 aten._scaled_mm_v2 aten._sparse_addmm aten._sparse_broadcast_to
        aten._sparse_broadcast_to_copy aten._sparse_coo_tensor_with_dims aten._sparse_csr_prod
        aten._sparse_csr_sum aten._sparse_log_softmax_backward_data aten._sparse_mask_projection
        aten._sparse_mm.reduce aten._sparse_semi_structured_addmm aten._sparse_semi_structured_apply
        aten._sparse_semi_structured_apply_dense aten._sparse_semi_structured_linear
        aten._sparse_semi_structured_mm aten._sparse_semi_structured_tile
        aten._sparse_softmax_backward_data aten._sparse_sparse_matmul aten._sparse_sum_backward
        aten._spsolve aten._thnn_fused_gru_cell.out aten._thnn_fused_gru_cell_backward
        aten._thnn_fused_lstm_cell.out aten._thnn_fused_lstm_cell_backward
        aten._thnn_fused_lstm_cell_backward_impl aten._to_sparse_semi_structured
        aten._use_cudnn_ctc_loss aten._use_miopen_ctc_loss aten._wrapped_linear_prepack
        aten._wrapped_quantized_linear_prepacked aten.addmm.dtype_out aten.baddbmm.dtype_out
        aten.batch_norm_backward_elemt aten.batch_norm_backward_reduce aten.batch_norm_elemt
        aten.batch_norm_gather_stats aten.batch_norm_gather_stats_with_counts aten.batch_norm_stats
        aten.bmm.dtype_out aten.conv_depthwise3d aten.convolution_backward_overrideable
        aten.convolution_overrideable aten.copy_sparse_to_sparse aten.copy_sparse_to_sparse_
        aten.cudnn_affine_grid_generator aten.cudnn_affine_grid_generator_backward
        aten.cudnn_batch_norm.out aten.cudnn_batch_norm_backward aten.cudnn_convolution
        aten.cudnn_convolution_add_relu aten.cudnn_convolution_relu aten.cudnn_convolution_transpose
        aten.cudnn_grid_sampler aten.cudnn_grid_sampler_backward aten.dequantize.tensors
        aten.dequantize.tensors_out aten.empty_quantized aten.fbgemm_linear_fp16_weight
        aten.fbgemm_linear_fp16_weight_fp32_activation aten.fbgemm_linear_int8_weight
        aten.fbgemm_linear_int8_weight_fp32_activation aten.fbgemm_pack_quantized_matrix
        aten.get_gradients aten.hspmm aten.int_repr aten.linear_backward aten.lstm_mps_backward
        aten.matmul_backward aten.max_pool2d_backward aten.miopen_batch_norm
        aten.miopen_batch_norm_backward aten.miopen_convolution aten.miopen_convolution_add_relu
        aten.miopen_convolution_relu aten.miopen_convolution_transpose aten.miopen_ctc_loss
        aten.miopen_depthwise_convolution aten.miopen_rnn aten.miopen_rnn_backward
        aten.mkldnn_adaptive_avg_pool2d aten.mkldnn_adaptive_avg_pool2d_backward aten.mkldnn_linear
        aten.mkldnn_linear_backward aten.mkldnn_linear_backward_input
        aten.mkldnn_linear_backward_weights aten.mkldnn_max_pool2d aten.mkldnn_max_pool2d_backward
        aten.mkldnn_max_pool3d aten.mkldnn_max_pool3d_backward aten.mm.dtype_out
        aten.mps_convolution_backward aten.mps_convolution_transpose_backward aten.native_norm
        aten.nested_to_padded_tensor aten.pin_memory aten.q_per_channel_axis
        aten.q_per_channel_scales aten.q_per_channel_zero_points aten.q_scale aten.q_zero_point
        aten.qscheme aten.quantize_per_channel aten.quantize_per_tensor
        aten.quantize_per_tensor_dynamic aten.quantized_batch_norm aten.quantized_gru_cell
        aten.quantized_lstm aten.quantized_max_pool1d aten.quantized_max_pool2d
        aten.quantized_max_pool3d aten.quantized_rnn_relu_cell aten.quantized_rnn_tanh_cell
        aten.resize_as_sparse aten.resize_as_sparse_ aten.retain_grad aten.smm aten.sparse_resize
        aten.sparse_resize_ aten.sparse_resize_and_clear aten.sparse_resize_and_clear_ aten.sspaddmm
        aten.to_padded_tensor prims.xor_sum rngprims.philox_rand
    """,
    "it replaces a tensor's storage": "aten.set aten.set_ aten.set_data",
    "it takes dimensions that nothing checks": """
        aten._new_zeros_with_same_feature_meta aten._remove_batch_dim aten._sobol_engine_ff_
    """,
    "it makes quantized tensors, which few operators expect": """
        aten._make_per_channel_quantized_tensor aten._make_per_tensor_quantized_tensor
    """,
    "it views storage by offsets that nothing checks": """
        aten._nested_view_from_buffer aten._nested_view_from_buffer_copy
    """,
    "it views storage by strides that nothing checks": """
        aten._reshape_alias aten._reshape_alias_copy
    """,
    "it makes a tensor without memory, which others read": "aten._efficientzerotensor",
    "it maps a file of the machine": "aten.from_file",
    "Inductor registers it for what it compiles": """
        prims._low_memory_max_pool_offsets_to_indices prims._low_memory_max_pool_with_offsets
        prims._unsafe_index_put_ prims.fma prims.inductor_cvt_e8m0_rceil prims.inductor_force_stride_order
        prims.inductor_lookup_seed prims.inductor_rand_eager_offset prims.inductor_rand_eager_offsets
        prims.inductor_randint prims.inductor_random prims.inductor_seed prims.inductor_seeds
        prims.prepare_softmax_online
    """,
    "it reads a file of the machine": "debugprims.load_tensor",
    "it takes lengths that nothing checks if told so": "aten.segment_reduce",
    "it takes sizes of batches that nothing checks": """
        aten._pad_packed_sequence aten.gru.data aten.lstm.data aten.rnn_relu.data aten.rnn_tanh.data
    """,
    "it touches the allocator of a device": "aten.record_stream",
    "it makes tensors of a kind that few operators expect": """
        aten._nested_from_padded aten._nested_from_padded_and_nested_example
        aten._nested_from_padded_tensor aten._nested_tensor_from_mask
        aten._nested_tensor_from_tensor_list aten.mkldnn_reorder_conv2d_weight
        aten.mkldnn_reorder_conv3d_weight aten.to_mkldnn aten.to_mkldnn_backward
    """,
    "it writes a file of the machine": "aten.save",
    "it writes to the terminal": "aten._print",
}

#: The same by operator, as `namespace.name` or `namespace.name.overload`.
DENIED_OPERATORS: Mapping[str, str] = MappingProxyType(
    {name: reason for reason, names in _BY_REASON.items() for name in names.split()}
)

# Inductor calls such when it compiles, torch.export does not: it quantizes by `quantized_decomposed`.
_PACKED = "its operators trust their caller to have packed the weights"
_GROUPS = "its operators use the process groups of the machine"

#: Namespaces of which every operator is refused unless the caller allows it, with the reason.
DENIED_NAMESPACES: Mapping[str, str] = MappingProxyType(
    {
        "_c10d_functional": _GROUPS,
        "_c10d_functional_autograd": _GROUPS,
        "_dtensor": _GROUPS,
        "_quantized": _PACKED,
        "c10d": _GROUPS,
        "fsdp": "its operators resize storage and use process groups",
        "inductor": "its operators reinterpret and resize storage without bounds checks",
        "inductor_prims": "only compiled code calls its operators",
        "mkl": _PACKED,
        "mkldnn": _PACKED,
        "mkldnn_prepacked": _PACKED,
        "onednn": _PACKED,
        "prim": "its operators are instructions of TorchScript's interpreter",
        "profiler": "its operators hold raw handles",
        "quantized": _PACKED,
        "sparse": _PACKED,
        "static_runtime": "its operators trust their caller to have checked the arguments",
        "streams": "its operators use streams and events of a device by number",
        "symm_mem": "its operators use raw memory of other processes",
    }
)

#: Higher-order operators that would let a file reach outside of itself, with the reason: refused unless the
#: caller allows them.
DENIED_HIGHER_ORDER: Mapping[str, str] = MappingProxyType(
    {
        "aoti_call_delegate": "it calls a compiled library that the file names",
        "executorch_call_delegate": "it calls a compiled module that the file names",
        "inductor_compiled_code": "it calls compiled code that the file names",
        "inline_asm_elementwise": "it runs assembly that the file holds",
        "invoke_leaf_function": "it calls Python functions of the process by number",
        "print": "it prints what the file says",
        "trace_wrapped": "it calls a Python function",
    }
)
