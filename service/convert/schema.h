// Schemas, text encoders and catalogs of the wire to core's and back.
#ifndef ATTENDANT_SERVICE_CONVERT_SCHEMA_H_
#define ATTENDANT_SERVICE_CONVERT_SCHEMA_H_

#include <google/protobuf/field_mask.pb.h>
#include <google/protobuf/repeated_ptr_field.h>

#include <vector>

#include "absl/status/statusor.h"
#include "attendant/v1/catalog_service.pb.h"
#include "core/catalog/live/catalog_set.h"
#include "core/storage/records/item.h"

namespace attendant {

// Fields are named as in "schema.key_fields[0].score_kind". Core validates what
// the wire can express and a catalog can't hold.
absl::StatusOr<CatalogSchema> SchemaFromProto(const v1::CatalogSchema& wire);
void SchemaToProto(const CatalogSchema& schema, v1::CatalogSchema* wire);

// The encoders for fields of `schema`, at most one each. Fields are named as in
// "text_encoders[0].key_field".
absl::StatusOr<std::vector<CatalogSet::FieldEncoder>> EncodersFromProto(
    const google::protobuf::RepeatedPtrField<v1::TextEncoder>& wire,
    const CatalogSchema& schema);

// `key_fields` with the defaults changed that the request's mask names. A
// default that is named but not set goes back to the documented one.
absl::StatusOr<std::vector<KeyFieldSchema>> UpdatedKeyFields(
    const v1::UpdateCatalogRequest& request,
    std::vector<KeyFieldSchema> key_fields);

void MemoryToProto(const MemoryParts& memory, v1::MemoryUse* wire);
void ServerMemoryToProto(const CatalogSet::MemoryUse& memory,
                         v1::ServerMemory* wire);

// All, with the warnings that are at hand: of the last index build and of its
// files.
void CatalogToProto(const LiveCatalog& catalog, v1::Catalog* wire);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_SCHEMA_H_
