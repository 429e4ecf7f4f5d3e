// Part of pt2wire. What the values of the generated types look like on the wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "pt2wire/traits.h"
#include "pt2wire/wire.h"

namespace pt2wire {

/// How a type looks on the wire, and the bytes of its shortest encoding.
struct Shape {
  Wire wire;
  std::size_t min_size;
};

/// The shapes of all types over one storage policy.
template <class Storage>
class Shapes {
 public:
  template <class T>
  static constexpr Shape of() {
    return shape(static_cast<const T*>(nullptr));
  }

 private:
  static constexpr Shape shape(const bool*) { return {Wire::boolean, 1}; }
  static constexpr Shape shape(const std::int64_t*) { return {Wire::i64, 1}; }
  static constexpr Shape shape(const double*) { return {Wire::f64, 8}; }
  static constexpr Shape shape(const typename Storage::String*) { return {Wire::text, 1}; }
  static constexpr Shape shape(const typename Storage::Binary*) { return {Wire::text, 1}; }
  template <class T>
  static constexpr Shape shape(const typename Storage::template List<T>*) {
    return {Wire::list, 1};
  }
  template <class T>
  static constexpr Shape shape(const typename Storage::template Map<T>*) {
    return {Wire::map, 1};
  }
  template <class T>
  static constexpr Shape shape(const typename Storage::template Indirect<T>*) {
    return of<T>();
  }
  template <class T>
  static constexpr Shape shape(const std::optional<T>*) {
    return of<T>();
  }
  template <class T>
  static constexpr Shape shape(const T*) {
    if constexpr (std::is_enum_v<T>) {
      return {Wire::i32, 1};
    } else {
      return {Wire::structure, Traits<T>::min_size};
    }
  }
};

}  // namespace pt2wire
