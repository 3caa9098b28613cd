// Background work that is tried again after it failed.
#ifndef ATTENDANT_CORE_CATALOG_LIVE_RETRIED_WORK_H_
#define ATTENDANT_CORE_CATALOG_LIVE_RETRIED_WORK_H_

#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace attendant {

// Why one kind of work failed last, and the pause until it may be tried again,
// since it may take minutes until it fails. Does not schedule anything.
//
// Thread-safe. No call waits for the work, or allocates memory.
class RetriedWork {
 public:
  // Notes the outcome of a try. A failure begins a pause of `first`, doubled
  // with each consecutive failure up to 64-fold; a success ends it.
  void Note(const absl::Status& outcome, absl::Duration first);
  // Notes why the work was postponed, or OK if it is no longer wanted. The
  // pause stays as it is.
  void SetStatus(const absl::Status& status);
  // Forgets the pause and how often the work failed, but not why.
  void EndPause();

  // Why the work failed or was postponed, or OK.
  absl::Status status() const;
  // How long the pause still lasts; nothing if there is none.
  std::optional<absl::Duration> PauseLeft() const;
  // True if the last try failed, unless EndPause was called since.
  bool has_failed() const;

 private:
  mutable Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  int failure_count_ ABSL_GUARDED_BY(mutex_) = 0;  // consecutive ones
  SteadyTime pause_end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_LIVE_RETRIED_WORK_H_
