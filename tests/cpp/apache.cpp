// Decodes each case with the classes that Apache's compiler makes of the IDL, and encodes it again.
// TYPES_FILE lists the structs and unions of the schema as X(Name).
#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/transport/TBufferTransports.h>

#include <memory>
#include <stdexcept>

#include "cases.h"
#include "schema_types.h"

namespace {

using apache::thrift::protocol::TCompactProtocol;
using apache::thrift::transport::TMemoryBuffer;

template <class T>
std::string round_trip(const std::string& bytes) {
  auto input = std::make_shared<TMemoryBuffer>(
      reinterpret_cast<std::uint8_t*>(const_cast<char*>(bytes.data())), static_cast<std::uint32_t>(bytes.size()));
  TCompactProtocol reader(input);
  T object;
  object.read(&reader);
  auto output = std::make_shared<TMemoryBuffer>();
  TCompactProtocol writer(output);
  object.write(&writer);
  return output->getBufferAsString();
}

std::string run(const std::string& type, const std::string& bytes) {
#define X(T) \
  if (type == #T) return round_trip<pt2wire::idl::T>(bytes);
#include TYPES_FILE
#undef X
  throw std::runtime_error("no type " + type);
}

}  // namespace

int main() { return cases::run_all(run); }
