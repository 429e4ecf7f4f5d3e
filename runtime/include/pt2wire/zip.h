// Part of pt2wire. The container of a .pt2 file: a zip file, read strictly.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pt2wire/bytes.h"
#include "pt2wire/crc32.h"
#include "pt2wire/error.h"
#include "pt2wire/inflate.h"
#include "pt2wire/utf8.h"

namespace pt2wire {

/// What reading an archive may cost.
struct ZipLimits {
  std::uint64_t records = 300000;
  std::uint64_t name_length = 1024;
  std::uint64_t inflated_bytes = std::uint64_t{4} << 30;  ///< that one deflated record may grow to
  /// Deflated records, each and all together, may be this many times as large as their compressed bytes, once they are
  /// larger than `inflation_floor` bytes. Programs stay below 60.
  std::uint64_t inflation_ratio = 200;
  std::uint64_t inflation_floor = std::uint64_t{16} << 20;

  bool is_bomb(std::uint64_t packed_size, std::uint64_t size) const noexcept {
    return size > inflation_floor && (inflation_ratio == 0 || (size - 1) / inflation_ratio >= packed_size);
  }
};

/// A record of an archive. Offsets and sizes are in bytes.
struct Record {
  std::string_view name;  ///< below the root folder, such as `thrift/model.compact`
  std::uint64_t offset = 0;
  std::uint64_t packed_size = 0;
  std::uint64_t size = 0;
  std::uint32_t crc32 = 0;  ///< of the content; 0 on a stored record may mean that nobody computed it
  bool deflated = false;
};

/// The records of a zip file.
///
/// A zip file says most things twice, and readers differ in which half they believe. Here both must agree: one
/// directory that ends where the file ends, one root folder, no name twice (outside of `extra/` also where only the case
/// of ASCII letters differs), no name that leaves the root, local headers and descriptors equal to the directory, no
/// second name in an extra field, no two records over the same bytes and nothing but zeros between them, stored or deflated
/// only.
class Zip {
 public:
  /// Reads the directory, and what lies between records; of the records' bytes it touches none. `name` is what messages call the file. Throws `Error`.
  explicit Zip(Bytes file, std::string name = "<memory>", const ZipLimits& limits = {})
      : file_(std::move(file)), file_name_(std::move(name)), limits_(limits) {
    const Directory directory = find_directory();
    read_directory(directory);
    check_inflation();
  }

  const std::string& name() const noexcept { return file_name_; }
  const std::vector<Record>& records() const noexcept { return records_; }

  /// What messages call a record: file and record.
  std::string path_of(std::string_view record) const { return file_name_ + ":" + Error::printable(record); }

  /// The record with this name, or nullptr.
  const Record* find(std::string_view name) const noexcept {
    const auto before = [](const Entry& entry, std::string_view wanted) { return compare(entry.name, wanted) < 0; };
    const auto found = std::lower_bound(entries_.begin(), entries_.end(), name, before);
    return found == entries_.end() || found->name != name || found->is_folder() ? nullptr : &records_[found->record];
  }

  /// The content of a record: a view of the file if it is stored, else inflated. Its CRC is checked unless told
  /// otherwise. Throws `Error`.
  Bytes read(const Record& record, bool check_crc = true) const {
    try {
      const Bytes packed = file_.part(static_cast<std::size_t>(record.offset), static_cast<std::size_t>(record.packed_size));
      const Bytes content = record.deflated ? inflated(record, packed) : packed;
      const bool has_crc = record.deflated || record.crc32 != 0;
      if (check_crc && has_crc && crc32(content.data(), content.size()) != record.crc32) {
        throw Error("the bytes do not have the CRC that the directory says: the file is damaged");
      }
      return content;
    } catch (const Error& error) {
      throw Error(error.reason(), static_cast<std::size_t>(record.offset), path_of(record.name));
    }
  }

 private:
  struct Directory {
    std::uint64_t start, size, count;
  };
  /// A record or folder, and the bytes that its header, content and descriptor take.
  struct Entry {
    std::string_view name;
    std::uint64_t start, end;
    std::size_t record;  ///< its position among the records

