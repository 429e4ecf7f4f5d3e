// Prints what decoding a program costs: sizes of types, allocations, peak of the heap. One line a figure. The arguments are
// a file, and "json" if that is JSON.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <malloc.h>
#include <new>
#include <string>

#include "pt2wire/json.h"

namespace {

std::size_t allocations = 0;
std::size_t now = 0;
std::size_t peak = 0;

void* counted(std::size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  ++allocations;
  now += malloc_usable_size(memory);
  if (now > peak) peak = now;
  return memory;
}

void released(void* memory) noexcept {
  if (memory != nullptr) now -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* memory) noexcept { released(memory); }
void operator delete[](void* memory) noexcept { released(memory); }
void operator delete(void* memory, std::size_t) noexcept { released(memory); }
void operator delete[](void* memory, std::size_t) noexcept { released(memory); }

int main(int argc, char** argv) {
  using namespace pt2wire;
  if (argc < 2) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::printf("Argument %zu\nSymInt %zu\n", sizeof(Argument), sizeof(SymInt));
  const std::size_t before = now;
  allocations = 0;
  peak = now;
  {
    const Bytes input = Bytes::borrow(bytes.data(), bytes.size());
    const auto document = argc == 2 ? decode_compact<ExportedProgram>(input) : decode_json<ExportedProgram>(input);
    std::printf("nodes %zu\n", document->graph_module.graph.nodes.size());
  }
  std::printf("input %zu\nallocations %zu\npeak %zu\nleft %zu\n", bytes.size(), allocations, peak - before, now - before);
  return 0;
}
