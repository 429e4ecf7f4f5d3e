// Part of pt2wire. Turns JSON into TCompact, by the tables of the types: what holds for structs, unions, lists and maps in JSON.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "pt2wire/base64.h"
#include "pt2wire/bytes.h"
#include "pt2wire/compact_writer.h"
#include "pt2wire/error.h"
#include "pt2wire/faults.h"
#include "pt2wire/json_reader.h"
#include "pt2wire/json_sizes.h"
#include "pt2wire/limits.h"
#include "pt2wire/traits.h"
#include "pt2wire/wire.h"

namespace pt2wire {

/// Structs and unions that may lie inside each other in JSON, as in pt2wire's Python.
inline constexpr int max_json_depth = 128;

/// Turns one document into the TCompact bytes of the same tree, for a `Decoder`: so JSON needs no code of its own for each
/// type and storage, of which a compiler would make as much as of Thrift's decoder.
///
/// Refused, each with path and offset: a value of another type, a field twice, a required field missing, a union with no or
/// two members, nesting over 128. What a newer writer adds: unknown fields are skipped and counted; unknown members of
/// unions and numbers of enums are refused, as JSON says neither their ids nor their meaning. Keys of maps that are there
/// twice are left to the decoder.
class JsonTranscoder {
 public:
  /// Before there are `most` bytes it must be at the end.
  JsonTranscoder(std::string_view text, JsonSizes& sizes, std::size_t most)
      // Mostly TCompact is shorter: pages of the room that stay empty are never touched.
      : reader_(text), sizes_(sizes), writer_(std::min(text.size(), most)), most_(most), keys_budget_(sizes.budget_left()) {}

  /// Reads all of the text as a struct or union.
  void read(const TypeInfo& type) {
    try {
      read_nested(type);
      reader_.end();
    } catch (const Error& error) {
      trail_.rethrow(error, reader_.offset());
    }
  }

  /// What was read.
  Bytes release() { return writer_.release(); }

  /// How many fields were skipped because this header does not know them.
  std::size_t skipped_fields() const noexcept { return skipped_fields_; }

 private:
  // Structs and unions.

  void read_nested(const TypeInfo& type) {
    if (++depth_ > max_json_depth) refuse_depth();
    if (type.is_union) {
      read_union(type);
    } else {
      read_struct(type);
    }
    writer_.end_struct();
    --depth_;
  }

  void read_struct(const TypeInfo& type) {
    detail::FieldGuard guard(trail_, type.fields);
    const std::size_t outer_keys = skipped_keys_.size();
    const std::uint32_t size = open_object();
    std::uint64_t seen = 0;
    std::size_t expected = 0;  // writers keep to the order of the fields
    std::int16_t previous = 0;
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
      read_field(type.fields[guard.position], previous);
      expected = guard.position + 1;
      guard.position = detail::no_position;
    }
    close_object();
    check_skipped_keys(outer_keys);
    if ((seen & type.required) != type.required) reader_.fail(detail::lacks(type, type.required & ~seen));
  }

  void read_union(const TypeInfo& type) {
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
    std::int16_t previous = 0;
    read_field(type.fields[guard.position], previous);
    guard.position = detail::no_position;
    close_object();
  }

  /// The position of the field or member with this name: mostly the expected one.
  static std::size_t position_of(const TypeInfo& type, std::string_view name, std::size_t expected) noexcept {
    if (expected < type.size && type.fields[expected].name == name) return expected;
    return detail::position_of(type, [name](const FieldInfo& info) { return info.name == name; });
  }

  void read_field(const FieldInfo& field, std::int16_t& previous) {
    if (field.optional && reader_.take_null()) return;
    if (field.value->wire == Wire::boolean) return writer_.bool_field(previous, field.id, reader_.read_bool());
    writer_.begin_field(previous, field.id, field.value->wire);
    read_value(*field.value);
  }

  std::uint32_t open_object() {
    reader_.expect('{', "an object");
    return sizes_.next();
  }
  /// The i-th key of an object; behind it follows the colon.
  JsonString read_key(std::uint32_t i) {
    begin_item(i, "\",\" or \"}\"");
    return reader_.read_string();
  }
  void close_object() { reader_.expect('}', "\",\" or \"}\""); }

  std::uint32_t open_array() {
    reader_.expect('[', "an array");
    return sizes_.next();
  }
  void close_array() { reader_.expect(']', "\",\" or \"]\""); }

  /// Goes to the i-th item of an array or object.
  void begin_item(std::uint32_t i, const char* expected) {
    if (writer_.size() >= most_) throw Error(over_budget);
    if (i != 0) reader_.expect(',', expected);
  }

  // Values.

  void read_value(const ValueInfo& value) {
    switch (value.wire) {
      case Wire::boolean: return writer_.write_bool(reader_.read_bool());
      case Wire::i32: return writer_.write_i32(read_enum(value));
      case Wire::i64: return writer_.write_i64(reader_.read_i64());
      case Wire::f64: return writer_.write_double(reader_.read_double());
      case Wire::text: return read_text(value);
      case Wire::list: return read_list(*value.item);
      case Wire::map: return read_map(*value.item);
      case Wire::structure: return read_nested(*value.type);
      default: return;  // no type of a schema is another
    }
  }

  std::int32_t read_enum(const ValueInfo& value) {
    reader_.peek();
    const std::size_t start = reader_.offset();
    const std::int64_t number = reader_.read_i64();
    const auto narrow = static_cast<std::int32_t>(number);
    if (narrow != number || !value.is_known(narrow)) {
      throw Error("the enum has no value " + std::to_string(number) + "; a newer writer may have one", start);
    }
    return narrow;
  }

  void read_text(const ValueInfo& value) {
    const JsonString string = reader_.read_string();
    if (value.is_binary) {
      writer_.write_binary(from_base64(string.text));
    } else {
      writer_.write_text(string.text);
    }
  }

  void read_list(const ValueInfo& item) {
    const std::uint32_t size = open_array();
    writer_.begin_list(item.wire, size);
    for (detail::ItemGuard guard(trail_, size); guard.index != size; ++guard.index) {
      begin_item(guard.index, "\",\" or \"]\"");
      read_value(item);
    }
    close_array();
  }

  void read_map(const ValueInfo& item) {
    const std::uint32_t size = open_object();
    writer_.begin_map(item.wire, size);
    std::string_view key;
    std::string escaped;  // a key with escapes, which is gone with the next string
    detail::KeyGuard<std::string_view> guard(trail_);
    for (std::uint32_t i = 0; i != size; ++i) {
      const JsonString string = read_key(i);
      key = string.in_document ? string.text : escaped.assign(string.text);
      writer_.write_text(key);
      guard.key = &key;
      reader_.expect(':', "\":\"");
      read_value(item);
      guard.key = nullptr;
    }
    close_object();
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
        const std::uint32_t size = open_array();
        for (std::uint32_t i = 0; i != size; ++i) {
          begin_item(i, "\",\" or \"]\"");
          skip_value();
        }
        return close_array();
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

  JsonReader reader_;
  JsonSizes& sizes_;
  CompactWriter writer_;
  std::size_t most_;
  std::vector<std::string> skipped_keys_;  // of all objects that are open, one after the other
  std::size_t keys_budget_;                // bytes that they may take
  detail::Trail trail_;
  std::size_t skipped_fields_ = 0;
  int depth_ = 0;
};

}  // namespace pt2wire
