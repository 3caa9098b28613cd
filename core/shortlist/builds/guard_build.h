// How builds end: on request, and without an exception. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_BUILDS_GUARD_BUILD_H_
#define ATTENDANT_CORE_SHORTLIST_BUILDS_GUARD_BUILD_H_

#include <atomic>
#include <exception>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/spare_time.h"

namespace attendant {

// Whether a build is not wanted any more; null: nobody says so. Asked often,
// and lets others work meanwhile (MakeWay): not where others wait for a lock.
inline bool IsCancelled(const std::atomic<bool>* cancelled) {
  MakeWay();
  return cancelled != nullptr && cancelled->load(std::memory_order_relaxed);
}
inline absl::Status BuildCancelled() {
  return absl::CancelledError("the build was cancelled");
}

// What `build` returns, a Status or StatusOr. ResourceExhausted if it runs out
// of memory; Internal for what else it throws, as FAISS does.
template <typename Build>
auto GuardBuild(Build build) -> decltype(build()) {
  try {
    return build();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "out of memory while building an index");
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("building an index: ", e.what()));
  }
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_BUILDS_GUARD_BUILD_H_
