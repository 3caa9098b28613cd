#include "service/convert/update_mask.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Returns false if the path is not in the schema.
bool AddPath(absl::string_view path, const CatalogSchema& schema,
             UpdateMask& mask) {
  if (path == "keys") {
    mask.keys.assign(schema.key_fields.size(), true);
  } else if (path == "value") {
    mask.value = true;
  } else if (path == "opaque_value") {
    mask.opaque_value = true;
  } else if (path == "attributes") {
    mask.all_attributes = true;
  } else if (absl::ConsumePrefix(&path, "keys.")) {
    const int field = schema.KeyFieldIndex(path);
    if (field < 0) return false;
    mask.keys[field] = true;
  } else if (absl::ConsumePrefix(&path, "attributes.")) {
    const int position = schema.AttributeIndex(path);
    if (position < 0) return false;
    mask.attributes[position] = true;
  } else {
    return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<UpdateMask> UpdateMaskFromProto(
    const google::protobuf::FieldMask& wire, const CatalogSchema& schema) {
  UpdateMask mask;
  mask.keys.assign(schema.key_fields.size(), false);
  mask.attributes.assign(schema.attributes.size(), false);
  if (wire.paths_size() == 0) {
    return InvalidField("update_mask.paths", "none", "at least one");
  }
  for (int i = 0; i < wire.paths_size(); ++i) {
    if (AddPath(wire.paths(i), schema, mask)) continue;
    return InvalidField(absl::StrCat("update_mask.paths[", i, "]"),
                        absl::StrCat("\"", wire.paths(i), "\""),
                        "keys, keys.FIELD, value, opaque_value, attributes or "
                        "attributes.NAME, as the schema declares them");
  }
  return mask;
}

ItemPatch PatchOf(Item item, const std::optional<UpdateMask>& mask) {
  ItemPatch patch;
  patch.id = std::move(item.id);
  patch.keys.resize(item.keys.size());
  for (std::size_t f = 0; f < item.keys.size(); ++f) {
    const bool named = mask ? mask->keys[f] : !item.keys[f].empty();
    if (named) patch.keys[f] = std::move(item.keys[f]);
  }
  if (mask ? mask->value : !item.value.empty()) {
    patch.value = std::move(item.value);
  }
  if (mask ? mask->opaque_value : !item.opaque_value.empty()) {
    patch.opaque_value = std::move(item.opaque_value);
  }
  patch.replaces_attributes = mask && mask->all_attributes;
  if (!mask || mask->all_attributes) {
    for (auto& [position, value] : item.attributes) {
      patch.attributes.emplace_back(position, std::move(value));
    }
    return patch;
  }
  for (std::size_t a = 0; a < mask->attributes.size(); ++a) {
    if (!mask->attributes[a]) continue;
    const int position = static_cast<int>(a);
    const auto found = std::ranges::find_if(
        item.attributes,
        [&](const auto& attribute) { return attribute.first == position; });
    patch.attributes.emplace_back(position, std::nullopt);
    if (found != item.attributes.end()) {
      patch.attributes.back().second = std::move(found->second);
    }
  }
  return patch;
}

}  // namespace attendant
