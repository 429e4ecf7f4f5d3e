// Part of pt2wire. A cursor over Thrift's compact encoding in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "pt2wire/error.h"
#include "pt2wire/utf8.h"
#include "pt2wire/wire.h"

namespace pt2wire {

/// Reads TCompact values one after the other. Never reads beyond the end, never allocates; anything malformed is an
/// `Error` with the offset of the value at fault.
class CompactReader {
 public:
  /// At most `levels` structs and unions may lie inside each other.
  CompactReader(const std::uint8_t* data, std::size_t size, int levels = max_depth) noexcept
      : begin_(data), at_(data), end_(data + size), levels_(levels) {}

  std::size_t offset() const noexcept { return static_cast<std::size_t>(at_ - begin_); }
  std::size_t remaining() const noexcept { return static_cast<std::size_t>(end_ - at_); }

  [[noreturn]] void fail(std::string reason) const { throw Error(std::move(reason), offset()); }

  /// Checks that nothing follows.
  void end() const {
    if (remaining() != 0) fail(std::to_string(remaining()) + " bytes follow the end of the struct");
  }

  void enter_struct() {
    if (++depth_ > levels_) refuse_depth();
  }
  void leave_struct() noexcept { --depth_; }

  /// The header behind a field's (ids are written as differences), which nobody has judged yet: `check_field` does.
  [[gnu::always_inline]] FieldHeader next_field(FieldHeader previous) {
    const std::uint8_t byte = take_byte();
    if (byte >= 16) return previous.next(byte);
    return byte == 0 ? FieldHeader::end() : next_far_field(byte);
  }

  /// Refuses a header that no schema could have a field for.
  void check_field(FieldHeader field) const {
    if (field.id() > INT16_MAX) refuse_delta();
    check_wire(field.wire());
    if (field.id() < 1) fail(low_id(field.id()));
  }

  /// Refuses a type number without a meaning.
  void check_wire(Wire wire) const {
    if (wire == Wire::stop || wire > Wire::uuid) refuse_type(static_cast<std::uint8_t>(wire));
  }

  /// The value of a bool field lies in its header.
  bool read_bool(FieldHeader field) const noexcept { return field.wire() == Wire::boolean; }

  bool read_bool_item() {
    const std::uint8_t byte = take_byte();
    if (byte != 1 && byte != 2) fail_before(1, "a bool in a list or map is 1 or 2, not " + std::to_string(byte));
    return byte == 1;
  }

  std::int32_t read_i32() { return unzigzag(read_varint<std::uint32_t>()); }
  std::int64_t read_i64() { return unzigzag(read_varint<std::uint64_t>()); }

