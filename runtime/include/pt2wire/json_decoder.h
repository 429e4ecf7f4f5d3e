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
      : reader_(reader), sizes_(sizes), builder_(builder) {}

  /// Reads a struct or union.
  template <class T>
  void read(T& out) {
    if (++depth_ > max_json_depth) refuse_depth();
    if constexpr (Traits<T>::is_union) {
      read_union(out);
    } else {
      read_struct(out);
    }
    --depth_;
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

  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

  // Structs and unions.

  template <class T>
  void read_struct(T& out) {
    std::uint64_t seen = 0;
    std::size_t expected = 0;  // writers keep to the order of the fields
    const std::size_t outer_keys = skipped_keys_.size();
    each_key(open_object(), [&](const JsonString& key) {
      const std::size_t found = position_of<T>(key.text, expected);
      if (found == nowhere) {
        ++skipped_fields_;
        return skip_member(key);
      }
      expected = found + 1;
      detail::within_field<T>([&](std::size_t& position) {
        position = found;
        if ((seen >> found & 1) != 0) reader_.fail("the field is there twice");
        seen |= std::uint64_t{1} << found;
        Traits<T>::with_field(out, Traits<T>::fields[found].id, [&](auto& slot, auto) { read_member(slot); });
      });
    });
    check_skipped_keys(outer_keys);
    constexpr std::uint64_t required = detail::fields_with<T>(&FieldInfo::required);
    if ((seen & required) != required) reader_.fail(detail::lacks<T>(required & ~seen));
  }

  template <class T>
  void read_union(T& out) {
    const std::uint32_t size = open_object();
    if (size != 1) {
      reader_.fail("the union " + std::string(Traits<T>::name) + " has " + (size == 0 ? "no member" : "two members"));
    }
    each_key(size, [&](const JsonString& key) {
      const std::size_t found = position_of<T>(key.text, 0);
      if (found == nowhere) {
        reader_.fail("the union " + std::string(Traits<T>::name) + " has no member \"" + Error::printable(key.text) +
                     "\"; a newer writer may have one");
      }
      detail::within_field<T>([&](std::size_t& position) {
        position = found;
        Traits<T>::with_member(Traits<T>::fields[found].id, [&](auto index) {
          read_member(out.variant().template emplace<index() + 1>());
        });
      });
    });
  }

  /// The position of the field or member with this name: mostly the expected one.
  template <class T>
  static std::size_t position_of(std::string_view name, std::size_t expected) noexcept {
    const auto& fields = Traits<T>::fields;
    if (expected < std::size(fields) && fields[expected].name == name) return expected;
    for (std::size_t i = 0; i != std::size(fields); ++i) {
      if (fields[i].name == name) return i;
    }
    return nowhere;
  }

  /// Of an object, after `open_object`, calls `member(key)`, which reads the rest from the colon on.
  template <class F>
  void each_key(std::uint32_t size, F&& member) {
    for (std::uint32_t i = 0; i != size; ++i) {
      if (i != 0) reader_.expect(',', "\",\" or \"}\"");
      member(reader_.read_string());
    }
    reader_.expect('}', "\",\" or \"}\"");
  }
  std::uint32_t open_object() {
    reader_.expect('{', "an object");
    return sizes_.next();
  }
  template <class T>
  void read_member(T& out) {
    reader_.expect(':', "\":\"");
    read_value(out);
  }

  // Values.

  void read_value(std::int64_t& out) { out = reader_.read_i64(); }
  void read_value(double& out) { out = reader_.read_double(); }
  void read_value(String& out) { keep(out, reader_.read_string()); }
  void read_value(Binary& out) {
    const JsonString text = reader_.read_string();
    located([&] { builder_.binary_copy(out, from_base64(text.text)); });
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
    located([&] { read_value(builder_.indirect(out)); });
  }
  template <class T>
  void read_value(T& out) {
    if constexpr (std::is_same_v<T, bool>) {
      out = reader_.read_bool();  // no overload: pointers and numbers would become bools
    } else if constexpr (std::is_enum_v<T>) {
      out = read_enum<T>();
    } else {
      read(out);
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
  void read_value(List<T>& out) {
    reader_.expect('[', "an array");
    const std::uint32_t size = sizes_.next();
    const auto items = located([&] { return builder_.list(out, size); });
    detail::each_item(size, [&](std::uint32_t i) {
      if (i != 0) reader_.expect(',', "\",\" or \"]\"");
      if constexpr (std::is_same_v<T, bool>) {
        items[i] = reader_.read_bool();  // the items of a vector of bools are no objects
      } else {
        read_value(items[i]);
      }
    });
    reader_.expect(']', "\",\" or \"]\"");
  }

  template <class T>
  void read_value(Map<T>& out) {
    const std::uint32_t size = open_object();
    const std::size_t start = reader_.offset();
    auto entry = located([&] { return builder_.map(out, size); });
    each_key(size, [&](const JsonString& key) {
      keep(entry->key, key);
      detail::within_key(entry->key, [&] { read_member(entry->value); });
      ++entry;
    });
    if (size != 0) detail::located(start, [&] { builder_.finish(out); });
  }

  /// Text that lies in the document may stay there; other text is gone with the next string.
  template <class Text>
  [[gnu::noinline]] void keep(Text& out, const JsonString& string) {
    located([&] { string.in_document ? builder_.string(out, string.text) : builder_.string_copy(out, string.text); });
  }

  // What this header does not know.

  void skip_member(const JsonString& key) {
    skipped_keys_.emplace_back(key.text);
    reader_.expect(':', "\":\"");
    skip_value();
  }

  void skip_value() {
    switch (reader_.peek()) {
      case '{': {
        const std::size_t outer_keys = skipped_keys_.size();
        each_key(open_object(), [&](const JsonString& key) { skip_member(key); });
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

  /// The keys of the object that ends here begin at `outer_keys`.
  void check_skipped_keys(std::size_t outer_keys) {
    if (skipped_keys_.size() == outer_keys) return;
    const auto first = skipped_keys_.begin() + static_cast<std::ptrdiff_t>(outer_keys);
    std::sort(first, skipped_keys_.end());
    const auto twice = std::adjacent_find(first, skipped_keys_.end());
    if (twice != skipped_keys_.end()) reader_.fail("the object has the key \"" + Error::printable(*twice) + "\" twice");
    skipped_keys_.resize(outer_keys);
  }

  // Faults.

  [[noreturn]] void refuse_depth() const {
    reader_.fail("more than " + std::to_string(max_json_depth) + " structs and unions lie inside each other");
  }

  /// Runs a step that knows no offsets, and gives its error one.
  template <class F>
  decltype(auto) located(F&& step) const {
    return detail::located(reader_.offset(), std::forward<F>(step));
  }

  JsonReader& reader_;
  JsonSizes& sizes_;
  typename Storage::Builder& builder_;
  std::vector<std::string> skipped_keys_;  // of all objects that are open, one after the other
  std::size_t skipped_fields_ = 0;
  int depth_ = 0;
};

}  // namespace pt2wire
