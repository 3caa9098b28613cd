#include "core/storage/records/item_codec.h"

#include "absl/strings/str_cat.h"
#include "core/base/byte_reader.h"
#include "core/base/status.h"

// version       1 byte
// keys          for each key field: component count (u32), components
// value         component count (u32), components
// attributes    count (u32); each position (u32), type (1 byte), and the value:
//               bool 1 byte; int64, double 8; string length (u32), bytes;
//               string list count (u32), strings; timestamp seconds since the
//               epoch (i64), nanoseconds (u32)
// opaque value  from version 2 on: length (u32) above 0, bytes
//
// An item without an opaque value is written as version 1, as before there were
// opaque values, so that a write repeated after an upgrade has the same
// fingerprint.
//
// A stored item is version 3, the sequence of the write (i64) above 0, and the
// item in version 1 or 2. Older ones are the item alone.
namespace attendant {
namespace {

constexpr std::uint8_t kPlainVersion = 1;
constexpr std::uint8_t kOpaqueVersion = 2;
constexpr std::uint8_t kStoredVersion = 3;

void AppendCount(std::size_t count, std::string& bytes) {
  AppendNumber(static_cast<std::uint32_t>(count), bytes);
}

void AppendFloats(const std::vector<float>& floats, std::string& bytes) {
  AppendCount(floats.size(), bytes);
  if (floats.empty()) return;
  bytes.append(reinterpret_cast<const char*>(floats.data()),
               floats.size() * sizeof(float));
}

void AppendString(absl::string_view text, std::string& bytes) {
  AppendCount(text.size(), bytes);
  bytes.append(text.data(), text.size());
}

struct ValueAppender {
  std::string& bytes;

  void operator()(bool value) {
    AppendNumber<std::uint8_t>(value ? 1 : 0, bytes);
  }
  void operator()(std::int64_t value) { AppendNumber(value, bytes); }
  void operator()(double value) { AppendNumber(value, bytes); }
  void operator()(const std::string& value) { AppendString(value, bytes); }
  void operator()(const std::vector<std::string>& values) {
    AppendCount(values.size(), bytes);
    for (const std::string& value : values) AppendString(value, bytes);
  }
  void operator()(absl::Time value) {
    const std::int64_t seconds = absl::ToUnixSeconds(value);
    AppendNumber(seconds, bytes);
    AppendNumber(static_cast<std::uint32_t>(absl::ToInt64Nanoseconds(
                     value - absl::FromUnixSeconds(seconds))),
                 bytes);
  }
};

bool ReadFloats(ByteReader& reader, std::vector<float>& floats) {
  std::uint32_t count;
  return reader.Read(count) && reader.ReadFloats(count, floats);
}

bool ReadString(ByteReader& reader, std::string& text) {
  std::uint32_t size;
  return reader.Read(size) && reader.ReadText(size, text);
}

bool ReadStrings(ByteReader& reader, std::vector<std::string>& texts) {
  std::uint32_t count;
  // A string takes at least the bytes of its length.
  if (!reader.Read(count) || reader.left() / sizeof(count) < count) {
    return false;
  }
  texts.resize(count);
  for (std::string& text : texts) {
    if (!ReadString(reader, text)) return false;
  }
  return true;
}

bool ReadTime(ByteReader& reader, absl::Time& time) {
  std::int64_t seconds;
  std::uint32_t nanoseconds;
  if (!reader.Read(seconds) || !reader.Read(nanoseconds) ||
      nanoseconds >= 1000000000) {
    return false;
  }
  time = absl::FromUnixSeconds(seconds) + absl::Nanoseconds(nanoseconds);
  return true;
}

bool ReadValue(ByteReader& reader, AttributeValue& value) {
  std::uint8_t type;
  if (!reader.Read(type)) return false;
  switch (static_cast<AttributeType>(type)) {
    case AttributeType::kBool: {
      std::uint8_t byte;
      if (!reader.Read(byte) || byte > 1) return false;
      value = byte == 1;
      return true;
    }
    case AttributeType::kInt64:
      return reader.Read(value.emplace<std::int64_t>());
    case AttributeType::kDouble:
      return reader.Read(value.emplace<double>());
    case AttributeType::kString:
      return ReadString(reader, value.emplace<std::string>());
    case AttributeType::kStringList:
      return ReadStrings(reader, value.emplace<std::vector<std::string>>());
    case AttributeType::kTimestamp:
      return ReadTime(reader, value.emplace<absl::Time>());
  }
  return false;
}

absl::Status DamagedItem(absl::string_view id, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("stored item \"", id, "\" is damaged: ", what));
}

}  // namespace

