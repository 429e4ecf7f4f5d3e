// Reads each case as an archive. The case's type says how much of it: "zip" lists the records, "program" gives the form of
// each program, its size in bytes and the number of its nodes; "json" and "thrift" demand that form of them, "crc" reads
// without the index's hashes. "weights" and "constants" print every element of every tensor in logical order.
#include "pt2wire/archive.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "cases.h"

namespace {

using namespace pt2wire;

/// The bytes in a block of exactly their size, so that a sanitizer sees each read beyond them.
Bytes exact(const std::string& bytes) {
  void* block = nullptr;
  if (::posix_memalign(&block, 64, bytes.size() + 1) != 0) throw std::bad_alloc();
  std::memcpy(block, bytes.data(), bytes.size());
  void* const trimmed = std::realloc(block, bytes.empty() ? 1 : bytes.size());
  return Bytes::share(trimmed, bytes.size(), std::shared_ptr<const void>(trimmed, std::free));
}

std::string hex(const std::uint8_t* data, std::size_t size) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i != size; ++i) {
    out += digits[data[i] >> 4];
    out += digits[data[i] & 15];
  }
  return out;
}

std::string list_records(const Bytes& bytes) {
  const Zip zip(bytes, "<memory>");
  std::string out;
  for (const Record& record : zip.records()) {
    const Bytes content = zip.read(record);
    out += std::string(record.name) + " " + hex(content.data(), content.size()) + "\n";
  }
  return out;
}

std::string list_programs(const Archive& archive) {
  std::string out;
  for (const std::string& name : archive.program_names()) {
    const auto program = archive.program(name);
    out += name + (archive.form(name) == Form::json ? " json " : " thrift ") + std::to_string(program.bytes().size()) +
           " " + std::to_string(program->graph_module.graph.nodes.size()) + "\n";
  }
  return out;
}

void append_elements(std::string& out, const Weight& weight, std::size_t dimension, std::int64_t at) {
  if (dimension == weight.sizes.size()) {
    const std::size_t item = item_size(weight.dtype);
    out += hex(weight.data() + static_cast<std::size_t>(at) * item, item);
    return;
  }
  for (std::int64_t i = 0; i != weight.sizes[dimension]; ++i) {
    append_elements(out, weight, dimension + 1, at + i * weight.strides[dimension]);
  }
}

std::string list_tensor(const Weight& weight) {
  std::string out = std::string(weight.fqn) + " " + std::string(torch_name(weight.dtype));
  for (const std::int64_t size : weight.sizes) out += " " + std::to_string(size);
  out += " ";
  append_elements(out, weight, 0, 0);
  return out + "\n";
}

std::string list_tensors(const Archive& archive, const Payloads& payloads, const std::string& folder) {
  std::string out;
  for (const Weight& weight : payloads.list) {
    if (payloads.find(weight.fqn) != &weight) throw std::runtime_error("find gives another weight");
    out += list_tensor(weight);
  }
  for (const LeftOut& other : payloads.left_out) {
    const std::string fqn(other.fqn);
    out += fqn + " is " + std::string(other.reason) + "\n";
    if (!other.meta->inner) continue;
    for (const auto& [name, part] : *other.meta->inner) {
      out += fqn + "." + list_tensor(make_weight(name, part, archive.read(folder + std::string(part.path_name))));
    }
  }
  return out;
}

std::string run(const std::string& type, const std::string& text) {
  const Bytes bytes = exact(text);
  if (type == "zip") return list_records(bytes);
  ArchiveOptions options;
  if (type == "json") options.form = Form::json;
  if (type == "thrift") options.form = Form::thrift;
  options.check_hashes = type != "crc";
  const Archive archive = Archive::from_memory(bytes, "<memory>", options);
  if (type == "program" || type == "json" || type == "thrift" || type == "crc") return list_programs(archive);
  if (type == "weights") return list_tensors(archive, archive.weights(), "data/weights/");
  if (type == "constants") return list_tensors(archive, archive.constants(), "data/constants/");
  throw std::runtime_error("no type " + type);
}

}  // namespace

int main() { return cases::run_all(run); }
