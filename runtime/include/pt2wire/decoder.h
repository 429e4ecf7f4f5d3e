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
  Decoder(Reader reader, typename Storage::Builder& builder) : reader_(std::move(reader)), builder_(builder) {}

  /// Reads a struct or union.
  template <class T>
  void read(T& out) {
    try {
      read_nested(out);
    } catch (const Error& error) {
      trail_.rethrow(error, reader_.offset());
    }
  }

  const Reader& reader() const noexcept { return reader_; }

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
  [[gnu::noinline]] void read_nested(T& out) {
    reader_.enter_struct();
    if constexpr (Traits<T>::is_union) {
      read_union(out);
    } else {
      read_struct(out);
    }
    reader_.leave_struct();
  }

  /// Writers put fields in the order of their ids: so they are looked for, and one round finds all that are there.
  template <class T>
  [[gnu::always_inline]] void read_struct(T& out) {
    detail::FieldGuard guard(trail_, Traits<T>::fields.data());
    FieldHeader field = reader_.next_field({});
    std::uint64_t seen = 0;
    while (!field.is_end()) {
      const FieldHeader first = field;
      Traits<T>::each_field(out, [&](auto& slot, auto index) {
        if (!is_field<T, index()>(field)) return;
        guard.position = index();
        constexpr std::uint64_t bit = std::uint64_t{1} << index();
        if ((seen & bit) != 0) refuse_twice();
        seen |= bit;
        read_field(field, slot);
        guard.position = detail::no_position;
        field = reader_.next_field(field);
      });
      if (field == first) {
        guard.position = position_of(Traits<T>::info, field);
        if (guard.position != detail::no_position) refuse_known(Traits<T>::info, guard.position, field, seen);
        field = skip_unknown(field);
      }
    }
    constexpr std::uint64_t required = Traits<T>::info.required;
    if ((seen & required) != required) refuse_lack(Traits<T>::info, required & ~seen);
  }

  template <class T>
  [[gnu::always_inline]] void read_union(T& out) {
    detail::FieldGuard guard(trail_, Traits<T>::fields.data());
    const FieldHeader field = reader_.next_field({});
    if (field.is_end()) refuse_union(Traits<T>::name, "no member");
    const bool known = Traits<T>::with_member(field.id(), [&](auto index) {
      guard.position = index();
      expect(field.wire(), Traits<T>::fields[index()].value->wire);
      read_field(field, out.variant().template emplace<index() + 1>());
      guard.position = detail::no_position;
    });
    if (!known) {
      if (field.id() == 0) refuse_union(Traits<T>::name, "a member with id 0");  // it would pass for a union without one
      reader_.skip(field);
      out.variant().template emplace<0>(Unknown{static_cast<std::int16_t>(field.id())});
    }
    if (!reader_.next_field(field).is_end()) refuse_union(Traits<T>::name, "two members");
  }

  [[gnu::noinline]] static std::size_t position_of(const TypeInfo& type, FieldHeader field) noexcept {
    return detail::position_of(type, [field](const FieldInfo& info) { return info.id == field.id(); });
  }

  [[gnu::noinline]] FieldHeader skip_unknown(FieldHeader field) {
    reader_.skip(field);
    ++skipped_fields_;
    return reader_.next_field(field);
  }

  // Values.

  template <class T, std::size_t Position>
  static constexpr bool is_field(FieldHeader found) noexcept {
    constexpr std::int16_t id = Traits<T>::fields[Position].id;
    constexpr Wire wire = Traits<T>::fields[Position].value->wire;
    return found == FieldHeader(id, wire) || (wire == Wire::boolean && found == FieldHeader(id, Wire::no));
  }

  void read_field(FieldHeader field, bool& out) { out = reader_.read_bool(field); }
  void read_field(FieldHeader field, std::optional<bool>& out) { out = reader_.read_bool(field); }
  template <class T>
  void read_field(FieldHeader, T& out) {
    read_value(out);
  }

  void read_value(std::int64_t& out) { out = reader_.read_i64(); }
  void read_value(double& out) { out = reader_.read_double(); }
  void read_value(String& out) { builder_.string(out, reader_.read_text()); }
  void read_value(Binary& out) { builder_.binary(out, reader_.read_binary()); }
  template <class T>
  void read_value(std::optional<T>& out) {
    read_value(out.emplace());
  }
  template <class T>
  void read_value(Indirect<T>& out) {
    read_value(builder_.indirect(out));
  }
  template <class T>
  void read_value(T& out) {
    if constexpr (std::is_same_v<T, bool>) {
      out = reader_.read_bool_item();  // no overload: pointers and numbers would become bools
    } else if constexpr (std::is_enum_v<T>) {
      out = static_cast<T>(reader_.read_i32());  // enums are open: a number this header does not know is kept
    } else {
      read_nested(out);
    }
  }

  template <class T>
  [[gnu::noinline]] void read_value(List<T>& out) {
    const std::uint32_t size = open_list(shape_of<T>);
    const auto items = builder_.list(out, size);
    for (detail::ItemGuard item(trail_, size); item.index != size; ++item.index) {
      if constexpr (std::is_same_v<T, bool>) {
        items[item.index] = reader_.read_bool_item();  // the items of a vector of bools are no objects
      } else {
        read_value(items[item.index]);
      }
    }
    reader_.end_list();
  }

  template <class T>
  [[gnu::noinline]] void read_value(Map<T>& out) {
    const std::uint32_t size = open_map(shape_of<T>);
    const std::size_t start = reader_.offset();
    const auto entries = builder_.map(out, size);
    detail::KeyGuard<String> guard(trail_);
    for (std::uint32_t i = 0; i != size; ++i) {
      read_value(entries[i].key);
      guard.key = &entries[i].key;
      read_value(entries[i].value);
      guard.key = nullptr;
    }
    if (size != 0) finish(out, start);
    reader_.end_map();
  }

  /// The size of a list or map whose items are of a shape, before anything is allocated for them.
  [[gnu::noinline]] std::uint32_t open_list(Shape item) {
    const ListHeader header = reader_.read_list();
    expect(header.item, item.wire);
    check_size("list", header.size, item.min_size);
    return header.size;
  }
  [[gnu::noinline]] std::uint32_t open_map(Shape value) {
    const MapHeader header = reader_.read_map();
    if (header.size == 0) return 0;
    expect(header.key, Wire::text);
    expect(header.value, value.wire);
    check_size("map", header.size, 1 + value.min_size);
    return header.size;
  }

  /// The fault of a key that is there twice lies where the map starts.
  template <class T>
  void finish(Map<T>& out, std::size_t start) {
    try {
      builder_.finish(out);
    } catch (const Error& error) {
      throw Error(error.reason(), start);
    }
  }

  // Faults.

  void expect(Wire found, Wire wanted) const {
    if (!fits(found, wanted)) refuse_wire(found, wanted);
  }
  [[gnu::noinline, gnu::cold, noreturn]] void refuse_wire(Wire found, Wire wanted) const {
    reader_.check_wire(found);
    reader_.fail("expected " + std::string(wire_name(wanted)) + ", found " + std::string(wire_name(found)));
  }

  void check_size(const char* what, std::uint32_t size, std::size_t item_size) const {
    // The product of 32 bits and a few cannot overflow; dividing would cost more than all else of a short list.
    if (std::uint64_t{size} * item_size > reader_.remaining()) refuse_size(what, size);
  }
  [[gnu::noinline, gnu::cold, noreturn]] void refuse_size(const char* what, std::uint32_t size) const {
    reader_.fail("a " + std::string(what) + " of " + std::to_string(size) + " items, with " +
                 std::to_string(reader_.remaining()) + " bytes left");
  }

  [[gnu::noinline, gnu::cold, noreturn]] void refuse_union(std::string_view name, const char* what) const {
    reader_.fail("the union " + std::string(name) + " has " + what);
  }
  [[gnu::noinline, gnu::cold, noreturn]] void refuse_twice() const { reader_.fail("the field is there twice"); }
  /// A field that is there already, or with another wire type.
  [[gnu::noinline, gnu::cold, noreturn]] void refuse_known(const TypeInfo& type, std::size_t position,
                                                           FieldHeader field, std::uint64_t seen) const {
    if ((seen >> position & 1) != 0) refuse_twice();
    refuse_wire(field.wire(), type.fields[position].value->wire);
  }
  [[gnu::noinline, gnu::cold, noreturn]] void refuse_lack(const TypeInfo& type, std::uint64_t missing) const {
    reader_.fail(detail::lacks(type, missing));
  }

  Reader reader_;
  typename Storage::Builder& builder_;
  detail::Trail trail_;
  std::size_t skipped_fields_ = 0;
};

}  // namespace pt2wire
