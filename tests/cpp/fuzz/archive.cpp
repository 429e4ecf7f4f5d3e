// Fuzzes the archive reader: the zip directory, the index, programs and weights. What the reader accepts is read in full:
// every record, every program, and of every weight the bytes that its metadata reach.
//
// Most changes of an archive end at a CRC, or at a size that stands in four places. So half of what the fuzzer makes gets the
// CRCs that its records have, before it is run and stored, and in some a stored record gets another size in all of them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "harness.h"
#include "pt2wire/archive.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace pt2wire;
using fuzzing::demand;

volatile std::uint64_t seen;

void touch(const std::uint8_t* data, std::size_t size) { seen = seen + std::accumulate(data, data + size, std::uint64_t{0}); }
void touch(std::string_view text) { touch(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()); }

/// Reads the last element of a weight and, if it has any, the first: all others lie between.
void touch(const Weight& weight) {
  touch(weight.fqn);
  demand(weight.sizes.size() == weight.strides.size(), "as many sizes as strides");
  if (weight.payload.empty()) return;
  demand(weight.extent <= weight.payload.size(), "the elements lie within the payload");
  if (weight.data() == nullptr) return;
  std::size_t last = 0;
  for (std::size_t i = 0; i != weight.sizes.size(); ++i) {
    last += static_cast<std::size_t>(weight.sizes[i] - 1) * static_cast<std::size_t>(weight.strides[i]);
  }
  touch(weight.data(), item_size(weight.dtype));
  touch(weight.data() + last * item_size(weight.dtype), item_size(weight.dtype));
}

template <class Step>
void attempt(Step&& step) {
  try {
    step();
  } catch (const Error& error) {
    demand(error.what()[0] != '\0' && !error.path().empty(), "an error says what and where");
  }
}

void read_everything(const Archive& archive) {
  for (const Record& record : archive.records()) {
    touch(record.name);
    attempt([&] {
      const Bytes content = archive.read(record.name);
      demand(content.size() == record.size, "a record is as large as the directory says");
      touch(content.data(), content.size());
    });
  }
  for (const std::string& name : archive.program_names()) {
    attempt([&] {
      const auto program = archive.program(name);
      touch(encode_compact(*program));
    });
    for (const auto read : {&Archive::weights, &Archive::constants}) {
      attempt([&] {
        for (const Weight& weight : (archive.*read)(name).list) touch(weight);
      });
    }
  }
}

// CRCs and sizes. The file is read as loosely as it can be: what the strict reader makes of the result is what is tested.

std::uint64_t number(const std::uint8_t* at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- != 0;) value = value << 8 | at[i];
  return value;
}

void put(std::uint8_t* at, std::uint32_t value) {
  for (std::size_t i = 0; i != 4; ++i) at[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

/// Visits stored records: where the directory and where the record itself has its header.
template <class Visit>
void each_stored(std::uint8_t* data, std::size_t size, Visit&& visit) {
  for (std::size_t at = 0; at + 46 <= size; ++at) {
    if (number(data + at, 4) != 0x02014b50 || number(data + at + 10, 2) != 0) continue;
    const std::uint64_t local = number(data + at + 42, 4);
    if (local <= size && size - local >= 30) visit(data + at, data + local);
  }
}

void mend_crcs(std::uint8_t* data, std::size_t size) {
  each_stored(data, size, [&](std::uint8_t* entry, std::uint8_t* local) {
    const std::uint64_t length = number(entry + 24, 4);
    const std::uint64_t start = static_cast<std::uint64_t>(local - data) + 30 + number(local + 26, 2) + number(local + 28, 2);
    if (start > size || size - start < length) return;
    const std::uint32_t crc = crc32(data + start, length);
    put(entry + 16, crc);
    if (number(local + 14, 4) != 0) put(local + 14, crc);
  });
}

/// One record gets a size up to a little beyond the end of the file.
void resize_record(std::uint8_t* data, std::size_t size, std::minstd_rand& chance) {
  std::size_t count = 0;
  each_stored(data, size, [&](std::uint8_t*, std::uint8_t*) { ++count; });
  std::size_t left = count == 0 ? 0 : chance() % count;
  each_stored(data, size, [&](std::uint8_t* entry, std::uint8_t* local) {
    if (left-- != 0) return;
    const std::uint32_t length = static_cast<std::uint32_t>(chance() % (size + 4096));
    for (std::uint8_t* const at : {entry + 20, entry + 24}) put(at, length);
    for (std::uint8_t* const at : {local + 18, local + 22}) {
      if (number(at, 4) != 0) put(at, length);  // 0 where the sizes stand behind the content
    }
  });
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  std::minstd_rand chance(seed);
  if (chance() % 8 == 0) {
    resize_record(data, size, chance);
  } else {
    size = LLVMFuzzerMutate(data, size, max_size);
  }
  if (chance() % 2 == 0) mend_crcs(data, size);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const bool check_payloads : {true, false}) {
    ArchiveOptions options;
    options.check_payloads = check_payloads;
    fuzzing::limited(fuzzing::most_memory + size, [&] {
      attempt([&] { read_everything(Archive::from_memory(Bytes::borrow(data, size), "fuzzed", options)); });
    });
  }
  return 0;
}
