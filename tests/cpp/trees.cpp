// Works on whole trees. The argument says what is done with each case:
//   encode   decodes it (View) and encodes it again: the bytes
//   owned    decodes it (Owned), copies it and encodes the copy: the bytes
//   convert  decodes it (View), makes an owned copy and encodes that: the bytes; both must be equal but for NaN
//   compare  decodes two documents, each behind its length (4 bytes, little-endian): "equal" or "different"
// TYPES_FILE lists the structs and unions of the schema as X(Name).
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include "cases.h"
#include "exact.h"
#include "pt2wire/schema.h"

namespace {

using namespace pt2wire;

std::string_view take(std::string_view& rest) {
  std::size_t size = 0;
  for (std::size_t i = 0; i != 4; ++i) size |= static_cast<std::size_t>(static_cast<unsigned char>(rest[i])) << (8 * i);
  const auto part = rest.substr(4, size);
  rest.remove_prefix(4 + size);
  return part;
}

template <template <class> class T>
std::string encode(const std::string& bytes) {
  return encode_compact(*decode_compact<T<View>>(exact(bytes)));
}

template <template <class> class T>
std::string owned_copy(const std::string& bytes) {
  OwnedOptions options;
  options.drop_unknown = true;
  auto tree = decode_owned<T<Owned>>(exact(bytes), options);
  const auto copy = tree;
  tree = T<Owned>();
  return encode_compact(copy);
}

template <template <class> class T>
std::string convert(const std::string& bytes) {
  const auto document = decode_compact<T<View>>(exact(bytes));
  const auto tree = to_owned(*document);
  if ((*document == *document) != (tree == *document)) throw std::runtime_error("the copy is not equal");
  if ((tree == tree) != (*document == tree)) throw std::runtime_error("the copy is not equal to itself");
  return encode_compact(tree);
}

template <template <class> class T>
std::string compare(const std::string& bytes) {
  std::string_view rest = bytes;
  const auto a = decode_compact<T<View>>(exact(take(rest)));
  const auto b = decode_compact<T<View>>(exact(take(rest)));
  if ((*a == *b) == (*a != *b) || (*a == *b) != (*b == *a)) throw std::runtime_error("== and != disagree");
  return *a == *b ? "equal" : "different";
}

template <template <class> class T>
std::string done(const std::string& what, const std::string& bytes) {
  if (what == "encode") return encode<T>(bytes);
  if (what == "owned") return owned_copy<T>(bytes);
  if (what == "convert") return convert<T>(bytes);
  if (what == "compare") return compare<T>(bytes);
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
