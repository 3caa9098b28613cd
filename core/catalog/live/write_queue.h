// A queue of writers in which one writes for all that wait.
#ifndef ATTENDANT_CORE_CATALOG_LIVE_WRITE_QUEUE_H_
#define ATTENDANT_CORE_CATALOG_LIVE_WRITE_QUEUE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <span>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "core/base/mutex.h"

namespace attendant {

// A first-in-first-out queue. The thread at its front, the leader, handles its
// own work and the works that queued up behind it while the previous leader was
// busy; the other threads, its followers, only wait. A leader never waits for
// more works to arrive: a single caller is handled at once, alone.
//
// Thread-safe.
template <typename T>
class WriteQueue {
 public:
  // The maximum number of works handled by one leader.
  static constexpr std::size_t kMaxTogether = 64;

  // Returns after `work` was handled, by this thread or another. `handle`
  // receives at least one work, in the order of arrival and this one first. It
  // handles one or more of the first works and returns their number; the others
  // stay in the queue. At most one `handle` runs at a time. If `handle` throws,
  // Run rethrows; only this work leaves the queue, and the next thread handles
  // the others.
  void Run(T& work,
           absl::FunctionRef<std::size_t(std::span<T* const> works)> handle) {
    Waiter waiter;
    waiter.work = &work;
    std::array<T*, kMaxTogether> works;
    std::size_t count = 0;
    {
      MutexLock lock(&mutex_);
      waiters_.push_back(&waiter);
      while (!waiter.done && waiters_.front() != &waiter) {
        waiter.changed.Wait(&mutex_);
      }
      if (waiter.done) return;
      count = std::min(waiters_.size(), works.size());
      for (std::size_t i = 0; i < count; ++i) works[i] = waiters_[i]->work;
    }
    std::size_t handled = 1;
    const absl::Cleanup leave = [&] {
      MutexLock lock(&mutex_);
      for (std::size_t i = 0; i < handled; ++i) {
        // Under the lock: a follower that woke earlier would destroy its
        // waiter.
        waiters_.front()->done = true;
        waiters_.front()->changed.NotifyOne();
        waiters_.pop_front();
      }
      if (!waiters_.empty()) waiters_.front()->changed.NotifyOne();
    };
    handled = handle({works.data(), count});
  }

  // The number of works that wait or are being handled.
  std::size_t size() const {
    MutexLock lock(&mutex_);
    return waiters_.size();
  }

 private:
  // Lives on the stack of its thread.
  struct Waiter {
    T* work = nullptr;
    bool done = false;
    CondVar changed;
  };

  mutable Mutex mutex_;
  std::deque<Waiter*> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_LIVE_WRITE_QUEUE_H_
