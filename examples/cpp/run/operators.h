// Part of the example `run`. Operators of the dispatcher: found by name, called boxed, arguments made to fit their schema.
#pragma once

#include <ATen/ScalarOps.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "values.h"

namespace run {

/// What a node calls, and where its arguments come from. `inputs` are what `function` takes, in its order.
struct Call {
  Function function;
  std::vector<Source> inputs;
};

// -- what a program may call ---------------------------------------------------------------------------------------

/// Operators that reach outside the program or trust their arguments; pt2wire's Python side refuses the same.
constexpr std::string_view denied_operators[] = {
    "_native._foreach_mm_native_0",
    "aten._adaptive_avg_pool2d_backward",
    "aten._adaptive_avg_pool3d_backward",
    "aten._amp_foreach_non_finite_check_and_unscale.out",
    "aten._backward",
    "aten._batch_norm_impl_index_backward",
    "aten._cdist_backward",
    "aten._cholesky_solve_helper",
    "aten._chunk_cat",
    "aten._coalesced",
    "aten._coalesced_",
    "aten._compute_linear_combination",
    "aten._conv_depthwise2d",
    "aten._convert_indices_from_coo_to_csr",
    "aten._convert_indices_from_csr_to_coo",
    "aten._convert_weight_to_int4pack",
    "aten._convert_weight_to_int4pack_for_cpu",
    "aten._copy_from",
    "aten._copy_from_and_resize",
    "aten._cslt_compress",
    "aten._cslt_sparse_mm",
    "aten._cslt_sparse_mm_search",
    "aten._ctc_loss_backward",
    "aten._cudnn_attention_backward",
    "aten._cudnn_attention_forward",
    "aten._cudnn_ctc_loss",
    "aten._cudnn_init_dropout_state",
    "aten._cudnn_rnn.out",
    "aten._cudnn_rnn_backward",
    "aten._cudnn_rnn_flatten_weight",
    "aten._cufft_clear_plan_cache",
    "aten._cufft_get_plan_cache_max_size",
    "aten._cufft_get_plan_cache_size",
    "aten._cufft_set_plan_cache_max_size",
    "aten._cummax_helper",
    "aten._cummin_helper",
    "aten._dyn_quant_matmul_4bit",
    "aten._dyn_quant_pack_4bit_weight",
    "aten._efficient_attention_backward",
    "aten._efficient_attention_forward",
    "aten._efficientzerotensor",
    "aten._embedding_bag_backward",
    "aten._embedding_bag_dense_backward",
    "aten._embedding_bag_per_sample_weights_backward",
    "aten._embedding_bag_sparse_backward",
    "aten._empty_affine_quantized",
    "aten._empty_per_channel_affine_quantized",
    "aten._fill_mem_eff_dropout_mask_",
    "aten._flash_attention_backward",
    "aten._flash_attention_forward",
    "aten._flash_attention_forward_no_dropout_inplace",
    "aten._foreach_copy",
    "aten._fused_adagrad",
    "aten._fused_adagrad_",
    "aten._fused_adam",
    "aten._fused_adam_",
    "aten._fused_adamw",
    "aten._fused_adamw_",
    "aten._fused_dropout",
    "aten._fused_moving_avg_obs_fq_helper",
    "aten._fused_moving_avg_obs_fq_helper_functional",
    "aten._fused_rms_norm_backward",
    "aten._fused_sgd",
    "aten._fused_sgd_",
    "aten._fw_primal_copy",
    "aten._gather_sparse_backward",
    "aten._grid_sampler_2d_cpu_fallback",
    "aten._grid_sampler_2d_cpu_fallback_backward",
    "aten._log_softmax_backward_data",
    "aten._logcumsumexp.out",
    "aten._lstm_mps",
    "aten._make_dual_copy",
    "aten._make_per_channel_quantized_tensor",
    "aten._make_per_tensor_quantized_tensor",
    "aten._masked_scale",
    "aten._masked_softmax",
    "aten._masked_softmax_backward",
    "aten._mixed_dtypes_linear",
    "aten._mkldnn_reshape",
    "aten._mkldnn_transpose",
    "aten._mkldnn_transpose_",
    "aten._mps_convolution",
    "aten._mps_convolution_transpose",
    "aten._native_multi_head_attention",
    "aten._nested_compute_contiguous_strides_offsets",
    "aten._nested_from_padded",
    "aten._nested_from_padded_and_nested_example",
    "aten._nested_from_padded_tensor",
    "aten._nested_get_jagged_dummy",
    "aten._nested_get_lengths",
    "aten._nested_get_max_seqlen",
    "aten._nested_get_min_seqlen",
    "aten._nested_get_offsets",
    "aten._nested_get_ragged_idx",
    "aten._nested_get_values",
    "aten._nested_get_values_copy",
    "aten._nested_select_backward",
    "aten._nested_sum_backward",
    "aten._nested_tensor_from_mask",
    "aten._nested_tensor_from_mask_left_aligned",
    "aten._nested_tensor_from_tensor_list",
    "aten._nested_tensor_size",
    "aten._nested_tensor_softmax_with_shape",
    "aten._nested_tensor_storage_offsets",
    "aten._nested_tensor_strides",
    "aten._nested_view_from_buffer",
    "aten._nested_view_from_buffer_copy",
    "aten._nested_view_from_jagged",
    "aten._nested_view_from_jagged_copy",
    "aten._new_zeros_with_same_feature_meta",
    "aten._nnpack_spatial_convolution",
    "aten._pad_packed_sequence",
    "aten._pdist_backward",
    "aten._philox_key_fold_in",
    "aten._philox_key_split",
    "aten._philox_normal",
    "aten._philox_normal_",
    "aten._philox_uniform",
    "aten._philox_uniform_",
    "aten._pin_memory",
    "aten._print",
    "aten._propagate_xla_data",
    "aten._remove_batch_dim",
    "aten._reshape_alias",
    "aten._reshape_alias_copy",
    "aten._resize_output",
    "aten._resize_output_",
    "aten._saturate_weight_to_fp16",
    "aten._scaled_dot_product_attention_math_for_mps",
    "aten._scaled_dot_product_cudnn_attention_backward",
    "aten._scaled_dot_product_efficient_attention_backward",
    "aten._scaled_dot_product_flash_attention.quantized",
    "aten._scaled_dot_product_flash_attention_backward",
    "aten._scaled_dot_product_flash_attention_for_cpu_backward",
    "aten._scaled_dot_product_fused_attention_overrideable",
    "aten._scaled_dot_product_fused_attention_overrideable_backward",
    "aten._scaled_grouped_mm",
    "aten._scaled_grouped_mm_v2",
    "aten._scaled_mm_v2",
    "aten._segment_reduce_backward",
    "aten._slow_conv2d_backward",
    "aten._slow_conv2d_forward",
    "aten._sobol_engine_draw",
    "aten._sobol_engine_ff_",
    "aten._sobol_engine_initialize_state_",
    "aten._sobol_engine_scramble_",
    "aten._sparse_addmm",
    "aten._sparse_broadcast_to",
    "aten._sparse_broadcast_to_copy",
    "aten._sparse_bsc_tensor_unsafe",
    "aten._sparse_bsr_tensor_unsafe",
    "aten._sparse_compressed_tensor_unsafe",
    "aten._sparse_compressed_tensor_with_dims",
    "aten._sparse_coo_tensor_unsafe",
    "aten._sparse_coo_tensor_with_dims",
    "aten._sparse_coo_tensor_with_dims_and_tensors",
    "aten._sparse_csc_tensor_unsafe",
    "aten._sparse_csr_prod",
    "aten._sparse_csr_sum",
    "aten._sparse_csr_tensor_unsafe",
    "aten._sparse_log_softmax_backward_data",
    "aten._sparse_mask_projection",
    "aten._sparse_mm.reduce",
    "aten._sparse_mm_reduce_impl_backward",
    "aten._sparse_semi_structured_addmm",
    "aten._sparse_semi_structured_apply",
    "aten._sparse_semi_structured_apply_dense",
    "aten._sparse_semi_structured_linear",
    "aten._sparse_semi_structured_mm",
    "aten._sparse_semi_structured_tile",
    "aten._sparse_softmax_backward_data",
    "aten._sparse_sparse_matmul",
    "aten._sparse_sum_backward",
    "aten._spdiags",
    "aten._spsolve",
    "aten._stack",
    "aten._thnn_differentiable_gru_cell_backward",
    "aten._thnn_differentiable_lstm_cell_backward",
    "aten._thnn_fused_gru_cell.out",
    "aten._thnn_fused_gru_cell_backward",
    "aten._thnn_fused_lstm_cell.out",
    "aten._thnn_fused_lstm_cell_backward",
    "aten._thnn_fused_lstm_cell_backward_impl",
    "aten._to_sparse_semi_structured",
    "aten._transform_bias_rescale_qkv",
    "aten._transformer_encoder_layer_fwd",
    "aten._triton_multi_head_attention",
    "aten._triton_scaled_dot_attention",
    "aten._use_cudnn_ctc_loss",
    "aten._use_miopen_ctc_loss",
    "aten._weight_int4pack_mm",
    "aten._weight_int4pack_mm_for_cpu",
    "aten._weight_int4pack_mm_with_scales_and_zeros",
    "aten._weight_norm_interface_backward",
    "aten._wrapped_linear_prepack",
    "aten._wrapped_quantized_linear_prepacked",
    "aten.adaptive_avg_pool3d_backward",
    "aten.adaptive_max_pool2d_backward",
    "aten.adaptive_max_pool3d_backward",
    "aten.addmm.dtype_out",
    "aten.avg_pool2d_backward",
    "aten.avg_pool3d_backward",
    "aten.baddbmm.dtype_out",
    "aten.batch_norm_backward",
    "aten.batch_norm_backward_elemt",
    "aten.batch_norm_backward_reduce",
    "aten.batch_norm_elemt",
    "aten.batch_norm_gather_stats",
    "aten.batch_norm_gather_stats_with_counts",
    "aten.batch_norm_stats",
    "aten.batch_norm_update_stats",
    "aten.bmm.dtype_out",
    "aten.conv_depthwise3d",
    "aten.convolution_backward_overrideable",
    "aten.convolution_overrideable",
    "aten.copy_sparse_to_sparse",
    "aten.copy_sparse_to_sparse_",
    "aten.cudnn_affine_grid_generator",
    "aten.cudnn_affine_grid_generator_backward",
    "aten.cudnn_batch_norm.out",
    "aten.cudnn_batch_norm_backward",
    "aten.cudnn_convolution",
    "aten.cudnn_convolution_add_relu",
    "aten.cudnn_convolution_relu",
    "aten.cudnn_convolution_transpose",
    "aten.cudnn_grid_sampler",
    "aten.cudnn_grid_sampler_backward",
    "aten.dequantize.tensors",
    "aten.dequantize.tensors_out",
    "aten.embedding_backward",
    "aten.embedding_dense_backward",
    "aten.embedding_sparse_backward",
    "aten.empty_quantized",
    "aten.fbgemm_linear_fp16_weight",
    "aten.fbgemm_linear_fp16_weight_fp32_activation",
    "aten.fbgemm_linear_int8_weight",
    "aten.fbgemm_linear_int8_weight_fp32_activation",
    "aten.fbgemm_linear_quantize_weight",
    "aten.fbgemm_pack_gemm_matrix_fp16",
    "aten.fbgemm_pack_quantized_matrix",
    "aten.fractional_max_pool2d_backward",
    "aten.fractional_max_pool3d_backward",
    "aten.from_file",
    "aten.fused_moving_avg_obs_fake_quant",
    "aten.get_gradients",
    "aten.grid_sampler_2d_backward",
    "aten.grid_sampler_3d_backward",
    "aten.gru.data",
    "aten.hspmm",
    "aten.int_repr",
    "aten.linear_backward",
    "aten.lstm.data",
    "aten.lstm_mps_backward",
    "aten.matmul_backward",
    "aten.max_pool2d_backward",
    "aten.max_pool2d_with_indices_backward",
    "aten.max_pool3d_with_indices_backward",
    "aten.miopen_batch_norm",
    "aten.miopen_batch_norm_backward",
    "aten.miopen_convolution",
    "aten.miopen_convolution_add_relu",
    "aten.miopen_convolution_relu",
    "aten.miopen_convolution_transpose",
    "aten.miopen_ctc_loss",
    "aten.miopen_depthwise_convolution",
    "aten.miopen_rnn",
    "aten.miopen_rnn_backward",
    "aten.mkldnn_adaptive_avg_pool2d",
    "aten.mkldnn_adaptive_avg_pool2d_backward",
    "aten.mkldnn_linear",
    "aten.mkldnn_linear_backward",
    "aten.mkldnn_linear_backward_input",
    "aten.mkldnn_linear_backward_weights",
    "aten.mkldnn_max_pool2d",
    "aten.mkldnn_max_pool2d_backward",
    "aten.mkldnn_max_pool3d",
    "aten.mkldnn_max_pool3d_backward",
    "aten.mkldnn_reorder_conv2d_weight",
    "aten.mkldnn_reorder_conv3d_weight",
    "aten.mkldnn_rnn_layer",
    "aten.mkldnn_rnn_layer_backward",
    "aten.mm.dtype_out",
    "aten.mps_convolution_backward",
    "aten.mps_convolution_transpose_backward",
    "aten.multi_margin_loss_backward",
    "aten.multilabel_margin_loss_backward",
    "aten.native_batch_norm_backward",
    "aten.native_layer_norm_backward",
    "aten.native_norm",
    "aten.nested_to_padded_tensor",
    "aten.pin_memory",
    "aten.q_per_channel_axis",
    "aten.q_per_channel_scales",
    "aten.q_per_channel_zero_points",
    "aten.q_scale",
    "aten.q_zero_point",
    "aten.qscheme",
    "aten.quantize_per_channel",
    "aten.quantize_per_tensor",
    "aten.quantize_per_tensor_dynamic",
    "aten.quantized_batch_norm",
    "aten.quantized_gru",
    "aten.quantized_gru_cell",
    "aten.quantized_lstm",
    "aten.quantized_lstm_cell",
    "aten.quantized_max_pool1d",
    "aten.quantized_max_pool2d",
    "aten.quantized_max_pool3d",
    "aten.quantized_rnn_relu_cell",
    "aten.quantized_rnn_tanh_cell",
    "aten.record_stream",
    "aten.reflection_pad1d_backward",
    "aten.reflection_pad2d_backward",
    "aten.reflection_pad3d_backward",
    "aten.replication_pad1d_backward",
    "aten.replication_pad2d_backward",
    "aten.replication_pad3d_backward",
    "aten.resize_as_sparse",
    "aten.resize_as_sparse_",
    "aten.retain_grad",
    "aten.rnn_relu.data",
    "aten.rnn_tanh.data",
    "aten.rrelu_with_noise.out",
    "aten.save",
    "aten.segment_reduce",
    "aten.set",
    "aten.set_",
    "aten.set_data",
    "aten.slow_conv3d",
    "aten.slow_conv3d_forward",
    "aten.slow_conv_dilated2d",
    "aten.slow_conv_dilated3d",
    "aten.slow_conv_transpose2d",
    "aten.slow_conv_transpose3d",
    "aten.smm",
    "aten.smooth_l1_loss_backward",
    "aten.sparse_bsc_tensor",
    "aten.sparse_bsr_tensor",
    "aten.sparse_compressed_tensor",
    "aten.sparse_coo_tensor",
    "aten.sparse_csc_tensor",
    "aten.sparse_csr_tensor",
    "aten.sparse_resize",
    "aten.sparse_resize_",
    "aten.sparse_resize_and_clear",
    "aten.sparse_resize_and_clear_",
    "aten.sspaddmm",
    "aten.thnn_conv2d",
    "aten.to_mkldnn",
    "aten.to_mkldnn_backward",
    "aten.to_padded_tensor",
    "aten.unfold_backward",
    "debugprims.load_tensor",
    "prims._low_memory_max_pool_offsets_to_indices",
    "prims._low_memory_max_pool_with_offsets",
    "prims._unsafe_index_put_",
    "prims.fma",
    "prims.inductor_cvt_e8m0_rceil",
    "prims.inductor_force_stride_order",
    "prims.inductor_lookup_seed",
    "prims.inductor_rand_eager_offset",
    "prims.inductor_rand_eager_offsets",
    "prims.inductor_randint",
    "prims.inductor_random",
    "prims.inductor_seed",
    "prims.inductor_seeds",
    "prims.prepare_softmax_online",
    "prims.xor_sum",
    "rngprims.philox_rand",
};
constexpr std::string_view denied_namespaces[] = {
    "_c10d_functional", "_c10d_functional_autograd", "_dtensor", "_quantized", "c10d", "fsdp", "inductor",
    "inductor_prims", "mkl", "mkldnn", "mkldnn_prepacked", "onednn", "prim", "profiler", "quantized", "sparse",
    "static_runtime", "streams", "symm_mem",
};

constexpr std::string_view operator_prefix = "torch.ops.";

/// The operator behind a target such as `torch.ops.aten.add.Tensor`. Throws `Error` if there is none or it is denied.
inline c10::OperatorHandle find_operator(std::string_view target) {
  const auto contains = [](const auto& table, std::string_view name) {
    return std::find(std::begin(table), std::end(table), name) != std::end(table);
  };
  const std::string_view path = target.substr(operator_prefix.size());
  const std::size_t first = path.find('.');
  const std::size_t last = path.rfind('.');
  if (first == std::string_view::npos || first == last) fail("expected torch.ops.NAMESPACE.NAME.OVERLOAD");
  const std::string_view space = path.substr(0, first);
  if (contains(denied_operators, path.substr(0, last)) || contains(denied_operators, path) ||
      contains(denied_namespaces, space)) {
    fail("programs may not call this operator: it reaches outside of the program, or does not check its arguments");
  }
  const std::string name = std::string(space) + "::" + std::string(path.substr(first + 1, last - first - 1));
  const std::string_view overload = path.substr(last + 1);
  const auto found = c10::Dispatcher::singleton().findSchema({name, overload == "default" ? "" : std::string(overload)});
  if (!found) fail("this build of libtorch has no such operator");
  return *found;
}

/// Whether an operator may give a tensor that it is given another size, and with that a larger storage.
inline bool may_resize(std::string_view target) {
  if (target.substr(0, operator_prefix.size()) != operator_prefix) return false;
  try {
    const c10::OperatorHandle handle = find_operator(target);
    const std::vector<c10::Argument>& arguments = handle.schema().arguments();
    const auto is_out = [](const c10::Argument& argument) { return argument.is_out(); };
    return handle.schema().name().find("resize") != std::string::npos || std::any_of(arguments.begin(), arguments.end(), is_out);
  } catch (const Error&) {
    return false;  // it is refused elsewhere
  }
}

// -- arguments -----------------------------------------------------------------------------------------------------

/// A number where the schema has a tensor: as in Python, it does not take part in the choice of the result's dtype.
inline at::Tensor wrapped_number(const IValue& number) {
  at::Tensor tensor = c10::scalar_to_tensor(number.toScalar());
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

/// The value as an argument of this type. Throws `Error` if it is none.
inline IValue fit(IValue value, const c10::TypePtr& type) {
  const auto is_number = [&] {  // an integer from 2^63 on is an unsigned one
    return value.isInt() || value.isUnsigned() || value.isDouble() || value.isBool() || value.isComplexDouble();
  };
  switch (type->kind()) {
    case c10::TypeKind::OptionalType:
      return value.isNone() ? value : fit(std::move(value), type->expectRef<c10::OptionalType>().getElementType());
    case c10::TypeKind::ListType: {
      const c10::TypePtr element = type->expectRef<c10::ListType>().getElementType();
      Values items = items_of(value);
      for (IValue& item : items) item = fit(std::move(item), element);
      return list_of(std::move(items), element);
    }
    case c10::TypeKind::TensorType:
      if (value.isTensor()) return value;
      if (is_number()) return wrapped_number(value);
      break;
    case c10::TypeKind::NumberType:
      if (is_number()) return value;
      break;
    case c10::TypeKind::FloatType:
      if (value.isInt()) return static_cast<double>(value.toInt());
      if (value.isDouble()) return value;
      break;
    case c10::TypeKind::IntType:
      if (value.isBool()) return static_cast<std::int64_t>(value.toBool());
      if (value.isInt()) return value;
      break;
    case c10::TypeKind::BoolType:
      if (value.isBool()) return value;
      if (value.isInt()) return value.toInt() != 0;
      break;
    case c10::TypeKind::StringType:
      if (value.isString()) return value;
      break;
    case c10::TypeKind::DeviceObjType:
      if (value.isDevice()) return value;
      break;
    default: fail("arguments of type " + type->repr_str() + " are not supported");
  }
  fail("expected " + type->repr_str() + ", found " + value.tagKind());
}

/// `fit` for an argument of a schema, which may turn a single number into a list of N.
inline IValue fit(IValue value, const c10::Argument& argument) {
  const bool repeated = argument.N() && !value.isList() && !value.isNone();
  return fit(repeated ? list_of(Values(static_cast<std::size_t>(*argument.N()), value)) : std::move(value), argument.type());
}

/// Does something for an argument; an error names it.
template <class F>
auto for_argument(const c10::Argument& argument, F&& action) {
  try {
    return action();
  } catch (const Error& error) {
    fail("the argument " + argument.name() + ": " + error.reason());
  }
}

/// Where an argument of a schema comes from: the node, or else the schema's default.
inline Source operator_input(const pt2wire::Node& node, const c10::Argument& argument, const Names& names) {
  const auto given = std::find_if(node.inputs.begin(), node.inputs.end(),
                                  [&](const auto& input) { return input.name == argument.name(); });
  if (given == node.inputs.end()) {
    if (!argument.default_value()) fail("the argument " + argument.name() + " is missing");
    return Source::constant(*argument.default_value());
  }
  return for_argument(argument, [&] {
    const Source source = input_source(node, static_cast<std::size_t>(given - node.inputs.begin()), names);
    return source.is_constant() ? Source::constant(fit(source.read({}), argument)) : source;
  });
}

/// The call of an operator of the dispatcher.
inline Call operator_call(const pt2wire::Node& node, const Names& names) {
  const c10::OperatorHandle handle = find_operator(node.target);
  const std::vector<c10::Argument>& arguments = handle.schema().arguments();
  for (const auto& input : node.inputs) {
    const bool known = std::any_of(arguments.begin(), arguments.end(), [&](const auto& a) { return a.name() == input.name; });
    if (!known) fail("the operator has no argument " + quoted(input.name));
  }
  Call call;
  for (const c10::Argument& argument : arguments) call.inputs.push_back(operator_input(node, argument, names));
  call.function = [handle](Values stack) {
    const std::vector<c10::Argument>& expected = handle.schema().arguments();
    for (std::size_t i = 0; i != stack.size(); ++i) {
      stack[i] = for_argument(expected[i], [&] { return fit(std::move(stack[i]), expected[i]); });
    }
    handle.callBoxed(stack);
    return stack;
  };
  return call;
}

}  // namespace run
