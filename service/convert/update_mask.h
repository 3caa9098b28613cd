// Which parts of an item a request changes.
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
  std::vector<bool> keys;  // one for each key field
  bool value = false;
  bool opaque_value = false;
  bool all_attributes = false;
  std::vector<bool> attributes;  // one for each of the schema
};

// Paths: "keys", "keys.FIELD", "value", "opaque_value", "attributes",
// "attributes.NAME". InvalidArgument, naming "update_mask.paths[i]", for any
// other, or what the schema does not declare; naming "update_mask.paths" if
// there is none.
absl::StatusOr<UpdateMask> UpdateMaskFromProto(
    const google::protobuf::FieldMask& wire, const CatalogSchema& schema);

// The change that an item stands for: what the mask names becomes as it is in
// the item, or goes where the item lacks it. Without a mask: what it has. The
// item has one entry a key field.
ItemPatch PatchOf(Item item, const std::optional<UpdateMask>& mask);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_UPDATE_MASK_H_
