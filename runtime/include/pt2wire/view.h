// Part of pt2wire. View storage: the containers of a document that refers to its bytes instead of copying them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>

#include "pt2wire/arena.h"
#include "pt2wire/error.h"
#include "pt2wire/limits.h"
#include "pt2wire/map_index.h"
#include "pt2wire/traits.h"

namespace pt2wire {

/// A read-only sequence in a document's arena.
template <class T>
class Span {
 public:
  using value_type = T;
  using const_iterator = const T*;

  Span() = default;
  Span(const T* items, std::size_t size) noexcept : items_(items), size_(size) {}

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  const T* data() const noexcept { return items_; }
  const T* begin() const noexcept { return items_; }
  const T* end() const noexcept { return items_ + size_; }
  /// Unchecked, as in the standard containers.
  const T& operator[](std::size_t index) const noexcept { return items_[index]; }
  const T& at(std::size_t index) const {
    if (index >= size_) {
      throw Error("index " + std::to_string(index) + " is out of range: the list has " + std::to_string(size_) +
                  " items");
    }
    return items_[index];
  }

 private:
  const T* items_ = nullptr;
  std::size_t size_ = 0;
};

/// One pair of a map.
template <class T>
struct Entry {
  std::string_view key;
  T value;
};

/// A read-only map with text keys in a document's arena. Keeps the order of the file; keys are unique.
///
/// More than a few entries get a hash index behind them, so `find` is constant in time.
template <class T>
class Map {
 public:
  using value_type = Entry<T>;
  using const_iterator = const Entry<T>*;

  Map() = default;

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  const Entry<T>* begin() const noexcept { return entries_; }
  const Entry<T>* end() const noexcept { return entries_ + size_; }

  /// The value of a key, or nullptr.
  const T* find(std::string_view key) const noexcept {
    const auto* const entry = detail::MapIndex::find(entries_, size_, index(), key);
    return entry == nullptr ? nullptr : &entry->value;
  }

  bool contains(std::string_view key) const noexcept { return find(key) != nullptr; }

  const T& at(std::string_view key) const {
    if (const T* value = find(key)) return *value;
    detail::MapIndex::refuse_missing(key);
  }

 private:
  friend struct ViewBuilder;

  // The index lies behind the entries. Without entries it is not looked at.
  const std::uint32_t* index() const noexcept { return reinterpret_cast<const std::uint32_t*>(entries_ + size_); }

  const Entry<T>* entries_ = nullptr;
  std::size_t size_ = 0;
};

/// A value kept beside its owner rather than inside, so that unions stay small. Reads like a pointer that is never null
/// once a document has been decoded.
template <class T>
class Indirect {
 public:
  Indirect() = default;
  explicit Indirect(const T* target) noexcept : target_(target) {}
  const T& operator*() const noexcept { return *target_; }
  const T* operator->() const noexcept { return target_; }
  explicit operator bool() const noexcept { return target_ != nullptr; }

 private:
  const T* target_ = nullptr;
};

template <class T>
inline constexpr bool is_indirect<Indirect<T>> = true;

/// Makes the containers of View storage while a document is being decoded. Over the budget it throws.
struct ViewBuilder {
  Arena& arena;

  static void string(std::string_view& out, std::string_view text) noexcept { out = text; }
  static void binary(Span<std::uint8_t>& out, std::string_view bytes) noexcept {
    out = Span<std::uint8_t>(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }

  template <class T>
  T* list(Span<T>& out, std::size_t size) {
    if (size == 0) return nullptr;
    T* const items = memory<T>(size);
    for (std::size_t i = 0; i != size; ++i) new (items + i) T();
    out = Span<T>(items, size);
    return items;
  }

  /// The i-th entry's key and value are filled in by the caller, who then calls `finish`.
  template <class T>
  Entry<T>* map(Map<T>& out, std::size_t size) {
    if (size == 0) return nullptr;
    // Entries and index are one piece of memory: `Map` finds its index behind its entries.
    const std::size_t index_bytes = detail::MapIndex::needed(size) ? 4 * detail::MapIndex::slots(size) : 0;
    const std::size_t units = size + (index_bytes + sizeof(Entry<T>) - 1) / sizeof(Entry<T>);
    auto* const entries = memory<Entry<T>>(units);
    for (std::size_t i = 0; i != size; ++i) new (entries + i) Entry<T>();
    out.entries_ = entries;
    out.size_ = size;
    return entries;
  }

  /// Checks that keys are unique, and builds the index.
  template <class T>
  void finish(Map<T>& out) {
    auto* const index = const_cast<std::uint32_t*>(out.index());
    const std::size_t slots = detail::MapIndex::needed(out.size_) ? detail::MapIndex::slots(out.size_) : 0;
    for (std::size_t slot = 0; slot != slots; ++slot) new (index + slot) std::uint32_t(detail::MapIndex::vacant);
    detail::MapIndex::fill(out.entries_, out.size_, index);
  }

  template <class T>
  T& indirect(Indirect<T>& out) {
    T& target = root<T>();
    out = Indirect<T>(&target);
    return target;
  }

  template <class T>
  T& root() {
    return *new (memory<T>(1)) T();
  }

 private:
  template <class T>
  T* memory(std::size_t count) {
    if (T* const items = arena.allocate<T>(count)) return items;
    throw Error(over_budget);
  }
};

/// Storage policy: text, lists and maps refer to the document's bytes and arena; nothing is copied.
struct View {
  using String = std::string_view;
  using Binary = Span<std::uint8_t>;
  template <class T>
  using List = Span<T>;
  template <class T>
  using Map = pt2wire::Map<T>;
  template <class T>
  using Indirect = pt2wire::Indirect<T>;
  using Builder = ViewBuilder;
};

}  // namespace pt2wire
