// Part of pt2wire. Documents in JSON, as PyTorch and pt2wire write them.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "pt2wire/bytes.h"
#include "pt2wire/document.h"
#include "pt2wire/editing.h"
#include "pt2wire/error.h"
#include "pt2wire/json_decoder.h"
#include "pt2wire/json_reader.h"
#include "pt2wire/json_sizes.h"
#include "pt2wire/limits.h"
#include "pt2wire/owned.h"
#include "pt2wire/schema.h"
#include "pt2wire/utf8.h"
#include "pt2wire/view.h"

namespace pt2wire {
namespace detail {

/// Fills a tree from a whole text; answers how many fields were skipped.
template <class Storage, class T>
std::size_t read_json(std::string_view text, JsonSizes& sizes, T& tree, typename Storage::Builder& builder) {
  JsonReader reader(text);
  JsonDecoder<Storage> decoder(reader, sizes, builder);
  decoder.read(tree);
  reader.end();
  return decoder.skipped_fields();
}

inline JsonSizes json_sizes(std::string_view text, std::size_t budget) {
  const std::size_t valid = valid_utf8_prefix(text);
  if (valid != text.size()) throw Error("the text is not valid UTF-8", valid);
  return JsonSizes(text, budget);
}

}  // namespace detail

/// Decodes one struct or union from JSON in UTF-8, all of the text.
///
///     auto program = pt2wire::decode_json<pt2wire::ExportedProgram>(archive.read("models/model.json"));
///
/// Strings without escapes stay where they are in the bytes, as in `decode_compact`. Throws `Error` if the text is not
/// exactly one well-formed T (see `JsonDecoder`), or over the limits.
template <class T>
Document<T> decode_json(Bytes bytes, const Limits& limits = {}) {
  const std::string_view text = bytes.text();
  const std::size_t budget = limits.budget(text.size());
  JsonSizes sizes = detail::json_sizes(text, budget);
  return make_document<T>(std::move(bytes), budget - sizes.memory(), [&](T& root, ViewBuilder& builder) {
    return detail::read_json<View>(text, sizes, root, builder);
  });
}

/// The same into a tree that owns what it holds, as `decode_owned` does from Thrift.
template <class T>
T decode_json_owned(const Bytes& bytes, const OwnedOptions& options = {}) {
  const std::size_t budget = options.limits.budget(bytes.size());
  JsonSizes sizes = detail::json_sizes(bytes.text(), budget);
  OwnedBuilder builder{budget - sizes.memory()};
  T tree;
  const std::size_t skipped = detail::read_json<Owned>(bytes.text(), sizes, tree, builder);
  if (!options.drop_unknown) detail::refuse_skipped(skipped);
  return tree;
}

}  // namespace pt2wire
