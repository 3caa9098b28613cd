// Converts schemas, text encoders and catalogs between the wire and core.
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

// Errors name fields such as "schema.key_fields[0].score_kind". Core rejects
// schemas that the wire can express but a catalog can't have.
absl::StatusOr<CatalogSchema> SchemaFromProto(const v1::CatalogSchema& wire);
void SchemaToProto(const CatalogSchema& schema, v1::CatalogSchema* wire);

// Returns the encoders for key fields of `schema`, at most one per field.
// Errors name fields such as "text_encoders[0].key_field".
absl::StatusOr<std::vector<CatalogSet::FieldEncoder>> EncodersFromProto(
    const google::protobuf::RepeatedPtrField<v1::TextEncoder>& wire,
    const CatalogSchema& schema);

// Returns `schema` with the defaults that the request's mask names changed, and
// with its new attributes. A default that is named but not set is reset to its
// documented value.
absl::StatusOr<CatalogSchema> UpdatedSchema(
    const v1::UpdateCatalogRequest& request, CatalogSchema schema);

void MemoryToProto(const MemoryParts& memory, v1::MemoryUse* wire);
void ServerMemoryToProto(const CatalogSet::MemoryUse& memory,
                         v1::ServerMemory* wire);

// Fills in all fields, with the warnings about the last index build and its
// files.
void CatalogToProto(const LiveCatalog& catalog, v1::Catalog* wire);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_SCHEMA_H_
