// Part of pt2wire. Finding a key among the entries of a map that keeps its order, in constant time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "pt2wire/error.h"

namespace pt2wire {
namespace detail {

inline std::uint64_t mix(std::uint64_t a) noexcept {
  a ^= a >> 32;
  a *= 0x9e3779b97f4a7c15u;
  a ^= a >> 29;
  return a;
}

inline std::uint64_t hash(std::string_view key) noexcept {
  std::uint64_t state = key.size();
  const char* at = key.data();
  std::size_t left = key.size();
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    state = mix(state + word) * 0xd6e8feb86659fd93u;
  }
  std::uint64_t word = 0;
  if (left != 0) std::memcpy(&word, at, left);
  return mix(mix(state + word) * 0xd6e8feb86659fd93u);
}

/// A table of slots, a power of two, that hold positions of entries. Maps of a few entries have none and are scanned.
struct MapIndex {
  static constexpr std::uint32_t vacant = 0xffffffff;
  static constexpr std::size_t longest_scan = 8;  // up to here a scan is as fast as hashing

  static constexpr bool needed(std::size_t size) noexcept { return size > longest_scan; }
  static constexpr std::size_t slots(std::size_t size) noexcept {
    std::size_t slots = 16;
    while (slots < 2 * size) slots *= 2;
    return slots;
  }

  /// The entry with the key, or nullptr. `index` is not looked at where none is needed.
  template <class Entry>
  static const Entry* find(const Entry* entries, std::size_t size, const std::uint32_t* index,
                           std::string_view key) noexcept {
    if (!needed(size)) {
      for (std::size_t i = 0; i != size; ++i) {
        if (entries[i].key == key) return &entries[i];
      }
      return nullptr;
    }
    const std::size_t mask = slots(size) - 1;
    for (std::size_t slot = hash(key) & mask; index[slot] != vacant; slot = (slot + 1) & mask) {
      const Entry& entry = entries[index[slot]];
      if (entry.key == key) return &entry;
    }
    return nullptr;
  }

  /// Checks that keys from a file are unique, and fills the slots, all of them vacant before.
  template <class Entry>
  static void fill(const Entry* entries, std::size_t size, std::uint32_t* index) {
    if (size != 0) fill(Keys<decltype(Entry::key)>{&entries->key, sizeof(Entry)}, size, index);
  }

  [[noreturn]] static void refuse_duplicate(std::string_view key) {
    throw Error("the map has the key \"" + Error::printable(key) + "\" twice");
  }
  [[noreturn]] static void refuse_missing(std::string_view key) {
    throw Error("the map has no key \"" + Error::printable(key) + "\"");
  }

 private:
  /// The keys of entries, whatever their values are.
  template <class String>
  struct Keys {
    const String* first;
    std::size_t stride;  ///< in bytes

    const String& operator[](std::size_t i) const noexcept {
      return *reinterpret_cast<const String*>(reinterpret_cast<const char*>(first) + i * stride);
    }
  };

  template <class String>
  [[gnu::noinline]] static void fill(Keys<String> keys, std::size_t size, std::uint32_t* index) {
    if (!needed(size)) {
      for (std::size_t i = 1; i < size; ++i) {
        for (std::size_t j = 0; j != i; ++j) {
          if (keys[j] == keys[i]) refuse_duplicate(keys[i]);
        }
      }
      return;
    }
    const std::size_t mask = slots(size) - 1;
    // Keys made to collide would cost a square of time. Honest keys stay far below this, whatever they are.
    std::size_t probes_left = 32 * size + 256;
    for (std::size_t i = 0; i != size; ++i) {
      std::size_t slot = hash(keys[i]) & mask;
      for (; index[slot] != vacant; slot = (slot + 1) & mask) {
        if (keys[index[slot]] == keys[i]) refuse_duplicate(keys[i]);
        if (--probes_left == 0) throw Error("the keys of the map have been made to collide");
      }
      index[slot] = static_cast<std::uint32_t>(i);
    }
  }
};

}  // namespace detail
}  // namespace pt2wire
