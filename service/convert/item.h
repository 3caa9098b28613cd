// Items of the wire to core's and back.
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

// InvalidArgument names a field of AttributeValue. What the attribute's type
// asks of the value is checked by core.
absl::StatusOr<AttributeValue> AttributeFromProto(
    const v1::AttributeValue& wire);

// InvalidArgument names fields as in "keys[text].float32_le" or
// "attributes[price]". What the item must be to fit the schema is checked by
// core when it is written.
absl::StatusOr<Item> ItemFromProto(const v1::Item& wire,
                                   const CatalogSchema& schema);

// What the mask reads, and always its id and sequence.
void ItemToProto(const StoredItem& item, const CatalogSchema& schema,
                 const ReadMask& mask, v1::Item* wire);

// The masked attributes of an item.
void AttributesToProto(
    std::span<const std::pair<int, AttributeValue>> attributes,
    const CatalogSchema& schema, const ReadMask& mask,
    google::protobuf::Map<std::string, v1::AttributeValue>* wire);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_ITEM_H_
