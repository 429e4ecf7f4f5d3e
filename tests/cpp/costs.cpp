// Prints what reading a file costs: allocations and peak of the heap, one line a figure. The arguments are the file and what
// it is: "compact" or "json" for a program in that form, "archive" for an archive of which everything is read,
// "archive-within-64-MiB" for the same under `ArchiveOptions::within`, one record at a time. Of a program also the sizes of
// types; if the file is refused, the error.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <malloc.h>
#include <new>
#include <string>
#include <vector>

#include "pt2wire/archive.h"

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

namespace {

using namespace pt2wire;

template <class Step>
void attempt(Step&& step) {
  try {
    step();
  } catch (const Error& error) {
    std::printf("error %s\n", error.what());
  }
}

/// All that a program may hold of an archive, all records together or one at a time.
void read_archive(const Bytes& bytes, const ArchiveOptions& options, bool at_once) {
  const auto archive = Archive::from_memory(bytes, "<memory>", options);
  for (const std::string& name : archive.program_names()) {
    attempt([&] { std::printf("nodes %zu\n", archive.program(name)->graph_module.graph.nodes.size()); });
    attempt([&] { std::printf("weights %zu\n", archive.weights(name).list.size()); });
    attempt([&] { std::printf("constants %zu\n", archive.constants(name).list.size()); });
  }
  attempt([&] {
    std::vector<Bytes> all;
    for (const Record& record : archive.records()) {
      if (!at_once) all.clear();
      all.push_back(archive.read(record.name));
    }
    std::printf("records %zu\n", archive.records().size());
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string what = argv[2];
  std::ifstream file(argv[1], std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), {});
  const Bytes bytes = Bytes::borrow(content.data(), content.size());
  const bool is_archive = what.rfind("archive", 0) == 0;
  if (!is_archive) std::printf("Argument %zu\nSymInt %zu\n", sizeof(Argument), sizeof(SymInt));
  const std::size_t before = now;
  allocations = 0;
  peak = now;
  attempt([&] {
    if (what == "archive") return read_archive(bytes, {}, true);
    if (is_archive) return read_archive(bytes, ArchiveOptions::within(64 << 20), false);
    const auto document = what == "json" ? decode_json<ExportedProgram>(bytes) : decode_compact<ExportedProgram>(bytes);
    std::printf("nodes %zu\n", document->graph_module.graph.nodes.size());
  });
  std::printf("input %zu\nallocations %zu\npeak %zu\nleft %zu\n", bytes.size(), allocations, peak - before, now - before);
  return 0;
}
