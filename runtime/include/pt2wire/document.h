// Part of pt2wire. A decoded document, and the function that decodes one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "pt2wire/arena.h"
#include "pt2wire/bytes.h"
#include "pt2wire/compact.h"
#include "pt2wire/decoder.h"
#include "pt2wire/error.h"
#include "pt2wire/limits.h"
#include "pt2wire/view.h"

namespace pt2wire {

template <class T>
class Document;

namespace detail {

template <class T>
Document<T> make_document(Bytes bytes, Bytes compact, std::size_t budget, int levels, std::size_t skipped_fields);

}  // namespace detail

/// A struct of the schema with everything it refers to: the bytes it was read from and the memory of its containers.
///
/// Move-only. Everything reached through it lives as long as it does (and does not move when it is moved).
template <class T>
class Document {
 public:
  Document(Document&&) noexcept = default;
  Document& operator=(Document&&) noexcept = default;
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  ~Document() = default;

  const T& operator*() const noexcept { return *root_; }
  const T* operator->() const noexcept { return root_; }
  const Bytes& bytes() const noexcept { return bytes_; }

  /// How many fields of the file this header does not know: more than 0 where a newer writer made it, or where it is damaged,
  /// which only `Archive::program` tells apart.
  std::size_t skipped_fields() const noexcept { return skipped_fields_; }

  /// Memory for what does not lie in the bytes themselves (of JSON, in their copy), in bytes and in allocations.
  std::size_t memory_used() const noexcept { return arena_.bytes_used(); }
  std::size_t block_count() const noexcept { return arena_.block_count(); }

 private:
  template <class U>
  friend Document<U> detail::make_document(Bytes bytes, Bytes compact, std::size_t budget, int levels, std::size_t skipped_fields);

  Document(Bytes bytes, Bytes compact, std::size_t budget)
      : bytes_(std::move(bytes)), compact_(std::move(compact)), arena_(compact_.size(), budget) {}

  Bytes bytes_;
  Bytes compact_;  // where text lies: in other bytes than those if they are JSON
  Arena arena_;
  const T* root_ = nullptr;
  std::size_t skipped_fields_ = 0;
};

namespace detail {

/// The document that was read from `bytes` and is `compact` in TCompact, where that is not the same. At most `levels` structs
/// and unions may lie inside each other; `skipped_fields` counts those that were left out before.
template <class T>
Document<T> make_document(Bytes bytes, Bytes compact, std::size_t budget, int levels, std::size_t skipped_fields) {
  Document<T> document(std::move(bytes), std::move(compact), budget);
  ViewBuilder builder{document.arena_};
  T& root = builder.root<T>();
  Decoder<View, CompactReader> decoder(CompactReader(document.compact_.data(), document.compact_.size(), levels), builder);
  decoder.read(root);
  decoder.reader().end();
  document.root_ = &root;
  document.skipped_fields_ = skipped_fields + decoder.skipped_fields();
  return document;
}

}  // namespace detail

/// Decodes the bytes of one Thrift struct in TCompact, all of them. No envelope, as pt2wire's records have none.
///
///     auto program = pt2wire::decode_compact<pt2wire::ExportedProgram>(pt2wire::Bytes::own(std::move(buffer)));
///     for (const auto& node : program->graph_module.graph.nodes) { ... }
///
/// Throws `Error` if the bytes are not exactly one well-formed T, or over the limits.
template <class T>
Document<T> decode_compact(Bytes bytes, const Limits& limits = {}) {
  const std::size_t budget = limits.budget(bytes.size());
  return detail::make_document<T>(bytes, bytes, budget, max_depth, 0);
}

}  // namespace pt2wire
