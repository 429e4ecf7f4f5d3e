#include "decoders.h"
#include "pt2wire/schema.h"

std::size_t decode_view(const std::string& compact) {
  using namespace pt2wire;
  const auto program = decode_compact<ExportedProgram>(Bytes::borrow(compact.data(), compact.size()));
  return program->graph_module.graph.nodes.size();
}
