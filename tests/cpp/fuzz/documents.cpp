// Fuzzes the decoders in both storages, and the encoder: over the cursor of TCompact, or, with -DFUZZ_JSON=1, over the reader of
// JSON. The first byte of an input says as which type of TYPES_FILE the others are read.
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "pt2wire/json.h"
#include "pt2wire/schema.h"
#include "trees.h"

namespace {

using namespace pt2wire;

template <class T>
Document<T> decode_view(const Bytes& bytes) {
#if FUZZ_JSON
  return decode_json<T>(bytes);
#else
  return decode_compact<T>(bytes);
#endif
}

template <class T>
T decode_tree(const Bytes& bytes) {
  OwnedOptions options;
  options.drop_unknown = true;
#if FUZZ_JSON
  return decode_json_owned<T>(bytes, options);
#else
  return decode_owned<T>(bytes, options);
#endif
}

template <template <class> class T>
void check(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes = Bytes::borrow(data, size);
  fuzzing::check_both<T>(size, [&] { return decode_view<T<View>>(bytes); }, [&] { return decode_tree<T<Owned>>(bytes); });
}

constexpr void (*checks[])(const std::uint8_t*, std::size_t) = {
#define X(T) check<basic::T>,
#include TYPES_FILE
#undef X
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  checks[data[0] % std::size(checks)](data + 1, size - 1);
  return 0;
}
