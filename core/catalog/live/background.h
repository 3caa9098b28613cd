// The threads that see to indexes, beside the queries.
#ifndef ATTENDANT_CORE_CATALOG_LIVE_BACKGROUND_H_
#define ATTENDANT_CORE_CATALOG_LIVE_BACKGROUND_H_

#include <array>
#include <functional>
#include <list>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace attendant {

// What a task waits behind.
enum class Lane {
  kLong,   // tasks of seconds and minutes, or more while all cores are busy
  kFirst,  // those that queries are slow without, which must not wait for them
  kShort,  // tasks of milliseconds that must wait for neither
  kSpare,  // tasks of seconds and more that nobody waits for
};

// Runs one task of each lane at a time, each not before its time, the earliest
// first; one that throws std::bad_alloc again, a second later. Thread-safe. The
// destructor drops tasks that have not begun and waits for those that have.
class BackgroundWorker {
 public:
  BackgroundWorker();
  ~BackgroundWorker();

  // `owner` groups tasks for Remove.
  void Add(const void* owner, absl::Duration delay, std::function<void()> task,
           Lane lane = Lane::kLong);

  // Makes the owner's tasks of a lane due now.
  void Hurry(const void* owner, Lane lane = Lane::kLong);

  // Drops the owner's tasks that have not begun and waits for those that have;
  // the same of what these add. Not to be called from a task.
  void Remove(const void* owner);

 private:
  static constexpr std::size_t kLaneCount = 4;

  struct Task {
    Lane lane = Lane::kLong;
    const void* owner = nullptr;
    SteadyTime due;
    std::function<void()> run;
  };

  void Run(Lane lane);
  bool IsRunning(const void* owner) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  CondVar changed_;
  // A list: what is moved in and out needs no memory.
  std::list<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  // By lane.
  std::array<const void*, kLaneCount> running_owners_
      ABSL_GUARDED_BY(mutex_) = {};
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::array<std::thread, kLaneCount> threads_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_LIVE_BACKGROUND_H_
