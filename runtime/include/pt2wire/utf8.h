// Part of pt2wire. Strict UTF-8, checked at the speed of memory where text is ASCII.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace pt2wire {
namespace detail {

/// Bytes of the sequence that starts at `text[0]`, or 0 if there is none that RFC 3629 permits.
inline std::size_t utf8_sequence(const unsigned char* text, std::size_t left) noexcept {
  // The second byte's range is what rules out overlong forms, surrogates and code points over U+10FFFF.
  struct Lead {
    unsigned char first, last, length, second_first, second_last;
  };
  static constexpr Lead leads[] = {
      {0x00, 0x7f, 1, 0, 0},       {0xc2, 0xdf, 2, 0x80, 0xbf}, {0xe0, 0xe0, 3, 0xa0, 0xbf},
      {0xe1, 0xec, 3, 0x80, 0xbf}, {0xed, 0xed, 3, 0x80, 0x9f}, {0xee, 0xef, 3, 0x80, 0xbf},
      {0xf0, 0xf0, 4, 0x90, 0xbf}, {0xf1, 0xf3, 4, 0x80, 0xbf}, {0xf4, 0xf4, 4, 0x80, 0x8f},
  };
  for (const Lead& lead : leads) {
    if (text[0] < lead.first || text[0] > lead.last) continue;
    if (lead.length == 1) return 1;
    if (left < lead.length || text[1] < lead.second_first || text[1] > lead.second_last) return 0;
    for (std::size_t i = 2; i < lead.length; ++i) {
      if ((text[i] & 0xc0) != 0x80) return 0;
    }
    return lead.length;
  }
  return 0;
}

inline bool is_ascii(const char* data, std::size_t size) noexcept {
  // Of each size the last words overlap those before them: no byte is looked at alone but in the shortest.
  constexpr std::uint64_t high_bits = 0x8080808080808080u;
  const auto word = [data](std::size_t at) {
    std::uint64_t bytes;
    std::memcpy(&bytes, data + at, 8);
    return bytes;
  };
  if (size <= 16) {
    if (size >= 8) return ((word(0) | word(size - 8)) & high_bits) == 0;
    if (size >= 4) {
      std::uint32_t halves[2];
      std::memcpy(halves, data, 4);
      std::memcpy(halves + 1, data + size - 4, 4);
      return ((halves[0] | halves[1]) & static_cast<std::uint32_t>(high_bits)) == 0;
    }
    unsigned all = 0;
    for (std::size_t i = 0; i != size; ++i) all |= static_cast<unsigned char>(data[i]);
    return all < 0x80;
  }
  using Pair [[gnu::vector_size(16)]] = std::uint64_t;
  const auto pair = [data](std::size_t at) {
    Pair bytes;
    std::memcpy(&bytes, data + at, 16);
    return bytes;
  };
  Pair all = pair(0) | pair(size - 16);
  if (size > 32) all |= pair(16) | pair(size - 32);
  if (size > 64) {
    all |= pair(size - 64) | pair(size - 48);
    for (std::size_t at = 32; at + 64 < size; at += 64) {
      const Pair four = (pair(at) | pair(at + 16)) | (pair(at + 32) | pair(at + 48));
      if (((four[0] | four[1]) & high_bits) != 0) return false;
    }
  }
  return ((all[0] | all[1]) & high_bits) == 0;
}

/// `valid_utf8_prefix` of text that is not all ASCII; apart from that, which stays short and is inlined.
[[gnu::noinline]] inline std::size_t valid_mixed_prefix(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto* const rest = reinterpret_cast<const unsigned char*>(text.data() + at);
    const std::size_t length = utf8_sequence(rest, text.size() - at);
    if (length == 0) return at;
    at += length;
  }
  return at;
}

}  // namespace detail

/// How many bytes of the text, from its start, are valid UTF-8: its size if all of it is.
inline std::size_t valid_utf8_prefix(std::string_view text) noexcept {
  return detail::is_ascii(text.data(), text.size()) ? text.size() : detail::valid_mixed_prefix(text);
}

}  // namespace pt2wire
