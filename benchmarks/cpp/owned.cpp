#include "decoders.h"
#include "pt2wire/schema.h"

using namespace pt2wire;

std::size_t decode_owned(const std::string& compact) {
  const auto program = decode_owned<owned::ExportedProgram>(Bytes::borrow(compact.data(), compact.size()));
  return program.graph_module.graph.nodes.size();
}

std::size_t encode_owned(const std::string& compact) {
  static const auto program = decode_owned<owned::ExportedProgram>(Bytes::borrow(compact.data(), compact.size()));
  return encode_compact(program).size() == compact.size() ? program.graph_module.graph.nodes.size() : 0;
}
