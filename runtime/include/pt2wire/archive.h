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
#include "pt2wire/crc32.h"
#include "pt2wire/error.h"
#include "pt2wire/json.h"
#include "pt2wire/mapped_file.h"
#include "pt2wire/schema.h"
#include "pt2wire/sha256.h"
#include "pt2wire/weights.h"
#include "pt2wire/zip.h"

namespace pt2wire {

/// The two encodings of a program and its payload configs.
enum class Form { json, thrift };

struct ArchiveOptions {
  bool check_payloads = true;  ///< compare weights with their CRCs, which reads all their bytes
  bool check_hashes = true;    ///< compare Thrift with the SHA-256 in the index, rather than with the CRC there
  std::optional<Form> form;    ///< which form to read, whatever the index says
  /// Weights may be written to, as buffers are: their pages are copied for this process then, and the file stays as it is.
  bool private_writes = false;
  Limits limits = {};          ///< of each document: they grow with it, and so with the archive; `within` bounds the sum
  Limits inflated_limits = {128, std::size_t{12} << 20};  ///< the same of one that is deflated, by its compressed bytes
  ZipLimits zip_limits = {};

  /// Options under which an archive takes at most `memory` bytes beside its file, whatever that says: opening it and, at a
  /// time, one program, one table of weights or one record. Honest archives that need more are refused as well.
  ///
  ///     const auto archive = pt2wire::Archive::open(path, pt2wire::ArchiveOptions::within(64 << 20));
  static ArchiveOptions within(std::size_t memory) noexcept {
    ArchiveOptions options;
    // The index and one more document are each its inflated bytes and its tree; the rest is for weights and records.
    const std::size_t share = memory / 6;
    options.limits = {0, share};
    options.zip_limits.inflated_bytes = share;
    options.zip_limits.records = memory / 2048;  // each with the longest of names
    return options;
  }
};

/// An entry of a payload config that is no `Weight`: code of the caller's own, or only Python, can do something with it.
struct LeftOut {
  std::string_view fqn;
  const PayloadMeta* meta = nullptr;  ///< all that the file says of it
  std::string_view reason;            ///< what it is instead, for a message
};

/// The weights or constants of one program. `list` is in the order of the file and refers to `config`.
struct Payloads {
  Document<PayloadConfig> config;
  std::vector<Weight> list;
  /// What the file has that is not in `list`: pickled objects and tensors, sparse tensors, those of other dtypes.
  std::vector<LeftOut> left_out;

  /// The weight with this fully qualified name, or nullptr.
  const Weight* find(std::string_view fqn) const noexcept {
    const auto found = std::find_if(list.begin(), list.end(), [fqn](const Weight& w) { return w.fqn == fqn; });
    return found == list.end() ? nullptr : &*found;
  }
};

/// A .pt2 archive, written by pt2wire or by PyTorch.
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
    return Archive(Zip(map_file(path, options.private_writes), path, options.zip_limits), options);
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

  /// The programs in the archive.
  std::vector<std::string> program_names() const {
    std::vector<std::string> names;
    for (const Record& record : records()) {
      if (const auto name = between(record.name, "models/", ".json")) names.emplace_back(*name);
    }
    for (const Record& record : records()) {
      const auto name = between(record.name, "thrift/", ".compact");
      if (!name || find(record_of(*name, Form::thrift, Part::weights)) == nullptr) continue;
      if (find(record_of(*name, Form::json, Part::program)) == nullptr) names.emplace_back(*name);
    }
    return names;
  }

  /// Which form of a program counts. JSON, if there is no index or it does not know the program: so PyTorch writes. JSON
  /// too, if another tool has changed that after pt2wire wrote both, as the Thrift form is out of date then. Else Thrift.
  Form form(std::string_view name = "model") const {
    if (options_.form) return *options_.form;
    bool has_entries = false, has_thrift = false;
    for (const IndexEntry& entry : entries()) {
      if (entry.program != name) continue;
      has_entries = true;
      has_thrift = has_thrift || entry.record == record_of(name, Form::thrift, Part::program);
      if (find(entry.record) == nullptr) fail(entry.record, "the archive's index lists this record, but the archive has none");
    }
    if (!has_entries) return Form::json;
    for (const Part part : {Part::program, Part::weights, Part::constants}) {
      const Record* const record = find(record_of(name, Form::json, part));
      if (record != nullptr && is_changed(*record)) return Form::json;
    }
    return has_thrift ? Form::thrift : Form::json;
  }

