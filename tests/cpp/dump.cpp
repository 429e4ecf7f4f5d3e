// Decodes each case with the generated header and prints the object.
// TYPES_FILE lists the structs and unions of the schema as X(Name).
#include "dump.h"

#include <cstring>
#include <stdexcept>

#include "cases.h"
#include "exact.h"

namespace {

using namespace pt2wire;

template <class T>
std::string decoded(const std::string& bytes) {
  std::string out;
  const auto document = decode_compact<T>(exact(bytes));
  dumping::dump(out, *document);
  if (document.skipped_fields() != 0) out += " skipped " + std::to_string(document.skipped_fields());
  return out;
}

std::string run(const std::string& type, const std::string& bytes) {
#define X(T) \
  if (type == #T) return decoded<T>(bytes);
#include TYPES_FILE
#undef X
  throw std::runtime_error("no type " + type);
}

}  // namespace

int main() { return cases::run_all(run); }
