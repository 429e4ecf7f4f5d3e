// Part of the example `run`. A program ready to be called: graph, weights, and what its signature says of both.
#pragma once

#include <ATen/core/grad_mode.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph.h"
#include "inputs.h"
#include "treespecs.h"
#include "weights.h"

namespace run {

class Program {
 public:
  /// Makes a program ready. Throws `Error`, naming everything that cannot be run.
  Program(const pt2wire::Archive& archive, const std::string& name, bool skip_unknown_guards) : document_(archive.program(name)) {
    const pt2wire::Graph& graph = document_->graph_module.graph;
    WeightLoader loader(may_resize(graph));
    load(archive.weights(name), loader, weights_);
    load(archive.constants(name), loader, constants_);
    Problems problems;
    const pt2wire::GraphSignature& signature = document_->graph_module.signature;
    graph_ = std::make_unique<Graph>(graph, "", problems);
    if (signature.input_specs.size() != graph.inputs.size() || signature.output_specs.size() != graph.outputs.size()) {
      problems.push_back("the signature has not as many inputs and outputs as the graph");
    }
    for (std::size_t i = 0; i != signature.input_specs.size(); ++i) {
      attempt("input " + std::to_string(i), problems, [&] { add_input(signature.input_specs[i], graph); });
    }
    for (std::size_t i = 0; i != signature.output_specs.size(); ++i) {
      attempt("output " + std::to_string(i), problems, [&] { add_output(signature.output_specs[i], graph); });
    }
    ranges_ = ranges_of(document_->range_constraints);
    attempt("guards_code", problems, [&] { add_guards(skip_unknown_guards, problems); });
    for (std::size_t i = 0; i != sinks_.size(); ++i) sinks_[i].copied = find_copied(signature.output_specs[i]);
    std::string lines;
    for (const std::string& problem : problems) lines += "\n  " + problem;
    if (!problems.empty()) fail("this program cannot be run:" + lines);
  }

  /// Calls it. `given` are the leaves of the caller's arguments in order, constants among them; tensors that the program
  /// changes are changed in place. Gives the leaves of the results. Throws `Error`.
  Values operator()(const Values& given) {
    const Values inputs = check(given);
    Values all;
    std::size_t user = 0;
    for (const auto& feed : feeds_) all.push_back(feed ? IValue(*feed) : inputs[user++]);
    const c10::AutoGradMode no_gradients(false);
    return deliver(graph_->run(std::move(all)), inputs);
  }

  /// All buffers, as they are now.
  const Tensors& buffers() const { return buffers_; }

 private:
  void load(const pt2wire::Payloads& payloads, WeightLoader& loader, Tensors& tensors) {
    loader.load(payloads, tensors);
    for (const pt2wire::LeftOut& other : payloads.left_out) left_out_.emplace(other.fqn, other.reason);
  }

  void add_input(const pt2wire::InputSpec& spec, const pt2wire::Graph& graph) {
    using Tag = pt2wire::InputSpec::Tag;
    switch (spec.tag()) {
      case Tag::parameter: return feeds_.push_back(find(weights_, spec.parameter().parameter_name));
      case Tag::tensor_constant:
        return feeds_.push_back(find(constants_, spec.tensor_constant().tensor_constant_name));
      case Tag::buffer: {
        const auto& buffer = spec.buffer();
        const at::Tensor& tensor = find(buffer.persistent ? weights_ : constants_, buffer.buffer_name);
        if (tensor.is_meta()) fail("buffers on the device meta cannot be in the files of outputs");
        buffers_.emplace(buffer.buffer_name, tensor);
        return feeds_.push_back(tensor);
      }
      case Tag::user_input: return add_user_input(spec.user_input().arg, graph);
      case Tag::constant_input: {
        const auto& constant = spec.constant_input();
        return add_check(constant_check(constant.value, place(constant.name)));
      }
      default: fail("inputs of kind " + std::string(spec.member_name()) + " are not supported");
    }
  }

  void add_user_input(const Argument& argument, const pt2wire::Graph& graph) {
    using Tag = Argument::Tag;
    switch (argument.tag()) {
      case Tag::as_tensor: {
        const std::string_view name = argument.as_tensor().name;
        user_inputs_.emplace(name, checks_.size());
        return add_check(tensor_check(graph.tensor_values.at(name), place(name)));
      }
      case Tag::as_sym_int: {
        const std::string_view name = argument.as_sym_int().as_name();
        return add_check(integer_check(graph.sym_int_values.at(name), place(name)));
      }
      default: fail("inputs of kind " + std::string(argument.member_name()) + " are not supported");
    }
  }

  void add_guards(bool skip_unknown, Problems& problems) {
    const auto& guards = document_->guards_code;
    if (guards.size() == 0) return;
    const InputNames names = input_names();
    for (std::size_t i = 0; i != guards.size(); ++i) {
      attempt("guards_code[" + std::to_string(i) + "]", problems, [&] { guards_.add(guards[i], names, skip_unknown); });
    }
  }

  /// What guards call the inputs.
  InputNames input_names() const {
    const pt2wire::GraphModule& module = document_->graph_module;
    const auto& modules = module.module_call_graph;
    if (modules.size() == 0 || !modules[0].signature) fail("there is no tree spec of the inputs that guards are on");
    TreeSpec::Fields fields;
    for (const auto& [name, item] : module.treespec_namedtuple_fields) {
      for (const std::string_view field : item.field_names) fields[std::string(name)].emplace_back(field);
    }
    InputNames names(*modules[0].signature, fields);
    if (names.size() != checks_.size()) fail("the tree spec has not as many leaves as the program takes inputs");
    return names;
  }

