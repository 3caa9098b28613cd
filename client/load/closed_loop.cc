#include "client/load/closed_loop.h"

#include <atomic>
#include <chrono>
#include <latch>
#include <vector>

namespace attendant {
namespace {

using SteadyClock = std::chrono::steady_clock;

class Loop {
 public:
  Loop(const ClosedLoopOptions& options, const SendRequest& send)
      : send_(send),
        callers_(options.concurrency),
        running_(options.concurrency),
        count_from_(SteadyClock::now() +
                    absl::ToChronoNanoseconds(options.warmup)),
        end_(count_from_ + absl::ToChronoNanoseconds(options.duration)) {}

  LoadResult Run() {
    for (Caller& caller : callers_) Send(caller);
    running_.wait();
    LoadResult result;
    result.duration = absl::FromChrono(end_ - count_from_);
    for (const Caller& caller : callers_) result.Merge(caller.result);
    result.Finish();
    return result;
  }

 private:
  // Touched by one request at a time, so it needs no lock.
  struct Caller {
    LoadResult result;
  };

  void Send(Caller& caller) {
    const SteadyClock::time_point begin = SteadyClock::now();
    if (begin >= end_) {
      running_.count_down();
      return;
    }
    send_(next_.fetch_add(1, std::memory_order_relaxed),
          [this, &caller, begin](const absl::Status& status) {
            Record(caller, begin, status);
            Send(caller);
          });
  }

  void Record(Caller& caller, SteadyClock::time_point begin,
              const absl::Status& status) {
    const SteadyClock::time_point now = SteadyClock::now();
    if (now < count_from_ || now >= end_) return;
    caller.result.Add(status, std::chrono::nanoseconds(now - begin).count());
  }

  const SendRequest& send_;
  std::vector<Caller> callers_;
  std::latch running_;
  std::atomic<std::int64_t> next_{0};
  const SteadyClock::time_point count_from_;
  const SteadyClock::time_point end_;
};

}  // namespace

LoadResult RunClosedLoop(const ClosedLoopOptions& options,
                         const SendRequest& send) {
  Loop loop(options, send);
  return loop.Run();
}

}  // namespace attendant
