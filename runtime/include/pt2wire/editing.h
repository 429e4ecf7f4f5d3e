// Part of pt2wire. Trees that own what they hold: from bytes, and from a document.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "pt2wire/bytes.h"
#include "pt2wire/compact.h"
#include "pt2wire/containers.h"
#include "pt2wire/decoder.h"
#include "pt2wire/error.h"
#include "pt2wire/limits.h"
#include "pt2wire/owned.h"
#include "pt2wire/traits.h"

namespace pt2wire {

/// How an owned tree is decoded.
struct OwnedOptions {
  Limits limits;
  bool drop_unknown = false;  ///< whether fields that this header does not know are dropped, or an error
};

namespace detail {

inline void refuse_skipped(std::size_t count) {
  if (count == 0) return;
  throw Error(std::to_string(count) + " fields are unknown to this header, and would be lost if the tree were written; " +
              "OwnedOptions::drop_unknown permits that");
}

template <class From, class To>
void copy(const From& from, To& to) {
  if constexpr (std::is_same_v<From, To>) {
    to = from;
  } else if constexpr (std::is_convertible_v<const From&, std::string_view>) {
    to = std::string_view(from);
  } else if constexpr (is_optional<From>) {
    if (from) copy(*from, to.emplace());
  } else if constexpr (is_indirect<From>) {
    copy(*from, *to);
  } else if constexpr (is_map<From>) {
    for (const auto& entry : from) copy(entry.value, to[entry.key]);
  } else if constexpr (is_list<From>) {
    to.resize(from.size());
    for (std::size_t i = 0; i != from.size(); ++i) {
      if constexpr (std::is_arithmetic_v<typename From::value_type>) {
        to[i] = from[i];  // the items of a vector of bools are no objects
      } else {
        copy(from[i], to[i]);
      }
    }
  } else if constexpr (Traits<From>::is_union) {
    if (from.index() == 0) {
      to.variant().template emplace<0>(*from.unknown());
      return;
    }
    Traits<From>::with_member(Traits<From>::fields[from.index() - 1].id, [&](auto position) {
      copy(*std::get_if<position() + 1>(&from.variant()), to.variant().template emplace<position() + 1>());
    });
  } else {
    Traits<From>::zip_fields(from, to, [](const auto& a, auto& b) {
      copy(a, b);
      return true;
    });
  }
}

/// Decodes bytes in TCompact; at most `levels` structs and unions may lie inside each other.
template <class T>
T make_owned(const Bytes& compact, std::size_t budget, int levels, bool drop_unknown) {
  T tree;
  OwnedBuilder builder{budget};
  Decoder<Owned, CompactReader> decoder(CompactReader(compact.data(), compact.size(), levels), builder);
  decoder.read(tree);
  decoder.reader().end();
  if (!drop_unknown) refuse_skipped(decoder.skipped_fields());
  return tree;
}

}  // namespace detail

/// Decodes the bytes of one Thrift struct in TCompact, all of them, into a tree that owns what it holds.
///
///     auto program = pt2wire::decode_owned<pt2wire::owned::ExportedProgram>(archive.read("thrift/model.compact"));
///     program.graph_module.graph.nodes.pop_back();
///     std::string bytes = pt2wire::encode_compact(program);
///
/// Throws `Error` if the bytes are not exactly one well-formed T, over the limits, or, unless the options permit it,
/// hold fields that this header does not know and could not write again.
template <class T>
T decode_owned(const Bytes& bytes, const OwnedOptions& options = {}) {
  return detail::make_owned<T>(bytes, options.limits.budget(bytes.size()), max_depth, options.drop_unknown);
}

/// A copy of a tree that owns what it holds, however the tree is stored. Unknown union members stay unknown; unknown
/// fields are gone (see `Document::skipped_fields`).
template <template <class> class T, class Storage>
T<Owned> to_owned(const T<Storage>& tree) {
  T<Owned> copy;
  detail::copy(tree, copy);
  return copy;
}

}  // namespace pt2wire
