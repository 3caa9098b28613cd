// What a catalog stores: items, and the schema that describes them.
#ifndef ATTENDANT_CORE_STORAGE_RECORDS_ITEM_H_
#define ATTENDANT_CORE_STORAGE_RECORDS_ITEM_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/attention/models/model.h"
#include "core/attention/softmax/score.h"
#include "core/base/ids.h"
#include "core/base/index_kind.h"
#include "core/base/views.h"

namespace attendant {

inline constexpr int kMaxKeyFields = 16;
inline constexpr int kMaxAttributes = 256;
inline constexpr int kMaxNameBytes = 64;
// Limit on the bytes of all attribute texts of an item together: a page must be
// able to hold any item.
inline constexpr std::int64_t kMaxAttributeBytes = 1 << 20;
inline constexpr std::int64_t kMaxOpaqueValueBytes = 64 << 10;

enum class AttributeType {
  kBool = 1,
  kInt64 = 2,
  kDouble = 3,
  kString = 4,
  kStringList = 5,
  kTimestamp = 6,
};

// The alternatives are in the order of AttributeType.
using AttributeValue = std::variant<bool, std::int64_t, double, std::string,
                                    std::vector<std::string>, absl::Time>;

// (position in schema.attributes, value), positions ascending and distinct.
using Attributes = std::vector<std::pair<int, AttributeValue>>;

inline AttributeType TypeOf(const AttributeValue& value) {
  return static_cast<AttributeType>(value.index() + 1);
}
// Returns "bool", "int64", "double", "string", "string list" or "timestamp".
absl::string_view Name(AttributeType type);
// Returns "a bool", "an int64" and so on.
std::string WithArticle(AttributeType type);

struct KeyFieldSchema {
  std::string name;
  std::int64_t dim = 0;
  ScoreKind score_kind = ScoreKind::kDot;
  // Defaults: the members that may change later.
  IndexKind index_kind = IndexKind::kAuto;
  double temperature = 1;
  CombineKind combine_kind = CombineKind::kSum;
  ModelName model = {};
  // The trained index keeps its fp32 keys in a file. Not for FLAT, HNSW and LSH
  // (MayKeepKeysOnDisk).
  bool keys_on_disk = false;

  void TakeDefaults(const KeyFieldSchema& from);
  bool operator==(const KeyFieldSchema&) const = default;
};

struct AttributeSchema {
  std::string name;
  AttributeType type = AttributeType::kString;

  bool operator==(const AttributeSchema&) const = default;
};

struct CatalogSchema {
  std::vector<KeyFieldSchema> key_fields;
  std::int64_t value_dim = 0;  // 0: no values; keys are pooled
  std::vector<AttributeSchema> attributes;

  // Returns the position in key_fields or attributes, or -1.
  int KeyFieldIndex(absl::string_view name) const;
  int AttributeIndex(absl::string_view name) const;
  // Returns the components of what a head of this field pools: values, or keys
  // if there are no values.
  std::int64_t PooledDim(int field) const {
    return value_dim > 0 ? value_dim : key_fields[field].dim;
  }

  bool operator==(const CatalogSchema&) const = default;
};

// OK, or InvalidArgument (above a limit: ResourceExhausted) naming a field of
// the wire's CatalogSchema, prefixed with "schema.".
absl::Status ValidateSchema(const CatalogSchema& schema);

// OK if `name`, of a key field or attribute, is [a-z][a-z0-9_]* of at most 64
// bytes. Otherwise InvalidArgument naming `field`.
absl::Status ValidateFieldName(absl::string_view name, absl::string_view field);

// OK if `name` is [a-z0-9][a-z0-9_-]* of at most 64 bytes. Otherwise
// InvalidArgument naming `field`.
absl::Status ValidateCatalogName(absl::string_view name,
                                 absl::string_view field = "name");

struct Item {
  ItemId id;
  // One per key field, in the schema's order; empty where the item has no key.
  std::vector<std::vector<float>> keys;
  // value_dim floats, or empty.
  std::vector<float> value;
  Attributes attributes;
  // Arbitrary bytes that are returned unchanged and never pooled.
  std::string opaque_value;

  bool operator==(const Item&) const = default;
};

// An item in a store.
struct StoredItem : Item {
  // The sequence of the write that last changed the item; 0 if it was stored
  // before items kept theirs.
  std::int64_t sequence = 0;

  bool operator==(const StoredItem&) const = default;
};

// Returns the bytes of text in the item's attributes, as limits count them.
std::int64_t AttributeBytes(const Item& item);

// OK if the item fits the schema: id, dimensions, finiteness, no zero key under
// COSINE, at least one key, a value if required, attribute types and
// finiteness, sizes. Otherwise InvalidArgument (above a limit:
// ResourceExhausted) naming the field as the wire spells it ("keys[text]",
// "attributes[price]").
absl::Status ValidateItem(
    const Item& item, const CatalogSchema& schema,
    std::int64_t most_attribute_bytes = kMaxAttributeBytes);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_RECORDS_ITEM_H_
