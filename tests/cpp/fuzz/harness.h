// What the fuzzers share: demands that end the process, and the memory that a step takes.
#pragma once

#include <sanitizer/allocator_interface.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace fuzzing {

/// Bytes that any step may take on top of its input, whatever the input is.
inline constexpr std::size_t most_memory = std::size_t{64} << 20;

inline void demand(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "demand failed: %s\n", what.c_str());
  std::abort();
}

namespace detail {

struct Heap {
  bool counting = false;
  long long now = 0, peak = 0;
};
inline Heap heap;

inline void allocated(const volatile void*, std::size_t size) {
  if (!heap.counting) return;
  heap.now += static_cast<long long>(size);
  if (heap.now > heap.peak) heap.peak = heap.now;
}

inline void released(const volatile void* memory) {
  if (!heap.counting || memory == nullptr) return;
  heap.now -= static_cast<long long>(__sanitizer_get_allocated_size(const_cast<const void*>(memory)));
}

inline const int installed = __sanitizer_install_malloc_and_free_hooks(allocated, released);

struct Counting {
  Counting() {
    demand(installed > 0, "the allocator cannot be watched");
    heap = {true, 0, 0};
  }
  ~Counting() { heap.counting = false; }
};

}  // namespace detail

/// Runs a step, which must not have more than `limit` bytes of the heap at a time.
template <class F>
auto limited(std::size_t limit, F&& step) -> decltype(step()) {
  struct Check {
    std::size_t limit;
    detail::Counting counting;
    ~Check() {
      const auto peak = static_cast<std::size_t>(detail::heap.peak);
      demand(peak <= limit, std::to_string(peak) + " bytes of the heap, more than " + std::to_string(limit));
    }
  } check{limit, {}};
  return std::forward<F>(step)();
}

}  // namespace fuzzing
