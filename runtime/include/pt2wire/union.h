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

/// Base of the generated unions: a variant of `Unknown` and the members, in the order of `Traits<Derived>::fields`.
template <class Derived, class... Members>
class Union {
 public:
  /// 0 for Unknown, else 1 + the member's position. The generated `tag()` is the same as an enum.
  std::size_t index() const noexcept { return value_.index(); }

  /// The unknown member, or nullptr.
  const Unknown* unknown() const noexcept { return std::get_if<0>(&value_); }

  /// The name of the member that is set, empty for an unknown one.
  std::string_view member_name() const noexcept {
    return index() == 0 ? std::string_view() : Traits<Derived>::fields[index() - 1].name;
  }

  /// Calls `f` with the member's value, or with an `Unknown`. Members of one type are told apart by `tag()`.
  template <class F>
  decltype(auto) visit(F&& f) const {
    return std::visit([&f](const auto& stored) -> decltype(auto) { return f(unwrap(stored)); }, value_);
  }

  /// The variant itself. Values that an `Indirect` holds are not unwrapped.
  const std::variant<Unknown, Members...>& variant() const noexcept { return value_; }
  std::variant<Unknown, Members...>& variant() noexcept { return value_; }

 protected:
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
  template <class T>
  static const auto& unwrap(const T& stored) noexcept {
    if constexpr (is_indirect<T>) {
      return *stored;
    } else {
      return stored;
    }
  }

  [[noreturn]] void refuse(std::string_view wanted) const {
    const Unknown* const newer = unknown();
    throw Error("the union " + std::string(Traits<Derived>::name) + " holds " +
                (newer != nullptr ? "the unknown member " + std::to_string(newer->id) : std::string(member_name())) +
                ", not " + std::string(wanted));
  }

  std::variant<Unknown, Members...> value_;
};

}  // namespace pt2wire
