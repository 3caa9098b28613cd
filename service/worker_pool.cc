#include "service/worker_pool.h"

namespace attendant {

WorkerPool::WorkerPool(int thread_count, std::size_t max_waiting_count)
    : max_waiting_count_(max_waiting_count) {
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
