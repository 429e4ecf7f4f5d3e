// Part of pt2wire. How the generated types describe themselves to code that works on all of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "pt2wire/wire.h"

namespace pt2wire {

struct TypeInfo;

/// What a value is, whatever its storage: what code needs that works on bytes alone.
struct ValueInfo {
  Wire wire;                                   ///< what it is in Thrift
  const TypeInfo* type = nullptr;              ///< of a struct or union
  const ValueInfo* item = nullptr;             ///< of a list or map
  bool (*is_known)(std::int32_t) = nullptr;    ///< of an enum: whether a value has this number
  bool is_binary = false;                      ///< of a `text`: whether it is bytes
};

/// A field of a struct, or a member of a union.
struct FieldInfo {
  std::int16_t id;         ///< the Thrift id
  std::string_view name;   ///< as in schema.yaml
  bool required;           ///< whether a document without it is refused
  bool optional;           ///< whether it may have no value
  const ValueInfo* value;  ///< what it holds
};

/// A struct or union, whatever its storage.
struct TypeInfo {
  std::string_view name;
  const FieldInfo* fields;
  std::size_t size;
  bool is_union;
  std::uint64_t required;  ///< a mask of fields

  template <std::size_t Size>
  constexpr TypeInfo(std::string_view of_name, const std::array<FieldInfo, Size>& of_fields, bool of_union) noexcept
      : name(of_name), fields(of_fields.data()), size(Size), is_union(of_union), required(0) {
    static_assert(Size <= 64, "the fields seen are a mask of 64 bits");
    for (std::size_t i = 0; i != Size; ++i) {
      if (of_fields[i].required) required |= std::uint64_t{1} << i;
    }
  }
};

/// What a generated type is, for generic code (codecs, printers, comparisons). Each has
///
/// * `info`, the TypeInfo, and of that again `name`, `is_union` and `fields`, an array of FieldInfo;
/// * `min_size`, the bytes of its shortest encoding;
/// * `Storage`, its storage policy;
/// * structs: `each_field(object, f)` calls `f(object.x, position)` for all fields, in the order of their ids, which is that
///   of Thrift's bytes. `position` is a `std::integral_constant` into `fields`. `zip_fields(a, b, f)` calls `f(a.x, b.x)` for
///   each field of two objects, perhaps of different storages, while it answers true; it answers whether all calls did;
/// * unions: `with_member(id, f)` calls `f(position)`; the variant's index is the position plus one.
template <class T>
struct Traits;

namespace detail {

/// Whether a value of the enum has this number.
template <class Enum>
bool has_name(std::int32_t number) noexcept {
  return !name(static_cast<Enum>(number)).empty();
}

}  // namespace detail

/// Whether T is a storage's `Indirect`: a value kept beside its owner.
template <class T>
inline constexpr bool is_indirect = false;

}  // namespace pt2wire
