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
    "aten._adaptive_avg_pool2d_backward",
    "aten._adaptive_avg_pool3d_backward",
    "aten._cdist_backward",
    "aten._cholesky_solve_helper",
    "aten._chunk_cat",
    "aten._compute_linear_combination",
    "aten._convert_indices_from_coo_to_csr",
    "aten._convert_indices_from_csr_to_coo",
    "aten._convert_weight_to_int4pack",
    "aten._convert_weight_to_int4pack_for_cpu",
    "aten._ctc_loss_backward",
    "aten._cummax_helper",
    "aten._cummin_helper",
    "aten._dyn_quant_matmul_4bit",
    "aten._dyn_quant_pack_4bit_weight",
    "aten._efficientzerotensor",
    "aten._embedding_bag_backward",
    "aten._embedding_bag_dense_backward",
    "aten._embedding_bag_per_sample_weights_backward",
    "aten._embedding_bag_sparse_backward",
    "aten._fused_adagrad",
    "aten._fused_adagrad_",
    "aten._fused_adam",
    "aten._fused_adam_",
    "aten._fused_adamw",
    "aten._fused_adamw_",
    "aten._fused_moving_avg_obs_fq_helper",
    "aten._fused_moving_avg_obs_fq_helper_functional",
    "aten._fused_sgd",
    "aten._fused_sgd_",
    "aten._gather_sparse_backward",
    "aten._grid_sampler_2d_cpu_fallback",
    "aten._grid_sampler_2d_cpu_fallback_backward",
    "aten._log_softmax_backward_data",
    "aten._make_per_channel_quantized_tensor",
    "aten._make_per_tensor_quantized_tensor",
    "aten._masked_softmax",
    "aten._masked_softmax_backward",
    "aten._native_multi_head_attention",
    "aten._nested_compute_contiguous_strides_offsets",
    "aten._nested_from_padded",
    "aten._nested_from_padded_and_nested_example",
    "aten._nested_from_padded_tensor",
    "aten._nested_tensor_from_mask",
    "aten._nested_tensor_from_tensor_list",
    "aten._nested_view_from_buffer",
    "aten._nested_view_from_buffer_copy",
    "aten._new_zeros_with_same_feature_meta",
    "aten._nnpack_spatial_convolution",
    "aten._pad_packed_sequence",
    "aten._pdist_backward",
    "aten._print",
    "aten._remove_batch_dim",
    "aten._reshape_alias",
    "aten._reshape_alias_copy",
    "aten._saturate_weight_to_fp16",
    "aten._scaled_dot_product_flash_attention_for_cpu_backward",
    "aten._segment_reduce_backward",
    "aten._slow_conv2d_backward",
    "aten._slow_conv2d_forward",
    "aten._sobol_engine_draw",
    "aten._sobol_engine_ff_",
    "aten._sobol_engine_initialize_state_",
    "aten._sobol_engine_scramble_",
    "aten._sparse_bsc_tensor_unsafe",
    "aten._sparse_bsr_tensor_unsafe",
    "aten._sparse_compressed_tensor_unsafe",
    "aten._sparse_compressed_tensor_with_dims",
    "aten._sparse_coo_tensor_unsafe",
    "aten._sparse_coo_tensor_with_dims_and_tensors",
    "aten._sparse_csc_tensor_unsafe",
    "aten._sparse_csr_tensor_unsafe",
    "aten._sparse_mm_reduce_impl_backward",
    "aten._spdiags",
    "aten._stack",
    "aten._thnn_differentiable_gru_cell_backward",
    "aten._thnn_differentiable_lstm_cell_backward",
    "aten._transform_bias_rescale_qkv",
    "aten._transformer_encoder_layer_fwd",
    "aten._triton_multi_head_attention",
    "aten._triton_scaled_dot_attention",
    "aten._weight_int4pack_mm",
    "aten._weight_int4pack_mm_for_cpu",
    "aten._weight_int4pack_mm_with_scales_and_zeros",
    "aten._weight_norm_interface_backward",
    "aten.adaptive_avg_pool3d_backward",
    "aten.adaptive_max_pool2d_backward",
    "aten.adaptive_max_pool3d_backward",
    "aten.avg_pool2d_backward",
    "aten.avg_pool3d_backward",
    "aten.batch_norm_backward",
    "aten.batch_norm_update_stats",
    "aten.embedding_backward",
    "aten.embedding_dense_backward",
    "aten.embedding_sparse_backward",
    "aten.fbgemm_linear_quantize_weight",
    "aten.fbgemm_pack_gemm_matrix_fp16",
    "aten.fractional_max_pool2d_backward",
    "aten.fractional_max_pool3d_backward",
    "aten.from_file",
    "aten.fused_moving_avg_obs_fake_quant",
    "aten.grid_sampler_2d_backward",
    "aten.grid_sampler_3d_backward",
    "aten.gru.data",
    "aten.lstm.data",
    "aten.max_pool2d_with_indices_backward",
    "aten.max_pool3d_with_indices_backward",
    "aten.mkldnn_reorder_conv2d_weight",
    "aten.mkldnn_reorder_conv3d_weight",
    "aten.mkldnn_rnn_layer",
    "aten.mkldnn_rnn_layer_backward",
    "aten.multi_margin_loss_backward",
    "aten.multilabel_margin_loss_backward",
    "aten.native_batch_norm_backward",
    "aten.native_layer_norm_backward",
    "aten.quantized_gru",
    "aten.quantized_lstm_cell",
    "aten.record_stream",
    "aten.reflection_pad1d_backward",
    "aten.reflection_pad2d_backward",
    "aten.reflection_pad3d_backward",
    "aten.replication_pad1d_backward",
    "aten.replication_pad2d_backward",
    "aten.replication_pad3d_backward",
    "aten.rnn_relu.data",
    "aten.rnn_tanh.data",
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
    "aten.smooth_l1_loss_backward",
    "aten.sparse_bsc_tensor",
    "aten.sparse_bsr_tensor",
    "aten.sparse_compressed_tensor",
    "aten.sparse_coo_tensor",
    "aten.sparse_csc_tensor",
    "aten.sparse_csr_tensor",
    "aten.thnn_conv2d",
    "aten.to_mkldnn",
    "aten.to_mkldnn_backward",
    "aten.unfold_backward",
    "debugprims.load_tensor",
};
constexpr std::string_view denied_namespaces[] = {
    "_quantized", "c10d", "fsdp", "inductor", "mkl", "mkldnn", "mkldnn_prepacked", "onednn", "prim", "profiler",
    "quantized", "sparse", "static_runtime", "streams", "symm_mem",
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

// -- arguments -----------------------------------------------------------------------------------------------------

/// A number where the schema has a tensor: as in Python, it does not take part in the choice of the result's dtype.
inline at::Tensor wrapped_number(const IValue& number) {
  at::Tensor tensor = c10::scalar_to_tensor(number.toScalar());
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

/// The value as an argument of this type. Throws `Error` if it is none.
inline IValue fit(IValue value, const c10::TypePtr& type) {
  const auto is_number = [&] { return value.isInt() || value.isDouble() || value.isBool() || value.isComplexDouble(); };
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
