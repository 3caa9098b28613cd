// Segments that have been merged into others but may still be read.
#ifndef ATTENDANT_CORE_CATALOG_LIVE_MERGED_AWAY_H_
#define ATTENDANT_CORE_CATALOG_LIVE_MERGED_AWAY_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"
#include "core/catalog/live/background.h"
#include "core/catalog/rows/row_table.h"

namespace attendant {

// Keeps merged segments until no reader holds them. Otherwise the last reader
// would spend the time to free a segment, tens of milliseconds for a large one.
// Thread-safe.
class MergedAway {
 public:
  explicit MergedAway(BackgroundWorker* background) : background_(background) {}
  ~MergedAway() { Close(); }
  MergedAway(const MergedAway&) = delete;
  MergedAway& operator=(const MergedAway&) = delete;

  // Reserves room for `count` more segments, so that Add does not allocate.
  void Reserve(std::size_t count) ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds segments that no new snapshot will contain.
  void Add(std::span<const std::shared_ptr<const Segment>> segments)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Frees the segments that nobody reads. Checks look_count times, a
  // millisecond apart, and once more later if some are still being read.
  void Free(int look_count) ABSL_LOCKS_EXCLUDED(mutex_);

  // Releases all segments and stops checking.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  BackgroundWorker* const background_;
  Mutex mutex_;
  std::vector<std::shared_ptr<const Segment>> segments_ ABSL_GUARDED_BY(mutex_);
  bool look_scheduled_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_LIVE_MERGED_AWAY_H_
