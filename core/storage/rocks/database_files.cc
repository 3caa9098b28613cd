#include "core/storage/rocks/database_files.h"

#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/base/byte_reader.h"
#include "core/base/status.h"
#include "core/storage/rocks/log_tail.h"

namespace attendant {
namespace {

bool IsDataFile(absl::string_view name) {
  return absl::EndsWith(name, ".sst") || absl::EndsWith(name, ".log");
}

// Returns the paths of the logs in a directory, by number descending.
absl::StatusOr<std::vector<std::string>> LogsFromLast(
    const std::string& directory, const Files& files) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                             files.ListDirectory(directory));
  std::map<std::uint64_t, std::string, std::greater<>> by_number;
  for (const std::string& name : names) {
    absl::string_view digits = name;
    std::uint64_t number = 0;
    if (absl::ConsumeSuffix(&digits, ".log") &&
        absl::SimpleAtoi(digits, &number)) {
      by_number[number] = absl::StrCat(directory, "/", name);
    }
  }
  std::vector<std::string> paths;
  for (auto& [number, path] : by_number) paths.push_back(std::move(path));
  return paths;
}

// The numbers of the first and last key of a batch.
struct BatchNumbers {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

// A batch begins with the number of its first key and its count of keys.
std::optional<BatchNumbers> ReadNumbers(absl::string_view payload) {
  BatchNumbers numbers;
  std::uint32_t count = 0;
  ByteReader batch(payload);
  if (!batch.Read(numbers.first) || !batch.Read(count)) return std::nullopt;
  numbers.last = numbers.first + count - 1;
  return numbers;
}

// A log after trimming.
struct TrimmedLog {
  std::string path;
  std::string bytes;
  bool has_kept = false;  // a write that stays
};

// Returns the log up to the write of this number; nothing if the file is gone.
// DataLoss if it is damaged before that.
absl::StatusOr<std::optional<TrimmedLog>> TrimLog(const std::string& path,
                                                  const Files& files,
                                                  std::uint64_t number) {
  ATTENDANT_ASSIGN_OR_RETURN(std::optional<std::string> log,
                             files.ReadFile(path));
  if (!log.has_value()) return std::nullopt;
  std::uint64_t reached = 0;
  bool failed = false;
  const std::size_t end =
      ForEachWrite(*log, [&](std::size_t, absl::string_view payload) {
        const std::optional<BatchNumbers> numbers = ReadNumbers(payload);
        if (!numbers.has_value()) return false;
        failed = numbers->first > number;
        if (!failed) reached = numbers->last;
        return !failed;
      });
  // An incomplete write is either the failed one or damage.
  if (!failed && end < log->size() && reached != number &&
      !EndsEarly(*log, end)) {
    return absl::DataLossError(absl::StrCat(path, " is damaged"));
  }
  log->resize(end);
  return TrimmedLog{path, *std::move(log), reached > 0};
}

absl::StatusOr<bool> CutTornTail(const std::string& path, const Files& files) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<std::string> bytes,
                             files.ReadFile(path));
  if (!bytes.has_value()) return false;
  const std::optional<std::size_t> tail = FindTornTail(*bytes);
  if (!tail.has_value()) return false;
  ATTENDANT_RETURN_IF_ERROR(
      files.ReplaceFile(path, absl::string_view(*bytes).substr(0, *tail)));
  return true;
}

}  // namespace

absl::Status CheckCurrent(const std::string& directory, bool must_exist,
                          const Files& files) {
  ATTENDANT_ASSIGN_OR_RETURN(const bool exists,
                             files.PathExists(directory + "/CURRENT"));
  if (exists) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                             files.ListDirectory(directory));
  bool lost = must_exist;
  for (const std::string& name : names) lost = lost || IsDataFile(name);
  if (!lost) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("database ", directory, ": its file CURRENT is missing"));
}

absl::StatusOr<std::uint64_t> LogBytes(const std::string& directory,
                                       const Files& files) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                             files.ListDirectory(directory));
  std::uint64_t bytes = 0;
  for (const std::string& name : names) {
    if (!absl::EndsWith(name, ".log")) continue;
    const std::string path = absl::StrCat(directory, "/", name);
    const absl::StatusOr<std::int64_t> size = files.FileSize(path);
    // RocksDB may delete logs meanwhile.
    if (!size.ok()) {
      ATTENDANT_ASSIGN_OR_RETURN(const bool exists, files.PathExists(path));
      if (!exists) continue;
      return size.status();
    }
    bytes += static_cast<std::uint64_t>(*size);
  }
  return bytes;
}

