// Part of pt2wire. Telling the types of the fields apart, whatever their storage.
#pragma once

#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "pt2wire/traits.h"

namespace pt2wire {
namespace detail {

template <class T, class = void>
inline constexpr bool is_map = false;
template <class T>
inline constexpr bool is_map<T, std::void_t<decltype(std::declval<const T&>().contains(std::string_view()))>> = true;

template <class T, class = void>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<T, std::void_t<typename T::value_type, decltype(std::declval<const T&>()[0])>> = true;

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

}  // namespace detail
}  // namespace pt2wire
