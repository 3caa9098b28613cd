#include "core/catalog/live/background.h"

#include <pthread.h>

#include <algorithm>
#include <new>
#include <tuple>
#include <utility>

namespace attendant {
namespace {

// Delay before a task that ran out of memory is retried.
constexpr absl::Duration kRetryTime = absl::Seconds(1);

const char* ThreadName(Lane lane) {
  switch (lane) {
    case Lane::kLong:
      return "merge";
    case Lane::kFirst:
      return "first-merge";
    case Lane::kShort:
      return "seal";
    case Lane::kSpare:
      return "learn";
  }
  return "";
}

// Returns false if the task ran out of memory.
bool HadMemory(const std::function<void()>& run) {
  try {
    run();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace

BackgroundWorker::BackgroundWorker()
    : threads_({std::thread([this] { Run(Lane::kLong); }),
                std::thread([this] { Run(Lane::kFirst); }),
                std::thread([this] { Run(Lane::kShort); }),
                std::thread([this] { Run(Lane::kSpare); })}) {}

BackgroundWorker::~BackgroundWorker() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    tasks_.clear();
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void BackgroundWorker::Add(const void* owner, absl::Duration delay,
                           std::function<void()> task, Lane lane) {
  {
    MutexLock lock(&mutex_);
    tasks_.push_back({lane, owner, SteadyAfter(delay), std::move(task)});
  }
  changed_.NotifyAll();
}

void BackgroundWorker::Hurry(const void* owner, Lane lane) {
  {
    MutexLock lock(&mutex_);
    for (Task& task : tasks_) {
      if (task.owner == owner && task.lane == lane) {
        task.due = SteadyTime::min();
      }
    }
  }
  changed_.NotifyAll();
}

void BackgroundWorker::Remove(const void* owner) {
  MutexLock lock(&mutex_);
  while (true) {
    // Running tasks may have added more.
    std::erase_if(tasks_,
                  [owner](const Task& task) { return task.owner == owner; });
    if (!IsRunning(owner)) return;
    changed_.Wait(&mutex_);
  }
}

bool BackgroundWorker::IsRunning(const void* owner) const {
  return std::ranges::find(running_owners_, owner) != running_owners_.end();
}

void BackgroundWorker::Run(Lane lane) {
  pthread_setname_np(pthread_self(), ThreadName(lane));
  mutex_.Lock();
  const void*& running_owner = running_owners_[static_cast<std::size_t>(lane)];
  while (!stopping_) {
    const auto next =
        std::ranges::min_element(tasks_, [lane](const Task& a, const Task& b) {
          return std::tuple(a.lane != lane, a.due) <
                 std::tuple(b.lane != lane, b.due);
        });
    if (next == tasks_.end() || next->lane != lane) {
      changed_.Wait(&mutex_);
      continue;
    }
    if (next->due > SteadyNow()) {
      changed_.WaitWithTimeout(&mutex_, TimeUntil(next->due));
      continue;
    }
    std::list<Task> task;  // at most one
    task.splice(task.end(), tasks_, next);
    running_owner = task.front().owner;
    mutex_.Unlock();
    const bool ran = HadMemory(task.front().run);
    mutex_.Lock();
    running_owner = nullptr;
    if (!ran && !stopping_) {
      task.front().due = SteadyAfter(kRetryTime);
      tasks_.splice(tasks_.end(), task);
    }
    changed_.NotifyAll();
  }
  mutex_.Unlock();
}

}  // namespace attendant
