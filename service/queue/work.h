// A unit of work for a worker pool, and its state in the queue.
#ifndef ATTENDANT_SERVICE_QUEUE_WORK_H_
#define ATTENDANT_SERVICE_QUEUE_WORK_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/interrupt.h"
#include "core/base/mutex.h"

namespace attendant {

// Identifies a work's sender by hashes: works of one caller, and of one catalog
// of a caller, share a line (see FairQueue). Zeros are valid values like any
// other.
struct FlowKey {
  std::uint64_t caller = 0;
  std::uint64_t catalog = 0;

  bool operator==(const FlowKey&) const = default;
};

// One turn of a worker, from taking a work until it is free again: that work
// and the works it took along. Written only by that worker, except while
// paused.
struct Turn {
  static constexpr std::size_t kMaxWorks = 64;

  struct Member {
    int flow;                 // as numbered by the queue
    std::int64_t charged_ns;  // for the expected time, or the time taken so far
  };

  void Begin(SteadyTime now) {
    begin = now;
    count = 0;
    cut_short_count = 0;
    overrun_ns = 0;
    longest_overrun_ns = 0;
    may_pause = false;
    resume_time = SteadyTime::min();
  }

  std::array<Member, kMaxWorks> members;
  std::size_t count = 0;
  FlowKey flow;      // of the first work
  SteadyTime begin;  // adjusted for pauses
  // Works that stopped early because nobody wanted them any more, and how long
  // they ran on after that, in total and at most.
  int cut_short_count = 0;
  std::int64_t overrun_ns = 0;
  std::int64_t longest_overrun_ns = 0;
  // True if the turn may yield to other works: it has one work and runs on a
  // worker.
  bool may_pause = false;
  SteadyTime pause_time;                       // the latest pause
  SteadyTime resume_time = SteadyTime::min();  // min(): never paused
};

// Reasons of refusals: too many works wait; the work could not meet its
// deadline; the server is shutting down.
inline constexpr absl::string_view kQueueFull = "QUEUE_FULL";
inline constexpr absl::string_view kWouldBeLate = "WOULD_BE_LATE";
inline constexpr absl::string_view kDraining = "DRAINING";

// Something to run once on a worker. The pool does not own it: it must live
// until Run or Refuse is called, and may delete itself there. A work that may
// take long must be the yielder of its interrupt; see WorkerPool::Yield.
class Work : public Yielder {
 public:
  virtual void Run() = 0;
  // Called instead of Run, on any thread; `status` says why the work will not
  // run.
  virtual void Refuse(const absl::Status& status) = 0;
  // Works of one group may be run together by the one that has its turn; see
  // WorkerPool::TakeAlong. Empty: no group.
  virtual absl::string_view group() const { return {}; }

  void Yield() override {}

  // Tells when the work is no longer wanted.
  const Interrupt& interrupt() const { return wanted_; }
  // Call inside Run, before anyone may delete the work: it stops early because
  // it has not been wanted any more for `overrun`.
  void CutShort(absl::Duration overrun);

 protected:
  // `interrupt` must outlive the work and must not change while the work waits.
  explicit Work(const Interrupt& interrupt) : wanted_(interrupt) {}
  virtual ~Work() = default;

  void set_flow(const FlowKey& flow) { flow_ = flow; }
  // Marks a work that continues something which had a turn before: it is not
  // refused because too many wait or it would be late, nor for the benefit of
  // others. Must not be called while the work waits.
  void set_begun() { begun_ = true; }
  bool begun() const { return begun_; }

 private:
  friend class FairQueue;
  friend class WorkQueue;
  friend class WorkerPool;

  // Position in the queue; owned by the queue.
  struct Place {
    Work* before = nullptr;
    Work* after = nullptr;
    int flow = -1;  // -1: not waiting
    std::int64_t expected_ns = 0;
    std::int64_t charge_ns = 0;  // charged when its turn comes
    SteadyTime entered;
    Turn* turn = nullptr;  // the turn it runs in
    // Non-null while that turn is paused: its thread waits on this.
    CondVar* paused = nullptr;
  };

  const Interrupt& wanted_;
  FlowKey flow_;
  bool begun_ = false;
  Place place_;
};

// The works of a turn: usually one.
using Works = absl::InlinedVector<Work*, 1>;

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_QUEUE_WORK_H_
