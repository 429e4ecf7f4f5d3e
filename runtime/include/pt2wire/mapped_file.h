// Part of pt2wire. A file's bytes, mapped and read-only.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "pt2wire/bytes.h"
#include "pt2wire/error.h"

namespace pt2wire {

/// Maps a file. Only the pages that are looked at are read from the disk.
///
/// The file must not be cut short while the bytes are in use: reading beyond its new end kills the process (SIGBUS).
/// Throws `Error` if it cannot be opened, or is no regular file. An empty file gives empty bytes.
///
/// With `private_writes` the bytes may be written to, through a `const_cast`: a page that is, is copied for this process.
inline Bytes map_file(const std::string& path, bool private_writes = false) {
  const auto fail = [&path](const char* what) -> Error {
    return Error(std::string(what) + ": " + std::strerror(errno), Error::no_offset, path);
  };
  struct Descriptor {
    int number;
    ~Descriptor() {
      if (number >= 0) ::close(number);
    }
  };
  // Without waiting for somebody to write into a pipe, which is refused.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0) throw fail("cannot open the file");
  struct stat status;
  if (::fstat(file.number, &status) != 0) throw fail("cannot look at the file");
  if (!S_ISREG(status.st_mode)) throw Error("expected a file, found something else", Error::no_offset, path);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return Bytes();
  void* const data = ::mmap(nullptr, size, private_writes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_PRIVATE, file.number, 0);
  if (data == MAP_FAILED) throw fail("cannot map the file");
  std::shared_ptr<const void> owner(data, [size](void* mapped) { ::munmap(mapped, size); });
  return Bytes::share(data, size, std::move(owner));
}

}  // namespace pt2wire
