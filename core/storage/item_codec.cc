#include "core/storage/item_codec.h"

#include <bit>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

// version       1 byte
// keys          one a key field: component count (u32), components
// value         component count (u32), components
// attributes    count (u32); each position (u32), type (1 byte), and the value:
//               bool 1 byte; int64, double 8; string length (u32), bytes;
//               string list count (u32), strings; timestamp seconds since the
//               epoch (i64), nanoseconds (u32)
namespace attendant {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers are copied as they lie in memory");

constexpr std::uint8_t kVersion = 1;

template <typename T>
void Append(T number, std::string& bytes) {
  static_assert(std::is_arithmetic_v<T>);
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void AppendCount(std::size_t count, std::string& bytes) {
  Append(static_cast<std::uint32_t>(count), bytes);
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

  void operator()(bool value) { Append<std::uint8_t>(value ? 1 : 0, bytes); }
  void operator()(std::int64_t value) { Append(value, bytes); }
  void operator()(double value) { Append(value, bytes); }
  void operator()(const std::string& value) { AppendString(value, bytes); }
  void operator()(const std::vector<std::string>& values) {
    AppendCount(values.size(), bytes);
    for (const std::string& value : values) AppendString(value, bytes);
  }
  void operator()(absl::Time value) {
    const std::int64_t seconds = absl::ToUnixSeconds(value);
    Append(seconds, bytes);
    Append(static_cast<std::uint32_t>(absl::ToInt64Nanoseconds(
               value - absl::FromUnixSeconds(seconds))),
           bytes);
  }
};

// Takes an item apart from the front. Every read checks what is left first and
// returns false if that is too little.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : left_(bytes) {}

  std::size_t left() const { return left_.size(); }

  template <typename T>
  bool Read(T& number) {
    static_assert(std::is_arithmetic_v<T>);
    if (left_.size() < sizeof(T)) return false;
    std::memcpy(&number, left_.data(), sizeof(T));
    left_.remove_prefix(sizeof(T));
    return true;
  }

  bool ReadFloats(std::vector<float>& floats) {
    std::uint32_t count;
    if (!Read(count) || left_.size() / sizeof(float) < count) return false;
    floats.resize(count);
    if (count == 0) return true;
    std::memcpy(floats.data(), left_.data(), count * sizeof(float));
    left_.remove_prefix(count * sizeof(float));
    return true;
  }

  bool ReadString(std::string& text) {
    std::uint32_t size;
    if (!Read(size) || left_.size() < size) return false;
    text.assign(left_.data(), size);
    left_.remove_prefix(size);
    return true;
  }

  bool ReadStrings(std::vector<std::string>& texts) {
    std::uint32_t count;
    // A string takes at least its length.
    if (!Read(count) || left_.size() / sizeof(count) < count) return false;
    texts.resize(count);
    for (std::string& text : texts) {
      if (!ReadString(text)) return false;
    }
    return true;
  }

  bool ReadTime(absl::Time& time) {
    std::int64_t seconds;
    std::uint32_t nanoseconds;
    if (!Read(seconds) || !Read(nanoseconds) || nanoseconds >= 1000000000) {
      return false;
    }
    time = absl::FromUnixSeconds(seconds) + absl::Nanoseconds(nanoseconds);
    return true;
  }

  bool ReadValue(AttributeValue& value) {
    std::uint8_t type;
    if (!Read(type)) return false;
    switch (static_cast<AttributeType>(type)) {
      case AttributeType::kBool: {
        std::uint8_t byte;
        if (!Read(byte) || byte > 1) return false;
        value = byte == 1;
        return true;
      }
      case AttributeType::kInt64:
        return Read(value.emplace<std::int64_t>());
      case AttributeType::kDouble:
        return Read(value.emplace<double>());
      case AttributeType::kString:
        return ReadString(value.emplace<std::string>());
      case AttributeType::kStringList:
        return ReadStrings(value.emplace<std::vector<std::string>>());
      case AttributeType::kTimestamp:
        return ReadTime(value.emplace<absl::Time>());
    }
    return false;
  }

 private:
  absl::string_view left_;
};

absl::Status Damaged(absl::string_view id, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("stored item \"", id, "\" is damaged: ", what));
}

}  // namespace

std::string EncodeItem(const Item& item) {
  std::string bytes;
  Append(kVersion, bytes);
  for (const std::vector<float>& key : item.keys) AppendFloats(key, bytes);
  AppendFloats(item.value, bytes);
  AppendCount(item.attributes.size(), bytes);
  for (const auto& [position, value] : item.attributes) {
    AppendCount(static_cast<std::size_t>(position), bytes);
    Append(static_cast<std::uint8_t>(TypeOf(value)), bytes);
    std::visit(ValueAppender{bytes}, value);
  }
  return bytes;
}

absl::StatusOr<Item> DecodeItem(absl::string_view id, absl::string_view bytes,
                                const CatalogSchema& schema) {
  Reader reader(bytes);
  const auto damaged = [&](absl::string_view part) {
    return Damaged(id,
                   absl::StrCat(part, " at byte ", bytes.size() - reader.left(),
                                " of ", bytes.size()));
  };
  std::uint8_t version;
  if (!reader.Read(version)) return damaged("no version");
  if (version != kVersion) {
    return damaged(absl::StrCat("version ", version, ", want ", kVersion, ","));
  }
  Item item;
  item.id = std::string(id);
  item.keys.resize(schema.key_fields.size());
  for (std::vector<float>& key : item.keys) {
    if (!reader.ReadFloats(key)) return damaged("a key");
  }
  if (!reader.ReadFloats(item.value)) return damaged("the value");
  std::uint32_t count;
  if (!reader.Read(count) || count > schema.attributes.size()) {
    return damaged("the attribute count");
  }
  item.attributes.resize(count);
  for (auto& [position, value] : item.attributes) {
    std::uint32_t stored;
    if (!reader.Read(stored) || stored >= schema.attributes.size() ||
        !reader.ReadValue(value)) {
      return damaged("an attribute");
    }
    position = static_cast<int>(stored);
  }
  if (reader.left() > 0) return damaged("more bytes than an item has");
  // What was written was valid: dimensions, finite numbers, types.
  if (absl::Status status = ValidateItem(item, schema); !status.ok()) {
    return Damaged(id, status.message());
  }
  return item;
}

}  // namespace attendant
