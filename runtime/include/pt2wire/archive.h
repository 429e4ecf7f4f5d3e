// Part of pt2wire. Opens a .pt2 archive, and yields its programs and weights.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pt2wire/bytes.h"
#include "pt2wire/error.h"
#include "pt2wire/mapped_file.h"
#include "pt2wire/schema.h"
#include "pt2wire/weights.h"
#include "pt2wire/zip.h"

namespace pt2wire {

struct ArchiveOptions {
  bool check_payloads = true;  ///< compare weights with their CRCs, which reads all their bytes
  Limits limits = {};          ///< of each document
  ZipLimits zip_limits = {};
};

/// The weights or constants of one program. `list` is in the order of the file and refers to `config`.
struct Payloads {
  Document<PayloadConfig> config;
  std::vector<Weight> list;

  /// The weight with this fully qualified name, or nullptr.
  const Weight* find(std::string_view fqn) const noexcept {
    const auto found = std::find_if(list.begin(), list.end(), [fqn](const Weight& w) { return w.fqn == fqn; });
    return found == list.end() ? nullptr : &*found;
  }
};

/// A .pt2 archive with programs in Thrift form.
///
///     const auto archive = pt2wire::Archive::open("model.pt2");
///     const auto program = archive.program("model");
///     const auto weights = archive.weights("model");
///
/// What it yields keeps the bytes alive by itself, also after the archive is gone. All functions throw `Error`, whose
/// path names the file and the record.
class Archive {
 public:
  /// Maps a file: records that are stored rather than deflated are used where they lie. The file must not be cut short
  /// meanwhile.
  static Archive open(const std::string& path, const ArchiveOptions& options = {}) {
    return Archive(Zip(map_file(path), path, options.zip_limits), options);
  }

  /// Reads an archive that is in memory already. `name` is what messages call it.
  static Archive from_memory(Bytes bytes, std::string name = "<memory>", const ArchiveOptions& options = {}) {
    return Archive(Zip(std::move(bytes), std::move(name), options.zip_limits), options);
  }

  const std::string& name() const noexcept { return zip_.name(); }
  const std::vector<Record>& records() const noexcept { return zip_.records(); }
  const Record* find(std::string_view record) const noexcept { return zip_.find(record); }

  /// The content of a record, its CRC checked.
  Bytes read(std::string_view record) const { return zip_.read(require(record)); }

  /// Compares every record with its CRC.
  void verify() const {
    for (const Record& record : records()) zip_.read(record);
  }

  /// The programs in the archive. One in JSON form only, as PyTorch writes them, is named too, but `program` cannot read
  /// it.
  std::vector<std::string> program_names() const {
    std::vector<std::string> names;
    for (const Record& record : records()) {
      if (const auto name = between(record.name, "models/", ".json")) names.emplace_back(*name);
    }
    for (const Record& record : records()) {
      const auto name = between(record.name, "thrift/", ".compact");
      if (!name || find(thrift_record(*name, "_weights")) == nullptr) continue;
      if (std::find(names.begin(), names.end(), *name) == names.end()) names.emplace_back(*name);
    }
    return names;
  }

  /// A program. Refused: a form that another tool has outdated, a format of another major version.
  Document<ExportedProgram> program(std::string_view name = "model") const {
    auto document = decode<ExportedProgram>(name, "");
    const SchemaVersion& version = document->schema_version;
    const bool too_old = version.major == oldest_version_major && version.minor < oldest_version_minor;
    if (version.major != schema_version_major || too_old) {
      fail(thrift_record(name, ""), "the format version is " + std::to_string(version.major) + "." +
                                        std::to_string(version.minor) + ", this header reads " +
                                        std::to_string(oldest_version_major) + "." +
                                        std::to_string(oldest_version_minor) + " to " +
                                        std::to_string(schema_version_major) + ".x");
    }
    return document;
  }

  /// The parameters and buffers of a program.
  Payloads weights(std::string_view name = "model") const { return payloads(name, "_weights", "data/weights/"); }

  /// Its constant tensors. Constants that are no tensors are left out: they are pickles.
  Payloads constants(std::string_view name = "model") const { return payloads(name, "_constants", "data/constants/"); }

 private:
  Archive(Zip zip, const ArchiveOptions& options) : options_(options), zip_(std::move(zip)) {
    if (find("archive_format") == nullptr || read("archive_format").text() != "pt2") {
      fail("archive_format", "expected a .pt2 archive, found a zip file without this record, or with other content");
    }
    if (find("byteorder") != nullptr && read("byteorder").text() != "little") {
      fail("byteorder", "expected little-endian weights");
    }
    if (find(index_record) != nullptr) {
      const Bytes content = read(index_record);
      index_.emplace(within(index_record, [&] { return decode_compact<ArchiveIndex>(content, options_.limits); }));
    }
  }

