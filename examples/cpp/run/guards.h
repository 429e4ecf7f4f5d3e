// Part of the example `run`. Python's expressions on numbers, and guards, which are such: `L['x'].size()[0] % 3 == 0`.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cursor.h"
#include "expressions.h"
#include "treespecs.h"

namespace run {

/// Reads what Python and SymPy print of expressions. A name is a symbol, and so is what a guard has for a number of an input,
/// in the one spelling `L['x'][0].size()[1]`. Throws `Error` for what it does not know.
class PythonReader : TextCursor {
 public:
  static Expression read(std::string_view text) {
    PythonReader reader(text);
    Expression result = reader.choice();
    reader.expect_end();
    return result;
  }

 private:
  using Items = std::vector<Expression>;
  using Table = std::vector<std::pair<std::string_view, std::string_view>>;

  explicit PythonReader(std::string_view text) : TextCursor(text, "expression", " \t") {}

  /// `a if test else b`
  Expression choice() {
    constexpr int deepest = 100;
    if (++depth_ > deepest) fail("an expression is nested too deeply");
    Expression result = either();
    if (take_word("if")) {
      Expression test = either();
      if (!take_word("else")) fail_here();
      result = Expression::in_order(Order::choice, {std::move(test), std::move(result), choice()});
    }
    --depth_;
    return result;
  }

  Expression either() {
    Expression result = both();
    while (take_word("or")) result = Expression::in_order(Order::either, {std::move(result), both()});
    return result;
  }

  Expression both() {
    Expression result = negation();
    while (take_word("and")) result = Expression::in_order(Order::both, {std::move(result), negation()});
    return result;
  }

  Expression negation() {
    bool negated = false;
    while (take_word("not")) negated = !negated;
    Expression result = comparison();
    return negated ? Expression::call("torch.sym_not", {std::move(result)}) : result;
  }

  /// `a < b`, or `a < b < c`.
  Expression comparison() {
    static const Table operators{{"==", "_operator.eq"}, {"!=", "_operator.ne"}, {"<=", "_operator.le"},
                                 {">=", "_operator.ge"}, {"<", "_operator.lt"},  {">", "_operator.gt"}};
    Items items;
    items.push_back(bits());
    std::vector<Function> relations;
    while (const auto name = take_one(operators)) {
      relations.push_back(symbolic_functions().at(*name).second);
      items.push_back(bits());
    }
    if (relations.empty()) return std::move(items[0]);
    Expression chain = Expression::in_order(Order::chain, std::move(items));
    chain.relations = std::move(relations);
    return chain;
  }

  Expression bits() {
    static const Table either{{"|", "_operator.or_"}}, one{{"^", "_operator.xor"}}, both{{"&", "_operator.and_"}};
    return chain(either, [&] { return chain(one, [&] { return chain(both, [&] { return sum(); }); }); });
  }

  Expression sum() {
    static const Table terms{{"+", "_operator.add"}, {"-", "_operator.sub"}};
    static const Table factors{
        {"//", "_operator.floordiv"}, {"*", "_operator.mul"}, {"/", "_operator.truediv"}, {"%", "_operator.mod"}};
    return chain(terms, [&] { return chain(factors, [&] { return signed_power(); }); });
  }

  template <class Next>
  Expression chain(const Table& operators, Next next) {
    Expression result = next();
    while (const auto name = take_one(operators)) result = Expression::call(*name, {std::move(result), next()});
    return result;
  }

  Expression signed_power() {
    bool negative = false;
    while (take("-") || take("+")) negative = negative != (text_[at_ - 1] == '-');
    constexpr std::string_view lowest = "9223372036854775808";  // an integer of 64 bits with the sign alone
    if (negative && take_word(lowest)) return Expression::of(std::numeric_limits<std::int64_t>::min());
    Expression result = operand();
    if (take("**")) result = Expression::call("_operator.pow", {std::move(result), signed_power()});
    return negative ? Expression::call("_operator.neg", {std::move(result)}) : result;
  }

  Expression operand() {
    constexpr int most = 1000;  // each may nest what is before it
    if (++operands_ > most) fail("an expression has too many operands");
    if (take("(")) {
      Expression result = choice();
      expect(")");
      return result;
    }
    if (next() == '.' || std::isdigit(static_cast<unsigned char>(next()))) return literal();
    std::string name(word());
    if (name == "True" || name == "False") return Expression::of(name == "True");
    if (name == "L") return input();
    if (name == "math" || name == "torch") {
      expect(".");
      name += "." + std::string(word());
    }
    if (take("(")) return call(name);
    if (const auto found = constants().find(name); found != constants().end()) return Expression::of(found->second);
    Expression symbol;
    symbol.symbol = std::move(name);
    return symbol;
  }

  static const std::map<std::string_view, double>& constants() {
    static const std::map<std::string_view, double> table{
        {"math.e", 0x1.5bf0a8b145769p+1},
        {"math.inf", std::numeric_limits<double>::infinity()},
        {"math.nan", std::numeric_limits<double>::quiet_NaN()},
        {"math.pi", 0x1.921fb54442d18p+1},
    };
    return table;
  }

