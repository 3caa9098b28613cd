#include "service/background_log.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
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

void BackgroundChanges::Look(const CatalogSet& catalogs,
                             absl::FunctionRef<void(const Change&)> tell) {
  absl::flat_hash_set<std::string> present;  // uids
  for (const auto& catalog : catalogs.List("", kMaxCatalogs)) {
    present.insert(catalog->uid());
    Seen& seen = seen_[catalog->uid()];
    const auto compare = [&](absl::Status status, absl::Status& last,
                             absl::string_view failed,
                             absl::string_view recovered) {
      if (status == last) return;
      tell({catalog->name(), status.ok() ? recovered : failed, status});
      last = std::move(status);
    };
    compare(catalog->merge_status(), seen.build, "index_build_failed",
            "index_build_recovered");
    compare(catalog->save_status(), seen.save, "segment_files_not_written",
            "segment_files_written");
  }
  absl::erase_if(
      seen_, [&](const auto& seen) { return !present.contains(seen.first); });
}

BackgroundLog::BackgroundLog(const CatalogSet& catalogs,
                             const Security& security)
    : catalogs_(catalogs),
      security_(security),
      looks_(absl::Seconds(1), [this] { Look(); }) {}

void BackgroundLog::Look() {
  const absl::Time expiry = security_.expiry();
  const absl::Time now = absl::Now();
  if (const auto due = reminder_.Due(expiry, now)) {
    LogEvent(LogLevel::kWarning, "tls_certificate_expiry", {{"message", *due}});
    reminder_.Told(expiry, now);
  }
  changes_.Look(catalogs_, &Log);
}

}  // namespace attendant
