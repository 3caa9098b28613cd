#include "core/catalog/segments/item_keys.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/base/status_details.h"

namespace attendant {

absl::StatusOr<int> KeyFieldNamed(const CatalogSchema& schema,
                                  absl::string_view name,
                                  absl::string_view path) {
  const int field = schema.KeyFieldIndex(name);
  if (field >= 0) return field;
  std::string names;
  for (const KeyFieldSchema& known : schema.key_fields) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", known.name);
  }
  return InvalidField(path, absl::StrCat("'", name, "'"),
                      absl::StrCat("one of ", names));
}

absl::StatusOr<int> FindKeyField(const CatalogSchema& schema,
                                 absl::string_view name,
                                 absl::string_view path) {
  if (name.empty()) return 0;
  return KeyFieldNamed(schema, name, path);
}

absl::Status NoItemWithKey(const KeyFieldSchema& field, absl::string_view id,
                           absl::string_view path) {
  return WithDetails(
      StatusWithReason(absl::StatusCode::kNotFound,
                       absl::StrCat(path, ": no item '", id,
                                    "' with a key in '", field.name, "'"),
                       "ITEM_NOT_FOUND"),
      {{"item", id}, {"key_field", field.name}});
}

absl::StatusOr<Matrix> KeysOfItems(const Snapshot& snapshot, int field,
                                   std::span<const ItemId> ids,
                                   absl::string_view path,
                                   const Interrupt& interrupt) {
  const KeyFieldSchema& schema = snapshot.schema->key_fields[field];
  Matrix keys = {static_cast<std::int64_t>(ids.size()), schema.dim, {}};
  keys.data.reserve(ids.size() * static_cast<std::size_t>(schema.dim));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
    const std::optional<RowAddress> address = snapshot.Find(ids[i]);
    std::span<const float> key;
    if (address) key = snapshot.KeyOf(*address, field);
    if (key.empty()) {
      const std::string id_path = absl::StrCat(path, "[", i, "]");
      ATTENDANT_RETURN_IF_ERROR(ValidateItemId(ids[i], id_path));
      return NoItemWithKey(schema, ids[i], id_path);
    }
    keys.data.insert(keys.data.end(), key.begin(), key.end());
  }
  return keys;
}

}  // namespace attendant
