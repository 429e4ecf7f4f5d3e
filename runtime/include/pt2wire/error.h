// Part of pt2wire. The one exception type of the C++ side.
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace pt2wire {

/// Why a file or a document was refused, and where.
///
/// `path()` is the way through the document, in field names: `graph_module.graph.nodes[3].inputs[1].arg`; for a fault
/// of the archive around it, the name of the file and of the record. `offset()` counts bytes from the start of the
/// decoded bytes (or of the file), and is `no_offset` where no byte is to blame. `what()` has all of it.
class Error : public std::exception {
 public:
  static constexpr std::size_t no_offset = static_cast<std::size_t>(-1);

  explicit Error(std::string reason, std::size_t offset = no_offset, std::string path = {})
      : reason_(std::move(reason)), path_(std::move(path)), offset_(offset) {
    compose();
  }

  const char* what() const noexcept override { return what_.c_str(); }
  const std::string& reason() const noexcept { return reason_; }
  const std::string& path() const noexcept { return path_; }
  std::size_t offset() const noexcept { return offset_; }

  /// Each level on the way out puts its own step before the path; the innermost step comes first.
  void within_field(std::string_view name) { prepend(std::string(name)); }
  void within_item(std::size_t index) { prepend("[" + std::to_string(index) + "]"); }
  void within_key(std::string_view key) { prepend("[\"" + printable(key) + "\"]"); }

  /// Text from a file, made fit for a message: long text cut, control and non-ASCII bytes as \xNN.
  static std::string printable(std::string_view text) {
    constexpr std::size_t longest = 80;
    static constexpr char digits[] = "0123456789abcdef";
    std::string out;
    for (const char c : text.substr(0, longest)) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\') {
        out += c;
      } else {
        out += "\\x";
        out += digits[byte >> 4];
        out += digits[byte & 15];
      }
    }
    return text.size() > longest ? out + "..." : out;
  }

 private:
  void prepend(std::string step) {
    const bool joint = !path_.empty() && path_.front() != '[';
    path_ = step + (joint ? "." : "") + path_;
    compose();
  }

  void compose() {
    what_ = path_.empty() ? reason_ : path_ + ": " + reason_;
    if (offset_ != no_offset) what_ += " (at byte " + std::to_string(offset_) + ")";
  }

  std::string reason_;
  std::string path_;
  std::size_t offset_;
  std::string what_;
};

}  // namespace pt2wire
