// Fuzzes the cursor, the decoder in both storages, and the encoder. The first byte of an input says as which type of
// TYPES_FILE the others are read.
//
// Bytes are refused with an `Error`, or give a tree. Both storages say the same of them; what the tree encodes to decodes to
// the same tree; neither takes more memory than the limits allow, nor reads outside of the bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>

#include "harness.h"
#include "pt2wire/schema.h"

namespace {

using namespace pt2wire;
using fuzzing::demand;

/// The heap that a document of so many bytes may take: its budget, and what rounding and messages add.
std::size_t heap_limit(std::size_t size) {
  return std::min(2 * Limits().budget(size) + (std::size_t{1} << 16), fuzzing::most_memory + size);
}

template <class Step>
auto attempt(Step&& step, std::string& error) -> std::optional<decltype(step())> {
  try {
    return step();
  } catch (const Error& fault) {
    error = fault.what();
    demand(!error.empty(), "an error says something");
    return std::nullopt;
  }
}

template <template <class> class T>
void check(const std::uint8_t* data, std::size_t size) {
  std::string view_error, owned_error, encode_error;
  const Bytes bytes = Bytes::borrow(data, size);
  const auto view = fuzzing::limited(heap_limit(size), [&] {
    return attempt([&] { return decode_compact<T<View>>(bytes); }, view_error);
  });
  const auto owned = fuzzing::limited(heap_limit(size), [&] {
    OwnedOptions options;
    options.drop_unknown = true;
    return attempt([&] { return decode_owned<T<Owned>>(bytes, options); }, owned_error);
  });
  // An owned tree takes more memory than a view, and so may be over the budget alone.
  const bool over = owned_error.find(over_budget) != std::string::npos;
  demand(over || view_error == owned_error, "both storages say the same: " + view_error + " | " + owned_error);
  if (!view) return;
  const auto encoded = attempt([&] { return encode_compact(**view); }, encode_error);
  if (!encoded) {
    demand(encode_error.find("unknown member") != std::string::npos, "all else can be written: " + encode_error);
    return;
  }
  const auto again = decode_compact<T<View>>(Bytes::borrow(encoded->data(), encoded->size()));
  demand(encode_compact(*again) == *encoded, "encoding is stable");
  demand((**view == *again) == (**view == **view), "the tree comes back, but for NaN");
  demand(encode_compact(to_owned(**view)) == *encoded, "an owned copy encodes the same");
  if (owned) {
    demand(encode_compact(*owned) == *encoded, "an owned tree encodes the same");
    demand((*owned == **view) == (**view == **view), "an owned tree equals the view, but for NaN");
  }
}

using Check = void (*)(const std::uint8_t*, std::size_t);
constexpr Check checks[] = {
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
