#include "client/commands/attention/shown_attributes.h"

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"

namespace attendant {

absl::Status ErrorOfShown(const absl::Status& error,
                          const std::vector<std::string>& shown,
                          const std::string& catalog, Client& client) {
  if (!absl::StartsWith(FieldOf(error).value_or(""), "read_mask.paths")) {
    return error;
  }
  v1::GetCatalogRequest get;
  get.set_name(catalog);
  const auto found = client.GetCatalog(get);
  if (!found.ok()) return error;
  std::vector<std::string> names;
  for (const v1::AttributeField& attribute :
       found->catalog().schema().attributes()) {
    names.push_back(attribute.name());
  }
  for (const std::string& name : shown) {
    if (absl::c_linear_search(names, name)) continue;
    return InvalidField(
        "--show", name,
        names.empty() ? absl::StrCat("none: ", catalog, " has no attributes")
                      : absl::StrCat("an attribute of ", catalog, ": ",
                                     absl::StrJoin(names, ", ")));
  }
  return error;
}

}  // namespace attendant
