// Part of pt2wire. Bytes in JSON are text in Base64 (RFC 4648).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "pt2wire/error.h"

namespace pt2wire {
namespace detail {

constexpr std::array<std::int8_t, 256> make_base64_digits() {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<std::int8_t, 256> digits{};
  for (auto& digit : digits) digit = -1;
  for (std::size_t i = 0; i != alphabet.size(); ++i) digits[static_cast<unsigned char>(alphabet[i])] = static_cast<std::int8_t>(i);
  return digits;
}

inline constexpr auto base64_digits = make_base64_digits();

}  // namespace detail

/// The bytes that a text stands for; blanks, other alphabets and missing padding are an `Error`.
inline std::string from_base64(std::string_view text) {
  const std::size_t padding = text.empty() || text.back() != '=' ? 0 : text.size() > 1 && text[text.size() - 2] == '=' ? 2 : 1;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i != text.size(); ++i) {
    const bool is_padding = i + padding >= text.size();
    const int digit = is_padding ? 0 : detail::base64_digits[static_cast<unsigned char>(text[i])];
    if (digit < 0 || text.size() % 4 != 0) throw Error("expected bytes in Base64, found \"" + Error::printable(text) + "\"");
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    if (i % 4 != 3) continue;
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(bits >> shift & 0xff);
  }
  const bool has_rest = bytes.find_first_not_of('\0', bytes.size() - padding) != std::string::npos;
  if (has_rest) throw Error("expected bytes in Base64, whose last digit holds no more than they need");
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace pt2wire
