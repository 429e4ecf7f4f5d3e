// Part of the example `run`. Python's functions on numbers, with which programs compute sizes.
#pragma once

#include <c10/util/generic_math.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "operators.h"

namespace run {

inline bool is_true(const IValue& value) {
  if (value.isBool()) return value.toBool();
  if (value.isInt()) return value.toInt() != 0;
  if (value.isDouble()) return value.toDouble() != 0;
  if (value.isTensor()) return value.toTensor().item().toBool();
  fail("expected a condition, found " + value.tagKind());
}

inline double as_double(const IValue& value) {
  if (value.isDouble()) return value.toDouble();
  if (value.isInt()) return static_cast<double>(value.toInt());
  if (value.isBool()) return value.toBool() ? 1.0 : 0.0;
  fail("expected a number, found " + value.tagKind());
}

inline std::int64_t as_int(const IValue& value) {
  if (value.isInt()) return value.toInt();
  if (value.isBool()) return value.toBool() ? 1 : 0;
  fail("expected an integer, found " + value.tagKind());
}

/// A double as an integer. Throws `Error` where 64 bits do not hold it.
inline std::int64_t integral(double value) {
  constexpr double limit = 9223372036854775808.0;
  if (!(value >= -limit && value < limit)) fail("a number is too large for an integer of 64 bits");
  return static_cast<std::int64_t>(value);
}

/// What is computed for whole numbers, and what if one of the two is a float.
template <class Int, class Float>
Function binary(Int whole, Float inexact) {
  return [whole, inexact](const Values& in) -> Values {
    if (in.at(0).isDouble() || in.at(1).isDouble()) return {inexact(as_double(in[0]), as_double(in[1]))};
    return {whole(as_int(in[0]), as_int(in[1]))};
  };
}
template <class Both>
Function binary(Both both) {
  return binary(both, both);
}

template <class Int, class Float>
Function unary(Int whole, Float inexact) {
  return [whole, inexact](const Values& in) -> Values {
    return {in.at(0).isDouble() ? IValue(inexact(in[0].toDouble())) : IValue(whole(as_int(in[0])))};
  };
}

// -- integers of 64 bits, where Python's have any number -----------------------------------------------------------

[[noreturn]] inline void overflow() { fail("an integer exceeds 64 bits"); }

inline std::int64_t add(std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_add_overflow(a, b, &result)) overflow();
  return result;
}
inline std::int64_t subtract(std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_sub_overflow(a, b, &result)) overflow();
  return result;
}
inline std::int64_t multiply(std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) overflow();
  return result;
}
inline std::int64_t nonzero(std::int64_t divisor) {
  if (divisor == 0) fail("division by zero");
  return divisor;
}
inline std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return b == -1 ? subtract(0, a) : c10::div_floor_integer(a, nonzero(b));
}
/// The remainder that has the sign of the divisor.
inline std::int64_t modulo(std::int64_t a, std::int64_t b) { return b == -1 ? 0 : c10::div_mod(a, nonzero(b)); }
inline std::int64_t power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  while (exponent > 0) {
    if (exponent % 2 != 0) result = multiply(result, base);
    exponent /= 2;
    if (exponent != 0) base = multiply(base, base);
  }
  return result;
}
inline std::int64_t shift_left(std::int64_t a, std::int64_t bits) {
  if (bits < 0 || bits > 62) overflow();
  return multiply(a, std::int64_t{1} << bits);
}

// -- the functions -------------------------------------------------------------------------------------------------

inline double nonzero(double divisor) {
  if (divisor == 0) fail("division by zero");
  return divisor;
}

/// `a / b` of integers: the double next to the quotient itself, of two next ones the even one. The quotient of the two doubles
/// may be another one, as an integer over 2^53 is none.
inline double quotient(std::int64_t a, std::int64_t b) {
  __extension__ using Wide = unsigned __int128;
  nonzero(b);
  Wide dividend = a < 0 ? Wide{0} - static_cast<Wide>(a) : static_cast<Wide>(a);
  const Wide divisor = b < 0 ? Wide{0} - static_cast<Wide>(b) : static_cast<Wide>(b);
  if (dividend == 0) return b < 0 ? -0.0 : 0.0;
  int shift = 0;
  for (; dividend >> 127 == 0; dividend <<= 1) --shift;
  // Of at least 63 bits, so that the last one may say whether there is a rest: a double has 53.
  const Wide digits = dividend / divisor | (dividend % divisor != 0 ? 1 : 0);
  const double size = std::ldexp(static_cast<double>(digits), shift);
  return (a < 0) == (b < 0) ? size : -size;
}

