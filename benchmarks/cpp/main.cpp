// Times the decoders and encoders, taking turns in every round, each time in another order, and counts what one run of each
// takes of the heap. Arguments: rounds, a program as Thrift compact, the same as JSON. One line a decoder: name, nodes, peak
// bytes, allocations, and the milliseconds of the processor in each round.
#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "decoders.h"

namespace {

std::size_t allocations = 0, now = 0, peak = 0;
bool counting = false;

void gained(void* memory) noexcept {
  if (!counting || memory == nullptr) return;
  ++allocations;
  now += malloc_usable_size(memory);
  peak = std::max(peak, now);
}

void lost(void* memory) noexcept {
  if (counting && memory != nullptr) now -= malloc_usable_size(memory);
}

/// Of the processor's time: what others run on the machine counts less so.
double milliseconds() {
  timespec time;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

std::string content(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

}  // namespace

// All of the heap, libraries' and buffers that grow by realloc included: this program's malloc comes before the C library's.
extern "C" {
void* __libc_malloc(std::size_t) noexcept;
void* __libc_calloc(std::size_t, std::size_t) noexcept;
void* __libc_realloc(void*, std::size_t) noexcept;
void __libc_free(void*) noexcept;

void* malloc(std::size_t size) noexcept {
  void* const memory = __libc_malloc(size);
  gained(memory);
  return memory;
}

void* calloc(std::size_t count, std::size_t size) noexcept {
  void* const memory = __libc_calloc(count, size);
  gained(memory);
  return memory;
}

void* realloc(void* memory, std::size_t size) noexcept {
  lost(memory);
  void* const moved = __libc_realloc(memory, size);
  gained(moved);
  return moved;
}

void free(void* memory) noexcept {
  lost(memory);
  __libc_free(memory);
}
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int rounds = std::atoi(argv[1]);
  const std::string compact = content(argv[2]);
  const std::string json = content(argv[3]);
  struct Decoder {
    const char* name;
    std::size_t (*decode)(const std::string&);
    const std::string& input;
    std::vector<double> times;
  };
  Decoder decoders[] = {
      {"view", decode_view, compact, {}},
      {"owned", decode_owned, compact, {}},
      {"adapter", decode_adapter, compact, {}},
      {"apache", decode_apache, compact, {}},
      {"json-view", decode_json_view, json, {}},
      {"json-owned", decode_json_owned, json, {}},
      {"nlohmann", decode_nlohmann, json, {}},
      {"encode-view", encode_view, compact, {}},
      {"encode-owned", encode_owned, compact, {}},
      {"encode-adapter", encode_adapter, compact, {}},
      {"encode-apache", encode_apache, compact, {}},
  };
  // Each leaves caches and free memory to the next: none should follow the same one always.
  std::vector<Decoder*> order;
  for (Decoder& decoder : decoders) order.push_back(&decoder);
  std::mt19937 chance(1);
  for (int round = 0; round != rounds; ++round) {
    std::shuffle(order.begin(), order.end(), chance);
    for (Decoder* const decoder : order) {
      const double start = milliseconds();
      decoder->decode(decoder->input);
      decoder->times.push_back(milliseconds() - start);
    }
  }
  for (Decoder& decoder : decoders) {
    allocations = now = peak = 0;
    counting = true;
    const std::size_t nodes = decoder.decode(decoder.input);
    counting = false;
    std::printf("%s %zu %zu %zu", decoder.name, nodes, peak, allocations);
    for (const double time : decoder.times) std::printf(" %.5f", time);
    std::printf("\n");
  }
  return 0;
}
