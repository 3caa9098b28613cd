#include "client/load/closed_loop.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <latch>
#include <memory>
#include <numeric>

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

  ClosedLoopResult Run() {
    for (Caller& caller : callers_) Send(caller);
    running_.wait();
    ClosedLoopResult result;
    result.duration = absl::FromChrono(end_ - count_from_);
    for (const Caller& caller : callers_) {
      result.latencies_ns.insert(result.latencies_ns.end(),
                                 caller.latencies_ns.begin(),
                                 caller.latencies_ns.end());
      for (const auto& [code, count] : caller.status_counts) {
        result.status_counts[code] += count;
      }
      for (const auto& [message, count] : caller.error_counts) {
        result.error_counts[message] += count;
      }
    }
    std::sort(result.latencies_ns.begin(), result.latencies_ns.end());
    return result;
  }

 private:
  // Touched by one request at a time, so it needs no lock.
  struct Caller {
    std::vector<std::int64_t> latencies_ns;
    std::map<absl::StatusCode, std::int64_t> status_counts;
    std::map<std::string, std::int64_t> error_counts;
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
    ++caller.status_counts[status.code()];
    if (status.ok()) {
      caller.latencies_ns.push_back(
          std::chrono::nanoseconds(now - begin).count());
    } else {
      ++caller.error_counts[std::string(status.message())];
    }
  }

  const SendRequest& send_;
  std::vector<Caller> callers_;
  std::latch running_;
  std::atomic<std::int64_t> next_{0};
  const SteadyClock::time_point count_from_;
  const SteadyClock::time_point end_;
};

}  // namespace

std::int64_t ClosedLoopResult::request_count() const {
  std::int64_t count = 0;
  for (const auto& [code, code_count] : status_counts) count += code_count;
  return count;
}

std::int64_t ClosedLoopResult::failed_count() const {
  return request_count() - static_cast<std::int64_t>(latencies_ns.size());
}

double ClosedLoopResult::requests_per_second() const {
  return static_cast<double>(request_count()) / absl::ToDoubleSeconds(duration);
}

double ClosedLoopResult::mean_latency_ns() const {
  if (latencies_ns.empty()) return 0;
  return std::accumulate(latencies_ns.begin(), latencies_ns.end(), 0.0) /
         static_cast<double>(latencies_ns.size());
}

std::int64_t ClosedLoopResult::LatencyAtPercentile(double percent) const {
  if (latencies_ns.empty()) return 0;
  // 99.9 % of 1,000 is 999, also where the product is a rounding above.
  const double share = percent * static_cast<double>(latencies_ns.size()) / 100;
  const double rank = std::ceil(share * (1 - 1e-12));
  const std::size_t last = latencies_ns.size() - 1;
  return latencies_ns[std::min(
      last, static_cast<std::size_t>(std::max(rank, 1.0)) - 1)];
}

ClosedLoopResult RunClosedLoop(const ClosedLoopOptions& options,
                               const SendRequest& send) {
  Loop loop(options, send);
  return loop.Run();
}

}  // namespace attendant
