// Selects which parts of an item a request changes.
#ifndef ATTENDANT_SERVICE_CONVERT_UPDATE_MASK_H_
#define ATTENDANT_SERVICE_CONVERT_UPDATE_MASK_H_

#include <google/protobuf/field_mask.pb.h>

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/storage/records/item.h"
#include "core/storage/records/item_patch.h"

namespace attendant {

struct UpdateMask {
  std::vector<bool> keys;  // one entry per key field
  bool value = false;
  bool opaque_value = false;
  bool all_attributes = false;
  std::vector<bool> attributes;  // one entry per attribute of the schema
};

// Valid paths: "keys", "keys.FIELD", "value", "opaque_value", "attributes",
// "attributes.NAME". InvalidArgument, naming "update_mask.paths[i]", for any
// other path and for what the schema does not declare; naming
// "update_mask.paths" if there are no paths.
absl::StatusOr<UpdateMask> UpdateMaskFromProto(
    const google::protobuf::FieldMask& wire, const CatalogSchema& schema);

// Returns the change that `item` describes: each part that the mask names takes
// its value from the item, or is removed if the item lacks it. Without a mask,
// the parts that the item has are changed. The item must have one entry per key
// field.
ItemPatch PatchOf(Item item, const std::optional<UpdateMask>& mask);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_UPDATE_MASK_H_