  void add_check(InputCheck check) {
    checks_.push_back(std::move(check));
    feeds_.emplace_back();
  }

  std::string place(std::string_view name) const {
    return "input " + std::to_string(checks_.size()) + " (" + Error::printable(name) + ")";
  }

  const at::Tensor& find(const Tensors& tensors, std::string_view name) const {
    const auto found = tensors.find(name);
    if (found != tensors.end()) return found->second;
    const auto other = left_out_.find(name);
    if (other == left_out_.end()) fail("the archive has no tensor " + quoted(name));
    fail(quoted(name) + " is " + other->second);
  }

  /// Where an output goes: to the caller, or into a tensor that is the program's or the caller's.
  struct Sink {
    at::Tensor weight;               ///< defined if it is a weight
    std::optional<std::size_t> user_input;
    std::optional<std::size_t> copied;  ///< of what goes to the caller: the other output by which the same value goes into a tensor
  };

  void add_output(const pt2wire::OutputSpec& spec, const pt2wire::Graph& graph) {
    using Tag = pt2wire::OutputSpec::Tag;
    switch (spec.tag()) {
      case Tag::user_output:
        if (const auto* const tensor = spec.user_output().arg.get_if<Argument::Tag::as_tensor>()) {
          check_in_files(graph.tensor_values.at(tensor->name));
        }
        return sinks_.push_back({});
      case Tag::loss_output: return sinks_.push_back({});
      case Tag::buffer_mutation: {
        const auto& mutation = spec.buffer_mutation();
        return add_mutation(mutation.arg, {find(buffers_, mutation.buffer_name), {}, {}});
      }
      case Tag::parameter_mutation: {
        const auto& mutation = spec.parameter_mutation();
        return add_mutation(mutation.arg, {find(weights_, mutation.parameter_name), {}, {}});
      }
      case Tag::user_input_mutation: {
        const auto found = user_inputs_.find(spec.user_input_mutation().user_input_name);
        if (found == user_inputs_.end()) fail("there is no input " + quoted(spec.user_input_mutation().user_input_name));
        return add_mutation(spec.user_input_mutation().arg, {{}, found->second, {}});
      }
      default: fail("outputs of kind " + std::string(spec.member_name()) + " are not supported");
    }
  }

  void add_mutation(const pt2wire::TensorArgument& value, Sink sink) {
    copied_[value.name] = sinks_.size();
    sinks_.push_back(std::move(sink));
  }

  std::optional<std::size_t> find_copied(const pt2wire::OutputSpec& spec) const {
    if (spec.tag() != pt2wire::OutputSpec::Tag::user_output) return {};
    const auto* const value = spec.user_output().arg.get_if<Argument::Tag::as_tensor>();
    const auto found = value == nullptr ? copied_.end() : copied_.find(value->name);
    return found == copied_.end() ? std::nullopt : std::optional(found->second);
  }

  /// The inputs as the graph takes them.
  Values check(const Values& inputs) const {
    if (inputs.size() != checks_.size()) {
      fail("expected " + std::to_string(checks_.size()) + " inputs, found " + std::to_string(inputs.size()));
    }
    SizeMatcher matcher;
    Values taken;
    for (std::size_t i = 0; i != inputs.size(); ++i) taken.push_back(checks_[i](inputs[i], matcher));
    check_ranges(matcher, ranges_);
    guards_.check(taken);
    return taken;
  }

  /// Copies first. A value that was copied and is an output, too, is what it was copied into: the value itself may be a
  /// tensor that another copy has changed since.
  Values deliver(Values outputs, const Values& inputs) const {
    for (std::size_t i = 0; i != outputs.size(); ++i) {
      const Sink& sink = sinks_[i];
      const at::Tensor target = sink.user_input ? inputs[*sink.user_input].toTensor() : sink.weight;
      if (!target.defined()) continue;
      target.copy_(outputs[i].toTensor());
      outputs[i] = target;
    }
    Values results;
    for (std::size_t i = 0; i != outputs.size(); ++i) {
      const Sink& sink = sinks_[i];
      if (!sink.weight.defined() && !sink.user_input) results.push_back(outputs[sink.copied.value_or(i)]);
    }
    return results;
  }

  pt2wire::Document<pt2wire::ExportedProgram> document_;
  Tensors weights_;
  Tensors constants_;
  Tensors buffers_;
  std::map<std::string, std::string, std::less<>> left_out_;  ///< weights and constants that are no strided tensors: what they are
  std::unique_ptr<Graph> graph_;
  std::vector<std::optional<at::Tensor>> feeds_;  ///< per input of the graph: a weight, or nothing where the caller gives it
  std::vector<Range> ranges_;
  Guards guards_;
  std::vector<InputCheck> checks_;                ///< per input that the caller gives
  std::map<std::string_view, std::size_t> user_inputs_;
  std::vector<Sink> sinks_;                       ///< per output of the graph
  std::map<std::string_view, std::size_t> copied_;  ///< the last output by which a value goes into a tensor
};

}  // namespace run
