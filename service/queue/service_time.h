// Estimates how long works take, from those that have ended.
#ifndef ATTENDANT_SERVICE_QUEUE_SERVICE_TIME_H_
#define ATTENDANT_SERVICE_QUEUE_SERVICE_TIME_H_

#include <algorithm>
#include <cstdint>

namespace attendant {

// Two moving estimates, both zero until the first work has ended. Not
// thread-safe.
class ServiceTime {
 public:
  // Worker time per work, which is what works that share a turn cost: the mean
  // over about the last eight turns.
  std::int64_t mean_ns() const { return mean_ns_; }

  // Time of a turn of a quick work. The estimate falls fast and rises slowly,
  // so that for a mix of works it stays near the quicker ones. A work with less
  // time left than this is certainly late.
  std::int64_t quick_ns() const { return quick_ns_; }

  // Records that a turn of `work_count` >= 1 works took `turn_ns` >= 0.
  // `cut_short`: some of its works stopped early, and would have taken at least
  // twice as long.
  void Add(std::int64_t turn_ns, std::int64_t work_count, bool cut_short) {
    const std::int64_t each_ns = turn_ns / work_count;
    mean_ns_ = mean_ns_ == 0 ? each_ns : mean_ns_ + (each_ns - mean_ns_) / 8;
    const std::int64_t whole_ns = cut_short ? 2 * turn_ns : turn_ns;
    if (quick_ns_ == 0 || whole_ns < quick_ns_) {
      quick_ns_ += (whole_ns - quick_ns_) / (quick_ns_ == 0 ? 1 : 4);
    } else {
      quick_ns_ += (whole_ns - quick_ns_) / (cut_short ? 16 : 64);
    }
  }

  // Call when a work was refused because it had less than quick_ns left. If all
  // works were refused, nothing would be learned any more, so the estimate
  // falls a little and now and then a work is tried.
  void Doubt() { quick_ns_ -= quick_ns_ / 64; }

 private:
  std::int64_t mean_ns_ = 0;
  std::int64_t quick_ns_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_QUEUE_SERVICE_TIME_H_
