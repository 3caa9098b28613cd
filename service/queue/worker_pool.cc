#include "service/queue/worker_pool.h"

#include <pthread.h>

#include <new>
#include <optional>
#include <system_error>

#include "core/base/clock.h"
#include "core/base/own_core.h"
#include "core/base/status.h"
#include "service/queue/patience.h"

namespace attendant {
namespace {

// Made when the program starts: later there may be no memory for it.
const absl::Status& kShuttingDown = *new absl::Status(StatusWithReason(
    absl::StatusCode::kUnavailable, "the server is shutting down", kDraining));

}  // namespace

absl::Status Draining() { return kShuttingDown; }

WorkerPool::WorkerPool(const Options& options, const WorkerThreads& threads)
    : thread_kind_(threads),
      thread_count_(options.thread_count),
      queue_(options),
      active_count_(options.thread_count) {
  threads_.reserve(static_cast<std::size_t>(options.thread_count));
  for (int i = 0; i < options.thread_count; ++i) {
    threads_.emplace_back([this, i] { RunWorker(i); });
  }
}

WorkerPool::~WorkerPool() { Stop(); }

void WorkerPool::Add(Work* work) {
  WorkQueue::Refusal refusal;
  bool stopped = false;
  bool can_begin = false;
  const SteadyTime now = SteadyNow();
  {
    MutexLock lock(&mutex_);
    stopped = stopped_;
    if (!stopped) refusal = queue_.Add(work, now);
    can_begin = queue_.can_begin();
  }
  if (stopped) return work->Refuse(Draining());
  if (can_begin) changed_.NotifyOne();
  TellPatience(refusal, now);
  refusal.Tell();
}

bool WorkerPool::TryRunHere(Work* work, bool beside_others) {
  Turn turn;
  WorkQueue::Refusal refusal;
  const SteadyTime now = SteadyNow();
  {
    MutexLock lock(&mutex_);
    const bool has_room =
        queue_.is_idle() || (beside_others && queue_.has_free_turn(*work) &&
                             elsewhere_count_ < thread_kind_.most_elsewhere);
    if (stopped_ || !has_room) return false;
    refusal = queue_.Add(work, now);
    if (refusal.work == nullptr) queue_.Begin(now, &turn, &refusal);
    if (refusal.work == nullptr) {
      turn.may_pause = false;  // other threads wait for this one
      ++elsewhere_count_;
      ++elsewhere_turn_count_;
    }
  }
  TellPatience(refusal, now);
  if (refusal.work == nullptr) {
    RunTurn(work, turn, /*elsewhere=*/true);
  } else {
    refusal.Tell();
  }
  return true;
}

void WorkerPool::TakeAlong(const Work& work, std::size_t most, Works& taken) {
  const SteadyTime now = SteadyNow();
  MutexLock lock(&mutex_);
  queue_.TakeAlong(work, most, now, taken);
}

void WorkerPool::Yield(Work* work) {
  MutexLock lock(&mutex_);
  // A pool that stops runs its works to the end without pauses.
  if (!queue_.ShouldPause(*work, SteadyNow()) || stopped_ || !AddStandIn()) {
    return;
  }
  CondVar resumed;
  queue_.Pause(work, SteadyNow(), &resumed);
  --active_count_;
  ++paused_count_;
  changed_.NotifyOne();
  while (work->place_.paused != nullptr) resumed.Wait(&mutex_);
  --paused_count_;
  ++active_count_;
}

bool WorkerPool::AddStandIn() {
  if (paused_count_ == kMaxPaused) return false;
  if (active_count_ > thread_count_) return true;
  if (resting_count_ > 0) {
    --resting_count_;
    ++called_count_;
    called_.NotifyOne();
  } else {
    try {
      const int index = static_cast<int>(threads_.size());
      threads_.emplace_back([this, index] { RunWorker(index); });
    } catch (const std::system_error&) {
      return false;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  ++active_count_;
  return true;
}

void WorkerPool::RestStandIn() {
  if (active_count_ <= thread_count_ || stopped_) return;
  --active_count_;
  ++resting_count_;
  // Another thread must take over the work this one would have begun.
  if (queue_.can_begin()) changed_.NotifyOne();
  while (called_count_ == 0 && !stopped_) called_.Wait(&mutex_);
  if (called_count_ > 0) {
    --called_count_;
  } else {
    --resting_count_;
    ++active_count_;
  }
}

bool WorkerPool::RemoveUnlessBegun(Work* work) {
  MutexLock lock(&mutex_);
  return queue_.RemoveUnlessBegun(work);
}

void WorkerPool::Cancel(Work* work) {
  {
    MutexLock lock(&mutex_);
    if (!queue_.Remove(work)) return;
  }
  WorkQueue::Refusal refusal;
  refusal.work = work;
  refusal.cause = WorkQueue::Refusal::Cause::kEnded;
  refusal.ended = work->interrupt().GoneAt(SteadyNow());
  refusal.Tell();
}

WorkCounts WorkerPool::counts() const {
  MutexLock lock(&mutex_);
  WorkCounts counts = queue_.counts();
  counts.elsewhere_turn_count = elsewhere_turn_count_;
  return counts;
}

void WorkerPool::Stop() {
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
  }
  changed_.NotifyAll();
  called_.NotifyAll();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  MutexLock lock(&mutex_);
  while (!queue_.is_idle()) changed_.Wait(&mutex_);
}

void WorkerPool::RunWorker(int index) {
  pthread_setname_np(pthread_self(), thread_kind_.name);
  if (thread_kind_.share.has_value()) TakeShare(*thread_kind_.share);
  std::optional<OwnCore> core;
  const bool stands_in = index >= thread_count_;
  if (thread_kind_.have_own_cores && !stands_in) {
    core.emplace(index, thread_count_);
  }
  Turn turn;
  while (true) {
    Work* work = nullptr;
    WorkQueue::Refusal refusal;
    {
      MutexLock lock(&mutex_);
      if (stands_in) RestStandIn();
      while (!queue_.can_begin() &&
             !(stopped_ && queue_.waiting_count() == 0)) {
        if (core && core->may_stay()) {
          StayAt(*core);
        } else {
          changed_.Wait(&mutex_);
        }
      }
      if (queue_.waiting_count() == 0) return;
      work = queue_.Begin(SteadyNow(), &turn, &refusal);
      // What woke this thread may have made room for several turns.
      if (queue_.can_begin()) changed_.NotifyOne();
    }
    if (core) core->Leave();
    if (work == nullptr) {
      refusal.Tell();
    } else {
      RunTurn(work, turn, /*elsewhere=*/false);
    }
  }
}

// Unlocks, since others that wait for the lock would wait until the thread has
// reached its core.
void WorkerPool::StayAt(OwnCore& core) {
  mutex_.Unlock();
  core.Stay();
  mutex_.Lock();
}

void WorkerPool::TellPatience(const WorkQueue::Refusal& refusal,
                              SteadyTime now) const {
  if (!thread_kind_.are_let_go_on) return;
  using Causes = WorkQueue::Refusal::Cause;
  const bool turned_away =
      refusal.work != nullptr &&
      (refusal.cause == Causes::kFull || refusal.cause == Causes::kLate);
  Patience::OfThread().Brought(turned_away, now);
}

void WorkerPool::RunTurn(Work* work, const Turn& turn, bool elsewhere) {
  work->Run();
  const SteadyTime now = SteadyNow();
  MutexLock lock(&mutex_);
  queue_.End(turn, now);
  if (elsewhere) {
    --elsewhere_count_;
    // A worker could not begin it while this turn was running.
    if (queue_.can_begin()) changed_.NotifyOne();
  }
  if (stopped_) changed_.NotifyAll();
}

}  // namespace attendant
