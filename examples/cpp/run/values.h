// Part of the example `run`. Values, and where the arguments of a call come from.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "c10_names.h"

namespace run {

using c10::IValue;
using pt2wire::Argument;
using pt2wire::Error;

using Values = std::vector<IValue>;
/// Anything that can be called once it has been made ready: an operator, a function on numbers, a subgraph.
using Function = std::function<Values(Values)>;
/// The values of one graph while it runs. Each name of the graph has a slot.
using Frame = Values;
using Slot = std::size_t;

[[noreturn]] inline void fail(const std::string& reason) { throw Error(reason); }

inline std::string quoted(std::string_view text) { return "\"" + Error::printable(text) + "\""; }

inline IValue list_of(Values items, const c10::TypePtr& type = c10::AnyType::get()) {
  c10::impl::GenericList list(type);
  list.reserve(items.size());
  for (IValue& item : items) list.emplace_back(std::move(item));
  return list;
}

/// The items of a list, whatever it is a list of.
inline Values items_of(const IValue& list) {
  if (!list.isList()) fail("expected a list, found " + list.tagKind());
  return list.toListRef().vec();
}

/// The names of one graph, in the order in which they are defined.
class Names {
 public:
  Slot define(std::string_view name) {
    if (!slots_.emplace(name, count_).second) fail("the name " + quoted(name) + " is given to two values");
    return count_++;
  }
  Slot find(std::string_view name) const {
    const auto found = slots_.find(name);
    if (found == slots_.end()) fail("no value called " + quoted(name) + " has been made at this point");
    return found->second;
  }
  /// Gives what has a name another one.
  void name_again(std::string_view name, std::string_view other) {
    if (!slots_.emplace(other, find(name)).second) fail("the name " + quoted(other) + " is given to two values");
  }
  std::size_t size() const { return count_; }

 private:
  std::unordered_map<std::string_view, Slot> slots_;
  std::size_t count_ = 0;
};

/// Where an argument comes from: it is a constant, or stands in a slot, or is a list of such.
class Source {
 public:
  static Source constant(IValue value) { return Source(Kind::constant, std::move(value), 0, {}); }
  static Source slot(Slot slot) { return Source(Kind::slot, {}, slot, {}); }
  static Source list(std::vector<Source> items) {
    const bool all_constant = std::all_of(items.begin(), items.end(), [](const Source& item) { return item.is_constant(); });
    Source source(Kind::list, {}, 0, std::move(items));
    return all_constant ? constant(source.read({})) : source;
  }

  bool is_constant() const { return kind_ == Kind::constant; }

  IValue read(const Frame& frame) const {
    switch (kind_) {
      case Kind::constant: return constant_;
      case Kind::slot: return frame[slot_];
      case Kind::list: break;
    }
    Values values;
    for (const Source& item : items_) values.push_back(item.read(frame));
    return list_of(std::move(values));
  }

  /// Adds the slots that it reads to a list.
  void collect_slots(std::vector<Slot>& slots) const {
    if (kind_ == Kind::slot) slots.push_back(slot_);
    for (const Source& item : items_) item.collect_slots(slots);
  }

 private:
  enum class Kind { constant, slot, list };
  Source(Kind kind, IValue constant, Slot slot, std::vector<Source> items)
      : kind_(kind), constant_(std::move(constant)), slot_(slot), items_(std::move(items)) {}

  Kind kind_;
  IValue constant_;
  Slot slot_;
  std::vector<Source> items_;
};

// -- arguments as the format has them ------------------------------------------------------------------------------

template <class Items, class Read>
Source list_source(const Items& items, Read read) {
  std::vector<Source> sources;
  for (const auto& item : items) sources.push_back(read(item));
  return Source::list(std::move(sources));
}

template <class Items>
Source constant_list(const Items& items) {
  return list_source(items, [](auto item) { return Source::constant(item); });
}

/// A SymInt, SymFloat or SymBool argument: the name of a value, or a constant.
template <class Symbolic>
Source symbolic_source(const Symbolic& symbolic, const Names& names) {
  using Tag = typename Symbolic::Tag;
  if (const auto* const name = symbolic.template get_if<Tag::as_name>()) return Source::slot(names.find(*name));
  return symbolic.visit([](const auto& member) -> Source {
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(member)>>) return Source::constant(member);
    fail("the argument has a member that is not known");
  });
}