std::string EncodeItem(const Item& item) {
  std::string bytes;
  AppendNumber(item.opaque_value.empty() ? kPlainVersion : kOpaqueVersion,
               bytes);
  for (const std::vector<float>& key : item.keys) AppendFloats(key, bytes);
  AppendFloats(item.value, bytes);
  AppendAttributes(item.attributes, bytes);
  if (!item.opaque_value.empty()) AppendString(item.opaque_value, bytes);
  return bytes;
}

void AppendAttributes(const Attributes& attributes, std::string& bytes) {
  AppendCount(attributes.size(), bytes);
  for (const auto& [position, value] : attributes) {
    AppendCount(static_cast<std::size_t>(position), bytes);
    AppendNumber(static_cast<std::uint8_t>(TypeOf(value)), bytes);
    std::visit(ValueAppender{bytes}, value);
  }
}

bool ReadAttributes(const CatalogSchema& schema, ByteReader& reader,
                    Attributes& attributes) {
  std::uint32_t count;
  if (!reader.Read(count) || count > schema.attributes.size()) return false;
  attributes.resize(count);
  std::size_t least = 0;
  for (auto& [position, value] : attributes) {
    std::uint32_t stored;
    if (!reader.Read(stored) || stored < least ||
        stored >= schema.attributes.size() || !ReadValue(reader, value) ||
        TypeOf(value) != schema.attributes[stored].type) {
      return false;
    }
    position = static_cast<int>(stored);
    least = std::size_t{stored} + 1;
  }
  return true;
}

std::string EncodeStoredItem(const Item& item, std::int64_t sequence) {
  std::string bytes;
  AppendNumber(kStoredVersion, bytes);
  AppendNumber(sequence, bytes);
  bytes += EncodeItem(item);
  return bytes;
}

absl::StatusOr<StoredItem> DecodeItem(absl::string_view id,
                                      absl::string_view bytes,
                                      const CatalogSchema& schema) {
  ByteReader reader(bytes);
  const auto damaged = [&](absl::string_view part) {
    return DamagedItem(
        id, absl::StrCat(part, " at byte ", bytes.size() - reader.left(),
                         " of ", bytes.size()));
  };
  std::uint8_t version;
  if (!reader.Read(version)) return damaged("no version");
  StoredItem item;
  if (version == kStoredVersion &&
      (!reader.Read(item.sequence) || item.sequence <= 0 ||
       !reader.Read(version))) {
    return damaged("the sequence");
  }
  if (version != kPlainVersion && version != kOpaqueVersion) {
    return damaged(absl::StrCat("version ", version, ", want ", kPlainVersion,
                                " to ", kStoredVersion, ","));
  }
  item.id = std::string(id);
  item.keys.resize(schema.key_fields.size());
  for (std::vector<float>& key : item.keys) {
    if (!ReadFloats(reader, key)) return damaged("a key");
  }
  if (!ReadFloats(reader, item.value)) return damaged("the value");
  if (!ReadAttributes(schema, reader, item.attributes)) {
    return damaged("an attribute, or their count,");
  }
  if (version == kOpaqueVersion &&
      (!ReadString(reader, item.opaque_value) || item.opaque_value.empty())) {
    return damaged("the opaque value");
  }
  if (reader.left() > 0) return damaged("more bytes than an item has");
  // What was written was valid: dimensions, finite numbers, types.
  if (absl::Status status = ValidateItem(item, schema); !status.ok()) {
    return DamagedItem(id, status.message());
  }
  return item;
}

}  // namespace attendant
