// Part of pt2wire. How many items each array and object of a JSON text has, before they are read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "pt2wire/error.h"
#include "pt2wire/json_reader.h"
#include "pt2wire/limits.h"

namespace pt2wire {

/// The sizes of all arrays and objects of a text, in the order in which they open, found in one pass over it: so lists
/// and maps get their memory at once and at its place.
///
/// Of a malformed text the sizes are right up to its first fault, where whoever reads the values finds it too.
class JsonSizes {
 public:
  /// Arrays and objects that may lie inside each other: more than structs within their limit ever need.
  static constexpr std::size_t max_levels = 512;

  /// Throws `Error` if they take more than `budget` bytes, or lie too deep.
  JsonSizes(std::string_view text, std::size_t budget) : most_(budget / sizeof(std::uint32_t)) {
    if (text.size() > std::numeric_limits<std::uint32_t>::max()) throw Error("the JSON text is over 4 GiB");
    sizes_.reserve(std::min(text.size() / usual_bytes_per_size, most_));
    measure(text);
  }

  /// The size of the array or object that opens next.
  std::uint32_t next() noexcept { return next_ == sizes_.size() ? 0 : sizes_[next_++]; }

  std::size_t memory() const noexcept { return sizes_.size() * sizeof(std::uint32_t); }
  std::size_t budget_left() const noexcept { return most_ * sizeof(std::uint32_t) - memory(); }

 private:
  static constexpr std::size_t usual_bytes_per_size = 20;

  void measure(std::string_view text) {
    const char* at = text.data();
    const char* const end = at + text.size();
    std::uint32_t open[max_levels];
    std::size_t level = 0;
    while (at != end) {
      switch (*at++) {
        case '"':
          at = skip_string(at, end);
          break;
        case '[':
        case '{':
          if (level == max_levels) refuse_depth(static_cast<std::size_t>(at - text.data()) - 1);
          if (sizes_.size() == most_) throw Error(over_budget);
          open[level++] = static_cast<std::uint32_t>(sizes_.size());
          while (at != end && detail::is_json_blank(*at)) ++at;
          sizes_.push_back(at == end || *at == ']' || *at == '}' ? 0 : 1);
          break;
        case ']':
        case '}':
          if (level == 0 || --level == 0) return;  // the value ends here, or a fault
          break;
        case ',':
          if (level == 0) return;
          ++sizes_[open[level - 1]];
          break;
        default:
          break;
      }
    }
  }

  static const char* skip_string(const char* at, const char* end) noexcept {
    while ((at = detail::json_special(at, end)) != end) {
      const char c = *at++;
      if (c == '"') return at;
      if (c == '\\' && at != end) ++at;
    }
    return end;
  }

  [[noreturn]] static void refuse_depth(std::size_t offset) {
    throw Error("more than " + std::to_string(max_levels) + " arrays and objects lie inside each other", offset);
  }

  std::vector<std::uint32_t> sizes_;
  std::size_t next_ = 0;
  std::size_t most_;
};

}  // namespace pt2wire
