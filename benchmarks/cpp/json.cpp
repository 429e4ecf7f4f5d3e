#include "pt2wire/json.h"

#include "decoders.h"

using namespace pt2wire;

std::size_t decode_json_view(const std::string& json) {
  return decode_json<ExportedProgram>(Bytes::borrow(json.data(), json.size()))->graph_module.graph.nodes.size();
}

std::size_t decode_json_owned(const std::string& json) {
  const auto program = pt2wire::decode_json_owned<owned::ExportedProgram>(Bytes::borrow(json.data(), json.size()));
  return program.graph_module.graph.nodes.size();
}
