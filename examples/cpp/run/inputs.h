// Part of the example `run`. What a caller may pass: dtypes, sizes and constants as in the export, symbols in their ranges.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "guards.h"

namespace run {

/// A size of an input, as the program describes it.
struct ExpectedSize {
  std::string place;  ///< for messages, such as `dimension 0 of the input "x"`
  Expression size;
};

/// What symbols must be, so that the sizes that were found are those that the program describes.
class SizeMatcher {
 public:
  void expect(const ExpectedSize& expected, std::int64_t found) {
    const Expression& size = expected.size;
    if (!size.symbol.empty()) {
      const auto symbol = symbols_.emplace(size.symbol, found).first;
      if (const std::int64_t known = as_int(symbol->second); known != found) mismatch(expected, std::to_string(known), found);
    } else {
      derived_.emplace_back(&expected, found);
    }
  }

  /// Compares the sizes that are no plain symbols, once all symbols are known.
  const Symbols& finish() {
    for (const auto& [expected, found] : derived_) {
      const std::optional<std::int64_t> value = expected->size.evaluate_integer(symbols_);
      if (!value) {
        match_hidden(*expected, found);
      } else if (*value != found) {
        mismatch(*expected, std::to_string(*value), found);
      }
    }
    return symbols_;
  }

  /// What was found for a size that is this sum, of symbols that no size is by itself.
  std::optional<std::int64_t> found_for(const Linear& sum) const {
    for (const auto& [known, found] : hidden_) {
      if (known == sum) return found;
    }
    return std::nullopt;
  }

 private:
  /// A size `3*h + 1` where no size is `h`: the first one says what h is, which may be a fraction, as for PyTorch.
  void match_hidden(const ExpectedSize& expected, std::int64_t found) {
    const std::optional<Linear> sum = linear(expected.size);
    if (!sum) return;
    hidden_.emplace_back(*sum, found);
    const auto term = std::find_if(sum->begin(), sum->end(), [](const auto& item) { return !item.first.empty(); });
    if (term == sum->end() || sum->size() > (sum->begin()->first.empty() ? 2u : 1u)) return;  // of several symbols
    const std::int64_t plus = sum->begin()->first.empty() ? sum->begin()->second : 0;
    const auto [known, is_new] = fractions_.emplace(term->first, std::pair(subtract(found, plus), term->second));
    const auto [over, under] = known->second;
    if (!is_new && multiply(term->second, over) != multiply(subtract(found, plus), under)) {
      const std::int64_t product = multiply(term->second, over);
      const bool whole = product % under == 0;
      mismatch(expected, whole ? std::to_string(add(product / under, plus)) : "another size", found);
    }
  }

  [[noreturn]] static void mismatch(const ExpectedSize& expected, const std::string& value, std::int64_t found) {
    const std::string& symbol = expected.size.symbol;
    fail(expected.place + ": expected " + (symbol.empty() ? "" : symbol + " = ") + value + ", found " + std::to_string(found));
  }

