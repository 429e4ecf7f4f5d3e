// Fuzzes what an archive says of its weights: two bytes with the size of a payload, then the bytes of a PayloadConfig. What
// is accepted must lie within the payload.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness.h"
#include "pt2wire/weights.h"

namespace {

using namespace pt2wire;
using fuzzing::demand;

/// The first and the last byte of the element at an index, in a payload of so many bytes.
void check_reach(const Weight& weight) {
  unsigned __int128 last = static_cast<unsigned __int128>(weight.storage_offset);
  for (std::size_t i = 0; i != weight.sizes.size(); ++i) {
    demand(weight.sizes[i] >= 0 && weight.strides[i] >= 0, "sizes and strides count");
    if (weight.sizes[i] == 0) return;
    const auto steps = static_cast<unsigned __int128>(weight.sizes[i] - 1);
    const auto stride = static_cast<unsigned __int128>(weight.strides[i]);
    demand(stride == 0 || steps <= (~static_cast<unsigned __int128>(0) >> 1) / stride, "no product of sizes overflows");
    last += steps * stride;
    demand(last < static_cast<unsigned __int128>(1) << 64, "no offset overflows");
  }
  if (weight.payload.empty()) return;
  demand((last + 1) * item_size(weight.dtype) <= weight.payload.size(), "the last element lies within the payload");
  demand(weight.data() != nullptr, "a tensor with elements has data");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::vector<std::uint8_t> payload(std::size_t{data[0]} | std::size_t{data[1]} << 8);
  try {
    const auto config = decode_compact<PayloadConfig>(Bytes::borrow(data + 2, size - 2));
    for (const auto& [fqn, meta] : config->config) {
      try {
        check_reach(make_weight(fqn, meta, Bytes::borrow(payload.data(), payload.size())));
      } catch (const Error& error) {
        demand(!error.reason().empty(), "an error says what is wrong");
      }
    }
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
