#include "core/base/repeated_work.h"

#include <new>
#include <utility>

namespace attendant {

RepeatedWork::RepeatedWork(absl::Duration interval, std::function<void()> work)
    : interval_(interval), work_(std::move(work)), thread_([this] { Run(); }) {}

RepeatedWork::~RepeatedWork() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    stop_changed_.NotifyAll();
  }
  thread_.join();
}

void RepeatedWork::Run() {
  while (true) {
    try {
      work_();
    } catch (const std::bad_alloc&) {  // there may be memory next time
    }
    MutexLock lock(&mutex_);
    if (!stop_) stop_changed_.WaitWithTimeout(&mutex_, interval_);
    if (stop_) return;
  }
}

}  // namespace attendant
