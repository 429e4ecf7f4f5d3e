// Part of pt2wire. Documents in JSON, as PyTorch and pt2wire write them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "pt2wire/bytes.h"
#include "pt2wire/document.h"
#include "pt2wire/editing.h"
#include "pt2wire/error.h"
#include "pt2wire/json_transcoder.h"
#include "pt2wire/json_sizes.h"
#include "pt2wire/limits.h"
#include "pt2wire/schema.h"
#include "pt2wire/traits.h"
#include "pt2wire/utf8.h"

namespace pt2wire {
namespace detail {

/// A whole text of JSON, which is one struct or union, in TCompact.
class TranscodedJson {
 public:
  /// Throws `Error` for what `JsonTranscoder` refuses, and where more than `budget` bytes of memory would be needed.
  TranscodedJson(std::string_view text, const TypeInfo& type, std::size_t budget)
      : text_(text), type_(type), budget_(budget) {
    const std::size_t valid = valid_utf8_prefix(text);
    if (valid != text.size()) throw Error("the text is not valid UTF-8", valid);
    transcode(budget);
  }

  const Bytes& compact() const noexcept { return compact_; }
  std::size_t skipped_fields() const noexcept { return skipped_fields_; }

  /// What the budget leaves for the tree.
  std::size_t budget_left() const noexcept { return budget_ - compact_.size(); }

  /// Runs a step that decodes the bytes. Its error gets the offset in the text.
  template <class Decode>
  auto decode(Decode&& step) {
    try {
      return step();
    } catch (const Error& error) {
      throw Error(error.reason(), offset_of(error.offset()), error.path());
    }
  }

 private:
  /// To less than `most` bytes.
  void transcode(std::size_t most) {
    JsonSizes sizes(text_, budget_);
    JsonTranscoder transcoder(text_, sizes, std::min(most, budget_ - sizes.memory()));
    transcoder.read(type_);
    compact_ = transcoder.release();
    skipped_fields_ = transcoder.skipped_fields();
  }

  /// Where that stands which became the byte at a position: a second pass stops there.
  std::size_t offset_of(std::size_t position) {
    if (position == Error::no_offset) return position;
    try {
      transcode(position);
    } catch (const Error& error) {
      return error.offset();
    }
    return text_.size();
  }

  std::string_view text_;
  const TypeInfo& type_;
  std::size_t budget_;
  Bytes compact_;
  std::size_t skipped_fields_ = 0;
};

}  // namespace detail

/// Decodes one struct or union from JSON in UTF-8, all of the text.
///
///     auto program = pt2wire::decode_json<pt2wire::ExportedProgram>(archive.read("models/model.json"));
///
/// Its strings lie in a copy in TCompact, which the document keeps. Throws `Error` if the text is not
/// exactly one well-formed T (see `JsonTranscoder`), or over the limits.
template <class T>
Document<T> decode_json(Bytes bytes, const Limits& limits = {}) {
  detail::TranscodedJson json(bytes.text(), Traits<T>::info, limits.budget(bytes.size()));
  return json.decode([&] {  // the text stays here as well: an error is looked for in it
    return detail::make_document<T>(bytes, json.compact(), json.budget_left(), max_json_depth, json.skipped_fields());
  });
}

/// The same into a tree that owns what it holds, as `decode_owned` does from Thrift.
template <class T>
T decode_json_owned(const Bytes& bytes, const OwnedOptions& options = {}) {
  detail::TranscodedJson json(bytes.text(), Traits<T>::info, options.limits.budget(bytes.size()));
  if (!options.drop_unknown) detail::refuse_skipped(json.skipped_fields());
  return json.decode([&] { return detail::make_owned<T>(json.compact(), json.budget_left(), max_json_depth, true); });
}

}  // namespace pt2wire
