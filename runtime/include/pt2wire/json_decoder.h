// Part of pt2wire. Fills the generated types from JSON: the rules that hold for every struct, union, list and map.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "pt2wire/base64.h"
#include "pt2wire/error.h"
#include "pt2wire/faults.h"
#include "pt2wire/json_reader.h"
#include "pt2wire/json_sizes.h"
#include "pt2wire/limits.h"
#include "pt2wire/traits.h"

namespace pt2wire {

/// Structs and unions that may lie inside each other in JSON, as in pt2wire's Python.
inline constexpr int max_json_depth = 128;

/// Decodes one document, as `Decoder` does from Thrift. `Storage` makes the containers (see view.h and owned.h).
///
/// Refused, each with path and offset: a value of another type, a key twice, a required field missing, a union with no or
/// two members, nesting over 128. What a newer writer adds: unknown fields are skipped and counted; unknown members of
/// unions and numbers of enums are refused, as JSON says neither their ids nor their meaning.
template <class Storage>
class JsonDecoder {
 public:
  JsonDecoder(JsonReader& reader, JsonSizes& sizes, typename Storage::Builder& builder) noexcept
      : reader_(reader), sizes_(sizes), builder_(builder), keys_budget_(sizes.budget_left()) {}

  /// Reads a struct or union.
  template <class T>
  void read(T& out) {
    try {
      read_nested(out);
    } catch (const Error& error) {
      trail_.rethrow(error, reader_.offset());
    }
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

  // Structs and unions.

  template <class T>
  [[gnu::noinline]] void read_nested(T& out) {
    if (++depth_ > max_json_depth) refuse_depth();
    if constexpr (Traits<T>::is_union) {
      read_union(out);
    } else {
      read_struct(out);
    }
    --depth_;
  }

  /// Reads the value of the field or member at a position. What the keys have to be is judged without knowing the C++ type.
  using ReadField = void (*)(JsonDecoder& decoder, void* out, std::size_t position);

  template <class T>
  void read_struct(T& out) {
    read_fields(detail::type_info<T>, &out, [](JsonDecoder& decoder, void* object, std::size_t position) {
      Traits<T>::with_field(*static_cast<T*>(object), Traits<T>::fields[position].id,
                            [&](auto& slot, auto) { decoder.read_value(slot); });
    });
  }

  template <class T>
  void read_union(T& out) {
    read_member(detail::type_info<T>, &out, [](JsonDecoder& decoder, void* object, std::size_t position) {
      Traits<T>::with_member(Traits<T>::fields[position].id, [&](auto index) {
        decoder.read_value(static_cast<T*>(object)->variant().template emplace<index() + 1>());
      });
    });
  }

  [[gnu::noinline]] void read_fields(const detail::TypeInfo& type, void* out, ReadField read_field) {
    detail::FieldGuard guard(trail_, type.fields);
    const std::size_t outer_keys = skipped_keys_.size();
    const std::uint32_t size = open_object();
    std::uint64_t seen = 0;
    std::size_t expected = 0;  // writers keep to the order of the fields
    for (std::uint32_t i = 0; i != size; ++i) {
      const JsonString key = read_key(i);
      guard.position = position_of(type, key.text, expected);
      if (guard.position == detail::no_position) {
        ++skipped_fields_;
        skip_member(key);
        continue;
      }
      if ((seen >> guard.position & 1) != 0) reader_.fail("the field is there twice");
      seen |= std::uint64_t{1} << guard.position;
      reader_.expect(':', "\":\"");
      read_field(*this, out, guard.position);
      expected = guard.position + 1;
      guard.position = detail::no_position;
    }
    close_object();
    check_skipped_keys(outer_keys);
    if ((seen & type.required) != type.required) reader_.fail(type.lacks(type.required & ~seen));
  }

  [[gnu::noinline]] void read_member(const detail::TypeInfo& type, void* out, ReadField read_field) {
    detail::FieldGuard guard(trail_, type.fields);
    const std::uint32_t size = open_object();
    if (size != 1) {
      reader_.fail("the union " + std::string(type.name) + " has " + (size == 0 ? "no member" : "two members"));
    }
    const JsonString key = read_key(0);
    guard.position = position_of(type, key.text, 0);
    if (guard.position == detail::no_position) {
      reader_.fail("the union " + std::string(type.name) + " has no member \"" + Error::printable(key.text) +
                   "\"; a newer writer may have one");
    }
    reader_.expect(':', "\":\"");
    read_field(*this, out, guard.position);
    guard.position = detail::no_position;
    close_object();
  }

  /// The position of the field or member with this name: mostly the expected one.
  static std::size_t position_of(const detail::TypeInfo& type, std::string_view name, std::size_t expected) noexcept {
    if (expected < type.size && type.fields[expected].name == name) return expected;
    return type.position_of([name](const FieldInfo& info) { return info.name == name; });
  }

  std::uint32_t open_object() {
    reader_.expect('{', "an object");
    return sizes_.next();
  }
  /// The i-th key of an object; behind it follows the colon.
  JsonString read_key(std::uint32_t i) {
    if (i != 0) reader_.expect(',', "\",\" or \"}\"");
    return reader_.read_string();
  }
  void close_object() { reader_.expect('}', "\",\" or \"}\""); }

  // Values.

  void read_value(std::int64_t& out) { out = reader_.read_i64(); }
  void read_value(double& out) { out = reader_.read_double(); }
  void read_value(String& out) { keep(out, reader_.read_string()); }
  void read_value(Binary& out) {
    const JsonString text = reader_.read_string();
    builder_.binary_copy(out, from_base64(text.text));
  }
  template <class T>
  void read_value(std::optional<T>& out) {
    if (reader_.take_null()) {
      out.reset();
    } else {
      read_value(out.emplace());
    }
  }
  template <class T>
  void read_value(Indirect<T>& out) {
    read_value(builder_.indirect(out));
  }
  template <class T>
  void read_value(T& out) {
    if constexpr (std::is_same_v<T, bool>) {
      out = reader_.read_bool();  // no overload: pointers and numbers would become bools
    } else if constexpr (std::is_enum_v<T>) {
      out = read_enum<T>();
    } else {
      read_nested(out);
    }
  }

  template <class T>
  T read_enum() {
    reader_.peek();
    const std::size_t start = reader_.offset();
    const std::int64_t number = reader_.read_i64();
    const T value = static_cast<T>(number);
    if (static_cast<std::int64_t>(value) != number || name(value).empty()) {
      throw Error("the enum has no value " + std::to_string(number) + "; a newer writer may have one", start);
    }
    return value;
  }

  template <class T>
  [[gnu::noinline]] void read_value(List<T>& out) {
    reader_.expect('[', "an array");
    const std::uint32_t size = sizes_.next();
    const auto items = builder_.list(out, size);
    for (detail::ItemGuard item(trail_, size); item.index != size; ++item.index) {
      if (item.index != 0) reader_.expect(',', "\",\" or \"]\"");
      if constexpr (std::is_same_v<T, bool>) {
        items[item.index] = reader_.read_bool();  // the items of a vector of bools are no objects
      } else {
        read_value(items[item.index]);
      }
    }
    reader_.expect(']', "\",\" or \"]\"");
  }

  template <class T>
  [[gnu::noinline]] void read_value(Map<T>& out) {
    const std::uint32_t size = open_object();
    const std::size_t start = reader_.offset();
    const auto entries = builder_.map(out, size);
    detail::KeyGuard<String> guard(trail_);
    for (std::uint32_t i = 0; i != size; ++i) {
      keep(entries[i].key, read_key(i));
      guard.key = &entries[i].key;
      reader_.expect(':', "\":\"");
      read_value(entries[i].value);
      guard.key = nullptr;
    }
    close_object();
    if (size != 0) finish(out, start);
  }

  /// Text that lies in the document may stay there; other text is gone with the next string.
  template <class Text>
  [[gnu::noinline]] void keep(Text& out, const JsonString& string) {
    string.in_document ? builder_.string(out, string.text) : builder_.string_copy(out, string.text);
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

  // What this header does not know.

  void skip_member(const JsonString& key) {
    const std::size_t cost = cost_of(key.text);
    if (cost > keys_budget_) throw Error(over_budget);
    keys_budget_ -= cost;
    skipped_keys_.emplace_back(key.text);
    reader_.expect(':', "\":\"");
    skip_value();
  }

  void skip_value() {
    switch (reader_.peek()) {
      case '{': {
        const std::size_t outer_keys = skipped_keys_.size();
        const std::uint32_t size = open_object();
        for (std::uint32_t i = 0; i != size; ++i) skip_member(read_key(i));
        close_object();
        return check_skipped_keys(outer_keys);
      }
      case '[': {
        reader_.expect('[', "an array");
        const std::uint32_t size = sizes_.next();
        for (std::uint32_t i = 0; i != size; ++i) {
          if (i != 0) reader_.expect(',', "\",\" or \"]\"");
          skip_value();
        }
        return reader_.expect(']', "\",\" or \"]\"");
      }
      case '"':
        reader_.read_string();
        return;
      default:
        reader_.skip_scalar();
    }
  }

  /// Bytes for a key in `skipped_keys_`, which takes three times its room while it grows.
  static std::size_t cost_of(std::string_view key) noexcept { return 3 * sizeof(std::string) + key.size(); }

  /// The keys of the object that ends here begin at `outer_keys`.
  void check_skipped_keys(std::size_t outer_keys) {
    if (skipped_keys_.size() == outer_keys) return;
    const auto first = skipped_keys_.begin() + static_cast<std::ptrdiff_t>(outer_keys);
    std::sort(first, skipped_keys_.end());
    const auto twice = std::adjacent_find(first, skipped_keys_.end());
    if (twice != skipped_keys_.end()) reader_.fail("the object has the key \"" + Error::printable(*twice) + "\" twice");
    std::for_each(first, skipped_keys_.end(), [this](const std::string& key) { keys_budget_ += cost_of(key); });
    skipped_keys_.resize(outer_keys);
  }

  // Faults.

  [[gnu::noinline, gnu::cold, noreturn]] void refuse_depth() const {
    reader_.fail("more than " + std::to_string(max_json_depth) + " structs and unions lie inside each other");
  }
  JsonReader& reader_;
  JsonSizes& sizes_;
  typename Storage::Builder& builder_;
  std::vector<std::string> skipped_keys_;  // of all objects that are open, one after the other
  std::size_t keys_budget_;                // bytes that they may take
  detail::Trail trail_;
  std::size_t skipped_fields_ = 0;
  int depth_ = 0;
};

}  // namespace pt2wire
