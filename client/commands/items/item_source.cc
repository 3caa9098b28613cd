#include "client/commands/items/item_source.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

constexpr char kValue[] = "value";

std::string KeyPath(const std::string& field) {
  return absl::StrCat("keys.", field);
}

std::string AttributePath(const std::string& name) {
  return absl::StrCat("attributes.", name);
}

// The names of a map in their order.
template <typename Map>
std::vector<std::string> SortedNames(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name);
  std::ranges::sort(names);
  return names;
}

}  // namespace

UnseenParts::UnseenParts(const v1::CatalogSchema& schema) {
  for (const v1::KeyField& field : schema.key_fields()) {
    paths_.push_back(KeyPath(field.name()));
  }
  if (schema.value_dimension() > 0) paths_.push_back(kValue);
  for (const v1::AttributeField& attribute : schema.attributes()) {
    paths_.push_back(AttributePath(attribute.name()));
  }
}

void UnseenParts::See(const v1::Item& item) {
  for (const auto& [field, key] : item.keys()) {
    std::erase(paths_, KeyPath(field));
  }
  if (item.has_value()) std::erase(paths_, kValue);
  for (const auto& [name, value] : item.attributes()) {
    std::erase(paths_, AttributePath(name));
  }
  if (!item.opaque_value().empty()) opaque_value_seen_ = true;
  SeeId(item.id());
}

std::vector<std::string> UnseenParts::paths() const {
  std::vector<std::string> paths = paths_;
  if (!paths.empty() && !opaque_value_seen_) paths.push_back("opaque_value");
  return paths;
}

std::vector<std::string> PartNames(const v1::Item& item) {
  std::vector<std::string> names;
  for (const std::string& field : SortedNames(item.keys())) {
    names.push_back(absl::StrCat("its key in ", field));
  }
  if (item.has_value()) names.push_back("its value");
  for (const std::string& name : SortedNames(item.attributes())) {
    names.push_back(name);
  }
  if (!item.opaque_value().empty()) names.push_back("its opaque value");
  return names;
}

}  // namespace attendant
