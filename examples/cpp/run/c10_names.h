// Part of the example `run`. From the enums of the format to those of c10, by the names that pt2wire/schema.h has.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "pt2wire/error.h"
#include "pt2wire/schema.h"

namespace run {

/// The enumerator of a c10 enum, with this many of them, that prints as `name`.
template <class C10>
std::optional<C10> find_enumerator(std::string_view name, int count) {
  for (int number = 0; number != count; ++number) {
    std::ostringstream text;
    try {
      text << static_cast<C10>(number);
    } catch (const c10::Error&) {
      continue;  // this one has no name
    }
    if (text.str() == name) return static_cast<C10>(number);
  }
  return std::nullopt;
}

/// The c10 enumerator for one of the format. Throws `Error` where this libtorch or the format has none.
template <class C10, class Enum>
C10 to_c10(Enum value, int count, const char* what) {
  const std::string_view wanted = c10_name(value);
  const auto found = wanted.empty() ? std::nullopt : find_enumerator<C10>(wanted, count);
  if (found) return *found;
  throw pt2wire::Error("the " + std::string(what) + " " + std::to_string(static_cast<int>(value)) + " " +
                       std::string(name(value)) + " is not known to this libtorch");
}

inline c10::ScalarType to_c10(pt2wire::ScalarType value) {
  return to_c10<c10::ScalarType>(value, static_cast<int>(c10::ScalarType::NumOptions), "dtype");
}

/// The dtype under which a file has a tensor. Files name classes of storages, and for the dtypes behind bfloat16 torch has
/// none: of these a file has the bits, as signed integers of the same size, which `tensor.view(dtype)` gives and takes. So it is with complex32, which
/// libtorch's pickles and those of torch have under different names.
inline c10::ScalarType dtype_in_files(c10::ScalarType dtype) {
  if (dtype <= c10::ScalarType::BFloat16 && dtype != c10::ScalarType::ComplexHalf) return dtype;
  switch (c10::elementSize(dtype)) {
    case 1: return c10::ScalarType::Char;
    case 2: return c10::ScalarType::Short;
    case 4: return c10::ScalarType::Int;
    case 8: return c10::ScalarType::Long;
    default: return dtype;
  }
}

inline c10::Layout to_c10(pt2wire::Layout value) {
  return to_c10<c10::Layout>(value, static_cast<int>(c10::Layout::NumOptions), "layout");
}
inline c10::MemoryFormat to_c10(pt2wire::MemoryFormat value) {
  return to_c10<c10::MemoryFormat>(value, static_cast<int>(c10::MemoryFormat::NumOptions), "memory format");
}

/// A device that can be computed on. Throws `Error` where this build of libtorch has no backend for it.
inline c10::Device to_c10(const pt2wire::Device& device) {
  const std::string text = std::string(device.type) + (device.index ? ":" + std::to_string(*device.index) : "");
  try {
    const c10::Device found(text);
    if (found.is_cpu() || found.is_meta() || c10::impl::hasDeviceGuardImpl(found.type())) return found;
  } catch (const c10::Error&) {
  }
  throw pt2wire::Error("the device \"" + pt2wire::Error::printable(text) + "\" is not there in this build of libtorch");
}

}  // namespace run
