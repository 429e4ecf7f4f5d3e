// Runs many cases in one process. Each comes on standard input as type name and bytes, and goes to standard output as a
// status ('=' for a result, '!' for an error) and text; every string has its length, 4 bytes little-endian, before it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace cases {

inline std::optional<std::string> take() {
  unsigned char size[4];
  if (std::fread(size, 1, 4, stdin) != 4) return std::nullopt;
  std::uint32_t length = 0;
  for (int i = 0; i != 4; ++i) length |= static_cast<std::uint32_t>(size[i]) << (8 * i);
  std::string text(length, '\0');
  if (std::fread(text.data(), 1, text.size(), stdin) != text.size()) return std::nullopt;
  return text;
}

inline void put(char status, const std::string& text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  std::putchar(status);
  for (int i = 0; i != 4; ++i) std::putchar(static_cast<int>(size >> (8 * i) & 0xff));
  std::fwrite(text.data(), 1, text.size(), stdout);
}

/// `run(type, bytes)` gives the result, or throws something with `what()`.
template <class Run>
int run_all(Run&& run) {
  while (const auto type = take()) {
    const auto bytes = take();
    if (!bytes) return 1;
    try {
      put('=', run(*type, *bytes));
    } catch (const std::exception& error) {
      put('!', error.what());
    }
  }
  return 0;
}

}  // namespace cases
