// Part of pt2wire. Comparison of trees, also of different storages.
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <variant>

#include "pt2wire/containers.h"
#include "pt2wire/traits.h"

namespace pt2wire {
namespace detail {

template <class A, class B>
bool equal_unions(const A& a, const B& b);

template <class A, class B>
bool equal(const A& a, const B& b) {
  if constexpr (std::is_convertible_v<const A&, std::string_view>) {
    return std::string_view(a) == std::string_view(b);
  } else if constexpr (std::is_floating_point_v<A>) {
    return !(a < b) && !(b < a) && a == a && b == b;  // as ==, which -Wfloat-equal dislikes
  } else if constexpr (std::is_arithmetic_v<A> || std::is_enum_v<A>) {
    return a == b;
  } else if constexpr (is_optional<A>) {
    return a.has_value() == b.has_value() && (!a || equal(*a, *b));
  } else if constexpr (is_indirect<A>) {
    return equal(*a, *b);
  } else if constexpr (is_map<A>) {
    if (a.size() != b.size()) return false;
    auto expected = b.begin();
    for (const auto& entry : a) {
      // Mostly both have the same order, and then no key is looked up.
      const auto* const other = expected->key == entry.key ? &expected->value : b.find(entry.key);
      if (other == nullptr || !equal(entry.value, *other)) return false;
      ++expected;
    }
    return true;
  } else if constexpr (is_list<A>) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i != a.size(); ++i) {
      if (!equal(static_cast<const typename A::value_type&>(a[i]), static_cast<const typename B::value_type&>(b[i]))) {
        return false;
      }
    }
    return true;
  } else if constexpr (Traits<A>::is_union) {
    return equal_unions(a, b);
  } else {
    return Traits<A>::zip_fields(a, b, [](const auto& left, const auto& right) { return equal(left, right); });
  }
}

template <class A, class B>
bool equal_unions(const A& a, const B& b) {
  if (a.index() != b.index()) return false;
  if (a.index() == 0) return a.unknown()->id == b.unknown()->id;
  bool same = false;
  Traits<A>::with_member(Traits<A>::fields[a.index() - 1].id, [&](auto position) {
    same = equal(*std::get_if<position() + 1>(&a.variant()), *std::get_if<position() + 1>(&b.variant()));
  });
  return same;
}

}  // namespace detail
}  // namespace pt2wire
