// Part of the example `run`. Sizes as expressions of symbols: `Add(Symbol('s77', positive=True), Integer(1))`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cursor.h"
#include "symbols.h"

namespace run {

/// What the symbols stand for in one call.
using Symbols = std::map<std::string, IValue, std::less<>>;

/// Whether a function computes all its arguments, or is one of Python's that compute no more than they need:
/// `a and b`, `a or b`, `b if a else c`, and `a < b < c`, which computes b once.
enum class Order { all, both, either, choice, chain };

/// A number, a symbol, or a function of others.
struct Expression {
  IValue number;
  std::string symbol;
  const std::pair<std::size_t, Function>* function = nullptr;  ///< how many arguments it takes, and what it computes
  std::string_view name;                                       ///< the function's
  std::vector<Expression> items;  ///< of a function of two, there may be more: `a + b + c`
  Order order = Order::all;
  std::vector<Function> relations;  ///< of a chain, one between each two items

  static Expression of(IValue number) { return {std::move(number), {}, nullptr, {}, {}, Order::all, {}}; }
  static Expression in_order(Order order, std::vector<Expression> items) { return {{}, {}, nullptr, {}, std::move(items), order, {}}; }
  static Expression call(std::string_view name, std::vector<Expression> items) {
    const auto& found = symbolic_functions().at(name);
    const bool folds = found.first == 2 && items.size() > 2;
    const bool fewer = name == "builtins.round" && items.size() == 1;
    if (items.size() != found.first && !folds && !fewer) fail("wrong number of arguments of " + quoted(name));
    return {{}, {}, &found, name, std::move(items), Order::all, {}};
  }

  /// Its value; nothing while a symbol in it is unknown.
  std::optional<IValue> evaluate(const Symbols& symbols) const {
    if (!number.isNone()) return number;
    if (order != Order::all) return evaluate_in_order(symbols);
    if (function == nullptr) {
      const auto found = symbols.find(symbol);
      return found == symbols.end() ? std::nullopt : std::optional<IValue>(found->second);
    }
    Values values;
    for (const Expression& item : items) {
      std::optional<IValue> value = item.evaluate(symbols);
      if (!value) return std::nullopt;
      values.push_back(std::move(*value));
    }
    if (function->first != 2 || values.size() < 2) return function->second(std::move(values)).at(0);
    IValue result = values[0];
    for (std::size_t i = 1; i != values.size(); ++i) result = function->second({result, values[i]}).at(0);
    return result;
  }

  std::optional<std::int64_t> evaluate_integer(const Symbols& symbols) const {
    const std::optional<IValue> value = evaluate(symbols);
    return value ? std::optional(as_int(*value)) : std::nullopt;
  }

  /// Adds the names of its symbols to a set.
  void collect_symbols(std::set<std::string>& names) const {
    if (!symbol.empty()) names.insert(symbol);
    for (const Expression& item : items) item.collect_symbols(names);
  }

 private:
  std::optional<IValue> evaluate_in_order(const Symbols& symbols) const {
    std::optional<IValue> first = items[0].evaluate(symbols);
    if (!first) return std::nullopt;
    if (order == Order::chain) return evaluate_chain(std::move(*first), symbols);
    if (order == Order::choice) return items[is_true(*first) ? 1 : 2].evaluate(symbols);
    return is_true(*first) == (order == Order::both) ? items[1].evaluate(symbols) : first;
  }

  std::optional<IValue> evaluate_chain(IValue left, const Symbols& symbols) const {
    IValue result(true);
    for (std::size_t i = 0; i != relations.size() && is_true(result); ++i) {
      std::optional<IValue> right = items[i + 1].evaluate(symbols);
      if (!right) return std::nullopt;
      result = relations[i]({std::move(left), *right}).at(0);
      left = std::move(*right);
    }
    return result;
  }
};

/// `3*s0 + 1`: a factor for each symbol, and under the empty name what is added. No factor is zero.
using Linear = std::map<std::string, std::int64_t>;

/// An expression as a sum of multiples of symbols; nothing if it is none.
inline std::optional<Linear> linear(const Expression& expression) {
  const auto is_constant = [](const Linear& sum) { return sum.empty() || (sum.size() == 1 && sum.begin()->first.empty()); };
  const auto added = [](Linear sum, const Linear& other, std::int64_t factor) {
    for (const auto& [symbol, number] : other) sum[symbol] = add(sum[symbol], multiply(number, factor));
    std::erase_if(sum, [](const auto& item) { return item.second == 0; });
    return sum;
  };
  if (!expression.number.isNone()) {
    if (!expression.number.isInt()) return std::nullopt;
    return added({}, {{"", expression.number.toInt()}}, 1);
  }
  if (!expression.symbol.empty()) return Linear{{expression.symbol, 1}};
  if (expression.order != Order::all) return std::nullopt;
  std::optional<Linear> result;
  for (const Expression& item : expression.items) {
    std::optional<Linear> next = linear(item);
    if (!next) return std::nullopt;
    if (!result) {
      result = expression.name == "_operator.neg" ? added({}, *next, -1) : std::move(next);
    } else if (expression.name == "_operator.add" || expression.name == "_operator.sub") {
      result = added(std::move(*result), *next, expression.name == "_operator.add" ? 1 : -1);
    } else if (expression.name == "_operator.mul" && (is_constant(*result) || is_constant(*next))) {
      if (is_constant(*next)) std::swap(*result, *next);
      result = added({}, *next, result->empty() ? 0 : result->begin()->second);
    } else {
      return std::nullopt;
    }
  }
  static const std::set<std::string_view> known{"_operator.add", "_operator.sub", "_operator.mul", "_operator.neg"};
  return known.count(expression.name) != 0 ? result : std::nullopt;
}

/// What SymPy's functions are called in nodes; nothing for those that sizes do not have.
inline std::optional<std::string_view> sympy_function(std::string_view name) {
  static const std::map<std::string_view, std::string_view> names{
      {"Add", "_operator.add"},           {"Mul", "_operator.mul"},   {"Pow", "_operator.pow"},
      {"FloorDiv", "_operator.floordiv"}, {"Mod", "_operator.mod"},   {"PythonMod", "_operator.mod"},
      {"Max", "torch.sym_max"},           {"Min", "torch.sym_min"},   {"PowByNatural", "_operator.pow"},
  };
  const auto found = names.find(name);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

/// Reads the text that the format has for expressions. Throws `Error` for functions that are not in the table.
class ExpressionReader : TextCursor {
 public:
  static Expression read(std::string_view text) {
    ExpressionReader reader(text);
    Expression result = reader.expression(0);
    reader.expect_end();
    return result;
  }

 private:
  explicit ExpressionReader(std::string_view text) : TextCursor(text, "expression", "") {}

  Expression expression(int depth) {
    constexpr int deepest = 100;
    if (depth > deepest) fail("an expression is nested too deeply");
    const std::string_view name = word();
    expect("(");
    Expression result;
    if (name == "Integer") {
      result.number = number<std::int64_t>();
    } else if (name == "Symbol") {
      result.symbol = symbol();
    } else {
      const auto function = sympy_function(name);
      if (!function) fail("expressions with " + quoted(name) + " are not supported as sizes of inputs");
      std::vector<Expression> items;
      do items.push_back(expression(depth + 1));
      while (take(", "));
      result = Expression::call(*function, std::move(items));
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
};

}  // namespace run