  /// A program. Refused: Thrift that is not what the index was made for, a format of another major version, fields that
  /// this header does not know in a file that is not newer.
  Document<ExportedProgram> program(std::string_view name = "model") const {
    auto document = decode<ExportedProgram>(name, Part::program);
    const std::string record = record_of(name, form(name), Part::program);
    check_version(document->schema_version, record);
    check_skipped(document, record);
    return document;
  }

  /// The parameters and buffers of a program.
  Payloads weights(std::string_view name = "model") const { return payloads(name, Part::weights); }

  /// Its constant tensors.
  Payloads constants(std::string_view name = "model") const { return payloads(name, Part::constants); }

 private:
  Archive(Zip zip, const ArchiveOptions& options) : options_(options), zip_(std::move(zip)) {
    if (find("archive_format") == nullptr || read("archive_format").text() != "pt2") {
      fail("archive_format", "expected a .pt2 archive, found a zip file without this record, or with other content");
    }
    check_content("archive_version", "0", "version 0 of the archive");
    check_content("byteorder", "little", "little-endian weights");
    if (find(index_record) != nullptr) {
      const Bytes content = read(index_record);
      const Limits limits = limits_of(require(index_record));
      index_.emplace(within(index_record, [&] { return decode_compact<ArchiveIndex>(content, limits); }));
    }
  }

  static constexpr std::string_view index_record = "thrift/index.compact";

  /// The three documents of a program.
  enum class Part : std::size_t { program, weights, constants };

  static std::string record_of(std::string_view program, Form form, Part part) {
    struct Affixes {
      const char* before;
      const char* behind;
    };
    static constexpr Affixes affixes[2][3] = {
        {{"models/", ".json"}, {"data/weights/", "_weights_config.json"}, {"data/constants/", "_constants_config.json"}},
        {{"thrift/", ".compact"}, {"thrift/", "_weights.compact"}, {"thrift/", "_constants.compact"}}};
    const Affixes& chosen = affixes[static_cast<std::size_t>(form)][static_cast<std::size_t>(part)];
    return chosen.before + std::string(program) + chosen.behind;
  }

  Span<IndexEntry> entries() const noexcept { return index_ ? (*index_)->entries : Span<IndexEntry>(); }

