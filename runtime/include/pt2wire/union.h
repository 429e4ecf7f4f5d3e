// Part of pt2wire. What all unions of the schema have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "pt2wire/error.h"
#include "pt2wire/traits.h"

namespace pt2wire {

/// The state of a union whose member this header does not know, because the file is newer. `id` is the member's
/// Thrift id; its content was skipped. A union that was made by hand and not filled is Unknown with id 0.
struct Unknown {
  std::int16_t id = 0;
};

namespace detail {

template <class Stored, bool Beside = is_indirect<Stored>>
struct Unwrapped {
  using type = Stored;
};
template <class Stored>
struct Unwrapped<Stored, true> {
  using type = std::remove_cv_t<std::remove_reference_t<decltype(*std::declval<Stored&>())>>;
};

/// The type of a member's value, wherever that is kept.
template <class Variant, std::size_t Index>
using MemberValue = typename Unwrapped<std::variant_alternative_t<Index, Variant>>::type;

}  // namespace detail

/// Base of the generated unions: a variant of `Unknown` and the members, in the order of `Traits<Derived>::fields`.
template <class Derived, class... Members>
class Union {
 private:
  template <class T>
  static auto& unwrap(T& stored) noexcept {
    if constexpr (is_indirect<std::remove_const_t<T>>) {
      return *stored;
    } else {
      return stored;
    }
  }

 public:
  using Variant = std::variant<Unknown, Members...>;

  /// 0 for Unknown, else 1 + the member's position. The generated `tag()` is the same as an enum.
  std::size_t index() const noexcept { return value_.index(); }

  /// The unknown member, or nullptr.
  const Unknown* unknown() const noexcept { return std::get_if<0>(&value_); }

  /// The name of the member that is set, empty for an unknown one.
  std::string_view member_name() const noexcept {
    return index() == 0 ? std::string_view() : Traits<Derived>::fields[index() - 1].name;
  }

  /// Calls `f` with the member's value, or with an `Unknown`. Members of one type are told apart by `tag()`. In a union
  /// that may be changed, so may the value.
  template <class F>
  decltype(auto) visit(F&& f) const {
    return std::visit([&f](const auto& stored) -> decltype(auto) { return f(unwrap(stored)); }, value_);
  }
  template <class F>
  decltype(auto) visit(F&& f) {
    return std::visit([&f](auto& stored) -> decltype(auto) { return f(unwrap(stored)); }, value_);
  }

  /// The variant itself. Values that an `Indirect` holds are not unwrapped.
  const Variant& variant() const noexcept { return value_; }
  Variant& variant() noexcept { return value_; }

 protected:
  template <std::size_t Index>
  auto& set(detail::MemberValue<Variant, Index> value) {
    using Stored = std::variant_alternative_t<Index, Variant>;
    return unwrap(value_.template emplace<Index>(Stored(std::move(value))));
  }

  template <std::size_t Index>
  auto* find() noexcept {
    auto* const stored = std::get_if<Index>(&value_);
    return stored == nullptr ? nullptr : &unwrap(*stored);
  }
  template <std::size_t Index>
  const auto* find() const noexcept {
    const auto* const stored = std::get_if<Index>(&value_);
    return stored == nullptr ? nullptr : &unwrap(*stored);
  }

  template <std::size_t Index>
  const auto& get() const {
    if (const auto* const value = find<Index>()) return *value;
    refuse(Traits<Derived>::fields[Index - 1].name);
  }

 private:
  [[noreturn]] void refuse(std::string_view wanted) const {
    const Unknown* const newer = unknown();
    throw Error("the union " + std::string(Traits<Derived>::name) + " holds " +
                (newer != nullptr ? "the unknown member " + std::to_string(newer->id) : std::string(member_name())) +
                ", not " + std::string(wanted));
  }

  Variant value_;
};

}  // namespace pt2wire
