// Part of pt2wire. A range of read-only bytes and whoever keeps it alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pt2wire {

/// Read-only bytes with shared ownership: of a buffer, of a mapped file, or (borrowed) of nothing.
///
/// Copies are cheap and refer to the same bytes, which live as long as any copy does.
class Bytes {
 public:
  Bytes() = default;

  /// Takes over a buffer.
  static Bytes own(std::string buffer) { return adopt(std::move(buffer)); }
  static Bytes own(std::vector<std::uint8_t> buffer) { return adopt(std::move(buffer)); }

  /// Refers to bytes that the caller keeps alive, longer than anything made from them.
  static Bytes borrow(const void* data, std::size_t size) { return share(data, size, nullptr); }

  /// Refers to bytes that live as long as `owner`.
  static Bytes share(const void* data, std::size_t size, std::shared_ptr<const void> owner) {
    Bytes bytes;
    bytes.data_ = static_cast<const std::uint8_t*>(data);
    bytes.size_ = size;
    bytes.owner_ = std::move(owner);
    return bytes;
  }

  const std::uint8_t* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  const std::uint8_t* begin() const noexcept { return data_; }
  const std::uint8_t* end() const noexcept { return data_ + size_; }
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(data_), size_}; }

  /// A part of these bytes with the same owner. The caller has checked that the part lies within.
  Bytes part(std::size_t offset, std::size_t size) const { return share(data_ + offset, size, owner_); }

 private:
  template <class Buffer>
  static Bytes adopt(Buffer buffer) {
    // On the heap: the characters of a short std::string would move with it.
    auto owner = std::make_shared<Buffer>(std::move(buffer));
    return share(owner->data(), owner->size(), owner);
  }

  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  std::shared_ptr<const void> owner_;
};

}  // namespace pt2wire