  const IndexEntry* entry_of(std::string_view record) const noexcept {
    for (const IndexEntry& entry : entries()) {
      if (entry.record == record) return &entry;
    }
    return nullptr;
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

  /// Writers of other archives may leave these records out.
  void check_content(std::string_view record, std::string_view expected, const char* meaning) const {
    if (find(record) == nullptr) return;
    const Bytes found = read(record);
    if (found.text() == expected) return;
    fail(record, "expected " + std::string(meaning) + ", found \"" + Error::printable(found.text()) + "\"");
  }

  void check_version(const SchemaVersion& version, std::string_view record) const {
    const bool too_old = version.major == oldest_version_major && version.minor < oldest_version_minor;
    if (version.major == schema_version_major && !too_old) return;
    fail(record, "the format version is " + text_of(version) + ", this header reads " +
                     std::to_string(oldest_version_major) + "." + std::to_string(oldest_version_minor) + " to " +
                     std::to_string(schema_version_major) + ".x");
  }

  /// Only a newer writer has fields that this header does not know.
  void check_skipped(const Document<ExportedProgram>& program, std::string_view record) const {
    const SchemaVersion& version = program->schema_version;
    const bool is_newer = version.minor > schema_version_minor || (program->writer && program->writer->revision > schema_revision);
    if (program.skipped_fields() == 0 || is_newer) return;
    fail(record, "expected fields of format " + text_of(version) + ", found " + std::to_string(program.skipped_fields()) +
                     " that it does not have: the file is damaged, or does not say that its writer is newer");
  }

  static std::string text_of(const SchemaVersion& version) {
    return std::to_string(version.major) + "." + std::to_string(version.minor);
  }

  template <class T>
  Document<T> decode(std::string_view program, Part part) const {
    const Form form = this->form(program);
    const std::string record = record_of(program, form, part);
    if (find(record) == nullptr) fail(record, why_missing(program, form));
    const Bytes content = form == Form::thrift ? read_thrift_form(record) : read(record);
    const Limits limits = limits_of(require(record));
    return within(record, [&] {
      return form == Form::thrift ? decode_compact<T>(content, limits) : decode_json<T>(content, limits);
    });
  }

  /// A few bytes inflate to many, so a deflated document must keep to what its compressed bytes allow as well.
  Limits limits_of(const Record& record) const noexcept {
    if (!record.deflated) return options_.limits;
    const auto packed_size = static_cast<std::size_t>(record.packed_size), size = static_cast<std::size_t>(record.size);
    return {0, std::min(options_.limits.budget(size), options_.inflated_limits.budget(packed_size))};
  }

  std::string why_missing(std::string_view program, Form form) const {
    std::string names;
    for (const std::string& name : program_names()) {
      if (name != program) names += (names.empty() ? "" : ", ") + Error::printable(name);
    }
    if (find(record_of(program, form, Part::program)) == nullptr) {
      return "expected this record, but the archive has none; it has the programs: " + (names.empty() ? "none" : names);
    }
    if (find("data/weights/" + std::string(program) + ".pt") != nullptr) {
      return "the weights are one pickle, as torch 2.8 wrote them: load the file with torch and save it again";
    }
    return "expected this record, but the archive has none";
  }

  /// Whether a JSON document is another one than the index was made for. A CRC of 0 is one that nobody computed.
  bool is_changed(const Record& record) const noexcept {
    const IndexEntry* const entry = entry_of(record.name);
    return entry == nullptr || static_cast<std::uint64_t>(entry->size) != record.size ||
           (entry->crc32 != std::int64_t{record.crc32} && record.crc32 != 0);
  }

  /// A Thrift document, which must be the one that the index was made for: only pt2wire writes them.
  Bytes read_thrift_form(std::string_view record) const {
    const Bytes content = zip_.read(require(record), !options_.check_hashes);
    if (!index_) return content;  // whoever demands this form knows
    const IndexEntry* const entry = entry_of(record);
    if (entry == nullptr) fail(record, "the archive's index does not list this record");
    const bool is_same = options_.check_hashes ? sha256(content.data(), content.size()) == entry->sha256
                                               : std::int64_t{crc32(content.data(), content.size())} == entry->crc32;
    if (!is_same || static_cast<std::uint64_t>(entry->size) != content.size()) {
      fail(record, "the bytes are not those that the archive's index was made for: the file is damaged or was changed");
    }
    return content;
  }

  Payloads payloads(std::string_view program, Part part) const {
    const char* const folder = part == Part::weights ? "data/weights/" : "data/constants/";
    Payloads result{decode<PayloadConfig>(program, part), {}, {}};
    result.list.reserve(result.config->config.size());
    std::map<std::string_view, std::pair<Bytes, ScalarType>> seen;  // by path_name: many weights may share a payload
    for (const auto& [fqn, meta] : result.config->config) {
      if (const char* const reason = why_no_weight(meta)) {
        result.left_out.push_back({fqn, &meta, reason});
        continue;
      }
      const std::string record = folder + std::string(meta.path_name);
      const ScalarType dtype = meta.tensor_meta ? meta.tensor_meta->dtype : ScalarType::UNKNOWN;
      auto found = seen.find(meta.path_name);
      if (found == seen.end()) {
        found = seen.emplace(meta.path_name, std::pair(zip_.read(require(record), options_.check_payloads), dtype)).first;
      }
      const auto& [content, first_dtype] = found->second;
      if (dtype != first_dtype) fail(record, "two tensors read the payload with different dtypes");
      result.list.push_back(within(record, [fqn = fqn, &meta = meta, &content = content] {
        try {
          return make_weight(fqn, meta, content);
        } catch (Error& error) {
          error.within_key(fqn);
          throw;
        }
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
