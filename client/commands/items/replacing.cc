#include "client/commands/items/replacing.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/api/pages.h"

namespace attendant {

absl::Status CheckNothingIsLost(Client& client, const std::string& catalog,
                                const UnseenParts& unseen,
                                absl::string_view way_out) {
  if (unseen.empty()) return absl::OkStatus();
  v1::ListItemsRequest request;
  request.set_catalog(catalog);
  request.set_page_size(1000);
  for (std::string& path : unseen.paths()) {
    request.mutable_read_mask()->add_paths(std::move(path));
  }
  return ForEachPage(
      client, &Client::ListItems, request,
      [&](const v1::ListItemsResponse& page) -> absl::Status {
        for (const v1::Item& item : page.items()) {
          const std::vector<std::string> parts = PartNames(item);
          if (parts.empty() || !unseen.HasId(item.id())) continue;
          return absl::FailedPreconditionError(absl::StrCat(
              "replacing '", item.id(), "' would remove ",
              absl::StrJoin(parts, ", "), ", which no file gives; ", way_out));
        }
        return absl::OkStatus();
      });
}

}  // namespace attendant
