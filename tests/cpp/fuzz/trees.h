// What the fuzzers of decoders demand of bytes and of what they decode to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "harness.h"
#include "pt2wire/schema.h"

namespace fuzzing {

using namespace pt2wire;

/// The heap that a document of so many bytes may take: its budget, and what rounding and messages add.
inline std::size_t heap_limit(std::size_t size) {
  return std::min(2 * Limits().budget(size) + (std::size_t{1} << 16), most_memory + size);
}

/// Decodes within the limits: what the step gives, or nothing and the error.
template <class Step>
auto decoded(std::size_t size, std::string& error, Step&& step) -> std::optional<decltype(step())> {
  return limited(heap_limit(size), [&]() -> std::optional<decltype(step())> {
    try {
      return step();
    } catch (const Error& fault) {
      error = fault.what();
      demand(!error.empty(), "an error says something");
      return std::nullopt;
    }
  });
}

/// The tree in TCompact, or nothing where that cannot be: a newer writer's member of a union has lost its content.
template <class Tree>
std::optional<std::string> encoded(const Tree& tree) {
  try {
    return encode_compact(tree);
  } catch (const Error& fault) {
    demand(fault.reason().find("unknown member") != std::string::npos, "all else can be written: " + fault.reason());
    return std::nullopt;
  }
}

/// Both storages refuse the same bytes with the same words, or give the same tree, which comes back from its encoding.
/// `view` decodes to a document of a `T<View>`, `owned` to a `T<Owned>`.
template <template <class> class T, class DecodeView, class DecodeOwned>
void check_both(std::size_t size, DecodeView&& decode_view, DecodeOwned&& decode_owned) {
  std::string view_error, owned_error;
  const auto view = decoded(size, view_error, decode_view);
  const auto owned = decoded(size, owned_error, decode_owned);
  // Trees take memory differently, so only one may be over the budget.
  const auto over = [](const std::string& error) { return error.find(over_budget) != std::string::npos; };
  demand(over(view_error) || over(owned_error) || view_error == owned_error,
         "both storages say the same: " + view_error + " | " + owned_error);
  if (!view) return;
  const T<View>& tree = **view;
  const auto bytes = encoded(tree);
  if (!bytes) return;
  const bool equals_itself = tree == tree;  // without NaN
  const auto again = decode_compact<T<View>>(Bytes::borrow(bytes->data(), bytes->size()));
  demand(encode_compact(*again) == *bytes, "encoding is stable");
  demand((tree == *again) == equals_itself, "the tree comes back");
  demand(encode_compact(to_owned(tree)) == *bytes, "an owned copy encodes the same");
  if (!owned) return;
  demand(encode_compact(*owned) == *bytes, "an owned tree encodes the same");
  demand((*owned == tree) == equals_itself, "an owned tree equals the view");
}

}  // namespace fuzzing
