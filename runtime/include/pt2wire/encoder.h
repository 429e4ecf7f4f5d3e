// Part of pt2wire. Writes the generated types: the rules that hold for every struct, union, list and map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "pt2wire/compact_writer.h"
#include "pt2wire/error.h"
#include "pt2wire/shapes.h"
#include "pt2wire/traits.h"
#include "pt2wire/utf8.h"
#include "pt2wire/wire.h"

namespace pt2wire {

/// Encodes one tree, of any storage. `Writer` makes the bytes (see compact_writer.h).
///
/// Refused, each with the path, is what no reader would take: a union without a member, or with one that this header
/// does not know (its content is gone); text that is not UTF-8; more than 64 structs and unions inside each other;
/// lists, maps and texts over 2^31-1.
template <class Storage, class Writer>
class Encoder {
 public:
  explicit Encoder(Writer& writer) noexcept : writer_(writer) {}

  /// Writes a struct or union.
  template <class T>
  void write(const T& tree) {
    if (++depth_ > max_depth) throw Error("more than 64 structs and unions lie inside each other");
    writer_.begin_struct();
    std::int16_t previous = 0;
    if constexpr (Traits<T>::is_union) {
      write_member(tree, previous);
    } else {
      Traits<T>::each_field(tree, [&](const auto& field, auto position) {
        write_field<T>(Traits<T>::fields[position()].id, previous, field, position());
      });
    }
    writer_.end_struct();
    --depth_;
  }

 private:
  using String = typename Storage::String;
  using Binary = typename Storage::Binary;
  template <class T>
  using List = typename Storage::template List<T>;
  template <class T>
  using Map = typename Storage::template Map<T>;
  template <class T>
  using Indirect = typename Storage::template Indirect<T>;

  template <class T>
  void write_member(const T& tree, std::int16_t& previous) {
    if (const auto* const unknown = tree.unknown()) refuse_unknown(Traits<T>::name, unknown->id);
    const std::int16_t id = Traits<T>::fields[tree.index() - 1].id;
    Traits<T>::with_member(id, [&](auto position) {
      write_field<T>(id, previous, *std::get_if<position() + 1>(&tree.variant()), position());
    });
  }

  template <class T, class Field>
  void write_field(std::int16_t id, std::int16_t& previous, const Field& field, std::size_t position) {
    try {
      if constexpr (std::is_same_v<Field, bool>) {
        writer_.bool_field(previous, id, field);
      } else {
        writer_.begin_field(previous, id, Shapes<Storage>::template of<Field>().wire);
        write_value(field);
      }
      writer_.end_field();
    } catch (Error& error) {
      error.within_field(Traits<T>::fields[position].name);
      throw;
    }
  }
  template <class T, class Field>
  void write_field(std::int16_t id, std::int16_t& previous, const std::optional<Field>& field, std::size_t position) {
    if (field) write_field<T>(id, previous, *field, position);
  }

  void write_value(const std::int64_t& value) { writer_.write_i64(value); }
  void write_value(const double& value) { writer_.write_double(value); }
  void write_value(const String& value) { write_text(value); }
  void write_value(const Binary& value) {
    size_of("binary", value.size());
    writer_.write_binary({reinterpret_cast<const char*>(value.data()), value.size()});
  }
  template <class T>
  void write_value(const Indirect<T>& value) {
    write_value(*value);
  }
  template <class T>
  void write_value(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      writer_.write_bool(value);  // no overload: pointers and numbers would become bools
    } else if constexpr (std::is_enum_v<T>) {
      writer_.write_i32(static_cast<std::int32_t>(value));
    } else {
      write(value);
    }
  }

  template <class T>
  void write_value(const List<T>& list) {
    writer_.begin_list(Shapes<Storage>::template of<T>().wire, size_of("list", list.size()));
    std::size_t i = 0;
    try {
      for (const T& item : list) {
        write_value(item);
        ++i;
      }
    } catch (Error& error) {
      error.within_item(i);
      throw;
    }
    writer_.end_list();
  }

  template <class T>
  void write_value(const Map<T>& map) {
    writer_.begin_map(Shapes<Storage>::template of<T>().wire, size_of("map", map.size()));
    for (const auto& entry : map) {
      try {
        write_text(entry.key);
        write_value(entry.value);
      } catch (Error& error) {
        error.within_key(entry.key);
        throw;
      }
    }
    writer_.end_map();
  }

  void write_text(std::string_view text) {
    size_of("text", text.size());
    if (valid_utf8_prefix(text) != text.size()) throw Error("the text is not valid UTF-8");
    writer_.write_text(text);
  }

  /// A size as Thrift has it: 31 bits.
  static std::uint32_t size_of(const char* what, std::size_t size) {
    if (size > INT32_MAX) throw Error("the " + std::string(what) + " has " + std::to_string(size) + " items or bytes");
    return static_cast<std::uint32_t>(size);
  }

  [[noreturn]] static void refuse_unknown(std::string_view name, std::int16_t id) {
    throw Error("the union " + std::string(name) +
                (id == 0 ? " has no member"
                         : " holds the unknown member " + std::to_string(id) + ", whose content was skipped"));
  }

  Writer& writer_;
  int depth_ = 0;
};

/// The TCompact bytes of a struct or union of any storage, without an envelope: what `decode_compact` reads, and what
/// every Thrift runtime writes for the same values. Optional fields without a value are left out, all others written.
///
///     std::string bytes = pt2wire::encode_compact(*document);
///
/// Throws `Error`, with the path, if the tree cannot be written (see `Encoder`).
template <class T, class Storage = typename Traits<T>::Storage>
std::string encode_compact(const T& tree) {
  CompactWriter writer;
  Encoder<Storage, CompactWriter>(writer).write(tree);
  return writer.finish();
}

}  // namespace pt2wire