/// -1, 0 or 1, as `whole` is less than `number`, equal to it or more; not of a NaN.
inline int order(std::int64_t whole, double number) {
  if (number >= 9223372036854775808.0) return -1;
  if (number < -9223372036854775808.0) return 1;
  const auto other = static_cast<std::int64_t>(number);
  if (whole != other) return whole < other ? -1 : 1;
  const double rest = number - std::trunc(number);
  return rest > 0 ? -1 : rest < 0 ? 1 : 0;
}

/// A relation of two numbers, an integer and a float among them: exact, without making a float of the integer.
template <class Relation>
Function relation(Relation relation) {
  return [relation](const Values& in) -> Values {
    const IValue &a = in.at(0), &b = in.at(1);
    if (a.isDouble() == b.isDouble()) return binary(relation)(in);
    const double number = (a.isDouble() ? a : b).toDouble();
    if (std::isnan(number)) return {relation(0.0, number)};
    return {a.isDouble() ? relation(0, order(as_int(b), number)) : relation(order(as_int(a), number), 0)};
  };
}

/// `a ** b`: of two integers an integer, but for negative exponents.
inline Values python_power(const Values& in) {
  const bool whole = !in.at(0).isDouble() && !in.at(1).isDouble() && as_int(in[1]) >= 0;
  if (whole) return {power(as_int(in[0]), as_int(in[1]))};
  const double base = as_double(in[0]);
  const double exponent = as_double(in[1]);
  const double result = std::pow(base, exponent);
  if (!std::isfinite(result) && std::isfinite(base) && std::isfinite(exponent)) fail("a power is no real number");
  return {result};
}

inline Values square_root(const Values& in) {
  const double number = as_double(in.at(0));
  if (number < 0) fail("expected a number of at least 0, found " + std::to_string(number));
  return {std::sqrt(number)};
}

/// `a & b`, `a | b` or `a ^ b`, which of two booleans is a boolean.
template <class Op>
Function bitwise(Op op) {
  return [op](const Values& in) -> Values {
    const std::int64_t result = op(as_int(in.at(0)), as_int(in.at(1)));
    return {in[0].isBool() && in[1].isBool() ? IValue(result != 0) : IValue(result)};
  };
}

inline Values sum(const Values& in) {
  Values total{std::int64_t{0}};
  static const Function plus = binary(add, std::plus<double>());
  for (const IValue& item : items_of(in.at(0))) total = plus({total[0], item});
  return total;
}

inline constexpr const char* rounding_to_tens = "rounding to tens is not supported";

/// `round(a)`, an integer, or `round(a, digits)`; halves go to the even neighbour. Digits that are None are none.
inline Values python_round(const Values& in) {
  const bool has_digits = in.size() > 1 && !in[1].isNone();
  const std::int64_t digits = has_digits ? as_int(in[1]) : 0;
  if (digits < 0) fail(rounding_to_tens);
  if (!in.at(0).isDouble()) return {as_int(in[0])};
  const double number = in[0].toDouble();
  if (!has_digits) return {integral(std::nearbyint(number))};
  if (digits > 400 || !std::isfinite(number)) return {number};  // no double has so many
  std::string text(800, '\0');
  std::snprintf(text.data(), text.size(), "%.*f", static_cast<int>(digits), number);
  return {std::strtod(text.c_str(), nullptr)};
}

