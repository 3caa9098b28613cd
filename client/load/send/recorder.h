// Counts answers while a load runs.
#ifndef ATTENDANT_CLIENT_LOAD_SEND_RECORDER_H_
#define ATTENDANT_CLIENT_LOAD_SEND_RECORDER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/load/results/load_result.h"
#include "client/load/send/rate_profile.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace attendant {

// The state of a running load.
struct LoadView {
  Tally recent;  // since the last look
  std::int64_t answered_count = 0;
  std::int64_t failed_count = 0;
  std::int64_t waiting_count = 0;  // sent and not answered yet
  std::map<std::string, std::int64_t> error_counts;
};

// Counts requests from Send to Answer. Thread-safe.
class Recorder {
 public:
  // A request has one of `kinds` and is due in one of `slices`, which follow
  // each other from `begin` on, the end of the warm-up.
  Recorder(std::vector<std::string> kinds,
           const std::vector<RateProfile::Stage>& slices, SteadyTime begin);

  // The slice of the warm-up, which counts in moments and views only.
  static constexpr int kWarmup = -1;

  // Returns false if too many requests are waiting to send this one, which is
  // counted as unsent.
  bool Send(int slice);
  void SentLate(int slice, absl::Duration lateness);
  // `slice` is kWarmup or in [0, max(1, slices)), `kind` a position in kinds.
  void Answer(int kind, int slice, const absl::Status& status,
              std::int64_t latency_ns);

  // Replaces the slices when a load is stopped by the same ones, cut short.
  void SetSlices(const std::vector<RateProfile::Stage>& slices);

  // Ends a moment, with the answers since the last call, and adds it to the
  // result.
  void EndMoment(absl::Duration end, absl::Duration duration);
  // Ends the last moment; if it is too short for a rate of its own, it is added
  // to the one before.
  void EndLastMoment(absl::Duration end, absl::Duration duration);
  LoadView Look();

  // Waits until all requests sent are answered.
  void AwaitAnswers();
  // Returns the result after AwaitAnswers. The load lasts `duration` or until
  // its last answer, whichever is later. Call it at most once.
  LoadResult Take(absl::Duration duration);

 private:
  void AddMoment(absl::Duration end, absl::Duration duration)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const SteadyTime begin_;
  Mutex mutex_;
  CondVar changed_;
  std::int64_t waiting_count_ ABSL_GUARDED_BY(mutex_) = 0;
  LoadResult result_ ABSL_GUARDED_BY(mutex_);
  std::vector<SteadyTime> slice_ends_ ABSL_GUARDED_BY(mutex_);
  SteadyTime last_answer_ ABSL_GUARDED_BY(mutex_);
  Tally moment_ ABSL_GUARDED_BY(mutex_);
  Tally moment_before_ ABSL_GUARDED_BY(mutex_);
  Tally recent_ ABSL_GUARDED_BY(mutex_);
  std::int64_t answered_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::int64_t failed_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_SEND_RECORDER_H_
