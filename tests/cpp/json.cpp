// Reads each case as JSON, in both storages, and encodes it in TCompact: the bytes, and how many fields were skipped if any
// were. Both must agree, also in what they refuse.
// TYPES_FILE lists the structs and unions of the schema as X(Name).
#include "pt2wire/json.h"

#include <cstring>
#include <stdexcept>
#include <string>

#include "cases.h"
#include "exact.h"

namespace {

using namespace pt2wire;

template <class F>
std::string result_or_message(bool& refused, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    refused = true;
    return error.what();
  }
}

template <template <class> class T>
std::string decoded(const std::string& text) {
  bool view_refused = false, owned_refused = false;
  const std::string view = result_or_message(view_refused, [&] {
    const auto document = decode_json<T<View>>(exact(text));
    const std::size_t skipped = document.skipped_fields();
    return encode_compact(*document) + (skipped != 0 ? " skipped " + std::to_string(skipped) : "");
  });
  const std::string owned = result_or_message(owned_refused, [&] {
    OwnedOptions options;
    options.drop_unknown = true;
    return encode_compact(decode_json_owned<T<Owned>>(exact(text), options));
  });
  const bool agree = view_refused == owned_refused && view.compare(0, owned.size(), owned) == 0;
  // Trees take memory differently, so only one may be over the limits.
  const auto over = [](const std::string& message) { return message.find(over_budget) != std::string::npos; };
  if (!agree && !over(view) && !over(owned)) throw std::logic_error("view: " + view + "\nowned: " + owned);
  if (view_refused) throw std::runtime_error(view);
  return view;
}

}  // namespace

int main() {
  return cases::run_all([](const std::string& type, const std::string& text) -> std::string {
#define X(T) \
  if (type == #T) return decoded<basic::T>(text);
#include TYPES_FILE
#undef X
    throw std::runtime_error("no type " + type);
  });
}
