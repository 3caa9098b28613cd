// No exception leaves a build. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_GUARD_BUILD_H_
#define ATTENDANT_CORE_SHORTLIST_GUARD_BUILD_H_

#include <exception>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace attendant {

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

#endif  // ATTENDANT_CORE_SHORTLIST_GUARD_BUILD_H_
