// Part of pt2wire. CRC-32 as zip files use it, eight bytes a step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pt2wire {
namespace detail {

using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr CrcTables make_crc_tables() {
  CrcTables tables{};
  for (std::uint32_t i = 0; i != 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit != 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320u : 0u);
    tables[0][i] = crc;
  }
  for (std::size_t i = 0; i != 256; ++i) {
    for (std::size_t t = 1; t != 8; ++t) {
      const std::uint32_t before = tables[t - 1][i];
      tables[t][i] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

inline constexpr CrcTables crc_tables = make_crc_tables();

}  // namespace detail

/// The CRC-32 of some bytes; `crc` is that of the bytes before them.
inline std::uint32_t crc32(const std::uint8_t* data, std::size_t size, std::uint32_t crc = 0) noexcept {
  const auto& t = detail::crc_tables;
  crc = ~crc;
  for (; size >= 8; data += 8, size -= 8) {
    crc ^= static_cast<std::uint32_t>(data[0]) | static_cast<std::uint32_t>(data[1]) << 8 |
           static_cast<std::uint32_t>(data[2]) << 16 | static_cast<std::uint32_t>(data[3]) << 24;
    crc = t[7][crc & 0xff] ^ t[6][crc >> 8 & 0xff] ^ t[5][crc >> 16 & 0xff] ^ t[4][crc >> 24] ^ t[3][data[4]] ^
          t[2][data[5]] ^ t[1][data[6]] ^ t[0][data[7]];
  }
  for (; size != 0; ++data, --size) crc = (crc >> 8) ^ t[0][(crc ^ *data) & 0xff];
  return ~crc;
}

}  // namespace pt2wire
