// Reads and writes trees through Apache's protocols. The argument names the way a case goes, from compact bytes:
//   compact  TCompact, through the class without virtual calls, to compact bytes
//   virtual  the same through the interface that all protocols share
//   stream   the same from a transport whose end is not in sight
//   binary   to TBinary bytes, which are read again and must give an equal tree (but for NaN)
//   json     the same with TJSON, of which only the tree is checked: the compact bytes
//   view     from a View document to compact bytes
// TYPES_FILE lists the structs and unions of the schema as X(Name).
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/protocol/TJSONProtocol.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "cases.h"
#include "pt2wire/schema.h"
#include "pt2wire/thrift.h"

namespace {

using namespace pt2wire;
using namespace apache::thrift::protocol;
using apache::thrift::transport::TBufferedTransport;
using apache::thrift::transport::TMemoryBuffer;
using apache::thrift::transport::TTransport;

std::shared_ptr<TMemoryBuffer> buffer_of(const std::string& bytes) {
  return std::make_shared<TMemoryBuffer>(reinterpret_cast<std::uint8_t*>(const_cast<char*>(bytes.data())),
                                         static_cast<std::uint32_t>(bytes.size()));
}

template <class T, class P>
T read(const std::shared_ptr<TMemoryBuffer>& buffer, P& protocol) {
  ThriftOptions options;
  options.drop_unknown = true;
  auto tree = read_thrift<T>(protocol, options);
  if (buffer->available_read() != 0) throw std::runtime_error("bytes follow the end of the struct");
  return tree;
}

/// `Seen` is what the adapter is told of the protocol: its class, or only that it is one, which compiles once for all.
template <class P, class Seen = TProtocol, class T>
std::string written(const T& tree) {
  auto output = std::make_shared<TMemoryBuffer>();
  P protocol(output);
  write_thrift(static_cast<Seen&>(protocol), tree);
  return output->getBufferAsString();
}

template <class P, class T>
std::string again(const T& tree) {
  const auto bytes = written<P>(tree);
  const auto buffer = buffer_of(bytes);
  P protocol(buffer);
  const auto read_again = read<T>(buffer, static_cast<TProtocol&>(protocol));
  if ((tree == tree) != (read_again == tree)) throw std::runtime_error("what was read again is not equal");
  if (encode_compact(read_again) != encode_compact(tree)) throw std::runtime_error("what was read again differs");
  return bytes;
}

template <template <class> class T>
std::string done(const std::string& what, const std::string& bytes) {
  using Tree = T<Owned>;
  const auto buffer = buffer_of(bytes);
  if (what == "compact") {
    using Direct = TCompactProtocolT<TMemoryBuffer>;
    Direct protocol(buffer);
    return written<Direct, Direct>(read<Tree>(buffer, protocol));
  }
  if (what == "virtual") {
    TCompactProtocol protocol(buffer);
    return written<TCompactProtocol>(read<Tree>(buffer, static_cast<TProtocol&>(protocol)));
  }
  if (what == "stream") {
    TCompactProtocol protocol(std::make_shared<TBufferedTransport>(buffer));
    ThriftOptions options;
    options.stream_memory = std::size_t{16} << 20;
    options.drop_unknown = true;
    return encode_compact(read_thrift<Tree>(static_cast<TProtocol&>(protocol), options));
  }
  const auto borrowed = Bytes::borrow(bytes.data(), bytes.size());
  if (what == "view") return written<TCompactProtocol>(*decode_compact<T<View>>(borrowed));
  const auto tree = decode_owned<Tree>(borrowed);
  if (what == "binary") return again<TBinaryProtocol>(tree);
  if (what == "json") return again<TJSONProtocol>(tree), encode_compact(tree);
  throw std::runtime_error("nothing is called " + what);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string what = argv[1];
  return cases::run_all([&what](const std::string& type, const std::string& bytes) -> std::string {
#define X(T) \
  if (type == #T) return done<basic::T>(what, bytes);
#include TYPES_FILE
#undef X
    throw std::runtime_error("no type " + type);
  });
}
