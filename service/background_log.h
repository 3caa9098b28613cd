// Logs background failures, which no caller would learn of otherwise.
#ifndef ATTENDANT_SERVICE_BACKGROUND_LOG_H_
#define ATTENDANT_SERVICE_BACKGROUND_LOG_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/repeated_work.h"
#include "core/catalog/live/catalog_set.h"
#include "service/security/certificate_expiry.h"
#include "service/security/security.h"

namespace attendant {

// Detects changes in the state of catalogs' index builds and segment files. Not
// thread-safe.
class BackgroundChanges {
 public:
  struct Change {
    std::string catalog;
    absl::string_view event;  // a literal
    absl::Status status;      // OK: recovered from a failure
  };

  // Tells what has changed since the previous call; the first call compares
  // with OK. Events are index_build_failed, index_build_recovered,
  // segment_files_not_written and segment_files_written. If `tell` throws, this
  // change and the following ones are told by the next call.
  void Look(const CatalogSet& catalogs,
            absl::FunctionRef<void(const Change& change)> tell);

 private:
  struct Seen {
    absl::Status build;
    absl::Status save;
  };
  absl::flat_hash_map<std::string, Seen> seen_;  // by catalog uid
};

// Checks every second, on its own thread, and logs what has changed; warns once
// a day when the TLS certificate is about to expire.
class BackgroundLog {
 public:
  // Both must outlive the object.
  BackgroundLog(const CatalogSet& catalogs, const Security& security);

 private:
  void Look();

  const CatalogSet& catalogs_;
  const Security& security_;
  BackgroundChanges changes_;
  ExpiryReminder reminder_;
  RepeatedWork looks_;  // last: its thread uses the members above
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_BACKGROUND_LOG_H_
