// Converts items between the wire and core.
#ifndef ATTENDANT_SERVICE_CONVERT_ITEM_H_
#define ATTENDANT_SERVICE_CONVERT_ITEM_H_

#include <google/protobuf/map.h>

#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "attendant/v1/item_service.pb.h"
#include "core/storage/records/item.h"
#include "service/convert/read_mask.h"

namespace attendant {

// InvalidArgument names a field of AttributeValue. Core checks the value
// against the attribute's type.
absl::StatusOr<AttributeValue> AttributeFromProto(
    const v1::AttributeValue& wire);

// InvalidArgument names a field such as "keys[text].float32_le" or
// "attributes[price]". Core checks the item against the schema when it is
// written.
absl::StatusOr<Item> ItemFromProto(const v1::Item& wire,
                                   const CatalogSchema& schema);

// Writes the parts that the mask selects, and always id and sequence.
void ItemToProto(const StoredItem& item, const CatalogSchema& schema,
                 const ReadMask& mask, v1::Item* wire);

// Writes the attributes that the mask selects.
void AttributesToProto(
    std::span<const std::pair<int, AttributeValue>> attributes,
    const CatalogSchema& schema, const ReadMask& mask,
    google::protobuf::Map<std::string, v1::AttributeValue>* wire);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_ITEM_H_
