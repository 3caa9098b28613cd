// Ends builds on request, and turns their exceptions into errors. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_BUILDS_GUARD_BUILD_H_
#define ATTENDANT_CORE_SHORTLIST_BUILDS_GUARD_BUILD_H_

#include <atomic>
#include <exception>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/spare_time.h"

namespace attendant {

// True if the build is no longer wanted; null is never cancelled. To be called
// often. It yields to other work (MakeWay), so do not call it while others wait
// for a lock that the caller holds.
inline bool IsCancelled(const std::atomic<bool>* cancelled) {
  MakeWay();
  return cancelled != nullptr && cancelled->load(std::memory_order_relaxed);
}
inline absl::Status BuildCancelled() {
  return absl::CancelledError("the build was cancelled");
}

// Returns what `build` returns, a Status or StatusOr. ResourceExhausted if it
// runs out of memory; Internal for any other std::exception, as thrown by
// FAISS.
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
