// Prints any object of the generated types as text that a test can compare with what Python prints for its own tree.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "pt2wire/schema.h"

namespace dumping {

using namespace pt2wire;

inline void dump(std::string& out, bool value) { out += value ? "true" : "false"; }
inline void dump(std::string& out, std::int64_t value) { out += std::to_string(value); }

inline void dump(std::string& out, double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(bits));
  out += digits;
}

inline void dump(std::string& out, std::string_view value) {
  static constexpr char digits[] = "0123456789abcdef";
  out += '"';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\') {
      out += c;
    } else {
      out += "\\x";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
  out += '"';
}

inline void dump(std::string& out, const Span<std::uint8_t>& value) {
  dump(out, std::string_view(reinterpret_cast<const char*>(value.data()), value.size()));
}

inline void dump(std::string& out, const Unknown& value) { out += std::to_string(value.id); }

template <class T>
void dump(std::string& out, const Span<T>& list);
template <class T>
void dump(std::string& out, const Map<T>& map);
template <class T>
void dump(std::string& out, const std::optional<T>& value);

template <class T>
void dump(std::string& out, const T& value) {
  if constexpr (std::is_enum_v<T>) {
    out += std::to_string(static_cast<std::int32_t>(value)) + ":" + std::string(name(value));
  } else if constexpr (Traits<T>::is_union) {
    out += std::string(Traits<T>::name) + "." + std::string(value.unknown() != nullptr ? "?" : value.member_name()) + "(";
    value.visit([&out](const auto& member) { dump(out, member); });
    out += ")";
  } else {
    out += std::string(Traits<T>::name) + "{";
    Traits<T>::each_field(value, [&out](const auto& field, auto position) {
      out += std::string(Traits<T>::fields[position()].name) + "=";
      dump(out, field);
      out += ",";
    });
    out += "}";
  }
}

template <class T>
void dump(std::string& out, const Span<T>& list) {
  out += "[";
  for (const T& item : list) {
    dump(out, item);
    out += ",";
  }
  out += "]";
}

template <class T>
void dump(std::string& out, const Map<T>& map) {
  out += "{";
  for (const Entry<T>& entry : map) {
    dump(out, entry.key);
    out += ":";
    dump(out, entry.value);
    out += ",";
  }
  out += "}";
}

template <class T>
void dump(std::string& out, const std::optional<T>& value) {
  if (value) {
    dump(out, *value);
  } else {
    out += "-";
  }
}

}  // namespace dumping
