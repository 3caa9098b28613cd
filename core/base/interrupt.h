// When to stop working on a request, and when to let others work.
#ifndef ATTENDANT_CORE_BASE_INTERRUPT_H_
#define ATTENDANT_CORE_BASE_INTERRUPT_H_

#include <atomic>
#include <cstddef>

#include "absl/status/status.h"
#include "core/base/clock.h"

namespace attendant {

// Lets others work while a request, which takes long, stands still.
class Yielder {
 public:
  // Of the thread that works on the request: returns when that may go on.
  virtual void Yield() = 0;
  // When to ask next.
  SteadyTime yield_time() const { return yield_time_; }

 protected:
  ~Yielder() = default;
  void set_yield_time(SteadyTime time) { yield_time_ = time; }

 private:
  SteadyTime yield_time_ = SteadyTime::max();
};

// A deadline and a flag that the caller may set. Engines call Check every few
// thousand rows, and hold no lock there: the thread may stand still in it. The
// flag and the yielder must outlive the object. Thread-safe, but for a yielder.
struct Interrupt {
  SteadyTime deadline = SteadyTime::max();  // max(): none
  // The caller's clock may reach the same deadline a little earlier, here at
  // the earliest: a cancel from then on is the deadline's.
  SteadyTime caller_deadline = SteadyTime::max();
  const std::atomic<bool>* cancelled = nullptr;
  Yielder* yielder = nullptr;

  // OK, Cancelled, or DeadlineExceeded.
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

  // What Check would return at that moment, without standing still.
  absl::Status EndedAt(SteadyTime now) const {
    const bool is_cancelled =
        cancelled != nullptr && cancelled->load(std::memory_order_relaxed);
    if (is_cancelled || now >= deadline) return GoneAt(now);
    return absl::OkStatus();
  }

  // The caller is gone at that moment: for its deadline, or before it.
  absl::Status GoneAt(SteadyTime now) const {
    if (now >= deadline || now >= caller_deadline) {
      return absl::DeadlineExceededError("the deadline passed");
    }
    return absl::CancelledError("the caller went away");
  }
};

// Calls visit(i) for each i in [0, n), and looks at the interrupt before the
// first and every few thousand.
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
