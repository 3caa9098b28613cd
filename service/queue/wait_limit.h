// Limits the number of waiting works by how long they wait.
#ifndef ATTENDANT_SERVICE_QUEUE_WAIT_LIMIT_H_
#define ATTENDANT_SERVICE_QUEUE_WAIT_LIMIT_H_

#include <cstddef>

#include "absl/time/time.h"
#include "core/base/clock.h"

namespace attendant {

// An adaptive limit on the number of waiting works that keeps their waiting
// time near a target under any load: additive increase, multiplicative decrease
// (Chiu, Jain 1989) on the queueing delay, as servers do in Breakwater (Cho et
// al. 2020).
//
// - A work that waited longer than the target lowers the limit to the number of
//   works that begin within the target (Little's law) or, if no more than that
//   are waiting, by a tenth. Works that entered before the change carry no
//   information about it and cause no further change.
// - The first decrease waits until all works have waited too long for
//   kStanding: a queue that drains by itself, as after a brief stall of the
//   machine, is left alone (as in CoDel; Nichols, Jacobson 2012).
// - While works wait shorter than the target and the limit has refused others,
//   it grows by `step` for every `limit` works.
// - When nothing waits there is no load to limit, and the limit returns to
//   `most`, so that a burst is limited by the delay it causes and not by the
//   remains of an earlier overload.
//
// Not thread-safe.
class WaitLimit {
 public:
  static constexpr absl::Duration kStanding = absl::Milliseconds(50);

  // most, step >= 1.
  WaitLimit(std::size_t most, std::size_t step)
      : most_(most), step_(step), limit_(most) {}

  // Number of works that may wait.
  std::size_t limit() const { return limit_; }

  // Call when a work was refused because of the limit.
  void Refused() { refused_ = true; }

  // Call when a work that entered at `entered` has its turn at `now` and
  // `waiting_count` others still wait. `target` > 0 is the maximum intended
  // waiting time, and `in_target` the estimated number of works that begin
  // within it. The limit is not lowered below `least` >= 1, which may exceed
  // the constructor's `most`.
  void Took(SteadyTime entered, SteadyTime now, std::size_t waiting_count,
            absl::Duration target, std::size_t in_target, std::size_t least);

 private:
  const std::size_t most_;
  const std::size_t step_;
  std::size_t limit_;
  // Since when all works have waited too long; max(): the last one did not.
  SteadyTime standing_since_ = SteadyTime::max();
  SteadyTime lowered_ = SteadyTime::min();
  bool refused_ = false;
  std::size_t earned_ =
      0;  // progress towards the next increase, in [0, limit_)
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_QUEUE_WAIT_LIMIT_H_
