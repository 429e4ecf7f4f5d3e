// Part of the example `run`. Sizes as expressions of symbols: `Add(Symbol('s77', positive=True), Integer(1))`.
#pragma once

#include <cctype>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "symbols.h"

namespace run {

/// What the symbols stand for in one call.
using Symbols = std::map<std::string, std::int64_t, std::less<>>;

/// An integer, a symbol, or a function of others.
struct Expression {
  std::optional<std::int64_t> integer;
  std::string symbol;
  const Function* function = nullptr;
  std::vector<Expression> items;

  /// Its value; nothing while a symbol in it is unknown.
  std::optional<std::int64_t> evaluate(const Symbols& symbols) const {
    if (integer) return integer;
    if (function == nullptr) {
      const auto found = symbols.find(symbol);
      return found == symbols.end() ? std::nullopt : std::optional(found->second);
    }
    std::optional<std::int64_t> result = items.at(0).evaluate(symbols);
    for (std::size_t i = 1; i != items.size(); ++i) {
      const std::optional<std::int64_t> next = items[i].evaluate(symbols);
      if (!result || !next) return std::nullopt;
      result = as_int((*function)({*result, *next}).at(0));
    }
    return result;
  }
};

/// Reads the text that the format has for expressions. Throws `Error` for functions that are not in the table.
class ExpressionReader {
 public:
  static Expression read(std::string_view text) {
    ExpressionReader reader(text);
    Expression result = reader.expression(0);
    if (reader.at_ != text.size()) reader.fail_here();
    return result;
  }

 private:
  explicit ExpressionReader(std::string_view text) : text_(text) {}

  static const Function* find(std::string_view name) {
    static const std::map<std::string_view, std::string_view> names{
        {"Add", "_operator.add"},           {"Mul", "_operator.mul"},   {"Pow", "_operator.pow"},
        {"FloorDiv", "_operator.floordiv"}, {"Mod", "_operator.mod"},   {"PythonMod", "_operator.mod"},
        {"Max", "torch.sym_max"},           {"Min", "torch.sym_min"},
    };
    const auto found = names.find(name);
    if (found == names.end()) fail("expressions with " + quoted(name) + " are not supported as sizes of inputs");
    return &symbolic_functions().at(found->second).second;
  }

  Expression expression(int depth) {
    constexpr int deepest = 100;
    if (depth > deepest) fail("an expression is nested too deeply");
    const std::string_view name = word();
    expect("(");
    Expression result;
    if (name == "Integer") {
      result.integer = number();
    } else if (name == "Symbol") {
      result.symbol = symbol();
    } else {
      result.function = find(name);
      do result.items.push_back(expression(depth + 1));
      while (take(", "));
    }
    expect(")");
    return result;
  }

  /// The name of a symbol; what is assumed of it does not matter here.
  std::string symbol() {
    expect("'");
    std::string name(word());
    expect("'");
    while (take(", ")) {
      word();
      expect("=");
      word();
    }
    return name;
  }

  std::int64_t number() {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail_here();
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  std::string_view word() {
    const std::size_t start = at_;
    while (at_ != text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    if (at_ == start) fail_here();
    return text_.substr(start, at_ - start);
  }

  bool take(std::string_view token) {
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail_here();
  }
  [[noreturn]] void fail_here() const {
    fail("cannot read the expression " + quoted(text_) + " from character " + std::to_string(at_) + " on");
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace run
