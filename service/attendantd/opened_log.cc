#include "service/attendantd/opened_log.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "service/log/log.h"

namespace attendant {
namespace {

void LogCatalog(const LiveCatalog& catalog) {
  const Recovery& recovery = catalog.recovery();
  const auto number = [](std::int64_t count) {
    return LogValue::Json(absl::StrCat(count));
  };
  LogEvent(LogLevel::kInfo, "catalog_opened",
           {{"catalog", catalog.name()},
            {"item_count", number(catalog.snapshot()->item_count())},
            {"from_segment_files", number(recovery.row_count)},
            {"replayed", number(recovery.replayed_count)}});
  if (!recovery.files_not_used.ok()) {
    const std::vector<LogField> fields = {
        {"catalog", catalog.name()},
        {"error", std::string(recovery.files_not_used.message())},
        {"what_now", "the index is being rebuilt from the items"}};
    if (absl::IsDataLoss(recovery.files_not_used)) {
      LogEvent(LogLevel::kWarning, "segment_files_damaged", fields);
    } else {
      LogEvent(LogLevel::kWarning, "segment_files_not_read", fields);
    }
  }
  if (!recovery.keys_in_memory.ok()) {
    LogEvent(LogLevel::kWarning, "keys_in_memory",
             {{"catalog", catalog.name()},
              {"error", std::string(recovery.keys_in_memory.message())},
              {"what_now", "the next index build moves them to files"}});
  }
}

}  // namespace

void LogOpened(const CatalogSet& catalogs) {
  for (const auto& catalog : catalogs.List("", kMaxCatalogs)) {
    LogCatalog(*catalog);
  }
  if (const absl::Status left = catalogs.left_overs(); !left.ok()) {
    LogEvent(LogLevel::kWarning, "left_overs_not_removed",
             {{"error", std::string(left.message())}});
  }
  for (const auto& [name, status] : catalogs.damages()) {
    const std::vector<LogField> fields = {
        {"catalog", name}, {"error", std::string(status.message())}};
    if (absl::IsDataLoss(status)) {
      LogEvent(LogLevel::kError, "catalog_damaged", fields);
    } else {
      LogEvent(LogLevel::kError, "catalog_not_opened", fields);
    }
  }
  for (const auto& [id, status] : catalogs.models().damages()) {
    LogEvent(LogLevel::kError, "model_damaged",
             {{"model", absl::StrCat(id.first, ":", id.second)},
              {"error", std::string(status.message())}});
  }
}

}  // namespace attendant
