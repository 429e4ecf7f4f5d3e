// Part of pt2wire. Weights and constants: what a payload config says, checked against the payload's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pt2wire/bytes.h"
#include "pt2wire/error.h"
#include "pt2wire/schema.h"

namespace pt2wire {

/// Bytes of one element; 0 for a dtype that this header does not know, or whose elements are not whole bytes.
constexpr std::size_t item_size(ScalarType dtype) noexcept {
  return bits(dtype) % 8 == 0 ? bits(dtype) / 8 : 0;
}

/// A weight or constant of a program: a strided view of a payload, which others may share.
///
/// Element (i, j, ...) lies at `storage()` + item_size(dtype) * (storage_offset + i * strides[0] + j * strides[1] + ...).
/// Everything reachable so lies within the payload. Little-endian, as the format is.
struct Weight {
  std::string_view fqn;
  ScalarType dtype = ScalarType::UNKNOWN;
  std::vector<std::int64_t> sizes;    ///< in elements, as are strides and offset
  std::vector<std::int64_t> strides;
  std::int64_t storage_offset = 0;
  std::size_t extent = 0;             ///< bytes that it needs from the start of its payload; 0 without elements
  const PayloadMeta* meta = nullptr;  ///< the rest: is_param, device, requires_grad, alias_of, ...
  Bytes payload;                      ///< the whole storage; empty if the weight is fake or has no elements

  /// Where the payload begins. Aligned to 64 bytes in a mapped archive if its record is stored, as PyTorch and pt2wire do.
  const std::uint8_t* storage() const noexcept { return payload.data(); }
  /// The element at index (0, 0, ...), or nullptr where there is none.
  const std::uint8_t* data() const noexcept {
    return payload.empty() || extent == 0 ? nullptr : payload.data() + static_cast<std::size_t>(storage_offset) * item_size(dtype);
  }
};

namespace detail {

inline std::int64_t constant(const SymInt& value, const char* what) {
  const std::int64_t* const number = value.get_if<SymInt::Tag::as_int>();
  if (number == nullptr) throw Error(std::string("expected integers as ") + what + ", found a symbolic expression");
  if (*number < 0) throw Error(std::string("expected ") + what + " of at least 0, found " + std::to_string(*number));
  return *number;
}

/// a * b + c, all of them at least 0. Beyond 63 bits an Error.
inline std::int64_t multiply_add(std::int64_t a, std::int64_t b, std::int64_t c) {
  if (b != 0 && a > (INT64_MAX - c) / b) throw Error("sizes, strides and offset of the tensor exceed 64 bits");
  return a * b + c;
}

/// The bytes that the tensor needs from the start of its payload.
inline std::int64_t needed_bytes(const Weight& weight) {
  std::int64_t last = weight.storage_offset;
  bool has_elements = true;
  for (std::size_t i = 0; i != weight.sizes.size(); ++i) {
    if (weight.sizes[i] == 0) {
      has_elements = false;
    } else {
      last = multiply_add(weight.sizes[i] - 1, weight.strides[i], last);
    }
  }
  const auto item = static_cast<std::int64_t>(item_size(weight.dtype));
  return has_elements ? multiply_add(last, item, item) : 0;
}

}  // namespace detail

/// Why an entry of a payload config is no `Weight`, or nullptr if it should be one.
inline const char* why_no_weight(const PayloadMeta& meta) noexcept {
  if (meta.use_pickle) return "a pickle, which only Python can open";
  if (!meta.tensor_meta) return nullptr;
  const TensorMeta& tensor = *meta.tensor_meta;
  if (tensor.layout != Layout::Strided && tensor.layout != Layout::Unknown) return "a tensor of a sparse or another layout";
  if (tensor.extra_dtype) return "a tensor of a dtype that only extra_dtype tells";
  if (tensor.dtype != ScalarType::UNKNOWN && item_size(tensor.dtype) == 0) return "a tensor of a dtype that this header does not know";
  return nullptr;
}

/// The weight that one entry of a payload config describes, over the bytes of its payload. Throws `Error`.
inline Weight make_weight(std::string_view fqn, const PayloadMeta& meta, Bytes payload) {
  if (const char* const other = why_no_weight(meta)) throw Error(std::string("expected a strided tensor, found ") + other);
  if (!meta.tensor_meta) throw Error("expected metadata of a tensor, found none");
  const TensorMeta& tensor = *meta.tensor_meta;
  if (tensor.layout == Layout::Unknown) throw Error("expected a layout, found none");
  if (tensor.dtype == ScalarType::UNKNOWN) throw Error("expected a dtype, found none");
  if (tensor.sizes.size() != tensor.strides.size()) throw Error("the tensor has not as many sizes as strides");
  Weight weight;
  weight.fqn = fqn;
  weight.dtype = tensor.dtype;
  weight.meta = &meta;
  for (const SymInt& size : tensor.sizes) weight.sizes.push_back(detail::constant(size, "sizes"));
  for (const SymInt& stride : tensor.strides) weight.strides.push_back(detail::constant(stride, "strides"));
  weight.storage_offset = detail::constant(tensor.storage_offset, "storage_offset");
  const std::int64_t needed = detail::needed_bytes(weight);
  weight.extent = static_cast<std::size_t>(needed);
  const bool fake = meta.absent.value_or(false) || tensor.device.type == "meta";
  if (!fake && static_cast<std::uint64_t>(needed) > payload.size()) {
    throw Error("the tensor needs " + std::to_string(needed) + " bytes of the payload \"" +
                Error::printable(meta.path_name) + "\", which has " + std::to_string(payload.size()));
  }
  if (!fake) weight.payload = std::move(payload);
  return weight;
}

}  // namespace pt2wire
