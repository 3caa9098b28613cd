// Selects which parts of an item are returned.
#ifndef ATTENDANT_SERVICE_CONVERT_READ_MASK_H_
#define ATTENDANT_SERVICE_CONVERT_READ_MASK_H_

#include <google/protobuf/field_mask.pb.h>

#include <bitset>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/storage/records/item.h"

namespace attendant {

struct ReadMask {
  std::bitset<kMaxKeyFields> keys;  // by key field of the schema
  bool value = false;
  bool opaque_value = false;
  std::vector<bool> attributes;  // one entry per attribute of the schema
  // All are, including those that are added to the schema later.
  bool all_attributes = false;

  // False if no attribute is read.
  bool any_attributes = false;

  bool Reads(std::size_t attribute) const {
    return all_attributes ||
           (attribute < attributes.size() && attributes[attribute]);
  }

  static ReadMask All(const CatalogSchema& schema);
};

// Valid paths: "keys", "keys.FIELD", "value", "opaque_value", "attributes",
// "attributes.NAME", and "*" for all. InvalidArgument, naming
// "read_mask.paths[i]", for any other path, and for a key field or attribute
// that is not declared.
absl::StatusOr<ReadMask> ReadMaskFromProto(
    const google::protobuf::FieldMask& wire, const CatalogSchema& schema);

// Returns the same text for masks of the same parts, also when attributes are
// added. A mask that names every attribute is another one than that of all.
std::string CanonicalText(const ReadMask& mask);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_READ_MASK_H_
