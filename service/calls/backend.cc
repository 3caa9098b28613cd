#include "service/calls/backend.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {

absl::Status CheckGiven(absl::string_view text, absl::string_view field,
                        absl::string_view want) {
  if (!text.empty()) return absl::OkStatus();
  return InvalidField(field, "nothing", want);
}

absl::StatusOr<std::shared_ptr<LiveCatalog>> FindCatalog(
    const Backend& backend, absl::string_view name, absl::string_view field) {
  ATTENDANT_RETURN_IF_ERROR(CheckGiven(name, field, "the name of a catalog"));
  return backend.catalogs->Get(name);
}

absl::StatusOr<int> PageSize(int requested) {
  constexpr int kDefault = 100;
  constexpr int kMost = 1000;
  if (requested < 0) {
    return InvalidField("page_size", absl::StrCat(requested), "0 or more");
  }
  return requested == 0 ? kDefault : std::min(requested, kMost);
}

}  // namespace attendant
