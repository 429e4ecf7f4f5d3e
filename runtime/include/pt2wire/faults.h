// Part of pt2wire. What the decoders say of a fault, and how its error learns where it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "pt2wire/error.h"
#include "pt2wire/traits.h"

namespace pt2wire {
namespace detail {

// The decoders are instantiated for each type of the schema. What they do on a fault lies outside of them, once: inlined it
// would be most of their code.

/// The way from a document's root to a fault, innermost step first, as guards on the stack tell it while the error passes
/// them. A guard costs nothing until then, and much less code than a handler that catches and throws again.
class Trail {
 public:
  [[gnu::noinline, gnu::cold]] void field(const FieldInfo& info) noexcept {
    add([&](Error& way) { way.within_field(info.name); });
  }
  [[gnu::noinline, gnu::cold]] void item(std::uint32_t index) noexcept {
    add([&](Error& way) { way.within_item(index); });
  }
  [[gnu::noinline, gnu::cold]] void key(std::string_view text) noexcept {
    add([&](Error& way) { way.within_key(text); });
  }

  /// Throws the error that arrived, with its path; `offset` is for one that knows none.
  [[gnu::noinline, gnu::cold, noreturn]] void rethrow(const Error& error, std::size_t offset) const {
    throw Error(error.reason(), error.offset() == Error::no_offset ? offset : error.offset(), way_.path());
  }

 private:
  template <class F>
  void add(F&& step) noexcept {
    try {
      step(way_);
    } catch (const std::bad_alloc&) {  // while another error is on its way: that one counts, its path lacks a step
    }
  }

  Error way_{std::string()};
};

// The guards' destructors are inlined always: so these need not lie in memory, where they would be written for nothing.

inline constexpr std::size_t no_position = static_cast<std::size_t>(-1);

/// Stands where fields are read; `position` is that of the field which is being read.
struct FieldGuard {
  FieldGuard(Trail& of_trail, const FieldInfo* of_fields) noexcept : trail(of_trail), fields(of_fields) {}
  FieldGuard(const FieldGuard&) = delete;
  FieldGuard& operator=(const FieldGuard&) = delete;
  [[gnu::always_inline]] ~FieldGuard() {
    if (position != no_position) trail.field(fields[position]);
  }

  Trail& trail;
  const FieldInfo* fields;
  std::size_t position = no_position;
};

/// Stands where the items of a list are read; `index` is that of the item which is being read, `size` behind the last.
struct ItemGuard {
  ItemGuard(Trail& of_trail, std::uint32_t of_size) noexcept : trail(of_trail), size(of_size) {}
  ItemGuard(const ItemGuard&) = delete;
  ItemGuard& operator=(const ItemGuard&) = delete;
  [[gnu::always_inline]] ~ItemGuard() {
    if (index != size) trail.item(index);
  }

  Trail& trail;
  std::uint32_t size;
  std::uint32_t index = 0;
};

/// Stands where the values of a map are read; `key` is that of the value which is being read.
template <class String>
struct KeyGuard {
  explicit KeyGuard(Trail& of_trail) noexcept : trail(of_trail) {}
  KeyGuard(const KeyGuard&) = delete;
  KeyGuard& operator=(const KeyGuard&) = delete;
  [[gnu::always_inline]] ~KeyGuard() {
    if (key != nullptr) trail.key(*key);
  }

  Trail& trail;
  const String* key = nullptr;
};

/// Where the first field is of which `is_it` says so, or `no_position`.
template <class F>
std::size_t position_of(const TypeInfo& type, F&& is_it) noexcept {
  for (std::size_t i = 0; i != type.size; ++i) {
    if (is_it(type.fields[i])) return i;
  }
  return no_position;
}

/// What is said of a struct without the fields of a mask.
[[gnu::noinline, gnu::cold]] inline std::string lacks(const TypeInfo& type, std::uint64_t missing) {
  std::string names;
  for (std::size_t i = 0; i != type.size; ++i) {
    if ((missing >> i & 1) != 0) names += (names.empty() ? "" : ", ") + std::string(type.fields[i].name);
  }
  return "the struct " + std::string(type.name) + " lacks " + names;
}

}  // namespace detail
}  // namespace pt2wire
