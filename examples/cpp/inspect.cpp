// Lists the programs of a .pt2 archive: nodes and weights, line by line. Needs no Python, no JSON library, no libtorch.
//
//     g++ -std=c++17 -O2 $(pt2wire paths --cxxflags) inspect.cpp -o inspect && ./inspect model.pt2
//
// examples/listing.py prints the same lines from the same file.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "pt2wire/archive.h"

namespace {

using namespace pt2wire;

/// Text as it is, but for bytes that are not printable ASCII.
std::string text(std::string_view raw) {
  std::string out;
  char escape[5];
  for (const char c : raw) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\\') {
      out += c;
    } else {
      std::snprintf(escape, sizeof escape, "\\x%02x", byte);
      out += escape;
    }
  }
  return out;
}

void print(const std::string& line) { std::puts(line.c_str()); }

std::string number(const std::optional<std::int64_t>& value) { return value ? std::to_string(*value) : "-"; }

/// All bits of a double, in the form of Python's float.hex.
std::string hex(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const std::uint64_t fraction = bits & 0xfffffffffffffu;
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  const std::string sign = bits >> 63 != 0 ? "-" : "";
  if (exponent == 0x7ff) return fraction != 0 ? "nan" : sign + "inf";
  if (exponent == 0 && fraction == 0) return sign + "0x0.0p+0";
  char digits[48];
  std::snprintf(digits, sizeof digits, "0x%d.%013llxp%+d", exponent != 0, static_cast<unsigned long long>(fraction),
                exponent != 0 ? exponent - 1023 : -1022);
  return sign + digits;
}

std::string literal(std::int64_t value) { return std::to_string(value); }
std::string literal(bool value) { return value ? "true" : "false"; }
std::string literal(double value) { return hex(value); }
std::string literal(const SymExpr& value) { return text(value.expr_str); }
std::string literal(const Unknown&) { return "?"; }

/// A SymInt, SymBool or SymFloat.
template <class Symbolic>
std::string symbolic(const Symbolic& value) {
  return value.visit([](const auto& member) { return literal(member); });
}
template <class Symbolic>
std::string symbolic(const Symbolic* value) {
  return value != nullptr ? symbolic(*value) : "?";
}

std::string join(const Span<SymInt>& values) {
  std::string out;
  for (const SymInt& value : values) out += (out.empty() ? "" : ", ") + symbolic(value);
  return out;
}

std::string describe(const TensorMeta& meta) {
  const std::string_view dtype = torch_name(meta.dtype);
  std::string device = text(meta.device.type);
  if (meta.device.index) device += ":" + std::to_string(*meta.device.index);
  return std::string(dtype.empty() ? "?" : dtype) + " sizes=[" + join(meta.sizes) + "] strides=[" + join(meta.strides) +
         "] offset=" + symbolic(meta.storage_offset) + " " + device;
}

void list_tensor(const Graph& graph, std::string_view name, const std::string& indent) {
  const TensorMeta* const meta = graph.tensor_values.find(name);
  print(indent + "tensor " + text(name) + " " + (meta != nullptr ? describe(*meta) : "?"));
}

/// A symbolic output: a name in one of the graph's tables.
template <class Symbol, class Table>
bool list_symbol(const char* type, const Symbol& symbol, const Table& values, const std::string& indent) {
  const std::string_view* const name = symbol.template get_if<Symbol::Tag::as_name>();
  if (name == nullptr) return false;
  print(indent + type + " " + text(*name) + " = " + symbolic(values.find(*name)));
  return true;
}

void list_output(const Graph& graph, const Argument& output, const std::string& indent) {
  using Tag = Argument::Tag;
  switch (output.tag()) {
    case Tag::as_tensor:
      return list_tensor(graph, output.as_tensor().name, indent);
    case Tag::as_tensors:
      for (const TensorArgument& tensor : output.as_tensors()) list_tensor(graph, tensor.name, indent);
      return;
    case Tag::as_sym_int:
      if (list_symbol("int", output.as_sym_int(), graph.sym_int_values, indent)) return;
      break;
    case Tag::as_sym_bool:
      if (list_symbol("bool", output.as_sym_bool(), graph.sym_bool_values, indent)) return;
      break;
    case Tag::as_sym_float:
      if (list_symbol("float", output.as_sym_float(), graph.sym_float_values, indent)) return;
      break;
    default:
      break;
  }
  print(indent + std::string(output.member_name()));
}

void list_graph(const Graph& graph, const std::string& indent) {
  for (const Node& node : graph.nodes) {
    print(indent + "node " + (node.name ? text(*node.name) : "-") + " " + text(node.target) +
          " inputs=" + std::to_string(node.inputs.size()) + " outputs=" + std::to_string(node.outputs.size()));
    for (const Argument& output : node.outputs) list_output(graph, output, indent + "  ");
    for (const NamedArgument& argument : node.inputs) {
      if (const GraphArgument* const subgraph = argument.arg.get_if<Argument::Tag::as_graph>()) {
        print(indent + "  graph " + text(argument.name) + " " + text(subgraph->name));
        list_graph(subgraph->graph, indent + "    ");
      }
    }
  }
}

/// What a lifted input stands for: the name of a parameter, buffer or constant.
std::string target(const InputSpec& spec) {
  switch (spec.tag()) {
    case InputSpec::Tag::parameter: return " " + text(spec.parameter().parameter_name);
    case InputSpec::Tag::buffer: return " " + text(spec.buffer().buffer_name);
    case InputSpec::Tag::tensor_constant: return " " + text(spec.tensor_constant().tensor_constant_name);
    default: return "";
  }
}

void list_weight(const Weight& weight) {
  char crc[9];
  std::snprintf(crc, sizeof crc, "%08x", crc32(weight.payload.data(), weight.payload.size()));
  print("weight " + text(weight.fqn) + (weight.meta->is_param ? " parameter " : " buffer ") +
        describe(*weight.meta->tensor_meta) + " bytes=" + std::to_string(weight.payload.size()) + " crc32=" + crc);
}

void list_program(const Archive& archive, const std::string& name) {
  const auto program = archive.program(name);
  print("program " + text(name));
  print("version " + std::to_string(program->schema_version.major) + "." + std::to_string(program->schema_version.minor));
  print("torch " + text(program->torch_version));
  for (const auto& [symbol, range] : program->range_constraints) {
    print("symbol " + text(symbol) + " " + number(range.min_val) + " " + number(range.max_val));
  }
  const GraphSignature& signature = program->graph_module.signature;
  for (const InputSpec& spec : signature.input_specs) print("input " + std::string(spec.member_name()) + target(spec));
  for (const OutputSpec& spec : signature.output_specs) print("output " + std::string(spec.member_name()));
  list_graph(program->graph_module.graph, "");
  const Payloads weights = archive.weights(name);
  for (const Weight& weight : weights.list) list_weight(weight);
  for (const LeftOut& other : weights.left_out) print("left out " + text(other.fqn) + ": " + std::string(other.reason));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FILE.pt2\n", argv[0]);
    return 2;
  }
  try {
    const Archive archive = Archive::open(argv[1]);
    for (const std::string& name : archive.program_names()) list_program(archive, name);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
