#include "service/calls/backend.h"

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

}  // namespace attendant
