// Attributes and vectors between the wire, files and people.
#ifndef ATTENDANT_CLIENT_COMMANDS_SHARED_CONVERT_H_
#define ATTENDANT_CLIENT_COMMANDS_SHARED_CONVERT_H_

#include <string>

#include "absl/status/statusor.h"
#include "attendant/v1/attention_service.pb.h"
#include "attendant/v1/attribute.pb.h"
#include "attendant/v1/catalog_service.pb.h"
#include "attendant/v1/item_service.pb.h"
#include "nlohmann/json.hpp"

namespace attendant {

// Replaces bytes by numbers in all vectors, for output as JSON.
void SpellOutVectors(v1::Item& item);
void SpellOutVectors(v1::AttendResponse& response);

// A JSON value as an attribute of a declared type: true or false, a number, a
// text, a list of texts, or for a timestamp a text as ParseDateTime has it.
// InvalidArgument, saying got and want, for anything else.
absl::StatusOr<v1::AttributeValue> ToAttribute(const nlohmann::json& value,
                                               v1::AttributeType type);

// The attribute of this name that the schema declares; null if there is none.
const v1::AttributeField* FindAttribute(const v1::CatalogSchema& schema,
                                        const std::string& name);

// "the catalog has no key field 'tast'; it has: taste, text".
std::string NoSuchField(const v1::CatalogSchema& schema,
                        const std::string& field);

// The bytes that a JSON value gives in base64. InvalidArgument, saying got and
// want, for anything else.
absl::StatusOr<std::string> BytesFrom(const nlohmann::json& value);

// For people: texts without quotes, lists with commas.
std::string AttributeText(const v1::AttributeValue& value);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_SHARED_CONVERT_H_
