// Part of the example `run`. A place in a text: what its readers of small languages have in common.
#pragma once

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

#include "values.h"

namespace run {

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

  [[noreturn]] void fail_here() const {
    fail("cannot read the " + std::string(language_) + " " + quoted(text_) + " from character " + std::to_string(at_) + " on");
  }

  static bool is_letter(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) || letter == '_'; }

  std::string_view text_;
  std::size_t at_ = 0;

 private:
  std::string_view language_;
  std::string_view blanks_;
};

}  // namespace run
