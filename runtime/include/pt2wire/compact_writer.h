// Part of pt2wire. Writes Thrift's compact encoding into a buffer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "pt2wire/bytes.h"
#include "pt2wire/wire.h"

namespace pt2wire {

/// Appends TCompact values to a buffer that grows, in the one form that all Thrift runtimes write: field ids as
/// differences where they fit, varints as short as can be.
class CompactWriter {
 public:
  CompactWriter() = default;
  /// With room for so many bytes.
  explicit CompactWriter(std::size_t capacity) { grow(capacity); }
  CompactWriter(const CompactWriter&) = delete;
  CompactWriter& operator=(const CompactWriter&) = delete;
  ~CompactWriter() { std::free(buffer_); }

  /// What was written.
  std::string finish() const { return std::string(buffer_, size_); }

  /// The same without a copy; nothing is left here.
  Bytes release() {
    char* const buffer = std::exchange(buffer_, nullptr);
    capacity_ = 0;
    return Bytes::share(buffer, std::exchange(size_, 0), std::shared_ptr<void>(buffer, std::free));
  }

  std::size_t size() const noexcept { return size_; }

  void begin_struct() noexcept {}
  void end_struct() { put(0); }

  /// `previous` is the id of the field before it in the struct, 0 for the first; it becomes this one's.
  void begin_field(std::int16_t& previous, std::int16_t id, Wire wire) {
    const int delta = id - previous;
    previous = id;
    if (delta > 0 && delta <= 15) return put(static_cast<std::uint8_t>(delta << 4 | number(wire)));
    put(number(wire));
    write_i32(id);
  }
  void end_field() noexcept {}
  /// A field that is a bool: its value lies in the header.
  void bool_field(std::int16_t& previous, std::int16_t id, bool value) {
    begin_field(previous, id, bool_wire(value));
  }

  void begin_list(Wire item, std::uint32_t size) {
    if (size < 15) {
      put(static_cast<std::uint8_t>(size << 4 | number(item)));
    } else {
      put(static_cast<std::uint8_t>(0xf0 | number(item)));
      varint(size);
    }
  }
  void end_list() noexcept {}

  void begin_map(Wire value, std::uint32_t size) {
    varint(size);
    if (size != 0) put(static_cast<std::uint8_t>(number(Wire::text) << 4 | number(value)));
  }
  void end_map() noexcept {}

  void write_bool(bool value) { put(number(bool_wire(value))); }
  void write_i32(std::int32_t value) {
    const auto bits = static_cast<std::uint32_t>(value);
    varint(static_cast<std::uint32_t>(bits << 1 ^ (value < 0 ? 0xffffffffu : 0)));
  }
  void write_i64(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    varint(bits << 1 ^ (value < 0 ? 0xffffffffffffffffu : 0));
  }
  void write_double(double value) {
    std::uint64_t bits;
    static_assert(sizeof value == sizeof bits);
    std::memcpy(&bits, &value, sizeof bits);
    char* const at = room(8);
    for (int i = 0; i != 8; ++i) at[i] = static_cast<char>(bits >> (8 * i) & 0xff);
    size_ += 8;
  }
  void write_text(std::string_view text) {
    varint(text.size());
    if (text.empty()) return;
    std::memcpy(room(text.size()), text.data(), text.size());
    size_ += text.size();
  }
  void write_binary(std::string_view bytes) { write_text(bytes); }

 private:
  static constexpr std::size_t first_size = 4096;

  static constexpr std::uint8_t number(Wire wire) noexcept { return static_cast<std::uint8_t>(wire); }
  static constexpr Wire bool_wire(bool value) noexcept { return value ? Wire::boolean : Wire::no; }

  char* room(std::size_t count) {
    if (capacity_ - size_ < count) grow(count);
    return buffer_ + size_;
  }

  void grow(std::size_t count) {
    const std::size_t capacity = size_ + std::max({size_, count, first_size});
    // Not a std::string, which would clear and copy: the memory of large blocks is moved by its pages.
    void* const buffer = std::realloc(buffer_, capacity);
    if (buffer == nullptr) throw std::bad_alloc();
    buffer_ = static_cast<char*>(buffer);
    capacity_ = capacity;
  }

  void put(std::uint8_t byte) {
    *room(1) = static_cast<char>(byte);
    ++size_;
  }

  void varint(std::uint64_t value) {
    char* const start = room(10);
    char* at = start;
    for (; value >= 0x80; value >>= 7) *at++ = static_cast<char>((value & 0x7f) | 0x80);
    *at++ = static_cast<char>(value);
    size_ += static_cast<std::size_t>(at - start);
  }

  char* buffer_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace pt2wire
