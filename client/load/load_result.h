// What came of a load.
#ifndef ATTENDANT_CLIENT_LOAD_LOAD_RESULT_H_
#define ATTENDANT_CLIENT_LOAD_LOAD_RESULT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace attendant {

// Of the requests that count.
struct LoadResult {
  absl::Duration duration;
  // Of those that succeeded, ascending once Finish was called.
  std::vector<std::int64_t> latencies_ns;
  std::map<absl::StatusCode, std::int64_t> status_counts;
  // Failures by message.
  std::map<std::string, std::int64_t> error_counts;
  // Of an open loop: sent so much after their time that it is the generator
  // that was late (see kLate), and the latest.
  std::int64_t late_count = 0;
  std::int64_t latest_ns = 0;

  static constexpr absl::Duration kLate = absl::Milliseconds(1);

  // Adds one request.
  void Add(const absl::Status& status, std::int64_t latency_ns);
  // Adds those of another, whose duration does not matter.
  void Merge(const LoadResult& other);
  void Finish();

  // All that were sent: answered, refused or failed.
  std::int64_t request_count() const;
  std::int64_t failed_count() const;
  // RESOURCE_EXHAUSTED or UNAVAILABLE: the server said that it has no room.
  std::int64_t refused_count() const;
  double requests_per_second() const;
  double answers_per_second() const;
  double mean_latency_ns() const;
  // The smallest latency that at least `percent` of the successes don't exceed;
  // percent in (0, 100]. 0 if there are none.
  std::int64_t LatencyAtPercentile(double percent) const;
};

// Sends request number `request_index` (counted over all callers, from 0) and
// calls `done` once, from another thread or later, never from within.
using SendRequest = std::function<void(
    std::int64_t request_index, std::function<void(const absl::Status&)> done)>;

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_LOAD_RESULT_H_
