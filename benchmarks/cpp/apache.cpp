#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/transport/TBufferTransports.h>

#include <memory>

#include "decoders.h"
#include "schema_types.h"

using namespace apache::thrift;
// The template, which reads and writes without virtual calls: Apache's faster way.
using Protocol = protocol::TCompactProtocolT<transport::TMemoryBuffer>;

namespace {

pt2wire::idl::ExportedProgram read(const std::string& compact) {
  auto* const data = reinterpret_cast<std::uint8_t*>(const_cast<char*>(compact.data()));
  auto buffer = std::make_shared<transport::TMemoryBuffer>(data, static_cast<std::uint32_t>(compact.size()));
  Protocol protocol(buffer);
  pt2wire::idl::ExportedProgram program;
  program.read(&protocol);
  return program;
}

}  // namespace

std::size_t decode_apache(const std::string& compact) { return read(compact).graph_module.graph.nodes.size(); }

std::size_t encode_apache(const std::string& compact) {
  static const auto program = read(compact);
  auto buffer = std::make_shared<transport::TMemoryBuffer>();
  Protocol protocol(buffer);
  program.write(&protocol);
  return buffer->available_read() == compact.size() ? program.graph_module.graph.nodes.size() : 0;
}