  double read_double() {
    if (remaining() < 8) fail_truncated("a double");
    std::uint64_t bits = 0;
    for (int i = 0; i != 8; ++i) bits |= static_cast<std::uint64_t>(at_[i]) << (8 * i);
    at_ += 8;
    double value;
    static_assert(sizeof value == sizeof bits);
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

  [[gnu::noinline]] std::string_view read_text() {
    const std::string_view text = take_text();
    if (const std::size_t valid = valid_utf8_prefix(text); valid != text.size()) refuse_text(text.size() - valid);
    return text;
  }

  std::string_view read_binary() { return take_text(); }

  ListHeader read_list() {
    const std::uint8_t byte = take_byte();
    const std::uint32_t size = (byte >> 4) == 15 ? read_varint<std::uint32_t>() : byte >> 4;
    return {static_cast<Wire>(byte & 15), size};
  }
  void end_list() const noexcept {}

  MapHeader read_map() {
    const auto size = read_varint<std::uint32_t>();
    if (size == 0) return {Wire::stop, Wire::stop, 0};
    const std::uint8_t types = take_byte();
    return {static_cast<Wire>(types >> 4), static_cast<Wire>(types & 15), size};
  }
  void end_map() const noexcept {}

  /// Skips the value of a field.
  void skip(FieldHeader field) { skip_field(field, depth_); }

 private:
  std::uint8_t take_byte() {
    if (at_ == end_) fail_truncated("the next byte");
    return *at_++;
  }

  std::string_view take_text() {
    const auto size = read_varint<std::uint32_t>();
    if (size > remaining()) refuse_size(size);
    const std::string_view text(reinterpret_cast<const char*>(at_), size);
    at_ += size;
    return text;
  }

  /// A header whose id is not written as a difference: fields do not ascend, or are far apart.
  [[gnu::noinline]] FieldHeader next_far_field(std::uint8_t type) {
    const std::int32_t id = read_i32();
    if (id < INT16_MIN || id > INT16_MAX) refuse_id(id);
    return FieldHeader(id, static_cast<Wire>(type));
  }

  template <class Unsigned>
  Unsigned read_varint() {
    const std::uint8_t byte = take_byte();
    return byte < 0x80 ? byte : read_long_varint<Unsigned>(byte);
  }

  template <class Unsigned>
  Unsigned read_long_varint(std::uint8_t byte) {
    constexpr int bits = 8 * sizeof(Unsigned);
    const std::size_t start = offset() - 1;
    Unsigned value = byte & 0x7f;
    for (int shift = 7;; shift += 7) {
      byte = take_byte();
      const std::uint8_t digit = byte & 0x7f;
      if (shift >= bits || (shift + 7 > bits && digit >> (bits - shift) != 0)) {
        throw Error("the varint is wider than " + std::to_string(bits) + " bits", start);
      }
      value |= static_cast<Unsigned>(digit) << shift;
      if (byte < 0x80) {
        if (digit == 0) throw Error("the varint is longer than its value needs", start);
        return value;
      }
    }
  }

  static std::int32_t unzigzag(std::uint32_t n) noexcept { return static_cast<std::int32_t>((n >> 1) ^ (0 - (n & 1))); }
  static std::int64_t unzigzag(std::uint64_t n) noexcept { return static_cast<std::int64_t>((n >> 1) ^ (0 - (n & 1))); }

  // Inside skipped fields containers count as levels too, as what a hostile file would nest, and, as in Thrift's own
  // runtimes, what they hold.
  void skip_value(Wire wire, int depth) {
    check_skipped(depth);
    switch (wire) {
      case Wire::stop: return;  // no header has it
      case Wire::boolean: case Wire::no: read_bool_item(); return;
      case Wire::i8: take_byte(); return;
      case Wire::i16: skip_i16(); return;
      case Wire::i32: read_i32(); return;
      case Wire::i64: read_i64(); return;
      case Wire::f64: read_double(); return;
      case Wire::text: take_text(); return;
      case Wire::uuid: skip_bytes(16); return;
      case Wire::list: case Wire::set: skip_list(depth); return;
      case Wire::map: skip_map(depth); return;
      case Wire::structure: skip_struct(depth); return;
    }
  }

  void skip_field(FieldHeader field, int depth) {
    check_field(field);
    if (!fits(field.wire(), Wire::boolean)) return skip_value(field.wire(), depth + 1);
    check_skipped(depth + 1);  // the value lies in the header
  }

  void skip_struct(int depth) {
    FieldHeader field;
    while (!(field = next_field(field)).is_end()) skip_field(field, depth);
  }

  void skip_list(int depth) {
    const ListHeader list = read_list();
    check_wire(list.item);
    for (std::uint32_t i = 0; i != list.size; ++i) skip_value(list.item, depth + 1);
  }

  void skip_map(int depth) {
    const MapHeader map = read_map();
    if (map.size == 0) return;
    check_wire(map.key);
    check_wire(map.value);
    for (std::uint32_t i = 0; i != map.size; ++i) {
      skip_value(map.key, depth + 1);
      skip_value(map.value, depth + 1);
    }
  }

  void skip_i16() {
    const std::int32_t value = read_i32();
    if (value < INT16_MIN || value > INT16_MAX) fail("an i16 of more than 16 bits");
  }

  void skip_bytes(std::size_t count) {
    if (remaining() < count) fail_truncated("a value");
    at_ += count;
  }

  void check_skipped(int depth) const {
    if (depth > max_depth) fail("more than 64 levels lie inside each other in an unknown field");
  }

  // Apart from the code that finds the fault, so that this stays short and is inlined.

  [[gnu::noinline, gnu::cold, noreturn]] void refuse_type(std::uint8_t type) const {
    fail_before(1, "the type number " + std::to_string(type) + " has no meaning in TCompact");
  }

  [[gnu::noinline, gnu::cold, noreturn]] void refuse_size(std::uint32_t size) const {
    fail("a text of " + std::to_string(size) + " bytes, with " + std::to_string(remaining()) + " bytes left");
  }

  [[gnu::noinline, gnu::cold, noreturn]] void refuse_text(std::size_t back) const {
    fail_before(back, "the text is not valid UTF-8");
  }

  [[gnu::noinline, gnu::cold, noreturn]] void refuse_delta() const { fail_before(1, "the field id is over 32767"); }

  [[gnu::noinline, gnu::cold, noreturn]] void refuse_depth() const {
    fail("more than " + std::to_string(levels_) + " structs and unions lie inside each other");
  }

  [[gnu::noinline, gnu::cold, noreturn]] void refuse_id(std::int32_t id) const {
    fail("the field id " + std::to_string(id) + " is over 16 bits");
  }

  [[gnu::noinline, gnu::cold, noreturn]] void fail_before(std::size_t back, std::string reason) const {
    throw Error(std::move(reason), offset() - back);
  }

  [[gnu::noinline, gnu::cold, noreturn]] void fail_truncated(const char* what) const {
    fail(std::string("the bytes end where ") + what + " should be");
  }

  const std::uint8_t* begin_;
  const std::uint8_t* at_;
  const std::uint8_t* end_;
  int levels_;
  int depth_ = 0;
};

}  // namespace pt2wire
