// Segments that were merged into others, and may be read still.
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

// Holds them until no reader does: the last of those would else take the time
// to free one, for a large one tens of milliseconds. Thread-safe.
class MergedAway {
 public:
  explicit MergedAway(BackgroundWorker* background) : background_(background) {}
  ~MergedAway() { Close(); }
  MergedAway(const MergedAway&) = delete;
  MergedAway& operator=(const MergedAway&) = delete;

  // Makes room for so many more, which Add then needs no memory for.
  void Reserve(std::size_t count) ABSL_LOCKS_EXCLUDED(mutex_);
  // No snapshot that has one of them is made any more.
  void Add(std::span<const std::shared_ptr<const Segment>> segments)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Frees those that nobody reads. Looks so many times, a millisecond apart,
  // and later once more if some are read still.
  void Free(int look_count) ABSL_LOCKS_EXCLUDED(mutex_);

  // Lets go of all, and looks no more.
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
