// Tells when to stop working on a request and when to let others work.
#ifndef ATTENDANT_CORE_BASE_INTERRUPT_H_
#define ATTENDANT_CORE_BASE_INTERRUPT_H_

#include <atomic>
#include <cstddef>

#include "absl/status/status.h"
#include "core/base/clock.h"

namespace attendant {

// Pauses a long request so that others can work.
class Yielder {
 public:
  // Called by the thread that works on the request; returns when it may
  // continue.
  virtual void Yield() = 0;
  // The time at which to call Yield next.
  SteadyTime yield_time() const { return yield_time_; }

 protected:
  ~Yielder() = default;
  void set_yield_time(SteadyTime time) { yield_time_ = time; }

 private:
  SteadyTime yield_time_ = SteadyTime::max();
};

// A deadline and a flag by which the caller cancels. Engines call Check every
// few thousand rows and must hold no lock there, because Check may pause the
// thread. The flag and the yielder must outlive the object. Thread-safe if
// there is no yielder.
struct Interrupt {
  SteadyTime deadline = SteadyTime::max();  // max(): none
  // The earliest time, by our clock, at which the caller's clock may reach the
  // same deadline. A cancellation from then on counts as DeadlineExceeded.
  SteadyTime caller_deadline = SteadyTime::max();
  const std::atomic<bool>* cancelled = nullptr;
  Yielder* yielder = nullptr;

  // Returns OK, Cancelled or DeadlineExceeded. May yield first.
  absl::Status Check() const {
    const bool reads_time = yielder != nullptr || deadline != SteadyTime::max();
    SteadyTime now = reads_time ? SteadyNow() : SteadyTime::min();
    absl::Status ended = EndedAt(now);
    if (!ended.ok() || yielder == nullptr || now < yielder->yield_time()) {
      return ended;
    }
    yielder->Yield();
    return EndedAt(SteadyNow());
  }

  // Returns the status of Check at `now`, without yielding.
  absl::Status EndedAt(SteadyTime now) const {
    const bool is_cancelled =
        cancelled != nullptr && cancelled->load(std::memory_order_relaxed);
    if (is_cancelled || now >= deadline) return GoneAt(now);
    return absl::OkStatus();
  }

  // Returns the status for a caller that is gone at `now`: DeadlineExceeded if
  // its deadline may have passed, else Cancelled. Does not allocate.
  absl::Status GoneAt(SteadyTime now) const;
};

// Calls visit(i) for each i in [0, n). Checks the interrupt before the first
// call and every few thousand calls.
template <typename Visit>
absl::Status VisitEach(std::size_t n, const Interrupt& interrupt,
                       const Visit& visit) {
  constexpr std::size_t kBetweenChecks = 4096;
  for (std::size_t i = 0; i < n; ++i) {
    if (i % kBetweenChecks == 0) {
      if (absl::Status ended = interrupt.Check(); !ended.ok()) return ended;
    }
    visit(i);
  }
  return absl::OkStatus();
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_INTERRUPT_H_
