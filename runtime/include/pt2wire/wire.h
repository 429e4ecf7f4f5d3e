// Part of pt2wire. What a Thrift protocol shows to the decoder, whatever its encoding.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pt2wire {

/// Structs and unions that may lie inside each other, as in both Thrift runtimes.
inline constexpr int max_depth = 64;

/// The kinds of values on the wire, by their numbers in TCompact, which has two for bools: a field's value lies in its header
/// there. Readers of other protocols map their numbers to these, and never to `no`.
enum class Wire : std::uint8_t { stop, boolean, no, i8, i16, i32, i64, f64, text, list, set, map, structure, uuid };

inline constexpr std::string_view wire_names[] = {"stop", "bool", "bool", "i8",  "i16", "i32",    "i64",
                                                  "double", "text", "list", "set", "map", "struct", "uuid"};

constexpr std::string_view wire_name(Wire wire) noexcept { return wire_names[static_cast<std::uint8_t>(wire)]; }

/// Whether a value on the wire is what is `wanted` there.
constexpr bool fits(Wire found, Wire wanted) noexcept {
  return found == wanted || (wanted == Wire::boolean && found == Wire::no);
}

/// A field's id and what lies on the wire, in one number: comparing that is all that a field which is expected takes.
class FieldHeader {
 public:
  /// Where a struct begins.
  constexpr FieldHeader() = default;
  constexpr FieldHeader(std::int32_t id, Wire wire) noexcept : number_(id * 16 + static_cast<int>(wire)) {}

  constexpr std::int32_t id() const noexcept { return number_ >> 4; }
  constexpr Wire wire() const noexcept { return static_cast<Wire>(number_ & 15); }

  /// Where a struct ends: no id is so low.
  static constexpr FieldHeader end() noexcept { return FieldHeader(2 * INT16_MIN, Wire::stop); }
  constexpr bool is_end() const noexcept { return *this == end(); }

  /// The header behind this one, of which TCompact has the type in the low half of a byte, in the high one how much greater
  /// the id is.
  constexpr FieldHeader next(std::uint8_t byte) const noexcept {
    FieldHeader header;
    header.number_ = (number_ & ~15) + byte;
    return header;
  }

  constexpr bool operator==(FieldHeader other) const noexcept { return number_ == other.number_; }
  constexpr bool operator!=(FieldHeader other) const noexcept { return number_ != other.number_; }

 private:
  std::int32_t number_ = 0;
};

/// Why no field has such an id: those of a schema begin at 1.
inline std::string low_id(std::int32_t id) { return "the field id " + std::to_string(id) + " is below 1"; }

struct ListHeader {
  Wire item;
  std::uint32_t size;
};

/// Of an empty map, TCompact does not say the types: `key` and `value` are `stop` then.
struct MapHeader {
  Wire key;
  Wire value;
  std::uint32_t size;
};

}  // namespace pt2wire
