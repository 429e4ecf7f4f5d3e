// Part of the example `run`. A place in a text: what its readers of small languages have in common.
#pragma once

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <system_error>

#include "values.h"

namespace run {

/// Adds a character to a text in UTF-8.
inline void append_utf8(std::string& text, std::uint32_t code) {
  const auto add = [&](std::uint32_t bits, std::uint32_t marker) { text += static_cast<char>(marker | bits); };
  const auto continuation = [&](int shift) { add(code >> shift & 0x3f, 0x80); };
  if (code < 0x80) return add(code, 0);
  if (code < 0x800) {
    add(code >> 6, 0xc0);
  } else {
    if (code < 0x10000) {
      add(code >> 12, 0xe0);
    } else {
      add(code >> 18, 0xf0);
      continuation(12);
    }
    continuation(6);
  }
  continuation(0);
}

inline bool is_letter(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) || letter == '_'; }

/// A text that is read from left to right. Whatever looks at the next character passes over blanks first, if the language has
/// any. Throws `Error` with the text and the place where it cannot go on.
class TextCursor {
 protected:
  /// `language` is what the text is called in errors; `blanks` are the characters that may stand between two tokens.
  TextCursor(std::string_view text, std::string_view language, std::string_view blanks)
      : text_(text), language_(language), blanks_(blanks) {}

  /// The next character that is no blank; zero at the end.
  char next() {
    at_ = std::min(text_.find_first_not_of(blanks_, at_), text_.size());
    return at_ == text_.size() ? '\0' : text_[at_];
  }

  bool take(std::string_view token) {
    next();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  /// A token that ends where a word does: `or`, but not the beginning of `order`.
  bool take_word(std::string_view token) {
    const std::size_t start = at_;
    if (take(token) && (at_ == text_.size() || !is_letter(text_[at_]))) return true;
    at_ = start;
    return false;
  }

  void expect(std::string_view token) {
    if (!take(token)) fail_here();
  }

  void expect_end() {
    next();
    if (at_ != text_.size()) fail_here();
  }

  /// Letters, digits and underscores, one at least.
  std::string_view word() {
    next();
    const std::size_t start = at_;
    while (at_ != text_.size() && is_letter(text_[at_])) ++at_;
    if (at_ == start) fail_here();
    return text_.substr(start, at_ - start);
  }

  /// All characters up to the first of `ends`, which stays; one at least.
  std::string_view before(std::string_view ends) {
    next();
    const std::size_t end = std::min(text_.find_first_of(ends, at_), text_.size());
    if (end == at_) fail_here();
    const std::string_view result = text_.substr(at_, end - at_);
    at_ = end;
    return result;
  }

  template <class Number>
  Number number() {
    next();
    Number value{};
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail_here();
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  /// A text in quotes, with the escapes of JSON and of what Python prints.
  std::string quoted_text() {
    const char quote = next();
    if (quote != '"' && quote != '\'') fail_here();
    ++at_;
    std::string result;
    while (at_ != text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\') {
        append_utf8(result, escape());
      } else {
        result += text_[at_++];
      }
    }
    expect({&quote, 1});
    return result;
  }

  [[noreturn]] void fail_here() const {
    fail("cannot read the " + std::string(language_) + " " + quoted(text_) + " from character " + std::to_string(at_) + " on");
  }

  std::string_view text_;
  std::size_t at_ = 0;

 private:
  std::uint32_t escape() {
    static const std::map<char, std::uint32_t> characters{{'"', '"'},  {'\'', '\''}, {'\\', '\\'}, {'/', '/'},
                                                          {'b', '\b'}, {'f', '\f'}, {'n', '\n'},  {'r', '\r'}, {'t', '\t'}};
    static const std::map<char, std::size_t> digits{{'x', 2}, {'u', 4}, {'U', 8}};
    const char letter = text_.size() - at_ < 2 ? '\0' : text_[at_ + 1];
    if (const auto found = characters.find(letter); found != characters.end()) {
      at_ += 2;
      return found->second;
    }
    const auto found = digits.find(letter);
    if (found == digits.end()) fail_here();
    const std::uint32_t code = hexadecimal(found->second);
    const bool is_half = code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u";
    if (!is_half) return code;
    const std::size_t start = at_;
    const std::uint32_t other = hexadecimal(4);
    if (other >= 0xdc00 && other < 0xe000) return 0x10000 + ((code - 0xd800) << 10) + (other - 0xdc00);
    at_ = start;  // a half alone, as Python's texts may have it
    return code;
  }

  /// The digits of `\x`, `\u` or `\U`.
  std::uint32_t hexadecimal(std::size_t count) {
    const std::string_view digits = text_.substr(at_ + 2, count);
    std::uint32_t code = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (error != std::errc() || digits.size() != count || end != digits.data() + count || code > 0x10ffff) fail_here();
    at_ += 2 + count;
    return code;
  }

  std::string_view language_;
  std::string_view blanks_;
};

}  // namespace run
