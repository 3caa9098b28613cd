// Where answers are counted while a load runs.
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

// What is seen of a load while it runs.
struct LoadView {
  Tally recent;  // since the last look
  std::int64_t answered_count = 0;
  std::int64_t failed_count = 0;
  std::int64_t waiting_count = 0;  // sent, and not answered yet
  std::map<std::string, std::int64_t> error_counts;
};

// Thread-safe. A request counts from Send to Answer.
class Recorder {
 public:
  // Requests are of one of some kinds, and due in one of some slices, which
  // follow each other from `begin` on: the end of the warm-up.
  Recorder(std::vector<std::string> kinds,
           const std::vector<RateProfile::Stage>& slices, SteadyTime begin);

  // Of the warm-up: seen in moments and views, and else not counted.
  static constexpr int kWarmup = -1;

  // False if so many wait already that this one can't be sent; it is counted.
  bool Send(int slice);
  void SentLate(int slice, absl::Duration lateness);
  // `slice` is kWarmup or in [0, max(1, slices)), `kind` a position in kinds.
  void Answer(int kind, int slice, const absl::Status& status,
              std::int64_t latency_ns);

  // The slices of a load that was stopped: those it was made with, cut.
  void SetSlices(const std::vector<RateProfile::Stage>& slices);

  // What came since the last call, which is one moment longer for the result.
  void EndMoment(absl::Duration end, absl::Duration duration);
  // The same at the end of a load: one that is too short for a rate of its own
  // makes that before longer.
  void EndLastMoment(absl::Duration end, absl::Duration duration);
  LoadView Look();

  // Waits until all that was sent is answered.
  void AwaitAnswers();
  // Hands over what was counted, after all was answered. The load is `duration`
  // long or, if that is later, ends with its last answer. At most once.
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
