// Part of pt2wire. Deflated records: through zlib where the program is built with it, else an error that says how.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pt2wire/bytes.h"
#include "pt2wire/error.h"

#if defined(PT2WIRE_WITH_ZLIB) && PT2WIRE_WITH_ZLIB
#include <zlib.h>
#endif

namespace pt2wire {

/// Undoes raw deflate. The result must have exactly `size` bytes.
inline Bytes inflate([[maybe_unused]] const Bytes& packed, [[maybe_unused]] std::size_t size) {
#if defined(PT2WIRE_WITH_ZLIB) && PT2WIRE_WITH_ZLIB
  struct Stream : z_stream {
    Stream() : z_stream() {
      if (::inflateInit2(this, -MAX_WBITS) != Z_OK) throw Error("zlib does not start");
    }
    ~Stream() { ::inflateEnd(this); }
  } stream;
  std::vector<std::uint8_t> content(size + 1);  // one more byte shows that there is too much
  std::size_t taken = 0;
  std::size_t made = 0;
  constexpr std::size_t step = std::size_t{1} << 30;  // zlib counts in 32 bits
  int state = Z_OK;
  while (state == Z_OK) {
    const std::size_t in = packed.size() - taken < step ? packed.size() - taken : step;
    const std::size_t out = content.size() - made < step ? content.size() - made : step;
    stream.next_in = const_cast<Bytef*>(packed.data() + taken);
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = content.data() + made;
    stream.avail_out = static_cast<uInt>(out);
    state = ::inflate(&stream, Z_NO_FLUSH);
    taken += in - stream.avail_in;
    made += out - stream.avail_out;
  }
  if (state != Z_STREAM_END || taken != packed.size() || made != size) {
    throw Error("the compressed bytes are damaged: they do not inflate to " + std::to_string(size) + " bytes");
  }
  content.resize(size);
  return Bytes::own(std::move(content));
#else
  throw Error(
      "the record is deflated, and this program was built without zlib: build it with -DPT2WIRE_WITH_ZLIB=1 and -lz "
      "(CMake option PT2WIRE_WITH_ZLIB), or save the archive with compress=False");
#endif
}

}  // namespace pt2wire
