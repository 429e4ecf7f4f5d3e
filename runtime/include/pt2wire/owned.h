// Part of pt2wire. Owned storage: the standard containers, for trees that are built, edited and written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pt2wire/error.h"
#include "pt2wire/limits.h"
#include "pt2wire/map_index.h"
#include "pt2wire/traits.h"

namespace pt2wire {

/// One pair of a FlatMap.
template <class T>
struct OwnedEntry {
  std::string key;
  T value;
};

/// A map with text keys that keeps the order in which keys came; keys are unique.
///
/// `find` is constant in time; `erase` moves the entries behind. Iteration shows entries that cannot be changed, as keys
/// must not; `find`, `at`, `operator[]` and `each` give values that can. Adding or erasing a key moves the values.
template <class T>
class FlatMap {
 public:
  using value_type = OwnedEntry<T>;
  using const_iterator = const OwnedEntry<T>*;

  FlatMap() = default;

  std::size_t size() const noexcept { return entries_.size(); }
  bool empty() const noexcept { return entries_.empty(); }
  const OwnedEntry<T>* begin() const noexcept { return entries_.data(); }
  const OwnedEntry<T>* end() const noexcept { return entries_.data() + entries_.size(); }

  /// The value of a key, or nullptr.
  const T* find(std::string_view key) const noexcept {
    const auto* const entry = detail::MapIndex::find(entries_.data(), entries_.size(), index_.data(), key);
    return entry == nullptr ? nullptr : &entry->value;
  }
  T* find(std::string_view key) noexcept { return const_cast<T*>(std::as_const(*this).find(key)); }

  bool contains(std::string_view key) const noexcept { return find(key) != nullptr; }

  const T& at(std::string_view key) const {
    if (const T* value = find(key)) return *value;
    detail::MapIndex::refuse_missing(key);
  }
  T& at(std::string_view key) { return const_cast<T&>(std::as_const(*this).at(key)); }

  /// The value of a key, which is added at the end if it is not there.
  T& operator[](std::string_view key) {
    if (T* value = find(key)) return *value;
    entries_.push_back({std::string(key), T()});
    index_last();
    return entries_.back().value;
  }

  /// Removes a key; the others keep their order. False if it was not there.
  bool erase(std::string_view key) {
    const T* const value = find(key);
    if (value == nullptr) return false;
    const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](auto& e) { return &e.value == value; });
    entries_.erase(entry);
    index_all();
    return true;
  }

  void clear() noexcept {
    entries_.clear();
    index_.clear();
  }

  /// Calls `f(key, value)` for all entries in order; the value may be changed.
  template <class F>
  void each(F&& f) {
    for (auto& entry : entries_) f(std::as_const(entry.key), entry.value);
  }

 private:
  friend struct OwnedBuilder;

  void index_last() {
    const std::size_t size = entries_.size();
    if (!detail::MapIndex::needed(size)) return;
    if (index_.size() != detail::MapIndex::slots(size)) return index_all();
    place(size - 1);
  }

  void index_all() {
    const std::size_t size = entries_.size();
    index_.assign(detail::MapIndex::needed(size) ? detail::MapIndex::slots(size) : 0, detail::MapIndex::vacant);
    for (std::size_t i = 0; !index_.empty() && i != size; ++i) place(i);
  }

  void place(std::size_t position) {
    const std::size_t mask = index_.size() - 1;
    std::size_t slot = detail::hash(entries_[position].key) & mask;
    while (index_[slot] != detail::MapIndex::vacant) slot = (slot + 1) & mask;
    index_[slot] = static_cast<std::uint32_t>(position);
  }

  std::vector<OwnedEntry<T>> entries_;
  std::vector<std::uint32_t> index_;
};

/// A value on the heap that is copied with its owner, so that unions stay small. Empty only after it was moved from.
template <class T>
class Box {
 public:
  Box() : target_(std::make_unique<T>()) {}
  explicit Box(T value) : target_(std::make_unique<T>(std::move(value))) {}
  Box(const Box& other) : target_(other.target_ ? std::make_unique<T>(*other.target_) : nullptr) {}
  Box(Box&& other) noexcept = default;
  Box& operator=(const Box& other) { return *this = Box(other); }
  Box& operator=(Box&& other) noexcept = default;
  ~Box() = default;

  const T& operator*() const noexcept { return *target_; }
  T& operator*() noexcept { return *target_; }
  const T* operator->() const noexcept { return target_.get(); }
  T* operator->() noexcept { return target_.get(); }

 private:
  std::unique_ptr<T> target_;
};

template <class T>
inline constexpr bool is_indirect<Box<T>> = true;

/// Makes the containers of Owned storage while a document is being decoded. Over the budget, in bytes, it throws.
struct OwnedBuilder {
  std::size_t budget;

  void string(std::string& out, std::string_view text) {
    if (text.size() > longest_inside) spend(text.size(), 1);
    out = std::string(text);  // faster than assigning, which looks after what was there
  }
  void binary(std::vector<std::uint8_t>& out, std::string_view bytes) {
    spend(bytes.size(), 1);
    out.assign(bytes.begin(), bytes.end());
  }

  template <class T>
  auto list(std::vector<T>& out, std::size_t size) {
    spend(size, sizeof(T));
    out.resize(size);
    return out.begin();
  }

  template <class T>
  auto map(FlatMap<T>& out, std::size_t size) {
    spend(size, sizeof(OwnedEntry<T>));
    if (detail::MapIndex::needed(size)) {
      spend(detail::MapIndex::slots(size), sizeof(std::uint32_t));
      out.index_.assign(detail::MapIndex::slots(size), detail::MapIndex::vacant);
    }
    out.entries_.resize(size);
    return out.entries_.begin();
  }

  /// Checks that keys are unique, and builds the index.
  template <class T>
  void finish(FlatMap<T>& out) {
    detail::MapIndex::fill(out.entries_.data(), out.entries_.size(), out.index_.data());
  }

  template <class T>
  T& indirect(Box<T>& out) {
    spend(1, sizeof(T));
    return *out;
  }

 private:
  static constexpr std::size_t longest_inside = 15;  // text that lies within a std::string

  void spend(std::size_t count, std::size_t size) {
    if (count > budget / size) throw Error(over_budget);  // divided: a product could overflow
    budget -= count * size;
  }
};

/// Storage policy: text, lists and maps are the standard ones (the map keeps its order), and trees can be copied.
struct Owned {
  using String = std::string;
  using Binary = std::vector<std::uint8_t>;
  template <class T>
  using List = std::vector<T>;
  template <class T>
  using Map = FlatMap<T>;
  template <class T>
  using Indirect = Box<T>;
  using Builder = OwnedBuilder;
};

}  // namespace pt2wire