  Symbols symbols_;
  std::vector<std::pair<const ExpectedSize*, std::int64_t>> derived_;
  std::vector<std::pair<Linear, std::int64_t>> hidden_;
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> fractions_;
};

/// Judges one input of a call, and gives it as the program takes it.
using InputCheck = std::function<IValue(const IValue&, SizeMatcher&)>;

inline Expression size_expression(const pt2wire::SymInt& size) {
  if (const auto* const expression = size.get_if<pt2wire::SymInt::Tag::as_expr>()) {
    return ExpressionReader::read(expression->expr_str);
  }
  return Expression::of(size.as_int());
}

/// Throws `Error` for a tensor that is no strided one with data: of others, files of torch.save that libtorch reads and writes
/// have none.
inline void check_in_files(const pt2wire::TensorMeta& meta) {
  const c10::Layout layout = to_c10(meta.layout);
  if (layout != c10::kStrided) {
    std::ostringstream text;
    text << layout;
    fail("tensors of layout " + text.str() + " cannot be in the files of inputs and outputs");
  }
  if (to_c10(meta.device).is_meta()) fail("tensors on the device meta cannot be in the files of inputs and outputs");
}

/// The check of a tensor: its dtype, device and sizes. Strides and storage offsets may be others than in the export. Of a
/// dtype that files do not have, it may be the bits; what the program takes then shares their storage.
inline InputCheck tensor_check(const pt2wire::TensorMeta& meta, const std::string& place) {
  check_in_files(meta);
  const c10::ScalarType dtype = to_c10(meta.dtype);
  const c10::DeviceType device = to_c10(meta.device).type();
  std::vector<ExpectedSize> sizes;
  for (std::size_t i = 0; i != meta.sizes.size(); ++i) {
    sizes.push_back({"dimension " + std::to_string(i) + " of " + place, size_expression(meta.sizes[i])});
  }
  return [=](const IValue& value, SizeMatcher& matcher) -> IValue {
    if (!value.isTensor()) fail(place + ": expected a tensor, found " + value.tagKind());
    at::Tensor tensor = value.toTensor();
    const c10::ScalarType in_files = dtype_in_files(dtype);
    if (in_files != dtype && tensor.scalar_type() == in_files) tensor = tensor.view(dtype);
    if (tensor.scalar_type() != dtype) {
      fail(place + ": expected dtype " + c10::toString(dtype) +
           (in_files == dtype ? "" : std::string(" or its bits as ") + c10::toString(in_files)) + ", found " +
           c10::toString(tensor.scalar_type()));
    }
    if (tensor.device().type() != device) {
      fail(place + ": expected a tensor on " + c10::DeviceTypeName(device, true) + ", found " + tensor.device().str());
    }
    if (tensor.dim() != static_cast<std::int64_t>(sizes.size())) {
      fail(place + ": expected " + std::to_string(sizes.size()) + " dimensions, found " + std::to_string(tensor.dim()));
    }
    for (std::size_t i = 0; i != sizes.size(); ++i) matcher.expect(sizes[i], tensor.size(static_cast<std::int64_t>(i)));
    return tensor;
  };
}

/// The integer in a tensor without dimensions, as files of torch.save have integers that libtorch does not read; others as they
/// are.
inline IValue unwrapped(const IValue& value) {
  const bool wraps = value.isTensor() && value.toTensor().dim() == 0 && value.toTensor().scalar_type() == at::kLong;
  return wraps ? IValue(value.toTensor().item<std::int64_t>()) : value;
}

/// The check of an integer that the program computes with.
inline InputCheck integer_check(const pt2wire::SymInt& integer, const std::string& place) {
  const ExpectedSize expected{place, size_expression(integer)};
  return [=](const IValue& value, SizeMatcher& matcher) -> IValue {
    const IValue number = unwrapped(value);
    if (!number.isInt()) fail(place + ": expected an integer, found " + value.tagKind());
    matcher.expect(expected, number.toInt());
    return number;
  };
}

inline std::string text_of(const IValue& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

/// The check of a constant: the export burnt its value in, so a call must repeat it.
inline InputCheck constant_check(const pt2wire::ConstantValue& constant, const std::string& place) {
  const IValue expected = constant.visit([](const auto& member) -> IValue {
    using Member = std::decay_t<decltype(member)>;
    if constexpr (std::is_same_v<Member, std::string_view>) return std::string(member);
    if constexpr (std::is_arithmetic_v<Member>) return member;
    fail("a constant input of a kind that is not known");
  });
  const IValue value = constant.tag() == pt2wire::ConstantValue::Tag::as_none ? IValue() : expected;
  return [=](const IValue& given, SizeMatcher&) {
    const IValue found = value.isInt() ? unwrapped(given) : given;
    const bool both_nan = found.isDouble() && value.isDouble() && std::isnan(found.toDouble()) && std::isnan(value.toDouble());
    if (both_nan || (found.tagKind() == value.tagKind() && found == value)) return found;
    fail(place + ": expected " + text_of(value) + " as in the export, found " + text_of(found));
  };
}

/// The export takes sizes of 0 and 1 for special, and so gives each dynamic size a range that begins at 2. Programs run with
/// less, and PyTorch lets them; of sizes, only a bound over 2 is one that somebody asked for. Bounds that somebody asked for of
/// integers are guards, too, whatever they are.
inline constexpr std::int64_t least_bound = 2;

/// The range of a symbol, or of a size that is computed from symbols: `3*s0 + 1`.
struct Range {
  std::string text;
  Expression expression;
  std::optional<Linear> sum;
  std::optional<std::int64_t> least, most;
};

inline std::vector<Range> ranges_of(const pt2wire::Map<pt2wire::RangeConstraint>& constraints) {
  std::vector<Range> ranges;
  for (const auto& [text, range] : constraints) {
    try {
      Expression expression = PythonReader::read(text);
      std::optional<Linear> sum = linear(expression);
      ranges.push_back({std::string(text), std::move(expression), std::move(sum), range.min_val, range.max_val});
    } catch (const Error&) {
      continue;  // a function that no size of an input may have
    }
  }
  return ranges;
}

/// Throws `Error` for a size outside of the range that the program was exported for.
inline void check_ranges(SizeMatcher& matcher, const std::vector<Range>& ranges) {
  const Symbols& symbols = matcher.finish();
  for (const Range& range : ranges) {
    std::optional<std::int64_t> value = range.expression.evaluate_integer(symbols);
    if (!value && range.sum) value = matcher.found_for(*range.sum);
    if (!value) continue;  // a node makes it, and the program has an assertion for it
    if (range.least && *range.least > least_bound && *value < *range.least) {
      fail("the size " + range.text + " must be at least " + std::to_string(*range.least) + ", found " + std::to_string(*value));
    }
    if (range.most && *value > *range.most) {
      fail("the size " + range.text + " must be at most " + std::to_string(*range.most) + ", found " + std::to_string(*value));
    }
  }
}

}  // namespace run
