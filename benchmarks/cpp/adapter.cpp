#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/transport/TBufferTransports.h>

#include <memory>

#include "decoders.h"
#include "pt2wire/schema.h"
#include "pt2wire/thrift.h"

using namespace pt2wire;
using apache::thrift::protocol::TCompactProtocolT;
using apache::thrift::transport::TMemoryBuffer;

namespace {

owned::ExportedProgram read(const std::string& compact) {
  auto buffer = std::make_shared<TMemoryBuffer>(reinterpret_cast<std::uint8_t*>(const_cast<char*>(compact.data())),
                                                static_cast<std::uint32_t>(compact.size()));
  TCompactProtocolT<TMemoryBuffer> protocol(buffer);
  return read_thrift<owned::ExportedProgram>(protocol);
}

}  // namespace

std::size_t decode_adapter(const std::string& compact) { return read(compact).graph_module.graph.nodes.size(); }

std::size_t encode_adapter(const std::string& compact) {
  static const auto program = read(compact);
  auto buffer = std::make_shared<TMemoryBuffer>();
  TCompactProtocolT<TMemoryBuffer> protocol(buffer);
  write_thrift(protocol, program);
  return buffer->available_read() == compact.size() ? program.graph_module.graph.nodes.size() : 0;
}
