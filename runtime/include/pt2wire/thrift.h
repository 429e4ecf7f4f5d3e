// Part of pt2wire. The generated types over any protocol of Apache Thrift's C++ library. Needs libthrift and its headers;
// nothing else of pt2wire does. To be included behind the types that it reads: pt2wire/schema.h, or pt2wire/archive.h.
#pragma once

#include <thrift/Thrift.h>
#include <thrift/protocol/TProtocol.h>
#include <thrift/transport/TBufferTransports.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "pt2wire/decoder.h"
#include "pt2wire/editing.h"
#include "pt2wire/encoder.h"
#include "pt2wire/error.h"
#include "pt2wire/limits.h"
#include "pt2wire/owned.h"
#include "pt2wire/traits.h"
#include "pt2wire/utf8.h"
#include "pt2wire/wire.h"

namespace pt2wire {

/// How a tree is read from a protocol.
struct ThriftOptions {
  Limits limits;                              ///< where the transport is a TMemoryBuffer, whose size is known ...
  std::size_t stream_memory = std::size_t{256} << 20;  ///< ... and elsewhere, bytes of memory that a tree may take
  bool drop_unknown = false;                  ///< whether fields that this header does not know are dropped, or an error
};

namespace detail {

/// Thrift's type numbers, by `Wire`; 16 is uuid from Thrift 0.19 on.
inline constexpr std::uint8_t thrift_types[] = {0, 2, 2, 3, 6, 8, 10, 4, 11, 15, 14, 13, 12, 16};

inline apache::thrift::protocol::TType thrift_type(Wire wire) noexcept {
  return static_cast<apache::thrift::protocol::TType>(thrift_types[static_cast<std::uint8_t>(wire)]);
}

/// The decoder's reader (see compact.h). `Protocol` is TProtocol, or a protocol's own class, whose calls are not virtual.
template <class Protocol>
class ThriftReader {
 public:
  explicit ThriftReader(Protocol& protocol)
      : protocol_(protocol),
        memory_(dynamic_cast<apache::thrift::transport::TMemoryBuffer*>(protocol.getTransport().get())),
        size_(memory_ == nullptr ? 0 : memory_->available_read()) {}

  /// Bytes since the start; of a stream it is not known.
  std::size_t offset() const { return memory_ == nullptr ? Error::no_offset : size_ - memory_->available_read(); }
  std::size_t remaining() const { return memory_ == nullptr ? Error::no_offset : memory_->available_read(); }
  [[noreturn]] void fail(std::string reason) const { throw Error(std::move(reason), offset()); }

  void enter_struct() {
    if (++depth_ > max_depth) fail("more than 64 structs and unions lie inside each other");
    call([this] { return protocol_.readStructBegin(text_); });
  }
  void leave_struct() {
    call([this] { return protocol_.readStructEnd(); });
    --depth_;
  }

  FieldHeader next_field(FieldHeader previous) {
    apache::thrift::protocol::TType type{};
    std::int16_t id = 0;
    call([&] {
      if (previous != FieldHeader()) protocol_.readFieldEnd();
      return protocol_.readFieldBegin(text_, type, id);
    });
    return type == apache::thrift::protocol::T_STOP ? FieldHeader::end() : FieldHeader(id, wire_of(type));
  }
  void check_wire(Wire) const noexcept {}

  bool read_bool(FieldHeader) { return read_bool_item(); }
  bool read_bool_item() {
    return read<bool>([this](bool& value) { return protocol_.readBool(value); });
  }
  std::int32_t read_i32() {
    return read<std::int32_t>([this](std::int32_t& value) { return protocol_.readI32(value); });
  }
  std::int64_t read_i64() {
    return read<std::int64_t>([this](std::int64_t& value) { return protocol_.readI64(value); });
  }
  double read_double() {
    return read<double>([this](double& value) { return protocol_.readDouble(value); });
  }
  /// Valid until the next call.
  std::string_view read_text() {
    call([this] { return protocol_.readString(text_); });
    if (valid_utf8_prefix(text_) != text_.size()) fail("the text is not valid UTF-8");
    return text_;
  }
  std::string_view read_binary() {
    call([this] { return protocol_.readBinary(text_); });
    return text_;
  }

  ListHeader read_list() {
    apache::thrift::protocol::TType item{};
    std::uint32_t size = 0;
    call([&] { return protocol_.readListBegin(item, size); });
    return {wire_of(item), size};
  }
  void end_list() {
    call([this] { return protocol_.readListEnd(); });
  }
  MapHeader read_map() {
    apache::thrift::protocol::TType key{};
    apache::thrift::protocol::TType value{};
    std::uint32_t size = 0;
    call([&] { return protocol_.readMapBegin(key, value, size); });
    return size == 0 ? MapHeader{Wire::stop, Wire::stop, 0} : MapHeader{wire_of(key), wire_of(value), size};
  }
  void end_map() {
    call([this] { return protocol_.readMapEnd(); });
  }

