#include "core/storage/rocks/table_properties.h"

#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/byte_reader.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr std::size_t kFooterBytes = 53;
constexpr std::uint64_t kTableMagic = 0x88e241b785f4cff7;
constexpr std::uint32_t kFormat = 5;
constexpr std::uint8_t kXxh3 = 4;
// Only the block that locates the properties follows them; both take less than
// a kilobyte.
constexpr std::size_t kTailBytes = std::size_t{1} << 20;
constexpr absl::string_view kProperties = "rocksdb.properties";

absl::Status DamagedTable(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("its ", what));
}

// Reads 7 bits per byte, the lowest first.
bool ReadVarint(ByteReader& reader, std::uint64_t& number) {
  number = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    std::uint8_t byte = 0;
    if (!reader.Read(byte)) return false;
    number |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// The position of a block in the table, in bytes.
struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
};

bool ReadExtent(ByteReader& reader, Extent& extent) {
  return ReadVarint(reader, extent.begin) && ReadVarint(reader, extent.size);
}

// The end of a table, and its position in the table.
struct Tail {
  std::string bytes;
  std::uint64_t begin = 0;
};

// Returns the checksum of a block and its kind of compression.
std::uint32_t Checksum(absl::string_view block, std::uint8_t compression) {
  constexpr std::uint32_t kFactor = 0x6b9083d9;
  return static_cast<std::uint32_t>(XXH3_64bits(block.data(), block.size())) ^
         compression * kFactor;
}

// Returns the block, uncompressed as we write them; nothing if it is not within
// the tail or does not match its trailer.
std::optional<absl::string_view> BlockAt(const Tail& tail, Extent extent) {
  const std::uint64_t end = tail.begin + tail.bytes.size();
  if (extent.begin < tail.begin || extent.begin > end ||
      extent.size > end - extent.begin) {
    return std::nullopt;
  }
  const absl::string_view bytes =
      absl::string_view(tail.bytes).substr(extent.begin - tail.begin);
  ByteReader trailer(bytes.substr(extent.size));
  std::uint8_t compression = 0;
  std::uint32_t checksum = 0;
  if (!trailer.Read(compression) || !trailer.Read(checksum) ||
      compression != 0 ||
      checksum != Checksum(bytes.substr(0, extent.size), compression)) {
    return std::nullopt;
  }
  return bytes.substr(0, extent.size);
}

// Returns the position of the block that the entry `name` gives. Names in this
// block are always written in full.
std::optional<Extent> Find(absl::string_view block, absl::string_view name) {
  ByteReader reader(block);
  std::uint64_t shared = 0;
  std::uint64_t name_size = 0;
  std::uint64_t value_size = 0;
  std::string got_name;
  std::string value;
  while (ReadVarint(reader, shared) && ReadVarint(reader, name_size) &&
         ReadVarint(reader, value_size) && shared == 0 &&
         reader.ReadText(name_size, got_name) &&
         reader.ReadText(value_size, value)) {
    Extent extent;
    ByteReader value_reader(value);
    if (got_name == name && ReadExtent(value_reader, extent)) return extent;
  }
  return std::nullopt;
}

}  // namespace

absl::Status CheckTableProperties(const Files& files, const std::string& path) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::int64_t size, files.FileSize(path));
  Tail tail;
  ATTENDANT_ASSIGN_OR_RETURN(tail.bytes, files.ReadTail(path, kTailBytes));
  tail.begin = static_cast<std::uint64_t>(size) - tail.bytes.size();
  if (tail.bytes.size() < kFooterBytes) {
    return DamagedTable("footer is missing");
  }

  const absl::string_view footer =
      absl::string_view(tail.bytes).substr(tail.bytes.size() - kFooterBytes);
  ByteReader reader(footer);
  ByteReader end(
      footer.substr(footer.size() - sizeof(kFormat) - sizeof(kTableMagic)));
  std::uint8_t checksum_kind = 0;
  Extent index;
  std::uint32_t format = 0;
  std::uint64_t magic = 0;
  if (!reader.Read(checksum_kind) || !ReadExtent(reader, index) ||
      !end.Read(format) || !end.Read(magic) || checksum_kind != kXxh3 ||
      format != kFormat || magic != kTableMagic) {
    return DamagedTable("footer is no footer");
  }
  const auto index_block = BlockAt(tail, index);
  if (!index_block) return DamagedTable("list of blocks is damaged");
  const auto properties = Find(*index_block, kProperties);
  if (!properties) return DamagedTable("list of blocks names no properties");
  if (!BlockAt(tail, *properties)) {
    return DamagedTable("properties are damaged");
  }
  return absl::OkStatus();
}

}  // namespace attendant
