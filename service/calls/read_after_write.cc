#include "service/calls/read_after_write.h"

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "service/convert/tokens.h"

namespace attendant {
namespace {

constexpr absl::string_view kNotVisible = "WRITE_NOT_VISIBLE";

}  // namespace

absl::Status CheckVisible(const LiveCatalog& catalog, absl::string_view token,
                          absl::string_view field) {
  if (token.empty()) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const CatalogState state,
                             ParseStateToken(token, field));
  // Read before the snapshot, so that whatever the snapshot shows was assigned.
  const std::int64_t assigned = catalog.assigned_sequence();
  const std::shared_ptr<const Snapshot> snapshot = catalog.snapshot();
  if (state.catalog_uid != snapshot->catalog_uid) {
    return FieldError(absl::StatusCode::kFailedPrecondition, "OTHER_CATALOG",
                      field, "the token of another catalog",
                      "one of this catalog, which may have been made anew");
  }
  if (state.sequence <= snapshot->sequence) return absl::OkStatus();
  if (state.sequence > assigned) {
    return FieldError(absl::StatusCode::kOutOfRange, "BEYOND_LAST_WRITE", field,
                      absl::StrCat("a token of write ", state.sequence),
                      absl::StrCat("at most the last one, ", assigned));
  }
  return StatusWithReason(
      absl::StatusCode::kDeadlineExceeded,
      absl::StrCat(field, ": write ", state.sequence,
                   " is under way and was not visible in time"),
      kNotVisible);
}

bool IsNotVisibleYet(const absl::Status& status) {
  return status.code() == absl::StatusCode::kDeadlineExceeded &&
         ReasonOf(status) == kNotVisible;
}

absl::StatusOr<std::shared_ptr<LiveCatalog>> FindCatalogShowing(
    const Backend& backend, absl::string_view name, absl::string_view field,
    absl::string_view token, absl::string_view token_field) {
  ATTENDANT_ASSIGN_OR_RETURN(std::shared_ptr<LiveCatalog> catalog,
                             FindCatalog(backend, name, field));
  ATTENDANT_RETURN_IF_ERROR(CheckVisible(*catalog, token, token_field));
  return catalog;
}

}  // namespace attendant