    bool is_folder() const noexcept { return name.empty() || name.back() == '/'; }
    static bool lies_before(const Entry& a, const Entry& b) noexcept { return a.start < b.start; }
    static bool is_called_before(const Entry& a, const Entry& b) noexcept { return compare(a.name, b.name) < 0; }
  };
  struct Extent {
    std::uint64_t start, end;
  };
  /// The numbers that a directory entry and its local header both have.
  struct Numbers {
    std::uint32_t crc32;
    std::uint64_t packed_size, size;
  };

  static constexpr std::uint64_t end_size = 22, end64_size = 56, locator_size = 20, entry_size = 46, local_size = 30;
  static constexpr std::uint32_t end_mark = 0x06054b50, end64_mark = 0x06064b50, locator_mark = 0x07064b50;
  static constexpr std::uint32_t entry_mark = 0x02014b50, local_mark = 0x04034b50, descriptor_mark = 0x08074b50;
  static constexpr std::uint16_t encrypted_flag = 1 << 0, descriptor_flag = 1 << 3, utf8_flag = 1 << 11;
  static constexpr std::uint16_t known_flags = descriptor_flag | utf8_flag | 6;  // 6: how hard deflate tried
  /// Of Info-ZIP: the name or comment once more, in UTF-8, behind a version and a CRC. Readers then drop the header's.
  static constexpr std::uint16_t unicode_path = 0x7075, unicode_comment = 0x6375, before_unicode = 5;
  static constexpr std::uint32_t wide = 0xffffffff;  // the true number is in the zip64 extra field

