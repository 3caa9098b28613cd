// Converts attributes and vectors between the wire, files and text.
#ifndef ATTENDANT_CLIENT_COMMANDS_SHARED_CONVERT_H_
#define ATTENDANT_CLIENT_COMMANDS_SHARED_CONVERT_H_

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "attendant/v1/attention_service.pb.h"
#include "attendant/v1/attribute.pb.h"
#include "attendant/v1/catalog_service.pb.h"
#include "attendant/v1/item_service.pb.h"
#include "nlohmann/json.hpp"

namespace attendant {

// Replaces the bytes of all vectors by numbers, for output as JSON.
void SpellOutVectors(v1::Item& item);
void SpellOutVectors(v1::AttendResponse& response);

// Converts a JSON value to an attribute of the declared type: a boolean, a
// number, a text, a list of texts, or a text that ParseDateTime accepts for a
// timestamp. InvalidArgument "got ..., want ..." for anything else.
absl::StatusOr<v1::AttributeValue> ToAttribute(const nlohmann::json& value,
                                               v1::AttributeType type);

// Returns the attribute that the schema declares by this name, or null.
const v1::AttributeField* FindAttribute(const v1::CatalogSchema& schema,
                                        const std::string& name);

// Returns "the catalog has no key field 'tast'; it has: taste, text".
std::string NoSuchField(const v1::CatalogSchema& schema,
                        const std::string& field);

// Returns the bytes that a JSON value gives in base64. InvalidArgument
// "got ..., want base64" for anything else.
absl::StatusOr<std::string> BytesFrom(const nlohmann::json& value);

// A vector as people read it.
struct VectorText {
  std::string first;  // "[0.5, -2, ...]"
  std::string size;   // "64 components, norm 1.25"
};
// Describes a vector, of which it shows at most `shown_count` components.
VectorText DescribeComponents(std::span<const float> components,
                              std::size_t shown_count);

// Formats an attribute for people: texts without quotes, lists with commas,
// timestamps in RFC 3339.
std::string AttributeText(const v1::AttributeValue& value);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_SHARED_CONVERT_H_
