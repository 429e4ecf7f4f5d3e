// Part of pt2wire. What a Thrift protocol shows to the decoder, whatever its encoding.
#pragma once

#include <cstdint>
#include <string_view>

namespace pt2wire {

/// Structs and unions that may lie inside each other, as in both Thrift runtimes.
inline constexpr int max_depth = 64;

/// The kinds of values on the wire that a schema can use. Readers map their protocol's type numbers to these.
enum class Wire : std::uint8_t { stop, boolean, i8, i16, i32, i64, f64, text, list, set, map, structure, uuid };

constexpr std::string_view wire_name(Wire wire) noexcept {
  constexpr std::string_view names[] = {"stop", "bool", "i8",  "i16", "i32",    "i64", "double",
                                        "text", "list", "set", "map", "struct", "uuid"};
  return names[static_cast<std::uint8_t>(wire)];
}

/// A field's header. `value` is the value itself when TCompact puts a bool into the header.
struct FieldHeader {
  std::int16_t id = 0;
  Wire wire = Wire::stop;
  bool value = false;
};

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
