// Part of the example `run`. A graph made ready: what its nodes call has been found, its names are slots of a frame.
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control_flow.h"
#include "weights.h"

namespace run {

/// What cannot be run, a line each.
using Problems = std::vector<std::string>;

/// Does something while getting ready; an error becomes a problem.
template <class F>
void attempt(const std::string& place, Problems& problems, F&& action) {
  try {
    action();
  } catch (const Error& error) {
    problems.push_back(place + ": " + error.reason());
  }
}

/// Whether a graph, or one within it, calls an operator that may resize a tensor.
inline bool may_resize(const pt2wire::Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const pt2wire::Node& node) {
    return may_resize(node.target) || std::any_of(node.inputs.begin(), node.inputs.end(), [](const auto& input) {
      const auto* const inner = input.arg.template get_if<Argument::Tag::as_graph>();
      return inner != nullptr && may_resize(inner->graph);
    });
  });
}

/// A node made ready.
struct Step {
  std::string label;  ///< what messages call the node
  Call call;
  std::vector<Slot> outputs;
  std::vector<Slot> finished;  ///< slots that nothing reads after this step
};

class Graph {
 public:
  /// Makes a graph ready. What cannot be run is no error yet: each such node adds a line to `problems`.
  Graph(const pt2wire::Graph& graph, const std::string& where, Problems& problems) {
    attempt(where + "inputs", problems, [&] {
      for (const Argument& input : graph.inputs) define_input(input);
    });
    for (const pt2wire::GraphConstant& constant : graph.constants.value_or(pt2wire::Span<pt2wire::GraphConstant>())) {
      attempt(where + "constant " + quoted(constant.name), problems, [&] {
        held_.emplace_back(names_.define(constant.name), held_tensor(constant, graph.tensor_values.at(constant.name)));
      });
    }
    const Items items(graph);
    for (std::size_t i = 0; i != graph.nodes.size(); ++i) {
      const pt2wire::Node& node = graph.nodes[i];
      steps_.push_back(prepare(node, "nodes[" + std::to_string(i) + "] " + label(node), where, problems));
      attempt(where + steps_.back().label, problems, [&] { items.name_outputs(node, names_); });
    }
    attempt(where + "outputs", problems, [&] {
      if (graph.exact_output) return add_exact_outputs(*graph.exact_output, graph.outputs.size());
      for (const Argument& output : graph.outputs) outputs_.push_back(source_of(output, names_));
    });
    find_finished();
  }

  std::size_t input_count() const { return inputs_.size(); }

  /// Runs the graph on as many values as it has inputs; gives its outputs.
  Values run(Values inputs) const {
    if (inputs.size() != inputs_.size()) {
      fail("expected " + std::to_string(inputs_.size()) + " inputs of a graph, found " + std::to_string(inputs.size()));
    }
    Frame frame(names_.size());
    for (std::size_t i = 0; i != inputs.size(); ++i) {
      if (inputs_[i] != nowhere) frame[inputs_[i]] = std::move(inputs[i]);
    }
    for (const auto& [slot, tensor] : held_) frame[slot] = tensor;
    for (const Step& step : steps_) run_step(step, frame);
    return read(outputs_, frame);
  }

 private:
  /// What is returned as it is, where the outputs lose something of it.
  void add_exact_outputs(const pt2wire::Value& exact, std::size_t count) {
    using Tag = pt2wire::Value::Tag;
    const auto& items = exact.tag() == Tag::as_list ? exact.as_list() : exact.as_tuple();
    if (items.size() != count) fail("the exact outputs are not as many as the outputs");
    for (const pt2wire::Value& item : items) outputs_.push_back(source_of(item, names_));
  }

  /// A placeholder. Constants have none that a node could read.
  void define_input(const Argument& input) {
    using Tag = Argument::Tag;
    const bool constant = input.tag() == Tag::as_int || input.tag() == Tag::as_float || input.tag() == Tag::as_bool ||
                          input.tag() == Tag::as_string;
    if (constant) return inputs_.push_back(nowhere);
    define_outputs(input, names_, inputs_);
  }

  static std::string label(const pt2wire::Node& node) {
    return (node.name ? Error::printable(*node.name) + ", " : "") + Error::printable(node.target);
  }

  Step prepare(const pt2wire::Node& node, std::string label, const std::string& where, Problems& problems) {
    Step step{std::move(label), {}, {}, {}};
    const std::string place = where + step.label;
    attempt(place, problems, [&] { step.call = call_of(node, place + ": ", problems); });
    // Also where the call cannot be made, so that each problem is named once.
    attempt(place, problems, [&] {
      for (const Argument& output : node.outputs) define_outputs(output, names_, step.outputs);
    });
    return step;
  }

  Call call_of(const pt2wire::Node& node, const std::string& where, Problems& problems) const {
    const auto begins = [&](std::string_view prefix) { return node.target.substr(0, prefix.size()) == prefix; };
    if (begins(higher_order_prefix)) {
      return higher_order_call(node, names_, [&](const pt2wire::GraphArgument& subgraph) -> Function {
        const auto graph = std::make_shared<const Graph>(subgraph.graph, where, problems);
        return [graph](Values inputs) { return graph->run(std::move(inputs)); };
      });
    }
    return begins(operator_prefix) ? operator_call(node, names_) : symbolic_call(node, names_);
  }

  /// Values are let go of as soon as nothing needs them: memory is that of what is alive.
  void find_finished() {
    std::set<Slot> needed;
    const auto first_time = [&needed](Slot slot) { return slot != nowhere && needed.insert(slot).second; };
    std::vector<Slot> read;
    for (const Source& output : outputs_) output.collect_slots(read);
    needed.insert(read.begin(), read.end());
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      std::vector<Slot> slots = step->outputs;
      for (const Source& input : step->call.inputs) input.collect_slots(slots);
      std::copy_if(slots.begin(), slots.end(), std::back_inserter(step->finished), first_time);
    }
  }

  static Values read(const std::vector<Source>& sources, const Frame& frame) {
    Values values;
    for (const Source& source : sources) values.push_back(source.read(frame));
    return values;
  }

  static void run_step(const Step& step, Frame& frame) {
    try {
      Values results;
      for (IValue& result : step.call.function(read(step.call.inputs, frame))) {
        // Lists of tensors have a name for each, as if the node had that many results.
        append(results, result.isList() ? items_of(result) : Values{result});
      }
      if (!step.outputs.empty() && results.size() != step.outputs.size()) {
        fail("expected " + std::to_string(step.outputs.size()) + " results, found " + std::to_string(results.size()));
      }
      for (std::size_t i = 0; i != step.outputs.size(); ++i) {
        if (step.outputs[i] != nowhere) frame[step.outputs[i]] = std::move(results[i]);
      }
      for (const Slot slot : step.finished) frame[slot] = IValue();
    } catch (const Error& error) {
      throw Error(error.reason(), Error::no_offset, step.label + (error.path().empty() ? "" : ": ") + error.path());
    } catch (const c10::Error& error) {
      throw Error(error.what_without_backtrace(), Error::no_offset, step.label);
    }
  }

  Names names_;
  std::vector<Slot> inputs_;
  std::vector<std::pair<Slot, at::Tensor>> held_;  ///< tensors that the graph brings along
  std::vector<Step> steps_;
  std::vector<Source> outputs_;
};

}  // namespace run
