#include "core/storage/rocks/log_tail.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

namespace attendant {
namespace {

constexpr std::size_t kLogBlockBytes = 32768;
constexpr std::size_t kLogHeaderBytes = 7;
constexpr std::size_t kSectorBytes = 512;  // written atomically by a disk
// Numbers at the end of a record have fewer zero bytes.
constexpr std::size_t kTailZeros = 8;

constexpr std::array<std::uint32_t, 256> MakeCrcTable() {
  std::array<std::uint32_t, 256> table = {};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ (crc & 1) * 0x82f63b78;
    }
    table[i] = crc;
  }
  return table;
}

// Returns the masked CRC-32C that RocksDB stores.
std::uint32_t MaskedCrc(absl::string_view bytes) {
  static constexpr auto kTable = MakeCrcTable();
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char c : bytes) {
    crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff] ^ crc >> 8;
  }
  return std::rotr(~crc, 15) + 0xa282ead8;
}

enum class Part : unsigned char {
  kWhole = 1,
  kFirst = 2,
  kMiddle = 3,
  kLast = 4
};

// A record, according to its header, whose bytes are in the log.
struct Record {
  std::size_t end = 0;
  Part part = Part::kWhole;
  bool valid = false;
};

std::size_t EndOfBlock(std::size_t at) {
  return at / kLogBlockBytes * kLogBlockBytes + kLogBlockBytes;
}

// Returns the length in the header at `at`, which must be in the log.
std::size_t LengthAt(absl::string_view log, std::size_t at) {
  return static_cast<unsigned char>(log[at + 4]) +
         256 * std::size_t{static_cast<unsigned char>(log[at + 5])};
}

// Returns the record at `at`, or nothing if no record fits there.
std::optional<Record> RecordAt(absl::string_view log, std::size_t at) {
  const std::size_t end = std::min(log.size(), EndOfBlock(at));
  if (at + kLogHeaderBytes > end) return std::nullopt;
  std::uint32_t crc = 0;
  std::memcpy(&crc, &log[at], sizeof(crc));
  const std::size_t length = LengthAt(log, at);
  const auto type = static_cast<unsigned char>(log[at + 6]);
  Record record;
  record.end = at + kLogHeaderBytes + length;
  if (type < 1 || type > 4 || record.end > end) return std::nullopt;
  record.part = static_cast<Part>(type);
  record.valid = crc == MaskedCrc(log.substr(at + 6, length + 1));
  return record;
}

// Returns the position of the record after `end`: the last bytes of a block may
// be too few for a header.
std::size_t NextAfter(std::size_t end) {
  return EndOfBlock(end) - end < kLogHeaderBytes ? EndOfBlock(end) : end;
}

// Returns the position of the first invalid record of a write; at or beyond the
// end of the log if all its records are valid.
std::size_t FirstInvalid(absl::string_view log, std::size_t begin) {
  std::size_t at = begin;
  auto record = RecordAt(log, at);
  while (record && record->valid) {
    at = NextAfter(record->end);
    record = RecordAt(log, at);
  }
  return at;
}

// True if a write begins with a valid record at `at` or in a later block.
bool WriteFollows(absl::string_view log, std::size_t at) {
  while (at < log.size()) {
    const auto record = RecordAt(log, at);
    if (record && record->valid &&
        (record->part == Part::kWhole || record->part == Part::kFirst)) {
      return true;
    }
    at = record && record->valid ? NextAfter(record->end) : EndOfBlock(at);
  }
  return false;
}

bool IsZeros(absl::string_view bytes) {
  return std::ranges::all_of(bytes, [](char c) { return c == '\0'; });
}

// True if one of the sectors that [begin, end) touches is all zeros from
// `begin` on.
bool HasZeroSector(absl::string_view log, std::size_t begin, std::size_t end) {
  for (std::size_t at = begin; at < end;) {
    const std::size_t next = at / kSectorBytes * kSectorBytes + kSectorBytes;
    if (IsZeros(log.substr(at, next - at))) return true;
    at = next;
  }
  return false;
}

// True if the log ends in zeros that begin before `end`.
bool EndsInZeros(absl::string_view log, std::size_t end) {
  const std::size_t last = log.find_last_not_of('\0');
  const std::size_t begin = last == log.npos ? 0 : last + 1;
  return begin < end && log.size() - begin >= kTailZeros;
}

}  // namespace

std::size_t ForEachWrite(
    absl::string_view log,
    absl::FunctionRef<bool(std::size_t begin, absl::string_view payload)>
        visit) {
  std::size_t begin = 0;
  std::string payload;
  for (std::size_t at = 0; at < log.size();) {
    const auto record = RecordAt(log, at);
    if (!record || !record->valid) return begin;
    if (record->part == Part::kWhole || record->part == Part::kFirst) {
      begin = at;
      payload.clear();
    }
    payload.append(log.data() + at + kLogHeaderBytes,
                   record->end - at - kLogHeaderBytes);
    at = NextAfter(record->end);
    if (record->part == Part::kWhole || record->part == Part::kLast) {
      if (!visit(begin, payload)) return begin;
      begin = at;
    }
  }
  return std::min(begin, log.size());
}

bool EndsEarly(absl::string_view log, std::size_t begin) {
  const std::size_t at = FirstInvalid(log, begin);
  if (at + kLogHeaderBytes > log.size()) return true;
  const auto type = static_cast<unsigned char>(log[at + 6]);
  return type >= 1 && type <= 4 &&
         at + kLogHeaderBytes + LengthAt(log, at) > log.size() &&
         log.size() <= EndOfBlock(at);
}

bool IsFollowed(absl::string_view log, std::size_t begin) {
  const std::size_t at = FirstInvalid(log, begin);
  if (at >= log.size()) return false;
  const auto record = RecordAt(log, at);
  // Without a plausible header the rest of the block can't be parsed.
  return WriteFollows(log, record ? NextAfter(record->end) : EndOfBlock(at));
}

std::optional<std::size_t> FindTornTail(absl::string_view log) {
  const std::size_t begin =
      ForEachWrite(log, [](std::size_t, absl::string_view) { return true; });
  const std::size_t at = FirstInvalid(log, begin);
  const auto record = RecordAt(log, at);
  if (at >= log.size()) return std::nullopt;
  // Without a plausible header the record may extend to the block's end.
  const std::size_t end =
      record ? record->end : std::min(log.size(), EndOfBlock(at));
  if (!HasZeroSector(log, at, end) && !EndsInZeros(log, end)) {
    return std::nullopt;
  }
  if (IsFollowed(log, begin)) return std::nullopt;
  return begin;
}

}  // namespace attendant
