// Part of pt2wire. What the decoders say of a fault, and how its error learns where it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "pt2wire/error.h"
#include "pt2wire/traits.h"

namespace pt2wire {
namespace detail {

// The decoders are instantiated for each type of the schema. What they do on a fault lies outside of them, once: inlined it
// would be most of their code.

[[gnu::noinline, noreturn]] inline void rethrow_at(std::size_t offset, const Error& error) {
  if (error.offset() != Error::no_offset) throw;
  throw Error(error.reason(), offset, error.path());
}
[[gnu::noinline, noreturn]] inline void rethrow_within_field(std::string_view name, Error& error) {
  error.within_field(name);
  throw;
}
[[gnu::noinline, noreturn]] inline void rethrow_within_key(std::string_view key, Error& error) {
  error.within_key(key);
  throw;
}
[[gnu::noinline, noreturn]] inline void rethrow_within_item(std::uint32_t index, Error& error) {
  error.within_item(index);
  throw;
}

// What stands around every value of a document is inlined always: as calls these take a seventh of the time more.

/// Runs a step that knows no offsets, and gives its error one.
template <class F>
[[gnu::always_inline]] inline decltype(auto) located(std::size_t offset, F&& step) {
  try {
    return step();
  } catch (Error& error) {
    rethrow_at(offset, error);
  }
}

/// Runs a step that concerns one field of T and sets its position.
template <class T, class F>
[[gnu::always_inline]] inline decltype(auto) within_field(F&& step) {
  std::size_t position = 0;
  try {
    return step(position);
  } catch (Error& error) {
    rethrow_within_field(Traits<T>::fields[position].name, error);
  }
}

template <class F>
[[gnu::always_inline]] inline decltype(auto) within_key(std::string_view key, F&& step) {
  try {
    return step();
  } catch (Error& error) {
    rethrow_within_key(key, error);
  }
}

/// Calls `step(i)` for the items of a list.
template <class F>
[[gnu::always_inline]] inline void each_item(std::uint32_t size, F&& step) {
  std::uint32_t i = 0;
  try {
    for (; i != size; ++i) step(i);
  } catch (Error& error) {
    rethrow_within_item(i, error);
  }
}

/// A mask of the fields that a flag of their `FieldInfo` is set for.
template <class T>
constexpr std::uint64_t fields_with(bool FieldInfo::* flag) {
  static_assert(std::size(Traits<T>::fields) <= 64, "the fields seen are a mask of 64 bits");
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i != std::size(Traits<T>::fields); ++i) {
    if (Traits<T>::fields[i].*flag) mask |= std::uint64_t{1} << i;
  }
  return mask;
}

/// `missing` is a mask of fields.
template <class T>
std::string lacks(std::uint64_t missing) {
  std::string names;
  for (std::size_t i = 0; i != std::size(Traits<T>::fields); ++i) {
    if ((missing >> i & 1) != 0) names += (names.empty() ? "" : ", ") + std::string(Traits<T>::fields[i].name);
  }
  return "the struct " + std::string(Traits<T>::name) + " lacks " + names;
}

}  // namespace detail
}  // namespace pt2wire
