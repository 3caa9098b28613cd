#include "service/worker_pool.h"

#include <algorithm>

namespace attendant {

WorkerPool::WorkerPool(int thread_count, std::size_t max_waiting_count)
    : thread_count_(static_cast<std::size_t>(thread_count)),
      max_waiting_count_(max_waiting_count) {
  threads_.reserve(static_cast<std::size_t>(thread_count));
  for (int i = 0; i < thread_count; ++i) {
    threads_.emplace_back([this] { RunWorker(); });
  }
}

WorkerPool::~WorkerPool() { Stop(); }

bool WorkerPool::TryAdd(Work* work) {
  {
    MutexLock lock(&mutex_);
    if (stopped_ || waiting_.size() >= max_waiting_count_) return false;
    waiting_.push_back(work);
  }
  added_.NotifyOne();
  return true;
}

void WorkerPool::TakeAlong(const Work& work, std::size_t most,
                           std::vector<Work*>& taken) {
  const absl::string_view group = work.group();
  MutexLock lock(&mutex_);
  const std::size_t share =
      std::min(most, (waiting_.size() + thread_count_ - 1) / thread_count_);
  std::size_t taken_count = 0;
  const auto take = [&](Work* waiting) {
    if (taken_count == share || waiting->group() != group) return false;
    taken.push_back(waiting);
    ++taken_count;
    return true;
  };
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), take),
                 waiting_.end());
}

std::size_t WorkerPool::waiting_count() const {
  MutexLock lock(&mutex_);
  return waiting_.size();
}

void WorkerPool::Stop() {
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
  }
  added_.NotifyAll();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkerPool::RunWorker() {
  while (true) {
    Work* work = nullptr;
    {
      MutexLock lock(&mutex_);
      while (waiting_.empty() && !stopped_) added_.Wait(&mutex_);
      if (waiting_.empty()) return;
      work = waiting_.front();
      waiting_.pop_front();
    }
    work->Run();
  }
}

}  // namespace attendant
