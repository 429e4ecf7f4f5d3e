// Part of pt2wire. The memory of a decoded document: a few large blocks, freed at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace pt2wire {

/// A bump allocator with a budget. Objects in it are never destroyed one by one, so they must not need it.
///
/// The budget is what stops a small hostile input from filling memory: `allocate` answers nullptr beyond it.
class Arena {
 public:
  /// `input_size` is the size of the document to come. Real ones need half of it to all of it, so blocks of a tenth are
  /// few and mostly used.
  Arena(std::size_t input_size, std::size_t budget)
      : block_size_(std::max(input_size / 10, smallest_block)), budget_(budget) {
    blocks_.reserve(usual_blocks);
  }

  Arena(Arena&& other) noexcept { swap(other); }
  Arena& operator=(Arena&& other) noexcept {
    swap(other);
    return *this;
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() = default;

  /// Memory for `count` objects of type T, not yet constructed; nullptr if that is over the budget.
  template <class T>
  T* allocate(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T>, "the arena never runs destructors");
    static_assert(alignof(T) <= unit, "every object in the arena is aligned to one unit");
    if (count > (budget_ - used_) / sizeof(T)) return nullptr;  // divided: a product could overflow
    return static_cast<T*>(take(count * sizeof(T)));
  }

  std::size_t bytes_used() const noexcept { return used_; }
  std::size_t block_count() const noexcept { return blocks_.size(); }

 private:
  static constexpr std::size_t unit = 8;
  static constexpr std::size_t smallest_block = 4096;
  static constexpr std::size_t usual_blocks = 12;

  void* take(std::size_t size) {
    const std::size_t rounded = (size + unit - 1) & ~(unit - 1);
    used_ = std::min(used_ + rounded, budget_);
    if (rounded > left_) {
      if (rounded > block_size_) return add_block(rounded);  // its own block: the current one goes on being filled
      next_ = add_block(block_size_);
      left_ = block_size_;
      // Beyond the usual, geometric: the count of blocks grows with the logarithm of the memory.
      if (blocks_.size() >= usual_blocks) block_size_ += block_size_ / 2;
    }
    std::byte* const memory = next_;
    next_ += rounded;
    left_ -= rounded;
    return memory;
  }

  std::byte* add_block(std::size_t size) {
    blocks_.push_back(std::unique_ptr<std::byte[]>(new std::byte[size]));
    return blocks_.back().get();
  }

  void swap(Arena& other) noexcept {
    std::swap(blocks_, other.blocks_);
    std::swap(block_size_, other.block_size_);
    std::swap(next_, other.next_);
    std::swap(left_, other.left_);
    std::swap(budget_, other.budget_);
    std::swap(used_, other.used_);
  }

  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::size_t block_size_ = smallest_block;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
  std::size_t budget_ = 0;
  std::size_t used_ = 0;
};

}  // namespace pt2wire