  void skip(FieldHeader field) {
    if (field.id() < 1) fail(low_id(field.id()));
    call([&] { return protocol_.skip(thrift_type(field.wire())); });
  }

 private:
  Wire wire_of(apache::thrift::protocol::TType type) const {
    const auto number = static_cast<std::uint8_t>(type);
    for (std::uint8_t i = 1; i != sizeof thrift_types; ++i) {
      if (thrift_types[i] == number) return static_cast<Wire>(i);
    }
    fail("the type number " + std::to_string(number) + " has no meaning in Thrift");
  }

  template <class F>
  void call(F&& f) const {
    try {
      f();
    } catch (const apache::thrift::TException& error) {
      fail(std::string("thrift: ") + error.what());
    }
  }
  template <class T, class F>
  T read(F&& f) const {
    T value{};
    call([&] { f(value); });
    return value;
  }

  Protocol& protocol_;
  apache::thrift::transport::TMemoryBuffer* memory_;
  std::size_t size_;
  int depth_ = 0;
  std::string text_;
};

/// The encoder's writer (see compact_writer.h).
template <class Protocol>
class ThriftWriter {
 public:
  explicit ThriftWriter(Protocol& protocol) noexcept : protocol_(protocol) {}

  void begin_struct() { protocol_.writeStructBegin(""); }
  void end_struct() {
    protocol_.writeFieldStop();
    protocol_.writeStructEnd();
  }
  void begin_field(std::int16_t&, std::int16_t id, Wire wire) { protocol_.writeFieldBegin("", thrift_type(wire), id); }
  void end_field() { protocol_.writeFieldEnd(); }
  void bool_field(std::int16_t& previous, std::int16_t id, bool value) {
    begin_field(previous, id, Wire::boolean);
    write_bool(value);
  }
  void begin_list(Wire item, std::uint32_t size) { protocol_.writeListBegin(thrift_type(item), size); }
  void end_list() { protocol_.writeListEnd(); }
  void begin_map(Wire value, std::uint32_t size) {
    protocol_.writeMapBegin(thrift_type(Wire::text), thrift_type(value), size);
  }
  void end_map() { protocol_.writeMapEnd(); }
  void write_bool(bool value) { protocol_.writeBool(value); }
  void write_i32(std::int32_t value) { protocol_.writeI32(value); }
  void write_i64(std::int64_t value) { protocol_.writeI64(value); }
  void write_double(double value) { protocol_.writeDouble(value); }
  void write_text(std::string_view text) {
    text_.assign(text);
    protocol_.writeString(text_);
  }
  void write_binary(std::string_view bytes) {
    text_.assign(bytes);
    protocol_.writeBinary(text_);
  }

 private:
  Protocol& protocol_;
  std::string text_;
};

}  // namespace detail

/// Reads a struct or union from a protocol of Apache's library; what follows it stays unread.
///
///     apache::thrift::protocol::TBinaryProtocol protocol(transport);
///     auto program = pt2wire::read_thrift<pt2wire::owned::ExportedProgram>(protocol);
///
/// Refuses what `decode_owned` refuses, with two exceptions. Apache's library has read numbers in a form too long or too
/// wide, bools other than 1 and 2 in lists, and ends of structs that are no 0, before anyone sees them. And in a stream,
/// whose end is not in sight, sizes of lists are held only against `stream_memory`. Throws `Error` also for what the library
/// throws.
template <class T, class Protocol>
T read_thrift(Protocol& protocol, const ThriftOptions& options = {}) {
  using Reader = detail::ThriftReader<Protocol>;
  Reader reader(protocol);
  const std::size_t size = reader.remaining();
  OwnedBuilder builder{size == Error::no_offset ? options.stream_memory : options.limits.budget(size)};
  Decoder<Owned, Reader> decoder(std::move(reader), builder);
  T tree;
  decoder.read(tree);
  if (!options.drop_unknown) detail::refuse_skipped(decoder.skipped_fields());
  return tree;
}

/// Writes a struct or union of any storage to a protocol of Apache's library. Does not flush the transport.
///
/// Throws `Error` for what `encode_compact` refuses and for what the library throws; part of the tree has been written then.
template <class Protocol, class T>
void write_thrift(Protocol& protocol, const T& tree) {
  detail::ThriftWriter<Protocol> writer(protocol);
  Encoder<typename Traits<T>::Storage, detail::ThriftWriter<Protocol>> encoder(writer);
  try {
    encoder.write(tree);
  } catch (const apache::thrift::TException& error) {
    throw Error(std::string("thrift: ") + error.what());
  }
}

}  // namespace pt2wire
