"""Which operators nobody's file may call unless the caller allows it, with the reasons: tables."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

#: Operators of which every overload is refused, or the one that is named, by the reason. Those that trust
#: what they are given were found by `tests/helpers/operator_search.py`.
_BY_REASON = {
    "it takes tensors whose sizes nothing checks": """
        aten._adaptive_avg_pool2d_backward aten._adaptive_avg_pool3d_backward aten._cdist_backward
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

#: Namespaces of which every operator is refused unless the caller allows it, with the reason.
DENIED_NAMESPACES: Mapping[str, str] = MappingProxyType(
    {
        "_quantized": _PACKED,
        "c10d": "its operators use the process groups of the machine",
        "fsdp": "its operators resize storage and use process groups",
        "inductor": "its operators reinterpret and resize storage without bounds checks",
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
