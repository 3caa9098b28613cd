// The threads that maintain indexes in the background.
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

// Selects the tasks that a task waits for: those of its own lane.
enum class Lane {
  kLong,   // tasks of seconds or minutes, or more on busy cores
  kFirst,  // tasks whose delay makes queries slow; never behind kLong
  kShort,  // tasks of milliseconds that must not wait for either
  kSpare,  // tasks of seconds or more that nobody waits for
};

// Runs one task of each lane at a time, earliest due time first and never
// before it. A task that throws std::bad_alloc runs again a second later.
// Thread-safe. The destructor drops tasks that have not begun and waits for
// those that have.
class BackgroundWorker {
 public:
  BackgroundWorker();
  ~BackgroundWorker();

  // Schedules `task` after `delay`. `owner` groups tasks for Hurry and Remove.
  void Add(const void* owner, absl::Duration delay, std::function<void()> task,
           Lane lane = Lane::kLong);

  // Makes the owner's tasks of a lane due now.
  void Hurry(const void* owner, Lane lane = Lane::kLong);

  // Drops the owner's tasks that have not begun and waits for those that have,
  // including tasks that these add. Must not be called from a task.
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
  // A list, because moving tasks in and out must not allocate.
  std::list<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  // By lane.
  std::array<const void*, kLaneCount> running_owners_
      ABSL_GUARDED_BY(mutex_) = {};
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::array<std::thread, kLaneCount> threads_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_LIVE_BACKGROUND_H_
