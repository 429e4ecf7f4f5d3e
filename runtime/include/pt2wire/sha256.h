// Part of pt2wire. SHA-256 (FIPS 180-4), by which the index of an archive knows its documents.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace pt2wire {
namespace detail {

/// The first 64 primes' cube roots give the constants of the rounds: the fraction's first 32 bits.
inline constexpr std::uint32_t sha256_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

class Sha256 {
 public:
  static constexpr std::size_t block_size = 64;

  void add_block(const std::uint8_t* block) noexcept {
    std::uint32_t words[64];
    for (std::size_t i = 0; i != 16; ++i) {
      const std::uint8_t* const at = block + 4 * i;
      words[i] = std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 | at[3];
    }
    for (std::size_t i = 16; i != 64; ++i) {
      const std::uint32_t a = words[i - 15], b = words[i - 2];
      const std::uint32_t sigma0 = rotated(a, 7) ^ rotated(a, 18) ^ (a >> 3);
      const std::uint32_t sigma1 = rotated(b, 17) ^ rotated(b, 19) ^ (b >> 10);
      words[i] = words[i - 16] + sigma0 + words[i - 7] + sigma1;
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t i = 0; i != 64; i += 8) {
      const auto sum = [&](std::size_t round) { return sha256_constants[i + round] + words[i + round]; };
      add_round(a, b, c, d, e, f, g, h, sum(0));
      add_round(h, a, b, c, d, e, f, g, sum(1));
      add_round(g, h, a, b, c, d, e, f, sum(2));
      add_round(f, g, h, a, b, c, d, e, sum(3));
      add_round(e, f, g, h, a, b, c, d, sum(4));
      add_round(d, e, f, g, h, a, b, c, sum(5));
      add_round(c, d, e, f, g, h, a, b, sum(6));
      add_round(b, c, d, e, f, g, h, a, sum(7));
    }
    const std::uint32_t next[] = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i != 8; ++i) state_[i] += next[i];
  }

  std::string hex() const {
    static constexpr char digits[] = "0123456789abcdef";
    std::string out;
    for (const std::uint32_t word : state_) {
      for (int shift = 28; shift >= 0; shift -= 4) out += digits[word >> shift & 15];
    }
    return out;
  }

 private:
  // The variables change names from round to round rather than values from variable to variable.
  static void add_round(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t& d, std::uint32_t e,
                        std::uint32_t f, std::uint32_t g, std::uint32_t& h, std::uint32_t sum) noexcept {
    const std::uint32_t one = h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + (g ^ (e & (f ^ g))) + sum;
    d += one;
    h = one + (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) | (c & (a | b)));
  }

  static constexpr std::uint32_t rotated(std::uint32_t word, int count) noexcept {
    return word >> count | word << (32 - count);
  }

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
};

}  // namespace detail

/// The SHA-256 of some bytes, in hexadecimal.
inline std::string sha256(const std::uint8_t* data, std::size_t size) {
  detail::Sha256 state;
  std::size_t left = size;
  for (; left >= detail::Sha256::block_size; left -= detail::Sha256::block_size) {
    state.add_block(data);
    data += detail::Sha256::block_size;
  }
  // The rest, a bit that is one, zeros, and the number of bits in the last 8 bytes.
  std::uint8_t last[2 * detail::Sha256::block_size] = {};
  if (left != 0) std::memcpy(last, data, left);
  last[left] = 0x80;
  const std::size_t end = left < detail::Sha256::block_size - 8 ? detail::Sha256::block_size : sizeof last;
  const std::uint64_t bits = std::uint64_t{size} * 8;
  for (std::size_t i = 0; i != 8; ++i) last[end - 1 - i] = static_cast<std::uint8_t>(bits >> (8 * i));
  for (std::size_t at = 0; at != end; at += detail::Sha256::block_size) state.add_block(last + at);
  return state.hex();
}

}  // namespace pt2wire
