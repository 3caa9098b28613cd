#include "core/catalog/background.h"

#include <algorithm>
#include <utility>

namespace attendant {
namespace {

using SteadyClock = std::chrono::steady_clock;

}  // namespace

BackgroundWorker::BackgroundWorker() : thread_([this] { Run(); }) {}

BackgroundWorker::~BackgroundWorker() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    tasks_.clear();
  }
  changed_.NotifyAll();
  thread_.join();
}

void BackgroundWorker::Add(const void* owner, absl::Duration delay,
                           std::function<void()> task) {
  {
    MutexLock lock(&mutex_);
    tasks_.push_back({owner,
                      SteadyClock::now() + absl::ToChronoNanoseconds(delay),
                      std::move(task)});
  }
  changed_.NotifyAll();
}

void BackgroundWorker::Hurry(const void* owner) {
  {
    MutexLock lock(&mutex_);
    for (Task& task : tasks_) {
      if (task.owner == owner) task.due = SteadyClock::time_point::min();
    }
  }
  changed_.NotifyAll();
}

void BackgroundWorker::Remove(const void* owner) {
  MutexLock lock(&mutex_);
  std::erase_if(tasks_,
                [owner](const Task& task) { return task.owner == owner; });
  while (running_owner_ == owner) changed_.Wait(&mutex_);
}

void BackgroundWorker::Run() {
  mutex_.Lock();
  while (!stopping_) {
    const auto next = std::min_element(
        tasks_.begin(), tasks_.end(),
        [](const Task& a, const Task& b) { return a.due < b.due; });
    if (next == tasks_.end()) {
      changed_.Wait(&mutex_);
      continue;
    }
    const SteadyClock::time_point now = SteadyClock::now();
    if (next->due > now) {
      changed_.WaitWithTimeout(&mutex_, absl::FromChrono(next->due - now));
      continue;
    }
    Task task = std::move(*next);
    tasks_.erase(next);
    running_owner_ = task.owner;
    mutex_.Unlock();
    task.run();
    mutex_.Lock();
    running_owner_ = nullptr;
    changed_.NotifyAll();
  }
  mutex_.Unlock();
}

}  // namespace attendant
