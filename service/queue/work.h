// What a worker does once, and where it stands meanwhile.
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

// Whose work it is, by hashes: works of one caller, and of one catalog of a
// caller, stand in line together (see FairQueue). Zeros are a caller and a
// catalog like any other.
struct FlowKey {
  std::uint64_t caller = 0;
  std::uint64_t catalog = 0;
};

// What one worker does from taking a work to being free again: that work, and
// those that it took along. Written by that worker alone, but while it is
// paused.
struct Turn {
  static constexpr std::size_t kMaxWorks = 64;

  struct Member {
    int flow;                 // as the queue numbers them
    std::int64_t charged_ns;  // for what it was expected to take, or has
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
  std::uint64_t catalog = 0;  // of the first
  SteadyTime begin;           // as if the turn had never been paused
  // Works that stopped since nobody wanted them any more, and how long after
  // that moment, in all and at most.
  int cut_short_count = 0;
  std::int64_t overrun_ns = 0;
  std::int64_t longest_overrun_ns = 0;
  // May let others have theirs in between: of one work, on a worker.
  bool may_pause = false;
  SteadyTime pause_time;                       // the last
  SteadyTime resume_time = SteadyTime::min();  // min(): it was never paused
};

// The reasons of refusals: too many works wait; it could not meet its deadline;
// the server is shutting down.
inline constexpr absl::string_view kQueueFull = "QUEUE_FULL";
inline constexpr absl::string_view kWouldBeLate = "WOULD_BE_LATE";
inline constexpr absl::string_view kDraining = "DRAINING";

// Something to run once on a worker. Whoever holds it does not own it: it must
// live until Run or Refuse is called, and may delete itself there. One that may
// take long is the yielder of its interrupt: see WorkerPool::Yield.
class Work : public Yielder {
 public:
  virtual void Run() = 0;
  // Instead of Run, from any thread: `status` says why it will not be run.
  virtual void Refuse(const absl::Status& status) = 0;
  // Works of one group may be done by the one that has its turn: see
  // WorkerPool::TakeAlong. Empty: of none.
  virtual absl::string_view group() const { return {}; }

  void Yield() override {}

  // When it is no longer wanted.
  const Interrupt& interrupt() const { return wanted_; }
  // Inside Run, and before anybody may end the work: it stops early since it
  // was no longer wanted, which was `overrun` ago.
  void CutShort(absl::Duration overrun);

 protected:
  // `interrupt` must outlive the work, and is not changed while it waits.
  explicit Work(const Interrupt& interrupt) : wanted_(interrupt) {}
  virtual ~Work() = default;

  void set_flow(const FlowKey& flow) { flow_ = flow; }
  // It goes on with what had a turn before: it is not turned away since too
  // many wait, nor since it would be late, nor are others for it. Not while it
  // waits.
  void set_begun() { begun_ = true; }
  bool begun() const { return begun_; }

 private:
  friend class FairQueue;
  friend class WorkQueue;
  friend class WorkerPool;

  // Where the work stands; the queue's.
  struct Place {
    Work* before = nullptr;
    Work* after = nullptr;
    int flow = -1;  // -1: it does not wait
    std::int64_t expected_ns = 0;
    std::int64_t charge_ns = 0;  // when its turn comes
    SteadyTime entered;
    Turn* turn = nullptr;  // the one that it is run in
    // Not null while that turn is paused: what its thread waits for.
    CondVar* paused = nullptr;
  };

  const Interrupt& wanted_;
  FlowKey flow_;
  bool begun_ = false;
  Place place_;
};

// Those of a turn: mostly one.
using Works = absl::InlinedVector<Work*, 1>;

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_QUEUE_WORK_H_