inline Source optional_tensor_source(const pt2wire::OptionalTensorArgument& tensor, const Names& names) {
  using Tag = pt2wire::OptionalTensorArgument::Tag;
  if (tensor.tag() == Tag::as_none) return Source::constant({});
  return Source::slot(names.find(tensor.as_tensor().name));
}

/// The members that Argument and Value have in common; nothing for the others.
template <class Union>
std::optional<Source> single_source(const Union& argument, const Names& names) {
  using Tag = typename Union::Tag;
  // Schemas call these enums int, and so do boxed calls.
  const auto enumerator = [](auto value) { return Source::constant(static_cast<std::int64_t>(to_c10(value))); };
  switch (argument.tag()) {
    case Tag::as_none: return Source::constant({});
    case Tag::as_int: return Source::constant(argument.as_int());
    case Tag::as_float: return Source::constant(argument.as_float());
    case Tag::as_bool: return Source::constant(argument.as_bool());
    case Tag::as_string: return Source::constant(std::string(argument.as_string()));
    case Tag::as_complex: return Source::constant(c10::complex<double>(argument.as_complex().real, argument.as_complex().imag));
    case Tag::as_scalar_type: return enumerator(argument.as_scalar_type());
    case Tag::as_layout: return enumerator(argument.as_layout());
    case Tag::as_memory_format: return enumerator(argument.as_memory_format());
    case Tag::as_device: return Source::constant(to_c10(argument.as_device()));
    case Tag::as_tensor: return Source::slot(names.find(argument.as_tensor().name));
    case Tag::as_sym_int: return symbolic_source(argument.as_sym_int(), names);
    case Tag::as_sym_float: return symbolic_source(argument.as_sym_float(), names);
    case Tag::as_sym_bool: return symbolic_source(argument.as_sym_bool(), names);
    default: return std::nullopt;
  }
}

/// Where the argument of a call, or an output of a graph, comes from. Throws `Error` for what this example cannot pass.
inline Source source_of(const Argument& argument, const Names& names) {
  using Tag = Argument::Tag;
  const auto tensor = [&](const pt2wire::TensorArgument& item) { return Source::slot(names.find(item.name)); };
  const auto symbolic = [&](const auto& item) { return symbolic_source(item, names); };
  const auto optional = [&](const auto& item) { return optional_tensor_source(item, names); };
  const auto text = [](std::string_view item) { return Source::constant(std::string(item)); };
  if (std::optional<Source> single = single_source(argument, names)) return *single;
  switch (argument.tag()) {
    case Tag::as_optional_tensor: return optional(argument.as_optional_tensor());
    case Tag::as_ints: return constant_list(argument.as_ints());
    case Tag::as_floats: return constant_list(argument.as_floats());
    case Tag::as_bools: return constant_list(argument.as_bools());
    case Tag::as_strings: return list_source(argument.as_strings(), text);
    case Tag::as_tensors: return list_source(argument.as_tensors(), tensor);
    case Tag::as_optional_tensors: return list_source(argument.as_optional_tensors(), optional);
    case Tag::as_sym_ints: return list_source(argument.as_sym_ints(), symbolic);
    case Tag::as_sym_floats: return list_source(argument.as_sym_floats(), symbolic);
    case Tag::as_sym_bools: return list_source(argument.as_sym_bools(), symbolic);
    case Tag::as_int_lists:
      return list_source(argument.as_int_lists(), [](const auto& item) { return constant_list(item); });
    case Tag::as_float_lists:
      return list_source(argument.as_float_lists(), [](const auto& item) { return constant_list(item); });
    case Tag::as_nested_tensors:
      return list_source(argument.as_nested_tensors(), [&](const auto& item) { return list_source(item, tensor); });
    default: fail("arguments of kind " + std::string(argument.member_name()) + " are not supported");
  }
}

/// The same for a value of pt2wire's own, which the format has where Argument loses something.
inline Source source_of(const pt2wire::Value& value, const Names& names) {
  using Tag = pt2wire::Value::Tag;
  const auto item = [&](const pt2wire::Value& inner) { return source_of(inner, names); };
  if (std::optional<Source> single = single_source(value, names)) return *single;
  switch (value.tag()) {
    case Tag::as_list: return list_source(value.as_list(), item);
    case Tag::as_tuple: return list_source(value.as_tuple(), item);
    case Tag::as_named_tuple: return list_source(value.as_named_tuple().values, item);
    default: fail("arguments of kind " + std::string(value.member_name()) + " are not supported");
  }
}

