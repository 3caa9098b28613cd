// How long works take, learned from those that ended.
#ifndef ATTENDANT_SERVICE_QUEUE_SERVICE_TIME_H_
#define ATTENDANT_SERVICE_QUEUE_SERVICE_TIME_H_

#include <algorithm>
#include <cstdint>

namespace attendant {

// Two moving estimates, both zero until the first work ended. Not thread-safe.
class ServiceTime {
 public:
  // A worker's time for each work: what works cost that share a turn. The mean
  // over about the last eight turns.
  std::int64_t mean_ns() const { return mean_ns_; }

  // What a quick work's turn takes: it falls fast and rises slowly, so that
  // among works of several kinds it is near to the quicker ones'. A work with
  // less time than that is late for certain.
  std::int64_t quick_ns() const { return quick_ns_; }

  // A turn of `work_count` >= 1 works took so long, >= 0. `cut_short`: works of
  // it stopped before their end, and would have taken twice as long or more.
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

  // A work was turned away for want of quick_ns. Nothing more would ever be
  // learned if all were: so the estimate falls a little, and now and then one
  // is tried.
  void Doubt() { quick_ns_ -= quick_ns_ / 64; }

 private:
  std::int64_t mean_ns_ = 0;
  std::int64_t quick_ns_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_QUEUE_SERVICE_TIME_H_