  // Little-endian numbers. Whoever calls these has checked that the file has the bytes.
  template <class Unsigned>
  Unsigned number(std::uint64_t at) const noexcept {
    Unsigned value = 0;
    for (std::size_t i = 0; i != sizeof value; ++i) {
      value = static_cast<Unsigned>(value | static_cast<Unsigned>(file_.data()[at + i]) << (8 * i));
    }
    return value;
  }
  std::uint16_t u16(std::uint64_t at) const noexcept { return number<std::uint16_t>(at); }
  std::uint32_t u32(std::uint64_t at) const noexcept { return number<std::uint32_t>(at); }
  std::uint64_t u64(std::uint64_t at) const noexcept { return number<std::uint64_t>(at); }
  std::string_view text(std::uint64_t at, std::uint64_t size) const noexcept {
    return file_.text().substr(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
  }

  [[noreturn]] void fail(const std::string& reason, std::uint64_t at, std::string_view name = {}) const {
    throw Error(reason, static_cast<std::size_t>(at), name.empty() ? file_name_ : path_of(name));
  }
  void require(bool holds, const char* reason, std::uint64_t at, std::string_view name = {}) const {
    if (!holds) fail(reason, at, name);
  }

  Directory find_directory() const {
    const std::uint64_t size = file_.size();
    if (size < end_size || u32(size - end_size) != end_mark) {
      if (size == 0) fail("expected a .pt2 archive (a zip file), found an empty file", 0);
      if (size >= 4 && u32(0) == local_mark) {
        fail("expected the end of a zip file: the file is cut short, or other bytes follow", size);
      }
      fail("expected a .pt2 archive (a zip file), found something else", 0);
    }
    const std::uint64_t end = size - end_size;
    require(u16(end + 20) == 0, "the zip end record announces a comment that is not there", end);
    std::uint64_t disk = u16(end + 4), first_disk = u16(end + 6), here = u16(end + 8);
    Directory found{u32(end + 16), u32(end + 12), u16(end + 10)};
    std::uint64_t stop = end;
    if (end >= locator_size && u32(end - locator_size) == locator_mark) {
      const std::uint64_t locator = end - locator_size;
      stop = u64(locator + 8);
      require(locator >= end64_size && stop <= locator - end64_size && u32(stop) == end64_mark &&
                  u64(stop + 4) == locator - stop - 12,
              "the zip64 end record is not where its locator says", locator);
      const Directory found64{u64(stop + 48), u64(stop + 40), u64(stop + 32)};
      const auto agree = [](std::uint64_t narrow, std::uint64_t ones, std::uint64_t full) {
        return narrow == full || narrow == ones;
      };
      require(agree(disk, 0xffff, u32(stop + 16)) && agree(first_disk, 0xffff, u32(stop + 20)) &&
                  agree(here, 0xffff, u64(stop + 24)) && agree(found.count, 0xffff, found64.count) &&
                  agree(found.size, wide, found64.size) && agree(found.start, wide, found64.start),
              "the two end records of the zip file disagree", stop);
      require(u32(locator + 16) <= 1, "the archive is split over several files", locator);
      disk = u32(stop + 16), first_disk = u32(stop + 20), here = u64(stop + 24), found = found64;
    }
    require(disk == 0 && first_disk == 0 && here == found.count, "the archive is split over several files", end);
    require(found.start <= stop && found.size == stop - found.start,
            "the zip directory does not end where the end record begins: the file is cut short, or something was put in "
            "front of it",
            end);
    require(found.count <= limits_.records, "the archive has more records than the limit allows", end);
    return found;
  }

  void read_directory(const Directory& directory) {
    std::uint64_t at = directory.start;
    const std::uint64_t stop = directory.start + directory.size;
    for (std::uint64_t i = 0; i != directory.count; ++i) {
      require(stop - at >= entry_size && u32(at) == entry_mark, "the zip directory is damaged", at);
      const std::uint64_t name_size = u16(at + 28), extra_size = u16(at + 30), comment_size = u16(at + 32);
      require(stop - at - entry_size >= name_size + extra_size + comment_size, "the zip directory is damaged", at);
      const std::uint64_t extra = at + entry_size + name_size;
      const std::string_view name = text(at + entry_size, name_size);
      check_unicode(extra, extra_size, name, text(extra + extra_size, comment_size));
      read_entry(directory, at, name, extra_size);
      at += entry_size + name_size + extra_size + comment_size;
    }
    require(at == stop, "the zip directory holds more records than the end record says", at);
    sort_entries(Entry::lies_before);
    std::uint64_t end = 0;
    for (const Entry& entry : entries_) {
      require(end <= entry.start, "two records share bytes", entry.start, entry.name);
      check_padding(end, entry.start);
      end = entry.end;
    }
    check_padding(end, directory.start);
    // Sorted rather than hashed: no choice of names makes this slow.
    sort_entries(Entry::is_called_before);
    for (std::size_t i = 1; i < entries_.size(); ++i) {
      const std::string_view name = entries_[i].name;
      require(compare(entries_[i - 1].name, name) != 0, "two records have the same name", directory.start, name);
    }
  }

  /// Refuses what no record holds. PyTorch pads within extra fields, others with zeros.
  void check_padding(std::uint64_t at, std::uint64_t stop) const {
    const std::string_view gap = text(at, stop - at);
    require(gap.find_first_not_of('\0') == std::string_view::npos, "bytes between records that are no padding", at);
  }

  /// Both orders in one function, as compilers spend long on each sort.
  void sort_entries(bool (*before)(const Entry&, const Entry&)) { std::sort(entries_.begin(), entries_.end(), before); }

  void read_entry(const Directory& directory, std::uint64_t at, std::string_view name, std::uint64_t extra_size) {
    const std::uint16_t flags = u16(at + 8), method = u16(at + 10);
    check_name(name, (flags & utf8_flag) != 0, at);
    require((flags & encrypted_flag) == 0, "the record is encrypted", at, name);
    require((flags & ~known_flags) == 0, "the record uses zip features that are not supported", at, name);
    require(method == 0 || method == 8, "the record is neither stored nor deflated", at, name);
    Numbers numbers{u32(at + 16), u32(at + 20), u32(at + 24)};
    std::uint64_t local = u32(at + 42);
    widen(at + entry_size + name.size(), extra_size, {&numbers.size, &numbers.packed_size, &local}, name);
    require(u16(at + 34) == 0 || u16(at + 34) == 0xffff, "the archive is split over several files", at, name);
    require(method == 8 || numbers.packed_size == numbers.size, "a stored record with two sizes", at, name);

    const std::size_t slash = name.find('/');
    require(slash != std::string_view::npos, "the record is not inside the archive's one root folder", at, name);
    const std::string_view root = name.substr(0, slash + 1);
    if (entries_.empty()) root_ = root;
    require(root == root_, "the archive has a second root folder", at, name);
    const Extent content = check_local(directory.start, local, flags, method, numbers, name);
    const Entry& entry = entries_.emplace_back(Entry{name.substr(slash + 1), local, content.end, records_.size()});
    if (entry.is_folder()) {
      require(numbers.size == 0, "a folder with content", at, name);
    } else {
      records_.push_back({entry.name, content.start, numbers.packed_size, numbers.size, numbers.crc32, method == 8});
    }
  }

  /// Compares the local header with the directory, and answers where the content begins, and where what belongs to it ends.
  Extent check_local(std::uint64_t limit, std::uint64_t at, std::uint16_t flags, std::uint16_t method,
                     const Numbers& numbers, std::string_view name) const {
    require(at <= limit && limit - at >= local_size && u32(at) == local_mark,
            "no local header where the directory says", at, name);
    const std::uint64_t name_size = u16(at + 26), extra_size = u16(at + 28);
    require(limit - at - local_size >= name_size + extra_size, "the local header is cut short", at, name);
    const std::uint64_t data = at + local_size + name_size + extra_size;
    require(limit - data >= numbers.packed_size, "the record reaches beyond the end of the data", at, name);
    require(text(at + local_size, name_size) == name, "the local header has another name", at, name);
    const std::uint16_t local_flags = u16(at + 6);
    require(u16(at + 8) == method && ((local_flags ^ flags) & (encrypted_flag | descriptor_flag)) == 0,
            "the local header contradicts the directory", at, name);
    check_unicode(at + local_size + name_size, extra_size, name, {});
    Numbers found{u32(at + 14), u32(at + 18), u32(at + 22)};
    widen(at + local_size + name_size, extra_size, {&found.size, &found.packed_size, nullptr}, name);
    const bool behind = (flags & descriptor_flag) != 0;
    const auto agree = [behind](std::uint64_t here, std::uint64_t there) {
      return here == there || (behind && here == 0);
    };
    require(agree(found.crc32, numbers.crc32) && agree(found.packed_size, numbers.packed_size) &&
                agree(found.size, numbers.size),
            "the local header contradicts the directory", at, name);
    std::uint64_t end = data + numbers.packed_size;
    if (behind) end += descriptor_size(limit, end, numbers, name);
    return {data, end};
  }

  /// The size of the descriptor behind the data, whose sizes take 4 bytes each or 8.
  std::uint64_t descriptor_size(std::uint64_t limit, std::uint64_t at, const Numbers& numbers,
                                std::string_view name) const {
    require(limit - at >= 16 && u32(at) == descriptor_mark && u32(at + 4) == numbers.crc32,
            "the descriptor behind the data contradicts the directory", at, name);
    if (u32(at + 8) == numbers.packed_size && u32(at + 12) == numbers.size) return 16;
    require(limit - at >= 24 && u64(at + 8) == numbers.packed_size && u64(at + 16) == numbers.size,
            "the descriptor behind the data contradicts the directory", at, name);
    return 24;
  }

  void check_unicode(std::uint64_t at, std::uint64_t size, std::string_view name, std::string_view comment) const {
    const std::uint64_t stop = at + size;
    while (stop - at >= 4) {
      const std::uint16_t kind = u16(at);
      const std::uint64_t start = at + 4;
      at = std::min(start + u16(at + 2), stop);
      if (kind != unicode_path && kind != unicode_comment) continue;
      const std::uint64_t said_at = std::min(start + before_unicode, at);
      const std::string_view said = text(said_at, at - said_at);
      require(said == (kind == unicode_path ? name : comment), "an extra field gives a record another name or comment", start,
              name);
    }
  }

  /// Replaces each number that is all ones in 32 bits by its 64 bits in the zip64 extra field, in order.
  void widen(std::uint64_t at, std::uint64_t size, std::initializer_list<std::uint64_t*> numbers,
             std::string_view name) const {
    const auto is_wide = [](const std::uint64_t* n) { return n != nullptr && *n == wide; };
    if (std::none_of(numbers.begin(), numbers.end(), is_wide)) return;
    const std::uint64_t stop = at + size;
    while (stop - at >= 4) {
      const std::uint64_t field_end = std::min(at + 4 + u16(at + 2), stop);
      if (u16(at) != 1) {
        at = field_end;
        continue;
      }
      at += 4;
      for (std::uint64_t* n : numbers) {
        if (!is_wide(n)) continue;
        require(field_end - at >= 8, "a zip64 extra field is too short", at, name);
        *n = u64(at);
        at += 8;
      }
      return;
    }
  }

  void check_name(std::string_view name, bool is_utf8, std::uint64_t at) const {
    require(name.size() <= limits_.name_length, "the name of a record is longer than the limit allows", at, name);
    const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
    const bool is_text = is_utf8 ? valid_utf8_prefix(name) == name.size() : std::all_of(name.begin(), name.end(), is_ascii);
    require(is_text, "the name of a record is not UTF-8, or is not said to be", at, name);
    bool plain = !name.empty();
    for (const char c : name) plain = plain && static_cast<unsigned char>(c) >= 0x20 && c != 0x7f && c != '\\';
    for (std::size_t start = 0; plain && start < name.size();) {
      const std::size_t end = std::min(name.find('/', start), name.size());
      const std::string_view part = name.substr(start, end - start);
      plain = !part.empty() && part != "." && part != "..";
      start = end + 1;
    }
    require(plain, "the name of the record is not a plain relative path", at, name);
  }

  /// An order of names in which those are equal that one archive may not have both: below 0, 0, above 0.
  static int compare(std::string_view a, std::string_view b) noexcept {
    const bool fold_a = !is_extra(a), fold_b = !is_extra(b);
    const std::size_t shorter = std::min(a.size(), b.size());
    std::size_t i = 0;
    if (fold_a == fold_b) {  // so long names that begin alike are compared as fast as others
      while (shorter - i >= 8 && std::memcmp(a.data() + i, b.data() + i, 8) == 0) i += 8;
    }
    for (; i != shorter; ++i) {
      const int difference = code(a[i], fold_a) - code(b[i], fold_b);
      if (difference != 0) return difference;
    }
    return int{a.size() > shorter} - int{b.size() > shorter};
  }
  static bool is_extra(std::string_view name) noexcept { return name.substr(0, 6) == "extra/"; }
  static int code(char c, bool fold) noexcept {
    return static_cast<unsigned char>(fold && c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }

  /// Many small records may hold together what one may not.
  void check_inflation() const {
    std::uint64_t packed_size = 0, size = 0;
    for (const Record& record : records_) {
      if (!record.deflated) continue;
      packed_size += record.packed_size;  // no more than the file: records share no bytes
      size = record.size > UINT64_MAX - size ? UINT64_MAX : size + record.size;
    }
    if (limits_.is_bomb(packed_size, size)) fail(claim(packed_size, size), 0);
  }

  static std::string claim(std::uint64_t packed_size, std::uint64_t size) {
    return std::to_string(packed_size) + " bytes claim to hold " + std::to_string(size) +
           ", more than deflate or the limits allow";
  }

  Bytes inflated(const Record& record, const Bytes& packed) const {
    constexpr std::uint64_t best_ratio = 1032;  // of deflate; checked before memory is set aside
    if (record.size > limits_.inflated_bytes || record.size / best_ratio > record.packed_size ||
        limits_.is_bomb(record.packed_size, record.size)) {
      throw Error(claim(record.packed_size, record.size));
    }
    return inflate(packed, static_cast<std::size_t>(record.size));
  }

  Bytes file_;
  std::string file_name_;
  ZipLimits limits_;
  std::string_view root_;
  std::vector<Record> records_;
  std::vector<Entry> entries_;  // in the order of `compare`, once all are read
};

}  // namespace pt2wire
