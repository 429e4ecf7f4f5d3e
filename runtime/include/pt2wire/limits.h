// Part of pt2wire. What a document may cost.
#pragma once

#include <cstddef>

namespace pt2wire {

inline constexpr char over_budget[] =
    "the document needs more memory than its size allows for; raise the limits if it is trusted";

/// What a document may cost. Real programs need about as much memory as they have bytes.
struct Limits {
  std::size_t expansion = 16;      ///< bytes of memory per byte of input ...
  std::size_t allowance = 1 << 20; ///< ... and this many on top

  /// Bytes of memory for a document of `size` bytes.
  std::size_t budget(std::size_t size) const noexcept {
    const std::size_t room = static_cast<std::size_t>(-1) - allowance;
    return expansion != 0 && size > room / expansion ? room : allowance + expansion * size;
  }
};

}  // namespace pt2wire
