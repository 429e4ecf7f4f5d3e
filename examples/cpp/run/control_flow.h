// Part of the example `run`. Higher-order operators: calls that are given subgraphs.
#pragma once

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <functional>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "symbols.h"

namespace run {

inline void append(Values& values, Values more) {
  values.insert(values.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

inline Values joined(Values first, Values second) {
  append(first, std::move(second));
  return first;
}

inline Values tail(const Values& values, std::size_t start) {
  return {values.begin() + static_cast<std::ptrdiff_t>(std::min(start, values.size())), values.end()};
}

// -- loops over the first dimension --------------------------------------------------------------------------------

/// How many slices a list of tensors has, which must have equally many.
inline std::int64_t slice_count(const Values& tensors) {
  if (tensors.empty()) fail("expected at least one tensor to loop over");
  const std::int64_t count = tensors[0].toTensor().size(0);
  for (const IValue& tensor : tensors) {
    if (tensor.toTensor().size(0) != count) fail("expected tensors of one length to loop over");
  }
  return count;
}

inline Values slices(const Values& tensors, std::int64_t index) {
  Values result;
  for (const IValue& tensor : tensors) result.emplace_back(tensor.toTensor().select(0, index));
  return result;
}

/// What every step gave, as rows: column i of them, stacked. What is no tensor is the same in all rows.
inline IValue stacked(const std::vector<Values>& rows, std::size_t column) {
  if (!rows[0].at(column).isTensor()) return rows[0][column];
  std::vector<at::Tensor> parts;
  for (const Values& row : rows) parts.push_back(row.at(column).toTensor());
  return at::stack(parts);
}

// -- the operators, each given its subgraphs -----------------------------------------------------------------------

using Subgraphs = std::vector<Function>;

/// (condition, operands): the first subgraph if the condition holds, or else the second.
inline Function cond(const Subgraphs& graphs) {
  return [graphs](const Values& in) { return graphs[is_true(in.at(0)) ? 0 : 1](items_of(in.at(1))); };
}

/// (carried, additional): the second subgraph makes the next of what is carried, while the first says so. Results are tensors of
/// their own also where it never does.
inline Function while_loop(const Subgraphs& graphs) {
  return [graphs](const Values& in) {
    Values carried = items_of(in.at(0));
    const Values additional = items_of(in.at(1));
    const auto goes_on = [&] { return is_true(graphs[0](joined(carried, additional)).at(0)); };
    if (!goes_on()) {
      for (IValue& value : carried) {
        if (value.isTensor()) value = value.toTensor().clone();
      }
      return carried;
    }
    do {
      carried = graphs[1](joined(carried, additional));
    } while (goes_on());
    return carried;
  };
}

/// (tensors, additional): the subgraph of every slice; results are stacked.
inline Function map(const Subgraphs& graphs) {
  return [graphs](const Values& in) {
    const Values tensors = items_of(in.at(0));
    const std::int64_t count = slice_count(tensors);
    if (count == 0) fail("expected at least one slice to loop over");
    std::vector<Values> rows;
    for (std::int64_t i = 0; i != count; ++i) rows.push_back(graphs[0](joined(slices(tensors, i), items_of(in.at(1)))));
    Values results;
    for (std::size_t column = 0; column != rows[0].size(); ++column) results.push_back(stacked(rows, column));
    return results;
  };
}

/// (initial, tensors, additional): the subgraph gives what is carried to the next slice, then what is stacked.
inline Function scan(const Subgraphs& graphs) {
  return [graphs](const Values& in) {
    Values carried = items_of(in.at(0));
    const Values tensors = items_of(in.at(1));
    const std::size_t carries = carried.size();
    const std::int64_t count = slice_count(tensors);
    if (count == 0) fail("expected at least one slice to loop over");
    std::vector<Values> rows;
    for (std::int64_t i = 0; i != count; ++i) {
      Values results = graphs[0](joined(joined(std::move(carried), slices(tensors, i)), items_of(in.at(2))));
      if (results.size() < carries) fail("the subgraph gives less than it carries");
      rows.push_back(tail(results, carries));
      results.resize(carries);
      carried = std::move(results);
    }
    for (std::size_t column = 0; column != rows[0].size(); ++column) {
      const IValue result = stacked(rows, column);
      carried.push_back(result.isTensor() ? IValue(result.toTensor().contiguous()) : result);
    }
    return carried;
  };
}

/// (enabled, operands...): the subgraph with gradients on or off, which for results is the same.
inline Function with_grad_mode(const Subgraphs& graphs) {
  return [graphs](const Values& in) {
    const c10::AutoGradMode mode(is_true(in.at(0)));
    return graphs[0](tail(in, 1));
  };
}

/// Autocast as `torch.autocast(...)` sets it, for as long as the object lives.
class Autocast {
 public:
  Autocast(c10::DeviceType device, c10::ScalarType dtype, bool enabled, bool cache)
      : device_(device),
        dtype_(at::autocast::get_autocast_dtype(device)),
        enabled_(at::autocast::is_autocast_enabled(device)),
        cache_(at::autocast::is_autocast_cache_enabled()) {
    set(dtype, enabled, cache);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    set(dtype_, enabled_, cache_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  void set(c10::ScalarType dtype, bool enabled, bool cache) const {
    at::autocast::set_autocast_enabled(device_, enabled);
    at::autocast::set_autocast_dtype(device_, dtype);
    at::autocast::set_autocast_cache_enabled(cache);
  }

  c10::DeviceType device_;
  c10::ScalarType dtype_;
  bool enabled_;
  bool cache_;
};

/// (device, dtype or None, enabled, cache or None, operands...): the subgraph under autocast.
inline Function with_autocast(const Subgraphs& graphs) {
  return [graphs](const Values& in) {
    const c10::DeviceType device = c10::Device(in.at(0).toStringRef()).type();
    const auto dtype = in.at(1).isNone() ? at::autocast::get_autocast_dtype(device) : in[1].toScalarType();
    const bool cache = in.at(3).isNone() ? at::autocast::is_autocast_cache_enabled() : is_true(in[3]);
    const Autocast autocast(device, dtype, is_true(in.at(2)), cache);
    return graphs[0](tail(in, 4));
  };
}

/// (name, operands...): the subgraph, which compilers compile once for all calls of that name.
inline Function invoke(const Subgraphs& graphs) {
  return [graphs](const Values& in) { return graphs[0](tail(in, 1)); };
}

constexpr std::string_view higher_order_prefix = "torch.ops.higher_order.";

struct HigherOrder {
  std::size_t graphs;  ///< how many it takes
  Function (*make)(const Subgraphs&);
};

/// The higher-order operators of this example, by name.
inline const std::map<std::string_view, HigherOrder>& higher_order_operators() {
  static const std::map<std::string_view, HigherOrder> table{
      {"cond", {2, cond}},
      {"while_loop", {2, while_loop}},
      {"map_impl", {1, map}},
      {"scan", {1, scan}},
      {"wrap_with_set_grad_enabled", {1, with_grad_mode}},
      {"wrap_with_autocast", {1, with_autocast}},
      {"invoke_subgraph", {1, invoke}},
  };
  return table;
}

/// The call of a higher-order operator; `prepare` makes a subgraph ready. Other arguments are all positional.
inline Call higher_order_call(const pt2wire::Node& node, const Names& names,
                              const std::function<Function(const pt2wire::GraphArgument&)>& prepare) {
  const auto found = higher_order_operators().find(node.target.substr(higher_order_prefix.size()));
  if (found == higher_order_operators().end()) fail("there is no such higher-order operator in this example");
  Subgraphs graphs;
  Call call;
  for (std::size_t i = 0; i != node.inputs.size(); ++i) {
    if (const auto* const graph = node.inputs[i].arg.get_if<Argument::Tag::as_graph>()) {
      graphs.push_back(prepare(*graph));
    } else {
      call.inputs.push_back(input_source(node, i, names));
    }
  }
  if (graphs.size() != found->second.graphs) {
    fail("expected " + std::to_string(found->second.graphs) + " subgraphs, found " + std::to_string(graphs.size()));
  }
  call.function = found->second.make(graphs);
  return call;
}

}  // namespace run
