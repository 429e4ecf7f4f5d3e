// Part of pt2wire. How the generated types describe themselves to code that works on all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "pt2wire/wire.h"

namespace pt2wire {

/// A field of a struct, or a member of a union.
struct FieldInfo {
  std::int16_t id;         ///< the Thrift id
  std::string_view name;   ///< as in schema.yaml
  bool required;           ///< whether a document without it is refused
  Wire wire;               ///< what its value is in Thrift
};

/// What a generated type is, for generic code (codecs, printers, comparisons). Each has
///
/// * `name`, `is_union`, `min_size` (bytes of its shortest encoding), and `fields`, an array of FieldInfo;
/// * `Storage`, its storage policy;
/// * structs: `with_field(object, id, f)` calls `f(object.x, position)` for the field with this id and answers whether
///   there is one; `each_field(object, f)` calls it for all, in the order of their ids, which is that of Thrift's bytes.
///   `position` is a `std::integral_constant` into `fields`. `zip_fields(a, b, f)` calls `f(a.x, b.x)` for each field of
///   two objects, perhaps of different storages, while it answers true; it answers whether all calls did;
/// * unions: `with_member(id, f)` calls `f(position)`; the variant's index is the position plus one.
template <class T>
struct Traits;

/// Whether T is a storage's `Indirect`: a value kept beside its owner.
template <class T>
inline constexpr bool is_indirect = false;

}  // namespace pt2wire