std::uint64_t ManifestNumber(absl::string_view name) {
  name = absl::StripAsciiWhitespace(name);
  absl::ConsumePrefix(&name, "/");
  std::uint64_t number = 0;
  if (!absl::ConsumePrefix(&name, "MANIFEST-") ||
      !absl::SimpleAtoi(name, &number)) {
    return 0;
  }
  return number;
}

absl::StatusOr<std::optional<std::uint64_t>> HashManifest(
    const std::string& directory, const Files& files, std::uint64_t number,
    std::uint64_t size) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::optional<std::string> bytes,
      files.ReadFile(absl::StrFormat("%s/MANIFEST-%06d", directory, number)));
  if (!bytes.has_value() || bytes->size() < size) return std::nullopt;
  return XXH3_64bits(bytes->data(), size);
}

absl::Status CheckManifest(const std::string& directory, const Files& files,
                           const Acknowledged& acknowledged) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<std::string> current,
                             files.ReadFile(directory + "/CURRENT"));
  if (!current.has_value() || acknowledged.manifest_number == 0 ||
      ManifestNumber(*current) != acknowledged.manifest_number) {
    return absl::OkStatus();
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::optional<std::uint64_t> hash,
      HashManifest(directory, files, acknowledged.manifest_number,
                   acknowledged.manifest_bytes));
  if (hash == acknowledged.manifest_hash) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("database ", directory, ": its manifest is damaged"));
}

absl::StatusOr<LogNumbers> NumbersInLogs(const std::string& directory,
                                         const Files& files) {
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<std::string> logs,
                             LogsFromLast(directory, files));
  std::ranges::reverse(logs);
  LogNumbers numbers;
  // A failed write may have the same numbers as the write that replaced it in
  // the next log.
  std::optional<BatchNumbers> before;
  for (const std::string& path : logs) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::optional<std::string> log,
                               files.ReadFile(path));
    if (!log.has_value()) continue;
    bool goes_on = true;
    const std::size_t end =
        ForEachWrite(*log, [&](std::size_t begin, absl::string_view payload) {
          const std::optional<BatchNumbers> batch = ReadNumbers(payload);
          if (!batch.has_value()) return false;
          // Logs that are in tables are removed in any order, so the logs
          // before a gap between two logs may be such ones.
          const bool is_next =
              !before.has_value() || batch->first <= before->last + 1;
          goes_on = (is_next || begin == 0) &&
                    (!before.has_value() || batch->first >= before->first);
          if (!goes_on) return false;
          if (!before.has_value() || !is_next) numbers.first = batch->first;
          numbers.last = std::max(numbers.last, batch->last);
          before = batch;
          return true;
        });
    // Damage in the last log is detected by RocksDB or by the number; in other
    // logs RocksDB may skip it.
    if (!goes_on || (path != logs.back() && IsFollowed(*log, end))) {
      return absl::DataLossError(absl::StrCat(
          "database ", directory, ": ", path, " is damaged at byte ", end,
          goes_on ? "" : ", or not where it belongs"));
    }
  }
  return numbers;
}

absl::Status CutTornManifest(const std::string& directory, const Files& files) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<std::string> current,
                             files.ReadFile(directory + "/CURRENT"));
  if (!current.has_value()) return absl::OkStatus();
  return CutTornTail(absl::StrFormat("%s/MANIFEST-%06d", directory,
                                     ManifestNumber(*current)),
                     files)
      .status();
}

absl::StatusOr<bool> CutTornLog(const std::string& directory,
                                const Files& files) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> logs,
                             LogsFromLast(directory, files));
  for (const std::string& log : logs) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::int64_t size, files.FileSize(log));
    if (size == 0) continue;  // it may have been begun after a write failed
    return CutTornTail(log, files);
  }
  return false;
}

absl::Status CutWritesAfter(const std::string& directory, const Files& files,
                            std::uint64_t number) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> logs,
                             LogsFromLast(directory, files));
  std::vector<TrimmedLog> trimmed;
  for (const std::string& path : logs) {
    ATTENDANT_ASSIGN_OR_RETURN(std::optional<TrimmedLog> log,
                               TrimLog(path, files, number));
    if (!log.has_value()) continue;
    trimmed.push_back(*std::move(log));
    if (trimmed.back().has_kept) break;
  }
  // From the last log on, so that a crash leaves no gap.
  for (const TrimmedLog& log : trimmed) {
    ATTENDANT_RETURN_IF_ERROR(files.ReplaceFile(log.path, log.bytes));
  }
  return absl::OkStatus();
}

}  // namespace attendant
