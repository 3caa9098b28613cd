// How many works may wait, by how long they do.
#ifndef ATTENDANT_SERVICE_QUEUE_WAIT_LIMIT_H_
#define ATTENDANT_SERVICE_QUEUE_WAIT_LIMIT_H_

#include <cstddef>

#include "absl/time/time.h"
#include "core/base/clock.h"

namespace attendant {

// An adaptive limit on the works that wait, which keeps the time that they wait
// near a target whatever is offered: additive increase, multiplicative decrease
// (Chiu, Jain 1989) on the queueing delay, as a server does in Breakwater (Cho
// et al. 2020).
//
// - A work that waited longer than the target lowers the limit to what workers
//   begin in that time (Little's law) or, where no more wait as it is, by a
//   tenth. Works that came before that change say nothing about it, and change
//   nothing more.
// - The first change waits until all works have waited too long for kStanding:
//   a queue that goes by itself, as behind a machine that stood still for a
//   moment, is left alone (as in CoDel; Nichols, Jacobson 2012).
// - While works wait shorter than that and the limit turned others away, it
//   grows by `step` for each limit's worth of works.
// - When nothing waits there is no load to limit, and it is `most` again: so
//   that a burst is limited by how long it makes works wait, not by what an
//   overload an hour ago left behind.
//
// Not thread-safe.
class WaitLimit {
 public:
  static constexpr absl::Duration kStanding = absl::Milliseconds(50);

  // most and step >= 1.
  WaitLimit(std::size_t most, std::size_t step)
      : most_(most), step_(step), limit_(most) {}

  // Works that may wait.
  std::size_t limit() const { return limit_; }

  // A work was turned away since so many waited.
  void Refused() { refused_ = true; }

  // A work that came at `entered` has its turn at `now`; `waiting_count` others
  // still wait. `target` > 0 is how long it should have waited at most, and
  // `in_target` how many works are begun in that time, as far as one can say;
  // the limit is not lowered below `least` >= 1, which may be above `most`.
  void Took(SteadyTime entered, SteadyTime now, std::size_t waiting_count,
            absl::Duration target, std::size_t in_target, std::size_t least);

 private:
  const std::size_t most_;
  const std::size_t step_;
  std::size_t limit_;
  // Since when all works waited too long; max(): the last one did not.
  SteadyTime standing_since_ = SteadyTime::max();
  SteadyTime lowered_ = SteadyTime::min();
  bool refused_ = false;
  std::size_t earned_ = 0;  // towards the next increase, in [0, limit_)
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_QUEUE_WAIT_LIMIT_H_