  Expression call(const std::string& name) {
    static const std::map<std::string_view, std::string_view> names{
        {"max", "torch.sym_max"},           {"min", "torch.sym_min"},           {"torch.sym_max", "torch.sym_max"},
        {"torch.sym_min", "torch.sym_min"}, {"abs", "_operator.abs"},           {"round", "builtins.round"},
        {"math.floor", "math.floor"},       {"math.ceil", "math.ceil"},         {"math.trunc", "math.trunc"},
        {"math.sqrt", "torch._sym_sqrt"},   {"torch.sym_sqrt", "torch._sym_sqrt"}, {"torch._sym_sqrt", "torch._sym_sqrt"},
        {"torch.sym_float", "torch.sym_float"}, {"torch.sym_int", "torch.sym_int"}, {"torch.sym_not", "torch.sym_not"},
        {"torch.sym_ite", "torch.sym_ite"},
    };
    const auto found = names.find(name);
    const auto function = found == names.end() ? sympy_function(name) : std::optional(found->second);
    if (!function) fail("expressions with " + run::quoted(name) + " are not supported");
    Items items;
    do items.push_back(choice());
    while (take(","));
    expect(")");
    if (name == "round" && items.size() == 2) {
      const std::optional<std::int64_t> digits = items[1].evaluate_integer({});
      if (digits && *digits < 0) fail(rounding_to_tens);  // before anything runs
    }
    return Expression::call(*function, std::move(items));
  }

  /// A number that is an input or that a tensor says of itself, behind its `L`.
  Expression input() {
    Expression symbol;
    symbol.symbol = "L";
    while (true) {
      if (take("[")) {
        symbol.symbol += key();
        expect("]");
      } else if (take(".")) {
        symbol.symbol += "." + std::string(word());
      } else if (take("()")) {
        symbol.symbol += "()";
      } else {
        return symbol;
      }
    }
  }

  std::string key() {
    const char first = next();
    return first == '\'' || first == '"' ? key_step(quoted_text()) : other_key_step(before("]"));
  }

  Expression literal() {
    const std::size_t end = text_.find_first_not_of("0123456789", at_);
    const bool inexact = end != std::string_view::npos && (text_[end] == '.' || text_[end] == 'e' || text_[end] == 'E');
    return inexact ? Expression::of(number<double>()) : Expression::of(number<std::int64_t>());
  }

  std::optional<std::string_view> take_one(const Table& operators) {
    next();
    if (text_.substr(at_, 2) == "**") return std::nullopt;
    for (const auto& [token, name] : operators) {
      if (take(token)) return name;
    }
    return std::nullopt;
  }

  int depth_ = 0;
  int operands_ = 0;
};

/// The guards of a program, which say for which sizes and integers it is right.
class Guards {
 public:
  /// Makes a guard ready. One on inputs of which nobody here knows what they are called is left out if `skip_unknown` says so;
  /// else this throws `Error`, as it does for a guard on what is no input.
  void add(std::string_view text, const InputNames& names, bool skip_unknown) {
    Guard guard{std::string(text), PythonReader::read(text), {}};
    std::set<std::string> places;
    guard.condition.collect_symbols(places);
    for (const std::string& place : places) {
      const std::optional<Place> found = place_of(place, names);
      if (!found && skip_unknown) return;
      if (!found) fail(run::quoted(place) + " lies in a container of a class that is not known here; see --skip-unknown-guards");
      guard.places.emplace_back(place, *found);
    }
    guards_.push_back(std::move(guard));
  }

  /// Throws `Error` for the first guard that does not hold.
  void check(const Values& inputs) const {
    for (const Guard& guard : guards_) {
      Symbols numbers;
      for (const auto& [text, place] : guard.places) numbers.emplace(text, number(place, inputs));
      if (!is_true(*guard.condition.evaluate(numbers))) fail("guard failed: " + guard.text);
    }
  }

 private:
  /// A number of an input: itself, or what a tensor says of itself.
  struct Place {
    std::size_t input;
    std::string asked;
    std::int64_t dimension;
  };
  struct Guard {
    std::string text;
    Expression condition;
    std::vector<std::pair<std::string, Place>> places;
  };

  static std::optional<Place> place_of(const std::string& text, const InputNames& names) {
    const std::size_t call = text.find("()");  // no key holds parentheses, see `key_step`
    const std::size_t dot = call == std::string::npos ? text.size() : text.rfind('.', call);
    const std::optional<std::size_t> input = names.find(text.substr(0, dot));
    if (!input) return std::nullopt;
    if (dot == text.size()) return Place{*input, "", 0};
    const std::string asked = text.substr(dot + 1, call - dot - 1);
    const bool is_list = asked == "size" || asked == "stride";
    const bool is_number = asked == "storage_offset" || asked == "dim" || asked == "numel" || asked == "item";
    std::int64_t dimension = 0;
    const std::string_view rest = std::string_view(text).substr(call + 2);
    const char* const end = rest.data() + rest.size();
    const auto [read, error] = std::from_chars(rest.data() + (rest.empty() ? 0 : 1), end, dimension);
    const bool one_step = error == std::errc() && std::string_view(read, static_cast<std::size_t>(end - read)) == "]";
    if (!(is_list && one_step) && !(is_number && rest.empty())) fail("a guard on " + run::quoted(text) + " is not supported");
    return Place{*input, asked, dimension};
  }

  static IValue number(const Place& place, const Values& inputs) {
    const IValue& input = inputs.at(place.input);
    if (place.asked.empty()) return input;
    if (!input.isTensor()) fail("a guard asks for the " + place.asked + " of an input that is no tensor");
    const at::Tensor& tensor = input.toTensor();
    if (place.asked == "size") return tensor.size(place.dimension);
    if (place.asked == "stride") return tensor.stride(place.dimension);
    if (place.asked == "storage_offset") return tensor.storage_offset();
    if (place.asked == "item") return tensor.item();
    return place.asked == "dim" ? tensor.dim() : tensor.numel();
  }

  std::vector<Guard> guards_;
};

}  // namespace run
