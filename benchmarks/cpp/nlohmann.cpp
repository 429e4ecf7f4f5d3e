// The way of PyTorch's own C++: a JSON document, then the types that torch's header generates.
#include <nlohmann/json.hpp>
#include <torch/csrc/utils/generated_serialization_types.h>

#include "decoders.h"

std::size_t decode_nlohmann(const std::string& json) {
  const auto program = nlohmann::json::parse(json).get<torch::_export::ExportedProgram>();
  return program.get_graph_module().get_graph().get_nodes().size();
}