/// Where input i of a node comes from: its exact value, if it has one, or else its argument.
inline Source input_source(const pt2wire::Node& node, std::size_t i, const Names& names) {
  const std::string_view name = node.inputs[i].name;
  if (node.exact_inputs) {
    // Arguments without a name stand where they are; the others may come in another order.
    for (std::size_t k = 0; k != node.exact_inputs->size(); ++k) {
      const pt2wire::NamedValue& exact = (*node.exact_inputs)[k];
      const bool same = name.empty() ? k == i : exact.name == name;
      if (same && exact.value) return source_of(*exact.value, names);
    }
  }
  return source_of(node.inputs[i].arg, names);
}

/// Where a result goes that has no name.
constexpr Slot nowhere = static_cast<Slot>(-1);

/// The names of values in what a node makes; those of a list are its items.
inline std::vector<std::string_view> output_names(const Argument& output) {
  using Tag = Argument::Tag;
  std::vector<std::string_view> names;
  switch (output.tag()) {
    case Tag::as_tensor: return {output.as_tensor().name};
    case Tag::as_sym_int: return {output.as_sym_int().as_name()};
    case Tag::as_sym_float: return {output.as_sym_float().as_name()};
    case Tag::as_sym_bool: return {output.as_sym_bool().as_name()};
    case Tag::as_tensors:
      for (const auto& tensor : output.as_tensors()) names.push_back(tensor.name);
      return names;
    case Tag::as_sym_ints:
      for (const auto& symbol : output.as_sym_ints()) names.push_back(symbol.as_name());
      return names;
    default: fail("results of kind " + std::string(output.member_name()) + " are not supported");
  }
}

/// The slots for what a node makes: one for each result, in order. A list counts as its items.
inline void define_outputs(const Argument& output, Names& names, std::vector<Slot>& slots) {
  if (output.tag() == Argument::Tag::as_none) return slots.push_back(nowhere);
  for (const std::string_view name : output_names(output)) slots.push_back(names.define(name));
}

/// In torch.fx, several nodes may take one of several outputs. Exact values name each, so that all are one value.
class Items {
 public:
  explicit Items(const pt2wire::Graph& graph) {
    for (const pt2wire::GetItem& item : graph.getitems.value_or(pt2wire::Span<pt2wire::GetItem>())) {
      by_owner_[item.of].push_back(&item);
    }
  }

  /// Gives the outputs of a node, which have been defined, their further names.
  void name_outputs(const pt2wire::Node& node, Names& names) const {
    if (by_owner_.empty() || !node.name) return;
    const bool is_list = node.outputs.size() == 1 && node.outputs[0].tag() == Argument::Tag::as_tensors;
    if (is_list) return name_items(*node.name, output_names(node.outputs[0]), names);
    for (const pt2wire::GetItem* item : of(*node.name)) {
      const Argument& output = node.outputs[position(*item, node.outputs.size())];
      if (output.tag() == Argument::Tag::as_tensors) {
        name_items(item->name, output_names(output), names);
      } else if (output.tag() == Argument::Tag::as_none) {
        names.define(item->name);  // nothing is put there
      } else {
        name(*item, output_names(output).at(0), names);
      }
    }
  }

 private:
  std::vector<const pt2wire::GetItem*> of(std::string_view owner) const {
    const auto found = by_owner_.find(owner);
    return found == by_owner_.end() ? std::vector<const pt2wire::GetItem*>() : found->second;
  }

  static std::size_t position(const pt2wire::GetItem& item, std::size_t count) {
    const std::int64_t size = static_cast<std::int64_t>(count);
    if (item.index < -size || item.index >= size) fail("there is no output for " + quoted(item.name));
    return static_cast<std::size_t>(item.index < 0 ? item.index + size : item.index);
  }

  static void name(const pt2wire::GetItem& item, std::string_view output, Names& names) {
    if (item.name != output) names.name_again(output, item.name);
  }

  void name_items(std::string_view owner, const std::vector<std::string_view>& outputs, Names& names) const {
    for (const pt2wire::GetItem* item : of(owner)) name(*item, outputs[position(*item, outputs.size())], names);
  }

  std::unordered_map<std::string_view, std::vector<const pt2wire::GetItem*>> by_owner_;
};

}  // namespace run