/// The functions by the names that nodes have for them, with how many arguments they take.
inline const std::map<std::string_view, std::pair<std::size_t, Function>>& symbolic_functions() {
  const auto same = [](auto value) { return value; };
  const auto unsupported_shift = [](double, double) -> std::int64_t { fail("expected integers to shift"); };
  const auto shift_right = [](std::int64_t a, std::int64_t bits) -> std::int64_t {
    if (bits < 0) fail("expected a count of bits to shift by, found a negative number");
    return a >> std::min<std::int64_t>(bits, 63);
  };
  static const std::map<std::string_view, std::pair<std::size_t, Function>> table{
      {"_operator.neg", {1, unary([](std::int64_t a) { return subtract(0, a); }, std::negate<double>())}},
      {"_operator.pos", {1, unary(same, same)}},
      {"_operator.abs", {1, unary([](std::int64_t a) { return a < 0 ? subtract(0, a) : a; }, [](double a) { return std::fabs(a); })}},
      {"_operator.add", {2, binary(add, std::plus<double>())}},
      {"_operator.sub", {2, binary(subtract, std::minus<double>())}},
      {"_operator.mul", {2, binary(multiply, std::multiplies<double>())}},
      {"_operator.truediv", {2, binary(quotient, [](double a, double b) { return a / nonzero(b); })}},
      {"_operator.floordiv", {2, binary(floor_divide, [](double a, double b) { return c10::div_floor_floating(a, nonzero(b)); })}},
      {"_operator.mod", {2, binary(modulo, [](double a, double b) { return c10::div_mod(a, nonzero(b)); })}},
      {"_operator.pow", {2, python_power}},
      {"_operator.lshift", {2, binary(shift_left, unsupported_shift)}},
      {"_operator.rshift", {2, binary(shift_right, unsupported_shift)}},
      {"_operator.eq", {2, relation([](auto a, auto b) { return a == b; })}},
      {"_operator.ne", {2, relation([](auto a, auto b) { return a != b; })}},
      {"_operator.lt", {2, relation([](auto a, auto b) { return a < b; })}},
      {"_operator.le", {2, relation([](auto a, auto b) { return a <= b; })}},
      {"_operator.gt", {2, relation([](auto a, auto b) { return a > b; })}},
      {"_operator.ge", {2, relation([](auto a, auto b) { return a >= b; })}},
      {"_operator.and_", {2, bitwise(std::bit_and<std::int64_t>())}},
      {"_operator.or_", {2, bitwise(std::bit_or<std::int64_t>())}},
      {"_operator.xor", {2, bitwise(std::bit_xor<std::int64_t>())}},
      {"math.trunc", {1, unary(same, integral)}},
      {"math.floor", {1, unary(same, [](double a) { return integral(std::floor(a)); })}},
      {"math.ceil", {1, unary(same, [](double a) { return integral(std::ceil(a)); })}},
      {"torch.sym_int", {1, unary(same, integral)}},
      {"torch.sym_float", {1, [](const Values& in) -> Values { return {as_double(in.at(0))}; }}},
      {"torch.sym_not", {1, [](const Values& in) -> Values { return {!is_true(in.at(0))}; }}},
      {"torch._sym_sqrt", {1, square_root}},
      {"torch.sym_max", {2, binary([](auto a, auto b) { return std::max(a, b); })}},
      {"torch.sym_min", {2, binary([](auto a, auto b) { return std::min(a, b); })}},
      {"torch.sym_ite", {3, [](const Values& in) -> Values { return {is_true(in.at(0)) ? in.at(1) : in.at(2)}; }}},
      {"torch.sym_sum", {1, sum}},
      {"builtins.round", {2, python_round}},
  };
  return table;
}

/// The call of a function on numbers, whose arguments are all positional.
inline Call symbolic_call(const pt2wire::Node& node, const Names& names) {
  const auto found = symbolic_functions().find(node.target);
  if (found == symbolic_functions().end()) fail("there is no such function in this example");
  const auto& [count, function] = found->second;
  const bool fewer = node.target == "builtins.round" && node.inputs.size() == 1;
  if (node.inputs.size() != count && !fewer) {
    fail("expected " + std::to_string(count) + " arguments, found " + std::to_string(node.inputs.size()));
  }
  if (node.target == "builtins.round" && !fewer) {
    const auto* const digits = node.inputs[1].arg.get_if<pt2wire::Argument::Tag::as_int>();
    if (digits != nullptr && *digits < 0) fail(rounding_to_tens);  // before anything runs
  }
  Call call{function, {}};
  for (std::size_t i = 0; i != node.inputs.size(); ++i) call.inputs.push_back(input_source(node, i, names));
  return call;
}

}  // namespace run