  static constexpr std::string_view index_record = "thrift/index.compact";

  static std::string thrift_record(std::string_view program, std::string_view suffix) {
    return "thrift/" + std::string(program) + std::string(suffix) + ".compact";
  }

  static std::optional<std::string_view> between(std::string_view text, std::string_view before, std::string_view after) {
    if (text.size() <= before.size() + after.size()) return std::nullopt;
    if (text.substr(0, before.size()) != before || text.substr(text.size() - after.size()) != after) return std::nullopt;
    return text.substr(before.size(), text.size() - before.size() - after.size());
  }

  [[noreturn]] void fail(std::string_view record, std::string reason) const {
    throw Error(std::move(reason), Error::no_offset, zip_.path_of(record));
  }

  const Record& require(std::string_view record) const {
    if (const Record* const found = find(record)) return *found;
    fail(record, "expected this record, but the archive has none");
  }

  /// Decodes a Thrift document of a program after comparing both forms with the index.
  template <class T>
  Document<T> decode(std::string_view program, std::string_view suffix) const {
    check_json(program);
    const std::string record = thrift_record(program, suffix);
    const Bytes content = read(record);
    check_index(record, crc32(content.data(), content.size()), content.size());
    return within(record, [&] { return decode_compact<T>(content, options_.limits); });
  }

  /// The JSON form, if there is one, must be the one that the Thrift form was written with: where another tool has
  /// changed it, it is the truth, and this class cannot read it.
  void check_json(std::string_view program) const {
    const std::string name(program);
    const std::string forms[] = {"models/" + name + ".json", "data/weights/" + name + "_weights_config.json",
                                 "data/constants/" + name + "_constants_config.json"};
    if (find(thrift_record(program, "")) == nullptr) {
      fail(thrift_record(program, ""), find(forms[0]) == nullptr
                                           ? "the archive has no such program"
                                           : "the program is stored as JSON only: convert the file with `pt2wire convert`");
    }
    for (const std::string& form : forms) {
      if (const Record* const record = find(form)) check_index(form, record->crc32, record->size);
    }
    if (!index_) return;
    for (const IndexEntry& entry : (*index_)->entries) {
      const bool missing = entry.program == program && find(entry.record) == nullptr;
      if (missing) fail(entry.record, "the archive's index lists this record, but the archive has none");
    }
  }

  /// A record against what the index says of it. CRC and size: the index's SHA-256 guards against nothing more here, as
  /// whoever changes a record on purpose can change the index.
  void check_index(std::string_view record, std::uint32_t crc, std::uint64_t size) const {
    if (!index_) fail(index_record, "expected this record; without it the Thrift form may be outdated");
    for (const IndexEntry& entry : (*index_)->entries) {
      if (entry.record != record) continue;
      const bool same_crc = entry.crc32 == std::int64_t{crc} || crc == 0;
      if (same_crc && static_cast<std::uint64_t>(entry.size) == size) return;
      fail(record, "the record was changed after the archive had been written: convert the file with `pt2wire convert`");
    }
    fail(record, "the archive's index does not list this record: convert the file with `pt2wire convert`");
  }

  Payloads payloads(std::string_view program, std::string_view suffix, const char* folder) const {
    Payloads result{decode<PayloadConfig>(program, suffix), {}};
    std::map<std::string_view, std::pair<Bytes, ScalarType>> seen;  // by path_name: many weights may share a payload
    for (const auto& [fqn, meta] : result.config->config) {
      const bool is_constant_object = meta.use_pickle && suffix == "_constants";
      if (is_constant_object) continue;
      const std::string record = folder + std::string(meta.path_name);
      const ScalarType dtype = meta.tensor_meta ? meta.tensor_meta->dtype : ScalarType::UNKNOWN;
      auto found = seen.find(meta.path_name);
      if (found == seen.end()) {
        found = seen.emplace(meta.path_name, std::pair(zip_.read(require(record), options_.check_payloads), dtype)).first;
      }
      const auto& [content, first_dtype] = found->second;
      if (dtype != first_dtype) fail(record, "two tensors read the payload with different dtypes");
      result.list.push_back(within(record, [&, fqn = fqn, &meta = meta, &content = content] {
        return make_weight(fqn, meta, content);
      }));
    }
    return result;
  }

  /// Runs a step that knows only the content of a record, and puts file and record before the path of its error.
  template <class F>
  auto within(std::string_view record, F&& step) const -> decltype(step()) {
    try {
      return step();
    } catch (const Error& error) {
      throw Error(error.reason(), error.offset(), zip_.path_of(record) + (error.path().empty() ? "" : ": ") + error.path());
    }
  }

  ArchiveOptions options_;
  Zip zip_;
  std::optional<Document<ArchiveIndex>> index_;
};

}  // namespace pt2wire
