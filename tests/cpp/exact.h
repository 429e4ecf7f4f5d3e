// Input for readers under a sanitizer.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "pt2wire/bytes.h"

/// The bytes in a block of exactly their size, so that a sanitizer sees each read beyond them.
inline pt2wire::Bytes exact(std::string_view bytes) {
  std::shared_ptr<std::uint8_t> block(static_cast<std::uint8_t*>(std::malloc(bytes.size())), std::free);
  if (!bytes.empty()) std::memcpy(block.get(), bytes.data(), bytes.size());
  return pt2wire::Bytes::share(block.get(), bytes.size(), block);
}
