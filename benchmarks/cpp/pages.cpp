// Which pages of an archive are touched on the way to its program and its first weight. Arguments: the archive, the program's
// name. One line a step: name, pages touched so far; then, for each page in order, its number.
//
// The kernel maps pages ahead of what is asked for, so its own figures would count too many: here each page is closed until
// somebody reads it, and the fault is counted.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "pt2wire/archive.h"

namespace {

constexpr std::uintptr_t page_size = 4096;
std::uintptr_t begin, size;
std::uint32_t touched[1 << 20];
std::size_t count = 0;

void open_page(int, siginfo_t* info, void*) {
  const auto offset = reinterpret_cast<std::uintptr_t>(info->si_addr) - begin;
  if (offset >= size || count == 1 << 20) std::_Exit(3);  // no page of the archive: a true fault
  const std::uintptr_t page = offset / page_size;
  touched[count++] = static_cast<std::uint32_t>(page);
  ::mprotect(reinterpret_cast<void*>(begin + page * page_size), page_size, PROT_READ);
}

void report(const char* step) { std::printf("%s %zu\n", step, count); }

}  // namespace

int main(int argc, char** argv) {
  using namespace pt2wire;
  if (argc != 3) return 2;
  const int file = ::open(argv[1], O_RDONLY);
  struct stat status;
  if (file < 0 || ::fstat(file, &status) != 0) return 1;
  size = static_cast<std::uintptr_t>(status.st_size);
  void* const mapped = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE, file, 0);
  if (mapped == MAP_FAILED) return 1;
  begin = reinterpret_cast<std::uintptr_t>(mapped);
  struct sigaction action = {};
  action.sa_sigaction = open_page;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, nullptr);

  ArchiveOptions options;
  options.check_payloads = false;
  const auto archive = Archive::from_memory(Bytes::borrow(mapped, size), argv[1], options);
  report("open");
  const auto program = archive.program(argv[2]);
  report("program");
  const auto weights = archive.weights(argv[2]);
  report("weights");
  const volatile std::uint8_t first = *weights.list.at(0).data();
  static_cast<void>(first);
  report("first-element");
  for (std::size_t i = 0; i != count; ++i) std::printf("%u\n", touched[i]);
  return 0;
}
