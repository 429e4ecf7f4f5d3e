// Part of pt2wire. Fills the generated types from a reader: the rules that hold for every struct, union, list and map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "pt2wire/error.h"
#include "pt2wire/faults.h"
#include "pt2wire/shapes.h"
#include "pt2wire/traits.h"
#include "pt2wire/union.h"
#include "pt2wire/wire.h"

namespace pt2wire {

/// Decodes one document. `Storage` makes the containers (see view.h and owned.h), `Reader` shows the bytes (see compact.h).
///
/// Refused, each with path and offset: a known field or member with another wire type, a field twice, a required field
/// missing, a union with no or two members, a list or map larger than the bytes left could hold, a key twice, nesting
/// over 64. Unknown fields are skipped and counted; an unknown union member becomes `Unknown`.
template <class Storage, class Reader>
class Decoder {
 public:
  Decoder(Reader& reader, typename Storage::Builder& builder) noexcept : reader_(reader), builder_(builder) {}

  /// Reads a struct or union.
  template <class T>
  void read(T& out) {
    reader_.enter_struct();
    if constexpr (Traits<T>::is_union) {
      read_union(out);
    } else {
      read_struct(out);
    }
    reader_.leave_struct();
  }

  /// How many fields were skipped because this header does not know them.
  std::size_t skipped_fields() const noexcept { return skipped_fields_; }

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
  static constexpr Shape shape_of = Shapes<Storage>::template of<T>();

  // Structs and unions.

  template <class T>
  void read_struct(T& out) {
    FieldHeader field;
    std::uint64_t seen = 0;
    while (reader_.next_field(field)) {
      const bool known = detail::within_field<T>([&](std::size_t& position) {
        return Traits<T>::with_field(out, field.id, [&](auto& slot, auto index) {
          position = index();
          constexpr std::uint64_t bit = std::uint64_t{1} << index();
          if ((seen & bit) != 0) refuse_twice();
          seen |= bit;
          read_field(field, slot);
        });
      });
      if (!known) {
        reader_.skip(field);
        ++skipped_fields_;
      }
    }
    constexpr std::uint64_t required = detail::fields_with<T>(&FieldInfo::required);
    if ((seen & required) != required) reader_.fail(detail::lacks<T>(required & ~seen));
  }

  template <class T>
  void read_union(T& out) {
    FieldHeader field;
    if (!reader_.next_field(field)) refuse_union(Traits<T>::name, "no member");
    const bool known = detail::within_field<T>([&](std::size_t& position) {
      return Traits<T>::with_member(field.id, [&](auto index) {
        position = index();
        read_field(field, out.variant().template emplace<index() + 1>());
      });
    });
    if (!known) {
      if (field.id == 0) refuse_union(Traits<T>::name, "a member with id 0");  // it would pass for a union without one
      reader_.skip(field);
      out.variant().template emplace<0>(Unknown{field.id});
    }
    if (reader_.next_field(field)) refuse_union(Traits<T>::name, "two members");
  }

  // Values.

  template <class T>
  void read_field(const FieldHeader& field, T& out) {
    expect(field.wire, shape_of<T>.wire);
    read_field_value(field, out);
  }
  void read_field_value(const FieldHeader& field, bool& out) { out = reader_.read_bool(field); }
  void read_field_value(const FieldHeader& field, std::optional<bool>& out) { out = reader_.read_bool(field); }
  template <class T>
  void read_field_value(const FieldHeader&, T& out) {
    read_value(out);
  }

  void read_value(std::int64_t& out) { out = reader_.read_i64(); }
  void read_value(double& out) { out = reader_.read_double(); }
  void read_value(String& out) {
    located([&] { builder_.string(out, reader_.read_text()); });
  }
  void read_value(Binary& out) {
    located([&] { builder_.binary(out, reader_.read_binary()); });
  }
  template <class T>
  void read_value(std::optional<T>& out) {
    read_value(out.emplace());
  }
  template <class T>
  void read_value(Indirect<T>& out) {
    located([&] { read_value(builder_.indirect(out)); });
  }
  template <class T>
  void read_value(T& out) {
    if constexpr (std::is_same_v<T, bool>) {
      out = reader_.read_bool_item();  // no overload: pointers and numbers would become bools
    } else if constexpr (std::is_enum_v<T>) {
      out = static_cast<T>(reader_.read_i32());  // enums are open: a number this header does not know is kept
    } else {
      read(out);
    }
  }

  template <class T>
  void read_value(List<T>& out) {
    const ListHeader header = reader_.read_list();
    expect(header.item, shape_of<T>.wire);
    check_size("list", header.size, shape_of<T>.min_size);
    const auto items = located([&] { return builder_.list(out, header.size); });
    detail::each_item(header.size, [&](std::uint32_t i) {
      if constexpr (std::is_same_v<T, bool>) {
        items[i] = reader_.read_bool_item();  // the items of a vector of bools are no objects
      } else {
        read_value(items[i]);
      }
    });
    reader_.end_list();
  }

  template <class T>
  void read_value(Map<T>& out) {
    const MapHeader header = reader_.read_map();
    if (header.size == 0) {
      reader_.end_map();
      return;
    }
    expect(header.key, Wire::text);
    expect(header.value, shape_of<T>.wire);
    check_size("map", header.size, 1 + shape_of<T>.min_size);
    const std::size_t start = reader_.offset();
    const auto entries = located([&] { return builder_.map(out, header.size); });
    for (std::uint32_t i = 0; i != header.size; ++i) {
      read_value(entries[i].key);
      detail::within_key(entries[i].key, [&] { read_value(entries[i].value); });
    }
    detail::located(start, [&] { builder_.finish(out); });
    reader_.end_map();
  }

  // Faults.

  void expect(Wire found, Wire wanted) const {
    if (found != wanted) refuse_wire(found, wanted);
  }
  [[gnu::noinline, gnu::cold, noreturn]] void refuse_wire(Wire found, Wire wanted) const {
    reader_.fail("expected " + std::string(wire_name(wanted)) + ", found " + std::string(wire_name(found)));
  }

  /// Before anything is allocated for it.
  void check_size(const char* what, std::uint32_t size, std::size_t item_size) const {
    if (size > reader_.remaining() / item_size) refuse_size(what, size);
  }
  [[gnu::noinline, gnu::cold, noreturn]] void refuse_size(const char* what, std::uint32_t size) const {
    reader_.fail("a " + std::string(what) + " of " + std::to_string(size) + " items, with " +
                 std::to_string(reader_.remaining()) + " bytes left");
  }

  [[gnu::noinline, gnu::cold, noreturn]] void refuse_union(std::string_view name, const char* what) const {
    reader_.fail("the union " + std::string(name) + " has " + what);
  }
  [[gnu::noinline, gnu::cold, noreturn]] void refuse_twice() const { reader_.fail("the field is there twice"); }

  /// Runs a step that knows no offsets, and gives its error one.
  template <class F>
  decltype(auto) located(F&& step) const {
    return detail::located(reader_.offset(), std::forward<F>(step));
  }

  Reader& reader_;
  typename Storage::Builder& builder_;
  std::size_t skipped_fields_ = 0;
};

}  // namespace pt2wire
