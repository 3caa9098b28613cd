// How many catalogs there may be.
#ifndef ATTENDANT_SERVICE_CALLS_CATALOG_PLACES_H_
#define ATTENDANT_SERVICE_CALLS_CATALOG_PLACES_H_

#include <cstdint>
#include <set>
#include <string>
#include <type_traits>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/catalog/catalog_set.h"

namespace attendant {

// Calls that make catalogs take a place for as long as they are at it: a
// restore takes minutes, and what was counted before it may be wrong after.
// Catalogs that are over the limit when the server starts are served all the
// same. Thread-safe.
class CatalogPlaces {
 public:
  // The set must outlive the object.
  CatalogPlaces(const CatalogSet* catalogs, std::int64_t most)
      : catalogs_(catalogs), most_(most) {}

  // What `make` returns, a status or a value, of which `name` becomes a
  // catalog; or ResourceExhausted, if there is no place for it. What has the
  // name already takes none: that is for `make` to judge.
  template <typename Make>
  std::invoke_result_t<Make> Place(const std::string& name, Make make) {
    ATTENDANT_RETURN_IF_ERROR(Take(name));
    const absl::Cleanup give_back = [&] { GiveBack(name); };
    return make();
  }

 private:
  absl::Status Take(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveBack(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Of those that are there, also damaged, or being made.
  std::int64_t Count() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CatalogSet* const catalogs_;
  const std::int64_t most_;
  Mutex mutex_;
  std::multiset<std::string> being_made_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_CATALOG_PLACES_H_
