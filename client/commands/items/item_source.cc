#include "client/commands/items/item_source.h"

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

constexpr char kTheValue[] = "the value";

std::string KeyIn(const std::string& field) {
  return absl::StrCat("the key in ", field);
}

}  // namespace

UnseenParts::UnseenParts(const v1::CatalogSchema& schema) {
  for (const v1::KeyField& field : schema.key_fields()) {
    names_.push_back(KeyIn(field.name()));
  }
  if (schema.value_dimension() > 0) names_.push_back(kTheValue);
  for (const v1::AttributeField& attribute : schema.attributes()) {
    names_.push_back(attribute.name());
  }
}

void UnseenParts::See(const v1::Item& item) {
  for (const auto& [field, key] : item.keys()) std::erase(names_, KeyIn(field));
  if (item.has_value()) std::erase(names_, kTheValue);
  for (const auto& [name, value] : item.attributes()) std::erase(names_, name);
  if (!item.opaque_value().empty()) opaque_value_seen_ = true;
}

std::vector<std::string> UnseenParts::names() const {
  std::vector<std::string> names = names_;
  if (!names.empty() && !opaque_value_seen_) names.push_back("opaque values");
  return names;
}

}  // namespace attendant
