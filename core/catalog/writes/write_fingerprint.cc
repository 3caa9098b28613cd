#include "core/catalog/writes/write_fingerprint.h"

#include <xxhash.h>

#include <string>
#include <vector>

#include "core/storage/records/item_codec.h"

namespace attendant {

void WriteFingerprint::Add(absl::string_view bytes) {
  hash_ = XXH3_64bits_withSeed(bytes.data(), bytes.size(), hash_);
}

void WriteFingerprint::Add(std::int64_t number) {
  Add(absl::string_view(reinterpret_cast<const char*>(&number),
                        sizeof(number)));
}

void WriteFingerprint::Add(const Item& item) {
  Add(item.id);
  Add(EncodeItem(item));
}

void WriteFingerprint::Add(const ItemPatch& patch) {
  // Hashes the parts that are set, as an item, and which parts they are.
  Item parts;
  parts.id = patch.id;
  Add(patch.replaces_attributes ? 1 : 0);
  for (const auto& key : patch.keys) {
    Add(key.has_value() ? 1 : 0);
    parts.keys.push_back(key.value_or(std::vector<float>()));
  }
  Add(patch.value.has_value() ? 1 : 0);
  parts.value = patch.value.value_or(std::vector<float>());
  for (const auto& [position, value] : patch.attributes) {
    Add(value.has_value() ? position : -1 - position);
    if (value) parts.attributes.emplace_back(position, *value);
  }
  Add(patch.opaque_value.has_value() ? 1 : 0);
  parts.opaque_value = patch.opaque_value.value_or("");
  Add(parts);
}

void WriteFingerprint::Add(const Filter& filter) {
  Add(static_cast<std::int64_t>(filter.kind));
  Add(static_cast<std::int64_t>(filter.comparison));
  Item values;
  values.id = filter.attribute;
  for (const AttributeValue& value : filter.values) {
    values.attributes.emplace_back(static_cast<int>(values.attributes.size()),
                                   value);
  }
  Add(values);
  Add(static_cast<std::int64_t>(filter.filters.size()));
  for (const Filter& inner : filter.filters) Add(inner);
}

void WriteFingerprint::Add(std::span<const WriteCondition> conditions) {
  for (const WriteCondition& condition : conditions) {
    Add(condition.absent ? 1 : 0);
    Add(condition.sequence.value_or(-1));
  }
}

}  // namespace attendant
