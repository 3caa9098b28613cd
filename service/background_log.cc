#include "service/background_log.h"

#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "service/log/log.h"

namespace attendant {
namespace {

void Log(const BackgroundChanges::Change& change) {
  if (change.status.ok()) {
    LogEvent(LogLevel::kInfo, change.event, {{"catalog", change.catalog}});
  } else {
    LogEvent(LogLevel::kWarning, change.event,
             {{"catalog", change.catalog},
              {"error", std::string(change.status.message())}});
  }
}

}  // namespace

std::vector<BackgroundChanges::Change> BackgroundChanges::Look(
    const CatalogSet& catalogs) {
  std::vector<Change> changes;
  absl::flat_hash_map<std::string, Seen> now;
  for (const auto& catalog : catalogs.List("", kMaxCatalogs)) {
    Seen& seen = now[catalog->uid()];
    const auto before = seen_.find(catalog->uid());
    if (before != seen_.end()) seen = before->second;
    const auto compare = [&](absl::Status status, absl::Status& last,
                             absl::string_view failed,
                             absl::string_view recovered) {
      if (status == last) return;
      changes.push_back(
          {catalog->name(), status.ok() ? recovered : failed, status});
      last = std::move(status);
    };
    compare(catalog->merge_status(), seen.build, "index_build_failed",
            "index_build_recovered");
    compare(catalog->save_status(), seen.save, "segment_files_not_written",
            "segment_files_written");
  }
  seen_ = std::move(now);
  return changes;
}

BackgroundLog::BackgroundLog(const CatalogSet& catalogs,
                             const Security& security)
    : catalogs_(catalogs),
      security_(security),
      looks_(absl::Seconds(1), [this] { Look(); }) {}

void BackgroundLog::Look() {
  if (const auto due = reminder_.Due(security_.expiry(), absl::Now())) {
    LogEvent(LogLevel::kWarning, "tls_certificate_expiry", {{"message", *due}});
  }
  for (const auto& change : changes_.Look(catalogs_)) Log(change);
}

}  // namespace attendant
