// Part of the example `run`. Weights as tensors over the mapped file: nothing is copied for a program on the CPU.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/empty.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "pt2wire/archive.h"
#include "values.h"

namespace run {

/// The weights of a program, or its constants, by their fully qualified names.
using Tensors = std::map<std::string, at::Tensor, std::less<>>;

/// Makes tensors of weights. Weights that share a payload share a storage: a change of one is seen by all.
class WeightLoader {
 public:
  /// `resizable`: whether a program may make them larger, which what is mapped cannot be.
  explicit WeightLoader(bool resizable = false) : resizable_(resizable) {}

  /// Adds all of them to a table. The archive must have been opened with `private_writes`: programs change buffers.
  void load(const pt2wire::Payloads& payloads, Tensors& tensors) {
    for (const pt2wire::Weight& weight : payloads.list) {
      try {
        tensors.emplace(weight.fqn, tensor(weight));
      } catch (const Error& error) {
        fail("the weight " + quoted(weight.fqn) + ": " + error.reason());
      }
    }
  }

  at::Tensor tensor(const pt2wire::Weight& weight) {
    if (weight.payload.empty() && weight.extent != 0) fail("the file has no bytes of it: the program was exported with fake weights");
    const c10::Device device = to_c10(weight.meta->tensor_meta->device);
    at::Tensor tensor = at::empty({0}, at::TensorOptions().dtype(to_c10(weight.dtype)).device(device));
    tensor.set_(storage(weight, device), weight.storage_offset, weight.sizes, weight.strides);
    if (pending(weight).conj) tensor = at::conj(tensor);
    if (pending(weight).neg) tensor = at::_neg_view(tensor);
    // Nothing is differentiated here. But operators choose algorithms by this, and so the last bits of their results.
    return tensor.set_requires_grad(weight.meta->tensor_meta->requires_grad);
  }

 private:
  struct Pending {
    bool conj, neg;
  };

  static Pending pending(const pt2wire::Weight& weight) {
    const pt2wire::TensorMeta& tensor = *weight.meta->tensor_meta;
    return {tensor.conj.value_or(false), tensor.neg.value_or(false)};
  }

  const c10::Storage& storage(const pt2wire::Weight& weight, c10::Device device) {
    const Pending operations = pending(weight);
    // Of no bytes, all have one address and one record: nothing says that they share, and they do not when they are resized.
    c10::Storage own;
    c10::Storage& storage =
        weight.payload.empty() ? own : by_payload_[{weight.payload.data(), operations.conj, operations.neg}];
    // A constant that shares the storage of a weight lies in the file twice, as PyTorch wants it, but is one tensor.
    const auto owner = weight.meta->alias_of ? by_name_.find(*weight.meta->alias_of) : by_name_.end();
    if (owner != by_name_.end()) {
      storage = owner->second;
    } else if (!storage) {
      storage = in_memory(storage_of(weight.payload, device), weight);
    }
    // The owner may be a part of what is no strided tensor: then the next tensor that shares it finds this one.
    if (weight.meta->alias_of) by_name_.emplace(*weight.meta->alias_of, storage);
    return by_name_.emplace(weight.fqn, storage).first->second;
  }

  /// What was in memory: a file has the numbers of a tensor whose conjugation or negation was pending.
  static c10::Storage in_memory(const c10::Storage& stored, const pt2wire::Weight& weight) {
    const Pending operations = pending(weight);
    if (!operations.conj && !operations.neg) return stored;
    const at::Tensor bytes = at::empty({0}, at::TensorOptions().dtype(at::kByte).device(stored.device()));
    bytes.set_(stored, 0, {static_cast<std::int64_t>(stored.nbytes())}, {1});
    const c10::Storage copy = bytes.clone().storage();
    const at::Tensor numbers = at::empty({0}, at::TensorOptions().dtype(to_c10(weight.dtype)).device(stored.device()));
    numbers.set_(copy, 0, {static_cast<std::int64_t>(copy.nbytes() / pt2wire::item_size(weight.dtype))}, {1});
    if (operations.conj) numbers.conj_physical_();
    if (operations.neg) numbers.neg_();
    return copy;
  }

  /// The payload itself, or a copy: on another device, because operators expect alignment, or to be resized.
  c10::Storage storage_of(const pt2wire::Bytes& payload, c10::Device device) const {
    auto keeper = std::make_unique<pt2wire::Bytes>(payload);
    void* const data = const_cast<std::uint8_t*>(payload.data());
    c10::DataPtr pointer(data, keeper.release(), [](void* bytes) { delete static_cast<pt2wire::Bytes*>(bytes); }, c10::kCPU);
    const c10::Storage mapped(c10::Storage::use_byte_size_t(), payload.size(), std::move(pointer));
    constexpr std::uintptr_t alignment = 64;
    if (!resizable_ && device.is_cpu() && reinterpret_cast<std::uintptr_t>(data) % alignment == 0) return mapped;
    const at::Tensor bytes = at::empty({0}, at::kByte);
    bytes.set_(mapped, 0, {static_cast<std::int64_t>(payload.size())}, {1});
    return bytes.to(device, at::kByte, /*non_blocking=*/false, /*copy=*/true).storage();
  }

  bool resizable_;
  std::map<std::tuple<const std::uint8_t*, bool, bool>, c10::Storage> by_payload_;
  std::map<std::string, c10::Storage, std::less<>> by_name_;
};

/// A tensor that a subgraph brings along, over the bytes of the document; `described` says how it lies in them.
inline at::Tensor held_tensor(const pt2wire::GraphConstant& constant, const pt2wire::TensorMeta& described) {
  pt2wire::PayloadMeta meta;
  meta.tensor_meta = described;
  meta.tensor_meta->storage_offset.emplace<pt2wire::SymInt::Tag::as_int>(0);
  meta.tensor_meta->requires_grad = constant.requires_grad;
  const auto bytes = pt2wire::Bytes::borrow(constant.data.data(), constant.data.size());
  return WeightLoader().tensor(pt2wire::make_weight(constant.name, meta, bytes));
}

}  // namespace run
