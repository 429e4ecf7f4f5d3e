// Part of pt2wire. A cursor over JSON text in memory.
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <locale>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "pt2wire/error.h"

namespace pt2wire {
namespace detail {

/// The first quote, backslash or control character, or the end.
inline const char* json_special(const char* at, const char* end) noexcept {
  constexpr std::uint64_t ones = 0x0101010101010101u, high_bits = 0x8080808080808080u;
  const auto has_zero = [](std::uint64_t word) { return (word - ones) & ~word; };
  for (; end - at >= 8; at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    const std::uint64_t controls = (word - ones * 0x20) & ~word;
    if (((has_zero(word ^ (ones * '"')) | has_zero(word ^ (ones * '\\')) | controls) & high_bits) != 0) break;
  }
  for (; at != end; ++at) {
    if (*at == '"' || *at == '\\' || static_cast<unsigned char>(*at) < 0x20) break;
  }
  return at;
}

inline bool is_json_blank(char c) noexcept { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
inline bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// The finite double nearest to a number of JSON's grammar, or nothing where that is too large.
inline std::optional<double> json_double(std::string_view token) {
  double value = 0;
#if defined(__cpp_lib_to_chars) && __cpp_lib_to_chars >= 201611L
  const auto [end, fault] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (fault == std::errc()) return value;
#endif
  // Where the library has no such function, or for a number beyond the range of doubles, at either end.
  std::istringstream stream{std::string(token)};
  stream.imbue(std::locale::classic());
  stream >> value;
  if (stream.fail() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace detail

/// A string of a JSON text. Without escapes it is a part of the text; else `in_document` is false, and it lasts until
/// the next string is read.
struct JsonString {
  std::string_view text;
  bool in_document;
};

/// Reads JSON values one after the other, as RFC 8259 has them and no others. Never reads beyond the end; anything
/// malformed is an `Error` with the offset of the value at fault.
///
/// The text must be valid UTF-8 as a whole; that is not checked here.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) noexcept
      : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()) {}

  std::size_t offset() const noexcept { return static_cast<std::size_t>(at_ - begin_); }

  [[noreturn]] void fail(std::string reason) const { throw Error(std::move(reason), offset()); }

  /// The first character of the next value or mark, or 0 at the end.
  char peek() noexcept {
    if (at_ != end_ && *at_ > ' ') return *at_;
    while (at_ != end_ && detail::is_json_blank(*at_)) ++at_;
    return at_ == end_ ? '\0' : *at_;
  }

  /// Goes on behind a mark, such as a comma.
  void expect(char mark, const char* expected) {
    if (at_ == end_ || *at_ != mark) expect_behind_blanks(mark, expected);
    ++at_;
  }

  [[gnu::noinline]] bool take_null() noexcept { return take_word("null"); }

  [[gnu::noinline]] bool read_bool() {
    if (take_word("true")) return true;
    if (take_word("false")) return false;
    refuse("true or false");
  }

  [[gnu::noinline]] std::int64_t read_i64() {
    const Number number = take_number();
    if (const auto value = integer(number)) return *value;
    refuse_from(number.token.data(), "a 64-bit integer");
  }

  /// A finite number, or one of the strings that PyTorch writes for the others. JSON has one type of numbers, and some
  /// writers drop a trailing `.0`: an integer will do where a double holds it exactly.
  [[gnu::noinline]] double read_double() {
    static constexpr char expected[] = "a double, \"NaN\", \"Infinity\" or \"-Infinity\"";
    const char first = peek();
    const char* const start = at_;
    if (first == '"') {
      if (const auto value = special_double(read_string().text)) return *value;
    } else {
      const Number number = take_number();
      constexpr std::int64_t most = std::int64_t{1} << 53;
      if (number.token.empty()) {
        refuse_from(start, expected);
      } else if (!number.is_integer) {
        if (const auto value = detail::json_double(number.token)) return *value;
      } else if (const auto value = integer(number); value && *value >= -most && *value <= most) {
        return static_cast<double>(*value);
      }
    }
    refuse_from(start, expected);
  }

  [[gnu::noinline]] JsonString read_string() {
    if (peek() != '"') refuse("a string");
    const char* const start = ++at_;
    at_ = detail::json_special(at_, end_);
    if (at_ == end_ || *at_ != '"') return read_escaped(start);
    return {std::string_view(start, static_cast<std::size_t>(at_++ - start)), true};
  }

  /// Skips a number or `true`, `false`, `null`.
  void skip_scalar() {
    if (take_word("null") || take_word("true") || take_word("false")) return;
    if (take_number().token.empty()) refuse("a value");
  }

  /// Checks that nothing follows.
  void end() {
    if (peek() != '\0' || at_ != end_) fail(std::to_string(end_ - at_) + " bytes follow the end of the value");
  }

  [[noreturn]] void refuse(const std::string& expected) {
    const char first = peek();
    fail("expected " + expected + ", found " + (at_ == end_ ? "the end of the text" : found(first)));
  }

 private:
  struct Number {
    std::string_view token;  ///< empty where there is none; its address is that of the value all the same
    bool is_integer;
  };

  Number take_number() {
    peek();
    const char* at = at_;
    const auto digits = [&] {
      const char* const start = at;
      while (at != end_ && detail::is_digit(*at)) ++at;
      return at != start;
    };
    const auto take = [&](char a, char b) { return at != end_ && (*at == a || *at == b) && (++at, true); };
    const Number none{std::string_view(at_, 0), false};
    take('-', '-');
    if (!take('0', '0') && !digits()) return none;
    bool is_integer = true;
    if (take('.', '.')) {
      is_integer = false;
      if (!digits()) return none;
    }
    if (take('e', 'E')) {
      is_integer = false;
      take('+', '-');
      if (!digits()) return none;
    }
    const char* const start = std::exchange(at_, at);
    return {std::string_view(start, static_cast<std::size_t>(at - start)), is_integer};
  }

  static std::optional<std::int64_t> integer(const Number& number) noexcept {
    std::int64_t value = 0;
    if (!number.is_integer) return std::nullopt;
    const auto end = number.token.data() + number.token.size();
    return std::from_chars(number.token.data(), end, value).ec == std::errc() ? std::optional(value) : std::nullopt;
  }

  static std::optional<double> special_double(std::string_view text) noexcept {
    using Double = std::numeric_limits<double>;
    if (text == "NaN") return Double::quiet_NaN();
    if (text == "Infinity") return Double::infinity();
    if (text == "-Infinity") return -Double::infinity();
    return std::nullopt;
  }

  bool take_word(std::string_view word) noexcept {
    peek();
    if (static_cast<std::size_t>(end_ - at_) < word.size() || std::memcmp(at_, word.data(), word.size()) != 0) return false;
    at_ += word.size();
    return true;
  }

  [[gnu::noinline]] void expect_behind_blanks(char mark, const char* expected) {
    if (peek() != mark || at_ == end_) refuse(expected);
  }

  // Strings with escapes.

  /// The rest of a string whose first character at `at_` is no plain one.
  JsonString read_escaped(const char* start) {
    scratch_.assign(start, at_);
    while (at_ != end_ && *at_ != '"') {
      if (*at_ != '\\') fail("a string holds the control character " + std::to_string(static_cast<int>(*at_)));
      read_escape();
      const char* const run = at_;
      at_ = detail::json_special(at_, end_);
      scratch_.append(run, at_);
    }
    if (at_ == end_) refuse_unended();
    ++at_;
    return {scratch_, false};
  }

  void read_escape() {
    static constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    const char* const start = at_++;
    if (at_ == end_) refuse_unended();
    const char letter = *at_++;
    if (letter == 'u') return append(read_code_point(start));
    const std::size_t position = letters.find(letter);
    if (position == std::string_view::npos) {
      at_ = start;
      fail("the escape \\" + Error::printable({&letter, 1}) + " has no meaning in JSON");
    }
    scratch_ += meanings[position];
  }

  std::uint32_t read_code_point(const char* start) {
    const auto is_high = [](std::uint32_t unit) { return unit >= 0xd800 && unit < 0xdc00; };
    const auto is_low = [](std::uint32_t unit) { return unit >= 0xdc00 && unit < 0xe000; };
    const std::uint32_t unit = read_hex(start);
    if (!is_high(unit) && !is_low(unit)) return unit;
    if (is_high(unit) && end_ - at_ >= 2 && at_[0] == '\\' && at_[1] == 'u') {
      at_ += 2;
      const std::uint32_t low = read_hex(start);
      if (is_low(low)) return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
    }
    at_ = start;
    fail("half of a surrogate pair, which is no character");
  }

  std::uint32_t read_hex(const char* start) {
    std::uint32_t value = 0;
    if (end_ - at_ < 4) refuse_unended();
    const auto [end, fault] = std::from_chars(at_, at_ + 4, value, 16);
    if (fault != std::errc() || end != at_ + 4) {
      at_ = start;
      fail("expected four hexadecimal digits behind \\u");
    }
    at_ += 4;
    return value;
  }

  void append(std::uint32_t code) {
    const auto tail = [](std::uint32_t bits) { return static_cast<char>(0x80 | (bits & 0x3f)); };
    if (code < 0x80) {
      scratch_ += static_cast<char>(code);
    } else if (code < 0x800) {
      scratch_ += {static_cast<char>(0xc0 | code >> 6), tail(code)};
    } else if (code < 0x10000) {
      scratch_ += {static_cast<char>(0xe0 | code >> 12), tail(code >> 6), tail(code)};
    } else {
      scratch_ += {static_cast<char>(0xf0 | code >> 18), tail(code >> 12), tail(code >> 6), tail(code)};
    }
  }

  // Faults.

  /// What a message calls the next value.
  std::string found(char first) const {
    if (first == '{') return "an object";
    if (first == '[') return "an array";
    const char* at = at_ + 1;
    if (first == '"') {
      const char* const close = detail::json_special(at, end_);
      return "the string \"" + Error::printable({at, static_cast<std::size_t>(close - at)}) + "\"";
    }
    const auto ends = [](char c) { return detail::is_json_blank(c) || c == ',' || c == ']' || c == '}' || c == ':'; };
    while (at != end_ && !ends(*at)) ++at;
    return Error::printable({at_, static_cast<std::size_t>(at - at_)});
  }

  [[noreturn]] void refuse_from(const char* start, const std::string& expected) {
    at_ = start;
    refuse(expected);
  }

  [[noreturn]] void refuse_unended() {
    at_ = end_;
    fail("the text ends inside a string");
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  std::string scratch_;
};

}  // namespace pt2wire
