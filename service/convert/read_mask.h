// Which parts of an item come back.
#ifndef ATTENDANT_SERVICE_CONVERT_READ_MASK_H_
#define ATTENDANT_SERVICE_CONVERT_READ_MASK_H_

#include <google/protobuf/field_mask.pb.h>

#include <bitset>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/storage/records/item.h"

namespace attendant {

struct ReadMask {
  std::bitset<kMaxKeyFields> keys;  // by key field of the schema
  bool value = false;
  bool opaque_value = false;
  std::vector<bool> attributes;  // one for each of the schema

  // True if some attribute is read.
  bool any_attributes = false;

  static ReadMask All(const CatalogSchema& schema);
};

// Paths: "keys", "keys.FIELD", "value", "opaque_value", "attributes",
// "attributes.NAME", and "*" for all. InvalidArgument, naming
// "read_mask.paths[i]", for any other, or a key field or attribute not
// declared.
absl::StatusOr<ReadMask> ReadMaskFromProto(
    const google::protobuf::FieldMask& wire, const CatalogSchema& schema);

// A text that is the same for masks that read the same.
std::string CanonicalText(const ReadMask& mask);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_READ_MASK_H_
