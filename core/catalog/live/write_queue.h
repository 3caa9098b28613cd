// Writers that wait in line, of which one writes for all.
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

// A first-in-first-out line of works. Whoever comes to its front, the leader,
// handles what has gathered behind it while the leader before was busy, and its
// own; the others, its followers, only wait. Nobody waits for others to come: a
// lone caller is handled at once, alone.
//
// Thread-safe.
template <typename T>
class WriteQueue {
 public:
  // The most that one leader handles.
  static constexpr std::size_t kMaxTogether = 64;

  // Returns after `work` was handled, by this thread or another. `handle` gets
  // works in the order they came, at least one, this one first; it handles the
  // first of them, one or more, and returns how many. The others stay in line.
  // One handle runs at a time. Throws what it throws; then only this work is
  // out of the line, and the next one's thread handles the others.
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
        // Under the lock: a follower that wakes earlier takes its waiter along.
        waiters_.front()->done = true;
        waiters_.front()->changed.NotifyOne();
        waiters_.pop_front();
      }
      if (!waiters_.empty()) waiters_.front()->changed.NotifyOne();
    };
    handled = handle({works.data(), count});
  }

  // Works that wait or are being handled.
  std::size_t size() const {
    MutexLock lock(&mutex_);
    return waiters_.size();
  }

 private:
  // On the stack of its thread.
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
